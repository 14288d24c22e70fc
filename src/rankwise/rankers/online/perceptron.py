"""Perceptrons for ranking: they learn from mistakes alone, and what they can lose is bounded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses._base import PreparedLists
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.slam import SLAM
from rankwise.measures._base import Measure
from rankwise.measures.ap import AP
from rankwise.measures.ndcg import NDCG
from rankwise.rankers.online.learner import OnlineLearner
from rankwise.solvers.batch.row_blocks import largest_radius
from rankwise.solvers.online.config import Averaging, OnlineConfig, Scaling


class SLAMPerceptron(OnlineLearner):
    r"""On a mistake, w <- w + eta sum_i v_i (x_i - x_K(i)) over the documents that a less relevant one outscores.

    v are the weights of the :class:`~rankwise.losses.SLAM` loss, made for NDCG, NDCG@k or AP, and K(i) is the
    highest-scored document of a lower label. A mistake is a list whose first k positions, equal scores in the worst
    order, are not ideal.

    Parameters
    ----------
    measure : "nDCG", "nDCG@k" or "AP"
    margin : 0, the scale-free perceptron: a document is outscored if a less relevant one reaches its score, no step
        has to be chosen, and the guarantee is the best one; or 1, the papers' algorithms, where the step matters
    eta : size of a step; "theory": 1/(4 R^2 kappa) with R and kappa of the lists in ``fit``, for margin 1
    weights : the rule for v; None: "ndcg_tight_sym" or "ap_sym". See :class:`~rankwise.losses.SLAM`
    averaging : "none" (the last weights), "uniform" (mean over all rounds) or "suffix" (over the later ones)
    epochs, shuffle : passes over the lists in ``fit``, and whether each is in an order of its own
    scale : "none"; "radius" divides features by the largest radius of a list so far; "standard" by their own running
        standard deviation. ``coef_`` is for raw features all the same
    random_state : seed of the shuffling
    n_jobs : threads for measuring; rounds follow one another
    verbose : show a progress bar
    missing : what ``fit`` and ``predict`` do with NaN in arrays: "error", "zero", or "min" of the query

    Attributes
    ----------
    coef_ : weights on raw features
    ledger_ : rounds, mistakes, losses, and the bounds on them
    n_features_in_, feature_names_in_ : what it was fitted on

    Notes
    -----
    One pass costs one read of X, O(d) memory. For any u, with F(u) its SLAM losses at margin 1 on the lists with a
    mistake, the cumulative loss is at most F + norm(u) sqrt(c F) + c norm(u)^2, c = 4 R^2 V + 2 margin / eta, with R
    the radius of a list and V the largest sum of weights, at most 1: see :mod:`rankwise.guarantees.bounds.online`.
    Neither the length of the lists nor their number comes in.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(200, random_state=0)
    >>> model = SLAMPerceptron(measure="nDCG@10").fit(queries)
    >>> model.ledger_.rounds
    200
    """

    name = "SLAMPerceptron"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        margin: float = 0.0,
        eta: Any = 1.0,
        weights: str | None = None,
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
        self.margin = margin
        self.eta = eta
        self.weights = weights
        self.averaging = averaging
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
            cls("AP", margin=1.0, eta=0.25, averaging="uniform", epochs=2, shuffle=True),
            cls("nDCG", weights="ndcg_003", scale="standard", averaging="suffix"),
        )

    def _config(self, queries: Queries | None) -> OnlineConfig:
        if self.eta != "theory":
            return self._resumed(self.eta)
        if self.margin == 0:
            raise RankwiseError("the scale-free perceptron (margin=0) has no step to choose: leave out eta='theory'")
        if queries is None or self.scale != "none":
            raise RankwiseError(
                "eta='theory' is worked out from all lists before the first round: it needs fit and scale='none'"
            )
        return self._resumed(_step_of_theorem_5(self._resumed(1.0), queries))

    def _resumed(self, eta: float) -> OnlineConfig:
        measure = self._measure()
        loss = slam_for(measure, self.weights, self.margin)
        return OnlineConfig(loss=loss, measure=measure, eta=eta, averaging=self.averaging, scale=self.scale)


class MaxPairPerceptron(OnlineLearner):
    r"""On a mistake, w <- w + eta (x_i - x_j) for the worst pair: j less relevant than i and farthest above it.

    Parameters
    ----------
    measure : any measure; a mistake is a list whose first positions, as far as the measure looks, are not ideal
    eta : size of a step; scales w and, but for the rounding of ties, changes no ranking
    averaging, epochs, shuffle, scale, random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_, ledger_ : as for :class:`SLAMPerceptron`

    Notes
    -----
    Makes at most F + 2 norm(u) R sqrt(F) + 4 norm(u)^2 R^2 mistakes, F the worst-pair losses of u; on lists that a unit
    vector separates by gamma that is 4 R^2 / gamma^2, and no deterministic ranker can promise two fewer
    (:class:`rankwise.guarantees.Adversary`).
    """

    name = "MaxPairPerceptron"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        eta: float = 1.0,
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
        self.eta = eta
        self.averaging = averaging
        self.epochs = epochs
        self.shuffle = shuffle
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

    def _config(self, queries: Queries | None) -> OnlineConfig:
        return self._resumed(self.eta)

    def _resumed(self, eta: float) -> OnlineConfig:
        return OnlineConfig(
            loss=MaxPair(), measure=self._measure(), eta=eta, averaging=self.averaging, scale=self.scale
        )


def slam_for(measure: Measure, weights: str | None = None, margin: float = 1.0) -> SLAM:
    """The SLAM loss that bounds this measure, with its default weights or a rule that fits it."""
    loss = None
    if isinstance(measure, NDCG):
        rule = weights or "ndcg_tight_sym"
        loss = SLAM(weights=rule, k=measure.cutoff, margin=margin, gain=measure.gain, discount=measure.discount)
    elif isinstance(measure, AP):
        loss = SLAM(weights=weights or "ap_sym", margin=margin, rel=measure.rel)
    if loss is None or replace(loss, margin=1.0).upper_bounds != measure:
        rule = "" if weights is None else f" with the weights {weights!r}"
        raise RankwiseError(
            f"SLAM bounds nDCG, nDCG@k and AP, each with weights of its own: found {measure!r}{rule}; "
            "MaxPairPerceptron takes any measure"
        )
    return loss


def _step_of_theorem_5(config: OnlineConfig, queries: Queries) -> float:
    """1/(4 R^2 kappa), with the largest radius and the weights of all these lists."""
    radius = largest_radius(queries)
    v = PreparedLists.of(config.loss, queries.labels(), queries.start, queries.rows).value[queries.rows]
    if queries.weight is not None:  # a list of weight 2 is a step twice as long
        v = v * np.repeat(queries.weight, queries.sizes)
    kappa = WeightFacts.of(v, queries.start).kappa
    if radius == 0 or kappa == 0:
        raise RankwiseError("eta='theory' is 1/(4 R^2 kappa), and these lists have nothing to learn: R or kappa is 0")
    return 1 / (4 * radius**2 * kappa)
