"""Why A stands above B: contributions add up to the difference of the scores, for every additive ranker."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers._base import Ranker, registered

LISTS = rw.make_lists(40, documents=(3, 9), features=5, random_state=4)
QUERY = LISTS[0]
FITTED = {}


def fitted(ranker):
    if repr(ranker) not in FITTED:
        FITTED[repr(ranker)] = ranker.fit(LISTS)
    return FITTED[repr(ranker)]


def limit(model, query, a, b):
    """What rounding of d products, sums and differences can make, with room for the order of the sum."""
    parts, constant = model._contributions(np.asarray(query.X))
    size = np.abs(parts[a]).sum() + np.abs(parts[b]).sum() + abs(constant)
    return (query.X.shape[1] + 4) * 2.0**-52 * size


@pytest.mark.parametrize("name", sorted(registered()))
def test_contributions_add_up_to_the_difference_of_the_scores(name):
    model = fitted(registered()[name].examples()[0])
    scores = model.predict(QUERY)
    if name in ("NeuralRanker", "KernelPerceptron", "MappedRanker"):
        with pytest.raises(RankwiseError, match=f"the score of {name} is not a sum over features"):
            rw.explain(model, QUERY, 0, 1)
        return
    found = rw.explain(model, QUERY, 0, 1)
    assert found.difference == scores[0] - scores[1]
    exact = Fraction(scores[0]) - Fraction(scores[1]) - sum(map(Fraction, found.contribution.tolist()))
    assert found.rounding == float(exact)
    assert abs(found.rounding) <= limit(model, QUERY, 0, 1)
    whole = rw.explain(model, QUERY)
    np.testing.assert_allclose(
        whole.contribution.sum(axis=1), scores - scores.mean(), atol=1e-9 * (1 + abs(scores).max())
    )


@settings(max_examples=60)
@given(st.data())
def test_linear_contributions_are_exact_to_the_last_bits(data):
    """Against rationals: each term is the rounded product of a rounded difference, and all of them are the score."""
    d = data.draw(st.integers(1, 6))
    number = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: 0.0 if abs(x) < 1e-100 else x)
    w, xa, xb = (np.array(data.draw(st.lists(number, min_size=d, max_size=d))) for _ in range(3))
    model = rw.LinearModel.of(w, intercept=3.0)
    found = rw.explain(model, np.stack([xa, xb]), 0, 1)
    for part, weight, one, two in zip(found.contribution, w, xa, xb, strict=True):
        exact = Fraction(weight) * (Fraction(one) - Fraction(two))
        assert abs(Fraction(part) - exact) <= abs(exact) * Fraction(3, 2**53) + Fraction(1, 2**1070)
    size = np.abs(w * xa).sum() + np.abs(w * xb).sum() + 6
    assert abs(found.rounding) <= (d + 4) * 2.0**-52 * size


def test_almost_equal_values_do_not_cancel():
    """w (a - b), not w a - w b: a time in seconds that differs by one second adds exactly w."""
    model = rw.LinearModel.of([0.1])
    assert rw.explain(model, np.array([[1.7e9 + 1], [1.7e9]]), 0, 1).contribution[0] == 0.1


@pytest.mark.parametrize("ranker", [rw.RankBoost(rounds=20), rw.FRank(rounds=20)], ids=lambda one: one.name)
def test_steps_contribute_by_their_feature(ranker):
    model = fitted(ranker)
    found = rw.explain(model, QUERY, 0, 1)
    steps = model.steps_
    for feature in range(5):
        mine = [row for row in steps if row["feature"] == feature]
        worth = [math.fsum(row["alpha"] for row in mine if QUERY.X[doc, feature] > row["threshold"]) for doc in (0, 1)]
        assert found.contribution[feature] == pytest.approx(worth[0] - worth[1], abs=1e-12)


def test_a_ranker_that_is_no_sum_raises_one_clear_error():
    class Product(rw.RidgeRanker):
        name = "Product"

        def _contributions(self, X):
            return Ranker._contributions(self, X)

    model = Product().fit(LISTS)
    with pytest.raises(RankwiseError, match=r"the score of Product is not a sum over features.*permutation_importance"):
        rw.explain(model, QUERY, 0, 1)


def test_documents_are_named_by_row_or_id():
    model = fitted(rw.RidgeRanker())
    ids = [str(one) for one in QUERY.docid]
    assert rw.explain(model, QUERY, ids[2], ids[0]).to_dict() == rw.explain(model, QUERY, 2, 0).to_dict()
    against = rw.explain(model, QUERY, 2)
    assert against.b == "the average document"
    assert against.difference == pytest.approx(model.predict(QUERY)[2] - model.predict(QUERY).mean())
    plain = rw.explain(model, np.asarray(QUERY.X), 2, 0)
    assert (plain.a, plain.b) == ("row 2", "row 0")
    np.testing.assert_array_equal(plain.contribution, rw.explain(model, LISTS[:1], 2, 0).contribution)
    frame = rw.io.to_frame(LISTS[:1])[list(LISTS.feature_names)[::-1]]
    np.testing.assert_array_equal(rw.explain(model, frame, 2, 0).contribution, plain.contribution)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((QUERY, 99, 0), "there is no row 99"),
        ((QUERY, "nobody", 0), "no document with the id 'nobody'"),
        ((np.asarray(QUERY.X), "d1", 0), "have no ids"),
        ((QUERY, None, 1), "pass a as well"),
        ((LISTS, 0, 1), "the documents of one query, such as queries\\[0\\], got 40 queries"),
        ((np.zeros((2, 3)), 0, 1), "was fitted on 5 features"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(arguments, sentence):
    with pytest.raises(DataError, match=sentence):
        rw.explain(fitted(rw.RidgeRanker()), *arguments)


def test_a_foreign_model_is_refused():
    with pytest.raises(DataError, match="a fitted ranker of rankwise, got object"):
        rw.explain(object(), QUERY, 0, 1)


@pytest.mark.parametrize("how", ["standard", "minmax", "log"])
def test_values_are_shown_before_the_scaling(how):
    scaler = rw.Scaler(how).fit(LISTS)
    scaled = scaler.transform(LISTS)
    model = rw.RidgeRanker(alpha=1.0).fit(scaled)
    found = rw.explain(model, scaled[0], 0, 1)
    np.testing.assert_allclose(found.values, QUERY.X[:2], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.contribution, model.coef_ * (scaled[0].X[0] - scaled[0].X[1]))
    if how != "log":
        np.testing.assert_allclose(found.contribution, scaler.fold(model.coef_) * (QUERY.X[0] - QUERY.X[1]), atol=1e-9)


def test_explanations_print_plot_and_become_plain():
    model = fitted(rw.RidgeRanker())
    pair, whole = rw.explain(model, QUERY, 0, 1), rw.explain(model, QUERY)
    assert repr(pair).startswith("RidgeRanker: d1 ")
    table = pair.table()
    assert table.columns == ("feature", "a", "b", "adds")
    assert np.all(np.diff(np.abs(table["adds"])) <= 0)
    plain = json.loads(json.dumps(pair.to_dict()))
    assert plain["difference"] == pair.difference
    assert sorted(plain["features"]["adds"]) == sorted(pair.contribution.tolist())
    ranked = json.loads(json.dumps(whole.to_dict()))["documents"]
    assert [one["score"] for one in ranked] == sorted((one["score"] for one in ranked), reverse=True)
    two = whole.table(columns=2)
    np.testing.assert_allclose(
        two[two.columns[-1]] + two[two.columns[-2]] + two[two.columns[-3]],
        two["score"] - two["score"].mean(),
        atol=1e-9,
    )
    for one in (pair, whole):
        assert "<table>" in one._repr_html_()
        assert len(one.plot().axes) >= 1


def test_names_of_strangers_are_escaped():
    queries = LISTS._replace(feature_names=("<b>", "score", "rank", "d", "e"))
    model = rw.RidgeRanker(alpha=1.0).fit(queries)
    for one in (rw.explain(model, queries[0], 0, 1), rw.explain(model, queries[0])):
        assert "<b>" not in one._repr_html_()
        assert "&lt;b&gt;" in one._repr_html_()
