"""AdaRank: boosting over queries, with single features as weak rankers, for any measure with values in [0, 1].

:class:`AdaRank` is the ranker: parameters, fitted state, certificate and file. :class:`Boosting` holds a fit under way:
it adds the features of the rounds to the scores, measures training and validation queries, and stops. :func:`boost` is
the algorithm itself on a table of measures. The rankings by single features come from
:class:`~rankwise.rankers.boosting.candidates.RankedLists`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import PositiveInt
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound
from rankwise.guarantees.bounds.training import adarank_certificate, log_factor
from rankwise.measures.ndcg import DCG
from rankwise.queries.chunks import Scale, scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers._base import LinearRanker, linear_scores
from rankwise.rankers._history import History, read_history
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.linear.ridge import read_coef

Vector = NDArray[np.float64]

# The columns that a fit records in every round and a file stores; the other columns of the history follow from them.
STORED: dict[str, type[np.generic]] = {
    **dict.fromkeys(("feature", "sign"), np.int64),
    **dict.fromkeys(("alpha", "phi", "delta", "train", "validation"), np.float64),
}
# A larger phi would make alpha infinite, or so large that no other feature counts.
LARGEST_PHI = 1 - 1e-12
# Candidates whose phi differs by less are equally good: the choice must not depend on the order of a sum.
_EQUAL = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class AdaRank(LinearRanker):
    r"""A weighted sum of single features, boosted for any measure.

    f = sum_t alpha_t h_t, where h_t is the feature that best ranks the queries that f ranks badly so far.

    With E(q, f) the measure of query q when it is ranked by f, round t takes

    h_t = argmax_h phi_t(h),  phi_t(h) = sum_q P_t(q) E(q, h),  alpha_t = log((1 + phi_t) / (1 - phi_t)) / 2,

    and P_{t+1}(q) is proportional to weight_q exp(-E(q, f_t)).

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that is boosted, with values between 0 and 1; ``score`` reports it.
    rounds : int, default=200
        The largest number of rounds.
    patience : int, default=None
        Stop after so many rounds without a better validation measure (training measure, if there is no validation
        set); None never stops for this reason.
    negated : bool, default=False
        Whether a round may also take a feature with a negative sign.
    repeats : bool, default=False
        Whether a feature may be taken again, as in the paper; False takes every feature once at most.
    ties : {"expected", "pessimistic"}, default="expected"
        How documents with equal scores are measured in training.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features: for each feature the sum of its alphas, with their signs, in the units of ``scale``.
    round_ : int
        The round that is returned, from 1: the first of those that are best on the validation set, the last one
        without a validation set. 0 if there was nothing to learn from.
    history_ : History
        One row per round: round, feature, sign, alpha, phi, delta, Pi, certificate (-log Pi), printed (1 - Pi), and
        the measure on training and validation queries.
    training_certificate_ : Bound
        What the rounds up to the returned one guarantee about the scores of ``predict`` on the training queries; see
        :func:`~rankwise.guarantees.bounds.training.adarank_certificate`.

    Notes
    -----
    Every query is ranked by every feature once, in one pass over X. A round then reads one column of X and measures
    every query once. Queries for which the measure is undefined are left out. Of features that are equally good, up to
    1e-12, the first is taken.

    P depends on the current measures alone, and none of its values is more than e times another (for equal weights of
    the queries). AdaRank therefore often takes one feature for ever. The fit stops as soon as a feature is taken again
    and changes no measure; ``repeats=False`` goes on to the next feature instead.

    The ``train`` column follows ``ties``; the ``validation`` column averages over ties, as ``score`` does. The scores
    of a round are running sums, which agree with those of ``predict`` up to rounding.

    After Ctrl-C the ranker holds the rounds that were finished.

    References
    ----------
    J. Xu, H. Li (2007). AdaRank: a boosting algorithm for information retrieval. SIGIR.
    doi:10.1145/1277741.1277809

    J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma (2010). Direct optimization of evaluation measures in
    learning to rank. Microsoft Research technical report MSR-TR-2010-171. Figure 6 and Theorem 4.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> lists = make_lists(40, documents=8, features=4, random_state=1)
    >>> model = AdaRank("nDCG@5", rounds=20).fit(lists)
    >>> model.score(lists) >= 1 - model.training_certificate_.value
    True
    """

    name = "AdaRank"
    takes_validation = True

    rounds: PositiveInt = 200
    patience: PositiveInt | None = None
    negated: bool = False
    repeats: bool = False
    ties: Literal["pessimistic", "expected"] = "expected"
    scale: Scale = "auto"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls("nDCG@5", rounds=5), cls("AP", rounds=9, patience=3, negated=True, repeats=True, ties="pessimistic")

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._measure()
        factor, _ = scale_factors(queries, self.scale)
        train = RankedLists.of(queries, measure, self.ties, self.n_jobs)
        held = None if validation is None else RankedLists.of(validation, measure, "expected", self.n_jobs)
        with progress("boosting", self.rounds + 1, enabled=None if self.verbose else False) as bar:
            alone = train.by_features(self.negated, bar.advance)
            boosting = Boosting(train=train, held=held, alone=alone, factor=factor)

            def keep() -> bool:
                if boosting.finished is not None:
                    self._take(boosting)
                return boosting.finished is not None

            with self._keep_on_interrupt(keep):
                boosting.run(self.rounds, self.patience, self.repeats, lambda: bar.advance(1))
        self._take(boosting)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self._measure(), DCG):
            raise self._wrong("measure", "a measure with values between 0 and 1, such as nDCG")

    def _take(self, boosting: "Boosting") -> None:
        """Set the state after the rounds that are finished."""
        finished = boosting.finished
        if finished is None:
            nothing = {name: np.empty(0, kind) for name, kind in STORED.items()}
            self._set(np.zeros(len(boosting.factor)), 0, 0.0, nothing)
            return
        coef, last, train = finished.w * boosting.factor, finished.last, boosting.train
        # the certificate is about the scores of predict, whose rounding may make and break ties
        published = train.measured(linear_scores(train.X, coef, self.n_jobs)[train.rows])[boosting.defined]
        delta = least_gain(last.before, published, last.alpha, boosting.alone[last.candidate])
        rows = zip(*boosting.rows[: finished.rounds], strict=True)
        columns = {name: np.array(row, kind) for (name, kind), row in zip(STORED.items(), rows, strict=True)}
        self._set(coef, finished.best, delta, columns)

    def _set(self, coef: Vector, best: int, delta: float, rounds: Mapping[str, NDArray[Any]]) -> None:
        """Set the fitted state; ``delta`` is that of the returned round on the scores of ``predict``."""
        phi, alpha, deltas = (rounds[name].tolist() for name in ("phi", "alpha", "delta"))
        factors = zip(phi, alpha, deltas, strict=True)
        log_pi = np.cumsum([log_factor(phi=p, alpha=a, delta=d) for p, a, d in factors])
        with np.errstate(over="ignore"):
            pi = np.exp(log_pi)
        steps = {name: rounds[name] for name in STORED if name not in ("train", "validation")}
        derived = {"Pi": pi, "certificate": -log_pi, "printed": 1 - pi}
        measured = {name: rounds[name] for name in ("train", "validation")}
        columns = {"round": np.arange(1, len(pi) + 1), **steps, **derived, **measured}
        self.training_certificate_: Bound = adarank_certificate(
            phi=phi[:best], alpha=alpha[:best], delta=[*deltas[: max(best - 1, 0)], delta][:best]
        )
        self.history_ = History(columns, ("train", "validation"), f"AdaRank, {self._measure().title}")
        self.round_ = best
        self.coef_ = coef
        self._published_delta_ = delta

    def _own_bounds(self) -> Sequence[Bound]:
        return (replace(self.training_certificate_, bounds=f"1 - {self._measure().title} on the training lists"),)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"history.{name}": self.history_[name] for name in STORED}
        return {"round": self.round_, "delta": self._published_delta_}, {"coef": self.coef_, **arrays}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        rounds, best = read_history(store, STORED), facts["round"]
        feature, sign = rounds["feature"], rounds["sign"]
        if not 0 <= best <= len(feature):
            raise RankwiseError("its table of rounds is incomplete")
        if ((feature < 0) | (feature >= self.n_features_in_) | (abs(sign) != 1)).any():
            raise RankwiseError("its rounds name features that it does not have")
        self._set(read_coef(store, self.n_features_in_), int(best), float(facts["delta"]), rounds)


# ----------------------------------------------------------------------------------------------------------- the rounds


@dataclass(frozen=True)
class BoostingRound:
    """One round: the share of each query in the distribution, and its measure before and after (``values``)."""

    candidate: int
    alpha: float
    phi: float
    delta: float
    share: Vector
    before: Vector
    values: Vector


@dataclass(frozen=True)
class Finished:
    """The number of finished rounds, and the best of them: its number from 1, its weights and its record."""

    rounds: int
    best: int
    w: Vector
    last: BoostingRound


@dataclass(kw_only=True)
class Boosting:
    """A fit under way.

    A Ctrl-C may come at any moment: ``rows`` only grows, and a round counts once ``finished`` is assigned.

    Parameters
    ----------
    train : RankedLists
        The training queries.
    held : RankedLists or None
        The validation queries. Without them, or if the measure is undefined for all of them, the last round is
        returned.
    alone : ndarray of shape (n_candidates, n_queries)
        The measure of every candidate on every training query, NaN where it is undefined.
    factor : ndarray of shape (n_features,)
        What features are multiplied by.
    rows : list of tuple
        The rounds so far, in the columns of ``STORED``.
    finished : Finished or None
        What :meth:`run` has reached.

    Attributes
    ----------
    defined : ndarray of bool, shape (n_queries,)
        The training queries for which the measure is defined; only these are kept in ``alone``.
    """

    train: RankedLists
    held: RankedLists | None
    alone: Vector
    factor: Vector
    rows: list[tuple[float, ...]] = field(default_factory=list)
    finished: Finished | None = None

    def __post_init__(self) -> None:
        self.defined = ~np.isnan(self.alone).any(axis=0)
        self.alone = self.alone[:, self.defined]

    def run(self, rounds: int, patience: int | None, repeats: bool, after: Callable[[], None]) -> None:
        """Run rounds until one of the reasons to stop applies, and call ``after`` at the end of each."""
        features = len(self.factor)
        w, top, waited, best = np.zeros(features), -math.inf, 0, None
        scores = np.zeros(len(self.train.rows))
        held_scores = np.zeros(0 if self.held is None else len(self.held.rows))

        def add(candidate: int, alpha: float) -> Vector:
            negated, feature = divmod(candidate, features)
            _add(scores, self.train, feature, (-alpha if negated else alpha) * self.factor[feature])
            return self.train.measured(scores)[self.defined]

        weight = self.train.weight[self.defined]
        for one in boost(self.alone, weight, add, features=features, repeats=repeats):
            negated, feature = divmod(one.candidate, features)
            signed = -one.alpha if negated else one.alpha
            validation = math.nan
            if self.held is not None:
                _add(held_scores, self.held, feature, signed * self.factor[feature])
                validation = weighted_mean(self.held.measured(held_scores), self.held.weight)
            train = weighted_mean(one.values, weight)
            w = w.copy()
            w[feature] += signed
            self.rows.append((feature, -1 if negated else 1, one.alpha, one.phi, one.delta, train, validation))
            done = len(self.rows)
            # without a validation measure the last round is returned, but patience still watches the training measure
            watched = train if math.isnan(validation) else validation
            waited = 0 if watched > top else waited + 1
            top = max(top, watched)
            if best is None or waited == 0 or math.isnan(validation):
                best = Finished(done, done, w, one)
            self.finished = replace(best, rounds=done)
            after()
            if done == rounds or waited == patience:
                return


def boost(
    alone: Vector, weight: Vector, add: Callable[[int, float], Vector], *, features: int, repeats: bool = True
) -> Iterator[BoostingRound]:
    """Take round after round the candidate that is best on the queries that are ranked badly so far.

    Parameters
    ----------
    alone : ndarray of shape (n_candidates, n_queries)
        The measure of every candidate on every query, in [0, 1].
    weight : ndarray of shape (n_queries,)
        The weights of the queries, above 0.
    add : callable
        ``add(candidate, alpha)`` adds to the scores and returns the measure of every query under them.
    features : int
        Number of features: candidate c is feature c % features, negated in the second half.
    repeats : bool, default=True
        Whether a feature may be taken again.

    Yields
    ------
    BoostingRound
        The round that has just been added.

    Notes
    -----
    The rounds end if phi had to be clipped, or if no feature is left. They also end if the candidate of the round
    before came again and changed no measure: the distribution is then what it was, and no other candidate would come
    until that feature outweighs all others.
    """
    before, chosen = np.zeros(len(weight)), -1
    free = np.full(len(alone), len(weight) > 0)
    weight = weight / weight.max(initial=0.0)  # first by the largest, so that no sum overflows
    while free.any():
        share = weight * np.exp(-before)
        share /= math.fsum(share)
        worth = np.where(free, alone @ share, -np.inf)
        candidate = int(np.argmax(worth >= worth.max() - _EQUAL))
        phi = max(0.0, 1.0 - math.fsum(share * (1.0 - alone[candidate])))  # exactly 1 if all queries are perfect
        clipped = min(phi, LARGEST_PHI)
        alpha = math.log((1 + clipped) / (1 - clipped)) / 2
        values = add(candidate, alpha)
        delta = least_gain(before, values, alpha, alone[candidate])
        yield BoostingRound(candidate, alpha, phi, delta, share, before, values)
        if phi > LARGEST_PHI or (candidate == chosen and np.array_equal(values, before)):
            return
        if not repeats:
            free[candidate % features :: features] = False
        before, chosen = values, candidate


def least_gain(before: Vector, values: Vector, alpha: float, alone: Vector) -> float:
    """delta = min over queries of (measure after) - (measure before) - alpha (measure of the feature alone)."""
    return float((values - before - alpha * alone).min())


def _add(scores: Vector, lists: RankedLists, feature: int, weight: float) -> None:
    """Add a feature times its weight to the scores."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores += weight * lists.column(feature)
    if not np.isfinite(scores).all():
        raise RankwiseError(
            f"feature {feature} times its weight {weight:g} exceeds the largest float: scale the features"
        )
