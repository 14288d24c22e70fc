"""The regularised mean loss over judged queries, minimised for one level of the penalty after another.

:class:`BundleRisk` takes any convex loss, :class:`NewtonRisk` losses with Hessian products. Each keeps what it learned
from one level for the next. :class:`Attempt` records the rounds of one level, so that an interrupted fit keeps them.

The squared pair hinge f(w) = sum_q weight_q phi_q(X_q w), phi = sum over label_i > label_j of [1 + s_j - s_i]_+^2, is
the function here that has products with its generalised Hessian: :class:`SquaredPairsOverLists` is the function, and
:class:`SquaredPairsAt` the function at one point, as :func:`~rankwise.solvers.batch.newton.newton` takes it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._progress import progress
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossOverLists
from rankwise.losses.over_chunks import LossOfChunk, LossOverChunks
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.queries.chunks import Job
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.work import Work
from rankwise.queries.queries import Queries
from rankwise.solvers.batch.bundle import Bundle, Form
from rankwise.solvers.batch.newton import NewtonStep, Ridged, newton

Vector = NDArray[np.float64]


class Round(NamedTuple):
    """The best weights after a round, in the units of the scaled features, and its row of the history.

    A row begins with the number of the round, the objective, its lower bound, and the gap between the two.
    """

    w: Vector
    row: tuple[float, ...]

    @property
    def objective(self) -> float:
        return self.row[1]

    @property
    def gap(self) -> float:
        return self.row[3]


Note: TypeAlias = Callable[[Round], None]


class Risk(Protocol):
    """A problem that is solved for several levels of its penalty."""

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        """Solve the problem at this level; ``note`` is called after every round, including the last."""


def mean_share(queries: Queries) -> float:
    """1 / the total weight of the queries, which turns a weighted sum into a mean; 0 without queries."""
    total = math.fsum(queries.query_weight)
    return 1 / total if total > 0 else 0.0


class BundleRisk:
    r"""The mean loss F with a penalty on w - w0, minimised by cutting planes.

    Parameters
    ----------
    loss : Loss
        A convex loss.
    queries : Queries
        The judged queries that its mean is over.
    factor : ndarray of shape (n_features,)
        Factor of each feature; w is the weight of the scaled one.
    prior : ndarray of shape (n_features,)
        w0.
    form : {"l2", "l1", "l1 ball"}
        (level/2) norm2(w - w0)^2 + F, level norm1(w - w0) + F, or F subject to norm1(w - w0) <= level.
    n_jobs : int or None
        Number of threads.

    Notes
    -----
    A search ends once gap <= tolerance x objective and nine tenths of all that can be gained over w0 have certainly
    been gained. The latter matters where the penalty is so large that w0 itself is within the tolerance: its direction
    ranks, however short it is. Where nothing can be gained, gap <= tolerance^2 x objective ends the search.
    """

    columns = ("call", "objective", "lower bound", "gap", "planes")

    def __init__(
        self,
        loss: Loss,
        queries: Queries,
        factor: Vector,
        prior: Vector,
        form: Form,
        n_jobs: int | None,
    ) -> None:
        lists, share = LossOverLists.of(loss, queries), mean_share(queries)

        def mean_loss(w: Vector) -> tuple[float, Vector]:
            total, slope = lists(w * factor, n_jobs=n_jobs)
            return share * total, share * (slope * factor)

        self._bundle = Bundle(mean_loss, queries.n_features, center=prior, floor=0.0 if loss.nonnegative else None)
        self._form = form
        self._at_prior, _ = self._bundle.ask(prior)

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(w: Vector, row: Mapping[str, float]) -> bool:
            note(Round(w, tuple(row.values())))
            objective, gap = row["objective"], row["gap"]
            return gap <= tolerance * objective and gap <= 0.1 * (self._at_prior - row["lower bound"])

        self._bundle.solve(level, self._form, tol=tolerance**2, max_calls=max_calls, callback=after)


class NewtonRisk:
    """(level/2) norm(w - w0)^2 + the mean squared pair hinge by truncated Newton steps, each level from the last's w.

    Parameters
    ----------
    loss : Loss
        A loss that declares ``squared_pairs``.
    queries : Queries
        The judged queries that its mean is over.
    factor : ndarray of shape (n_features,)
        Factor of each feature.
    prior : ndarray of shape (n_features,)
        w0.
    n_jobs : int or None
        Number of threads.
    """

    columns = ("step", "objective", "lower bound", "gap", "products")

    def __init__(self, loss: Loss, queries: Queries, factor: Vector, prior: Vector, n_jobs: int | None) -> None:
        self._pairs = SquaredPairsOverLists.of(queries, bool(loss.squared_pairs))
        self._share, self._factor, self._prior, self._n_jobs = mean_share(queries), factor, prior, n_jobs
        self._z = np.zeros_like(prior)  # w - w0
        self._at_prior = self._share * self._from_prior(self._z).value

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(z: Vector, step: NewtonStep) -> bool:
            row = (step.step, step.value, step.value - step.gap, step.gap, step.products)
            note(Round(self._prior + z, row))
            return step.gap <= tolerance * step.value and step.gap <= 0.1 * (self._at_prior - row[2])

        problem = Ridged(self._from_prior, level, self._share, self._factor)
        found = newton(problem, self._z, tolerance=0.0, steps=max_calls, strong=level, callback=after)
        if found.steps == 0:  # there was nothing to improve
            after(found.w, NewtonStep(**next(iter(found.history))))
        self._z = found.w

    def _from_prior(self, raw: Vector) -> "SquaredPairsAt":
        return self._pairs(raw + self._prior * self._factor, self._n_jobs)


@dataclass(frozen=True)
class Attempt:
    """One level: its rounds so far, and its measure once it was judged.

    Both lists grow by whole items only, so that an interrupted fit finds a consistent state.
    """

    level: float
    rounds: list[Round] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)

    def run(self, risk: Risk, tolerance: float, max_calls: int, bar: progress) -> None:
        """Solve; the bar advances by 1 in total, in proportion to the progress of the gap towards the tolerance."""
        shown = 0.0

        def note(found: Round) -> None:
            nonlocal shown
            self.rounds.append(found)
            first, aim = self.rounds[0].gap, tolerance * abs(found.objective)
            if 0 < aim < found.gap < first:
                way = math.log(first / found.gap) / math.log(first / aim)
                bar.advance(max(0.0, way - shown))
                shown = max(shown, way)

        risk.solve(self.level, tolerance, max_calls, note)
        bar.advance(1.0 - shown)


# ----------------------------------------------------------------------------------------------- the squared pair hinge

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SquaredPairsOverLists:
    """f as a function of w; ``pairs(w)`` has a value, a gradient and a ``hessian_product``.

    Queries are processed in fixed chunks whose parts are added in order, so every number of threads gives the same
    bits. X is read in place, in float32 or float64.

    Attributes
    ----------
    lists : LossOverLists
        Value and gradient.
    per_pair : bool
        Whether phi is divided by the number of pairs of its query.
    """

    lists: LossOverLists
    per_pair: bool

    @classmethod
    def of(cls, queries: Queries, per_pair: bool = True, weight: Vector | None = None) -> Self:
        """Prepare the function.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        per_pair : bool, default=True
            Whether phi is divided by the number of pairs of its query.
        weight : ndarray, shape (n_queries,), default=None
            Used in place of the queries' own weights.

        Returns
        -------
        SquaredPairsOverLists
            The function.
        """
        return cls(LossOverLists.of(PairHinge(squared=True, per_pair=per_pair), queries, weight), per_pair)

    def __call__(self, w: Vector, n_jobs: int | None = None) -> "SquaredPairsAt":
        """The function at ``w``."""
        point = np.array(w, dtype=np.float64)
        return SquaredPairsAt(self, point, *self.lists(point, n_jobs=n_jobs), n_jobs)

    @cached_property
    def product_work(self) -> Work:
        """The products of chunks, where queries are read chunk by chunk."""
        queries = cast(ChunkedQueries, self.lists.queries)
        given = cast(LossOverChunks, self.lists).work.job
        return queries.work(ProductOfChunk(self.per_pair, cast(LossOfChunk, given).weight))

    # The following does not depend on w.

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of queries that are processed together."""
        return list(parallel.query_chunks(self.lists.queries.start))

    @cached_property
    def rows(self) -> Integers:
        """The rows of the queries one after the other; empty if they are in this order already."""
        rows = self.lists.prepared.rows
        return np.empty(0, np.int64) if rows is None else rows

    @cached_property
    def levels(self) -> tuple[Integers, Integers, Vector]:
        """(level of each label in its query, number of levels per query, weight of a pair of the query)."""
        from rankwise._kernels.ragged import number_lists
        from rankwise.losses.compute import label_classes

        queries, weight = self.lists.queries, self.lists.weight
        level, many = np.zeros(queries.start[-1], np.int64), np.zeros(len(queries), np.int64)
        pairs = np.zeros(len(queries))
        classes = label_classes(queries.labels(), queries.start, self.lists.prepared.rows)
        number_lists(queries.start, self.rows, classes, level, many, pairs)
        share = np.where(pairs > 0, 1.0 if len(weight) == 0 else weight, 0.0)
        if self.per_pair:
            share = share / np.maximum(pairs, 1.0)
        return level, many, share


