"""A hinge over pairs without a corner, from a function of one number and its derivative."""

import math
from dataclasses import dataclass

from rankwise._kernels.machine.jit import kernel
from rankwise.losses._base import Loss
from rankwise.losses._pairs import pair_loss
from rankwise.measures import Pairs
from rankwise.measures._base import Measure


@kernel
def smooth_hinge(x):
    root = math.hypot(1.0, x)
    return root + x if x > 0.0 else 1.0 / (root - x)  # equal, but without cancellation


@kernel
def slope(x):
    return smooth_hinge(x) / math.hypot(1.0, x)


@dataclass(frozen=True, kw_only=True, repr=False)
class PairSmoothHinge(Loss):
    r"""phi = mean over label_i > label_j of h(s_j - s_i), h(x) = x + sqrt(1 + x^2).

    Notes
    -----
    h' is in (0, 2) and h'' in (0, 1], and a pair moves two scores: G1 = 4, H1 = 4. A pair in the wrong order or tied
    costs h >= 1: phi >= 1 - Pairs.
    """

    name = "PairSmoothHinge"
    convex = smooth = document_weights = True
    kernel, weighted_kernel = pair_loss(smooth_hinge, slope)

    def lipschitz_l1(self, m: int) -> float:
        return 4.0 if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        return 4.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, 2.0 * b + math.hypot(1.0, 2.0 * b)

    @property
    def upper_bounds(self) -> Measure | None:
        return Pairs()
