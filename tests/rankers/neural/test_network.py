"""The network and its training against their plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses import PairLogistic
from rankwise.queries.queries import Queries
from rankwise.rankers.neural.network import AdamW, Layers, Network, Training, moments

SHAPES = [(3, 4), (4, 4), (2, 5, 5), (3, 6, 2), (1, 1, 1, 1), (5, 3, 3, 3)]


def plain_scores(network, X):
    """Row after row, unit after unit, as the docstring of the ranker has it."""
    layers, v, u = network.views()
    found = []
    for x in np.asarray(X, dtype=np.float64):
        z = (x - network.center) / network.scale
        h = z
        for number, layer in enumerate(layers):
            r = np.array([max(b + sum(w * h), 0.0) for w, b in zip(layer.weight, layer.bias, strict=True)])
            h = r + h if number and len(r) == len(h) else r
        found.append(v @ h + u @ z)
    return np.array(found)


def draw(widths, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    theta = Layers(widths).draw(rng, np.ones(widths[0], dtype=bool)).astype(dtype)
    return theta + rng.normal(size=len(theta)).astype(dtype) / 10


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_scores_are_those_of_the_definition(widths, dtype):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(30, widths[0])) * 5 + 2).astype(dtype)
    network = Network(rng.normal(size=widths[0]), rng.uniform(0.5, 3, widths[0]), widths, draw(widths))
    np.testing.assert_allclose(network.predict(X), plain_scores(network, X), rtol=1e-12, atol=1e-13)
    in_batches, _ = Layers(widths).scores(network.theta, network.standardize(X))
    np.testing.assert_allclose(in_batches, network.predict(X), rtol=1e-4, atol=1e-5)


@given(
    widths=st.lists(st.integers(1, 5), min_size=2, max_size=5).map(tuple),
    seed=st.integers(0, 10**6),
    dropped=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_gradient_is_the_limit_of_differences(widths, seed, dropped):
    """Of a random direction: f(theta + t d) - f(theta - t d) over 2 t, with kinks of max away from theta."""
    layers, rng = Layers(widths), np.random.default_rng(seed)
    theta, direction = draw(widths, seed, np.float64), rng.normal(size=layers.size)
    Z, slopes = rng.normal(size=(6, widths[0])), rng.normal(size=6)
    kept = [rng.integers(0, 2, (6, width)) / 0.5 for width in widths[1:]] if dropped else None

    def value(t):
        return slopes @ layers.scores(theta + t * direction, Z, kept)[0]

    _, passed = layers.scores(theta, Z, kept)
    exact = direction @ layers.gradient(theta, passed, slopes)
    near, nearer = ((value(t) - value(-t)) / (2 * t) for t in (1e-5, 1e-7))
    # a kink inside of the wider interval leaves the narrower one
    assert min(abs(near - exact), abs(nearer - exact)) <= 1e-6 * max(1.0, abs(exact))


def test_all_weights_are_named_once_and_biases_do_not_decay():
    for widths in SHAPES:
        layers = Layers(widths)
        parts = layers.views(np.arange(layers.size))
        named = np.concatenate([*(part.ravel() for layer in parts[0] for part in layer[:2]), *parts[1:]])
        np.testing.assert_array_equal(np.sort(named), np.arange(layers.size))
        assert (~layers.find_decayed()).sum() == sum(widths[1:])


def test_adamw_takes_the_steps_of_the_papers():
    theta, decay = np.array([1.0, -2.0], dtype=np.float32), np.array([0.5, 0.0], dtype=np.float32)
    optimizer, m, v, plain = AdamW(0.1, decay), np.zeros(2), np.zeros(2), theta.astype(np.float64)
    for t in range(1, 6):
        g = np.array([0.3 * t, -1.0 / t])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        plain = plain - 0.1 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * plain)
        optimizer.step(theta, g.astype(np.float32))
    np.testing.assert_allclose(theta, plain, rtol=1e-5)


def test_features_that_do_not_vary_have_no_weight_and_never_get_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.full(40, 0.3), np.zeros(40)])
    queries = Queries.from_arrays(X, rng.integers(0, 3, 40), group=[10] * 4)
    options = {"learning_rate": 0.01, "weight_decay": 0.1, "batch": 2, "dropout": 0.2}
    training = Training.of(queries, PairLogistic(), (4, 4), np.random.default_rng(1), **options)
    for _ in range(5):
        training.epoch()
    network = training.network
    assert network.scale[1:].tolist() == [1.0, 1.0]
    other = X + np.array([0.0, 1e6, -5.0])
    np.testing.assert_array_equal(network.predict(other), network.predict(X))


def test_the_standardization_is_that_of_the_queries_that_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 100, 1e-3] + 7
    queries = Queries.from_arrays(X, rng.integers(0, 3, 40), group=[10] * 4, weight=[1, 0, 2, 1])
    own = X[np.r_[0:10, 20:40]]
    mean, deviation = moments(queries)
    np.testing.assert_allclose(mean, own.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation, own.std(axis=0), rtol=1e-12)
    order = rng.permutation(40)
    scattered = Queries.from_arrays(X[order], queries.y[order], qid=queries.query_of_row[order])
    again = moments(scattered)  # rows of a query in another order
    np.testing.assert_allclose(again[0], X.mean(axis=0), rtol=1e-12)
    with pytest.raises(RankwiseError, match="too large to learn from"):
        moments(queries.map_features(lambda X: X * 1e200))
