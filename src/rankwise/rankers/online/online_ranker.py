"""Online learning with any loss: the general round loop as a ranker."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM
from rankwise.rankers.online.learner import OnlineLearner
from rankwise.solvers.online.config import Averaging, Ball, OnlineConfig, Step, Update


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineRanker(OnlineLearner):
    r"""w <- projection of (w - eta_t X' g), g the (sub)gradient of any loss on the list of the round.

    Parameters
    ----------
    loss : any loss of :mod:`rankwise.losses`; None: :class:`~rankwise.losses.SLAM`
    measure : what is accounted, and what counts as a mistake
    update : "always" (online gradient descent) or "mistakes" (a perceptron)
    eta : size of a step; or "theory": max_norm / (G1 R sqrt(n)), which minimises the bound on the mean of the rounds'
        losses for a convex loss whose gradients have an l1 norm of at most G1
    step : "sqrt" (eta / sqrt(t)) or "constant"; "theory" is constant
    projection, max_norm : keep the "l2" or "l1" norm of w below ``max_norm``; "none" by default
    averaging : "uniform" (mean over all rounds), "suffix" (over the later ones) or "none"
    row_radius, horizon : R and n of "theory" in a stream, where nobody can look ahead; ``fit`` finds them itself
    epochs, shuffle, scale, random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_, ledger_ : as for :class:`SLAMPerceptron`
    """

    name = "OnlineRanker"

    loss: Loss | None = field(default=None, kw_only=False)
    measure: Any = field(default="nDCG@10", kw_only=True)
    update: Update = "always"
    step: Step = "sqrt"
    projection: Ball = "none"
    max_norm: float | None = None
    averaging: Averaging = "uniform"
    row_radius: float | None = None
    horizon: int | None = None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(),
            cls(PairHinge(), measure="AP", projection="l2", max_norm=0.5, scale="radius"),
            cls(MaxPair(), update="mistakes", step="constant", projection="l1", max_norm=2.0, averaging="suffix"),
        )

    def _loss(self) -> Loss:
        return SLAM() if self.loss is None else self.loss

    def _config(self, queries: Queries | None) -> OnlineConfig:
        if self.eta != "theory":
            return self._resumed(self.eta)
        return self._resumed(theory_step(self, self._loss(), queries))

    def _resumed(self, eta: float) -> OnlineConfig:
        if not isinstance(self._loss(), Loss):
            raise RankwiseError(f"loss is one of rankwise.losses: found {self.loss!r:.60}")
        return OnlineConfig(
            loss=self._loss(),
            measure=self._measure(),
            update=self.update,
            eta=eta,
            step="constant" if self.eta == "theory" else self.step,
            projection=self.projection,
            max_norm=math.inf if self.projection == "none" or self.max_norm is None else self.max_norm,
            averaging=self.averaging,
            scale=self.scale,
        )


def theory_step(ranker: Any, loss: Loss, queries: Queries | None) -> float:
    """max_norm / (G1 R sqrt(n)): the step of online gradient descent that its regret bound asks for."""
    from rankwise.data.row_blocks import largest_radius

    if ranker.max_norm is None or not ranker.max_norm > 0:
        raise RankwiseError(
            "eta='theory' is max_norm / (G1 R sqrt(n)): give max_norm=, the norm of the weights to compare with"
        )
    if ranker.scale != "none":
        raise RankwiseError("eta='theory' needs the radius of the features as they are learned from: use scale='none'")
    radius, rounds, longest = ranker.row_radius, ranker.horizon, 2
    if queries is not None:
        radius = largest_radius(queries) if radius is None else radius
        rounds = ranker.epochs * len(queries) if rounds is None else rounds
        longest = int(queries.sizes.max(initial=2))
    if radius is None or rounds is None:
        raise RankwiseError("eta='theory' in a stream needs row_radius= and horizon=, for nobody can look ahead")
    steepest = loss.lipschitz_l1(longest)
    if not (radius > 0 and rounds > 0 and 0 < steepest < math.inf):
        raise RankwiseError(
            f"eta='theory' is max_norm / (G1 R sqrt(n)): found G1 = {steepest:g}, R = {radius:g} and n = {rounds:,}"
        )
    return float(ranker.max_norm / (steepest * radius * math.sqrt(rounds)))
