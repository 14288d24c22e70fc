r"""Where to cut lists: a fixed sequence of cuts, each tested by bets, up to the first that is not shown.

A cut keeps the documents with a score of at least t, or the first k. The cuts of a sequence are fixed before the
calibration queries are seen, and their order begins where the demand holds trivially: with everything kept, or with
nothing. Each is tested at the whole level delta, and the last one before the first that fails is the cut-off. No
correction is paid, however many cuts there are (:func:`~rankwise.guarantees.holdout.testing.count_until_failure`).

*Which cuts.* By rank, all k. By score, all numbers of nine binary digits, 256 between each power of two and the next:

.. math:: \{0\} \cup \{\pm (1 + j / 256) \, 2^e : 0 \le j < 256\}

They are fixed before any data, so no scores have to be set aside for a grid. Many of them keep the same documents of
the calibration set, have the same test, and are tested at once. Scores that share a large constant are divided too
coarsely by these numbers; ``grid`` names others.

References
----------
A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei (2021). Learn then test: calibrating predictive algorithms to
achieve risk control. arXiv:2110.01052.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankwise._arrays import Numbers, Vector
from rankwise.guarantees.holdout.betting import Readings, fix_sizes, log_capital
from rankwise.guarantees.holdout.demands import KeptValues
from rankwise.guarantees.holdout.testing import count_until_failure, shows_above

# Numbers of the sequence between a power of two and the next.
PER_OCTAVE = 256


def floor_to_grid(x: Vector) -> Vector:
    """The largest numbers of nine binary digits that are not above x.

    Examples
    --------
    >>> floor_to_grid(np.array([1.0, 0.437, -0.437]))
    array([ 1.        ,  0.43652344, -0.4375    ])
    """
    digits, power = np.frexp(x)
    return np.asarray(np.ldexp(np.floor(digits * 2 * PER_OCTAVE) / (2 * PER_OCTAVE), power))


def next_on_grid(x: Vector) -> Vector:
    """The smallest numbers of nine binary digits that are above x."""
    return -floor_to_grid(np.nextafter(-np.asarray(x, dtype=np.float64), -np.inf))


@dataclass(frozen=True)
class CutSequence:
    """A sequence of cuts, and when each document of the calibration set goes, or comes.

    Attributes
    ----------
    falling : bool
        Whether it begins with everything kept, and documents go; otherwise it begins with nothing, and they come.
    cuts : ndarray, shape (n_cuts,)
        The first cut of each step: a threshold on scores or a number of documents. All cuts from this one to the next
        step keep the same documents.
    turn : ndarray of int64, shape (n_documents,)
        The step with which a document goes, or comes; n_cuts for those that never do.
    query : ndarray of int64, shape (n_documents,)
        The query of each document.
    sizes : ndarray of int64, shape (n_queries,)
        Documents per query.
    by_rank : bool
        Whether a cut is a number of documents.
    exact : bool
        Whether cuts between two steps are none of the sequence, because a grid was given.
    """

    falling: bool
    cuts: Vector
    turn: Numbers
    query: Numbers
    sizes: Numbers
    by_rank: bool = False
    exact: bool = False

    @classmethod
    def of(
        cls, scores: Vector, query: Numbers, sizes: Numbers, *, falling: bool, grid: Vector | None = None
    ) -> "CutSequence":
        """Cuts by score.

        Parameters
        ----------
        scores : ndarray, shape (n_documents,)
            The scores.
        query : ndarray of int64, shape (n_documents,)
            The query of each document.
        sizes : ndarray of int64, shape (n_queries,)
            Documents per query.
        falling : bool
            Whether it begins with everything kept.
        grid : ndarray, default=None
            The thresholds; None takes all numbers of nine binary digits.

        Returns
        -------
        CutSequence
            The sequence.
        """
        if grid is not None:
            cuts = np.unique(grid)
            turn = np.searchsorted(cuts, scores, side="right")  # the first threshold above the score
            if not falling:  # the last threshold that the score reaches, counted from the largest
                cuts, turn = cuts[::-1], np.where(turn > 0, len(cuts) - turn, len(cuts))
            return cls(falling, cuts, turn, query, sizes, exact=True)
        if falling:
            cuts, turn = np.unique(next_on_grid(scores), return_inverse=True)
        else:
            cuts, turn = np.unique(-floor_to_grid(scores), return_inverse=True)
            cuts = -cuts
        return cls(falling, cuts, turn.reshape(-1), query, sizes)

    @classmethod
    def of_ranks(cls, sizes: Numbers, *, falling: bool, grid: Vector | None = None) -> "CutSequence":
        """Cuts by rank: documents are in ranked order, query after query; other parameters as for :meth:`of`."""
        query, longest = np.repeat(np.arange(len(sizes)), sizes), int(sizes.max(initial=1))
        rank = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        found = cls.of(-rank.astype(float), query, sizes, falling=falling, grid=-np.arange(longest, 0, -1.0))
        if grid is not None:
            found = cls.of(-rank.astype(float), query, sizes, falling=falling, grid=-grid)
        return cls(falling, -found.cuts, found.turn, query, sizes, by_rank=True, exact=grid is not None)

    def kept(self, step: int) -> Numbers:
        """How many documents each query keeps at a step; step -1 is the beginning."""
        turned = np.bincount(self.query[self.turn <= step], minlength=len(self.sizes))
        return np.asarray(self.sizes - turned if self.falling else turned)

    def values_from(self, step: int, values: KeptValues) -> Iterator[Vector]:
        """The values of all queries at this step and at each one after it; the same array, changed in place."""
        order = np.argsort(self.turn, kind="stable")
        ends = np.searchsorted(self.turn[order], np.arange(step + 1, len(self.cuts) + 1))
        kept, move = self.kept(step), -1 if self.falling else 1
        now = values.at(kept)
        yield now
        for first, last in pairwise(ends.tolist()):
            turned = self.query[order[first:last]]
            np.add.at(kept, turned, move)
            now[turned] = values.values[values.first[turned] + kept[turned]]
            yield now

    @property
    def beginning(self) -> float:
        """The cut of the beginning: -inf, or a number of inf, keeps everything, and inf, or a number of 0, nothing."""
        everything, nothing = (math.inf, 0.0) if self.by_rank else (-math.inf, math.inf)
        return everything if self.falling else nothing

    def cut_at(self, step: int) -> float:
        """The last cut of the sequence that keeps the documents of this step; step -1 keeps those of the beginning."""
        if self.by_rank or self.exact:
            return float(self.cuts[step]) if step >= 0 else self.beginning
        if step + 1 == len(self.cuts):
            return math.inf if self.falling else -math.inf
        edge = self.cuts[step + 1 : step + 2]
        return float(-next_on_grid(-edge)[0] if self.falling else next_on_grid(edge)[0])


@lru_cache(maxsize=16)
def _sizes(n: int, level: float) -> NDArray[np.float64]:
    """The fixed sizes of bets, which thousands of cuts share."""
    return fix_sizes(n, level)[:, None]


@dataclass(frozen=True)
class DrawnQueries:
    """What is known of the queries of a calibration set as draws.

    Attributes
    ----------
    counts : ndarray of bool, shape (n_queries,)
        Whether a query counts: those of another group, or of weight 0, do not.
    group : ndarray of int64, shape (n_queries,), default=None
        Queries of one number have the same content; None if all are distinct.
    seen : ndarray of bool, shape (n_queries,), default=None
        Whether the content of each query was seen in training.
    """

    counts: NDArray[np.bool_]
    group: Numbers | None = None
    seen: NDArray[np.bool_] | None = None

    def readings(self, values: Vector) -> Readings:
        """The losses, 1 minus the values, as draws."""
        return Readings.of(np.where(self.counts, 1 - values, np.nan), self.group, self.seen)

    def show(self, values: Vector, goal: float, level: float) -> bool:
        """Whether bets at this level show that the mean of the values is above the goal."""
        return shows_above(np.where(self.counts, values, np.nan), goal, level, group=self.group, seen=self.seen)

    def show_by_fixed_bets(self, values: Vector, goal: float, level: float) -> bool:
        """Whether half of the capital, bet in fixed sizes, shows it alone; it is quick, and grows with each value."""
        known = values[self.counts & ~np.isnan(values)]
        if self.group is not None or self.seen is not None or not len(known):
            return False
        capital = log_capital(known, _sizes(len(known), level), goal)
        return bool(np.logaddexp.reduce(capital) - math.log(2 * len(capital)) >= math.log(1 / level))

    def rough_lower_end(self, values: Vector, level: float) -> float:
        """The largest mean that is refuted at this level, rounded down to 2^-14."""
        readings, low, high = self.readings(values), 0.0, 1.0
        if not len(readings.sure):
            return low
        capital = readings.capital(level)
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (middle, high) if capital(middle) >= math.log(1 / level) else (low, middle)
        return low


def count_shown_cuts(sequence: CutSequence, values: KeptValues, drawn: DrawnQueries, level: float) -> int:
    """The number of steps that are shown, the beginning included, before the first that is not.

    Parameters
    ----------
    sequence : CutSequence
        The cuts.
    values : KeptValues
        The values of the demand.
    drawn : DrawnQueries
        The queries as draws.
    level : float
        The level of each test.

    Returns
    -------
    int
        0 if not even the beginning is shown.

    Notes
    -----
    Where values only fall along the sequence, the steps that bets of fixed sizes show are the first ones, because their
    capital grows with each value. The last of them is found by bisection. That saves time, and changes no answer.
    """
    goal = values.demand.goal

    def shown_at_once(now: Vector) -> bool:
        return drawn.show_by_fixed_bets(now, goal, level)

    first = -1
    if sequence.falling and values.grows:
        low, high = -2, len(sequence.cuts)  # shown at once, and not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if shown_at_once(values.at(sequence.kept(middle))) else (low, middle)
        first = low + 1
    if first == len(sequence.cuts):
        return first + 1
    along = sequence.values_from(first, values)
    return first + 1 + count_until_failure(shown_at_once(now) or drawn.show(now, goal, level) for now in along)
