"""Regularized large-margin rankers: the minimum of programmes written out in full, true gaps, honest choices."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.losses.compute import LossOverLists
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.loss_ranker import ALPHAS, NothingLearnedWarning
from rankwise.rankers.linear.presets import MaxPairRanker, RankSVM, SLAMRanker, StructuredNDCG, SVMMap
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.solvers.batch import newton as newton_steps
from rankwise.solvers.batch.risk import BundleRisk
from tests.oracles.losses import plain
from tests.oracles.losses_structured import ndcg_hinge_costs
from tests.solvers.batch.test_bundle import least_by_slacks, least_in_ball, written_out
from tests.strategies import few

TIGHT = {"tolerance": 1e-7, "scale": "none"}
# one per loss that cutting planes minimize, without a prior
BY_PLANES = [
    RankSVM(),
    RankSVM(per_pair=False),
    SVMMap(),
    SLAMRanker("nDCG@3", prior_coef=None),
    SLAMRanker("AP", weights="ap_003", prior_coef=None),
    MaxPairRanker(prior_coef=None),
    StructuredNDCG("nDCG@2", prior_coef=None),
    StructuredNDCG("nDCG", normalized=False, prior_coef=None),
]
EVERY = [*BY_PLANES, RankSVM(loss="squared"), RankSVM(loss="squared", per_pair=False)]


def called(ranker):
    return " ".join(repr(ranker).split())


over_planes = pytest.mark.parametrize("ranker", BY_PLANES, ids=called)
over_every = pytest.mark.parametrize("ranker", EVERY, ids=called)
QUICK = [RankSVM(), RankSVM(loss="squared"), SLAMRanker("nDCG@3")]
over_some = pytest.mark.parametrize("ranker", QUICK, ids=called)


def small(seed, count=6, documents=4, features=3, signal=1.5):
    """Lists of a few documents; the first holds a document twice, the last ones one label and one document."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * documents, features))
    y = np.clip(np.rint(signal * X[:, 0] - X[:, 1] + rng.normal(size=len(X))), 0, 2)
    X[1] = X[0]
    y[(count - 2) * documents : (count - 1) * documents] = 1
    sizes = [documents] * (count - 1) + [1]
    return Queries.from_arrays(X[: sum(sizes)], y[: sum(sizes)], group=sizes)


def made(ranker, **changes):
    return type(ranker)(**{**ranker.get_params(), **changes})


def terms(ranker, queries, prior_coef):
    """The mean loss at w0 + z as a sum of maxima of planes in z, from the definitions."""
    loss = ranker._loss()
    if isinstance(ranker, StructuredNDCG):
        found = [_ndcg_term(loss, queries.X[rows], queries.y[rows], len(queries)) for rows in _rows(queries)]
        found = [one for one in found if one is not None]
    elif isinstance(ranker, SLAMRanker) and loss.is_ap:  # classes are relevant or not
        found = written_out(loss, queries.X, (queries.y > 0).astype(float), queries.start)
    else:
        found = written_out(loss, queries.X, queries.y, queries.start)
    if isinstance(ranker, RankSVM) and not ranker.per_pair:
        found = [
            term
            for rows in _rows(queries)
            for term in _times(written_out(loss, *_alone(queries, rows)), _pairs(queries.y[rows]) / len(queries))
        ]
    return [(offset + slope @ prior_coef, slope) for offset, slope in found]


def _rows(queries):
    return [np.arange(first, last) for first, last in itertools.pairwise(queries.start)]


def _alone(queries, rows):
    return queries.X[rows], queries.y[rows], np.array([0, len(rows)])


def _times(found, factor):
    return [(factor * offset, factor * slope) for offset, slope in found]


def _pairs(y):
    return sum(a > b for a in y for b in y)


