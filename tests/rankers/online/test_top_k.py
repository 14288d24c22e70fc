"""OnlineRanker with a feedback depth: simulated and live feedback, what one label cannot tell, and what is refused."""

import copy
import math

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import GivenSoftmax, ListNet, NDCGHinge, PairHinge, PropensityHinge
from rankwise.solvers.online import loop
from tests.rankers.make_fixtures import FOLDER, FORMAT, judged
from tests.rankers.online.test_streams import run

SETTINGS = [
    {"loss": PairHinge(per_pair=False), "feedback_depth": 2, "explore": 0.4, "eta": 0.05, "averaging": "none"},
    {"loss": GivenSoftmax(), "feedback_depth": 1, "explore": 0.7, "eta": 0.05, "projection": "l2", "max_norm": 1.0},
    {"loss": PropensityHinge(), "feedback_depth": 3, "eta": 0.02, "scale": "standard", "step": "constant"},
]
over_settings = pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: one["loss"].name)


def some_lists(count=60, seed=0, longest=7):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, longest + 1, count)
    return [(random.normal(size=(m, 3)), random.integers(0, 3, m).astype(float)) for m in sizes]


def as_queries(lists):
    X, y = (np.concatenate(part) for part in zip(*lists, strict=True))
    return rw.Queries.from_arrays(X, y, group=[len(labels) for _, labels in lists])


def learned(model):
    """What a run has learned, without the measures of rounds, which live labels do not tell."""
    state = model.state_
    return [getattr(state, name).tobytes() for name in ("w", "sums", "moments", "counts", "sizes", "scale", "key")]


@over_settings
def test_no_division_of_a_stream_changes_a_bit(settings):
    lists = some_lists()
    whole = rw.OnlineRanker(**settings).fit(as_queries(lists))
    parts = rw.OnlineRanker(**settings)
    for first, last in ((0, 1), (1, 20), (20, 60)):
        parts.partial_fit(lists[first:last])
    single = rw.OnlineRanker(**settings, n_jobs=2)
    with rw.OnlineRounds(single) as rounds:
        for X, y in lists:
            rounds.learn(X, y)
    assert run(whole) == run(parts) == run(single)


@over_settings
def test_labels_of_documents_that_are_not_seen_change_nothing_that_is_learned(settings):
    lists, random = some_lists(), np.random.default_rng(1)
    model, other, ranker = (rw.OnlineRanker(**settings) for _ in range(3))
    for X, y in lists:
        seen = ranker.show(X).seen
        wrong = random.integers(0, 3, len(y)).astype(float)
        wrong[seen] = y[seen]
        ranker.partial_fit(X, y)
        model.partial_fit(X, y)
        other.partial_fit(X, wrong)
    assert learned(model) == learned(other) == learned(ranker)


@over_settings
def test_live_labels_teach_what_the_simulation_does(settings):
    lists = some_lists()
    simulated, by_nan, by_list = (rw.OnlineRanker(**settings) for _ in range(3))
    simulated.partial_fit(lists)
    for X, y in lists:
        shown = by_nan.show(X)
        labels = np.full(len(y), np.nan)
        labels[shown.seen] = y[shown.seen]
        by_nan.partial_fit(X, labels)
        shown = by_list.show(X)
        by_list.partial_fit(shown.labeled(y[shown.seen]))
    assert learned(simulated) == learned(by_nan) == learned(by_list)
    known, live = simulated.ledger_.feedback, by_list.ledger_.feedback
    assert (known.estimated_loss, known.explored) == (live.estimated_loss, live.explored)
    assert known.unmeasured == 0
    assert live.unmeasured == 60
    assert by_nan.ledger_.feedback.unmeasured == sum(len(y) > settings["feedback_depth"] for _, y in lists)


def test_a_list_can_be_learned_from_after_others_were_shown():
    """The estimate rests on what could be seen when the list was shown, and is that of the weights of today."""
    X, y = np.array([[1.0], [0.5], [-1.0]]), np.array([0.0, 1.0, 2.0])
    loss, eta, n = GivenSoftmax(), 0.1, 600
    ranker = rw.OnlineRanker(loss, eta=eta, step="constant", averaging="none", feedback_depth=1, explore=0.5)
    then = ranker.partial_fit(X, y)
    shown = [then.show(X, name=f"list {number}", scores=[3.0, 2.0, 1.0]) for number in range(n)]
    now = copy.copy(then).partial_fit([(-2.0 * X, y), (X, y[::-1])])
    steps = [copy.copy(now).partial_fit(one.labeled(y[one.seen])).coef_[0] - now.coef_[0] for one in shown]
    expected = -eta * X[:, 0] @ loss(X @ now.coef_, y)[1]
    assert len(set(steps)) == 3  # one for each document that can be seen
    assert abs(np.mean(steps) - expected) < 5 * np.std(steps) / math.sqrt(n)


