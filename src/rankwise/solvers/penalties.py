"""What a cutting-plane method adds to the function that it makes small: a squared norm, or the walls of an l1 ball.

Each knows its own master problem, penalty(z) + max_i (offset_i + slope_i'z) made smallest over z, and the least that a
single plane proves: min over z of penalty(z) + offset + slope'z.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.solvers.planes import Planes
from rankwise.solvers.simplex_qp import maximise_on_simplex, onto_simplex

Vector = NDArray[np.float64]


class Penalty(Protocol):
    """What :class:`rankwise.solvers.bundle.Bundle` asks of a penalty."""

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
class L1Ball:
    """0 where norm1(z) <= radius, and inf outside."""

    radius: float

    def value(self, z: Vector) -> float:
        # means of points inside may be outside by rounding
        return 0.0 if float(np.abs(z).sum()) <= self.radius * (1 + 1e-12) else np.inf

    def gradient(self, z: Vector) -> Vector:
        return np.zeros_like(z)

    def least(self, offset: float, slope: Vector) -> float:
        return offset - self.radius * float(np.abs(slope).max())

    def master(self, planes: Planes) -> tuple[Vector, Vector]:
        """By a linear programme in z = radius (p - m) with p, m >= 0 and sum(p + m) <= 1; alpha are its prices."""
        from scipy.optimize import linprog

        n, d = planes.slope.shape
        steps = self.radius * planes.slope
        unit = max(float(np.abs(steps).max()), float(np.ptp(planes.offset))) or 1.0
        top = float(planes.offset.max())
        walls = np.block([[steps / unit, -steps / unit, -np.ones((n, 1))], [np.ones((1, 2 * d)), np.zeros((1, 1))]])
        found = linprog(
            np.append(np.zeros(2 * d), 1.0),
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
