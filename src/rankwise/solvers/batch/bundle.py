r"""Cutting planes: minimize a convex function with a penalty, with a proven lower bound on the minimum.

.. math:: \min_w\; J(w) = \frac\lambda2 \lVert w - w_0\rVert^2 + F(w), \qquad F \text{ convex}

or with lambda norm1(w - w0), or subject to norm1(w - w0) <= radius or norm2(w - w0) <= radius. F is known by its value
and one subgradient a at the points where an oracle evaluates it. Each answer is a plane below F, F(w) >= b_i + a_i'(w -
w_0), and the maximum of the planes replaces F in a master problem. For the squared norm its dual

.. math:: \max_{\alpha \ge 0,\; 1'\alpha = 1}\; b'\alpha - \frac1{2\lambda} \lVert A'\alpha\rVert^2

has as many unknowns as there are planes, independent of the number of features. Every alpha, optimal or not, gives a
lower bound on J, so the gap between the lowest J seen and the highest bound is certain.

:class:`Bundle` runs the method, :class:`Planes` stores the planes, and a penalty (:class:`SquaredNorm`,
:class:`L2Ball`, :class:`L1`) solves its own master problem, min over z of penalty(z) + max_i (b_i + a_i'z), and
computes the lower bound that a single plane proves. The dual above is solved by piqp, or without it
(:func:`maximize_on_simplex`); the master of an l2 ball is a sequence of such duals, that of an l1 norm a linear
program, which SciPy's HiGHS solves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._tables import Table
from rankwise.errors import RankwiseError

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Oracle: TypeAlias = Callable[[Vector], tuple[float, Vector]]
Form: TypeAlias = Literal["l2", "l1", "l1 ball", "l2 ball"]
Callback: TypeAlias = Callable[[Vector, Mapping[str, float]], bool | None]

# ------------------------------------------------------------------------------------------------------------ penalties

# How far an answer may be below the maximum, relative to the smaller part of the problem, before it is tried again in
# other units, and before the other method tries what piqp does badly. Usually piqp is below it by 1e-12.
_GOOD, _POOR = 1e-8, 1e-3
# A solver needs 10 to 25 steps; near the last digit piqp sometimes cycles, which is no failure.
_MOST_STEPS = 60
_ACCURACY = 1e-13
_WALL = 1e-6
# Factors of the squared norm that stands in for a ball, relative to the largest that can be needed: the smallest one,
# and that of proximal steps, of which a few are enough because the model is piecewise linear.
_LEAST_FACTOR, _SMALL_FACTOR = 1e-10, 1e-4
_PROXIMAL_STEPS = 20


class Penalty(Protocol):
    """What :class:`Bundle` requires of a penalty."""

    def value(self, z: Vector) -> float:
        """The penalty at z; inf outside its domain."""

    def gradient(self, z: Vector) -> Vector:
        """A subgradient at a z inside the domain."""

    def least(self, offset: float, slope: Vector) -> float:
        """The smallest penalty(z) + offset + slope'z."""

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
        """(alpha, z): the weights of the planes whose mean gives the best bound, and the minimizer of the model."""


@dataclass(frozen=True)
class SquaredNorm:
    """(lambda/2) norm(z)^2.

    Parameters
    ----------
    lambda_ : float
        Factor of the squared norm, above 0.
    """

    lambda_: float

    def value(self, z: Vector) -> float:
        return self.lambda_ / 2 * float(z @ z)

    def gradient(self, z: Vector) -> Vector:
        return self.lambda_ * z

    def least(self, offset: float, slope: Vector) -> float:
        return offset - float(slope @ slope) / (2 * self.lambda_)

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
        """By the dual, whose size is the number of planes: z = -A'alpha / lambda."""
        alpha = maximize_on_simplex(planes.gram / self.lambda_, planes.offset)
        return alpha, planes.slope.T @ alpha / -self.lambda_


