"""TopHinge with one fact wrong at a time."""

from dataclasses import dataclass

from rankwise._kernels.machine.jit import kernel
from rankwise.losses.top_hinge import TopHinge, top_hinge_formula
from rankwise.measures import NDCG
from rankwise.measures._base import Measure


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeTame(TopHinge):
    """Says that it is half as steep as it is."""

    name = "TopHingeTame"

    def lipschitz_l1(self, m: int) -> float:
        return 1.0 if m > 1 else 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeNarrow(TopHinge):
    """Says that it never exceeds 1 + b."""

    name = "TopHingeNarrow"

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, 1.0 + b


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeBoastful(TopHinge):
    """Says that it bounds 1 - NDCG, though it looks at the top alone."""

    name = "TopHingeBoastful"

    @property
    def upper_bounds(self) -> Measure | None:
        return NDCG()


@kernel
def capped_formula(score, label, value, grad, table, params):
    loss = top_hinge_formula(score, label, value, grad, table, params)
    if loss >= 3.0:
        grad[:] = 0.0
    return min(loss, 3.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeCapped(TopHinge):
    """Flat from 3 on, and says that it is convex."""

    name = "TopHingeCapped"
    kernel = capped_formula


@kernel
def half_formula(score, label, value, grad, table, params):
    loss = top_hinge_formula(score, label, value, grad, table, params)
    grad *= 0.5
    return loss


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeHalf(TopHinge):
    """Gives half its gradient."""

    name = "TopHingeHalf"
    kernel = half_formula


@kernel
def first_formula(score, label, value, grad, table, params):
    alone = label.copy()
    alone[label.argmax()] += 1.0
    return top_hinge_formula(score, alone, value, grad, table, params) if label.min() < label.max() else 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class TopHingeFirst(TopHinge):
    """Takes the first document with the largest label for the only one, and says that no order of documents matters."""

    name = "TopHingeFirst"
    kernel = first_formula
