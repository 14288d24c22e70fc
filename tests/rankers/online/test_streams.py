"""Streams: however lists arrive, by one, by blocks, from a file, stopped and continued, the same bits come out."""

import copy
import gzip

import numpy as np
import pandas as pd
import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import registered as losses
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers._base import registered
from rankwise.rankers.linear.listnet import ListNet
from rankwise.rankers.online import learner
from rankwise.rankers.online.learner import OnlineLearner
from rankwise.rankers.online.online_ranker import OnlineRanker
from rankwise.rankers.online.perceptron import MaxPairPerceptron, SLAMPerceptron
from rankwise.synthetic.streams import separable_stream

ONLINE = [
    ranker.set_params(epochs=1, shuffle=False)
    for kind in registered().values()
    if issubclass(kind, OnlineLearner)
    for ranker in kind.examples()
]
SETTINGS = [
    OnlineRanker(averaging=averaging, scale=scale, projection=projection, max_norm=max_norm, eta=0.7)
    for averaging in ("none", "uniform", "suffix")
    for scale in ("none", "radius", "standard")
    for projection, max_norm in (("none", None), ("l2", 0.4), ("l1", 0.4))
]


def named(ranker):
    return " ".join(repr(ranker).split())


over_online = pytest.mark.parametrize("ranker", ONLINE, ids=named)
over_settings = pytest.mark.parametrize("ranker", SETTINGS, ids=named)


