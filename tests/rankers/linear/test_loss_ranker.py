"""LossRanker: any convex loss in batch, with both penalties; presets are the same problems under their own names."""

import importlib.util
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.base import clone

import rankwise as rw
from rankwise import LossRanker, losses
from rankwise.errors import NothingLearnedWarning, RankwiseError
from rankwise.guarantees.bounds.uniform import l1_erm, linf_erm
from rankwise.losses._base import registered
from rankwise.losses.compute import LossOverLists
from tests.rankers.linear.test_regularized import risk, small, terms
from tests.solvers.batch.test_bundle import least_by_slacks

TIGHT = {"scale": "none", "tolerance": 1e-6, "max_calls": 5000}
CONVEX = [loss for kind in registered().values() if kind.convex for loss in kind.examples()]
# the loss without a margin has its minimum at w = 0, which ranks nothing
LEARNABLE = [loss for loss in CONVEX if getattr(loss, "margin", 1.0) > 0]


@pytest.mark.parametrize("loss", LEARNABLE, ids=repr)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_no_weights_that_another_solver_finds_are_below_what_the_gap_allows(loss, penalty):
    queries = small(3)
    model = LossRanker(loss, alpha=0.05, penalty=penalty, **TIGHT).fit(queries)

    def objective(w):
        penalized = 0.025 * w @ w if penalty == "l2" else 0.05 * np.abs(w).sum()
        return penalized + risk(model, queries, w)

    assert objective(model.coef_) == pytest.approx(model.objective_, rel=1e-9)
    assert 0 <= model.gap_ <= 1e-5 * (1 + model.objective_)
    rng = np.random.default_rng(0)
    tried = [
        np.zeros(3),
        *(model.coef_ + scale * rng.normal(size=3) for scale in 10.0 ** -np.arange(6) for _ in range(8)),
    ]
    assert min(map(objective, tried)) >= model.objective_ - model.gap_ - 1e-9


@pytest.mark.parametrize("alpha", [0.3, 0.03, 0.003])
@pytest.mark.parametrize("prior_coef", [None, (0.5, -0.3, 0.1)])
@pytest.mark.parametrize("preset", [rw.RankSVM(), rw.SLAMRanker("nDCG@3"), rw.MaxPairRanker(), rw.SVMMap()], ids=repr)
def test_the_l1_objective_is_the_least_of_a_linear_programme(preset, alpha, prior_coef):
    queries, w0 = small(5), np.zeros(3) if prior_coef is None else np.array(prior_coef)
    model = clone(preset).set_params(penalty="l1", alpha=alpha, prior_coef=prior_coef, **TIGHT).fit(queries)
    assert model.objective_ == pytest.approx(least_with_l1(terms(preset, queries, w0), alpha, 3), abs=1e-6)
    assert model.gap_ <= 1e-6 * (1 + model.objective_)


def least_with_l1(found, alpha, d):
    """min over z of alpha norm1(z) + sum over terms of max over planes (b + a'z), as one linear program."""
    count = len(found)
    rows, limits = [], []
    for number, (offset, slope) in enumerate(found):
        for b, a in zip(np.atleast_1d(offset), np.atleast_2d(slope), strict=True):
            own = np.zeros(count)
            own[number] = -1.0
            rows.append(np.concatenate([a, -a, own]))
            limits.append(-b)
    cost = np.concatenate([np.full(2 * d, alpha), np.ones(count)])
    solved = linprog(cost, A_ub=rows, b_ub=limits, bounds=[(0, None)] * (2 * d) + [(None, None)] * count)
    assert solved.success
    return solved.fun


def test_a_large_l1_penalty_stays_at_the_prior_and_a_smaller_one_moves_few_weights():
    queries = rw.make_lists(60, documents=8, features=20, random_state=4)
    prior = np.linspace(-1, 1, 20)
    still = LossRanker(alpha=1e3, penalty="l1", prior_coef=prior).fit(queries)
    np.testing.assert_allclose(still.coef_, prior, atol=1e-12)
    sparse, dense = (LossRanker(alpha=0.1, penalty=one, tolerance=1e-5).fit(queries) for one in ("l1", "l2"))
    assert 0 < np.count_nonzero(np.abs(sparse.coef_) > 1e-9) < np.count_nonzero(np.abs(dense.coef_) > 1e-9)


