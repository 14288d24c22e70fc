"""Perceptrons for ranking: they learn from mistakes alone, and what they can lose is bounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwise._kernels.radius import largest_radius
from rankwise._parameters import NonNegativeFloat, PositiveFloat
from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses.compute import PreparedLists
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.slam import SLAM
from rankwise.queries.queries import Queries
from rankwise.rankers.online.learner import LinearOnlineLearner


@dataclass(eq=False, repr=False, kw_only=True)
class SLAMPerceptron(LinearOnlineLearner):
    r"""The perceptron of the SLAM loss, which learns from one query at a time.

    On a mistake, w <- w + eta sum_i v_i (x_i - x_K(i)) over the documents that a less relevant one outscores.

    v are the weights of the :class:`~rankwise.losses.SLAM` loss, made for NDCG, NDCG@k or AP, and K(i) is the
    highest-scored document of a lower label. A mistake is a query whose first k positions, ties in the worst order, are
    not ideal.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        "nDCG", "nDCG@k" or "AP".
    margin : float, default=0.0
        0 is the scale-free perceptron: a document is outscored if a less relevant one reaches its score, no step has to
        be chosen, and the guarantee is the best one. 1 gives the algorithms of the papers, where the step matters.
    eta : float or "theory", default=1.0
        The step size; "theory" is 1 / (4 R^2 kappa) with R and kappa of the queries given to ``fit``, for margin 1.
    weights : str, default=None
        The rule for v; None is "ndcg_tight_sym" or "ap_sym". See :class:`~rankwise.losses.SLAM`.
    averaging : {"none", "uniform", "suffix"}, default="none"
        Whether ``coef_`` is the last weights, their mean over all rounds, or their mean over the later ones. If no
        weights rank the queries perfectly, averages are usually much better for ``predict``.
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

    Notes
    -----
    One pass reads X once and takes O(n_features) memory. For any u, with F(u) the sum of its SLAM losses at margin 1
    over the queries with a mistake, the cumulative loss is at most F + norm(u) sqrt(c F) + c norm(u)^2, where
    c = 4 R^2 V + 2 margin / eta, R is the radius of a query and V <= 1 the largest sum of weights; see
    :mod:`rankwise.guarantees.bounds.online`. The bound depends neither on the number of documents per query nor on the
    number of queries.

    References
    ----------
    S. Chaudhuri, A. Tewari (2015). Perceptron like algorithms for online learning to rank. arXiv:1508.00842.

    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(200, random_state=0)
    >>> model = SLAMPerceptron(measure="nDCG@10").fit(queries)
    >>> model.ledger_.rounds
    200
    """

    name = "SLAMPerceptron"

    margin: NonNegativeFloat = 0.0
    weights: str | None = None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(),
            cls("AP", margin=1.0, eta=0.25, averaging="uniform", epochs=2, shuffle=True),
            cls("nDCG", weights="ndcg_003", scale="standard", averaging="suffix"),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.eta == "theory" and self.margin == 0:
            raise self._wrong("eta", "a positive float for margin=0: the scale-free perceptron has no step to choose")
        self._loss()  # raises an error for a measure or weights that it does not have

    def _theory_step(self, queries: Queries | None) -> float:
        if queries is None or self.scale != "none":
            raise RankwiseError(
                "eta='theory' is computed from all queries before the first round, which requires fit and scale='none'"
            )
        return _quarter_step(self._loss(), queries)

    def _loss(self) -> SLAM:
        return SLAM.for_measure(self._measure(), self.weights, self.margin)


@dataclass(eq=False, repr=False, kw_only=True)
class MaxPairPerceptron(LinearOnlineLearner):
    r"""On a mistake, w <- w + eta (x_i - x_j) for the worst pair: j less relevant than i and farthest above it.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        Any measure. A mistake is a query whose first positions, down to the cut-off, are not ideal.
    eta : float, default=1.0
        The step size. It scales w and, except for the rounding of ties, changes no ranking.
    averaging : {"none", "uniform", "suffix"}, default="none"
        Whether ``coef_`` is the last weights, their mean over all rounds, or their mean over the later ones. If no
        weights rank the queries perfectly, averages are usually much better for ``predict``.
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

    Notes
    -----
    It makes at most F + 2 norm(u) R sqrt(F) + 4 norm(u)^2 R^2 mistakes, where F is the sum of the worst-pair losses of
    any u. On queries that a unit vector separates by gamma that is 4 R^2 / gamma^2, and no deterministic ranker can
    guarantee two fewer (:class:`rankwise.guarantees.Adversary`).

    References
    ----------
    S. Chaudhuri, A. Tewari (2015). Perceptron like algorithms for online learning to rank. arXiv:1508.00842.
    """

    name = "MaxPairPerceptron"

    eta: PositiveFloat = 1.0

    def _loss(self) -> MaxPair:
        return MaxPair()


def _quarter_step(loss: SLAM, queries: Queries) -> float:
    """1/(4 R^2 kappa), with the largest radius and the weights of all these lists."""
    radius = largest_radius(queries.X, queries.start, queries.rows)
    v = PreparedLists.of(loss, queries.labels(), queries.start, queries.rows).value[queries.rows]
    if queries.weight is not None:  # a list of weight 2 is a step twice as long
        v = v * np.repeat(queries.weight, queries.sizes)
    kappa = WeightFacts.of(v, queries.start).kappa
    if radius == 0 or kappa == 0:
        raise RankwiseError("eta='theory' is 1/(4 R^2 kappa), and these queries have nothing to learn: R or kappa is 0")
    return 1 / (4 * radius**2 * kappa)