def _ndcg_term(loss, x, y, n):
    flat = ndcg_hinge_costs(loss, np.zeros(len(y)), y)
    if flat is None:
        return None
    units = [ndcg_hinge_costs(loss, unit, y) for unit in np.eye(len(y))]
    planes = [(0.0, np.zeros(x.shape[1]))]
    for places in itertools.permutations(range(len(y))):
        own = list(range(len(y))), list(places)
        offset = flat[0][own].sum()
        lead = [costs[own].sum() - constant - offset for costs, constant in units]
        planes.append((1 + offset, x.T @ lead))
    return np.array([b for b, _ in planes]) / n, np.array([a for _, a in planes]) / n


def risk(ranker, queries, w):
    """The mean loss from its definition, list after list, by their weights."""
    weight = np.ones(len(queries)) if queries.weight is None else queries.weight
    values = [plain(ranker._loss(), queries.X[rows] @ w, queries.y[rows])[0] for rows in _rows(queries)]
    return weight @ np.array(values) / weight.sum()


# ------------------------------------------------------------------------------------------- the minimum


@over_planes
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("prior_coef", [None, (0.5, -0.3, 0.1)])
def test_the_objective_is_the_least_of_a_quadratic_programme(ranker, alpha, prior_coef):
    w0 = np.zeros(3) if prior_coef is None else np.array(prior_coef)
    for seed in range(2):
        queries = small(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingLearnedWarning)
            model = made(ranker, alpha=alpha, prior_coef=prior_coef, **TIGHT).fit(queries)
        least = least_by_slacks(terms(ranker, queries, w0), alpha, 3)
        reached = alpha / 2 * ((model.coef_ - w0) ** 2).sum() + risk(ranker, queries, model.coef_)
        assert model.objective_ == pytest.approx(reached, rel=1e-9)
        assert model.objective_ - model.gap_ <= least + 1e-8, "the bound is true"
        assert model.objective_ == pytest.approx(least, abs=1e-6)
        assert model.gap_ <= 1e-7 * model.objective_ + 1e-14


@over_planes
def test_a_tolerance_is_what_the_objective_is_off_by_at_most(ranker):
    queries = small(9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        rough, fine = (made(ranker, alpha=0.02, scale="none", tolerance=tol).fit(queries) for tol in (0.05, 1e-4))
    least = least_by_slacks(terms(ranker, queries, np.zeros(3)), 0.02, 3)
    assert fine.objective_ == pytest.approx(least, rel=1e-4)
    for model in (rough, fine):
        assert model.objective_ - least <= model.gap_ + 1e-9 <= model.tolerance * model.objective_ + 2e-9
    assert len(rough.history_) <= len(fine.history_)


@over_planes
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0])
def test_in_a_max_norm_the_objective_is_the_least_of_a_linear_programme(ranker, radius):
    queries, w0 = small(3), np.array([0.1, 0.2, 0.0])
    model = made(ranker, penalty="l1", max_norm=radius, prior_coef=w0, **TIGHT).fit(queries)
    assert np.abs(model.coef_ - w0).sum() <= radius * (1 + 1e-9)
    assert model.objective_ == pytest.approx(risk(ranker, queries, model.coef_), rel=1e-9)
    assert model.objective_ == pytest.approx(least_in_ball(terms(ranker, queries, w0), radius, 3), abs=1e-6)
    assert (model.max_norm_, math.isnan(model.alpha_)) == (radius, True)


@pytest.mark.parametrize("per_pair", [True, False])
@pytest.mark.parametrize("alpha", [10.0, 0.1, 1e-3])
@pytest.mark.parametrize("prior_coef", [None, (0.5, -0.3, 0.1)])
def test_the_squared_hinge_reaches_the_minimum_of_a_general_solver(per_pair, alpha, prior_coef):
    queries, w0 = small(4), np.zeros(3) if prior_coef is None else np.array(prior_coef)
    model = RankSVM(loss="squared", per_pair=per_pair, alpha=alpha, prior_coef=prior_coef, **TIGHT).fit(queries)

    def objective(w):
        return alpha / 2 * ((w - w0) ** 2).sum() + risk(model, queries, w)

    found = minimize(objective, w0, options={"gtol": 1e-9})
    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-9)
    assert model.objective_ == pytest.approx(found.fun, abs=1e-6)
    assert model.objective_ - model.gap_ <= found.fun + 1e-9
    assert model.history_.columns == ("step", "objective", "lower bound", "gap", "products")
    in_ball = RankSVM(loss="squared", per_pair=per_pair, penalty="l1", max_norm=1e3, **TIGHT).fit(queries)
    assert in_ball.objective_ <= model.objective_ * (1 + 1e-4)