@dataclass(frozen=True)
class ProductOfChunk(Job):
    """Half of the product of the Hessian at w with a vector, as far as it comes from one chunk.

    Attributes
    ----------
    per_pair : bool
        As in :class:`SquaredPairsOverLists`.
    weight : ndarray of shape (n_queries,) or None
        Weights of all queries, in place of their own.
    """

    per_pair: bool
    weight: Vector | None

    def prepare(self, block: Queries, first: int) -> dict[str, Any]:
        pairs = SquaredPairsOverLists.of(block, self.per_pair, self._weight(block, first))
        nothing = np.zeros(block.n_documents, np.int64)
        # what belongs to the last w takes the place of the zeros
        return {"levels": pairs.levels, "windows": (b"", (nothing, nothing.copy()))}

    def _weight(self, block: Queries, first: int) -> Vector | None:
        return None if self.weight is None else self.weight[first : first + len(block)]

    def run(self, block: Queries, first: int, prepared: dict[str, Any], w: Vector, v: Vector) -> tuple[Vector]:
        pairs = SquaredPairsOverLists.of(block, self.per_pair, self._weight(block, first))
        vars(pairs)["levels"] = prepared["levels"]
        here = SquaredPairsAt(pairs, w, 0.0, w, 1)
        at, windows = prepared["windows"]
        if at == w.tobytes():
            vars(here)["_windows"] = windows
        found = here.product_of(0, len(block), v)
        prepared["windows"] = w.tobytes(), here._windows
        return (found,)