def test_lists_shown_together_need_names():
    X = np.zeros((30, 1))
    model = rw.OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=1.0).partial_fit(X, np.ones(30))
    same = [model.show(X).order.tolist() for _ in range(3)]
    named = [model.show(X, name=str(number)).order.tolist() for number in range(3)]
    assert same[0] == same[1] == same[2]
    assert len({tuple(order) for order in named}) == 3
    assert model.show(X, name="1").order.tolist() == named[1]
    labels = [1.0, 0.0]
    waiting = [model.show(X).labeled(labels) for _ in range(2)]  # their draws are one
    model.partial_fit(waiting[0])
    with pytest.raises(DataError, match=r"round 2 must be learned in that round, got it in round 3"):
        model.partial_fit(waiting[1])
    model.partial_fit([model.show(X, name=name).labeled(labels) for name in "abc"])
    assert model.ledger_.rounds == 5


@over_settings
def test_a_saved_run_goes_on_with_the_same_bits(settings, tmp_path):
    lists = some_lists()
    whole = rw.OnlineRanker(**settings).partial_fit(lists)
    rw.OnlineRanker(**settings).partial_fit(lists[:30]).save(tmp_path / "run.rankwise")
    loaded = rw.load(tmp_path / "run.rankwise")
    loaded.partial_fit(lists[30:])
    assert run(loaded) == run(whole)
    assert loaded.ledger_.feedback == whole.ledger_.feedback


def test_a_run_that_is_begun_by_showing_is_the_run_of_its_seed(tmp_path):
    lists = some_lists()
    model, other = (rw.OnlineRanker(**SETTINGS[0], random_state=3) for _ in range(2))
    model.show(lists[0][0])
    model.save(tmp_path / "new.rankwise")
    assert learned(rw.load(tmp_path / "new.rankwise").partial_fit(lists)) == learned(other.partial_fit(lists))
    assert learned(other) != learned(rw.OnlineRanker(**SETTINGS[0], random_state=4).partial_fit(lists))


def test_labels_of_other_documents_than_those_shown_are_refused():
    X, y = np.arange(5.0)[:, None], np.ones(5)
    model = rw.OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=0.5).partial_fit(X, y)
    shown, before = model.show(X), learned(model)
    labels = np.full(5, np.nan)
    labels[shown.order[1:3]] = 1.0
    with pytest.raises(DataError, match="exactly the first 2 documents"):
        model.partial_fit(X, labels)
    with pytest.raises(DataError, match="call labeled"):
        model.partial_fit(shown)
    with pytest.raises(DataError, match="2"):
        shown.labeled([1.0, 0.0, 1.0])
    with pytest.raises(DataError, match="finite"):
        rw.OnlineRanker(GivenSoftmax()).partial_fit(X, labels)
    assert learned(model) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": ListNet(target="gains"), "feedback_depth": 1}, "declares to be a sum of terms"),
        ({"loss": NDCGHinge(), "feedback_depth": 9}, "declares to be a sum of terms"),
        ({"loss": PairHinge(), "feedback_depth": 2}, "declares to be a sum of terms"),
        ({"loss": PairHinge(per_pair=False), "feedback_depth": 1}, "feedback_depth must be at least 2"),
        ({"loss": GivenSoftmax(), "feedback_depth": 0}, "feedback_depth"),
        ({"loss": GivenSoftmax(), "feedback_depth": 2, "explore": 0.0}, "explore"),
        ({"loss": GivenSoftmax(), "feedback_depth": 2, "update": "mistakes"}, "update must be 'always'"),
        ({"loss": GivenSoftmax(), "feedback_depth": 2, "eta": "theory"}, "eta"),
        ({"loss": GivenSoftmax(), "explore": 0.5}, "explore"),
    ],
)
def test_what_cannot_be_learned_from_the_first_labels_is_refused(settings, message):
    with pytest.raises(RankwiseError, match=message):
        rw.OnlineRanker(**settings).partial_fit(*some_lists()[0])