@over_every
def test_at_the_minimum_no_direction_leads_down(ranker):
    """The objective is convex: what is no lower nearby in any direction is lowest everywhere."""
    queries, rng = small(5), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        model = made(ranker, alpha=0.05, **TIGHT).fit(queries)
    for step in rng.normal(size=(30, 3)) * np.repeat([1e-3, 0.1, 10.0], 10)[:, None]:
        moved = model.coef_ + step
        reached = 0.05 / 2 * (moved**2).sum() + risk(ranker, queries, moved)
        assert reached >= model.objective_ - model.gap_ - 1e-12


# ------------------------------------------------------------------------------------------- weights and lists


@over_every
def test_a_weight_is_how_often_a_list_is_there(ranker):
    queries, query_weight = small(6), np.array([2, 1, 0, 3, 1, 2])
    repeated = queries[np.repeat(np.arange(6), query_weight)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        one = made(ranker, alpha=0.1, **TIGHT).fit(queries.with_weight(query_weight.astype(float)))
        two = made(ranker, alpha=0.1, **TIGHT).fit(repeated)
        scaled = made(ranker, alpha=0.1, **TIGHT).fit(queries.with_weight(8.0 * query_weight))
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)
    assert scaled.objective_ == pytest.approx(one.objective_, rel=1e-12), "it is a mean"
    assert one.objective_ == pytest.approx(0.05 * (one.coef_**2).sum() + risk(one, repeated, one.coef_), rel=1e-9)


