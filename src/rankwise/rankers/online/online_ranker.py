"""Online learning with any loss: the general round loop as a ranker."""

import math
from collections.abc import Sequence
from typing import Any, Self

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM
from rankwise.rankers.online.learner import OnlineLearner
from rankwise.solvers.online.config import Averaging, Ball, OnlineConfig, Scaling, Step, Update


class OnlineRanker(OnlineLearner):
    r"""w <- projection of (w - eta_t X' g), g the (sub)gradient of any loss on the list of the round.

    Parameters
    ----------
    loss : any loss of :mod:`rankwise.losses`; None: :class:`~rankwise.losses.SLAM`
    measure : what is accounted, and what counts as a mistake
    update : "always" (online gradient descent) or "mistakes" (a perceptron)
    eta : size of a step; or "theory": ball / (G1 R sqrt(n)), which minimises the bound on the mean of the rounds'
        losses for a convex loss whose gradients have an l1 norm of at most G1
    step : "sqrt" (eta / sqrt(t)) or "constant"; "theory" is constant
    projection, ball : keep the "l2" or "l1" norm of w below ``ball``; "none" by default
    averaging : "uniform" (mean over all rounds), "suffix" (over the later ones) or "none"
    row_radius, horizon : R and n of "theory" in a stream, where nobody can look ahead; ``fit`` finds them itself
    epochs, shuffle, scale, random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_, ledger_ : as for :class:`SLAMPerceptron`
    """

    name = "OnlineRanker"

    def __init__(
        self,
        loss: Loss | None = None,
        *,
        measure: Any = "nDCG@10",
        update: Update = "always",
        eta: Any = 1.0,
        step: Step = "sqrt",
        projection: Ball = "none",
        ball: float | None = None,
        averaging: Averaging = "uniform",
        row_radius: float | None = None,
        horizon: int | None = None,
        epochs: int = 1,
        shuffle: bool = False,
        scale: Scaling = "none",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        self.loss = loss
        self.measure = measure
        self.update = update
        self.eta = eta
        self.step = step
        self.projection = projection
        self.ball = ball
        self.averaging = averaging
        self.row_radius = row_radius
        self.horizon = horizon
        self.epochs = epochs
        self.shuffle = shuffle
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(),
            cls(PairHinge(), measure="AP", projection="l2", ball=0.5, scale="radius"),
            cls(MaxPair(), update="mistakes", step="constant", projection="l1", ball=2.0, averaging="suffix"),
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
            ball=math.inf if self.projection == "none" or self.ball is None else self.ball,
            averaging=self.averaging,
            scale=self.scale,
        )


def theory_step(ranker: Any, loss: Loss, queries: Queries | None) -> float:
    """ball / (G1 R sqrt(n)): the step of online gradient descent that its regret bound asks for."""
    from rankwise.data.row_blocks import largest_radius

    if ranker.ball is None or not ranker.ball > 0:
        raise RankwiseError(
            "eta='theory' is ball / (G1 R sqrt(n)): give ball=, the norm of the weights to compare with"
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
            f"eta='theory' is ball / (G1 R sqrt(n)): found G1 = {steepest:g}, R = {radius:g} and n = {rounds:,}"
        )
    return float(ranker.ball / (steepest * radius * math.sqrt(rounds)))
