"""Truncated Newton: minimize a convex function by steps that conjugate gradients find from Hessian products.

A step d approximately minimizes the quadratic model g'd + d'Hd/2. H is used only in products H v, so it may be a
generalized Hessian (for instance of a squared hinge) and of any size. :func:`newton` is the solver; :class:`Ridged`
adds a quadratic penalty to a function.

The two loops are written here because SciPy's do less: ``scipy.sparse.linalg.cg`` divides by the curvature even if it
is 0, and ``minimize(method="Newton-CG")`` cannot stop by the size of the gradient, evaluates value, gradient and
Hessian separately, and fails where the values of two points differ only by rounding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._tables import Table
from rankwise.errors import RankwiseError

Vector = NDArray[np.float64]

# Conjugate gradients end once the residual is this part of the gradient, or less near the end.
_FORCING = 0.1
# A step is taken if it improves the value by this part of what the slope predicts (Armijo).
_SUFFICIENT = 1e-4
# If values differ only by rounding, a step is taken if at most this part of the slope along it is left.
_FLATTER = 0.8
_TRIALS = 40


class AtPoint(Protocol):
    """A function at one point: value, gradient, and products with its (generalized) Hessian."""

    @property
    def value(self) -> float:
        """The value."""

    @property
    def gradient(self) -> Vector:
        """The gradient."""

    def hessian_product(self, v: Vector) -> Vector:
        """The product of the Hessian with ``v``."""


Function = Callable[[Vector], AtPoint]


class NewtonStep(NamedTuple):
    """A row of the history: value and gradient norm after a step, Hessian products so far, and the gap if known."""

    step: int
    value: float
    gradient: float
    products: int
    gap: float


@dataclass(frozen=True)
class NewtonResult:
    """The result of :func:`newton`.

    Attributes
    ----------
    w : ndarray
        The point.
    value : float
        The function there.
    gradient : ndarray
        Its gradient there.
    steps, products : int
        Number of Newton steps and of Hessian products.
    converged : bool
        Whether the gradient is as small as asked for.
    gap : float
        The value is at most this far above the minimum; NaN if ``strong`` was not given.
    history : Table
        One row per step, from the start on: step, value, gradient (its norm), products, gap.
    """

    w: Vector
    value: float
    gradient: Vector
    steps: int
    products: int
    converged: bool
    gap: float
    history: Table


@one_blas_thread()
@np.errstate(over="ignore", invalid="ignore")  # a step that is too long is not taken
def newton(
    function: Function,
    start: Vector,
    *,
    tolerance: float = 1e-6,
    steps: int = 100,
    reference: float | None = None,
    strong: float = 0.0,
    callback: Callable[[Vector, NewtonStep], Any] | None = None,
) -> NewtonResult:
    """Minimize a convex function with a gradient and Hessian products.

    Parameters
    ----------
    function : callable
        w -> an object with ``value``, ``gradient`` and ``hessian_product(v)``.
    start : ndarray
        Where to begin.
    tolerance : float, default=1e-6
        The run has converged when norm(gradient) <= tolerance * reference.
    steps : int, default=100
        The largest number of Newton steps.
    reference : float, default=None
        The norm of the gradient to compare with; None: that at the start. A good start, as on a path of alphas, needs
        the norm at 0.
    strong : float, default=0.0
        A number above 0 for which f(w) - (strong/2) norm(w)^2 is convex: then no value is below
        f(w) - norm(gradient)^2 / (2 strong), and the gap is known.
    callback : callable, default=None
        Called with the point and its row after every step; True ends the run.

    Returns
    -------
    NewtonResult
        The last point.

    Raises
    ------
    RankwiseError
        If the value or the gradient at the start is not finite.

    Notes
    -----
    Values never rise by more than rounding. A run ends unconverged after ``steps`` steps, when the callback returns
    True, or if rounding hides every improvement.
    """
    w = np.array(start, dtype=np.float64)
    here = function(w)
    first = _norm(here.gradient)
    if not (math.isfinite(here.value) and math.isfinite(first)):
        raise RankwiseError(
            "Newton steps need a start where value and gradient are finite, got "
            f"{here.value:g} and a gradient of norm {first:g} at the start"
        )
    enough = tolerance * (first if reference is None else reference)
    products = 0
    rows = [_row(0, here, 0, strong)]
    converged = first <= enough
    while not converged and len(rows) <= steps:
        size = rows[-1].gradient
        residual = max(min(_FORCING, math.sqrt(size / first)) * size, enough / 2)
        direction, made = _direction(here, residual)
        products += made
        found = _line_search(function, w, here, direction)
        if found is None:
            break
        w, here = found
        rows.append(_row(len(rows), here, products, strong))
        converged = rows[-1].gradient <= enough
        if callback is not None and callback(w, rows[-1]):
            break
    history = Table({name: [getattr(row, name) for row in rows] for name in NewtonStep._fields})
    gradient = np.array(here.gradient)
    return NewtonResult(w, here.value, gradient, len(rows) - 1, products, converged, rows[-1].gap, history)


def _norm(x: Vector) -> float:
    return float(np.linalg.norm(x))


def _row(step: int, here: AtPoint, products: int, strong: float) -> NewtonStep:
    size = _norm(here.gradient)
    return NewtonStep(step, here.value, size, products, size**2 / (2 * strong) if strong > 0 else math.nan)


def _direction(here: AtPoint, enough: float) -> tuple[Vector, int]:
    """(d with norm(H d + g) <= enough, products made), by conjugate gradients from 0.

    It ends before a direction without curvature, along which the model has no minimum; d is a descent direction in any
    case.
    """
    residual = -here.gradient
    along, d = residual, np.zeros_like(residual)
    square = float(residual @ residual)
    for made in range(1, 2 * len(d) + 1):  # without rounding, as many as there are dimensions would do
        product = here.hessian_product(along)
        curvature = float(along @ product)
        if not curvature > 0:
            return (d if made > 1 else residual), made
        step = square / curvature
        d = d + step * along
        residual = residual - step * product
        before, square = square, float(residual @ residual)
        if square <= enough**2:
            break
        along = residual + square / before * along
    return d, made


def _line_search(function: Function, w: Vector, here: AtPoint, d: Vector) -> tuple[Vector, AtPoint] | None:
    """(w + t d, the function there) for the first t = 1, ... that is good enough; None if none is.

    The next t is where the line through the slopes at 0 and t crosses 0, kept between a tenth and a half of t.
    """
    slope = float(here.gradient @ d)
    if not slope < 0:
        return None
    rounding = 4 * np.finfo(np.float64).eps * abs(here.value)
    size = _norm(here.gradient)
    t = 1.0
    for _ in range(_TRIALS):
        moved = w + t * d
        there = function(moved)
        left = float(there.gradient @ d)
        better = here.value - there.value
        if better >= -_SUFFICIENT * t * slope and better > rounding:
            return moved, there
        if abs(better) <= rounding and abs(left) <= _FLATTER * abs(slope) and _norm(there.gradient) < size:
            return moved, there
        crossing = slope / (slope - left) if left > slope else 0.5  # NaN slopes take the half, too
        t *= min(max(crossing, 0.1), 0.5)
    return None


@dataclass(frozen=True)
class Ridged:
    """w -> (alpha/2) norm(w)^2 + share f(factor w), for a function f with Hessian products.

    If f is convex, ``strong=alpha`` holds.

    Attributes
    ----------
    function : callable
        f, as :func:`newton` takes it.
    alpha : float
        Strength of the penalty.
    share : float
        Turns a sum over queries into a mean.
    factor : ndarray
        The scale of the features.
    """

    function: Function
    alpha: float
    share: float
    factor: Vector

    def __call__(self, w: Vector) -> "RidgedAt":
        """The function at ``w``."""
        return RidgedAt(self, w, self.function(w * self.factor))


@dataclass(frozen=True)
class RidgedAt:
    """A :class:`Ridged` function at one point."""

    of: Ridged
    w: Vector
    inner: AtPoint

    @property
    def value(self) -> float:
        """The value."""
        return self.of.alpha / 2 * float(self.w @ self.w) + self.of.share * self.inner.value

    @property
    def gradient(self) -> Vector:
        """The gradient."""
        return self.of.alpha * self.w + self.of.share * self.of.factor * self.inner.gradient

    def hessian_product(self, v: Vector) -> Vector:
        """The product of the Hessian with ``v``."""
        product = self.inner.hessian_product(v * self.of.factor)
        return self.of.alpha * v + self.of.share * self.of.factor * product