@dataclass(frozen=True)
class L2Ball:
    """0 where norm(z) <= radius, and inf outside.

    Parameters
    ----------
    radius : float
        The largest norm, above 0.
    """

    radius: float

    def value(self, z: Vector) -> float:
        # means of points inside may be outside by rounding
        return 0.0 if float(np.linalg.norm(z)) <= self.radius * (1 + 1e-12) else np.inf

    def gradient(self, z: Vector) -> Vector:
        return np.zeros_like(z)

    def least(self, offset: float, slope: Vector) -> float:
        return offset - self.radius * float(np.linalg.norm(slope))

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
        """By the squared norm with the factor whose solution has the norm of the ball: both have the same optimum.

        norm(z) falls as the factor grows, and is at most the steepest slope over the factor. If a small factor leaves z
        inside, the model is minimized there, and proximal steps of this factor find it.
        """
        steepest = float(np.sqrt(np.diag(planes.gram).max(initial=0.0)))
        if steepest == 0.0:
            return maximize_on_simplex(planes.gram, planes.offset), np.zeros(planes.slope.shape[1])
        largest = steepest / self.radius
        found = self._inside(planes, _SMALL_FACTOR * largest)
        return self._touching(planes, largest) if found is None else found

    def _inside(self, planes: "Planes", factor: float) -> tuple[Vector, Vector] | None:
        """The minimizer of the model by proximal steps; None if they leave the ball."""
        z = np.zeros(planes.slope.shape[1])
        best: tuple[Vector, Vector] | None = None
        proved = -np.inf
        for _ in range(_PROXIMAL_STEPS):
            alpha = maximize_on_simplex(planes.gram / factor, planes.offset + planes.slope @ z)
            slope = planes.slope.T @ alpha
            z = z - slope / factor
            if float(np.linalg.norm(z)) > self.radius:
                return None
            now = self.least(float(planes.offset @ alpha), slope)
            if best is not None and now <= proved:
                break
            best, proved = (alpha, z), now
        return best

    def _touching(self, planes: "Planes", largest: float) -> tuple[Vector, Vector]:
        """The minimizer on the boundary of the ball."""
        from scipy.optimize import brentq

        solved: dict[float, tuple[Vector, Vector]] = {}

        def excess(log_factor: float) -> float:
            solved[log_factor] = SquaredNorm(largest * float(np.exp(log_factor))).master(planes)
            return float(np.linalg.norm(solved[log_factor][1])) / self.radius - 1.0

        place = least = float(np.log(_LEAST_FACTOR))
        if excess(least) > 0:  # at the largest factor no point is outside, but for rounding
            # an error of the norm costs its square in the bound
            place = 0.0 if excess(0.0) >= 0 else float(brentq(excess, least, 0.0, xtol=1e-8, rtol=1e-8))
        if place not in solved:
            excess(place)
        alpha, z = solved[place]
        norm = float(np.linalg.norm(z))
        return alpha, z * min(1.0, self.radius / norm) if norm > 0 else z


