"""What `evaluate` returns: numbers with their uncertainty, ready to print, plot and keep."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._tables import Table
from rankwise.evaluation.intervals import How, interval, mean
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.conventions import convention, settle

Value = TypeVar("Value")


class ByMeasure(dict[str, Value]):
    """A dict of column title -> value in which any other spelling of a measure finds it too."""

    def __init__(self, evaluation: "Evaluation", values: Iterable[Value]) -> None:
        super().__init__(zip(evaluation.titles, values, strict=True))
        self._evaluation = evaluation

    def __missing__(self, spelling: Any) -> Value:
        return self[self._evaluation.title_of(spelling)]

    def __reduce__(self) -> tuple[Any, ...]:
        return ByMeasure, (self._evaluation, list(self.values()))


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of some measures on some queries.

    Attributes
    ----------
    measures, titles : the measures and their column titles
    values : measures x queries; NaN where a query was skipped
    empty : measures x queries; where the measure is 0/0, so that the value was skipped or given by ``empty=``
    mean : dict of title -> (weighted) mean over the queries that count, an exactly rounded sum; as in all dicts
        here, other spellings of a measure ("MAP", "ndcg@10") find it as well
    per_query : table with one row a query
    skipped, given : dicts of title -> queries left out, and queries whose value was stated by ``empty=``
    """

    measures: tuple[Measure, ...]
    titles: tuple[str, ...]
    values: NDArray[np.float64]
    empty: NDArray[np.bool_]
    qid: list[Any]
    weight: NDArray[np.float64] | None = None
    like: str | None = None
    rel: float | None = None
    random_state: Any = 0
    lists: ScoredLists | None = None

    def __post_init__(self) -> None:
        shape = (len(self.measures), len(self.qid))
        for name in ("values", "empty"):
            found = getattr(self, name)
            if not isinstance(found, np.ndarray) or found.shape != shape:
                raise DataError(
                    f"{name} of an evaluation is an array, measures x queries, of shape {shape}: found "
                    f"{getattr(found, 'shape', type(found).__name__)}"
                )
        if len(self.titles) != len(self.measures) or (self.weight is not None and np.shape(self.weight) != shape[1:]):
            raise DataError("an evaluation has one title for each measure, and one weight for each query or none")

    @property
    def mean(self) -> ByMeasure[float]:
        return ByMeasure(self, map(self._mean, self.values, self.empty))

    @cached_property
    def per_query(self) -> Table:
        return Table({"qid": self.qid, **dict(zip(self.titles, self.values, strict=True))})

    @property
    def skipped(self) -> ByMeasure[int]:
        return ByMeasure(self, np.isnan(self.values).sum(axis=1).tolist())

    @property
    def given(self) -> ByMeasure[int]:
        return ByMeasure(self, (self.empty & ~np.isnan(self.values)).sum(axis=1).tolist())

    def interval(self, level: float = 0.95, how: How = "bootstrap") -> ByMeasure[tuple[float, float]]:
        """Confidence interval of every mean: how sure the sample of queries makes us, by bootstrap or Student's t."""
        options: dict[str, Any] = {"weight": self.weight, "random_state": self.random_state}
        return ByMeasure(self, (interval(row, level, how, **options) for row in self.values))

    def tie_range(self) -> ByMeasure[tuple[float, float]]:
        """Smallest and largest mean over all orders of equal scores: a constant scorer shows a wide range."""
        if self.lists is None:
            raise RankwiseError("the range over ties needs the scores, and this evaluation was made without them")
        ends = []
        for ties in ("pessimistic", "optimistic"):
            values = measure_lists(self.measures, self.lists, ties=ties)
            settled = np.where(self.empty, self.values, values)  # a query is empty whatever the order
            ends.append(map(self._mean, settled, self.empty))
        return ByMeasure(self, zip(*ends, strict=True))

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        """Per-query values of one measure, by title or by any spelling of it."""
        return np.asarray(self.values[self.titles.index(self.title_of(measure))])

    def title_of(self, measure: str | Measure) -> str:
        """The column title of a measure that was evaluated, from any spelling of it."""
        if measure in self.titles:
            return str(measure)
        _, (wanted,), _ = settle(measure, self.like, self.rel)
        if wanted not in self.measures:
            raise RankwiseError(f"{measure} was not evaluated; there are: {', '.join(self.titles)}")
        return self.titles[self.measures.index(wanted)]

    def table(self, level: float = 0.95, how: How = "bootstrap") -> Table:
        """One row a measure: mean, interval, queries that count, skipped, given."""
        low, high = zip(*self.interval(level, how).values(), strict=True)
        skipped = list(self.skipped.values())
        return Table(
            {
                "measure": list(self.titles),
                "mean": list(self.mean.values()),
                "low": low,
                "high": high,
                "queries": [len(self.qid) - count for count in skipped],
                "skipped": skipped,
                "given": list(self.given.values()),
            }
        )

    def to_dict(self, level: float = 0.95, how: How = "bootstrap") -> dict[str, Any]:
        """Everything as plain values, ready for JSON (NaN becomes None)."""
        rows = zip(self.table(level, how), self.measures, strict=True)
        per_query = {title: list(map(_plain, row)) for title, row in zip(self.titles, self.values, strict=True)}
        return {
            "level": level,
            "measures": {
                row["measure"]: {
                    "spelling": repr(measure),
                    "mean": _plain(row["mean"]),
                    "interval": [_plain(row["low"]), _plain(row["high"])],
                    **{count: row[count] for count in ("queries", "skipped", "given")},
                }
                for row, measure in rows
            },
            "per_query": {
                "qid": [name if isinstance(name, (int, float, str)) else str(name) for name in self.qid],
                **per_query,
            },
        }

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _mean(self, row: NDArray[np.float64], empty: NDArray[np.bool_]) -> float:
        if self.weight is not None and self.like is not None and convention(self.like).unweighted_empty:
            # LightGBM adds an empty query's value without its weight, though the weight is in the divisor
            row = np.where(empty & (self.weight > 0), row / np.where(self.weight > 0, self.weight, 1), row)
        return mean(row, self.weight)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