@dataclass(frozen=True)
class SquaredPairsAt:
    """f at one point: value, gradient, and products with the generalised Hessian.

    The Hessian is sum_q weight_q X_q' H_q X_q, H_q a = 2 sum over active pairs of (a_i - a_j)(e_i - e_j), where a pair
    is active if 1 + s_j - s_i > 0. The first product sorts the queries, in O(m log m); every product reads X once.

    Attributes
    ----------
    pairs : SquaredPairsOverLists
        The function.
    w : ndarray, shape (n_features,)
        The point.
    value : float
        f(w).
    gradient : ndarray, shape (n_features,)
        The gradient of f at w.
    n_jobs : int or None
        Number of threads.
    """

    pairs: SquaredPairsOverLists
    w: Vector
    value: float
    gradient: Vector
    n_jobs: int | None = None

    def hessian_product(self, v: Vector) -> Vector:
        """The product of the generalised Hessian at w with ``v``."""
        pairs, queries = self.pairs, self.pairs.lists.queries
        direction = np.ascontiguousarray(v, dtype=np.float64)
        if isinstance(queries, ChunkedQueries):
            (whole,) = queries.total(pairs.product_work, self.w, direction, n_jobs=self.n_jobs)
            return np.asarray(2.0 * whole)
        total = np.zeros(queries.n_features)
        for own in parallel.map_chunks(partial(self.product_of, v=direction), pairs.chunks, self.n_jobs):
            total += own
        return 2.0 * total

    def product_of(self, first: int, last: int, v: Vector) -> Vector:
        """Half of the product with ``v`` as far as it comes from queries first..last-1."""
        from rankwise._kernels.pairs import add_products_on

        pairs, queries = self.pairs, self.pairs.lists.queries
        X, own = np.asarray(queries.X), np.zeros(queries.n_features)
        level, many, share = pairs.levels
        place, reach = self._windows
        add_products = add_products_on(X.dtype)
        add_products(first, last, queries.start, pairs.rows, X, share, level, many, place, reach, v, own)
        return own

    @cached_property
    def _windows(self) -> tuple[Integers, Integers]:
        """(documents of each query by decreasing score, how many of them each one may be paired with)."""
        from rankwise._kernels.pairs import find_windows_on

        pairs, queries = self.pairs, self.pairs.lists.queries
        X, share = np.asarray(queries.X), pairs.levels[2]
        place, reach = np.zeros(queries.start[-1], np.int64), np.zeros(queries.start[-1], np.int64)
        find = find_windows_on(X.dtype)

        def part(first: int, last: int) -> None:
            find(first, last, queries.start, pairs.rows, X, share, self.w, place, reach)

        parallel.map_chunks(part, pairs.chunks, self.n_jobs)
        return place, reach