@over_every
def test_lists_that_cannot_be_ranked_wrongly_count_in_the_mean_and_teach_nothing(ranker):
    queries = small(7)
    plus = Queries.concat(
        [queries, Queries.from_arrays(np.ones((5, 3)), [1, 1, 1, 1, 0], group=[3, 1, 1])], rename=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        one = made(ranker, alpha=0.3 * 6 / 9, **TIGHT).fit(plus)
        two = made(ranker, alpha=0.3, **TIGHT).fit(queries)
    assert one.objective_ * 9 / 6 == pytest.approx(two.objective_, rel=1e-6)


@over_every
def test_rows_in_any_order_and_float32_are_the_same_problem(ranker):
    queries = small(8)
    order = np.random.default_rng(1).permutation(queries.n_documents)
    scattered = Queries.from_arrays(queries.X[order], queries.y[order], qid=queries.query_of_row[order])
    assert not scattered.is_grouped
    narrow = Queries.from_arrays(queries.X.astype(np.float32), queries.y, group=queries.sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        plain_one, other, single = (made(ranker, alpha=0.1, **TIGHT).fit(q) for q in (queries, scattered, narrow))
    assert other.objective_ == pytest.approx(plain_one.objective_, rel=1e-6)
    assert single.objective_ == pytest.approx(plain_one.objective_, rel=1e-6)


def test_units_of_features_change_no_rank_where_features_are_scaled():
    queries, units = small(10, count=12), np.array([2.0**9, 1.0, 2.0**-6])
    raw = Queries.from_arrays(100 * queries.X, queries.y, group=queries.sizes)
    other = Queries.from_arrays(100 * queries.X * units, queries.y, group=queries.sizes)
    for ranker in QUICK:
        one, two = (made(ranker, alpha=0.1).fit(data) for data in (raw, other))
        np.testing.assert_allclose(two.coef_ * units, one.coef_, rtol=1e-6)
        assert one.objective_ == pytest.approx(two.objective_, rel=1e-9)


# ------------------------------------------------------------------------------------------- choices


def larger(seed, count=16, features=4):
    return small(seed, count, 5, features)


@over_some
def test_the_strength_is_the_best_of_a_plain_loop_over_the_validation_set(ranker):
    train, other, alphas = larger(11), larger(12), (0.1, 10.0, 1e-3, 1.0)
    model = made(ranker, alpha=alphas, **TIGHT).fit(train, validation=other)
    apart = [made(ranker, alpha=one, **TIGHT).fit(train, validation=other) for one in alphas]
    judged = model.path_[model._measure().title]
    np.testing.assert_array_equal(model.path_["alpha"], alphas)
    assert judged[alphas.index(model.alpha_)] == judged.max() == model.score(other)
    own = apart[alphas.index(model.alpha_)]
    assert model.objective_ == pytest.approx(own.objective_, rel=1e-6), "kept planes lead to the same minimum"
    np.testing.assert_allclose([one.score(other) for one in apart], judged, atol=0.05)


@over_some
def test_the_strength_is_the_best_of_a_plain_loop_over_folds(ranker):
    queries, alphas = larger(13), (1.0, 0.01)
    model = made(ranker, alpha=alphas, folds=3, random_state=7, **TIGHT).fit(queries)
    parts = np.array_split(np.random.default_rng(7).permutation(16), 3)
    judged = []
    for part in parts:
        rest = queries[np.setdiff1d(np.arange(16), part)]
        # a ridge that is the center chooses its own alpha, by folds of the same lists
        prior_coef = None if ranker.prior_coef is None else _ridge(ranker, queries, part)
        one = [made(ranker, alpha=s, prior_coef=prior_coef, **TIGHT).fit(rest) for s in alphas]
        judged.append([fitted.score(queries[part]) for fitted in one])
    found = model.path_[model._measure().title]
    np.testing.assert_allclose(found, np.mean(judged, axis=0), atol=0.03)
    assert found[alphas.index(model.alpha_)] == found.max()
    prior_coef = {} if ranker.prior_coef is None else {"prior_coef": "ridge", "folds": 3, "random_state": 7}
    again = made(ranker, alpha=model.alpha_, **prior_coef, **TIGHT).fit(queries)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def _ridge(ranker, queries, part):
    weight = np.ones(len(queries))
    weight[part] = 0
    return RidgeRanker(ranker.measure, scale="none", folds=3, random_state=7).fit(queries.with_weight(weight)).coef_


def test_the_usual_strengths_are_tried_where_none_is_given_in_units_of_pairs_for_their_sum():
    train, other = larger(14), larger(15)
    model = RankSVM().fit(train, validation=other)
    np.testing.assert_array_equal(model.path_["alpha"], ALPHAS)
    weight = np.random.default_rng(0).uniform(0, 2, len(train))
    total = RankSVM(per_pair=False).fit(train.with_weight(weight), validation=other)
    pairs = weight @ [_pairs(train.y[rows]) for rows in _rows(train)] / weight.sum()
    np.testing.assert_allclose(total.path_["alpha"], pairs * np.array(ALPHAS))


def test_balls_are_chosen_like_strengths():
    train, other, radii = larger(16), larger(17), (2.0, 0.25, 1.0)
    model = SVMMap(penalty="l1", max_norm=radii, **TIGHT).fit(train, validation=other)
    assert model.path_.columns == ("max_norm", "AP")
    assert model.path_["AP"][radii.index(model.max_norm_)] == model.path_["AP"].max() == model.score(other)
    own = SVMMap(penalty="l1", max_norm=model.max_norm_, **TIGHT).fit(train)
    assert model.objective_ == pytest.approx(own.objective_, rel=1e-6)


def test_where_nothing_judges_them_the_one_that_strays_least_is_taken():
    queries = small(18)[:1]
    assert RankSVM(alpha=(0.1, 10.0, 1.0)).fit(queries).alpha_ == 10.0
    assert RankSVM(penalty="l1", max_norm=(2.0, 0.5)).fit(queries).max_norm_ == 0.5


@pytest.mark.parametrize("with_validation", [False, True])
def test_of_equals_the_one_that_strays_least_is_taken(with_validation):
    with pytest.warns(NothingLearnedWarning):
        model = SLAMRanker("nDCG@3", prior_coef=None, alpha=(0.1, 10.0, 1.0)).fit(
            hopeless(3), validation=hopeless(4) if with_validation else None
        )
    assert len(set(model.path_["nDCG@3"])) == 1, "weights of 0 are all the same"
    assert model.alpha_ == 10.0


def test_a_tremendous_strength_still_finds_the_direction():
    """However short the weights, it is their direction that ranks: that of the steepest descent from 0."""
    queries = larger(19)
    model = RankSVM(alpha=1e4, scale="none").fit(queries)
    steepest = -LossOverLists.of(model._loss(), queries)(np.zeros(4))[1]
    assert model.coef_ @ steepest > 0.95 * np.linalg.norm(model.coef_) * np.linalg.norm(steepest) > 0


@given(st.integers(0, 10**6))
@few
def test_a_larger_strength_never_gives_longer_weights(seed):
    queries = small(seed, count=8)
    norms = [np.linalg.norm(RankSVM(alpha=s, **TIGHT).fit(queries).coef_) for s in (0.01, 0.1, 1.0)]
    assert norms[0] >= norms[1] * 0.99 >= norms[2] * 0.98


# ------------------------------------------------------------------------------------------- theory


def test_the_strength_of_theory():
    queries = small(20)
    radius = float(np.linalg.norm(queries.X, axis=1).max())
    options = {"alpha": "theory", "row_radius": radius, "norm": 3.0, "scale": "none"}
    for ranker, steep in (
        (RankSVM(), 2),
        (SVMMap(), 4),
        (RankSVM(per_pair=False), 2 * 4),
        (SLAMRanker(prior_coef=None), 2),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingLearnedWarning)
            model = made(ranker, **options).fit(queries)
        assert model.alpha_ == pytest.approx(2 * steep * radius / (3.0 * math.sqrt(6)))
        assert model.path_["alpha"].tolist() == [model.alpha_]
    left_out = np.array([1.0, 1, 1, 1, 0, 0])
    model = RankSVM(**options).fit(queries.with_weight(left_out))
    assert model.alpha_ == pytest.approx(4 * radius / (3.0 * math.sqrt(4)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"row_radius": None}, "alpha='theory' requires row_radius= and norm="),
        ({"norm": -1.0}, "'norm' parameter of"),
        ({"row_radius": 0.1}, "row_radius=0.1 must hold for every query, got a query of radius"),
        ({"loss": "squared"}, "a loss of bounded slope"),
        (
            {"prior_coef": "ridge"},
            "a prior_coef that was not learned from the training queries, got prior_coef='ridge'",
        ),
        ({"scale": "auto"}, "alpha='theory' requires scale='none', because row_radius= is that of raw"),
        ({"alpha": "practice"}, "'alpha' parameter of"),
    ],
)
def test_theory_without_its_conditions_is_refused(changes, sentence):
    options = {"alpha": "theory", "row_radius": 100.0, "norm": 1.0, "scale": "none"}
    with pytest.raises(RankwiseError, match=sentence):
        RankSVM(**(options | changes)).fit(small(21))
    with pytest.raises(RankwiseError, match="alpha='theory' requires equal query weights, got weights that differ"):
        RankSVM(**options).fit(small(21).with_weight(np.arange(6.0)))


