"""Presets of :class:`~rankwise.LossRanker`: the losses of the literature with the defaults that suit them.

Each class adds its loss and its own parameters; everything else is :class:`RegularizedRanker`'s. ``LossRanker(loss)``
trains the same problems for a loss that is given as an object.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from rankwise._arrays import Array, Numbers, Vector
from rankwise._parameters import PositiveFloat
from rankwise._store import Store
from rankwise.losses._base import Loss
from rankwise.losses.graded_pair_hinge import GradedPairHinge
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM
from rankwise.losses.structured import SVMMapHinge
from rankwise.losses.structured_ndcg import NDCGHinge
from rankwise.measures.ap import AP
from rankwise.measures.ndcg import NDCG, gains
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource, differing_weights
from rankwise.rankers._base import AnyMeasure
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.loss_ranker import Prior, RegularizedRanker
from rankwise.solvers.batch.risk import mean_share


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(RegularizedRanker):
    r"""The linear RankSVM: a hinge over the pairs of documents with different labels.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of mean over label_i > label_j of [1 + s_j - s_i]_+.

    ``pair_weights="top"`` is IR-SVM: a pair weighs tau(label_i, label_j), what its exchange costs the measure.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports; the loss does not depend on it.
    loss : {"hinge", "squared"}, default="hinge"
        The pair hinge, solved by cutting planes, or its square, solved by truncated Newton steps.
    per_pair : bool, default=True
        Whether a query counts by the mean over its pairs. False takes their sum, so long queries outweigh short
        ones; the default alphas are then multiplied by the mean number of pairs per query.
    pair_weights : {"equal", "top"}, default="equal"
        "top" weighs a pair of labels by how much the measure, an nDCG, falls on average if two documents with these
        labels are exchanged in a perfect ranking, divided by the largest such weight. It requires ``loss="hinge"``.

    Attributes
    ----------
    pair_weights_ : tuple of (better label, worse label, weight)
        tau of the training queries; empty for equal weights.

    Notes
    -----
    All other parameters and attributes are those of :class:`~rankwise.LossRanker`.

    IR-SVM also weighs a query by mu, inversely proportional to its number of pairs: the default ``per_pair=True``. Its
    authors estimate tau from random exchanges; here it is their exact mean over all exchanges of a query, averaged over
    the training queries that have both labels. tau depends on the training labels, also on those of queries that are
    held out to select alpha. Certificates therefore say that the loss was not fixed beforehand; ``gap_`` is about the
    objective with this tau, which bounds no measure. Labels that no training query has together weigh 1.

    A pass costs O(m log m) per query of m documents, however many pairs it has, and reads X once. The history of the
    squared hinge has one row per Newton step: step, objective, lower bound, gap, products.

    SVM-rank minimizes (1/2) norm(w)^2 + (C/n) sum over n queries of the sum over pairs: ``per_pair=False`` and
    alpha = 1/C. With one C for the sum over all pairs, alpha = 1/(n C). G1 is 2 for the mean over pairs and
    2 floor(m^2/4) for their sum; the squared hinge has no finite G1, so it has no ``alpha="theory"``.

    A query with one label teaches nothing, but is part of the mean. If there are fewer queries than folds, every query
    is a part. Of equals, or where nothing can judge them, the largest alpha or the smallest max_norm is taken. If the
    weights are 0 although better documents differ from worse ones on average, ``fit`` emits a
    ``NothingLearnedWarning``. After Ctrl-C the ranker holds the best alpha judged so far, or the best weights of the
    first one.

    References
    ----------
    T. Joachims (2002). Optimizing search engines using clickthrough data. KDD. doi:10.1145/775047.775067

    T. Joachims (2006). Training linear SVMs in linear time. KDD. doi:10.1145/1150402.1150429

    Y. Cao, J. Xu, T.-Y. Liu, H. Li, Y. Huang, H.-W. Hon (2006). Adapting ranking SVM to document retrieval. SIGIR.
    doi:10.1145/1148170.1148205

    O. Chapelle, S. S. Keerthi (2010). Efficient algorithms for ranking with SVMs. Information Retrieval 13.
    doi:10.1007/s10791-009-9109-9

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = RankSVM(alpha=0.01).fit(queries)
    >>> model.gap_ <= 1e-3 * model.objective_
    True
    """

    name = "RankSVM"

    loss: Literal["hinge", "squared"] = "hinge"
    per_pair: bool = True
    pair_weights: Literal["equal", "top"] = "equal"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(alpha=0.01),
            cls("AP", loss="squared", per_pair=False, alpha=(100.0, 1.0), folds=2),
            cls("nDCG@3", pair_weights="top", alpha=0.01),
        )

    def _loss(self) -> Loss:
        if self.pair_weights == "top":
            return GradedPairHinge(weights=getattr(self, "pair_weights_", ()), per_pair=self.per_pair)
        return PairHinge(squared=self.loss == "squared", per_pair=self.per_pair)

    def _unit(self, queries: QuerySource) -> float:
        return 1.0 if self.per_pair else _mean_pairs(queries) or 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.pair_weights == "equal":
            return
        if not isinstance(self._measure(), NDCG):
            raise self._wrong("measure", "nDCG or nDCG@k for pair_weights='top'")
        if self.loss != "hinge":
            raise self._wrong("loss", "'hinge' for pair_weights='top'")
        if isinstance(self.alpha, str):
            raise self._wrong("alpha", "a number or None for pair_weights='top', whose loss depends on the queries")

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._measure()
        self.pair_weights_: tuple[tuple[float, float, float], ...] = ()
        if self.pair_weights == "top" and isinstance(measure, NDCG):
            self.pair_weights_ = exchange_costs(queries, measure)
        super()._fit(queries, validation)

    def _training_objective(self) -> TrainingObjective:
        return replace(super()._training_objective(), loss_fixed=not self.pair_weights_)

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = super()._state()
        tau = {"pair_weights": np.array(self.pair_weights_)} if self.pair_weights_ else {}
        return facts, {**arrays, **tau}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        super()._restore(facts, store)
        tau = store.array("pair_weights", np.float64, (None, 3)) if "pair_weights" in store else np.empty((0, 3))
        self.pair_weights_ = GradedPairHinge(weights=tau.tolist()).weights


def exchange_costs(queries: QuerySource, measure: NDCG) -> tuple[tuple[float, float, float], ...]:
    """What exchanging two documents of a perfect ranking costs NDCG on average, for every two labels.

    Parameters
    ----------
    queries : QuerySource
        Judged queries.
    measure : NDCG
        The measure.

    Returns
    -------
    tuple of (better label, worse label, weight)
        The mean over queries with both labels of (G_a - G_b) (D_a - D_b) / ideal DCG, D_a the mean discount of the
        positions of label a in a perfect ranking, divided by the largest such mean; empty if no exchange costs
        anything.
    """
    grades = np.unique(queries.apply(Queries.labels))
    gain = gains(grades, measure.gain)
    falling = np.lexsort((-grades, -gain))
    grades, gain = grades[falling], gain[falling]
    count = queries.apply(count_labels, tuple(grades.tolist()))
    end = np.cumsum(count, axis=1)
    longest = int(end[:, -1].max(initial=1))
    discount = np.where(np.arange(1, longest + 1) <= (measure.cutoff or longest), measure.table(longest), 0.0)
    summed = np.concatenate([[0.0], np.cumsum(discount)])
    block = summed[end] - summed[end - count]
    ideal, share = block @ gain, block / np.maximum(count, 1)
    weight = np.ones(len(count)) if queries.weight is None else queries.weight
    found = []
    for a in range(len(grades)):
        for b in range(a + 1, len(grades)):
            both = (count[:, a] > 0) & (count[:, b] > 0) & (ideal > 0) & (weight > 0)
            if both.any():
                costs = (gain[a] - gain[b]) * (share[both, a] - share[both, b]) / ideal[both]
                labels = sorted((float(grades[a]), float(grades[b])), reverse=True)
                found.append((*labels, math.fsum(weight[both] * costs) / math.fsum(weight[both])))
    largest = max((cost for *_, cost in found), default=0.0)
    return tuple((better, worse, max(cost / largest, 0.0)) for better, worse, cost in found) if largest > 0 else ()


def count_labels(queries: Queries, labels: Sequence[float]) -> Numbers:
    """How often every query has each of these labels."""
    owner, label = queries.query_of_row, queries.labels()
    counts = [np.bincount(owner[label == one], minlength=len(queries)) for one in labels]
    return np.array(counts, dtype=np.int64).reshape(len(labels), len(queries)).T


def _mean_pairs(queries: QuerySource) -> float:
    """The weighted mean over queries of the number of pairs with different labels, or of the sum of their weights."""
    pairs = queries.apply(pairs_of_queries)
    return float(mean_share(queries) * (pairs.sum() if queries.weight is None else queries.weight @ pairs))


def pairs_of_queries(queries: Queries) -> Vector:
    """The number of pairs with different labels of every query, or the sum of their weights."""
    owner, labels = queries.query_of_row, queries.labels()
    row_weight = differing_weights(queries)
    if row_weight is None:
        row_weight = np.ones(len(labels))
    order = np.lexsort((labels, owner))
    new = np.flatnonzero((np.diff(owner[order], prepend=-1) != 0) | (np.diff(labels[order], prepend=-1.0) != 0))
    same = np.zeros(len(queries))
    np.add.at(same, owner[order][new], np.add.reduceat(row_weight[order], new) ** 2 if len(new) else 0.0)
    return np.asarray((np.bincount(owner, row_weight, len(queries)) ** 2 - same) / 2)


@dataclass(eq=False, repr=False, kw_only=True)
class SLAMRanker(RegularizedRanker):
    r"""A linear ranker for the SLAM loss, which bounds 1 - NDCG or 1 - AP.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of sum_i v_i [margin + max_j s_j - s_i]_+.

    The maximum is over documents j of a lower label; v are weights made from the labels for NDCG, NDCG@k or AP, see
    :class:`~rankwise.losses.SLAM`.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        "nDCG", "nDCG@k" or "AP": the loss upper-bounds 1 - measure.
    weights : str, default=None
        The rule for v; None is "ndcg_tight_sym" for NDCG and "ap_sym" for AP.
    margin : float, default=1.0
        The margin, above 0; the loss is an upper bound for a margin of 1.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`~rankwise.LossRanker`. Here ``prior_coef`` is "ridge"
    by default.

    On noisy queries **w = 0 minimizes the mean loss**, and ranks nothing: along every direction, the best of many less
    relevant documents is on average so far above the relevant ones that any step away from 0 costs more than it gains.
    This is the case on OHSUMED and MQ2008, for NDCG, NDCG@10 and AP alike: a mean of subgradients equal to 0 proves it.
    Then no alpha and no max_norm helps, nor does the margin, which only sets the unit of w. The convex problem around 0
    is for queries that weights can nearly separate.

    The default w0 is therefore a ridge regression on the same queries. The loss leads away from it as far as the
    measure on the validation set (or by folds) supports; a large alpha stays at w0. The problem remains convex and its
    gap certain, but ``alpha="theory"`` needs a w0 that does not depend on these queries. With ``prior_coef=None`` a fit
    that ends at 0 emits a ``NothingLearnedWarning``.

    G1 <= 2. For margin 1, ``objective_`` bounds the mean of 1 - measure over the training queries, ties in the worst
    order.

    References
    ----------
    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591, section 5; the alpha printed there is corrected here.
    """

    name = "SLAMRanker"

    prior_coef: Prior = "ridge"
    weights: str | None = None
    margin: PositiveFloat = 1.0

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.1), cls("nDCG", weights="ndcg_003", penalty="l1", max_norm=0.5)

    def _loss(self) -> SLAM:
        return SLAM.for_measure(self._measure(), self.weights, self.margin)


@dataclass(eq=False, repr=False, kw_only=True)
class MaxPairRanker(RegularizedRanker):
    r"""A linear ranker for the hinge of the worst pair of each query.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of [1 + max over label_i > label_j of (s_j - s_i)]_+.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports; the loss does not depend on it.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`~rankwise.LossRanker`. Here ``prior_coef`` is "ridge"
    by default.

    The loss depends on one pair per query, the worst one, so w = 0 minimizes its mean on all but nearly separable
    queries, also on OHSUMED and MQ2008; :class:`SLAMRanker` describes the consequences. G1 = 2, and ``objective_``
    bounds the share of training queries that are not ranked perfectly, ties in the worst order.

    References
    ----------
    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591.
    """

    name = "MaxPairRanker"

    prior_coef: Prior = "ridge"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.1), cls("AP", alpha=(1.0, 0.01), folds=2)

    def _loss(self) -> MaxPair:
        return MaxPair()


@dataclass(eq=False, repr=False, kw_only=True)
class SVMMap(RegularizedRanker):
    r"""A linear ranker for the structured hinge above 1 - AP, known as SVMmap.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of max over rankings of [1 - AP + Psi - Psi*].

    Psi of a ranking is the mean over pairs of a relevant and another document of their difference in score, with the
    sign of the order in which the ranking puts them; see :class:`~rankwise.losses.SVMMapHinge`.

    Parameters
    ----------
    measure : str or Measure, default="AP"
        The measure used for model selection, which ``score`` reports. The ``rel`` of an AP also says which labels are
        relevant; with another measure those above 0 are.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`~rankwise.LossRanker`.

    The paper writes (1/2) norm(w)^2 + (C/n) sum of the losses of n queries: alpha = 1/C. A pass finds the most
    violated ranking of every query of m documents in O(m log m) and reads X once; some dozen passes per alpha are
    usual. The loss upper-bounds 1 - AP, so ``objective_`` bounds its mean over the training queries, ties in the
    worst order. G1 = 4.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims (2007). A support vector method for optimizing average
    precision. SIGIR. doi:10.1145/1277741.1277790
    """

    name = "SVMMap"

    measure: AnyMeasure = field(default="AP", kw_only=False)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.01), cls("AP(rel=2)", penalty="l1", max_norm=1.0)

    def _loss(self) -> SVMMapHinge:
        measure = self._measure()
        return SVMMapHinge(rel=measure.rel if isinstance(measure, AP) else None)


@dataclass(eq=False, repr=False, kw_only=True)
class StructuredNDCG(RegularizedRanker):
    r"""A linear ranker for the structured hinge above 1 - NDCG.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of max over rankings of [1 - NDCG@k + s'(a - a*)].

    a_i decreases with the position that a ranking gives document i, a* belongs to perfect rankings; see
    :class:`~rankwise.losses.NDCGHinge`.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        "nDCG" or "nDCG@k" of any gain and discount: the loss upper-bounds 1 - measure. Another measure is used for
        model selection only; the loss is then that of nDCG over all documents of a query.
    normalized : bool, default=True
        Whether a is divided by a constant of the query's length, so G1 = 2; False is the printed form.

    Notes
    -----
    All other parameters, and the attributes, are those of :class:`~rankwise.LossRanker`. Here ``prior_coef`` is "ridge"
    by default.

    The most violated ranking is an assignment of documents to positions. With a cut-off its cost is proportional to the
    number of documents. Without one, and normalized, it grows with the cube: 0.7 ms for 100 documents, 730 ms for 1,000
    (measured by ``experiments/loss_costs.py``). Prefer a cut-off there.

    With a cut-off and noisy queries w = 0 may minimize the mean loss, as for :class:`SLAMRanker`; it does on OHSUMED
    with nDCG@10, and not on MQ2008. This is the reason for the default prior_coef.

    References
    ----------
    O. Chapelle, Q. Le, A. Smola (2007). Large margin optimization of ranking measures. NIPS workshop on machine
    learning for web search.

    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591, section 6.1, whose form this is.
    """

    name = "StructuredNDCG"

    prior_coef: Prior = "ridge"
    normalized: bool = True

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls("nDCG@5", alpha=0.1), cls("nDCG", normalized=False, prior_coef=None, alpha=(1.0, 0.01), folds=2)

    def _loss(self) -> NDCGHinge:
        measure = self._measure()
        if not isinstance(measure, NDCG):
            return NDCGHinge(normalized=self.normalized)
        return NDCGHinge(k=measure.cutoff, gain=measure.gain, discount=measure.discount, normalized=self.normalized)