@dataclass(frozen=True)
class L1:
    """weight norm1(z) where norm1(z) <= radius, and inf outside; a weight of 0 leaves the ball alone.

    A cutting-plane method needs the ball also for a penalty: without it a single plane proves nothing. Where the
    function is never below a floor, no minimizer lies outside radius = (its value at z = 0 - floor) / weight.

    Parameters
    ----------
    weight : float
        Factor of the norm, 0 or more.
    radius : float
        The largest norm.
    """

    weight: float
    radius: float

    def value(self, z: Vector) -> float:
        norm = float(np.abs(z).sum())
        # means of points inside may be outside by rounding
        return self.weight * norm if norm <= self.radius * (1 + 1e-12) else np.inf

    def gradient(self, z: Vector) -> Vector:
        return self.weight * np.sign(z)

    def least(self, offset: float, slope: Vector) -> float:
        return offset - self.radius * max(0.0, float(np.abs(slope).max()) - self.weight)

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
        """By a linear program in z = radius (p - m) with p, m >= 0 and sum(p + m) <= 1; alpha are its prices."""
        from scipy.optimize import linprog

        n, d = planes.slope.shape
        steps = self.radius * planes.slope
        unit = max(float(np.abs(steps).max()), float(np.ptp(planes.offset))) or 1.0
        top = float(planes.offset.max())
        walls = np.block([[steps / unit, -steps / unit, -np.ones((n, 1))], [np.ones((1, 2 * d)), np.zeros((1, 1))]])
        found = linprog(
            np.append(np.full(2 * d, self.weight * self.radius / unit), 1.0),
            A_ub=walls,
            b_ub=np.append((top - planes.offset) / unit, 1.0),
            bounds=[*[(0, None)] * (2 * d), (None, None)],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        alpha = None if found.x is None else onto_simplex(-found.ineqlin.marginals[:n])
        if alpha is None:
            raise RankwiseError(f"the linear program of {n} planes in {d} dimensions was not solved: {found.message}")
        parts = np.maximum(found.x[: 2 * d], 0.0)
        parts /= max(1.0, float(parts.sum()))
        return alpha, self.radius * (parts[:d] - parts[d:])


# ------------------------------------------------------------------------------------------- quadratics on the simplex


def shortfall(P: Matrix, q: Vector, alpha: Vector) -> float:
    """An upper bound on how far ``alpha`` is below the maximum: max_i r_i - alpha'r >= 0 with r = q - P alpha."""
    slope = q - P @ alpha
    return max(float(slope.max() - alpha @ slope), 0.0)


def maximize_on_simplex(P: Matrix, q: Vector) -> Vector:
    r"""alpha that maximizes q'alpha - alpha'P alpha / 2 over the simplex sum(alpha) = 1, alpha >= 0.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Symmetric and positive semidefinite; rows may repeat.
    q : ndarray of shape (n,)
        The linear part.

    Returns
    -------
    alpha : ndarray of shape (n,)
        A point of the simplex, exactly, whatever the accuracy; :func:`shortfall` bounds its distance from the maximum.

    Notes
    -----
    Solved by an interior point method in units of the smaller of P and q: where P is a million times q, a tiny weight
    on a steep direction matters and would be lost in units of P. An answer is judged by its duality gap, not by the
    status of the solver; a poor one is tried again in other units, then by another method, and the best is kept.
    """
    q = q - q.max()  # adds a constant, because alpha sums to 1
    sizes = [float(np.abs(P).max()), float(np.abs(q).max())]
    if not np.isfinite(sizes).all():
        raise RankwiseError("a master problem is not finite: the values of the function are too large")
    sizes = [size for size in sizes if size > 0]
    if len(q) == 1 or not sizes:
        return np.full(len(q), 1 / len(q))
    tries = [(unit, _by_piqp, _GOOD) for unit in (min(sizes), np.sqrt(min(sizes)) * np.sqrt(max(sizes)), max(sizes))]
    best, best_shortfall = np.full(len(q), 1 / len(q)), np.inf
    for unit, solve, enough in (*tries, (max(sizes), _by_interior_point, _POOR)):
        if best_shortfall <= enough * min(sizes):
            break
        found = onto_simplex(solve(P / unit, q / unit))
        if found is None:
            continue
        # an interior point keeps a distance from the faces of the simplex; a point on them may be better
        for alpha in (found, onto_simplex(np.where(found < _WALL * found.max(), 0.0, found))):
            if alpha is not None and (missing := shortfall(P, q, alpha)) < best_shortfall:
                best, best_shortfall = alpha, missing
    return best


def _by_piqp(P: Matrix, q: Vector) -> Vector:
    try:
        import piqp
    except ImportError:  # it has no wheel for this platform
        return _by_interior_point(P, q)
    n = len(q)
    solver = piqp.DenseSolver()
    solver.settings.max_iter = _MOST_STEPS
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, _ACCURACY)
    solver.setup(np.asfortranarray(P), -q, A=np.ones((1, n), order="F"), b=np.ones(1), x_l=np.zeros(n))
    solver.solve()
    return np.array(solver.result.x)


