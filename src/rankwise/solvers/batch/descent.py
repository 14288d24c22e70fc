"""Minimize a function with a gradient by SciPy: conjugate gradients (Polak and Ribiere) or L-BFGS, with bounds.

:func:`descend` adds to SciPy what training needs: the best point that was evaluated is returned, the descent stops when
the value hardly changes, and a callback sees every step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeFloat, NonNegativeInt, validated
from rankwise.errors import RankwiseError

Vector = NDArray[np.float64]
Solver = Literal["cg", "lbfgs"]
Function = Callable[[Vector], tuple[float, Vector]]
Bounds = list[tuple[float | None, float | None]]
# Called after a step with (best point so far, its value, its gradient); True ends the descent.
AfterStep = Callable[[Vector, float, Vector], Any]

# A descent is over when this many steps together improve the value by less than the tolerance.
_STALE = 3


@dataclass(frozen=True)
class Minimum:
    """The result of a descent.

    Attributes
    ----------
    w : ndarray
        The best point that was evaluated.
    value : float
        The function there.
    steps, evaluations : int
        Number of steps, and of evaluations of the function.
    """

    w: Vector
    value: float
    steps: int
    evaluations: int


@one_blas_thread()
@validated
def descend(
    function: Function,
    start: Vector,
    *,
    solver: Solver = "cg",
    steps: NonNegativeInt = 50,
    tolerance: NonNegativeFloat = 1e-6,
    bounds: Bounds | None = None,
    callback: AfterStep | None = None,
) -> Minimum:
    """Minimize a function; the result is the best point that was evaluated, never worse than the start.

    The descent stops after ``steps`` steps, when the largest slope is below tolerance (1 + abs(value)), or when three
    steps improve the value by less than tolerance times its size. On a function that is not smooth everywhere a line
    search can fail; then the best point so far is returned.

    Parameters
    ----------
    function : callable
        w -> (value, gradient).
    start : ndarray, shape (n,)
        Where to begin; a start outside the bounds is moved to the nearest point inside.
    solver : {"cg", "lbfgs"}, default="cg"
        The method of SciPy.
    steps : int, default=50
        The largest number of steps.
    tolerance : float, default=1e-6
        See above.
    bounds : list of (float or None, float or None), default=None
        Bounds on single weights; they need "lbfgs".
    callback : callable, default=None
        Called after every step with the best point so far, its value and its gradient; True ends the descent.

    Returns
    -------
    Minimum
        The best point.

    Raises
    ------
    RankwiseError
        If an argument is not valid.
    """
    from scipy.optimize import minimize

    if bounds is not None and solver != "lbfgs":
        raise RankwiseError("weights with a fixed sign are found by solver='lbfgs'; conjugate gradients know no bounds")
    start = within(start, bounds)
    seen = _Seen(function)
    value, _ = seen(start)
    recent = [value]

    def after_step(_: Any) -> None:
        recent.append(seen.value)
        if callback is not None and callback(seen.w, seen.value, seen.slope):
            raise StopIteration
        if len(recent) > _STALE and recent[-1 - _STALE] - recent[-1] <= tolerance * abs(recent[-1]):
            raise StopIteration

    options: dict[str, Any] = {"maxiter": steps, "gtol": tolerance * (1 + abs(value))}
    minimize(
        seen,
        start,
        jac=True,
        method="CG" if solver == "cg" else "L-BFGS-B",
        bounds=bounds,
        callback=after_step,
        options=options if solver == "cg" else options | {"ftol": 0.0, "maxfun": 20 * steps},
    )
    return Minimum(seen.w, seen.value, len(recent) - 1, seen.count)


def within(w: Vector, bounds: Bounds | None) -> Vector:
    """The nearest point within the bounds."""
    if bounds is None:
        return w
    low, high = np.array([(-np.inf if a is None else a, np.inf if b is None else b) for a, b in bounds]).T
    return np.asarray(np.clip(w, low, high))


class _Seen:
    """The function with a memory: the best point so far, and the last evaluation, which SciPy may ask for twice."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._point: Vector | None = None
        self._answer: tuple[float, Vector] = (np.inf, np.zeros(0))
        self.value = np.inf
        self.w: Vector = np.zeros(0)
        self.slope: Vector = np.zeros(0)
        self.count = 0

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        if self._point is None or not np.array_equal(w, self._point):
            value, slope = self._function(w)
            self._point, self._answer = w.copy(), (value, slope)
            self.count += 1
            if value < self.value or self.count == 1:
                self.value, self.w, self.slope = value, self._point, slope
        return self._answer
