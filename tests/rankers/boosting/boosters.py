"""LightGBM models of every kind, and rows that lie where trees are easily misread."""

from functools import cache

import numpy as np
import pytest

TINY = float(np.float32(1e-35))
BASE = {
    "objective": "regression",
    "num_leaves": 9,
    "min_data_in_leaf": 5,
    "min_data_per_group": 5,
    "cat_smooth": 1.0,
    "num_threads": 1,
    "verbose": -1,
    "seed": 1,
}
# Settings by name: what is missing, how large the trees are, how they are grown.
SETTINGS = {
    "nan": {},
    "zero": {"zero_as_missing": True},
    "none": {"use_missing": False},
    "stumps": {"num_leaves": 2},
    "single leaves": {"min_gain_to_split": 1e9},
    "64 leaves": {"num_leaves": 64, "min_data_in_leaf": 2},
    "65 leaves": {"num_leaves": 65, "min_data_in_leaf": 2},
    "dart": {"boosting": "dart"},
    "monotone": {"monotone_constraints": [1, 0, 1, 0, -1]},
    "bagging": {"bagging_fraction": 0.5, "bagging_freq": 1},
}


def rows(count, seed):
    """Rows with NaN, zeros, categories and repeated values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 5))
    X[:, 3] = rng.integers(-2, 70, count)
    X[rng.random(count) < 0.3, 0] = np.nan
    X[rng.random(count) < 0.3, 1] = 0.0
    X[:, 4] = np.round(X[:, 4], 1)
    return X


def edge_rows():
    """Rows of one special value, and special values of the category."""
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, TINY, -TINY, TINY / 2, np.nextafter(TINY, 1), 1e300, -1e300, 5e-324]
    X = np.concatenate([np.full((1, 5), one) for one in special])
    categories = rows(12, seed=9)
    categories[:, 3] = [-0.5, -1.0, -0.999, 2.7, 31.0, 32.0, 63.5, 64.0, 2.0**31, 2.0**31 - 1, 1e12, np.nan]
    return np.concatenate([X, categories])


@cache
def booster(setting, categories=False, trees=20):
    """A LightGBM model with these settings."""
    lightgbm = pytest.importorskip("lightgbm")
    X = rows(800, seed=0)
    y = X[:, 2] + np.nan_to_num(X[:, 0]) + (X[:, 3] % 3) * (X[:, 1] == 0) + X[:, 4] * X[:, 2]
    data = lightgbm.Dataset(X, y, categorical_feature=[3] if categories else "auto")
    return lightgbm.train({**BASE, **SETTINGS[setting]}, data, trees)
