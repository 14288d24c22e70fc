"""Search for the best weights on the simplex, by a grid and then by moves between pairs of weights.

Weights are whole hundredths. A measure is piecewise constant in them, so that gradients say nothing and evaluations say
everything: there are few dimensions, and every candidate is measured exactly. With two columns all 101 candidates are
measured. With more, a grid comes first, and then moves of 10, 5, 2 and 1 hundredths from one weight to another, from
each of the best candidates, until none improves the mean. At last the surroundings of the best are measured, so that
draws of the queries (the bootstrap) find their own best weights there. Of more than six columns, the six that rank best
alone share the weight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

UNITS = 100
# Steps per unit of the first grid, by the number of columns: 101, 231, 286, 126 and 252 candidates.
_GRID = {1: 1, 2: 100, 3: 20, 4: 10, 5: 5, 6: 5}
MOST = max(_GRID)  # columns that share the weight: of more, those that rank best alone
_MOVES = (10, 5, 2, 1)
_STARTS = 3
# Candidates around the best one, at each of these distances in hundredths.
_AROUND, _REACH = 60, (2.0, 5.0, 10.0)
# Means that differ by less are equal: rounding must not decide.
TIE = 1e-12


@dataclass
class WeightCandidates:
    """Weights that were measured, with the value of every query.

    Attributes
    ----------
    values_of : callable
        Takes weights and returns the value of every query; NaN where the measure is undefined.
    mean_of : callable
        Takes these values and returns their mean; NaN where there is none.
    """

    values_of: Callable[[Vector], Vector]
    mean_of: Callable[[Vector], float]
    _weights: list[Vector] = field(default_factory=list)
    _values: list[Vector] = field(default_factory=list)
    _means: list[float] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def measure(self, units: tuple[int, ...]) -> int:
        """The number of the candidate with these hundredths, which is measured if it is new."""
        if units not in self._known:
            self._known[units] = self.add(np.array(units) / UNITS)
        return self._known[units]

    def add(self, weights: Vector) -> int:
        """Measure weights that need not be hundredths."""
        values = self.values_of(weights)
        self._weights.append(weights)
        self._values.append(values)
        self._means.append(self.mean_of(values))
        return len(self._means) - 1

    def mean(self, number: int) -> float:
        """The mean of a candidate; -inf where it is undefined."""
        mean = self._means[number]
        return mean if mean == mean else -np.inf

    def best(self, most: int = 1) -> list[tuple[int, ...]]:
        """The best candidates of whole hundredths."""
        simple = {key: _distance(np.array(key) / UNITS) for key in self._known}
        ordered = sorted(self._known, key=lambda key: (-self.mean(self._known[key]), simple[key], key))
        return ordered[:most]

    def arrays(self) -> tuple[Matrix, Matrix, Vector]:
        """(weights, values, means) of all candidates, nearest to equal weights first: the simplest wins ties."""
        weights = np.array(self._weights)
        order = np.lexsort((*(-weights.T[::-1]), np.round([_distance(one) for one in weights], 12)))
        return weights[order], np.array(self._values)[order], np.array(self._means)[order]


def search(candidates: WeightCandidates, columns: int, advance: Callable[[], None] = lambda: None) -> None:
    """Measure candidates until no move improves the best of them.

    Parameters
    ----------
    candidates : WeightCandidates
        What is filled.
    columns : int
        The number of weights.
    advance : callable, default=nothing
        Called after every candidate of the grid.
    """
    if UNITS % columns:  # equal weights are not whole hundredths
        candidates.add(np.full(columns, 1 / columns))
    else:
        candidates.measure((UNITS // columns,) * columns)
    active: Sequence[int] = range(columns)
    if columns > MOST:
        alone = [_spread((UNITS,), (column,), columns) for column in active]
        means = {column: candidates.mean(candidates.measure(units)) for column, units in enumerate(alone)}
        active = sorted(sorted(active, key=lambda column: (-means[column], column))[:MOST])
    for units in grid(len(active)):
        candidates.measure(_spread(units, active, columns))
        advance()
    if columns == 2:
        return
    for here in candidates.best(_STARTS):
        _climb(candidates, here, active)
    best = candidates.best()[0]
    for units in around(tuple(best[column] for column in active)):
        candidates.measure(_spread(units, active, columns))


def _climb(candidates: WeightCandidates, here: tuple[int, ...], active: Sequence[int]) -> None:
    """Move weight between pairs of columns, in ever smaller steps, as long as that improves the mean."""
    for move in _MOVES:
        improved = True
        while improved:
            mean = candidates.mean(candidates.measure(here))
            tried = [_moved(here, move, one, other) for one, other in permutations(active, 2)]
            known = [(candidates.mean(candidates.measure(units)), units) for units in tried if units]
            best = max(known, default=(mean, here), key=lambda pair: pair[0])
            improved = best[0] > mean + TIE
            here = best[1] if improved else here


def grid_size(columns: int) -> int:
    """The number of candidates of the first grid."""
    return len(grid(min(columns, MOST)))


def around(units: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Candidates near these, always the same ones: normal steps, cut at 0 and rounded to the sum of the units."""
    if len(units) < 2:
        return []
    random, found = np.random.default_rng(0), []
    for reach in _REACH:
        for step in random.normal(scale=reach, size=(_AROUND, len(units))):
            near = np.maximum(np.array(units) + step, 0.0)
            near *= UNITS / near.sum()
            whole = np.floor(near).astype(np.int64)
            whole[np.argsort(whole - near, kind="stable")[: UNITS - int(whole.sum())]] += 1
            found.append(tuple(whole.tolist()))
    return found


def grid(columns: int) -> list[tuple[int, ...]]:
    """The candidates of the first grid."""
    steps = _GRID[columns]
    found = []
    for bars in combinations(range(steps + columns - 1), columns - 1):  # stars and bars
        ends = (-1, *bars, steps + columns - 1)
        found.append(tuple((ends[i + 1] - ends[i] - 1) * UNITS // steps for i in range(columns)))
    return found


def _spread(units: tuple[int, ...], active: Sequence[int], columns: int) -> tuple[int, ...]:
    """The weights of some columns among all, the others 0."""
    if len(units) == columns:
        return units
    found = [0] * columns
    for column, unit in zip(active, units, strict=True):
        found[column] = unit
    return tuple(found)


def _moved(units: tuple[int, ...], move: int, one: int, other: int) -> tuple[int, ...] | None:
    """The weights after a move from one column to another; None where there is too little to move."""
    if units[one] < move:
        return None
    found = list(units)
    found[one] -= move
    found[other] += move
    return tuple(found)


def _distance(weights: Vector) -> float:
    """The squared distance from equal weights."""
    return float(((weights - 1 / len(weights)) ** 2).sum())


def first_of_the_best(totals: Vector) -> int:
    """The place of the first value that no other exceeds by more than rounding; NaN never wins."""
    known = np.where(np.isnan(totals), -np.inf, totals)
    most = known.max()
    return int(np.argmax(known >= most - TIE * max(1.0, abs(most)))) if np.isfinite(most) else 0
