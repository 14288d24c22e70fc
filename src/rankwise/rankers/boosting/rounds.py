"""AdaRank's rounds: :func:`boost` is the algorithm, and :class:`Boosting` a fit under way.

:class:`Boosting` adds the weak rankers of the rounds to the scores, measures training and validation queries, and
stops. The weak rankers are those of :mod:`rankwise.rankers.boosting.weak_rankers`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.boosting.weak_rankers import Bounded, WeakRankers, type_one

Vector = NDArray[np.float64]

# What is known of every round, besides the weak ranker: columns of the history.
NUMBERS = ("alpha", "phi", "delta", "mass", "train", "validation")
# A larger phi would make alpha infinite, or so large that no other weak ranker counts.
LARGEST_PHI = 1 - 1e-12


@dataclass(frozen=True)
class BoostingRound:
    """One round: the share of each query in the distribution, and its measure before and after (``values``).

    ``alone`` is the measure of every query by the weak ranker, and ``mass`` the mean over queries of the slope of the
    type one bound, see :func:`~rankwise.rankers.boosting.weak_rankers.type_one`.
    """

    candidate: int
    alpha: float
    phi: float
    delta: float
    mass: float
    share: Vector
    alone: Vector
    before: Vector
    values: Vector


@dataclass(frozen=True)
class Finished:
    """The number of finished rounds, and the best of them: its number from 1, and its record."""

    rounds: int
    best: int
    last: BoostingRound


@dataclass(kw_only=True)
class Boosting:
    """A fit under way.

    A Ctrl-C may come at any moment: ``rows`` only grows, and a round counts once ``finished`` is assigned.

    Parameters
    ----------
    train : RankedLists
        The training queries.
    held : RankedLists or None
        The validation queries. Without them, or if the measure is undefined for all of them, the last round is
        returned.
    weak : WeakRankers
        The weak rankers.
    defined : ndarray of bool, shape (n_queries,)
        The training queries for which the measure is defined; only these count.
    bound : {"exp", "logistic"}
        The type one bound that the rounds lower.
    rows : list of dict
        The rounds so far, by column of the history.
    finished : Finished or None
        What :meth:`run` has reached.
    """

    train: RankedLists
    held: RankedLists | None
    weak: WeakRankers
    defined: NDArray[np.bool_]
    bound: Bounded
    rows: list[dict[str, float]] = field(default_factory=list)
    finished: Finished | None = None

    def run(self, rounds: int, patience: int | None, after: Callable[[], None]) -> None:
        """Run rounds until one of the reasons to stop applies, and call ``after`` at the end of each."""
        top, waited, best = -math.inf, 0, None
        scores = np.zeros(len(self.train.rows))
        held_scores = np.zeros(0 if self.held is None else len(self.held.rows))

        def add(candidate: int, alpha: float) -> Vector:
            self.weak.add(scores, candidate, alpha, False)
            return self.train.measured(scores)[self.defined]

        weight = self.train.weight[self.defined]
        for one in boost(self.weak, weight, add, bound=self.bound):
            validation = math.nan
            if self.held is not None:
                self.weak.add(held_scores, one.candidate, one.alpha, True)
                validation = weighted_mean(self.held.measured(held_scores), self.held.weight)
            train = weighted_mean(one.values, weight)
            told = dict(zip(self.weak.columns, self.weak.told(one.candidate), strict=True))
            numbers = (one.alpha, one.phi, one.delta, one.mass, train, validation)
            self.rows.append({**told, **dict(zip(NUMBERS, numbers, strict=True))})
            done = len(self.rows)
            # without a validation measure the last round is returned, but patience still watches the training measure
            watched = train if math.isnan(validation) else validation
            waited = 0 if watched > top else waited + 1
            top = max(top, watched)
            if best is None or waited == 0 or math.isnan(validation):
                best = Finished(done, done, one)
            self.finished = replace(best, rounds=done)
            after()
            if done == rounds or waited == patience:
                return


def boost(
    weak: WeakRankers, weight: Vector, add: Callable[[int, float], Vector], *, bound: Bounded = "exp"
) -> Iterator[BoostingRound]:
    """Take round after round a weak ranker that is good on the queries that are ranked badly so far.

    Parameters
    ----------
    weak : WeakRankers
        The weak rankers.
    weight : ndarray of shape (n_queries,)
        The weights of the queries, above 0.
    add : callable
        ``add(candidate, alpha)`` adds to the scores and returns the measure of every query under them.
    bound : {"exp", "logistic"}, default="exp"
        The type one bound whose slope weights the queries.

    Yields
    ------
    BoostingRound
        The round that has just been added.

    Notes
    -----
    The rounds end if phi had to be clipped, or if no weak ranker is left. They also end if the weak ranker of the round
    before came again and changed no measure: the distribution is then what it was, and no other weak ranker would come
    until that one outweighs all others.
    """
    before, chosen = np.zeros(len(weight)), -1
    weight = weight / weight.max(initial=0.0)  # first by the largest, so that no sum overflows
    while True:
        share = weight * type_one(bound, before)
        total = math.fsum(share)
        share /= total
        candidate = weak.choose(share)
        if candidate is None:
            return
        alone = weak.measured(candidate)
        phi = max(0.0, 1.0 - math.fsum(share * (1.0 - alone)))  # exactly 1 if all queries are perfect
        clipped = min(phi, LARGEST_PHI)
        alpha = math.log((1 + clipped) / (1 - clipped)) / 2
        values = add(candidate, alpha)
        delta = least_gain(before, values, alpha, alone)
        yield BoostingRound(candidate, alpha, phi, delta, total / math.fsum(weight), share, alone, before, values)
        if phi > LARGEST_PHI or (candidate == chosen and np.array_equal(values, before)):
            return
        before, chosen = values, candidate


def least_gain(before: Vector, values: Vector, alpha: float, alone: Vector) -> float:
    """delta = min over queries of (measure after) - (measure before) - alpha (measure of the weak ranker alone)."""
    return float((values - before - alpha * alone).min())