def lists(count=60, features=3, seed=0, weighted=True):
    """Judged lists with ids and weights, a weight of 0 and lists without documents among them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, count)
    X = rng.normal(size=(sizes.sum(), features)).round(1)
    y = np.clip(np.rint(X @ np.linspace(1, -1, features) + rng.normal(size=len(X))), 0, 3)
    weight = rng.integers(0, 4, count) / 2 if weighted else None
    return Queries(X, y, np.cumsum([0, *sizes]), weight=weight)


def new(ranker):
    return type(ranker)(**ranker.get_params())


def run(ranker):
    """All that a run has become, to the bit."""
    state = [getattr(ranker.state_, name).tobytes() for name in ranker.state_.__dataclass_fields__]
    account = ranker.ledger_
    numbers = {name: getattr(account, name) for name in account.__dataclass_fields__ if name not in ("curve", "tally")}
    curve = account.curve.stride, account.curve.points.tobytes()
    scores = ranker.predict(np.eye(ranker.n_features_in_)).tobytes()
    return scores, state, repr(numbers), curve, account.tally.counts.tobytes(), str(account.table())


# ------------------------------------------------------------------------------------------- ways to arrive


@over_online
def test_however_lists_arrive_the_same_bits_come_out(ranker):
    queries = lists()
    whole = run(new(ranker).fit(queries))
    one_by_one = new(ranker)
    for query in queries:
        one_by_one.partial_fit(query)
    assert run(one_by_one) == whole
    blocks = new(ranker)
    for first, last in ((0, 1), (1, 1), (1, 20), (20, 59), (59, 60)):
        blocks.partial_fit(queries[first:last])
    assert run(blocks) == whole
    assert run(new(ranker).partial_fit(queries)) == whole
    assert run(new(ranker).partial_fit(iter(queries))) == whole
    assert run(new(ranker).partial_fit(list(queries))) == whole
    assert run(new(ranker).partial_fit(queries[i : i + 7] for i in range(0, 60, 7))) == whole
    mixed = (queries[i] if i % 3 else queries[i : i + 1] for i in range(60))
    assert run(new(ranker).partial_fit(mixed)) == whole
    assert run(new(ranker).fit(queries[:30]).partial_fit(queries[30:])) == whole


@over_online
def test_pairs_of_arrays_are_lists_too(ranker):
    queries = lists(weighted=False)
    whole = run(new(ranker).fit(queries))
    assert run(new(ranker).partial_fit((one.X, one.y) for one in queries)) == whole
    assert (
        run(new(ranker).partial_fit([one.X.tolist() if len(one) else one.X, list(one.y)] for one in queries)) == whole
    )
    single = new(ranker)
    for one in queries:
        single.partial_fit(one.X, one.y)
    assert run(single) == whole
    grouped = new(ranker).partial_fit(queries.X, queries.y, group=queries.sizes)
    assert run(grouped) == whole
    nonempty = queries[queries.sizes > 0]
    by_id = new(ranker).partial_fit(nonempty.X, nonempty.y, qid=np.repeat(np.arange(len(nonempty)), nonempty.sizes))
    assert run(by_id) == run(new(ranker).fit(nonempty))


@over_online
def test_gathering_changes_nothing(ranker, monkeypatch):
    queries = lists()
    whole = run(new(ranker).fit(queries))
    for gathered in (1, 10, 1000):
        monkeypatch.setattr(learner, "GATHERED", gathered)
        monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (gathered,))
        assert run(new(ranker).partial_fit(iter(queries))) == whole
        assert run(new(ranker).fit(queries)) == whole


@pytest.mark.parametrize("loss", [loss for kind in losses().values() for loss in kind.examples()[:1]], ids=repr)
def test_every_loss_can_be_learned_from_a_stream(loss):
    """What a loss prepares depends on its lists alone, and not on the company in which they arrive."""
    queries = lists(25)
    if loss.noisy:
        with pytest.raises(RankwiseError, match="'loss' parameter of"):
            OnlineRanker(loss).fit(queries)
        return
    model = OnlineRanker(loss, eta=0.1).fit(queries)
    assert np.isfinite(model.coef_).all()
    again = OnlineRanker(loss, eta=0.1)
    for part in np.split(np.arange(25), [1, 2, 3, 11]):
        again.partial_fit(queries[part])
    assert run(again) == run(model)


@over_online
@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_file_is_learned_from_without_loading_it(ranker, rows, tmp_path):
    queries = lists(weighted=False)
    queries = queries[queries.sizes > 0]
    path, packed = tmp_path / "lists.txt", tmp_path / "lists.txt.gz"
    rw.write_letor(queries, path)
    packed.write_bytes(gzip.compress(path.read_bytes()))
    whole = run(new(ranker).fit(queries))
    for file in (path, packed):
        stream = rw.iter_letor(file, rows=rows)
        assert run(new(ranker).partial_fit(stream)) == whole
        assert run(new(ranker).fit(rw.read_letor(file))) == whole


def test_a_world_is_a_stream():
    stream = separable_stream(300, documents=4, features=3)
    whole = run(SLAMPerceptron().fit(stream.queries()))
    assert run(SLAMPerceptron().partial_fit(stream)) == whole
    assert run(SLAMPerceptron().partial_fit(stream.blocks())) == whole


def test_features_of_a_stream_are_aligned_by_name():
    rng = np.random.default_rng(0)
    model, plain = MaxPairPerceptron(), MaxPairPerceptron()
    first, names = ["a", "b", "c"], [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]]
    stream = []
    for t in range(12):
        X, y = rng.normal(size=(4, 3)), [0, 1, 2, 0]
        plain.partial_fit(X, y)
        stream.append((pd.DataFrame(X, columns=first)[names[t % 3]], y))
    assert model.partial_fit(stream).coef_.tolist() == plain.coef_.tolist()
    assert tuple(model.feature_names_in_) == ("a", "b", "c")
    shuffled = [Query(frame.to_numpy(), np.array(y), 0, None, 1.0, tuple(frame.columns)) for frame, y in stream]
    again = MaxPairPerceptron().partial_fit(stream[0][0], stream[0][1]).partial_fit(shuffled[1:])
    assert again.coef_.tolist() == plain.coef_.tolist()


def test_missing_values_of_a_stream_follow_the_policy():
    holes = (np.array([[1.0, np.nan], [0.5, 2.0]]), [0, 1])
    filled = (np.array([[1.0, 2.0], [0.5, 2.0]]), [0, 1])
    kept = MaxPairPerceptron(missing="min").partial_fit([holes])
    assert kept.coef_.tolist() == MaxPairPerceptron().partial_fit([filled]).coef_.tolist()
    with pytest.raises(DataError, match="missing='zero'"):
        MaxPairPerceptron().partial_fit([holes])


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        ([(np.ones((2, 3)), [0, 1]), (np.ones((2, 4)), [0, 1])], "same number of features, got 3 and 4"),
        (["a list"], "queries or pairs"),
        ([(np.ones((2, 3)), [0, 1, 2])], "one number per row"),
        ([Query(np.ones((2, 3)), None, "q7", None, 1.0, None)], "'q7' has no labels"),
        (
            [Queries.from_arrays(np.ones((2, 3)), group=[2])],
            r"these queries have no labels, which are required here: use with_labels\(y\)",
        ),
        (np.ones((2, 3)), "SLAMPerceptron requires labels: pass y, or a Query or Queries with labels"),
        (7, "SLAMPerceptron requires labels: pass y, or a Query or Queries with labels"),
    ],
)
def test_what_is_no_stream_of_judged_lists_is_refused_in_a_sentence(stream, found):
    model = SLAMPerceptron()
    with pytest.raises(DataError, match=found) as error:
        model.partial_fit(stream)
    assert "\n" not in str(error.value)
    assert not hasattr(model, "n_features_in_")


def test_a_list_of_other_features_leaves_the_run_as_it_was():
    model = SLAMPerceptron().fit(lists())
    before = run(model)
    with pytest.raises(DataError, match="was fitted on 3 features, got 5"):
        model.partial_fit(lists(features=5))
    assert run(model) == before


# ------------------------------------------------------------------------------------------- stop and go on


@over_settings
@pytest.mark.parametrize("stop", [0, 1, 31, 59])
def test_a_run_that_was_saved_goes_on_to_the_same_bits(ranker, stop, tmp_path):
    queries = lists()
    whole = run(new(ranker).fit(queries))
    model = new(ranker).partial_fit(queries[:stop])
    for place, part in enumerate(np.split(np.arange(stop, 60), [1, 2, 15])):
        model.save(tmp_path / f"{place}.rankwise")
        loaded = rw.load(tmp_path / f"{place}.rankwise")
        assert run(loaded) == run(model)
        model = loaded.partial_fit(queries[part])
    assert run(model) == whole


@over_online
def test_every_online_ranker_can_be_stopped_and_continued(ranker, tmp_path):
    queries = lists()
    model = new(ranker).fit(queries[:25])
    model.save(tmp_path / "run.rankwise")
    model = rw.load(tmp_path / "run.rankwise").partial_fit(queries[25:])
    assert run(model) == run(new(ranker).fit(queries))


@pytest.mark.parametrize("ranker", [kind(eta="theory", max_norm=2.0) for kind in (OnlineRanker, ListNet)], ids=named)
def test_a_step_that_was_worked_out_from_data_is_kept(ranker, tmp_path):
    queries = lists(weighted=False)
    model = new(ranker).fit(queries)
    model.save(tmp_path / "run.rankwise")
    loaded = rw.load(tmp_path / "run.rankwise")
    assert loaded.ledger_.config == model.ledger_.config
    assert loaded.eta == "theory"
    assert run(loaded.partial_fit(queries)) == run(model.partial_fit(queries))


def interrupted(ranker, monkeypatch, chunk, part=3):
    """Ctrl-C arrives while a part of a call is played."""
    monkeypatch.setattr(learner, "_PRESENTED", chunk)
    original, calls = learner.run_rounds, []

    def stopped(*arguments, **options):
        calls.append(arguments)
        if len(calls) == part:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(learner, "run_rounds", stopped)
    return original


@over_online
def test_after_ctrl_c_the_last_finished_call_stands_and_the_run_goes_on(ranker, monkeypatch):
    queries = lists()
    whole = run(new(ranker).fit(queries))
    model = new(ranker).partial_fit(queries[:20])
    before = run(model)
    original = interrupted(model, monkeypatch, 20)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(queries[20:])
    assert run(model) == before
    monkeypatch.setattr(learner, "run_rounds", original)
    assert run(model.partial_fit(queries[20:])) == whole


def test_ctrl_c_before_the_first_rounds_of_a_fit_leaves_what_was_learned_before(monkeypatch):
    model = SLAMPerceptron().fit(lists())
    before = run(model)
    fresh = SLAMPerceptron()
    for one in (model, fresh):
        original = interrupted(one, monkeypatch, 20, part=1)
        with pytest.raises(KeyboardInterrupt):
            one.fit(lists(features=5))
        monkeypatch.setattr(learner, "run_rounds", original)
    assert run(model) == before
    assert model.n_features_in_ == 3
    assert not hasattr(fresh, "coef_")
    assert not hasattr(fresh, "n_features_in_")


def test_after_ctrl_c_in_a_stream_whole_blocks_have_been_learned(monkeypatch):
    monkeypatch.setattr(learner, "GATHERED", 10)
    queries = lists()

    def until_stopped():
        yield from queries[:40]
        raise KeyboardInterrupt

    model = SLAMPerceptron()
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(until_stopped())
    rounds = model.ledger_.rounds
    assert 30 < rounds <= 40
    assert run(model.partial_fit(queries[rounds:])) == run(SLAMPerceptron().fit(queries))


def test_two_runs_from_one_point_do_not_disturb_each_other():
    queries = lists()
    one = SLAMPerceptron().fit(queries[:20])
    for fork in (copy.copy, copy.deepcopy):
        other = fork(one)
        straight = fork(one).partial_fit(queries[20:40])
        expected = run(SLAMPerceptron().fit(queries[:40]))
        assert run(straight) == expected
        other.partial_fit(queries[40:])
        assert run(straight) == expected
    assert run(one) == run(SLAMPerceptron().fit(queries[:20]))


# ------------------------------------------------------------------------------------------- epochs


def test_epochs_are_presentations_of_all_lists_in_an_order_of_their_own():
    queries = lists(weighted=False)
    plain = SLAMPerceptron(epochs=3).fit(queries)
    thrice = SLAMPerceptron().fit(queries[np.tile(np.arange(60), 3)])
    np.testing.assert_array_equal(plain.coef_, thrice.coef_)
    np.testing.assert_array_equal(plain.ledger_.curve.points, thrice.ledger_.curve.points)
    np.testing.assert_array_equal(plain.ledger_.tally.counts, thrice.ledger_.tally.counts.reshape(3, 60).sum(axis=0))
    random = np.random.default_rng(5)
    order = np.concatenate([random.permutation(60) for _ in range(3)])
    shuffled = SLAMPerceptron(epochs=3, shuffle=True, random_state=5).fit(queries)
    np.testing.assert_array_equal(shuffled.coef_, SLAMPerceptron().fit(queries[order]).coef_)
    other = SLAMPerceptron(epochs=3, shuffle=True, random_state=6).fit(queries)
    assert not np.array_equal(shuffled.coef_, other.coef_)


def test_a_stream_that_overflows_is_reported_and_leaves_the_run_as_it_was():
    model = MaxPairPerceptron().fit(lists())
    before = run(model)
    huge = Queries.from_arrays(1e200 * np.eye(3), [0, 1, 2], group=[3])
    with pytest.raises(RankwiseError, match="too large for float64"):
        model.partial_fit([huge, huge, huge])
    assert run(model) == before