def _by_interior_point(P: Matrix, q: Vector) -> Vector:
    """Mehrotra's predictor-corrector method, for where piqp is not installed or fails; as exact, and slower.

    The optimum has P alpha - q = y + z with alpha'z = 0. The method begins at the center of the simplex with positive
    z, so both equations hold but the last, and keeps them (J. Nocedal, S. Wright, Numerical optimization, 2006,
    section 16.6).
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    n = len(q)
    alpha = np.full(n, 1 / n)
    slope = P @ alpha - q
    y = slope.min() - max(np.ptp(slope), _ACCURACY)
    z = slope - y
    for _ in range(_MOST_STEPS):
        products = alpha * z
        if products.mean() <= _ACCURACY:
            break
        try:
            factor = cho_factor(P + np.diag(z / alpha))
        except LinAlgError:  # only rounding is left
            break
        residual, excess = P @ alpha - q - y - z, alpha.sum() - 1
        ones = cho_solve(factor, np.ones(n))
        aim, length = np.zeros(n), 1.0
        for centered in (False, True):  # first straight toward alpha'z = 0, then corrected by what that step misses
            step = cho_solve(factor, (aim - products) / alpha - residual)
            step_y = -(excess + step.sum()) / ones.sum()
            step = step + step_y * ones
            step_z = (aim - products - z * step) / alpha
            length = min(_longest_step(alpha, step), _longest_step(z, step_z))
            if not centered:
                left = (alpha + length * step) @ (z + length * step_z) / products.sum()
                aim = left**3 * products.mean() - step * step_z
        alpha, z, y = (now + 0.995 * length * way for now, way in ((alpha, step), (z, step_z), (y, step_y)))
    return alpha


def _longest_step(place: Vector, way: Vector) -> float:
    """The part of the way, 1 at most, until the first coordinate of a positive vector becomes 0."""
    falling = way < 0
    return min(1.0, float((-place[falling] / way[falling]).min(initial=1.0)))


def onto_simplex(found: Vector) -> Vector | None:
    """The answer of a solver, moved onto the simplex; None if it is not finite or not positive."""
    if not np.isfinite(found).all() or found.max() <= 0:
        return None
    alpha = np.maximum(found, 0.0)
    return np.asarray(alpha / alpha.sum())


# ----------------------------------------------------------------------------------------------------------- the method

_COLUMNS = ("call", "objective", "lower bound", "gap", "planes")
# The next point lies this fraction of the way from the best point to the solution of the master, which alone would
# oscillate. The fraction grows while points improve and the way still descends, and shrinks otherwise. The pair hinge
# on OHSUMED at lambda 1e-5 takes 73 calls this way and 379 with the solutions of the master.
_FIRST_STEP, _SMALLEST_STEP, _LONGER, _SHORTER = 0.3, 0.02, 1.25, 0.8
# Planes without weight in the master for this many rounds are dropped.
_IDLE_ROUNDS = 20
# Every round improves the point or the bound; after this many rounds without either only rounding is left.
_STUCK_ROUNDS = 30
# A plane this far above the function, relative to the values, is not rounding even in single precision; the second
# number is for functions slightly below their floor of 0 where all other values are 0, too.
_NOT_ROUNDING, _NEXT_TO_NOTHING = 1e-5, 1e-12


@dataclass(frozen=True, eq=False)
class BundleResult:
    """The result of :meth:`Bundle.solve`.

    Attributes
    ----------
    w : ndarray of shape (dimensions,)
        The best point seen.
    objective : float
        J(w).
    value : float
        F(w).
    lower_bound : float
        No w has a smaller J.
    gap : float
        objective - lower_bound, never negative.
    converged : bool
        Whether the gap is as small as requested, or as rounding permits.
    n_calls : int
        Number of calls of the oracle.
    planes : int
        Number of planes that are kept.
    offset : float
        Offset of the plane F(w) >= offset + slope'(w - w0) that alone proves the lower bound.
    slope : ndarray of shape (dimensions,)
        Its slope.
    history : Table
        One row per call: call, objective, lower bound, gap, planes.
    """

    w: Vector
    objective: float
    value: float
    lower_bound: float
    gap: float
    converged: bool
    n_calls: int
    planes: int
    offset: float
    slope: Vector
    history: Table


class Bundle:
    r"""Cutting planes of one convex function F, kept from one :meth:`solve` to the next.

    The planes serve every level and every penalty, so a path of levels takes fewer calls than separate searches.

    Parameters
    ----------
    oracle : callable
        w -> (F(w), a subgradient of F at w).
    dimensions : int
        The length of w.
    center : array-like of shape (dimensions,), default=None
        w0; None is 0.
    floor : float, default=None
        A lower bound of F, such as 0 for a mean of hinges; it saves the first rounds.
    max_planes : int, default=300
        Beyond this number the planes of least weight are replaced by the mean plane that proves the lower bound, which
        makes rounds cheaper and more of them necessary.

    Examples
    --------
    >>> import numpy as np
    >>> bundle = Bundle(lambda w: (abs(w - 3).sum(), np.sign(w - 3)), dimensions=2, floor=0.0)
    >>> result = bundle.solve(0.25, tol=1e-9)
    >>> result.w.round(6), round(result.objective, 6)
    (array([3., 3.]), 2.25)
    """

    def __init__(
        self,
        oracle: Oracle,
        dimensions: int,
        *,
        center: ArrayLike | None = None,
        floor: float | None = None,
        max_planes: int = 300,
    ) -> None:
        self.center = np.zeros(dimensions) if center is None else np.array(center, dtype=np.float64)
        if dimensions < 1 or self.center.shape != (dimensions,):
            raise RankwiseError(f"center must have shape ({dimensions},), got {self.center.shape}")
        if max_planes < 10:
            raise RankwiseError(f"max_planes must be at least 10, got {max_planes}")
        self.oracle = oracle
        self.floor = floor
        self.max_planes = max_planes
        self.planes = Planes(dimensions)
        if floor is not None:
            self.planes.add(np.zeros(dimensions), float(floor))
        self._known: list[tuple[Vector, float]] = []  # (z, F(z)) with z = w - center: where to start from

    def solve(
        self,
        level: float,
        form: Form = "l2",
        *,
        start: ArrayLike | None = None,
        tol: float = 1e-4,
        max_calls: int = 1000,
        callback: Callback | None = None,
    ) -> BundleResult:
        """Minimize F with a penalty until gap <= tol abs(objective), or for at most ``max_calls`` calls of the oracle.

        Parameters
        ----------
        level : float
            Above 0; its meaning depends on ``form``.
        form : {"l2", "l1", "l1 ball", "l2 ball"}, default="l2"
            (level/2) norm2(w - w0)^2 + F, level norm1(w - w0) + F (which needs a ``floor``), or F subject to
            norm1(w - w0) <= level or norm2(w - w0) <= level.
        start : array-like of shape (dimensions,), default=None
            Where the oracle is evaluated first; None is w0, or the best point of earlier calls.
        tol : float, default=1e-4
            The relative gap at which the search ends.
        max_calls : int, default=1000
            The largest number of calls of the oracle.
        callback : callable, default=None
            Called after every call as callback(best w so far, its row of the history); True ends the search.

        Returns
        -------
        result : BundleResult
            The best point, and the proof of how good it is.
        """
        if not 0 < level < np.inf or form not in get_args(Form):
            raise RankwiseError(f"a bundle solves {get_args(Form)} at a level above 0, got {form!r}, {level!r}")
        if form == "l2":
            penalty: Penalty = SquaredNorm(level)
        elif form == "l2 ball":
            penalty = L2Ball(level)
        elif form == "l1 ball":
            penalty = L1(0.0, level)
        else:
            penalty = L1(level, self._l1_reach() / level)
        return self._search(penalty, start, tol, max_calls, callback)

    def _l1_reach(self) -> float:
        """F(w0) - floor, which bounds level norm1(w - w0) at every minimizer and so keeps the masters bounded."""
        if self.floor is None:
            raise RankwiseError("an l1 penalty needs floor=, a lower bound of the function, got None")
        at_center = next((value for z, value in self._known if not z.any()), None)
        if at_center is None:
            at_center, _ = self.ask(self.center)
        # 0 would make the master degenerate; any larger number is as right
        return max(at_center - self.floor, float(np.finfo(float).tiny))

    @one_blas_thread()
    def _search(
        self, penalty: Penalty, start: ArrayLike | None, tol: float, max_calls: int, callback: Callback | None
    ) -> BundleResult:
        if not (tol >= 0 and max_calls >= 1):
            raise RankwiseError(f"a search needs tol >= 0 and max_calls >= 1, got tol={tol!r}, max_calls={max_calls!r}")
        calls = 0
        if start is not None or not any(np.isfinite(penalty.value(z)) for z, _ in self._known):
            self.ask(self.center if start is None else start)
            calls = 1
        (best, value), objective = self._best_known(penalty)
        planes, lower, step = self.planes, -np.inf, _FIRST_STEP
        rows: list[tuple[float, ...]] = []
        while True:
            alpha, master = penalty.master(planes)
            mean_slope, mean_offset = planes.slope.T @ alpha, float(planes.offset @ alpha)
            proved = penalty.least(mean_offset, mean_slope)
            if proved > lower or not rows:
                lower, offset, slope = proved, mean_offset, mean_slope
            size = abs(objective) + float(np.abs(planes.offset) @ alpha)
            if lower - objective > _NOT_ROUNDING * size + _NEXT_TO_NOTHING:
                raise self._not_convex(lower, objective)
            lower = min(lower, objective)
            gap = objective - lower
            rows.append((calls, objective, lower, gap, len(planes)))
            converged = gap <= tol * abs(objective) or gap <= self._rounding(penalty, alpha, mean_slope, size)
            stopped = callback and callback(self.center + best, dict(zip(_COLUMNS, rows[-1], strict=True)))
            stuck = len(rows) > _STUCK_ROUNDS and gap > (1 - 1e-6) * rows[-1 - _STUCK_ROUNDS][_COLUMNS.index("gap")]
            if converged or stopped or stuck or calls >= max_calls:
                break
            way = master - best
            point = best + step * way
            self._drop_planes(alpha, mean_offset, mean_slope)
            found, subgradient = self._ask(point)
            calls += 1
            reached = penalty.value(point) + found
            if reached >= objective:
                step = max(_SMALLEST_STEP, step * _SHORTER)
                continue
            if (subgradient + penalty.gradient(point)) @ way < 0:
                step = min(1.0, step * _LONGER)
            best, value, objective = point, found, reached
        if calls > 0:
            self._known.append((best, value))
        return BundleResult(
            w=self.center + best,
            objective=objective,
            value=value,
            lower_bound=lower,
            gap=gap,
            converged=bool(converged),
            n_calls=calls,
            planes=len(planes),
            offset=offset,
            slope=slope,
            history=Table(dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))),
        )

    def _rounding(self, penalty: Penalty, alpha: Vector, mean_slope: Vector, size: float) -> float:
        """The effect of rounding on the bound of the mean plane, from its offset and from cancelling slopes."""
        few_ulps = 8 * np.finfo(float).eps
        steep = np.abs(mean_slope)
        steeper = steep + few_ulps * (np.abs(self.planes.slope).T @ alpha)
        return few_ulps * size + penalty.least(0.0, steep) - penalty.least(0.0, steeper)

    def _best_known(self, penalty: Penalty) -> tuple[tuple[Vector, float], float]:
        """The best known point as ((z, F), objective)."""
        objectives = [penalty.value(z) + value for z, value in self._known]
        place = int(np.argmin(objectives))
        if objectives[place] == np.inf:
            raise RankwiseError(f"a search starts inside the domain of {penalty}: no known point is")
        return self._known[place], objectives[place]

    @one_blas_thread()
    def ask(self, w: ArrayLike) -> tuple[float, Vector]:
        """Evaluate the oracle: adds a plane, and a point that :meth:`solve` may start from.

        Parameters
        ----------
        w : array-like of shape (dimensions,)
            The point.

        Returns
        -------
        value : float
            F(w).
        slope : ndarray of shape (dimensions,)
            A subgradient of F at w.
        """
        z = np.asarray(w, dtype=np.float64) - self.center
        value, slope = self._ask(z)
        self._known.append((z, value))
        return value, slope

    @one_blas_thread()
    def add(self, w: ArrayLike, value: float, slope: ArrayLike) -> None:
        """Add what the oracle has answered before: as :meth:`ask`, without a call.

        Parameters
        ----------
        w : array-like of shape (dimensions,)
            The point.
        value : float
            F(w).
        slope : array-like of shape (dimensions,)
            A subgradient of F at w.
        """
        z = np.asarray(w, dtype=np.float64) - self.center
        self._known.append((z, self._check_answer(z, value, slope)[0]))

    def _ask(self, z: Vector) -> tuple[float, Vector]:
        """F and a subgradient at center + z, which becomes a plane."""
        return self._check_answer(z, *self.oracle(self.center + z))

    def _check_answer(self, z: Vector, found: float, slope: ArrayLike) -> tuple[float, Vector]:
        """An answer of the oracle at center + z, which becomes a plane."""
        value, slope = float(found), np.asarray(slope, dtype=np.float64)
        if slope.shape != z.shape or not (np.isfinite(value) and np.isfinite(slope).all()):
            raise RankwiseError(
                f"the function returned {value!r} and a slope of shape {slope.shape}: "
                f"expected a finite value and {len(z)} finite slopes"
            )
        height = self.planes.height(z)
        size = abs(value) + float(np.abs(self.planes.offset).max(initial=0.0))
        if height - value > _NOT_ROUNDING * size + _NEXT_TO_NOTHING:
            raise self._not_convex(height, value)
        self.planes.add(slope, value - float(slope @ z))
        return value, slope

    def _drop_planes(self, alpha: Vector, mean_offset: float, mean_slope: Vector) -> None:
        """Drop idle planes; if too many are left, replace those of least weight by the mean plane."""
        planes = self.planes
        planes.note_use(alpha)
        chosen = planes.idle < _IDLE_ROUNDS
        if chosen.sum() >= self.max_planes:
            chosen[np.argsort(-alpha, kind="stable")[self.max_planes * 3 // 4 :]] = False
            planes.add(mean_slope, mean_offset)
            chosen = np.append(chosen, True)
        chosen[0] |= self.floor is not None
        planes.keep(chosen)

    def _not_convex(self, proved: float, found: float) -> RankwiseError:
        floor = "" if self.floor is None else f", or its floor is not {self.floor:g}"
        return RankwiseError(
            f"the function is {found:.6g} where its own planes prove at least {proved:.6g}: "
            f"it is not convex, or its slopes are not subgradients{floor}"
        )


class Planes:
    r"""Planes below a convex function F of z: F(z) >= offset_i + slope_i'z for every i.

    The Gram matrix of the slopes grows by one row per plane, in O(planes x dimensions).

    Parameters
    ----------
    dimensions : int
        The length of z.

    Attributes
    ----------
    slope : ndarray of shape (n_planes, dimensions)
        The slopes.
    offset : ndarray of shape (n_planes,)
        The offsets.
    gram : ndarray of shape (n_planes, n_planes)
        slope slope'.
    idle : ndarray of shape (n_planes,)
        The number of rounds for which each plane has had no weight.
    """

    def __init__(self, dimensions: int) -> None:
        self._n = 0
        self._slope = np.empty((16, dimensions))
        self._offset = np.empty(16)
        self._gram = np.empty((16, 16))
        self._idle = np.zeros(16, dtype=np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def slope(self) -> Matrix:
        return self._slope[: self._n]

    @property
    def offset(self) -> Vector:
        return self._offset[: self._n]

    @property
    def gram(self) -> Matrix:
        return self._gram[: self._n, : self._n]

    @property
    def idle(self) -> NDArray[np.int64]:
        return self._idle[: self._n]

    def add(self, slope: Vector, offset: float) -> None:
        """Add a plane."""
        if self._n == len(self._offset):
            self._move_to(np.arange(self._n), capacity=2 * self._n)
        n = self._n
        self._slope[n], self._offset[n], self._idle[n] = slope, offset, 0
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = self._slope[: n + 1] @ slope
        self._n = n + 1  # last, so that an interrupted call adds nothing

    def height(self, z: Vector) -> float:
        """The maximum of the planes at z, a lower bound of F(z); -inf without planes."""
        return float((self.offset + self.slope @ z).max(initial=-np.inf))

    def note_use(self, alpha: Vector) -> None:
        """Count a round: planes of negligible weight were idle, the others were not."""
        needed = alpha > 1e-9 * alpha.max()
        self._idle[: self._n] = np.where(needed, 0, self.idle + 1)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Keep the chosen planes only."""
        if not chosen.all():
            self._move_to(np.flatnonzero(chosen), capacity=len(self._offset))

    def _move_to(self, places: NDArray[np.int64], capacity: int) -> None:
        """Copy the planes at these places into arrays of this capacity."""
        n = len(places)
        slope, offset = np.empty((capacity, self._slope.shape[1])), np.empty(capacity)
        gram, idle = np.empty((capacity, capacity)), np.zeros(capacity, dtype=np.int64)
        slope[:n], offset[:n], idle[:n] = self._slope[places], self._offset[places], self._idle[places]
        gram[:n, :n] = self._gram[np.ix_(places, places)]
        self._n, self._slope, self._offset, self._gram, self._idle = n, slope, offset, gram, idle
