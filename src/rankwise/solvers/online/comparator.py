r"""The comparator that minimises an online bound: the best fixed ranker in hindsight, in terms of the bound.

For every fixed u the bounds of online rankers state that the loss of the run is at most the larger root x of

.. math:: x - F(u) = \lVert u\rVert \sqrt{c x},

where F(u) is the sum over rounds with a mistake of the convex loss of u at margin 1, and c is a constant of the
algorithm and the data. :func:`best_comparator` finds the u that minimises x, by solving regularised problems with
:class:`~rankwise.solvers.batch.bundle.Bundle` along a path of lambda.

Notes
-----
*Why a path.* At equal norms x grows with F, so for every norm the best u is the one of least F, and those are the
u_lambda = argmin F(u) + (lambda/2) norm(u)^2.

*Why one direction.* x(u) <= t exactly where F(u) + sqrt(c t) norm(u) <= t, a convex set of u; so x falls and then rises
along the path. Where it is smallest, u also makes F(u) + sqrt(c x) norm(u) smallest, so lambda norm(u) = sqrt(c x). A
lambda is too small if lambda norm(u) < sqrt(c x) and too large otherwise. As x >= c norm(u)^2, none below c is best.

*Why it is certain.* The bound holds for every u, so it is computed from F at the u that is returned, however far the
search went. A plane F(u) >= b + a'u with b > 0 shows that no u does better than t = min(b, c b^2 / norm(a)^2): with
k = t / b <= 1, F(u) + sqrt(c t) norm(u) >= k (b + a'u) + k norm(a) norm(u) >= t, because F >= 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise._blas import one_blas_thread
from rankwise._errors import RankwiseError
from rankwise.guarantees.bounds.online import largest_root
from rankwise.solvers.batch.bundle import Bundle, Oracle

Vector = NDArray[np.float64]

# The relative gap of the first lambda, the one below which rounding decides, and the longest move of log lambda.
_COARSEST, _FINEST, _LONGEST = 0.1, 1e-14, 10.0


@dataclass(frozen=True, eq=False)
class Comparator:
    """What :func:`best_comparator` found.

    Attributes
    ----------
    u : ndarray, shape (dimensions,)
        The comparator.
    norm : float
        norm(u).
    value : float
        F(u).
    bound : float
        The larger root x of x - F(u) = norm(u) sqrt(c x), valid whatever the accuracy of the search.
    lower_bound : float
        No comparator gives a smaller bound.
    converged : bool
        Whether the two are as close as was asked for.
    n_calls : int
        Number of calls of the oracle.
    """

    u: Vector
    norm: float
    value: float
    bound: float
    lower_bound: float
    converged: bool
    n_calls: int


def larger_root(value: float, norm: float, c: float) -> float:
    """The larger root x of x - value = norm sqrt(c x), which is at least value and at least c norm^2."""
    return largest_root(F=max(value, 0.0), b=norm * math.sqrt(c))  # a sum of hinges may round to -1e-17


@one_blas_thread()
def best_comparator(
    oracle: Oracle, dimensions: int, c: float, *, tol: float = 1e-3, max_calls: int = 2000
) -> Comparator:
    """The u that minimises the larger root x of x - F(u) = norm(u) sqrt(c x), u = 0 among them.

    Parameters
    ----------
    oracle : callable
        u -> (F(u), a subgradient of F at u), where F is convex and 0 or more.
    dimensions : int
        Length of u.
    c : float
        The constant of the bound, above 0.
    tol : float, default=1e-3
        How far above the smallest bound the result may be, relative to it.
    max_calls : int, default=2000
        The largest number of calls of the oracle.

    Returns
    -------
    Comparator
        The best u that was found.

    Raises
    ------
    RankwiseError
        If an argument is not valid, or c is 0 and the loss is not constant.

    Examples
    --------
    Two lessons in one dimension, u >= 1 and u >= 1/2, with c = 1/8: u = 1 has F = 0, and so the bound 1/8.

    >>> import numpy as np
    >>> x = np.array([1.0, 2.0])
    >>> def hinges(u):
    ...     slack = 1 - x * u
    ...     return slack[slack > 0].sum(), -x[slack > 0].sum(keepdims=True)
    >>> found = best_comparator(hinges, 1, 1 / 8)
    >>> round(found.bound, 3)
    0.125
    """
    if not (0 <= c < np.inf and tol > 0 and max_calls >= 1):
        raise RankwiseError(
            "a comparator is sought with c of 0 or more, tol above 0 and at least 1 call: "
            f"found c={c!r}, tol={tol!r}, max_calls={max_calls!r}"
        )
    u, norm, calls = np.zeros(dimensions), 0.0, 1
    value, slope = oracle(u)
    value = float(value)
    bound, proved = larger_root(value, norm, c), _least_bound(value, slope, c)
    if c == 0 and proved < bound:
        raise RankwiseError("a comparator is sought with c above 0 unless the loss is the same everywhere: found c=0")
    if value >= 0 and bound - proved <= tol * bound:  # no u is better than 0
        return Comparator(u, norm, value, bound, min(proved, bound), True, calls)
    bundle = Bundle(oracle, dimensions, floor=0.0)
    bundle.add(u, value, slope)
    search, accuracy = _Search(math.log(c or 1.0)), max(_COARSEST, tol / 4)
    while bound - proved > tol * bound and calls < max_calls and accuracy > _FINEST:
        found = bundle.solve(math.exp(search.at), tol=accuracy, max_calls=max_calls - calls)
        calls += found.n_calls
        found_norm = float(np.linalg.norm(found.w))
        root = larger_root(found.value, found_norm, c)
        if root < bound:
            u, norm, value, bound = found.w, found_norm, found.value, root
        proved = max(proved, _least_bound(found.offset, found.slope, c))
        # a distant lambda needs no accuracy; without a new call, nothing more can be learned at this accuracy
        if accuracy > tol / 4 or found.n_calls == 0 or found_norm == 0:
            accuracy /= 4
            search.reopen()
        if found_norm > 0:
            search.move(math.log(c * root) / 2 - math.log(found_norm))
    return Comparator(u, norm, value, bound, min(proved, bound), bound - proved <= tol * bound, calls)


def _least_bound(offset: float, slope: Vector, c: float) -> float:
    """No comparator gives a smaller bound, by the plane F(u) >= offset + slope'u and F >= 0."""
    steepness = float(slope @ slope)
    if offset <= 0:
        return 0.0
    return offset if steepness <= c * offset else c * offset * offset / steepness


class _Search:
    """Root finding for log lambda: where the pull of the bound, log(sqrt(c x) / norm(u)) - log lambda, is 0.

    Moving by the pull approaches the root from below without passing it, slowly where the bound is flat. So the stride
    is doubled until a pull is downwards; from then on a move that would leave the bracket bisects it instead.
    """

    def __init__(self, smallest: float) -> None:
        self.at = self._smallest = smallest
        self.reopen()

    def reopen(self) -> None:
        """Forget the bracket, which inexact pulls may have put on the wrong side of the root."""
        self._low, self._high, self._stride = self._smallest, math.inf, 1.0

    def move(self, wanted: float) -> None:
        """Move to the next log lambda, given the one that the bound asks for."""
        pull = wanted - self.at
        if pull > 0:
            self._low = self.at
        else:
            self._high = self.at
        ahead = self.at + self._stride * pull
        if self._high == math.inf:
            self._stride *= 2
            self.at = min(ahead, self.at + _LONGEST)
        else:
            self._stride = 1.0
            self.at = ahead if self._low < ahead < self._high else (self._low + self._high) / 2
