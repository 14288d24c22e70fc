"""Rankers on normal scores in files: at knots, between them, beyond them, and where a feature did not vary."""

import numpy as np
import pytest

import rankwise as rw
from rankwise import Queries
from rankwise.errors import RankwiseError
from rankwise.exports import export

NAMES = ["skewed", "counts", "constant", "wide"]


def documents(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.lognormal(size=n), rng.poisson(2, n), np.full(n, 7.0), 1e6 * rng.standard_cauchy(n)])
    y = np.clip(np.round(np.log(X[:, 0]) + 0.3 * X[:, 1] + rng.normal(size=n)), 0, 3)
    return Queries.from_arrays(X, y, qid=np.arange(n) // 12, feature_names=NAMES)


def places_to_look(scaler):
    """Documents at every knot, just beside it, halfway to the next one and beyond all of them."""
    columns = []
    for first, last in zip(scaler.knot_start_[:-1], scaler.knot_start_[1:], strict=True):
        knots = scaler.knots_[first:last]
        beside = [np.nextafter(knots, np.inf), np.nextafter(knots, -np.inf), knots[:-1] + np.diff(knots) / 2]
        column = np.concatenate([knots, *beside, [knots[0] - 5, knots[-1] + 5, -1e15, 1e15]])
        columns.append(np.resize(column, 1_100))
    X = np.column_stack(columns)
    return Queries.from_arrays(X, np.arange(len(X)) % 3, qid=np.arange(len(X)) // 10, feature_names=NAMES)


def difference(model, target, sample):
    return export(model, target, sample=sample).parity.largest_difference


@pytest.mark.parametrize("target", ["python", "c", "sql", "vespa"])
@pytest.mark.parametrize("how", ["queries", "map"])
def test_linear_weights_on_normal_scores_are_curves_on_raw_features(target, how):
    raw = documents()
    scaler = rw.Scaler("normal").fit(raw)
    if how == "queries":
        model = rw.RidgeCommittee().fit(scaler.transform(raw))
    else:
        model = rw.MappedRanker(rw.Scaler("normal"), rw.RidgeCommittee()).fit(raw)
    assert difference(model, target, places_to_look(scaler)) < 1e-12


def test_onnx_holds_them_for_features_of_float32():
    pytest.importorskip("onnxruntime")
    raw = documents()
    raw = Queries.from_arrays(raw.X.astype(np.float32), raw.y, qid=raw.query_of_row, feature_names=NAMES)
    model = rw.MappedRanker(rw.Scaler("normal"), rw.RidgeRanker(alpha=1.0)).fit(raw)
    assert difference(model, "onnx", raw) < 1e-5


@pytest.mark.parametrize("ranker", [rw.RankBoost(rounds=15), rw.BoostedRanker(trees=10, seeds=1, folds=2)], ids=repr)
def test_thresholds_on_normal_scores_are_exact_on_raw_features(ranker):
    raw = documents()
    scaler = rw.Scaler("normal").fit(raw)
    model = ranker.fit(scaler.transform(raw))
    assert difference(model, "python", places_to_look(scaler)) < 1e-12


def test_engines_of_weighted_sums_name_those_that_hold_curves():
    model = rw.MappedRanker(rw.Scaler("normal"), rw.RidgeCommittee()).fit(documents())
    with pytest.raises(RankwiseError, match=r"RankLib holds a weighted sum .* export to c, onnx, python, sql, vespa"):
        export(model, "ranklib")
    network = rw.NeuralRanker(hidden=(2,), epochs=1).fit(rw.Scaler("normal").fit_transform(documents()))
    with pytest.raises(RankwiseError, match="files hold for linear weights and for trees: learn from"):
        export(network, "python")
    other = rw.MappedRanker(rw.Scaler("log"), rw.RidgeRanker(alpha=1.0)).fit(documents())
    with pytest.raises(RankwiseError, match="use scikit-learn's StandardScaler or MinMaxScaler"):
        export(other, "python")


def test_knots_that_are_closer_than_any_slope_are_refused_by_name():
    X = np.array([[0.0], [5e-324], [1.0], [2.0]])
    queries = Queries.from_arrays(X, [0, 1, 1, 2], qid=[1, 1, 1, 1], feature_names=["tiny"])
    model = rw.RidgeRanker(alpha=1.0).fit(rw.Scaler("normal").fit_transform(queries))
    with pytest.raises(RankwiseError, match=r"the normal score of 'tiny' rises .* multiply the feature"):
        export(model, "python")
