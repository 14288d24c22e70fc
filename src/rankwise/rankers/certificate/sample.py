"""The lists that a certificate is made from: scores, what the measure says of each, and the constants of bounds."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.fingerprints import same_content
from rankwise.data.queries import Queries
from rankwise.guarantees._bound import Precondition, refuse_unless
from rankwise.losses._base import Loss, PreparedLists, loss_lists
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.solvers.batch.row_blocks import largest_radius

Vector = NDArray[np.float64]

SCALED = Precondition("every feature of every list was scaled to [0, 1] within its list, as lists to come are", True)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the user knows of all lists to come, and chose before seeing any; None where nothing was declared."""

    row_radius: float | None = None
    longest: int | None = None
    first_ball: float | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number is not None:
                refuse_unless("certificate", above=0, **{name: number})


@dataclass(frozen=True, kw_only=True)
class ScoredSample:
    """Judged lists with a ranker's scores."""

    queries: Queries
    scores: Vector
    n_jobs: int | None

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """For each query the number of its group: queries of one group repeat each other."""
        return same_content(self.queries, n_jobs=self.n_jobs)

    @property
    def no_repeats(self) -> Precondition:
        """What averages over samples of independent queries rest on."""
        return Precondition("no query repeats another one", len(set(self.group.tolist())) == len(self.group))

    @property
    def query_weight(self) -> Vector:
        """The weight of each list."""
        return np.ones(len(self.queries)) if self.queries.weight is None else self.queries.weight

    @property
    def count_the_same(self) -> Precondition:
        """Bounds for means over independent lists are for lists that all count the same."""
        kept = self.query_weight[self.query_weight > 0]
        return Precondition("all lists count the same", not len(kept) or bool((kept == kept[0]).all()))

    def measured(self, measure: Measure, ties: Ties) -> Vector:
        """The measure of every list; NaN where it says nothing or the list has weight 0."""
        rows = None if self.queries.is_grouped else self.queries.rows
        lists = ScoredLists(self.scores, self.queries.labels(), self.queries.start, rows)
        values = measure_lists([measure], lists, ties=ties, n_jobs=self.n_jobs)[0]
        return np.where(self.query_weight > 0, values, math.nan)

    def losses(self, loss: Loss) -> Vector:
        """The loss of every list."""
        rows = None if self.queries.is_grouped else self.queries.rows
        prepared = PreparedLists.of(loss, self.queries.labels(), self.queries.start, rows)
        return loss_lists(prepared, self.scores, n_jobs=self.n_jobs)[0]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What holds for every list to come, or is assumed to.

    Attributes
    ----------
    radius : of every list around 0 or a point of its own
    measured : the largest of the sample, around 0 or the list's mean
    m : documents of the longest list
    first_ball : W_0
    assumed : which of radius and m are only the sample's, in words; empty where none is
    conditions : what is known about them
    """

    radius: float
    measured: float
    m: int
    first_ball: float
    assumed: str
    conditions: tuple[Precondition, ...]

    @classmethod
    def of(cls, queries: Queries, declared: Declared, known_radius: float | None) -> "Constants":
        """From what was declared, what the ranker was told, what scaling promises, or the sample, in this order."""
        measured, longest = largest_radius(queries), int(queries.sizes.max(initial=1))
        radius, conditions = declared.row_radius if declared.row_radius is not None else known_radius, []
        scaling = queries.scaling
        if radius is not None:
            found = min(measured, _around_middles(queries))
            if found > radius * (1 + 1e-9):
                raise RankwiseError(f"row_radius={radius:g} holds for every list: found one of radius {found:g}")
            conditions.append(Precondition(f"row_radius={radius:g} was declared, and no list contradicts it", True))
        elif scaling is not None and (scaling.how, scaling.per) == ("minmax", "query"):
            radius = math.sqrt(queries.n_features) / 2  # around the middle of the cube
            conditions.append(SCALED)
        if declared.longest is not None and longest > declared.longest:
            raise RankwiseError(
                f"longest={declared.longest:,} holds for every list: found one of {longest:,} documents"
            )
        assumed = [name for name, known in (("radius", radius), ("length", declared.longest)) if known is None]
        radius = measured if radius is None else radius
        return cls(
            radius=radius,
            measured=measured,
            m=longest if declared.longest is None else declared.longest,
            first_ball=declared.first_ball or (1 / radius if radius > 0 else 1.0),
            assumed=" and ".join(assumed),
            conditions=tuple(conditions),
        )


def _around_middles(queries: Queries) -> float:
    """The largest radius of a list around the middle of the smallest box that holds it."""
    found = 0.0
    for query in map(int, np.flatnonzero(queries.sizes)):
        rows = queries.X[queries.rows_of(query)].astype(np.float64)
        middle = (rows.min(axis=0) + rows.max(axis=0)) / 2
        found = max(found, float(np.linalg.norm(rows - middle, axis=1).max()))
    return found
