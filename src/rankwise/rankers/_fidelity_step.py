"""How far a step goes, by the fidelity loss of the pairs that it tells apart.

These are given as ``counts``, the weights of pairs by their margins d: counts[0] of those that the step orders rightly,
counts[1] of those that it orders wrongly. The loss after the step is the sum of counts[0] phi(d + alpha) and counts[1]
phi(d - alpha).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Margins of pairs are counted on this grid. Between its points phi is taken as a straight line, which changes it by
# less than WIDTH^2 / 8 times the largest of its second derivatives, 0.1: 2e-7 a pair.
WIDTH = 1.0 / 256.0
# phi is flat to 1e-6 where a margin beyond this meets the largest alpha
FARTHEST = 40.0
NODES = 2 * round(FARTHEST / WIDTH) + 1
# No alpha is larger: a step that orders all its pairs rightly would go on for ever.
LARGEST = 10.0
_COARSE = 32  # nodes between the alphas that are tried first
_HALVINGS = 24  # of the quarter around the best of them: alpha is known to 1e-8


def fidelity(d: Vector) -> Vector:
    """phi(d) = 1 - sqrt(sigmoid(d)) = sigmoid(-d) / (1 + sqrt(sigmoid(d))), without cancellation."""
    up, down = _sigmoids(d)
    return np.asarray(down / (1 + np.sqrt(up)))


def slope(d: Vector) -> Vector:
    """-phi'(d) = 0.5 sqrt(sigmoid(d)) sigmoid(-d)."""
    up, down = _sigmoids(d)
    return np.asarray(0.5 * np.sqrt(up) * down)


def _sigmoids(d: Vector) -> tuple[Vector, Vector]:
    """(sigmoid(d), sigmoid(-d)) without overflow."""
    z = np.exp(-np.abs(d))
    near, far = 1 / (1 + z), z / (1 + z)
    return np.where(d >= 0, near, far), np.where(d >= 0, far, near)


_MARGIN: Vector = WIDTH * (np.arange(NODES) - NODES // 2).astype(np.float64)
_REACH = round(LARGEST / WIDTH)
_TABLE = fidelity(WIDTH * (np.arange(NODES + 2 * _REACH) - NODES // 2 - _REACH).astype(np.float64))


def loss_change(counts: Vector, alpha: float) -> float:
    """By how much a step of this length changes the loss."""
    right, wrong = _occupied(counts[0]), _occupied(counts[1])
    before = _sum(fidelity, right, 0.0) + _sum(fidelity, wrong, 0.0)
    return _sum(fidelity, right, alpha) + _sum(fidelity, wrong, -alpha) - before


def bound_alpha(counts: Vector) -> float:
    """0.5 ln(W+ / W-), W the sums of slopes over either kind of pairs; never beyond :data:`LARGEST`."""
    right, wrong = (_sum(slope, _occupied(side), 0.0) for side in counts)
    if not min(right, wrong) > 0:
        return math.copysign(LARGEST, right - wrong) if right != wrong else 0.0
    return min(max(0.5 * math.log(right / wrong), -LARGEST), LARGEST)


def exact_alpha(counts: Vector) -> float:
    """The alpha of the lowest loss.

    The loss is not convex in alpha, and may have several valleys: alphas from -10 to 10 are tried in steps of 1/8,
    and the valley around the best of them is gone down to its bottom by halving where the slope changes its sign.
    """
    right, wrong = _occupied(counts[0]), _occupied(counts[1])
    tried = range(-_REACH, _REACH + 1, _COARSE)
    values = [_at_node(right, shift) + _at_node(wrong, -shift) for shift in tried]
    best = int(np.argmin(values))
    low, high = (WIDTH * tried[min(max(best + way, 0), len(tried) - 1)] for way in (-1, 1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        falls = _sum(slope, right, middle) > _sum(slope, wrong, -middle)
        low, high = (middle, high) if falls else (low, middle)
    refined = 0.5 * (low + high)
    loss = _sum(fidelity, right, refined) + _sum(fidelity, wrong, -refined)
    return refined if loss < values[best] else WIDTH * tried[best]


Occupied = tuple[int, Vector]


def _occupied(count: Vector) -> Occupied:
    """(first node, counts from there on) without the empty ends."""
    found = np.flatnonzero(count)
    return (int(found[0]), count[found[0] : found[-1] + 1]) if len(found) else (0, count[:0])


def _sum(function: Callable[[Vector], Vector], side: Occupied, shift: float) -> float:
    first, count = side
    return float(np.dot(count, function(np.add(_MARGIN[first : first + len(count)], shift))))


def _at_node(side: Occupied, shift: int) -> float:
    """The sum of phi after a shift by whole nodes, from a table."""
    first, count = side
    at = first + _REACH + shift
    return float(np.dot(count, _TABLE[at : at + len(count)]))
