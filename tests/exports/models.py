"""Fitted rankers that the tests of exports share: one of every kind, fitted once."""

from functools import cache

import numpy as np
from sklearn.base import clone

from rankwise.exports import targets
from rankwise.exports.formula import StepSum, WeightedSum
from rankwise.queries.queries import Queries
from rankwise.rankers._base import registered
from rankwise.rankers.boosting.steps import RankBoost
from rankwise.rankers.linear.linear_model import LinearModel

# rankers on maps are exported to few targets, which tests/rankers/kernels/test_mapped.py has
ON_MAPS = ("KernelPerceptron", "MappedRanker")
# rankers whose score is a function of a row; the others have exports of their own
KINDS = sorted(
    name for name, kind in registered().items() if not kind.examples()[0].scores_by_query and name not in ON_MAPS
)
# those that a ranker with a network can be written for; the other targets refuse it
NETWORKS = ("c", "onnx", "python")
# targets that score a document without its query
OF_ROWS = sorted(name for name, kind in targets().items() if WeightedSum in kind.takes)
NAMES = ("age", "bm25", "clicks", "depth", "edits")


def lists(count, seed):
    """Judged lists with a linear signal, some of one document or of one label."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    X = rng.normal(size=(sizes.sum(), len(NAMES)))
    y = np.clip(np.rint(X @ np.linspace(1, -1, len(NAMES)) + rng.normal(size=len(X))), 0, 3)
    return Queries.from_arrays(X, y, group=sizes, feature_names=NAMES)


@cache
def fitted(kind):
    """A small ranker of that kind, on features with names."""
    return clone(registered()[kind].examples()[0]).fit(lists(30, seed=3))


@cache
def sample():
    """Other lists, some of whose documents are the same."""
    queries = lists(40, seed=8)
    return queries.map_features(lambda X: np.round(X, 2))


def of_steps(formula: StepSum) -> RankBoost:
    """A ranker whose steps are these."""
    ranker = RankBoost()
    ranker.n_features_in_ = len(formula.names)
    ranker.feature_names_in_ = np.array(formula.names, dtype=object)
    nothing = dict.fromkeys(ranker._columns(), np.full(len(formula.alpha), np.nan))
    own = {"feature": formula.feature, "threshold": formula.threshold, "alpha": formula.alpha}
    ranker._set({**nothing, "round": np.arange(1, len(formula.alpha) + 1), **own}, len(formula.alpha))
    return ranker


def of_weights(formula: WeightedSum):
    """A ranker whose weights are these."""
    return LinearModel.of(formula.weight, intercept=formula.constant, feature_names=formula.names)


def raw_lists(seed=0, count=25):
    """Lists of other units: far from 0, tiny, huge, and one that does not vary; float32 holds every number."""
    base = lists(count, seed)
    factor, offset = np.array([1.0, 1e-4, 1e4, 3.0, 0.0]), np.array([0.0, 1.0, -5e4, 20.0, 7.0])
    return base.map_features(lambda X: (X * factor + offset).astype(np.float32).astype(np.float64))
