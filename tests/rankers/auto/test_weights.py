"""Weights of scores: the minimum of the pair loss over non-negative weights, whatever the scores and labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import rankwise as rw
from rankwise.rankers.auto.weights import pair_weights


def judged(sizes, labels, weight=None):
    """Queries without features."""
    return rw.Queries.from_arrays(np.zeros((sum(sizes), 1)), labels, group=sizes, weight=weight)


def plain_loss(queries, scores, penalty, weight):
    """The definition, pair by pair."""
    total, mixed, labels = 0.0, weight @ scores, queries.labels()
    for query, first in enumerate(queries.start[:-1]):
        size, own = queries.sizes[query], slice(first, queries.start[query + 1])
        lead = labels[own][:, None] - labels[own][None]
        cost = np.logaddexp(0.0, mixed[own][None] - mixed[own][:, None])
        total += queries.query_weight[query] * (lead * cost)[lead > 0].sum() / size
    away = weight - weight.mean()
    scale = queries.query_weight.sum() * labels.max()
    return total / scale + 0.5 * penalty * (away @ away)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 4),
    penalty=st.sampled_from([0.01, 1.0]),
    rounded=st.booleans(),
    weighted=st.booleans(),
)
def test_no_other_weights_have_a_smaller_loss(seed, count, penalty, rounded, weighted):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 12)
    labels = rng.integers(0, 3, sizes.sum())
    labels[0] = 2
    scores = 0.4 * labels + rng.normal(size=(count, sizes.sum()))
    scores = np.round(scores) if rounded else scores
    queries = judged(sizes, labels, rng.integers(1, 4, 12) if weighted else None)
    found = pair_weights(queries, scores, penalty, 1)
    assert (found >= 0).all()
    oracle = minimize(
        lambda c: plain_loss(queries, scores, penalty, c), np.full(count, 0.5), bounds=[(0, 50)] * count, tol=1e-12
    )
    assert plain_loss(queries, scores, penalty, found) <= oracle.fun + 1e-6


def test_what_ranks_backward_gets_no_weight():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 200)
    queries = judged([20] * 10, labels)
    good, bad = labels + rng.normal(size=200), -labels + rng.normal(size=200)
    weight = pair_weights(queries, np.array([good, bad]), 0.01, 1)
    assert weight[0] > 0
    assert weight[1] == 0


@pytest.mark.parametrize("labels", [[0] * 6, [1] * 6])
def test_without_two_labels_in_a_query_there_are_no_weights(labels):
    scores = np.arange(12.0).reshape(2, 6)
    assert pair_weights(judged([3, 3], labels), scores, 0.01, 1).tolist() == [0.0, 0.0]


def test_the_number_of_threads_changes_no_bit():
    lists = rw.make_lists(80, random_state=3)
    scores = np.random.default_rng(0).normal(size=(3, lists.n_documents)) + lists.labels()
    found = [pair_weights(lists, scores, 0.01, threads).tobytes() for threads in (1, 2, 3)]
    assert len(set(found)) == 1
