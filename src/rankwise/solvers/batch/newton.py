"""Truncated Newton: a convex function is made smallest by steps that conjugate gradients find from Hessian products.

A step d makes the quadratic model g'd + d'Hd/2 smallest, as closely as it is worth at that point; H is met only in
products H v, so that it may be a generalised Hessian (of a squared hinge, say) and as large as it likes.

The two loops are written here because SciPy's do less: ``scipy.sparse.linalg.cg`` divides by the curvature also where
there is none, and ``minimize(method="Newton-CG")`` cannot stop by the size of the gradient, evaluates value, gradient
and Hessian apart, and is lost where the values of two points differ by rounding alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._blas import one_blas_thread
from rankwise._errors import RankwiseError
from rankwise._tables import Table

Vector = NDArray[np.float64]

# Conjugate gradients end a step once the residual is this part of the gradient, or less near the end.
_FORCING = 0.1
# A step is taken where it improves the value by this part of what the slope promises (Armijo).
_SUFFICIENT = 1e-4
# Where values differ by rounding alone, a step is taken that leaves at most this part of the slope along it.
_FLATTER = 0.8
_TRIALS = 40


class AtPoint(Protocol):
    """What a function is at one point: value, gradient, and products with its (generalised) Hessian."""

    @property
    def value(self) -> float: ...

    @property
    def gradient(self) -> Vector: ...

    def hessian_product(self, v: Vector) -> Vector: ...


Function = Callable[[Vector], AtPoint]


class NewtonStep(NamedTuple):
    """A row of the history: sizes at the end of a step, Hessian products so far, and the gap where it is known."""

    step: int
    value: float
    gradient: float
    products: int
    gap: float


@dataclass(frozen=True)
class NewtonResult:
    """Where the steps ended.

    Attributes
    ----------
    w, value, gradient : the point, the function there, and its gradient
    steps, products : Newton steps and Hessian products that it took
    converged : whether the gradient is as small as asked for
    gap : value is at most this far above the smallest one, for certain; NaN where ``strong`` was not given
    history : one row a step from the start on: step, value, gradient (its norm), products, gap
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
@np.errstate(over="ignore", invalid="ignore")  # a step too far is not taken, and nobody need hear of it
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
    """Make a convex function with a gradient and Hessian products smallest.

    Parameters
    ----------
    function : w -> an object with ``value``, ``gradient`` and ``hessian_product(v)``
    start : where to begin
    tolerance : over when norm(gradient) <= tolerance * reference
    steps : Newton steps at most
    reference : the size of gradient to compare with; None: norm(gradient) at the start. A start that is good already,
        as on a path of alphas, wants that of a start at 0
    strong : a number above 0 for which f(w) - (strong/2) norm(w)^2 is convex: then no value is below
        f(w) - norm(gradient)^2 / (2 strong), and the gap is known
    callback : called with the point and its row after every step; True ends the run

    Notes
    -----
    Values never rise by more than rounding. A run ends unconverged after ``steps`` steps, when the callback says so, or
    where rounding hides every improvement.
    """
    w = np.array(start, dtype=np.float64)
    here = function(w)
    first = _norm(here.gradient)
    if not (math.isfinite(here.value) and math.isfinite(first)):
        raise RankwiseError(
            "Newton steps begin where value and gradient are finite: found "
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

    Ends before a direction without curvature, along which the model has no minimum; a descent in any case.
    """
    residual = -here.gradient
    along, d = residual, np.zeros_like(residual)
    square = float(residual @ residual)
    for made in range(1, 2 * len(d) + 1):  # as many as there are dimensions would do without rounding
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
    """(w + t d, what the function is there) for the first t = 1, ... that is good enough; None where none is.

    A next t is where the slopes at 0 and t cross 0, held within a tenth and a half of t.
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
        crossing = slope / (slope - left) if left > slope else 0.5  # NaN slopes, too, take the half
        t *= min(max(crossing, 0.1), 0.5)
    return None


@dataclass(frozen=True)
class Ridged:
    """w -> (alpha/2) norm(w)^2 + share f(factor w), for a function f with Hessian products.

    ``share`` makes a mean of a sum over lists; ``factor`` puts the weights on features of a common scale. Where f is
    convex, ``strong=alpha`` holds.
    """

    function: Function
    alpha: float
    share: float
    factor: Vector

    def __call__(self, w: Vector) -> "RidgedAt":
        return RidgedAt(self, w, self.function(w * self.factor))


@dataclass(frozen=True)
class RidgedAt:
    """The sum at one point."""

    of: Ridged
    w: Vector
    inner: AtPoint

    @property
    def value(self) -> float:
        return self.of.alpha / 2 * float(self.w @ self.w) + self.of.share * self.inner.value

    @property
    def gradient(self) -> Vector:
        return self.of.alpha * self.w + self.of.share * self.of.factor * self.inner.gradient

    def hessian_product(self, v: Vector) -> Vector:
        product = self.inner.hessian_product(v * self.of.factor)
        return self.of.alpha * v + self.of.share * self.of.factor * product
