"""A served ranker that learns from the labels of the documents that it showed first, and from no others."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.losses import GivenSoftmax
from rankwise.rankers.online.shown_list import ShownList
from rankwise.serve.replay import file_of
from rankwise.serve.structs import ExperimentRequest, Feedback, RankRequest
from tests.serve.running import IDS, Service, lists, saved
from tests.serve.test_state import replay_of, settled

DEPTH = 2


def new_ranker():
    ranker = rw.OnlineRanker(GivenSoftmax(), eta=0.1, feedback_depth=DEPTH, explore=0.5, averaging="none")
    ranker.show(np.zeros((2, 3)))  # a run of no rounds knows its features
    return ranker


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path, model=new_ranker()))
    yield service
    service.close()


def told(service, count, others=0.0, names=False):
    """Rank lists, and judge the documents shown first; ``others`` is the grade of all others."""
    kept = []
    for number, (X, y) in enumerate(lists(count)):
        X = np.asarray(X, dtype=float)
        shown = service.rank(RankRequest(ids=IDS[: len(X)]), X)
        order = [IDS.index(item.id) for item in shown.items]
        grades = np.full(len(X), others)
        grades[order[:DEPTH]] = np.asarray(y)[order[:DEPTH]]
        given = {IDS[row]: float(grades[row]) for row in order[:DEPTH]} if names else grades.tolist()
        service.feedback(Feedback(f"event {number}", shown.ranking, grades=given)).result(10)
        kept.append((shown, X, order, grades))
    return kept


def test_the_model_learns_what_partial_fit_learns_from_the_lists_that_were_shown(service):
    expected, explored = new_ranker(), 0
    key = int(expected.state_.key[0])
    published = {0: expected.coef_}
    for shown, X, order, grades in told(service, 40, others=3.0):
        settled(service)
        coef = replay_of(service, shown.version).models["news"].ranker.coef_ if shown.version > 1 else published[0]
        drawn = expected.show(X, name=shown.ranking, scores=X @ coef)
        assert int(expected.state_.key[0]) == key
        assert drawn.order.tolist() == order
        explored += set(drawn.seen) != set(np.flatnonzero(drawn.top))
        expected.partial_fit(drawn.labeled(grades[drawn.seen]))
    found = settled(service).models["news"]
    assert (found.lists, found.refused) == (40, 0)
    assert 5 < explored < 30
    np.testing.assert_array_equal(found.ranker.coef_, expected.coef_)
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == file_of(found.ranker)


def test_grades_of_other_documents_teach_nothing(service, tmp_path):
    told(service, 1, others=3.0)
    one = settled(service).models["news"].ranker.ledger_
    assert one.feedback.unmeasured == one.rounds == 1
    assert one.feedback.largest_label <= max(max(y) for _, y in lists(1))


def test_grades_by_id_of_the_documents_shown_suffice(service):
    told(service, 20, names=True)
    assert settled(service).models["news"].lists == 20


def test_the_running_measure_says_nothing_because_it_needs_all_labels(service):
    told(service, 10)
    settled(service)
    assert service.ledger("news").running.n == 0
    assert service.ledger("news").mean is None
    assert service.ledger("news").bounds == []


def test_lists_that_others_arranged_are_not_learned_from(service, tmp_path):
    """What the documents' chances to be seen were is known of the ranker's own lists alone."""
    X, y = next(iter(lists(1)))
    x = np.asarray(X, dtype=float).tolist()
    brought = Feedback("brought", "somewhere else", grades=list(y), ids=IDS[: len(y)], x=x, model="news")
    service.feedback(brought).result(10)
    assert (settled(service).models["news"].lists, service.log.replay.models["news"].refused) == (0, 1)
    assert "no record" in service.log.replay.models["news"].reason
    data = (saved(tmp_path, "other", new_ranker())["other"]).read_bytes()
    service.register("other", data).result(10)
    service.experiment(ExperimentRequest(name="both", kind="interleave", model="news", challenger="other")).result(10)
    settled(service)
    shown = service.rank(RankRequest(ids=IDS[: len(y)]), np.asarray(X, dtype=float))
    service.feedback(Feedback("mixed", shown.ranking, grades=list(y))).result(10)
    models = settled(service).models
    assert [(models[name].lists, models[name].refused) for name in ("news", "other")] == [(0, 2), (0, 1)]


def test_a_record_tells_the_list_that_was_shown():
    X = np.arange(6.0)[:, None]
    shown = rw.OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=1.0).show(X, name="a", scores=X[:, 0])
    place = np.empty(6, np.int32)
    place[shown.order] = np.arange(6)
    again = ShownList.of_record(X, place, shown.record())
    assert (again.order.tolist(), again.top.tolist()) == (shown.order.tolist(), shown.top.tolist())
    assert (again.depth, again.explore) == (2, 1.0)
    other = rw.OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=0.5)
    with pytest.raises(rw.errors.DataError, match=r"explore=0\.5, got one shown with 2 and 1"):
        other.partial_fit(again.labeled([1.0, 0.0]))
