"""Linear scoring functions of whole lists that respect permutations: how many there are, and what they rank."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


def equivariance_equations(m, d):
    """The equations of L P = P L, for linear maps L of m documents with d features to m scores, one row each."""
    equations = []
    for order in permutations(range(m)):
        on_scores = np.eye(m)[list(order)]
        on_lists = np.kron(on_scores, np.eye(d))
        # vec(A L B) = (A kron B') vec(L) for L stored row by row
        equations.append(np.kron(on_scores, np.eye(m * d)) - np.kron(np.eye(m), on_lists.T))
    return np.concatenate(equations)


def own_and_others(m, d):
    """d maps that weight a document's own features, and d that weight the sum of the others', as rows of numbers."""
    own = [np.kron(np.eye(m), np.eye(d)[feature]) for feature in range(d)]
    others = [np.kron(np.ones((m, m)) - np.eye(m), np.eye(d)[feature]) for feature in range(d)]
    return np.array([one.ravel() for one in own + others])


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_there_are_2d_list_level_scoring_functions_and_d_for_single_documents(m, d):
    equations = equivariance_equations(m, d)
    known = own_and_others(m, d)
    free = m * m * d - np.linalg.matrix_rank(equations)
    assert free == (2 * d if m > 1 else d)  # Theorem 10 of 2014 says d at most
    assert np.allclose(equations @ known.T, 0)
    assert np.linalg.matrix_rank(known) == free  # so these are all of them


@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 10_000))
def test_the_list_level_half_moves_no_ranking(m, d, seed):
    random = np.random.default_rng(seed)
    X, w, v = random.integers(-9, 10, (m, d)), random.integers(-9, 10, d), random.integers(-9, 10, d)
    scores = X @ w + (X.sum(axis=0) - X) @ v  # whole numbers: no rounding makes or breaks a tie
    pointwise = X @ (w - v)
    assert (scores - pointwise == X.sum(axis=0) @ v).all()  # one constant per query
    assert ((scores[:, None] > scores) == (pointwise[:, None] > pointwise)).all()


def test_functions_that_do_not_respect_permutations_are_more():
    assert np.linalg.matrix_rank(equivariance_equations(3, 2)) == 3 * 3 * 2 - 4