def test_rankers_that_see_all_labels_show_nothing():
    with pytest.raises(RankwiseError, match="feedback_depth"):
        rw.OnlineRanker(GivenSoftmax()).show(np.zeros((2, 1)))


# ---------------------------------------------------------------------------------------------------------- the ledger


def test_the_ledger_says_what_is_known_and_what_is_estimated():
    lists = some_lists(longest=4)
    model = rw.OnlineRanker(**SETTINGS[1]).partial_fit(lists)
    notes = dict(zip(*(model.ledger_.table()[name] for name in ("what", "note")), strict=True))
    assert "ESTIMATE" in notes["surrogate loss of the weights"]
    assert "known of the 60 rounds" in notes["mean nDCG@10"]
    live = rw.OnlineRanker(**SETTINGS[1])
    for X, y in lists:
        shown = live.show(X)
        live.partial_fit(shown.labeled(y[shown.seen]))
    table = live.ledger_.table()
    values, notes = (dict(zip(table["what"], table[name], strict=True)) for name in ("value", "note"))
    for name in ("mistakes", "mean nDCG@10", "cumulative loss of nDCG@10"):
        assert math.isnan(values[name])
        assert notes[name].startswith("not known")


def test_a_regret_bound_is_printed_only_where_it_is_proved():
    lists = some_lists()
    bound, charged = rw.OnlineRanker(**SETTINGS[1]).partial_fit(lists).ledger_.regret_bounds()
    assert bound.applies is None  # that the stream does not depend on what was shown is assumed
    assert [one.met for one in bound.preconditions] == [True, True, True, None]
    assert charged.value > bound.value
    live = rw.OnlineRanker(**SETTINGS[1])
    for X, y in lists:
        shown = live.show(X)
        live.partial_fit(shown.labeled(y[shown.seen]))
    assert live.ledger_.regret_bounds()[0].preconditions[2].met is None  # labels that nobody saw may be larger
    assert live.ledger_.regret_bounds(largest_label=0.5)[0].applies is False
    for wrong, message in (
        (SETTINGS[0], "projection='l2'"),
        (SETTINGS[2], "projection='l2'"),
        (SETTINGS[1] | {"loss": rw.losses.SmoothPrecision(k=1)}, "convex"),
        ({"loss": GivenSoftmax()}, "feedback_depth"),
    ):
        with pytest.raises(RankwiseError, match=message):
            rw.OnlineRanker(**wrong).partial_fit(lists).ledger_.regret_bounds()
    with pytest.raises(RankwiseError, match="random"):
        live.ledger_.bounds(delta=0.05)


def test_a_certificate_has_no_bound_that_needs_all_labels():
    """The bound on averaged gradient descent needs gradients of length G; estimates divide by small probabilities."""
    queries = as_queries(some_lists(40))
    settings = {"loss": PairHinge(per_pair=False), "step": "constant", "averaging": "uniform", "eta": 0.01}
    rows = [
        [row.name for row in rw.OnlineRanker(**settings, **more).fit(queries).certificate(queries).rows]
        for more in ({}, {"feedback_depth": 2})
    ]
    about_all = "Averaged gradient descent", "Online to batch"
    assert {name.split(",")[0] for name in rows[0]} >= set(about_all)
    assert rows[1]
    assert not any(name.startswith(about_all) for name in rows[1])


# -------------------------------------------------------------------------------------------------- one label per list

