"""The rounds of AdaRank: choose a feature, add it, measure, weigh the lists anew; and the account of them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.rankers._feature_rankings import RankedLists

Vector = NDArray[np.float64]

# A phi above this would make alpha infinite, or so large that nothing else counts.
LARGEST_PHI = 1 - 1e-12

# Candidates whose phi differ by less are equally good: which is taken must not hang on the order of a sum.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Round:
    """What one round did, on lists with their ``share`` each; their measures ``before`` and after it (``values``)."""

    candidate: int
    alpha: float
    phi: float
    delta: float
    share: Vector
    before: Vector
    values: Vector


def least_gain(before: Vector, values: Vector, alpha: float, alone: Vector) -> float:
    """delta = min over lists of (measure after) - (measure before) - alpha (measure of the feature alone)."""
    return float((values - before - alpha * alone).min())


def boost(
    alone: Vector, weight: Vector, add: Callable[[int, float], Vector], *, features: int, repeats: bool = True
) -> Iterator[Round]:
    """Round after round: the candidate that is best on lists ranked badly so far, with a weight that says how good.

    Parameters
    ----------
    alone : measures of the candidates, candidates x lists, in [0, 1]
    weight : of the lists, above 0
    add : ``add(candidate, alpha)`` adds to the scores and returns the measures of the lists under them
    features : candidate c is feature c % features, negated in the second half
    repeats : whether a feature may be chosen again

    Notes
    -----
    Ends when phi was clipped; when the candidate of the round before came again and changed no measure, since the
    distribution is then what it was and nothing else would come until that feature outweighs all others; or when no
    feature is left.
    """
    before, chosen = np.zeros(len(weight)), -1
    free = np.full(len(alone), len(weight) > 0)
    weight = weight / weight.max(initial=0.0)
    while free.any():
        share = weight * np.exp(-before)
        share /= math.fsum(share)
        worth = np.where(free, alone @ share, -np.inf)
        candidate = int(np.argmax(worth >= worth.max() - _EQUAL))
        phi = max(0.0, 1.0 - math.fsum(share * (1.0 - alone[candidate])))  # exactly 1 where all lists are perfect
        clipped = min(phi, LARGEST_PHI)
        alpha = math.log((1 + clipped) / (1 - clipped)) / 2
        values = add(candidate, alpha)
        delta = least_gain(before, values, alpha, alone[candidate])
        yield Round(candidate, alpha, phi, delta, share, before, values)
        if phi > LARGEST_PHI or (candidate == chosen and np.array_equal(values, before)):
            return
        if not repeats:
            free[candidate % features :: features] = False
        before, chosen = values, candidate


class Row(NamedTuple):
    """One round in the history."""

    feature: int
    sign: int
    alpha: float
    phi: float
    delta: float
    train: float
    validation: float


@dataclass(frozen=True)
class Finished:
    """So many rounds are over; the one that would be returned now, by its number from 1, and the sums of alphas."""

    rounds: int
    best: int
    w: Vector
    last: Round


@dataclass(kw_only=True)
class Boosting:
    """A fit under way. ``finished`` is set once a round, by one assignment, and the rows are only added to.

    Parameters
    ----------
    lists, held : training and validation lists; without the second, or where the measure says nothing about it, the
        last round is returned
    alone : measures of every candidate on every training list, NaN where the measure says nothing
    factor : by which features are multiplied
    """

    lists: RankedLists
    held: RankedLists | None
    alone: Vector
    factor: Vector
    rows: list[Row] = field(default_factory=list)
    finished: Finished | None = None

    def __post_init__(self) -> None:
        self.told = ~np.isnan(self.alone).any(axis=0)
        self.alone = self.alone[:, self.told]

    def run(self, rounds: int, patience: int | None, repeats: bool, after: Callable[[], None]) -> None:
        """Rounds until one of the reasons to stop; ``after`` is called when one is over."""
        features = len(self.factor)
        w, top, waited, best = np.zeros(features), -math.inf, 0, None
        scores = np.zeros(len(self.lists.rows))
        on_held = np.zeros(0 if self.held is None else len(self.held.rows))

        def add(candidate: int, alpha: float) -> Vector:
            feature, signed = self._meant(candidate, alpha)
            _add(scores, self.lists, feature, signed * self.factor[feature])
            return self.lists.measured(scores)[self.told]

        weight = self.lists.weight[self.told]
        for one in boost(self.alone, weight, add, features=features, repeats=repeats):
            feature, signed = self._meant(one.candidate, one.alpha)
            validation = math.nan
            if self.held is not None:
                _add(on_held, self.held, feature, signed * self.factor[feature])
                validation = self.held.mean(self.held.measured(on_held))
            train = math.fsum(weight * one.values) / math.fsum(weight)
            w = w.copy()
            w[feature] += signed
            sign = 1 if one.candidate < features else -1
            self.rows.append(Row(feature, sign, one.alpha, one.phi, one.delta, train, validation))
            done = len(self.rows)
            watched = train if math.isnan(validation) else validation
            waited = 0 if watched > top else waited + 1
            top = max(top, watched)
            if best is None or waited == 0 or math.isnan(validation):
                best = Finished(done, done, w, one)
            self.finished = replace(best, rounds=done)
            after()
            if done == rounds or waited == patience:
                return

    def _meant(self, candidate: int, alpha: float) -> tuple[int, float]:
        """(feature, alpha with its sign) of a candidate."""
        features = len(self.factor)
        return candidate % features, alpha if candidate < features else -alpha


def _add(scores: Vector, lists: RankedLists, feature: int, weight: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        scores += weight * lists.column(feature)
    if not np.isfinite(scores).all():
        raise RankwiseError(
            f"feature {feature} times its weight {weight:g} goes beyond the largest number: scale the features"
        )
