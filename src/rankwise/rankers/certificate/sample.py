"""The sample that a certificate is computed from, and the constants of its bounds.

:class:`ScoredSample` holds judged queries with a ranker's scores, :class:`Declared` what the user declares about future
queries, and :class:`Constants` combines the two into the radius and the length that bounds use.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.fingerprints import same_content
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import largest_radius
from rankwise.guarantees._bound import Precondition, refuse_unless
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import ScoredLists, measure_lists

Vector = NDArray[np.float64]

SCALED = Precondition("every feature of every query was scaled to [0, 1] within its query, as in future queries", True)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the user declares about all future queries, before seeing any.

    Attributes
    ----------
    row_radius : float, default=None
        The largest distance of a document from 0, or from a point of its query's own.
    longest : int, default=None
        The largest number of documents of a query.
    first_ball : float, default=None
        The smallest norm of weights that is distinguished.
    """

    row_radius: float | None = None
    longest: int | None = None
    first_ball: float | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number is not None:
                refuse_unless("certificate", above=0, **{name: number})


@dataclass(frozen=True, kw_only=True)
class ScoredSample:
    """Judged queries with a ranker's scores.

    Attributes
    ----------
    queries : Queries
        The sample.
    scores : ndarray of shape (n_documents,)
        The ranker's scores.
    n_jobs : int or None
        Number of threads.
    """

    queries: Queries
    scores: Vector
    n_jobs: int | None

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """The group number of each query; queries of one group repeat each other."""
        return same_content(self.queries, n_jobs=self.n_jobs)

    @property
    def no_repeats(self) -> Precondition:
        """Precondition of expectations over samples of independent queries."""
        return Precondition("no query repeats another one", len(set(self.group.tolist())) == len(self.group))

    @property
    def query_weight(self) -> Vector:
        """The weight of each list."""
        return self.queries.query_weight

    @property
    def count_the_same(self) -> Precondition:
        """Precondition of bounds on means: all queries have the same weight."""
        kept = self.query_weight[self.query_weight > 0]
        return Precondition("all queries have the same weight", not len(kept) or bool((kept == kept[0]).all()))

    def measured(self, measure: Measure, ties: Ties) -> Vector:
        """The measure of every query; NaN where it is undefined or the query has weight 0."""
        lists = ScoredLists(self.scores, self.queries.labels(), self.queries.start, self.queries.scattered_rows)
        values = measure_lists([measure], lists, ties=ties, n_jobs=self.n_jobs)[0]
        return np.where(self.query_weight > 0, values, math.nan)

    def losses(self, loss: Loss) -> Vector:
        """The loss of every query."""
        prepared = PreparedLists.of(loss, self.queries.labels(), self.queries.start, self.queries.scattered_rows)
        return loss_lists(prepared, self.scores, n_jobs=self.n_jobs)[0]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants that hold for every future query, or are assumed to.

    Attributes
    ----------
    radius : float
        Radius of every query around 0 or a point of its own.
    measured : float
        The largest radius in the sample, around 0 or the mean of the query.
    m : int
        Number of documents of the longest query.
    first_ball : float
        W_0, the smallest norm that is distinguished.
    assumed : str
        Which of radius and length are taken from the sample, in words; empty if none is.
    conditions : tuple of Precondition
        What is known about the constants.
    """

    radius: float
    measured: float
    m: int
    first_ball: float
    assumed: str
    conditions: tuple[Precondition, ...]

    @classmethod
    def of(cls, queries: Queries, declared: Declared, known_radius: float | None) -> "Constants":
        """From what was declared, the ranker's parameters, the scaling of the queries, or the sample, in this order."""
        measured, longest = largest_radius(queries), int(queries.sizes.max(initial=1))
        radius, conditions = declared.row_radius if declared.row_radius is not None else known_radius, []
        scaling = queries.scaling
        if radius is not None:
            found = min(measured, _around_middles(queries))
            if found > radius * (1 + 1e-9):
                raise RankwiseError(f"row_radius={radius:g} holds for every query: found one of radius {found:g}")
            conditions.append(Precondition(f"row_radius={radius:g} was declared, and no query contradicts it", True))
        elif scaling is not None and (scaling.how, scaling.per) == ("minmax", "query"):
            radius = math.sqrt(queries.n_features) / 2  # around the middle of the cube
            conditions.append(SCALED)
        if declared.longest is not None and longest > declared.longest:
            raise RankwiseError(
                f"longest={declared.longest:,} holds for every query: found one of {longest:,} documents"
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
    """The largest radius of a query around the centre of its bounding box."""
    found = 0.0
    for query in map(int, np.flatnonzero(queries.sizes)):
        rows = queries.X[queries.rows_of(query)].astype(np.float64)
        middle = (rows.min(axis=0) + rows.max(axis=0)) / 2
        found = max(found, float(np.linalg.norm(rows - middle, axis=1).max()))
    return found
