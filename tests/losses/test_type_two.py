"""The exact type two bounds: all orders, the minimum of a general solver, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.losses import SVMMapHinge, TypeTwo, TypeTwoBound
from rankwise.losses.permutation import best_imperfect, permutation_score, worst_perfect
from rankwise.queries.queries import Queries
from tests.oracles.permurank import all_orders, class_score, pair_score, reached

some = settings(max_examples=settings().max_examples // 2)
KINDS = [
    ("AP", "relevant", 1),
    ("AP", "pairs", 2),
    ("nDCG", "relevant", 1),
    ("nDCG", "pairs", 2),
    ("nDCG@2", "pairs", 3),
    ("nDCG(dcg='log2')@3", "pairs", 2),
]
over_kinds = pytest.mark.parametrize(("measure", "map", "labels"), KINDS)
over_forms = pytest.mark.parametrize("form", ["exp", "logistic"])


def f(x, form):
    return np.exp(-x) if form == "exp" else np.logaddexp(0.0, -x) / np.log(2.0)


# ------------------------------------------------------------------------------------------- all orders


@over_kinds
@over_forms
def test_it_is_the_largest_product_of_all_pairs_of_permutations(measure, map, labels, form):
    rng = np.random.default_rng(0)
    loss = TypeTwoBound(measure=measure, form=form, map=map)
    for _ in range(15):
        n = rng.integers(2, 6)
        s, y = rng.normal(size=n) * rng.uniform(0.1, 4), rng.integers(0, labels + 1, n).astype(float)
        orders = all_orders(n)
        E = reached(rw.measures.parse(measure), orders, y)
        if np.isnan(E).any() or (E > 1 - 1e-9).all():
            assert loss(s, y)[0] == 0
            continue
        extra = {"relevant": y > 0} if map == "relevant" else {}
        F = np.array([(class_score if extra else pair_score)(order, s, **extra) for order in orders])
        perfect = E > 1 - 1e-9
        expected = max(
            (1 - e) * f(F[perfect].min() - own, form) for e, own in zip(E[~perfect], F[~perfect], strict=True)
        )
        assert loss(s, y)[0] == pytest.approx(expected, rel=1e-10)


@over_forms
@pytest.mark.parametrize("seed", range(6))
def test_on_longer_lists_it_is_the_largest_product_of_all_sequences_of_labels(form, seed):
    rng = np.random.default_rng(seed)
    y = np.array([1.0] * 5 + [0.0] * 12)
    s = rng.normal(size=17) * (0.3, 2.0)[seed % 2] + y * rng.uniform(0, 2)
    for map in ("relevant", "pairs"):
        expected = TypeTwo("AP", form=form, map=map, by="patterns")(s, y)
        assert TypeTwoBound(form=form, map=map)(s, y)[0] == pytest.approx(expected, rel=1e-10)


@over_forms
@pytest.mark.parametrize("n", [40, 150])
def test_on_long_lists_no_order_that_is_tried_is_worse_and_the_gradient_supports_it(form, n):
    """The best imperfect order, that of the structured hinge, and thousands of random ones."""
    rng = np.random.default_rng(n)
    y = (rng.random(n) < 0.3).astype(float)
    s = y + rng.normal(size=n)
    loss = TypeTwoBound(form=form)
    value, gradient = loss(s, y)
    perfect = permutation_score(worst_perfect(s, y), s, y, "relevant")
    tried = [best_imperfect(s, y)]
    tried += [np.argsort(-(s + rng.normal(size=n) * rng.uniform(0, 3) - rng.uniform(0, 3) * y)) for _ in range(1000)]
    E = reached(rw.measures.parse("AP"), np.array(tried), y)
    for order, own in zip(tried, E, strict=True):
        if own < 1 - 1e-9:
            product = (1 - own) * f(perfect - permutation_score(order, s, y, "relevant"), form)
            assert product <= value * (1 + 1e-9)
    for _ in range(50):
        other = s + rng.normal(size=n) * rng.uniform(0, 1)
        assert loss(other, y)[0] >= value + gradient @ (other - s) - 1e-9 * value


@some
@given(st.integers(0, 10_000))
def test_it_is_at_least_what_the_measure_misses(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    s, y = np.round(rng.normal(size=n), 1), rng.integers(0, 3, n).astype(float)
    for loss in TypeTwoBound.examples():
        labels = np.minimum(y, 1) if loss.map == "relevant" else y
        measured = rw.measures.parse(loss.measure)(s, labels, ties="pessimistic")
        assert np.isnan(measured) or loss(s, labels)[0] >= 1 - measured - 1e-12


# ------------------------------------------------------------------------------------------- learning


@over_forms
@pytest.mark.parametrize(("measure", "map"), [("AP", "relevant"), ("nDCG@2", "pairs")])
def test_the_objective_is_the_least_of_a_general_solver(form, measure, map):
    rng, alpha = np.random.default_rng(3), 0.05
    sizes = [4, 5, 3, 5]
    X = rng.uniform(-1, 1, size=(sum(sizes), 2))
    y = np.clip(np.rint(X @ [1.5, -1.0] + rng.normal(size=len(X)) + 0.5), 0, 1)
    queries = Queries.from_arrays(X, y, group=sizes)
    loss = TypeTwoBound(measure=measure, form=form, map=map)
    model = rw.LossRanker(loss, alpha=alpha, tolerance=1e-7, scale="none").fit(queries)
    plain = TypeTwo(measure, form=form, map=map, by="patterns")

    def objective(w):
        return alpha / 2 * w @ w + np.mean([plain(query.X @ w, query.y) for query in queries])

    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-9)
    starts = [np.zeros(2), model.coef_]  # the second begins where nothing should be left to gain
    options = {"xatol": 1e-8, "fatol": 1e-11}
    least = min(minimize(objective, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert model.objective_ == pytest.approx(least, rel=1e-5)
    assert model.objective_ - model.gap_ <= least + 1e-9


def test_the_certificate_is_about_the_measure_that_it_bounds():
    queries = rw.make_lists(40, documents=8, features=3, grades=2, random_state=1)
    model = rw.LossRanker(TypeTwoBound(), measure="AP", alpha=0.1).fit(queries)
    assert model.objective_ >= 1 - model.score(queries) - 1e-9
    names = [row.name.lower() for row in model.certificate(queries).rows]
    assert any("gap" in name for name in names)


def test_it_learns_what_can_be_learned_online_too():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    queries = Queries.from_arrays(X, (X[:, 0] > 0.7).astype(float), group=[10] * 40)
    for form in ("exp", "logistic"):
        assert rw.LossRanker(TypeTwoBound(form=form), measure="AP", alpha=1e-3).fit(queries).score(queries) > 0.99
        assert rw.OnlineRanker(TypeTwoBound(form=form), measure="AP").fit(queries).score(queries) > 0.9


def test_it_is_flatter_than_the_structured_hinge_where_scores_are_far_apart():
    """The additive hinge is 0 there; the product keeps a positive value that vanishes."""
    loss, y = TypeTwoBound(form="exp"), [1, 0, 0]
    values = [loss([x, 0.0, 0.0], y)[0] for x in (0.0, 1.0, 5.0, 20.0)]
    assert values == sorted(set(values), reverse=True)
    assert SVMMapHinge()([5.0, 0.0, 0.0], y)[0] == 0 < values[2]


# ------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "P@3", "map": "pairs"}, "measure must be AP, nDCG or nDCG@k"),
        ({"measure": "AP@3", "map": "pairs"}, "measure must be AP, nDCG or nDCG@k"),
        ({"form": "hinge"}, "form must be 'exp' or 'logistic', got 'hinge'"),
        ({"map": "all"}, "map must be 'relevant' or 'pairs', got 'all'"),
        ({"measure": "nDCG@3"}, "map='relevant' requires a measure of all positions, got nDCG@3"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        TypeTwoBound(**wrong)


def test_more_grades_than_the_map_takes_and_lists_that_are_too_large_are_refused_in_a_sentence():
    with pytest.raises(RankwiseError, match="map='relevant' requires two grades"):
        TypeTwoBound(measure="nDCG")([0.0, 1.0, 2.0], [0, 1, 2])
    with pytest.raises(RankwiseError, match="give the measure a smaller cut-off, or use PermuRank"):
        TypeTwoBound(measure="nDCG", map="pairs")(np.arange(900.0), np.arange(900) % 3)
