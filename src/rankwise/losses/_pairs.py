"""Pairwise losses from a function of one number: the mean over label_i > label_j of phi(s_j - s_i)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying


@kernel(fastmath={"reassoc", "contract"})
def _add_up(loss, slope, grad):
    """Add the slopes to the gradient of the smaller labels; returns the sums of losses and slopes."""
    total, steepness = 0.0, 0.0
    for j in range(len(loss)):
        grad[j] += slope[j]
        total += loss[j]
        steepness += slope[j]
    return total, steepness


def pair_loss(phi: Callable[[float], float], derivative: Callable[[float], float]) -> tuple[Any, Any]:
    """Build the kernels of the loss sum over label_i > label_j of phi(s_j - s_i).

    Parameters
    ----------
    phi : callable
        The loss of a pair, as a function of the score of the document with the smaller label minus that of the other
        one. It is compiled by numba.
    derivative : callable
        The derivative of ``phi``, compiled as well.

    Returns
    -------
    kernel, weighted_kernel : numba dispatcher
        The kernels of a :class:`Loss`: without document weights, and with them, where a pair weighs w_i w_j. Both
        compute the mean over all pairs, or the sum if the first number of :meth:`Loss.params` is 0. A query without
        pairs has loss 0.

    Notes
    -----
    O(m^2): every pair is evaluated once. Documents are arranged by label, so those with smaller labels are contiguous
    for every document and a ``phi`` without branches is vectorized. The kernels are closures, which numba's own cache
    would compile in every process; the cache of the package hashes what they hold and keeps them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rankwise.losses import Loss, pair_loss
    >>> @dataclass(frozen=True, kw_only=True, repr=False)
    ... class SquaredPairs(Loss):
    ...     name = "SquaredPairs"
    ...     convex = smooth = document_weights = True
    ...     kernel, weighted_kernel = pair_loss(lambda x: (1.0 + x) ** 2, lambda x: 2.0 * (1.0 + x))
    >>> value, gradient = SquaredPairs()([0.0, 0.0, 0.0], [2, 1, 0])
    >>> value, gradient.round(3).tolist()
    (1.0, [-1.333, 0.0, 1.333])
    """
    of_pair, slope_of_pair = _as_kernel(phi), _as_kernel(derivative)

    @kernel
    def pair_terms(lower, own, loss, slope):
        for j in range(len(lower)):
            x = lower[j] - own
            loss[j] = of_pair(x)
            slope[j] = slope_of_pair(x)

    @kernel
    def pair_formula(score, label, value, grad, table, params):
        size = len(score)
        key, place = label.copy(), np.arange(size)
        sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
        arranged, slope_of = score[place], np.zeros(size)
        loss, slope = np.empty(size), np.empty(size)
        total, pairs, first = 0.0, 0.0, 0  # ``first`` is where the class of document p begins
        for p in range(size):
            if key[p] != key[first]:
                first = p
            pair_terms(arranged[:first], arranged[p], loss[:first], slope[:first])
            added, steepness = _add_up(loss[:first], slope[:first], slope_of[:first])
            total += added
            slope_of[p] -= steepness
            pairs += first
        if pairs == 0.0:
            return 0.0
        share = 1.0 / pairs if len(params) == 0 or params[0] != 0.0 else 1.0
        for p in range(size):
            grad[place[p]] = slope_of[p] * share
        return total * share

    @kernel
    def weighted_pair_formula(score, label, value, grad, table, params):
        size = len(score)
        total, pairs = 0.0, 0.0
        for i in range(size):
            for j in range(size):
                if label[i] > label[j]:
                    weight = value[i] * value[j]
                    if weight > 0.0:
                        x = score[j] - score[i]
                        slope = weight * slope_of_pair(x)
                        total += weight * of_pair(x)
                        grad[j] += slope
                        grad[i] -= slope
                        pairs += weight
        if pairs == 0.0:
            return 0.0
        share = 1.0 / pairs if len(params) == 0 or params[0] != 0.0 else 1.0
        for i in range(size):
            grad[i] *= share
        return total * share

    return pair_formula, weighted_pair_formula


def _as_kernel(function: Any) -> Any:
    """Compile a plain function; a kernel stays as it is."""
    return function if hasattr(function, "py_func") else kernel(function)
