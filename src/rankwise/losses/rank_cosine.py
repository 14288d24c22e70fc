"""RankCosine: the cosine between the scores and the labels of a query."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._parameters import PositiveFloat
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.listnet import Target, target_values


@kernel
def _centered(x, weight, out):
    """x minus its weighted mean into ``out``, in units of its largest distance from the first; returns that unit."""
    unit, total, mass = 0.0, 0.0, 0.0
    first = -1
    for p in range(len(x)):
        if weight[p] > 0.0:
            if first < 0:
                first = p
            # differences come first: a constant that is added to all x then changes nothing
            unit = max(unit, abs(x[p] - x[first]))
    if unit == 0.0:
        out[:] = 0.0
        return 0.0
    for p in range(len(x)):
        out[p] = (x[p] - x[first]) / unit if weight[p] > 0.0 else 0.0
        total += weight[p] * out[p]
        mass += weight[p]
    mean = total / mass
    for p in range(len(x)):
        out[p] = out[p] - mean if weight[p] > 0.0 else 0.0
    return unit


@kernel
def cosine_formula(score, label, value, grad, table, params):
    """(1 - t's / sqrt(s's + epsilon^2)) / 2 of centered s and t; ``label`` holds t, ``value`` document weights."""
    size = len(score)
    target, s = np.empty(size), np.empty(size)
    if _centered(label, value, target) == 0.0:
        return 0.0
    length = 0.0
    for p in range(size):
        length += value[p] * target[p] * target[p]
    length = math.sqrt(length)
    unit = _centered(score, value, s)
    softening = params[0] / unit if unit > 0.0 else 1.0
    squares, product = 0.0, 0.0
    for p in range(size):
        target[p] /= length
        squares += value[p] * s[p] * s[p]
        product += value[p] * s[p] * target[p]
    norm = math.hypot(math.sqrt(squares), softening)
    cosine = product / norm
    scale = norm * (unit if unit > 0.0 else params[0])  # the norm in units of the scores
    for p in range(size):
        grad[p] = -0.5 * value[p] * (target[p] - cosine * (s[p] / norm)) / scale
    return min(max(0.5 - 0.5 * cosine, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class RankCosine(Loss):
    r"""phi = (1 - t's / (norm(t) sqrt(s's + epsilon^2))) / 2, s and t the centered scores and targets.

    Parameters
    ----------
    target : {"labels", "gains"}, default="labels"
        t is the label, or the gain 2^label - 1.
    epsilon : float, default=1.0
        Positive. Where the norm of the centered scores is much larger, phi is the paper's cosine loss.

    Notes
    -----
    Two differences from the paper. Scores and targets are centered in each query, so adding a constant changes
    nothing: the cosine is Pearson's correlation. And epsilon keeps the loss smooth where all scores are equal: the
    cosine itself has no limit there, and its slopes are as large as 1 / norm(s). With epsilon = 1 boosting and online
    learning, which start at equal scores, start with the gradient -t / (2 norm(t)), and scores that grow beyond epsilon
    see the paper's loss; a small epsilon gives it everywhere else. Not convex. The order of the documents has no
    influence. O(m).

    With r = sqrt(s's + epsilon^2) and a = t / norm(t) the gradient is -(a - s (a's) / r^2) / (2 r), of l2 norm at most
    1 / (2 epsilon): G1 = sqrt(m) / (2 epsilon), attained for even m at s = 0 with labels that are half 0 and half 1.

    H1 = 0.47 m / epsilon^2. With s = norm(s) u, x = norm(s) / r, q = 1 - x^2, a = c u + d v, v orthogonal to u, the
    Hessian of a's / r is -(x / r^2) times the matrix ((3 c q, d), (d, c)) on u and v and c elsewhere. Its norm is at
    most abs(c) max(3 q, 1) + abs(d) <= sqrt(max(3 q, 1)^2 + 1), and with 1 / r^2 = q / epsilon^2 the product
    x q sqrt(max(3 q, 1)^2 + 1) is at most 0.94, near q = 0.79. phi has half of that, and a matrix of l2 norm h maps
    vectors of entries up to 1 to vectors of l1 norm up to m h.

    With document weights means, norms and products are weighted, as with w_i copies. G1, H1 and the range then have
    the sum of the weights in place of m.

    References
    ----------
    T. Qin, X.-D. Zhang, M.-F. Tsai, D.-S. Wang, T.-Y. Liu, H. Li (2008). Query-level loss functions for information
    retrieval. Information Processing & Management 44(2). doi:10.1016/j.ipm.2007.07.016.

    Examples
    --------
    >>> loss = RankCosine(epsilon=1e-9)
    >>> [round(loss(scores, [2, 1, 0])[0], 4) for scores in ([2, 1, 0], [20, 10, 0], [0, 1, 2], [1, 0, 1])]
    [0.0, 0.0, 1.0, 0.5]
    """

    target: Target = "labels"
    epsilon: PositiveFloat = 1.0

    name = "RankCosine"
    convex = False
    smooth = True
    kernel = weighted_kernel = cosine_formula
    document_weights = True

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """Targets, and weights of 1."""
        return target_values(labels, self.target), np.ones(len(labels))

    def prepare_weighted(self, labels: Vector, weight: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """Targets and weights."""
        return target_values(labels, self.target), weight

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (float(self.epsilon),)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; proved in the Notes."""
        return math.sqrt(m) / (2.0 * self.epsilon) if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; proved in the Notes."""
        return 0.47 * m / self.epsilon**2 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 (every order is perfect) to (1 + x) / 2, x the cosine at the largest norm b sqrt(m)."""
        norm = b * math.sqrt(m)
        return 0.0, 0.5 + 0.5 * norm / math.hypot(norm, self.epsilon)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(target="gains", epsilon=0.1)
