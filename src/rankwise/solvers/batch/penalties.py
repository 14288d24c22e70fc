"""The penalties of a cutting-plane method and their master problems: a squared norm, or an l1 norm.

A penalty solves its own master problem, min over z of penalty(z) + max_i (offset_i + slope_i'z), and computes the lower
bound that a single plane proves, min over z of penalty(z) + offset + slope'z. The dual of the master of a squared norm
is a concave quadratic over the simplex, with as many unknowns as there are planes, which piqp solves
(:func:`maximise_on_simplex`). The master of an l1 norm is a linear programme, which SciPy's HiGHS solves.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError

if TYPE_CHECKING:
    from rankwise.solvers.batch.bundle import Planes

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# How far an answer may be below the maximum, relative to the smaller part of the problem, before piqp tries again in
# other units, and before SciPy tries, which is slow and no more exact. Usually piqp is below it by 1e-12.
_GOOD, _POOR = 1e-8, 1e-3
# piqp needs 10 to 25 steps; near the last digit it sometimes cycles, which is no failure.
_MOST_STEPS = 60
_ACCURACY = 1e-13
_WALL = 1e-6


class Penalty(Protocol):
    """What :class:`rankwise.solvers.batch.bundle.Bundle` requires of a penalty."""

    def value(self, z: Vector) -> float:
        """The penalty at z; inf outside its domain."""

    def gradient(self, z: Vector) -> Vector:
        """A subgradient at a z inside the domain."""

    def least(self, offset: float, slope: Vector) -> float:
        """The smallest penalty(z) + offset + slope'z."""

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
        """(alpha, z): the weights of the planes whose mean gives the best bound, and the minimiser of the model."""


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

    def master(self, planes: "Planes") -> tuple[Vector, Vector]:
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


# ------------------------------------------------------------------------------------------- quadratics on the simplex


def shortfall(P: Matrix, q: Vector, alpha: Vector) -> float:
    """An upper bound on how far ``alpha`` is below the maximum: max_i r_i - alpha'r >= 0 with r = q - P alpha."""
    slope = q - P @ alpha
    return max(float(slope.max() - alpha @ slope), 0.0)


def maximise_on_simplex(P: Matrix, q: Vector) -> Vector:
    r"""alpha that maximises q'alpha - alpha'P alpha / 2 over the simplex sum(alpha) = 1, alpha >= 0.

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
    status of the solver; a poor one is tried again in other units, then by SciPy, and the best is kept.
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
    for unit, solve, enough in (*tries, (max(sizes), _by_scipy, _POOR)):
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
    """The answer of a solver, moved onto the simplex; None if it is not finite or not positive."""
    if not np.isfinite(found).all() or found.max() <= 0:
        return None
    alpha = np.maximum(found, 0.0)
    return np.asarray(alpha / alpha.sum())
