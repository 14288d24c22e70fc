"""Small concave quadratics over the simplex: the master problem of a cutting-plane method, by piqp."""

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

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
