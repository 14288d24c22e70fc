"""What a ranker made small, as its certificate has to know it: the loss, the alpha, and how both came about."""

import math
from dataclasses import dataclass

from rankwise.guarantees._bound import Bound
from rankwise.losses._base import Loss


@dataclass(frozen=True, kw_only=True)
class TrainingObjective:
    r"""The mean of a loss over lists, with (alpha/2) norm(w - w0)^2 beside it or inside a ball.

    Attributes
    ----------
    loss : of :mod:`rankwise.losses`, with whose scores ``coef_`` was judged at last
    loss_fixed : whether its parameters were fixed before the data were seen; None where only the user can know
    alpha : lambda, of weights in the units that ``scale`` gives features; NaN where there is none
    alpha_fixed : whether lambda was fixed before the data were seen
    scale : the ranker's ``scale``: "auto" may divide features by what it learned from the lists
    centre_fixed : whether w0 owes nothing to these lists
    objective, gap : what was reached, and how far below the smallest can be; NaN where nobody knows
    norm : of the weights to compare with, declared; None where it was not
    """

    loss: Loss
    loss_fixed: bool | None = True
    alpha: float = math.nan
    alpha_fixed: bool | None = None
    scale: str = "none"
    centre_fixed: bool | None = True
    objective: float = math.nan
    gap: float = math.nan
    norm: float | None = None


def gap_bound(objective: float, gap: float, of: str = "objective") -> Bound:
    """How far an objective that is never below 0 is from its minimum, as the solver has proved it."""
    return Bound(
        name="Gap to the minimum",
        bounds=f"{of} - its minimum",
        statement="objective - lower_bound",
        value=gap,
        terms={"objective": objective, "lower_bound": objective - gap},
        ceiling=objective if objective > 0 else math.inf,
        kind="optimality gap",
    )