# The labels of two documents, and their probabilities in two streams.
LABELS = np.array([[2.0, 1.0], [0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
STREAMS = np.array([[0.5, 0.4, 0.0, 0.1], [0.1, 0.0, 0.4, 0.5]])


def mean_ndcg(order):
    """The expected NDCG of an order of the two documents in each stream; a list of zeros counts 0."""
    gains, discount = 2.0**LABELS - 1, np.array([1.0, 1 / math.log2(3)])
    best = np.sort(gains, axis=1)[:, ::-1] @ discount
    return STREAMS @ np.divide(gains[:, order] @ discount, best, out=np.zeros(4), where=best > 0)


def test_each_document_has_the_same_labels_in_both_streams():
    for document in (0, 1):
        for label in (0.0, 1.0, 2.0):
            one, other = STREAMS @ (LABELS[:, document] == label)
            assert one == pytest.approx(other)
    (a, b), (c, d) = mean_ndcg([0, 1]), mean_ndcg([1, 0])
    assert a - c == pytest.approx(0.0647, abs=1e-4)
    assert b - d == pytest.approx(-0.0166, abs=1e-4)


def test_with_one_label_per_list_ndcg_is_lost_on_one_of_two_streams():
    """What is seen is the same in both, so the weights are, to the bit; the two regrets add up to more than d T."""
    X, T, random = np.array([[1.0], [-1.0]]), 500, np.random.default_rng(0)
    models = [rw.OnlineRanker(GivenSoftmax(), eta=0.1, feedback_depth=1, explore=0.2) for _ in STREAMS]
    regret, first = np.zeros(2), 0
    best = np.maximum(mean_ndcg([0, 1]), mean_ndcg([1, 0]))
    for _ in range(T):
        shown = [model.show(X) for model in models]
        assert shown[0].order.tolist() == shown[1].order.tolist()
        document = shown[0].seen[0]
        # the label that is seen has one distribution; the other label, which nobody sees, is drawn given it
        label = random.choice(LABELS[:, document], p=STREAMS[0])
        for model, one, chances in zip(models, shown, STREAMS, strict=True):
            given = chances * (LABELS[:, document] == label)
            whole = LABELS[random.choice(4, p=given / given.sum())]
            assert whole[document] == label
            model.partial_fit(one.labeled(whole[one.seen]))
        regret += best - mean_ndcg(shown[0].order)
        first += shown[0].order[0] == 0
    assert learned(models[0]) == learned(models[1])
    assert regret.sum() >= 0.0165 * T
    assert regret.max() >= 0.0165 * T / 2
    # what single labels decide is learned: the first document has the larger mean label, in both streams
    assert models[0].coef_[0] > 0
    assert first > 0.7 * T


def test_with_one_label_per_list_a_loss_of_single_labels_is_learned():
    """Binary labels that depend on one feature; with k = 1 the weights come close to those of all labels."""
    random = np.random.default_rng(2)
    lists = []
    for _ in range(4_000):
        X = random.normal(size=(5, 2))
        lists.append((X, (random.random(5) < 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))).astype(float)))
    settings = {"loss": GivenSoftmax(), "eta": 0.05, "projection": "l2", "max_norm": 5.0}
    full = rw.OnlineRanker(**settings).partial_fit(lists).coef_
    part = rw.OnlineRanker(**settings, feedback_depth=1, explore=0.3).partial_fit(lists).coef_
    assert full @ part / np.linalg.norm(full) / np.linalg.norm(part) > 0.97


def test_blocks_and_threads_change_no_bit(monkeypatch):
    lists = as_queries(some_lists(200))
    whole = rw.OnlineRanker(**SETTINGS[0], n_jobs=1).fit(lists)
    monkeypatch.setattr(loop, "_BESIDE", 30)
    assert run(rw.OnlineRanker(**SETTINGS[0], n_jobs=2).fit(lists)) == run(whole)


def test_tables_and_empty_lists_are_shown_too():
    pd = pytest.importorskip("pandas")
    X, y = some_lists(1, seed=5)[0]
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model, other = rw.OnlineRanker(**SETTINGS[0]), rw.OnlineRanker(**SETTINGS[0])
    for _ in range(3):
        shown = model.show(table)
        model.partial_fit(shown.labeled(y[shown.seen]))
        other.partial_fit(X, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert learned(model) == learned(other)
    nothing = model.show(table[:0])
    assert nothing.order.tolist() == []
    model.partial_fit(nothing.labeled([]))
    assert model.ledger_.rounds == 4


def test_the_run_in_a_stored_file_can_be_continued():
    model = rw.load(FOLDER / f"format_{FORMAT}_OnlineRanker_feedback.rankwise")
    assert (model.feedback_depth, model.ledger_.config.explore, model.ledger_.feedback.longest) == (2, 0.5, 7)
    queries = judged()
    again = rw.OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=0.5).fit(queries)
    assert model.state_.key[0] == again.state_.key[0]
    np.testing.assert_allclose(model.partial_fit(queries).coef_, again.partial_fit(queries).coef_, rtol=1e-9)