@pytest.mark.parametrize(
    ("preset", "loss"),
    [
        (rw.RankSVM(per_pair=False), losses.PairHinge(per_pair=False)),
        (rw.RankSVM(loss="squared"), losses.PairHinge(squared=True)),
        (rw.SLAMRanker("nDCG@3", prior_coef=None), losses.SLAM(weights="ndcg_tight_sym", k=3)),
        (rw.MaxPairRanker(prior_coef=None), losses.MaxPair()),
        (rw.SVMMap(), losses.SVMMapHinge()),
        (rw.StructuredNDCG("nDCG@2", prior_coef=None), losses.NDCGHinge(k=2, normalized=True)),
    ],
    ids=lambda one: repr(one),
)
def test_a_preset_is_the_loss_ranker_of_its_loss_to_the_bit(preset, loss):
    queries = small(6)
    own = clone(preset).set_params(alpha=0.1).fit(queries)
    general = LossRanker(loss, measure=preset.measure, alpha=0.1).fit(queries)
    np.testing.assert_array_equal(own.coef_, general.coef_)
    assert (own.objective_, own.gap_) == (general.objective_, general.gap_)


def test_alphas_are_selected_on_the_validation_set():
    train, held = small(7), small(8)
    alphas = (1.0, 0.1, 0.01, 0.001)
    model = LossRanker(losses.ListNet(), measure="nDCG@3", alpha=alphas).fit(train, validation=held)
    alone = [LossRanker(losses.ListNet(), measure="nDCG@3", alpha=one).fit(train).score(held) for one in alphas]
    assert model.path_["nDCG@3"] == pytest.approx(alone, abs=1e-6)
    assert alone[alphas.index(model.alpha_)] == max(alone)


def test_the_certificate_of_an_l1_penalty_claims_nothing_that_needs_a_squared_norm():
    queries = small(9)
    with_l2, with_l1 = (LossRanker(alpha=0.1, penalty=one, norm=1.0).fit(queries) for one in ("l2", "l1"))
    named = [row.bounds for row in with_l2.certificate(queries).rows]
    assert any("expected excess" in one for one in named)
    assert not any("expected excess" in row.bounds for row in with_l1.certificate(queries).rows)


IN_BALLS = [losses.ListNet(), losses.PairLogistic(), losses.ListMLE(), losses.SLAM(), losses.PairHinge(squared=True)]


def least_in_l2_ball(loss, queries, radius):
    """The smallest mean loss over norm2(w) <= radius, by SciPy's SLSQP from several starts."""
    lists, d = LossOverLists.of(loss, queries), queries.n_features
    inside = {
        "type": "ineq",
        "fun": lambda w: radius**2 - w @ w,
        "jac": lambda w: -2 * w,
    }

    def mean(w):
        value, slope = lists(w)
        return value / len(queries), slope / len(queries)

    rng, found = np.random.default_rng(0), []
    for start in (np.zeros(d), *(radius * one / np.linalg.norm(one) for one in rng.normal(size=(3, d)))):
        exact = {"ftol": 1e-14, "maxiter": 500}
        end = minimize(mean, start, jac=True, method="SLSQP", constraints=inside, options=exact)
        w = end.x * min(1.0, radius / max(np.linalg.norm(end.x), 1e-300))
        found.append(mean(w)[0])
    return min(found)


