"""What `evaluate` returns: numbers with their uncertainty, ready to print, plot and keep."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._tables import Table
from rankwise.evaluation.intervals import How, interval, mean
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.parse import parse


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of some measures on some queries.

    Attributes
    ----------
    measures, titles : the measures and their column titles
    values : measures x queries; NaN where a query was skipped
    empty : measures x queries; where the measure is 0/0, so that the value was skipped or given by ``empty=``
    mean : dict of title -> (weighted) mean over the queries that count, an exactly rounded sum
    per_query : table with one row a query
    skipped, given : dicts of title -> queries left out, and queries whose value was stated by ``empty=``
    """

    measures: tuple[Measure, ...]
    titles: tuple[str, ...]
    values: NDArray[np.float64]
    empty: NDArray[np.bool_]
    qid: list[Any]
    weight: NDArray[np.float64] | None = None
    unweighted_empty: bool = False
    random_state: Any = 0
    lists: ScoredLists | None = None

    @cached_property
    def mean(self) -> dict[str, float]:
        return {
            title: self._mean(row, empty)
            for title, row, empty in zip(self.titles, self.values, self.empty, strict=True)
        }

    @cached_property
    def per_query(self) -> Table:
        return Table({"qid": self.qid, **dict(zip(self.titles, self.values, strict=True))})

    @property
    def skipped(self) -> dict[str, int]:
        return dict(zip(self.titles, np.isnan(self.values).sum(axis=1).tolist(), strict=True))

    @property
    def given(self) -> dict[str, int]:
        return dict(zip(self.titles, (self.empty & ~np.isnan(self.values)).sum(axis=1).tolist(), strict=True))

    def interval(self, level: float = 0.95, how: How = "bootstrap") -> dict[str, tuple[float, float]]:
        """Confidence interval of every mean: how sure the sample of queries makes us, by bootstrap or Student's t."""
        return {
            title: interval(row, level, how, weight=self.weight, random_state=self.random_state)
            for title, row in zip(self.titles, self.values, strict=True)
        }

    def tie_range(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest mean over all orders of equal scores: a constant scorer shows a wide range."""
        if self.lists is None:
            raise RankwiseError("the range over ties needs the scores, and this evaluation was made without them")
        low = measure_lists(self.measures, self.lists, ties="pessimistic")
        high = measure_lists(self.measures, self.lists, ties="optimistic")
        fixed = self.empty  # degenerate whatever the order
        return {
            title: (
                self._mean(np.where(fixed[row], self.values[row], low[row]), fixed[row]),
                self._mean(np.where(fixed[row], self.values[row], high[row]), fixed[row]),
            )
            for row, title in enumerate(self.titles)
        }

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        """Per-query values of one measure, by title or by any spelling of it."""
        wanted = None if measure in self.titles else parse(measure)
        for row, (title, evaluated) in enumerate(zip(self.titles, self.measures, strict=True)):
            if measure == title or wanted == evaluated:
                return np.asarray(self.values[row])
        raise RankwiseError(f"{measure} was not evaluated; there are: {', '.join(self.titles)}")

    def table(self, level: float = 0.95, how: How = "bootstrap") -> Table:
        """One row a measure: mean, interval, queries that count, skipped, given."""
        bounds = self.interval(level, how)
        counted = [len(self.qid) - self.skipped[title] for title in self.titles]
        return Table(
            {
                "measure": list(self.titles),
                "mean": [self.mean[title] for title in self.titles],
                "low": [bounds[title][0] for title in self.titles],
                "high": [bounds[title][1] for title in self.titles],
                "queries": counted,
                "skipped": list(self.skipped.values()),
                "given": list(self.given.values()),
            }
        )

    def to_dict(self, level: float = 0.95, how: How = "bootstrap") -> dict[str, Any]:
        """Everything as plain values, ready for JSON (NaN becomes None)."""
        bounds = self.interval(level, how)
        return {
            "level": level,
            "measures": {
                title: {
                    "spelling": repr(measure),
                    "mean": _plain(self.mean[title]),
                    "interval": [_plain(bound) for bound in bounds[title]],
                    "queries": len(self.qid) - self.skipped[title],
                    "skipped": self.skipped[title],
                    "given": self.given[title],
                }
                for title, measure in zip(self.titles, self.measures, strict=True)
            },
            "per_query": {
                "qid": [name if isinstance(name, (int, float, str)) else str(name) for name in self.qid],
                **{
                    title: [_plain(value) for value in row] for title, row in zip(self.titles, self.values, strict=True)
                },
            },
        }

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _mean(self, row: NDArray[np.float64], empty: NDArray[np.bool_]) -> float:
        if self.unweighted_empty and self.weight is not None:
            # LightGBM adds an empty query's value without its weight, though the weight is in the divisor
            row = np.where(empty & (self.weight > 0), row / np.where(self.weight > 0, self.weight, 1), row)
        return mean(row, self.weight)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