# ------------------------------------------------------------------------------------------- nothing learned


def hopeless(seed=0, count=12):
    """One relevant document among ten, by chance: in no direction does it stand above all the others often enough."""
    rng = np.random.default_rng(seed)
    return Queries.from_arrays(rng.normal(size=(10 * count, 3)), np.tile([1.0] + [0.0] * 9, count), group=[10] * count)


@pytest.mark.parametrize("ranker", [SLAMRanker("nDCG@3", prior_coef=None), MaxPairRanker(prior_coef=None)], ids=called)
@pytest.mark.parametrize("level", [{"alpha": 1e-6}, {"penalty": "l1", "max_norm": 1e3}])
def test_weights_of_zero_are_proved_best_and_said_aloud(ranker, level):
    """A linear program, too, finds nothing below the loss of 0: no alpha, ball or margin is to blame."""
    queries = hopeless()
    with pytest.warns(NothingLearnedWarning, match="learned weights of 0, which rank nothing") as caught:
        model = made(ranker, **level, **TIGHT).fit(queries)
    assert "\n" not in str(caught[0].message)
    assert caught[0].filename == __file__, "the line that called fit is blamed"
    assert not model.coef_.any()
    assert model.objective_ == pytest.approx(least_in_ball(terms(ranker, queries, np.zeros(3)), 1e3, 3), abs=1e-8)
    assert model.gap_ <= 1e-8
    assert len(set(model.predict(queries))) == 1


