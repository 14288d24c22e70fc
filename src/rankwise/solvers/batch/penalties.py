"""`Planes`: planes that lie below a convex function, with their Gram matrix."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


# --------------------------------------------------------------------------------------------------------- simplex qp
# Small concave quadratics over the simplex: the master problem of a cutting-plane method, by piqp.


# What an answer may fall short of the maximum, in units of the problem's smaller part, before piqp tries again in other
# units, and before SciPy tries, which is slow and no more exact. In the plain case piqp falls short by 1e-12.
_GOOD, _POOR = 1e-8, 1e-3
# piqp needs 10 to 25 steps; asked for the last digit it sometimes goes round in circles there, which is no failure.
_MOST_STEPS = 60
_ACCURACY = 1e-13
_WALL = 1e-6


def shortfall(P: Matrix, q: Vector, alpha: Vector) -> float:
    """How much below the maximum ``alpha`` can be at most: max_i r_i - alpha'r with r = q - P alpha, never below 0."""
    slope = q - P @ alpha
    return max(float(slope.max() - alpha @ slope), 0.0)


def maximise_on_simplex(P: Matrix, q: Vector) -> Vector:
    r"""alpha that maximises q'alpha - alpha'P alpha / 2 over the simplex sum(alpha) = 1, alpha >= 0.

    Parameters
    ----------
    P : n x n, symmetric and positive semidefinite; rows may repeat
    q : n numbers

    Returns
    -------
    alpha : a point of the simplex, exactly, whatever the accuracy: :func:`shortfall` tells how far from the best

    Notes
    -----
    Solved by an interior point method in units of the smaller of P and q: a tiny weight on a steep direction decides
    where P is a million times q, and it would be lost in units of P. An answer is judged by its duality gap, not by
    the status that the solver reports; a poor one is tried again in other units, then by SciPy, and the best is kept.
    """
    q = q - q.max()  # adds a constant, because alpha sums to 1
    sizes = [float(np.abs(P).max()), float(np.abs(q).max())]
    if not np.isfinite(sizes).all():
        raise RankwiseError("a master problem has numbers that are not finite: the function's values are too large")
    sizes = [size for size in sizes if size > 0]
    if len(q) == 1 or not sizes:
        return np.full(len(q), 1 / len(q))
    tries = [(unit, _by_piqp, _GOOD) for unit in (min(sizes), np.sqrt(min(sizes)) * np.sqrt(max(sizes)), max(sizes))]
    best, best_shortfall = np.full(len(q), 1 / len(q)), np.inf
    for unit, solve, enough in (*tries, (max(sizes), _by_scipy, _POOR)):
        if best_shortfall <= enough * min(sizes):
            break
        found = onto_simplex(solve(P / unit, q / unit))
        if found is None:
            continue
        # an interior point stays off the walls, by 1e-8 where the maximum is flat: a point on them may be better
        for alpha in (found, onto_simplex(np.where(found < _WALL * found.max(), 0.0, found))):
            if alpha is not None and (missing := shortfall(P, q, alpha)) < best_shortfall:
                best, best_shortfall = alpha, missing
    return best


def _by_piqp(P: Matrix, q: Vector) -> Vector:
    import piqp

    n = len(q)
    solver = piqp.DenseSolver()
    solver.settings.max_iter = _MOST_STEPS
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, _ACCURACY)
    solver.setup(np.asfortranarray(P), -q, A=np.ones((1, n), order="F"), b=np.ones(1), x_l=np.zeros(n))
    solver.solve()
    return np.array(solver.result.x)


def _by_scipy(P: Matrix, q: Vector) -> Vector:
    from scipy.optimize import minimize

    n = len(q)
    found = minimize(
        lambda alpha: 0.5 * alpha @ P @ alpha - q @ alpha,
        np.full(n, 1 / n),
        jac=lambda alpha: P @ alpha - q,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1, "jac": np.ones_like},
    )
    return np.asarray(found.x)


def onto_simplex(found: Vector) -> Vector | None:
    """What a solver found, made to lie on the simplex; None if it found nothing."""
    if not np.isfinite(found).all() or found.max() <= 0:
        return None
    alpha = np.maximum(found, 0.0)
    return np.asarray(alpha / alpha.sum())


