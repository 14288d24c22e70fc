"""Online learning with any loss: the general round loop as a ranker."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from rankwise._parameters import PositiveFloat, PositiveInt
from rankwise.losses._base import Loss
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM
from rankwise.queries.queries import Queries
from rankwise.rankers._base import AnyMeasure
from rankwise.rankers._parameters import AnyLoss
from rankwise.rankers.online.learner import LinearOnlineLearner, theory_step
from rankwise.solvers.online.config import Averaging, Ball, OnlineConfig, Step, Update


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineRanker(LinearOnlineLearner):
    r"""Online gradient descent on any loss, one query at a time.

    w <- projection of (w - eta_t X' g), where g is the (sub)gradient of any loss on the query of the round.

    The online counterpart of :class:`~rankwise.LossRanker`. It takes any loss of :mod:`rankwise.losses`, also one of
    your own in a single file.

    Parameters
    ----------
    loss : Loss, default=None
        The loss; None is :class:`~rankwise.losses.SLAM`.
    measure : str or Measure, default="nDCG@10"
        The measure that the ledger records, which also defines a mistake.
    update : {"always", "mistakes"}, default="always"
        Whether every round learns (online gradient descent) or those with a mistake (a perceptron).
    eta : float or "theory", default=1.0
        The step size. "theory" is max_norm / (G1 R sqrt(n)), which minimizes the bound on the mean loss of the rounds
        for a convex loss whose gradients have an l1 norm of at most G1.
    step : {"sqrt", "constant"}, default="sqrt"
        The schedule: eta / sqrt(t) or eta; "theory" is constant.
    projection : {"none", "l2", "l1"}, default="none"
        The norm of w that is kept below ``max_norm``.
    max_norm : float, default=None
        The largest norm of w, and the norm of the weights to compare with in "theory".
    averaging : {"uniform", "suffix", "none"}, default="uniform"
        Whether ``coef_`` is the mean of the weights over all rounds, over the later ones, or the last weights.
    row_radius : float, default=None
        R of "theory" in a stream, which cannot be looked ahead; ``fit`` finds it itself.
    horizon : int, default=None
        n of "theory" in a stream; ``fit`` finds it itself.
    epochs : int, default=1
        Number of passes over the queries in ``fit``.
    shuffle : bool, default=False
        Whether each pass visits the queries in a random order of its own.
    scale : {"none", "radius", "standard"}, default="none"
        Features as they are, divided by the largest radius of a query so far, or by their own running standard
        deviation. ``coef_`` applies to raw features in every case.
    random_state : int or numpy.random.Generator, default=0
        Seed of the shuffling.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays: raise an error, replace it by 0, or by the smallest value
        of the feature within the query.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    ledger_ : Ledger
        Rounds, mistakes, losses, and the bounds on them.
    state_ : State
        Everything that the next round depends on.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(200, random_state=0)
    >>> model = OnlineRanker(rw.losses.PairHinge(), measure="AP").fit(queries)
    >>> model.ledger_.rounds
    200
    """

    name = "OnlineRanker"

    loss: AnyLoss | None = field(default=None, kw_only=False)
    measure: AnyMeasure = field(default="nDCG@10", kw_only=True)
    update: Update = "always"
    step: Step = "sqrt"
    projection: Ball = "none"
    max_norm: PositiveFloat | None = None
    averaging: Averaging = "uniform"
    row_radius: PositiveFloat | None = None
    horizon: PositiveInt | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._loss().noisy:  # the noise of a document depends on its place in the whole set
            raise self._wrong("loss", "a loss without noise, because a stream has no fixed places of documents")
        if self.projection != "none" and self.max_norm is None:
            raise self._wrong("max_norm", f"a positive float for projection={self.projection!r}")

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
