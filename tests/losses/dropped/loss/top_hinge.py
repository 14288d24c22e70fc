"""The hinge between the documents with the largest label and the best of the others."""

from dataclasses import dataclass

from rankwise._kernels.machine.jit import kernel
from rankwise.losses._base import Loss
from rankwise.measures import WTA
from rankwise.measures._base import Measure


@kernel
def top_hinge_formula(score, label, value, grad, table, params):
    largest = label.max()
    lowest, rival = -1, -1
    for i in range(len(score)):
        if label[i] == largest:
            if lowest < 0 or score[i] < score[lowest]:
                lowest = i
        elif rival < 0 or score[i] > score[rival]:
            rival = i
    if rival < 0:  # any order is as good as any other
        return 0.0
    slack = 1.0 + score[rival] - score[lowest]
    if slack <= 0.0:
        return 0.0
    grad[rival] += 1.0
    grad[lowest] -= 1.0
    return slack


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHinge(Loss):
    r"""phi = [1 + max of s_j over smaller labels - min of s_i over the largest label]_+.

    Notes
    -----
    O(m). A maximum of affine functions, hence convex, each of which moves two scores by 1: G1 = 2. Where a smaller
    label reaches the first place, if only by a tie, it has a score of at least every s_i: phi >= 1 >= 1 - WTA.
    """

    name = "TopHinge"
    convex = True
    kernel = top_hinge_formula

    def lipschitz_l1(self, m: int) -> float:
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, 1.0 + 2.0 * b

    @property
    def upper_bounds(self) -> Measure | None:
        return WTA()