class Planes:
    r"""Planes below a convex function F of z: F(z) >= offset_i + slope_i'z for every i.

    The products slope_i'slope_j are kept and grow by one row a plane, in O(planes x dimensions).

    Parameters
    ----------
    dimensions : of z

    Attributes
    ----------
    slope : planes x dimensions
    offset : one a plane
    gram : slope slope'
    idle : for how many rounds each plane has not been needed
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
        """One more plane."""
        if self._n == len(self._offset):
            self._move_to(np.arange(self._n), buffer=2 * self._n)
        n = self._n
        self._slope[n], self._offset[n], self._idle[n] = slope, offset, 0
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = self._slope[: n + 1] @ slope
        self._n = n + 1  # last, so that a plane that was broken off is not there

    def height(self, z: Vector) -> float:
        """The highest plane at z, which F is not below; -inf without planes."""
        return float((self.offset + self.slope @ z).max(initial=-np.inf))

    def note_use(self, alpha: Vector) -> None:
        """Planes whose weight is next to nothing were idle for one round more, the others no longer."""
        needed = alpha > 1e-9 * alpha.max()
        self._idle[: self._n] = np.where(needed, 0, self.idle + 1)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Forget all but the chosen planes."""
        if not chosen.all():
            self._move_to(np.flatnonzero(chosen), buffer=len(self._offset))

    def _move_to(self, places: NDArray[np.int64], buffer: int) -> None:
        """The planes at these places alone, in arrays with this much room."""
        n = len(places)
        slope, offset, gram = np.empty((buffer, self._slope.shape[1])), np.empty(buffer), np.empty((buffer, buffer))
        idle = np.zeros(buffer, dtype=np.int64)
        slope[:n], offset[:n], idle[:n] = self._slope[places], self._offset[places], self._idle[places]
        gram[:n, :n] = self._gram[np.ix_(places, places)]
        self._n, self._slope, self._offset, self._gram, self._idle = n, slope, offset, gram, idle


# ---------------------------------------------------------------------------------------------------------- penalties
# What a cutting-plane method adds to the function that it makes small: a squared norm, or the walls of an l1 ball.
#
# Each knows its own master problem, penalty(z) + max_i (offset_i + slope_i'z) made smallest over z, and the least
# that a
# single plane proves: min over z of penalty(z) + offset + slope'z.


class Penalty(Protocol):
    """What :class:`rankwise.solvers.batch.bundle.Bundle` asks of a penalty."""

    def value(self, z: Vector) -> float:
        """The penalty at z; inf where z may not be."""

    def gradient(self, z: Vector) -> Vector:
        """Its gradient at a z that may be."""

    def least(self, offset: float, slope: Vector) -> float:
        """The smallest penalty(z) + offset + slope'z."""

    def master(self, planes: Planes) -> tuple[Vector, Vector]:
        """(alpha, z): weights of the planes whose mean proves most, and the z that makes the model smallest."""


@dataclass(frozen=True)
class SquaredNorm:
    """(lambda/2) norm(z)^2."""

    lambda_: float

    def value(self, z: Vector) -> float:
        return self.lambda_ / 2 * float(z @ z)

    def gradient(self, z: Vector) -> Vector:
        return self.lambda_ * z

    def least(self, offset: float, slope: Vector) -> float:
        return offset - float(slope @ slope) / (2 * self.lambda_)

    def master(self, planes: Planes) -> tuple[Vector, Vector]:
        """By the dual, whose size is the number of planes: z = -A'alpha / lambda."""
        alpha = maximise_on_simplex(planes.gram / self.lambda_, planes.offset)
        return alpha, planes.slope.T @ alpha / -self.lambda_


@dataclass(frozen=True)
class L1:
    """weight norm1(z) where norm1(z) <= radius, and inf outside; a weight of 0 leaves the ball alone.

    A cutting-plane method needs the ball also for a penalty: without it a single plane proves nothing. Where the
    function is never below a floor, no minimiser lies outside radius = (its value at z = 0 - floor) / weight.

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

    def master(self, planes: Planes) -> tuple[Vector, Vector]:
        """By a linear programme in z = radius (p - m) with p, m >= 0 and sum(p + m) <= 1; alpha are its prices."""
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
            raise RankwiseError(f"the linear programme of {n} planes in {d} dimensions was not solved: {found.message}")
        parts = np.maximum(found.x[: 2 * d], 0.0)
        parts /= max(1.0, float(parts.sum()))
        return alpha, self.radius * (parts[:d] - parts[d:])