@pytest.mark.parametrize("seed", range(30))
def test_in_an_l2_ball_the_objective_is_within_its_gap_of_the_constrained_optimum(seed):
    rng = np.random.default_rng(seed)
    n, m, d = (int(rng.integers(low, high)) for low, high in ((3, 15), (2, 9), (1, 8)))
    X, labels = rng.normal(size=(n * m, d)), rng.integers(0, 4, n * m).astype(float)
    queries = rw.Queries.from_arrays(X, labels, group=[m] * n)
    loss, radius = IN_BALLS[seed % len(IN_BALLS)], float(rng.choice([0.01, 0.3, 2.0, 30.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        model = LossRanker(loss, max_norm=radius, scale="none", tolerance=1e-4).fit(queries)
    assert np.linalg.norm(model.coef_) <= radius * (1 + 1e-9)
    assert model.objective_ == pytest.approx(LossOverLists.of(loss, queries)(model.coef_)[0] / n, rel=1e-9, abs=1e-12)
    assert model.gap_ <= 1e-4 * model.objective_ + 1e-12
    assert model.objective_ - model.gap_ - 1e-9 <= least_in_l2_ball(loss, queries, radius)
    assert model.objective_ <= least_in_l2_ball(loss, queries, radius) + model.gap_ + 1e-9
    assert (model.max_norm_, np.isnan(model.alpha_)) == (radius, True)


def test_of_several_balls_the_best_is_taken_and_saved(tmp_path):
    train, held = small(7), small(8)
    radii = (0.1, 1.0, 10.0)
    model = LossRanker(losses.ListNet(), measure="nDCG@3", max_norm=radii).fit(train, validation=held)
    assert model.path_["nDCG@3"][radii.index(model.max_norm_)] == model.path_["nDCG@3"].max() == model.score(held)
    model.save(tmp_path / "ball.rankwise")
    copy = rw.load(tmp_path / "ball.rankwise")
    assert (copy.max_norm_, copy.gap_, copy.coef_.tobytes()) == (model.max_norm_, model.gap_, model.coef_.tobytes())


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_certificate_of_a_ball_has_the_excess_of_its_minimizer(penalty):
    queries = small(9)
    model = LossRanker(losses.ListNet(), max_norm=0.5, penalty=penalty, scale="none", row_radius=20.0).fit(queries)
    rows = [row for row in model.certificate(queries).rows if "over the best weights of" in row.bounds]
    (row,) = rows
    assert row.bounds == f"excess of the ListNet loss over the best weights of {penalty} norm 0.5"
    terms = row.terms
    low, high = losses.ListNet().range(0.5 * 20.0, int(terms["m"]), (0.0, float(queries.labels().max())))
    shared = {"G": 2.0, "m": int(terms["m"]), "n": len(queries), "b": high - low, "delta": 0.05}
    if penalty == "l1":
        expected = l1_erm(W1=0.5, entry=20.0, d=queries.n_features, **shared)
    else:
        expected = linf_erm(W=0.5, radius=20.0, **shared)
    assert row.value == pytest.approx(expected.value + model.gap_)
    assert terms["gap"] == pytest.approx(model.gap_)
    several = LossRanker(losses.ListNet(), max_norm=(0.5, 1.0), penalty=penalty, scale="none").fit(queries)
    (chosen,) = [row for row in several.certificate(queries).rows if "over the best weights of" in row.bounds]
    assert any(one.met is False and "fixed before the data" in one.sentence for one in chosen.preconditions)
    moved = LossRanker(losses.ListNet(), max_norm=0.5, penalty=penalty, prior_coef="ridge").fit(queries)
    assert not any("over the best weights of" in row.bounds for row in moved.certificate(queries).rows)
    penalized = LossRanker(losses.ListNet(), alpha=0.1, penalty=penalty).fit(queries)
    assert not any("over the best weights of" in row.bounds for row in penalized.certificate(queries).rows)


@pytest.mark.parametrize(
    ("ranker", "sentence"),
    [
        (LossRanker(losses.SmoothNDCG(sigma=1.0)), "'loss' parameter of"),
        (LossRanker("hinge"), "'loss' parameter of"),
        (LossRanker(penalty="l0"), "'penalty' parameter of"),
        (LossRanker(max_norm=1.0, alpha=1.0), "'max_norm' parameter of"),
        (LossRanker(max_norm=1.0, alpha=1.0, penalty="l1"), "'max_norm' parameter of"),
        (
            LossRanker(alpha="theory", penalty="l1", row_radius=100.0, norm=1.0, scale="none"),
            "alpha='theory' requires penalty='l2', got penalty='l1'",
        ),
    ],
    ids=lambda one: repr(one)[:40],
)
def test_what_it_cannot_mean_is_an_error_that_names_both_sides(ranker, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        ranker.fit(small(10))


def test_the_loss_file_of_a_user_works_in_batch_and_online_without_another_line(tmp_path):
    """The file is the one that CONTRIBUTING shows; the package's own logistic pair loss is the oracle."""
    pages = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    file = tmp_path / "my_loss.py"
    file.write_text(
        next(block for block in pages.split("```python\n")[1:] if "MyPairLogistic" in block).split("```")[0]
    )
    spec = importlib.util.spec_from_file_location("my_loss", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own, known = module.MyPairLogistic(), losses.PairLogistic()
    assert "MyPairLogistic" not in registered()
    queries = small(12)
    batch, reference = (LossRanker(loss, alpha=0.01, **TIGHT).fit(queries) for loss in (own, known))
    assert batch.objective_ == pytest.approx(reference.objective_, rel=1e-6)
    np.testing.assert_allclose(batch.coef_, reference.coef_, rtol=1e-3, atol=1e-4)
    online, reference = (rw.OnlineRanker(loss).fit(queries) for loss in (own, known))
    np.testing.assert_allclose(online.coef_, reference.coef_, rtol=1e-9, atol=1e-12)
    batch.save(tmp_path / "model.rankwise")
    with pytest.raises(RankwiseError, match="it needs a loss 'MyPairLogistic', which is not installed here"):
        rw.load(tmp_path / "model.rankwise")
    for model in (batch, online):
        assert any("MyPairLogistic" in row.name for row in model.certificate(queries, row_radius=1e3, longest=50).rows)


def test_least_by_slacks_and_the_linear_programme_agree_where_the_penalties_vanish():
    """The two oracles are checked against each other on the same loss with next to no penalty."""
    found = terms(rw.RankSVM(), small(11), np.zeros(3))
    assert least_with_l1(found, 1e-9, 3) == pytest.approx(least_by_slacks(found, 1e-9, 3), abs=1e-4)
    assert math.isfinite(least_with_l1(found, 1.0, 3))
