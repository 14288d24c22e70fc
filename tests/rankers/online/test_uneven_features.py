"""W4: online rankers on features of very different scales."""

import warnings

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataWarning


def uneven(seed=0, count=60):
    """Lists whose label depends on a small feature, beside one that is 10,000 times larger."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * 8, 3)) * [1e4, 1.0, 0.5]
    y = np.clip(np.rint(X[:, 1] + X[:, 2] + 1), 0, 3)
    return rw.Queries.from_arrays(X, y, group=[8] * count, feature_names=("clicks", "bm25", "age"))


@pytest.mark.parametrize("kind", [rw.SLAMPerceptron, rw.MaxPairPerceptron, rw.ListNet])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_w4_a_fit_on_uneven_features_warns_and_says_what_to_do(kind, method):
    with pytest.warns(DataWarning, match=r"clicks is [0-9,]+ times that of feature age; pass scale='standard'"):
        getattr(kind(), method)(uneven())


def test_w4_no_warning_where_features_are_scaled_or_alike():
    queries = uneven()
    even = rw.Queries.from_arrays(queries.X / [1e4, 1.0, 0.5], queries.y, group=queries.sizes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rw.SLAMPerceptron(scale="standard").fit(queries)
        rw.SLAMPerceptron().fit(even)
        rw.SLAMPerceptron().fit(rw.Scaler().fit_transform(queries))
        rw.SLAMPerceptron().partial_fit(queries[:2])


def test_w4_the_command_of_the_service_page_scales_by_itself(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rw.write_letor(uneven(), "judged.txt")
    code, _, err = run("train", "judged.txt", "-r", "SLAMPerceptron", "-o", "news.rankwise")
    assert code == 0, err
    assert "different scales" not in err
    model = rw.load("news.rankwise")
    assert model.scale == "standard"
    held = uneven(seed=1)
    with pytest.warns(DataWarning):
        raw = rw.SLAMPerceptron().fit(uneven())
    assert rw.evaluate(held, model).mean["nDCG@10"] > rw.evaluate(held, raw).mean["nDCG@10"] + 0.1
    code, _, err = run("train", "judged.txt", "-r", "SLAMPerceptron", "--scale", "none", "-o", "news.rankwise")
    assert code == 0, err
    assert "different scales" in err
