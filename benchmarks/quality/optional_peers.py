"""Peers that the developers' environment does not hold: they run where their packages are installed.

``pip install fastrank rax`` beside the locked packages, and ``python -m benchmarks quality FastRank Rax``. They are no
candidates for the peer that validation picks.
"""

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

import rankwise as rw
from benchmarks.quality.peers import Fit, Scores, Vector
from rankwise.queries.queries import Queries

# The settings of NeuralRanker.
HIDDEN, EPOCHS, BATCH, RATE, PATIENCE = (64, 32), 100, 16, 0.002, 15


def fastrank(train: Queries, validation: Queries, seed: int) -> Scores:
    """FastRank's coordinate ascent for NDCG@10 on training and validation queries together, which it cannot divide."""
    import fastrank as engine

    def data(queries: Queries) -> Any:
        X = np.ascontiguousarray(queries.in_query_order(np.asarray(queries.X)), dtype=np.float32)
        owner = np.repeat(np.arange(len(queries)), queries.sizes).astype(np.int64)
        return engine.CDataset.from_numpy(X, queries.in_query_order(queries.labels()).astype(np.float64), owner)

    request = engine.TrainRequest.coordinate_ascent()
    request.measure = "ndcg@10"
    request.params.seed, request.params.quiet = seed + 1, True
    plain = [part._replace(qid=None, docid=None) for part in (train, validation)]
    model = data(Queries.concat(plain)).train_model(request)

    def scores(queries: Queries) -> Vector:
        found = data(queries).predict_scores(model)
        in_order = np.array([found[row] for row in range(queries.n_documents)])
        made = np.empty(queries.n_documents)
        made[queries.rows] = in_order
        return made

    return scores


def rax(train: Queries, validation: Queries, seed: int) -> Scores:
    """A network of NeuralRanker's shape in JAX, under Rax's softmax loss and Adam; the best epoch on validation."""
    import jax
    import jax.numpy as jnp
    import rax as losses

    rows = np.asarray(train.X, dtype=np.float64)
    center, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    longest, width = int(train.sizes.max()), train.n_features
    X, y = np.zeros((len(train), longest, width), np.float32), np.zeros((len(train), longest), np.float32)
    known = np.zeros((len(train), longest), bool)
    for query in range(len(train)):
        own = train.rows_of(query)
        count = int(train.sizes[query])
        X[query, :count], y[query, :count] = (rows[own] - center) / deviation, train.labels()[own]
        known[query, :count] = True
    rng = np.random.default_rng(seed)
    sizes = (width, *HIDDEN, 1)
    weights = [
        (rng.normal(size=(below, above)).astype(np.float32) * np.sqrt(2 / below), np.zeros(above, np.float32))
        for below, above in pairwise(sizes)
    ]

    def network(weights: Any, X: Any) -> Any:
        for W, b in weights[:-1]:
            X = jax.nn.relu(X @ W + b)
        W, b = weights[-1]
        return (X @ W + b)[..., 0]

    def loss(weights: Any, X: Any, y: Any, known: Any) -> Any:
        return losses.softmax_loss(network(weights, X), y, where=known, reduce_fn=jnp.mean)

    @jax.jit
    def step(weights: Any, first: Any, second: Any, count: Any, X: Any, y: Any, known: Any) -> Any:
        slope = jax.grad(loss)(weights, X, y, known)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)

        def moved(w: Any, m: Any, v: Any) -> Any:
            return w - RATE * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return jax.tree.map(moved, weights, first, second), first, second

    def scoring(weights: Any) -> Scores:
        return lambda queries: np.asarray(
            network(weights, ((np.asarray(queries.X) - center) / deviation).astype(np.float32)), dtype=np.float64
        )

    first = jax.tree.map(jnp.zeros_like, weights)
    second, count, best, since = first, 0, (-np.inf, weights), 0
    size = min(BATCH, len(train))
    for _ in range(EPOCHS):
        order = rng.permutation(len(train))
        for place in range(0, len(order) - size + 1, size):
            chosen, count = order[place : place + size], count + 1
            weights, first, second = step(weights, first, second, count, X[chosen], y[chosen], known[chosen])
        value = rw.evaluate(validation, scoring(weights)(validation), "nDCG@10", empty="zero").mean["nDCG@10"]
        best, since = ((value, weights), 0) if value > best[0] else (best, since + 1)
        if since == PATIENCE:
            break
    return scoring(best[1])


KNOWN: dict[str, tuple[str, Fit]] = {
    "FastRank": ("fastrank", fastrank),
    "Rax": ("rax", rax),
}
INSTALLED: dict[str, Fit] = {name: fit for name, (package, fit) in KNOWN.items() if find_spec(package)}
