"""Networks in ONNX, Python and C: scaled features, missing values, shifts, and what cannot be written."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import export
from tests.exports.models import NETWORKS, raw_lists

SMALL = {"hidden": (6, 6, 3), "epochs": 4}
# float32 rounds features that are far from 0 before they are standardized
CLOSE = {"onnx": 1e-3, "python": 1e-12, "c": 1e-12}


@pytest.mark.parametrize("target", NETWORKS)
@pytest.mark.parametrize("scaler", [None, rw.Scaler(), rw.Scaler("minmax")], ids=repr)
def test_a_network_sees_raw_features_through_its_scaler(scaler, target):
    raw, other = raw_lists(), raw_lists(seed=1)
    train = raw if scaler is None else scaler.fit(raw).transform(raw)
    model = rw.NeuralRanker(**SMALL).fit(train)
    parity = export(model, target, sample=other, scaling=scaler, shift=2.5).parity
    assert parity.pairs > 50
    assert parity.inverted_beyond_float32 == 0 or target == "onnx"
    assert parity.largest_difference <= CLOSE[target] * max(1.0, parity.largest_score)


def test_logarithms_are_refused_in_a_sentence():
    scaler = rw.Scaler("log").fit(raw_lists())
    model = rw.NeuralRanker(**SMALL).fit(scaler.transform(raw_lists()))
    with pytest.raises(RankwiseError, match="takes logarithms, which weights on raw features cannot express"):
        export(model, "onnx")


@pytest.mark.parametrize("target", ["python", "c"])
def test_missing_values_are_zero_where_the_ranker_has_it_so(target):
    raw = raw_lists()
    model = rw.NeuralRanker(**SMALL, missing="zero").fit(raw)
    X = raw.X.copy()
    X[::3, 1], X[1::3, 2] = np.nan, np.inf
    done = export(model, target)
    found = rw.exports.targets()[target]().score(done.files, X, ("f1", "f2", "f3", "f4", "f5"))
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-11, atol=1e-12)


def test_the_tables_of_a_network_are_no_names_for_its_function():
    model = rw.NeuralRanker(**SMALL).fit(raw_lists())
    for name in ("_CENTER", "_LAYERS", "_LINEAR"):
        with pytest.raises(RankwiseError, match="cannot be the name of a function"):
            export(model, "python", called=name)


def test_targets_for_hybrid_search_take_no_network():
    model = rw.NeuralRanker(**SMALL).fit(raw_lists())
    with pytest.raises(RankwiseError, match="requires a HybridRanker, got NeuralRanker"):
        export(model, "opensearch-hybrid")
