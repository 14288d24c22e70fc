"""The regularized mean loss over judged queries, minimized for one level of the penalty after another.

:class:`BundleRisk` takes any convex loss, :class:`NewtonRisk` losses with Hessian products. Each keeps what it learned
from one level for the next. :class:`Attempt` records the rounds of one level, so that an interrupted fit keeps them.

The squared pair hinge f(w) = sum_q weight_q phi_q(X_q w), phi = sum over label_i > label_j of [1 + s_j - s_i]_+^2, is
the function here that has products with its generalized Hessian: :class:`SquaredPairsOverLists` is the function, and
:class:`SquaredPairsAt` the function at one point, as :func:`~rankwise.solvers.batch.newton.newton` takes it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import progress
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossOverLists
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QuerySource
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


def mean_share(queries: QuerySource) -> float:
    """1 / the total weight of the queries, which turns a weighted sum into a mean; 0 without queries."""
    total = math.fsum(queries.query_weight)
    return 1 / total if total > 0 else 0.0


class BundleRisk:
    r"""The mean loss F with a penalty on w - w0, minimized by cutting planes.

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
    form : {"l2", "l1", "l1 ball", "l2 ball"}
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
        queries: QuerySource,
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

    def __init__(self, loss: Loss, queries: QuerySource, factor: Vector, prior: Vector, n_jobs: int | None) -> None:
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

    Both lists grow by whole items only, so an interrupted fit finds a consistent state.
    """

    level: float
    rounds: list[Round] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)

    def run(self, risk: Risk, tolerance: float, max_calls: int, bar: progress) -> None:
        """Solve; the bar advances by 1 in total, in proportion to the progress of the gap toward the tolerance."""
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
    products : PreparedJob or Work
        The products with the Hessian.
    """

    lists: LossOverLists
    products: Any

    @classmethod
    def of(cls, queries: QuerySource, per_pair: bool = True, weight: Vector | None = None) -> Self:
        """Prepare the function.

        Parameters
        ----------
        queries : Queries or ChunkedQueries
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
        lists = LossOverLists.of(PairHinge(squared=True, per_pair=per_pair), queries, weight)
        return cls(lists, queries.work(ProductJob(per_pair, weight)))

    def __call__(self, w: Vector, n_jobs: int | None = None) -> "SquaredPairsAt":
        """The function at ``w``."""
        point = np.array(w, dtype=np.float64)
        return SquaredPairsAt(self, point, *self.lists(point, n_jobs=n_jobs), n_jobs)


@dataclass
class PreparedPairs:
    """What products with the Hessian need of some queries.

    Attributes
    ----------
    rows : ndarray of int64
        The rows of the queries one after the other; empty if they are in this order already.
    level, many : ndarray of int64
        The level of each label in its query, and the number of levels of every query.
    share : ndarray of float64
        The weight of a pair of every query.
    place, reach : ndarray of int64
        The documents of each query by decreasing score, and how many of them each one may be paired with.
    points : dict of int to bytes
        The point w that the two belong to, by the first query of a chunk.
    """

    rows: Integers
    level: Integers
    many: Integers
    share: Vector
    place: Integers
    reach: Integers
    points: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, queries: Queries, per_pair: bool, weight: Vector | None) -> Self:
        """Number the levels of the labels."""
        from rankwise._kernels.ragged import number_lists
        from rankwise.losses.compute import label_classes

        rows = np.empty(0, np.int64) if queries.scattered_rows is None else queries.scattered_rows
        documents, many, pairs = int(queries.start[-1]), np.zeros(len(queries), np.int64), np.zeros(len(queries))
        level, place, reach = (np.zeros(documents, np.int64) for _ in range(3))
        classes = label_classes(queries.labels(), queries.start, queries.scattered_rows)
        number_lists(queries.start, rows, classes, level, many, pairs)
        share = np.where(pairs > 0, 1.0 if weight is None else weight, 0.0)
        if per_pair:
            share = share / np.maximum(pairs, 1.0)
        return cls(rows, level, many, share, place, reach)


@dataclass(frozen=True)
class ProductJob(Job):
    """Half of the product of the Hessian at w with a vector, as far as it comes from one chunk.

    Attributes
    ----------
    per_pair : bool
        Whether phi is divided by the number of pairs of its query.
    weight : ndarray of shape (n_queries,) or None
        Weights of all queries, in place of their own.
    """

    per_pair: bool
    weight: Vector | None

    def prepare(self, queries: Queries, offset: int) -> PreparedPairs:
        weight = queries.weight if self.weight is None else self.weight[offset : offset + len(queries)]
        return PreparedPairs.of(queries, self.per_pair, weight)

    def run(self, chunk: Chunk, prepared: PreparedPairs, w: Vector, v: Vector) -> tuple[Vector]:
        from rankwise._kernels.pairs import add_products_on, find_windows_on

        X, start, pairs = np.asarray(chunk.queries.X), chunk.queries.start, prepared
        first, last, half = chunk.first, chunk.last, np.zeros(chunk.queries.n_features)
        if pairs.points.get(first) != w.tobytes():  # the first product at w sorts the queries
            find_windows = find_windows_on(X.dtype)
            find_windows(first, last, start, pairs.rows, X, pairs.share, w, pairs.place, pairs.reach)
            pairs.points[first] = w.tobytes()
        add_products = add_products_on(X.dtype)
        add_products(
            first, last, start, pairs.rows, X, pairs.share, pairs.level, pairs.many, pairs.place, pairs.reach, v, half
        )
        return (half,)


@dataclass(frozen=True)
class SquaredPairsAt:
    """f at one point: value, gradient, and products with the generalized Hessian.

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
        """The product of the generalized Hessian at w with ``v``."""
        queries, direction = self.pairs.lists.queries, np.ascontiguousarray(v, dtype=np.float64)
        sums = queries.total(self.pairs.products, self.w, direction, n_jobs=self.n_jobs)
        (half,) = sums or (np.zeros(queries.n_features),)  # there may be no queries
        return np.asarray(2.0 * half)
