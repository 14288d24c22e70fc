r"""`Bundle`: convex functions made small by cutting planes, with a proof of how small they can get.

.. math:: \min_w\; J(w) = \frac\lambda2 \lVert w - w_0\rVert^2 + F(w), \qquad F \text{ convex}

F is known by its value and one subgradient a at the points asked for. Each answer is a plane that F nowhere goes
below, F(w) >= b_i + a_i'(w - w_0), and the highest of them stands in for F in a master problem. Its dual

.. math:: \max_{\alpha \ge 0,\; 1'\alpha = 1}\; b'\alpha - \frac1{2\lambda} \lVert A'\alpha\rVert^2

has as many unknowns as there are planes, however many features there are. Every alpha, the best or not, gives a
lower bound on J, so the gap between the lowest J seen and the highest bound is certain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._blas import one_blas_thread
from rankwise._errors import RankwiseError
from rankwise._tables import Table
from rankwise.solvers.batch.penalties import L1, Penalty, Planes, SquaredNorm

Vector: TypeAlias = NDArray[np.float64]
Oracle: TypeAlias = Callable[[Vector], tuple[float, Vector]]
Callback: TypeAlias = Callable[[Vector, Mapping[str, float]], bool | None]

_COLUMNS = ("call", "objective", "lower bound", "gap", "planes")
# The next point lies this part of the way from the best point seen to the master's, which alone swings to and fro.
# The part grows while points get better and the way still leads down, and shrinks when one is no better. The pairwise
# hinge on OHSUMED at lambda 1e-5 takes 73 calls this way and 379 by the master's own points.
_FIRST_STEP, _SMALLEST_STEP, _LONGER, _SHORTER = 0.3, 0.02, 1.25, 0.8
# A plane that the master has not needed for so many rounds is forgotten.
_IDLE_ROUNDS = 20
# Every round finds a better point or a plane that raises the bound. After so many that did neither, rounding decides.
_STUCK_ROUNDS = 30
# A plane this far above the function, in parts of the numbers at hand, is no rounding even in single precision; the
# second number is for functions that end a little below their floor of 0 where everything else is 0 too.
_NOT_ROUNDING, _NEXT_TO_NOTHING = 1e-5, 1e-12


@dataclass(frozen=True, eq=False)
class BundleResult:
    """What :meth:`Bundle.solve` found.

    Attributes
    ----------
    w : the best point seen
    objective : J(w)
    value : F(w)
    lower_bound : no w has a smaller J
    gap : objective - lower_bound, at least 0
    converged : whether the gap is as small as was asked for, or as rounding lets it be
    n_calls : how often the oracle was asked
    planes : how many are kept
    offset, slope : the plane F(w) >= offset + slope'(w - w0) that alone proves the lower bound
    history : a row a call: call, objective, lower bound, gap, planes
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

    Planes of F serve every lambda and every ball, so that a path of lambdas takes fewer calls than as many searches.

    Parameters
    ----------
    oracle : w -> (F(w), a subgradient of F at w)
    dimensions : of w
    center : w0; None for 0
    floor : a number that F is known never to be below, such as 0 for a mean of hinges; it spares the first rounds
    max_planes : beyond so many, those that count least are replaced by the mean plane that holds the lower bound, which
        makes rounds cheaper and more of them needed

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
            raise RankwiseError(f"a bundle needs one number of center a dimension: {self.center.shape}, {dimensions}")
        if max_planes < 10:
            raise RankwiseError(f"a bundle keeps at least 10 planes: found max_planes={max_planes}")
        self.oracle = oracle
        self.floor = floor
        self.max_planes = max_planes
        self.planes = Planes(dimensions)
        if floor is not None:
            self.planes.add(np.zeros(dimensions), float(floor))
        self._known: list[tuple[Vector, float]] = []  # (z, F(z)) with z = w - center: where to start from

    def solve(
        self,
        lambda_: float,
        *,
        start: ArrayLike | None = None,
        tol: float = 1e-4,
        max_calls: int = 1000,
        callback: Callback | None = None,
    ) -> BundleResult:
        """Make (lambda/2) norm(w - w0)^2 + F(w) small until gap <= tol abs(objective), or max_calls calls are made.

        Parameters
        ----------
        lambda_ : above 0
        start : where the oracle is asked first; None: at w0, or where earlier calls of this method left off
        tol : the relative gap that is small enough
        max_calls : the most calls of the oracle
        callback : called after every call as callback(best w so far, that row of the history); True ends the search
        """
        if not 0 < lambda_ < np.inf:
            raise RankwiseError(f"a squared norm is weighed by a number above 0: found lambda_={lambda_!r}")
        return self._search(SquaredNorm(lambda_), start, tol, max_calls, callback)

    def solve_in_l1_ball(
        self,
        radius: float,
        *,
        start: ArrayLike | None = None,
        tol: float = 1e-4,
        max_calls: int = 1000,
        callback: Callback | None = None,
    ) -> BundleResult:
        """Minimise F(w) subject to norm1(w - w0) <= radius; as :meth:`solve`, with linear programmes for masters."""
        if not 0 < radius < np.inf:
            raise RankwiseError(f"an l1 ball has a radius above 0: found radius={radius!r}")
        return self._search(L1(0.0, radius), start, tol, max_calls, callback)

    def solve_l1(
        self,
        weight: float,
        *,
        start: ArrayLike | None = None,
        tol: float = 1e-4,
        max_calls: int = 1000,
        callback: Callback | None = None,
    ) -> BundleResult:
        """Minimise weight norm1(w - w0) + F(w); as :meth:`solve`, with linear programmes for masters.

        Needs a ``floor``: F(w0) - floor bounds weight norm1(w - w0) at every minimiser and keeps the masters bounded.
        """
        if not 0 < weight < np.inf or self.floor is None:
            raise RankwiseError(
                f"an l1 penalty takes a weight above 0 and a floor: found {weight!r} and floor={self.floor!r}"
            )
        at_centre = next((value for z, value in self._known if not z.any()), None)
        if at_centre is None:
            at_centre, _ = self.ask(self.center)
        # a radius of 0 would make the master degenerate; any larger one is as right
        radius = max(at_centre - self.floor, np.finfo(float).tiny) / weight
        return self._search(L1(weight, radius), start, tol, max_calls, callback)

    @one_blas_thread()
    def _search(
        self, penalty: Penalty, start: ArrayLike | None, tol: float, max_calls: int, callback: Callback | None
    ) -> BundleResult:
        if not (tol >= 0 and max_calls >= 1):
            raise RankwiseError(
                f"a search needs tol >= 0 and max_calls >= 1: found tol={tol!r}, max_calls={max_calls!r}"
            )
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
            self._make_room(alpha, mean_offset, mean_slope)
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
        """What rounding may do to the bound of the mean plane: by its offset, and by slopes that cancel out in it."""
        few_ulps = 8 * np.finfo(float).eps
        steep = np.abs(mean_slope)
        steeper = steep + few_ulps * (np.abs(self.planes.slope).T @ alpha)
        return few_ulps * size + penalty.least(0.0, steep) - penalty.least(0.0, steeper)

    def _best_known(self, penalty: Penalty) -> tuple[tuple[Vector, float], float]:
        """The best ((z, F), objective) of the points to start from."""
        objectives = [penalty.value(z) + value for z, value in self._known]
        place = int(np.argmin(objectives))
        if objectives[place] == np.inf:
            raise RankwiseError(f"a search starts inside {penalty}: no point seen so far is")
        return self._known[place], objectives[place]

    @one_blas_thread()
    def ask(self, w: ArrayLike) -> tuple[float, Vector]:
        """(F(w), a subgradient): a plane more, and a point from which :meth:`solve` may start."""
        z = np.asarray(w, dtype=np.float64) - self.center
        value, slope = self._ask(z)
        self._known.append((z, value))
        return value, slope

    def _ask(self, z: Vector) -> tuple[float, Vector]:
        """F and a subgradient at center + z, which becomes a plane."""
        found, slope = self.oracle(self.center + z)
        value, slope = float(found), np.asarray(slope, dtype=np.float64)
        if slope.shape != z.shape or not (np.isfinite(value) and np.isfinite(slope).all()):
            raise RankwiseError(
                f"the function to make small gave {value!r} and a slope of shape {slope.shape}: "
                f"it has to be finite, with {len(z)} finite slopes"
            )
        height = self.planes.height(z)
        size = abs(value) + float(np.abs(self.planes.offset).max(initial=0.0))
        if height - value > _NOT_ROUNDING * size + _NEXT_TO_NOTHING:
            raise self._not_convex(height, value)
        self.planes.add(slope, value - float(slope @ z))
        return value, slope

    def _make_room(self, alpha: Vector, mean_offset: float, mean_slope: Vector) -> None:
        """Forget planes that have long been idle; if that is not enough, the light ones, for the sake of the mean."""
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
            f"the function to make small is {found:.6g} where its own planes prove at least {proved:.6g}: "
            f"it is not convex, or its slopes are not subgradients{floor}"
        )