@pytest.mark.parametrize("ranker", [SLAMRanker("nDCG@3"), MaxPairRanker(), StructuredNDCG("nDCG@3")], ids=called)
def test_around_a_ridge_something_is_learned_all_the_same(ranker):
    train, other = hopeless(1), hopeless(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = made(ranker).fit(train, validation=other)
    assert model.coef_.any()
    ridge = RidgeRanker(ranker.measure, refit="train").fit(train, validation=other)
    assert model.score(other) >= ridge.score(other) - 1e-12, "the strongest stays at the ridge"


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.full((4, 2), 0.3), [0, 1, 2, 0]),  # documents that do not differ
        (np.arange(4.0)[:, None], [0, 1, 1, 0]),  # lists that contradict each other
    ],
)
def test_lists_with_nothing_to_learn_are_no_reason_to_complain(X, y):
    queries = Queries.from_arrays(X, y, group=[2, 2])
    ranked_alike = y == [1, 1, 0, 0]  # which is told beforehand; that 0 is the best of all weights is no news
    for ranker in BY_PLANES:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert not made(ranker, alpha=1.0).fit(queries).coef_.any()
        assert ["has nothing to learn" in str(one.message) for one in told] == [True] * ranked_alike


def test_n8_one_label_in_every_list_is_warned_of():
    queries = Queries.from_arrays(np.eye(4), [1, 1, 0, 0], group=[2, 2])
    for ranker in BY_PLANES:
        with pytest.warns(NothingLearnedWarning, match="nothing to learn"):
            assert not made(ranker, alpha=1.0).fit(queries).coef_.any()


def test_lists_that_do_not_count_teach_nothing():
    for ranker in EVERY:
        nothing = small(1).with_weight(np.eye(len(small(1)))[0])[1:]
        with pytest.warns(NothingLearnedWarning, match="a weight above 0"):
            model = made(ranker, alpha=1.0).fit(nothing)
        assert (model.objective_, model.gap_, model.coef_.any()) == (0.0, 0.0, False)


@pytest.mark.parametrize("kind", [None, "vector", "ranker"])
def test_a_tremendous_strength_stays_at_the_center(kind):
    queries = larger(22)
    ridge = RidgeRanker(alpha=1.0).fit(queries)
    prior_coef = {None: "ridge", "vector": ridge.coef_.tolist(), "ranker": ridge}[kind]
    for ranker in QUICK:
        model = made(ranker, prior_coef=prior_coef, alpha=1e9).fit(queries)
        expected = RidgeRanker(ranker.measure).fit(queries).coef_ if kind is None else ridge.coef_
        np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


# ------------------------------------------------------------------------------------------- Ctrl-C


def state(model):
    return (
        model.coef_.tobytes(),
        model.alpha_,
        model.objective_,
        model.gap_,
        str(model.history_.to_dict()),
        str(model.path_.to_dict()),
    )


