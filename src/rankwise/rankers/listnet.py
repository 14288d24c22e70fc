"""ListNet: the cross-entropy of two softmax distributions over a list, learned round by round."""

import math
from typing import Any

from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.losses.listnet import ListNet as ListNetLoss
from rankwise.rankers._online import OnlineLearner
from rankwise.rankers.online import theory_step
from rankwise.solvers.online import Averaging, Rules, Scaling, Step


class ListNet(OnlineLearner):
    r"""w <- w - eta_t X' (softmax(X w) - softmax(labels)) on every round.

    Parameters
    ----------
    measure : what is accounted, and what ``score`` reports; the loss does not look at it
    target : softmax of the "labels" or of the "gains" 2^label - 1
    eta : size of a step; or "theory": ball / (2 R sqrt(n))
    step : "sqrt" (eta / sqrt(t)) or "constant"; "theory" is constant
    ball : the norm of the weights to compare with, for "theory"
    row_radius, horizon : R and n of "theory" in a stream; ``fit`` finds them itself
    averaging, epochs, shuffle, scale, random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_, ledger_ : as for :class:`SLAMPerceptron`
    """

    name = "ListNet"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        target: str = "labels",
        eta: Any = 1.0,
        step: Step = "sqrt",
        ball: float | None = None,
        row_radius: float | None = None,
        horizon: int | None = None,
        averaging: Averaging = "none",
        epochs: int = 1,
        shuffle: bool = False,
        scale: Scaling = "none",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        self.measure = measure
        self.target = target
        self.eta = eta
        self.step = step
        self.ball = ball
        self.row_radius = row_radius
        self.horizon = horizon
        self.averaging = averaging
        self.epochs = epochs
        self.shuffle = shuffle
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

    def _rules(self, queries: Queries | None) -> Rules:
        if self.eta != "theory":
            return self._resumed(self.eta)
        return self._resumed(theory_step(self, ListNetLoss(target=self.target), queries))

    def _resumed(self, eta: float) -> Rules:
        return Rules(
            loss=ListNetLoss(target=self.target),
            measure=self._measure(),
            update="always",
            eta=eta,
            step="constant" if self.eta == "theory" else self.step,
            ball=math.inf,
            averaging=self.averaging,
            scale=self.scale,
        )
