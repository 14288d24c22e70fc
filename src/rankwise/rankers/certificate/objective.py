"""What a ranker minimised, as its certificate needs to know it: the loss, the penalty, and how both were chosen."""

import math
from dataclasses import dataclass

from rankwise.guarantees._bound import Bound
from rankwise.losses._base import Loss


@dataclass(frozen=True, kw_only=True)
class TrainingObjective:
    r"""The mean of a loss over queries plus (alpha/2) norm(w - w0)^2, or inside a ball.

    Attributes
    ----------
    loss : Loss
        The loss that ``coef_`` minimises, with its final parameters.
    loss_fixed : bool or None, default=True
        Whether the parameters of the loss were fixed before the data were seen; None if only the user can know.
    alpha : float, default=NaN
        The l2 penalty, for weights in the units of ``scale``; NaN if there is none.
    alpha_fixed : bool or None, default=None
        Whether alpha was fixed before the data were seen.
    scale : str, default="none"
        The ranker's ``scale``; "auto" may divide features by statistics of these queries.
    centre_fixed : bool or None, default=True
        Whether w0 does not depend on these queries.
    objective : float, default=NaN
        The objective at ``coef_``.
    gap : float, default=NaN
        A proven bound on objective - minimum; NaN if there is none.
    norm : float, default=None
        The declared norm of the weights to compare with.
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
    """The proven distance of a nonnegative objective from its minimum, as a bound."""
    return Bound(
        name="Gap to the minimum",
        bounds=f"{of} - its minimum",
        statement="objective - lower_bound",
        value=gap,
        terms={"objective": objective, "lower_bound": objective - gap},
        ceiling=objective if objective > 0 else math.inf,
        kind="optimality gap",
    )