def stopped_after(monkeypatch, calls):
    """Ctrl-C in the pass over the lists after so many of them."""
    evaluate, made_calls = LossOverLists.__call__, []

    def interrupted(self, w, *, n_jobs=None):
        made_calls.append(1)
        if len(made_calls) == calls + 1:
            raise KeyboardInterrupt
        return evaluate(self, w, n_jobs=n_jobs)

    monkeypatch.setattr(LossOverLists, "__call__", interrupted)


@pytest.mark.parametrize("calls", [2, 3, 6])
def test_ctrl_c_keeps_the_best_weights_so_far(calls, monkeypatch):
    queries = larger(23)
    # the first call is at the center; a search of so many calls more has the same rounds
    whole = RankSVM(alpha=1e-3, max_calls=calls - 1, **TIGHT).fit(queries)
    model = RankSVM(alpha=1e-3, **TIGHT)
    stopped_after(monkeypatch, calls)
    with pytest.raises(KeyboardInterrupt, match="holds what it had learned"):
        model.fit(queries)
    assert state(model) == state(whole)


def test_ctrl_c_keeps_the_best_strength_so_far(monkeypatch):
    train, other = larger(24), larger(25)
    solve, solved = BundleRisk.solve, []

    def interrupted(self, level, *rest):
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(level)
        return solve(self, level, *rest)

    two = RankSVM(alpha=(10.0, 0.1), **TIGHT).fit(train, validation=other)
    monkeypatch.setattr(BundleRisk, "solve", interrupted)
    model = RankSVM(alpha=(1e-3, 0.1, 10.0), **TIGHT)
    with pytest.raises(KeyboardInterrupt):
        model.fit(train, validation=other)
    assert solved == [10.0, 0.1], "from the strongest on"
    assert state(model)[:5] == state(two)[:5]
    assert np.isnan(model.path_["nDCG@10"][0])
    np.testing.assert_array_equal(model.path_["nDCG@10"][1:], two.path_["nDCG@10"][::-1])


def test_ctrl_c_before_a_first_round_or_while_folds_choose_leaves_the_ranker_as_it_was(monkeypatch):
    queries = larger(26)
    model = RankSVM(alpha=0.1).fit(queries)
    before = state(model)
    for alpha, calls in ((1.0, 0), ((1.0, 0.1), 8)):
        with monkeypatch.context() as patch:
            stopped_after(patch, calls)
            with pytest.raises(KeyboardInterrupt):
                model.set_params(alpha=alpha).fit(larger(27))
        assert state(model) == before


