"""Simulated worlds in which relevance is neither a weighted sum of features nor of their products.

A world fixes how documents' features make them useful. Labels 0 to 4 cut usefulness plus what the query adds to all
of its documents plus noise, so that each grade has its share of all documents.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import rankwise as rw

Vector = NDArray[np.float64]
Generator = np.random.Generator
World = Callable[[Generator, Generator, int], tuple[Vector, Vector]]

THE_WORLD, ITS_DRAW = 3_601, 3_602  # seeds; nothing was developed on either
DOCUMENTS = (5, 50)
BELOW = (0.55, 0.77, 0.90, 0.97)  # shares of documents below each grade
OF_QUERY, NOISE = 0.7, 0.6  # spreads beside usefulness, whose spread is 1


def tree(world: Generator, draw: Generator, documents: int) -> tuple[Vector, Vector]:
    """Usefulness is a sum of six random trees of depth 3 on 8 of 40 features, each fourth of which is a count."""
    hidden = draw.standard_normal((documents, 40))
    useful, row = np.zeros(documents), np.arange(documents)
    for _ in range(6):
        feature, cut, leaf = world.integers(0, 8, 7), world.normal(0, 0.5, 7), world.standard_normal(8)
        node = np.zeros(documents, dtype=np.int64)
        for _ in range(3):
            node = 2 * node + 1 + (hidden[row, feature[node]] > cut[node])
        useful += leaf[node - 7]
    X = hidden.copy()
    X[:, ::4] = np.round(np.exp(hidden[:, ::4]))
    return X, useful


def sat(world: Generator, draw: Generator, documents: int) -> tuple[Vector, Vector]:
    """Usefulness is a weighted sum of 20 saturating effects; 20 more features share nothing but what all have."""
    shared, common = world.uniform(0, 0.6, 40), draw.standard_normal((documents, 1))
    hidden = shared * common + np.sqrt(1 - shared**2) * draw.standard_normal((documents, 40))
    weight = np.concatenate([world.exponential(1, 20), np.zeros(20)])
    useful = np.tanh(2 * (hidden - world.normal(0, 0.7, 40))) @ weight
    X = hidden.copy()
    X[:, ::3] = np.exp(hidden[:, ::3])
    X[:, 2::3] = np.maximum(hidden[:, 2::3], -0.3)  # many documents at the least value
    return X, useful


def wide(world: Generator, draw: Generator, documents: int) -> tuple[Vector, Vector]:
    """Usefulness is a weighted sum of the signed logarithms of 15 of 120 heavy-tailed features, and two products."""
    X = draw.standard_t(2.5, (documents, 120))
    seen = np.sign(X[:, :15]) * np.log1p(np.abs(X[:, :15]))
    products = seen[:, 0] * seen[:, 1] - np.abs(seen[:, 2]) * seen[:, 3]
    return X, seen @ world.standard_normal(15) + 0.7 * products


def simulate(world: World, queries: int, seeds: tuple[int, int] = (THE_WORLD, ITS_DRAW)) -> rw.Queries:
    """Judged queries of a world, the same at every call."""
    draw = np.random.default_rng(seeds[1])
    sizes = draw.integers(*DOCUMENTS, queries)
    query = np.repeat(np.arange(queries), sizes)
    X, useful = world(np.random.default_rng(seeds[0]), draw, len(query))
    seen = useful / useful.std() + OF_QUERY * draw.standard_normal(queries)[query]
    seen += NOISE * draw.standard_normal(len(query))
    return rw.Queries.from_arrays(X, np.searchsorted(np.quantile(seen, BELOW), seen), qid=query)
