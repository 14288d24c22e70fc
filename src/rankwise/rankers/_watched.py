"""Training and validation documents while a ranker grows by steps: their scores, and the measure after every round."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.data.queries import Queries
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Watched:
    """The scores of training and validation documents, and the measure on either set after every round.

    ``score`` holds those at the places of ``rows``, which are also those of ``bins``; rows of the validation set are
    counted on from those of the training set, so that one pass serves both.
    """

    rows: NDArray[np.int64]
    bins: NDArray[Any]
    weight: tuple[Vector, Vector]
    measure: Measure
    lists: ScoredLists
    score: Vector

    @classmethod
    def of(
        cls, places: NDArray[np.int64], bins: NDArray[Any], train: Queries, held: Queries | None, measure: Measure
    ) -> Self:
        sets = [train] if held is None else [train, held]
        first = [0, train.n_documents]
        grouped = all(part.is_grouped for part in sets)
        lists = ScoredLists(
            np.zeros(sum(part.n_documents for part in sets)),
            np.concatenate([part.labels() for part in sets]),
            np.concatenate([[0], *(part.start[1:] + at for part, at in zip(sets, first, strict=False))]),
            None if grouped else np.concatenate([part.rows + at for part, at in zip(sets, first, strict=False)]),
        )
        weight = [np.ones(len(part)) if part.weight is None else part.weight for part in sets]
        rows = places if held is None else np.append(places, train.n_documents + np.arange(held.n_documents))
        return cls(
            rows, bins, (weight[0], np.concatenate([np.empty(0), *weight[1:]])), measure, lists, np.zeros(len(rows))
        )

    def add(self, feature: int, cut: int, alpha: float, n_jobs: int | None) -> tuple[float, float]:
        """Take a step; the mean measure of either set after it, as :func:`mean_measure` has it."""
        from rankwise._kernels.thresholds import add_step

        add_step(self.bins[feature], cut, alpha, self.score)
        self.lists.scores[self.rows] = self.score
        values = measure_lists([self.measure], self.lists, n_jobs=n_jobs)[0]
        train = len(self.weight[0])
        return _mean(values[:train], self.weight[0]), _mean(values[train:], self.weight[1])


def _mean(values: Vector, weight: Vector) -> float:
    """The mean of what is a number, by weights."""
    counts = ~np.isnan(values)
    total = math.fsum(weight[counts])
    return math.fsum(weight[counts] * values[counts]) / total if total else math.nan