def test_ctrl_c_keeps_newton_steps(monkeypatch):
    queries = larger(28)
    whole = RankSVM(loss="squared", alpha=1e-4, max_calls=2, **TIGHT).fit(queries)
    model = RankSVM(loss="squared", alpha=1e-4, **TIGHT)
    search, searched = newton_steps._line_search, []

    def interrupted(*arguments):
        if len(searched) == 2:
            raise KeyboardInterrupt
        searched.append(1)
        return search(*arguments)

    monkeypatch.setattr(newton_steps, "_line_search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(queries)
    assert state(model) == state(whole)


# ------------------------------------------------------------------------------------------- records and files


@over_some
def test_the_history_tells_of_every_round_and_ends_at_what_was_reached(ranker):
    model = made(ranker, alpha=1e-3, **TIGHT).fit(larger(29))
    history = model.history_
    assert history["objective"][-1] == model.objective_
    assert history["gap"][-1] == model.gap_
    np.testing.assert_allclose(history["objective"] - history["lower bound"], history["gap"], atol=1e-12)
    assert (np.diff(history["objective"]) <= 1e-12).all()
    assert (np.diff(history[history.columns[0]]) == 1).all()


def test_the_history_draws_itself():
    pytest.importorskip("matplotlib")
    axes = RankSVM(alpha=1e-3).fit(larger(30)).history_.plot().axes[0]
    assert {line.get_label() for line in axes.lines} == {"objective", "lower bound"}


@over_every
def test_a_saved_model_keeps_its_records(ranker, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        model = made(ranker, alpha=(1.0, 0.1), **TIGHT).fit(larger(31), validation=larger(32))
    model.save(tmp_path / "model.rankwise")
    assert state(rw.load(tmp_path / "model.rankwise")) == state(model)


@over_some
def test_the_number_of_threads_changes_no_bit_of_the_records(ranker, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    monkeypatch.setattr("rankwise._kernels.parallel.CHUNK", 16)
    train = larger(33)
    one, two = (made(ranker, alpha=(1.0, 0.01), folds=2, n_jobs=jobs).fit(train) for jobs in (1, 2))
    assert state(one) == state(two)


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("ranker", "sentence"),
    [
        (RankSVM(alpha=0.0), "'alpha' parameter of"),
        (RankSVM(alpha=[]), "'alpha' parameter of"),
        (RankSVM(alpha=(1.0, math.inf)), "'alpha' parameter of"),
        (RankSVM(penalty="l1", max_norm=-1.0), "'max_norm' parameter of"),
        (RankSVM(penalty="l1", max_norm=1.0, alpha=1.0), "'max_norm' parameter of"),
        (RankSVM(loss="logistic"), "'loss' parameter of"),
        (RankSVM(tolerance=0.0), "'tolerance' parameter of"),
        (RankSVM(max_calls=0), "'max_calls' parameter of"),
        (
            RankSVM(prior_coef="zero", alpha=1.0),
            "'prior_coef' parameter of",
        ),
        (RankSVM(prior_coef=RidgeRanker(), alpha=1.0), "'prior_coef' parameter of"),
        (RankSVM(prior_coef=[1.0], alpha=1.0), "prior_coef must have one weight per feature, 3, got 1 weights"),
        (RankSVM(prior_coef=[1.0, math.nan, 0], alpha=1.0), "'prior_coef' parameter of"),
        (RankSVM(scale="log"), "'scale' parameter of"),
        (RankSVM(folds=1), "'folds' parameter of"),
        (SLAMRanker("ERR@10"), "SLAM bounds nDCG, nDCG@k and AP"),
        (SLAMRanker("AP", weights="ndcg_003"), "with the weights 'ndcg_003'"),
        (SLAMRanker(margin=0.0), "'margin' parameter of"),
    ],
    ids=called,
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(ranker, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        ranker.fit(small(34))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_a_center_for_other_features_is_refused():
    with pytest.raises(DataError, match="3, got 4 weights"):
        RankSVM(prior_coef=np.ones(4), alpha=1.0).fit(small(35))


# ------------------------------------------------------------------------------------------- real lists


def test_the_weights_of_svm_rank_are_found_again(data_folder):
    """Its scores of a test part of OHSUMED, made by C = 0.01, are those of the sum over pairs with lambda = 100."""
    fold = list(rw.io.read_folds(data_folder / "ohsumed"))[4]
    theirs = np.loadtxt(data_folder / "letor-evaluator" / "ohsumed-Fold5-test.scores.gz")
    model = RankSVM(per_pair=False, alpha=100.0, scale="none", tolerance=1e-5).fit(fold.train)
    ours = model.predict(fold.test)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999
    slope = np.polyfit(theirs, ours, 1)[0]
    assert slope == pytest.approx(1.0, abs=0.05), "the same alpha, not only the same direction"


@pytest.mark.parametrize(
    "ranker", [kind(prior_coef=None) for kind in (SLAMRanker, MaxPairRanker)] + [SLAMRanker("AP", prior_coef=None)]
)
def test_on_real_lists_weights_of_zero_are_best_for_losses_of_the_worst_documents(ranker, data_folder):
    train = next(iter(rw.io.read_folds(data_folder / "ohsumed"))).train
    with pytest.warns(NothingLearnedWarning):
        model = made(ranker, alpha=1e-7, tolerance=1e-6).fit(train)
    assert not model.coef_.any()
    assert model.gap_ < 1e-10
