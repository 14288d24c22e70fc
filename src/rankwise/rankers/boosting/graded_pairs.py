"""The loss that symmetric trees minimize by default: logistic over pairs, weighted by the difference of their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rankwise._kernels.exp import exp, log1pexp
from rankwise._kernels.machine.jit import kernel
from rankwise.losses._base import Loss

# Scores further below the best of their query count as if they were so far below.
_LOWEST = -300.0


@kernel
def _odds(score, label, odds):
    """e^(s - largest s), and the range of labels."""
    top, least, most = score[0], label[0], label[0]
    for i in range(len(score)):
        top, least, most = max(top, score[i]), min(least, label[i]), max(most, label[i])
    for i in range(len(score)):
        odds[i] = exp(max(score[i] - top, _LOWEST))
    return least, most


@kernel(fastmath={"reassoc", "contract"})
def _against_all(own, label_of, odds, label):
    """Sums over all documents: of weights times p, of weights times p (1 - p), and of weights of smaller labels."""
    slope, bend, below = 0.0, 0.0, 0.0
    for j in range(len(odds)):
        difference = label_of - label[j]
        share = 1.0 / (own + odds[j])
        p = abs(difference) * own * share
        slope += p
        bend += p * odds[j] * share
        below += max(difference, 0.0)
    return slope, bend, below


@kernel
def graded_pairs_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives: every document against its list."""
    odds = np.empty(len(score))
    least, most = _odds(score, label, odds)
    if least == most:
        return
    share = 1.0 / len(score)
    for i in range(len(score)):
        slope, bend, below = _against_all(odds[i], label[i], odds, label)
        grad[i] = (slope - below) * share
        diagonal[i] = bend * share


@kernel
def graded_pairs_formula(score, label, value, grad, table, params):
    """Value and gradient."""
    total, odds = 0.0, np.empty(len(score))
    least, most = _odds(score, label, odds)
    if least == most:
        return total
    share = 1.0 / len(score)
    for i in range(len(score)):
        slope, _, below = _against_all(odds[i], label[i], odds, label)
        grad[i] = (slope - below) * share
        for j in range(len(score)):
            if label[i] > label[j]:
                total += (label[i] - label[j]) * log1pexp(score[j] - score[i])
    return total * share


@dataclass(frozen=True, kw_only=True, repr=False)
class GradedPairs(Loss):
    r"""phi = (1 / m) sum over label_i > label_j of (label_i - label_j) log(1 + exp(s_j - s_i)).

    O(m^2): every document is compared with all others.
    """

    name = "GradedPairs"
    convex = True
    smooth = True
    kernel = graded_pairs_formula
    curved_kernel = graded_pairs_curved

    @property
    def curvature(self) -> Literal["exact"] | None:
        return "exact"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The only variant."""
        return (cls(),)
