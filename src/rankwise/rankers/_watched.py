"""Training and validation documents while a ranker grows by steps: their scores, and the measure after every round."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.data.queries import Queries
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, Told, measure_lists
from rankwise.rankers._choosing import weighted_mean

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
    measure: Told
    lists: ScoredLists
    score: Vector

    @classmethod
    def of(
        cls, places: NDArray[np.int64], bins: NDArray[Any], train: Queries, held: Queries | None, measure: Measure
    ) -> Self:
        sets = [train] if held is None else [train, held]
        shifts = [0, train.n_documents][: len(sets)]
        rows = [part.rows + shift for part, shift in zip(sets, shifts, strict=True)]
        starts = [part.start[1:] + shift for part, shift in zip(sets, shifts, strict=True)]
        lists = ScoredLists(
            np.zeros(sum(map(len, rows))),
            np.concatenate([part.labels() for part in sets]),
            np.concatenate([[0], *starts]),
            None if all(part.is_grouped for part in sets) else np.concatenate(rows),
        )
        if held is not None:
            places = np.append(places, train.n_documents + np.arange(held.n_documents))
        weight = (_weights(train), np.empty(0) if held is None else _weights(held))
        told = Told.of(measure, lists.labels, lists.start)
        return cls(places, bins, weight, told, lists, np.zeros(len(places)))

    def add(self, feature: int, cut: int, alpha: float, n_jobs: int | None) -> tuple[float, float]:
        """Take a step; the mean measure of either set after it, as :func:`mean_measure` has it."""
        from rankwise._kernels.thresholds import add_step

        add_step(self.bins[feature], cut, alpha, self.score)
        self.lists.scores[self.rows] = self.score
        values = measure_lists([self.measure], self.lists, n_jobs=n_jobs)[0]
        train = len(self.weight[0])
        return weighted_mean(values[:train], self.weight[0]), weighted_mean(values[train:], self.weight[1])


def _weights(queries: Queries) -> Vector:
    return np.ones(len(queries)) if queries.weight is None else queries.weight
