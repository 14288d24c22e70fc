"""Boosted trees on a smoothed loss whose width shrinks: which width when, and what does not change."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise import losses
from rankwise._kernels import parallel
from rankwise.errors import NothingLearnedWarning, RankwiseError
from rankwise.losses.compute import PreparedLists
from rankwise.rankers._record import from_json_value
from rankwise.rankers.boosting import boosted
from rankwise.rankers.boosting.annealed import AnnealedDerivatives, variance_within
from rankwise.rankers.boosting.growing import joined
from rankwise.rankers.boosting.objectives import Derivatives

SIGMAS = (4.0, 1.0, 0.25, 0.0625)
START = (1.0, 0.0, 0.0, 0.0)
ENGINES: dict[str, dict] = {
    "symmetric": {"depth": 3, "n_jobs": 1},
    "lightgbm": {"engine": "lightgbm", "smallest_leaf": 3, "n_jobs": 1},
}
BY_ENGINE = pytest.mark.parametrize("engine", ENGINES)


def queries(count=40, seed=0, signs=False):
    """Judged lists whose labels depend on a product; ``signs``: of even length, with as many 1 as -1 in feature 0."""
    rng = np.random.default_rng(seed)
    sizes = 2 * rng.integers(1, 7, count)
    X = rng.normal(size=(sizes.sum(), 4))
    if signs:
        X[:, 0] = np.where(np.arange(len(X)) % 2, -1.0, 1.0)
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))), 0, 3)
    return rw.Queries.from_arrays(X, y, group=sizes)


def plain_variance(lists, scores, counted=None):
    """The mean over documents of the squared distance from the mean of their query."""
    squares = []
    for number in range(len(lists)):
        if counted is None or counted[number]:
            own = scores[lists.rows_of(number)]
            squares += ((own - own.mean()) ** 2).tolist()
    return float(np.mean(squares))


@pytest.fixture
def seen(monkeypatch):
    """Everything that trees were grown on: (loss, scores, number of trees before, gradient), in its order."""
    found, at = [], AnnealedDerivatives.at

    def recorded(self, scores, iteration, n_jobs=None):
        gradient, diagonal = at(self, scores, iteration, n_jobs)
        found.append((self.lists.loss, scores.copy(), iteration, gradient.copy()))
        return gradient, diagonal

    monkeypatch.setattr(AnnealedDerivatives, "at", recorded)
    return found


# ------------------------------------------------------------------------------------------------- which width when


@BY_ENGINE
@pytest.mark.parametrize("loss", [losses.SmoothNDCG(k=5), losses.SmoothAP(), losses.SoftRankNDCG()], ids=repr)
def test_every_tree_is_grown_on_the_gradient_of_the_loss_at_the_stated_width(engine, loss, seen):
    lists = queries(12)
    options = {"trees": 8, "seeds": 1, "patience": None, **ENGINES[engine]}
    rw.BoostedRanker(loss=loss, sigmas=SIGMAS, start=START, **options).fit(lists)
    grown = seen[-8:]  # what comes before asks whether the start is stationary
    assert [before for _, _, before, _ in grown] == list(range(8))
    width, rows = np.inf, range(0, lists.n_documents, 11)
    for used, scores, before, gradient in grown:
        if before % 2 == 0:
            stated = SIGMAS[before // 2] * plain_variance(lists, scores)
            width = min(width, stated if loss.squared_width else np.sqrt(stated))
        assert used.sigma == pytest.approx(width, rel=1e-12)

        def total(moved, sigma=width):
            each = (lists.rows_of(number) for number in range(len(lists)))
            return sum(loss.at_sigma(sigma)(moved[own], lists.y[own])[0] for own in each)

        for row in rows:
            step = 1e-5 * np.eye(len(scores))[row]
            expected = (total(scores + step) - total(scores - step)) / 2e-5
            assert gradient[row] == pytest.approx(expected, rel=1e-3, abs=1e-5)


@given(st.integers(0, 10_000), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.integers(1, 12))
def test_widths_never_rise_and_the_last_is_reached(seed, sigmas, trees):
    rng = np.random.default_rng(seed)
    lists, sigmas = queries(5, seed), sorted(sigmas, reverse=True)
    made = AnnealedDerivatives.over(Derivatives.of(losses.SmoothNDCG(), joined([lists])), sigmas, trees)
    assert made.begins[0] == 0 <= made.last_change < trees
    widths = []
    for before in range(trees):
        scores = rng.normal(size=lists.n_documents) * 10 ** rng.uniform(-3, 3)
        made = made.before_tree(scores, before)
        widths.append(made.lists.loss.sigma)
        if before in made.begins:
            stated = sigmas[len(made.begins) - 1 - made.begins[::-1].index(before)] * plain_variance(lists, scores)
            assert widths[-1] == pytest.approx(min([stated, *widths[:-1]]), rel=1e-9)
        else:
            assert widths[-1] == widths[-2]
    assert widths == sorted(widths, reverse=True)


def test_the_variance_counts_what_is_learned_from():
    lists = queries(9)
    scores = np.random.default_rng(1).normal(size=lists.n_documents) + 1e3 * np.repeat(np.arange(9), lists.sizes)
    prepared = PreparedLists.of(losses.SmoothAP(), lists.y, lists.start)
    assert variance_within(prepared, scores, None) == pytest.approx(plain_variance(lists, scores), rel=1e-9)
    counted = np.arange(9) % 3 > 0
    weight = 4.0 * np.repeat(counted, lists.sizes)
    expected = plain_variance(lists, scores, counted)
    assert variance_within(prepared, scores, weight) == pytest.approx(expected, rel=1e-9)
    order = np.random.default_rng(2).permutation(lists.n_documents)
    scattered = PreparedLists.of(losses.SmoothAP(), lists.y[np.argsort(order)], lists.start, order)
    moved, moved_weight = np.empty_like(scores), np.empty_like(weight)
    moved[order], moved_weight[order] = scores, weight
    assert variance_within(scattered, moved, moved_weight) == variance_within(prepared, scores, weight)


@pytest.mark.parametrize("size", [1, 3, 7])
def test_equal_scores_have_no_variance_at_all_and_keep_the_width(size):
    lists = rw.Queries.from_arrays(np.zeros((2 * size, 1)), np.arange(2.0 * size), group=[size, size])
    made = AnnealedDerivatives.over(Derivatives.of(losses.SoftRankNDCG(sigma=0.3), lists), SIGMAS, 4)
    scores = np.repeat([0.1, 1e9 / 3], size)
    assert variance_within(made.lists, scores, None) == 0.0
    assert variance_within(made.lists, scores, np.zeros(2 * size)) == 0.0
    for before in range(4):
        assert made.before_tree(scores, before) is made


# --------------------------------------------------------------------------------------------- what does not change


@BY_ENGINE
@pytest.mark.parametrize(
    "options",
    [{"refit": "average", "seeds": 2}, {"refit": "all", "seeds": 2}, {"refit": "train"}, {"patience": None}],
    ids=repr,
)
def test_one_width_that_is_the_sigma_of_the_loss_changes_no_bit(engine, options):
    """Scores of 1 and -1 have a variance of exactly 1 without any part of the queries."""
    lists, others = queries(30, signs=True), queries(10, seed=1, signs=True)
    loss, given = losses.SmoothNDCG(k=5, sigma=0.5), {"trees": 20, "folds": 3, **ENGINES[engine], **options}
    one, other = (
        rw.BoostedRanker("nDCG@5", loss=loss, start=START, sigmas=sigmas, **given).fit(lists, validation=others)
        for sigmas in (None, (0.5,))
    )
    assert one.trees_ == other.trees_ > 0
    np.testing.assert_array_equal(one.predict(lists), other.predict(lists))
    np.testing.assert_array_equal(one.history_["validation"], other.history_["validation"])


def test_the_sigma_of_the_loss_is_not_used_where_scores_vary():
    options = {"start": START, "sigmas": SIGMAS, "trees": 20, "patience": None, "depth": 3, "n_jobs": 1}
    narrow, wide = (
        rw.BoostedRanker(loss=losses.SmoothNDCG(sigma=sigma), **options).fit(queries()) for sigma in (1e-9, 1.0)
    )
    np.testing.assert_array_equal(narrow.predict(queries()), wide.predict(queries()))


def test_no_bit_depends_on_threads(monkeypatch):
    monkeypatch.setattr(parallel, "_FEW_VALUES", 0)
    options = {"loss": losses.SmoothNDCG(), "sigmas": SIGMAS, "start": "ridge", "trees": 20, "depth": 3, "seeds": 2}
    lists = queries(60)
    first, *others = (rw.BoostedRanker(**options, n_jobs=jobs).fit(lists) for jobs in (1, 2, 4))
    assert first.trees_ > 0
    for other in others:
        np.testing.assert_array_equal(first.predict(lists), other.predict(lists))


# ------------------------------------------------------------------------------------------- the search, and no search


@BY_ENGINE
def test_the_search_does_not_end_before_the_last_width(engine):
    options = {"loss": losses.SmoothNDCG(), "start": "ridge", "trees": 80, "patience": 10, **ENGINES[engine]}
    without = rw.BoostedRanker(**options).fit(queries())
    annealed = rw.BoostedRanker(**options, sigmas=SIGMAS).fit(queries())
    trees = annealed.history_["trees"]
    assert without.history_["trees"][-1] < 60 < trees[-1]
    assert trees[-1] == 80 or trees[-1] - max(annealed.trees_, 60) >= 10
    assert annealed.trees_ == trees[np.argmax(annealed.history_["mean of three"])]


def test_trees_that_nothing_can_judge_have_all_widths(monkeypatch, seen):
    monkeypatch.setattr(boosted, "UNJUDGED", 8)
    one = queries(8)
    one = rw.Queries.from_arrays(one.X, one.y, group=[one.n_documents])
    model = rw.BoostedRanker(loss=losses.SmoothNDCG(), sigmas=SIGMAS, start=START, depth=2, n_jobs=1).fit(one)
    assert model.trees_ == 8
    widths = [loss.sigma for loss, *_ in seen[-8:]]
    assert len(set(widths)) == 4
    assert widths == sorted(widths, reverse=True)


# ------------------------------------------------------------------------------------------------- degenerate lists


@BY_ENGINE
@pytest.mark.parametrize("kind", ["one document", "equal labels", "lists of one document", "constant features"])
def test_where_nothing_can_be_learned_the_order_is_that_of_the_start(engine, kind):
    lists = queries(20)
    X, y, group = lists.X, lists.y, lists.sizes
    if kind == "one document":
        X, y, group = X[:1], y[:1], [1]
    elif kind == "equal labels":
        y = np.ones(len(y))
    elif kind == "lists of one document":
        group = [1] * len(y)
    else:
        X, y = np.ones_like(X), np.ones(len(y))
    options = {"loss": losses.SmoothNDCG(), "sigmas": SIGMAS, "start": START, "trees": 8, "folds": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        model = rw.BoostedRanker(**options, **ENGINES[engine]).fit(X, y, group=group)
    np.testing.assert_allclose(model.predict(lists.X), lists.X[:, 0], rtol=0, atol=1e-12)


def test_equal_scores_ask_for_a_start_unless_the_loss_is_not_stationary_there():
    options = {"sigmas": SIGMAS, "trees": 40, "depth": 3, "n_jobs": 1, "learning_rate": 0.3}
    with pytest.raises(RankwiseError, match=r"gradient of 0 at equal scores.*start='ridge'"):
        rw.BoostedRanker(loss=losses.SmoothNDCG(), **options).fit(queries())
    with pytest.raises(RankwiseError, match=r"gradient of 0 at equal scores.*start='ridge'"):
        rw.BoostedRanker(loss=losses.SmoothNDCG(), start=np.zeros(4), **options).fit(queries())
    train, test = queries(100), queries(60, seed=1)
    model = rw.BoostedRanker(loss=losses.SoftRankNDCG(), **options).fit(train)
    assert model.score(test) > rw.RidgeRanker().fit(train).score(test)


# --------------------------------------------------------------------------------------------- files and parameters


@BY_ENGINE
def test_a_saved_ranker_scores_the_same_and_keeps_its_widths(engine, tmp_path):
    lists = queries()
    options = {"loss": losses.SmoothNDCG(), "sigmas": SIGMAS, "start": "ridge", "trees": 12, **ENGINES[engine]}
    model = rw.BoostedRanker(**options).fit(lists)
    assert model.trees_ > 0
    model.save(tmp_path / "a.rankwise")
    again = rw.load(tmp_path / "a.rankwise")
    np.testing.assert_array_equal(again.predict(lists), model.predict(lists))
    assert tuple(again.sigmas) == SIGMAS
    np.testing.assert_array_equal(again.fit(lists).predict(lists), model.predict(lists))


def test_files_of_before_have_no_widths():
    now = rw.BoostedRanker(trees=5)
    before = {name: value for name, value in now.get_params().items() if name != "sigmas"}
    assert from_json_value({"ranker": "BoostedRanker", "parameters": before}).get_params() == now.get_params()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": None}, "'sigmas' parameter of BoostedRanker must be None unless loss= is a smoothed measure"),
        ({"loss": losses.PairLogistic()}, "'sigmas' parameter .* must be None unless loss= is a smoothed measure"),
        ({"loss": None, "engine": "catboost"}, "'sigmas' parameter .* must be None unless loss= is a smoothed measure"),
        ({"engine": "catboost"}, "'loss' parameter .* YetiRank is a loss of its own"),
        ({"sigmas": (1.0, 4.0)}, "'sigmas' parameter of BoostedRanker must be a decreasing sequence"),
        ({"sigmas": ()}, "'sigmas' parameter"),
        ({"sigmas": (1.0, 0.0)}, "'sigmas' parameter"),
        ({"sigmas": (np.inf, 1.0)}, "'sigmas' parameter"),
        ({"sigmas": 4.0}, "'sigmas' parameter"),
        ({"sigmas": "4"}, "'sigmas' parameter"),
    ],
)
def test_widths_that_make_no_sense_are_refused_before_the_data_are_looked_at(given, message):
    options = {"loss": losses.SmoothNDCG(), "sigmas": SIGMAS, "start": "ridge", **given}
    with pytest.raises(RankwiseError, match=message):
        rw.BoostedRanker(**options).fit("no queries")
