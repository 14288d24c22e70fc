"""AdaRank: boosting over queries, with single features or other rankers as weak ones, for any measure in [0, 1].

:class:`AdaRank` is the ranker: parameters, fitted state, certificate and file. The algorithm is in
:mod:`rankwise.rankers.boosting.rounds`, the weak rankers in :mod:`rankwise.rankers.boosting.weak_rankers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from rankwise._arrays import Array, Matrix, Vector
from rankwise._parameters import PositiveInt, Seed, as_random
from rankwise._store import Store
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound
from rankwise.guarantees.bounds.training import (
    adarank_certificate,
    adarank_logistic_certificate,
    log_factor,
    logistic_bound,
)
from rankwise.measures.ndcg import DCG
from rankwise.queries import checks
from rankwise.queries.chunks import Scale, scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers._history import History, read_history
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.boosting.rounds import NUMBERS, Boosting, least_gain
from rankwise.rankers.boosting.weak_rankers import Bounded, TrainedRankers, WeakFeatures, WeakRanker, WeakRankers
from rankwise.rankers.committee import Committee
from rankwise.rankers.linear.linear_model import LinearModel
from rankwise.rankers.linear.ridge import RidgeRanker


@dataclass(eq=False, repr=False, kw_only=True)
class AdaRank(LinearRanker):
    r"""A weighted sum of weak rankers, single features by default, boosted for any measure.

    f = sum_t alpha_t h_t, where h_t is the weak ranker that best ranks the queries that f ranks badly so far.

    With E(q, f) the measure of query q when it is ranked by f, round t takes

    h_t = argmax_h phi_t(h),  phi_t(h) = sum_q P_t(q) E(q, h),  alpha_t = log((1 + phi_t) / (1 - phi_t)) / 2,

    and P_{t+1}(q) is proportional to weight_q exp(-E(q, f_t)).

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that is boosted, with values between 0 and 1; ``score`` reports it.
    weak : "features" or ranker, default="features"
        What is boosted: single features, or clones of a ranker of this package, one per round, each trained on the
        queries with the weights P_t. For a ranker, take few ``rounds`` and fix its penalty: every round is a fit.
    bound : {"exp", "logistic"}, default="exp"
        The type one bound of 1 - E that the rounds lower: exp(-E), as in the paper, or log2(1 + exp(-E)), for which
        P_{t+1}(q) is proportional to weight_q / (1 + exp(E(q, f_t))).
    rounds : int, default=200
        The largest number of rounds.
    patience : int, default=None
        Stop after so many rounds without a better validation measure (training measure, if there is no validation
        set); None never stops for this reason.
    negated : bool, default=False
        Whether a round may also take a feature with a negative sign.
    repeats : bool, default=False
        Whether a feature may be taken again, as in the paper; False takes every feature once at most.
    resample : bool, default=False
        For a ranker as ``weak``: whether it learns from as many queries as there are, drawn by P_t with replacement, in
        place of all queries with the weights P_t.
    ties : {"expected", "pessimistic"}, default="expected"
        How documents with equal scores are measured in training.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1], and the scores of a
        ranker as ``weak`` by their standard deviation within training queries.
    random_state : int or numpy.random.Generator, default=0
        Seed of ``resample``.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with NaN in arrays; "keep" for a ranker as ``weak`` that gives it a meaning.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features: for each feature the sum of its alphas, with their signs, in the units of ``scale``.
        With a ranker as ``weak`` that is linear, the weights of ``committee_``; absent if it is not linear.
    committee_ : Committee or None
        With a ranker as ``weak``, the rankers of the rounds up to ``round_``, with their alphas as weights: its scores
        are those of f divided by the sum of the alphas. None for features, or if there was nothing to learn from.
    round_ : int
        The round that is returned, from 1: the first of those that are best on the validation set, the last one
        without a validation set. 0 if there was nothing to learn from.
    history_ : History
        One row per round: round, feature and sign (or member: the place in the committee), alpha, phi, delta, Pi,
        certificate (-log Pi), printed (1 - Pi), and the measure on training and validation queries. For the logistic
        bound mass and B take the place of Pi and printed.
    training_certificate_ : Bound
        What the rounds up to the returned one guarantee about the scores of ``predict`` on the training queries; see
        :func:`~rankwise.guarantees.bounds.training.adarank_certificate` and
        :func:`~rankwise.guarantees.bounds.training.adarank_logistic_certificate`.

    Notes
    -----
    Every query is ranked by every feature once, in one pass over X. A round then reads one column of X and measures
    every query once. Queries for which the measure is undefined are left out. Of features that are equally good, up to
    1e-12, the first is taken.

    phi_t is the dot product of the distribution and the measures of the weak ranker. The weak ranker with the largest
    one, and the alpha above, make the factor sqrt(1 - phi_t^2) smallest, by which a round multiplies the bound of
    Theorem 4 on the training queries, but for a factor exp(-delta_t): delta_t is how far the measure of a sum of scores
    falls short of the sum of measures, on the worst query. It would be 0 if the measure were a dot product of scores
    and labels; then every round with phi_t > 0 improves the bound. Measures of rankings are not, and the certificate
    holds but may be vacuous. A ranker as ``weak`` minimizes its own loss with the weights P_t, so its phi_t is not
    the largest possible one; alpha and certificate are about the phi_t that it has.

    P depends on the current measures alone, and none of its values is more than e times another (1.86 times for the
    logistic bound), for equal weights of the queries. AdaRank therefore often takes one feature for ever, and rankers
    trained with all queries differ little. The fit stops as soon as a feature is taken again and changes no measure;
    ``repeats=False`` goes on to the next feature instead, and ``resample=True`` gives each ranker other queries. A
    ranker that would learn from the validation queries does not get them, because they judge the rounds.

    The ``train`` column follows ``ties``; the ``validation`` column averages over ties, as ``score`` does. The scores
    of a round are running sums, which agree with those of ``predict`` up to rounding.

    After Ctrl-C the ranker holds the rounds that were finished.

    References
    ----------
    J. Xu, H. Li (2007). AdaRank: a boosting algorithm for information retrieval. SIGIR.
    doi:10.1145/1277741.1277809

    J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma (2010). Direct optimization of evaluation measures in
    learning to rank. Microsoft Research technical report MSR-TR-2010-171. Sections 4.1 and 5.1: the type one bounds,
    Figure 6 and Theorem 4. The rounds for the logistic bound are derived here.

    Examples
    --------
    >>> from rankwise import RidgeRanker, make_lists
    >>> lists = make_lists(40, documents=8, features=4, random_state=1)
    >>> model = AdaRank("nDCG@5", rounds=20).fit(lists)
    >>> model.score(lists) >= 1 - model.training_certificate_.value
    True
    >>> boosted = AdaRank("nDCG@5", weak=RidgeRanker(alpha=1.0), resample=True, rounds=5).fit(lists)
    >>> len(boosted.committee_.members_), boosted.coef_.shape
    (5, (4,))
    """

    name = "AdaRank"
    takes_validation = True

    weak: Literal["features"] | WeakRanker = "features"
    bound: Bounded = "exp"
    rounds: PositiveInt = 200
    patience: PositiveInt | None = None
    negated: bool = False
    repeats: bool = False
    resample: bool = False
    ties: Literal["pessimistic", "expected"] = "expected"
    scale: Scale = "auto"
    random_state: Seed = 0

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return (
            cls("nDCG@5", rounds=5),
            cls("AP", rounds=9, patience=3, negated=True, repeats=True, ties="pessimistic"),
            cls("nDCG@5", weak=RidgeRanker(alpha=1.0), bound="logistic", resample=True, rounds=3),
        )

    @property
    def keeps_missing(self) -> bool:  # type: ignore[override]
        """Whether NaN has a meaning: if it has one for the ranker that is boosted."""
        return isinstance(self.weak, Ranker) and self.weak.keeps_missing

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._measure()
        train = RankedLists.of(queries, measure, self.ties, self.n_jobs)
        held = None if validation is None else RankedLists.of(validation, measure, "expected", self.n_jobs)
        weak: WeakRankers
        with self._progress("boosting", self.rounds + 1) as bar:
            if isinstance(self.weak, str):
                factor, _ = scale_factors(queries, self.scale)
                alone = train.by_features(self.negated, bar.advance)
                defined = np.asarray(~np.isnan(alone).any(axis=0))
                weak = WeakFeatures(
                    train=train, held=held, alone=alone[:, defined], factor=factor, repeats=self.repeats
                )
            else:
                defined = np.asarray(~np.isnan(train.measured(np.zeros(len(train.rows)))))
                weak = TrainedRankers(
                    ranker=self.weak,
                    queries=queries,
                    validation=validation,
                    train=train,
                    held=held,
                    counted=queries.counted[defined],
                    random=as_random(self.random_state) if self.resample else None,
                    scaled=self.scale == "auto",
                    n_jobs=self.n_jobs,
                )
            boosting = Boosting(train=train, held=held, weak=weak, defined=defined, bound=self.bound)

            def keep() -> bool:
                if boosting.finished is not None:
                    self._take(boosting, queries)
                return boosting.finished is not None

            with self._keep_on_interrupt(keep):
                boosting.run(self.rounds, self.patience, lambda: bar.advance(1))
        self._take(boosting, queries)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self._measure(), DCG):
            raise self._wrong("measure", "a measure with values between 0 and 1, such as nDCG")
        if isinstance(self.weak, Ranker):
            for name in ("negated", "repeats"):
                if getattr(self, name):
                    raise self._wrong(name, "False unless weak='features'")
            self.weak._check_parameters()
        elif self.resample:
            raise self._wrong("resample", "False unless weak is a ranker")

    def _take(self, boosting: Boosting, queries: Queries) -> None:
        """Set the state after the rounds that are finished."""
        finished, weak, train = boosting.finished, boosting.weak, boosting.train
        if finished is None:
            self._set_model(None, np.zeros(queries.n_features))
            self._tell(0, 0.0, {name: np.empty(0, kind) for name, kind in self._stored().items()})
            return
        rows = boosting.rows[: finished.rounds]
        columns = {name: np.array([row[name] for row in rows], kind) for name, kind in self._stored().items()}
        alphas = columns["alpha"][: finished.best]
        if isinstance(weak, WeakFeatures):
            w = np.zeros(len(weak.factor))
            np.add.at(w, columns["feature"][: finished.best], columns["sign"][: finished.best] * alphas)
            self._set_model(None, w * weak.factor)
        else:
            assert isinstance(weak, TrainedRankers)
            number = columns["member"][: finished.best]
            weights = np.bincount(number, alphas)
            if weights.any():
                given = weak.members[: len(weights)], weak.deviations[: len(weights)]
                self._set_model(Committee.of(*given, self, weights.tolist()), None)
            else:  # no ranker was better than the worst possible order
                self._set_model(None, np.zeros(queries.n_features))
        # the certificate is about the scores of predict, whose rounding may make and break ties
        last = finished.last
        published = train.measured(self._scores(train.X)[train.rows])[boosting.defined]
        self._tell(finished.best, least_gain(last.before, published, last.alpha, last.alone), columns)

    def _set_model(self, committee: Committee | None, coef: Vector | None) -> None:
        """Set what scores: weights, or a committee, whose weights these are if it is linear."""
        self.committee_ = committee
        self.__dict__.pop("coef_", None)
        if committee is not None:
            model = committee._scoring_model()
            coef = model.coef_ if isinstance(model, LinearModel) else None  # a constant would change no ranking
        if coef is not None:
            self.coef_ = coef

    def _stored(self) -> dict[str, type[np.generic]]:
        """The columns that a file stores; the others follow from them. Only the logistic bound needs the mass."""
        kind = WeakFeatures if isinstance(self.weak, str) else TrainedRankers
        numbers = [name for name in NUMBERS if name != "mass" or self.bound == "logistic"]
        return {**kind.columns, **dict.fromkeys(numbers, np.float64)}

    def _tell(self, best: int, delta: float, rounds: Mapping[str, Array]) -> None:
        """Set the history and the certificate; ``delta`` is that of the returned round on the scores of ``predict``."""
        numbers = {name: rounds[name].tolist() for name in ("phi", "alpha", "delta", "mass") if name in rounds}
        returned = {name: values[:best] for name, values in numbers.items()}
        returned["delta"] = [*numbers["delta"][: max(best - 1, 0)], delta][:best]
        count = len(numbers["phi"])
        derived: dict[str, Any]
        if self.bound == "exp":
            log_pi = np.cumsum([log_factor(phi=p, alpha=a, delta=d) for p, a, d in zip(*numbers.values(), strict=True)])
            with np.errstate(over="ignore"):
                pi = np.exp(log_pi)
            derived = {"Pi": pi, "certificate": -log_pi, "printed": 1 - pi}
            self.training_certificate_: Bound = adarank_certificate(**returned)
        else:
            upto = [{name: values[: last + 1] for name, values in numbers.items()} for last in range(count)]
            B = np.array([logistic_bound(**one)[0] for one in upto])
            derived = {"B": B, "certificate": [1 - adarank_logistic_certificate(**one).value for one in upto]}
            self.training_certificate_ = adarank_logistic_certificate(**returned)
        steps = {name: rounds[name] for name in self._stored() if name not in ("train", "validation")}
        measured = {name: rounds[name] for name in ("train", "validation")}
        columns = {"round": np.arange(1, count + 1), **steps, **derived, **measured}
        self.history_ = History(columns, ("train", "validation"), f"AdaRank, {self._measure().title}")
        self.round_ = best
        self._published_delta_ = delta

    def _own_bounds(self) -> Sequence[Bound]:
        return (replace(self.training_certificate_, bounds=f"1 - {self._measure().title} on the training lists"),)

    # ------------------------------------------------------------------------------------------- ranking

    def _scoring_model(self) -> Ranker:
        """The committee if it is not linear."""
        return self if hasattr(self, "coef_") or self.committee_ is None else self.committee_

    def _contributions(self, X: checks.Floats) -> tuple[Matrix, float] | None:
        model = self._scoring_model()
        return super()._contributions(X) if model is self else model._contributions(X)

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.rankers._record import nested_state

        facts, arrays = self._learned()
        if self.committee_ is None:
            return facts, {"coef": self.coef_, **arrays}
        members, own = nested_state([self.committee_])
        return {**facts, "committee": members}, {**arrays, **own}

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        if self.committee_ is None:
            return self._state()
        facts, arrays = self._learned()
        members, own = self.committee_._frozen_state()
        return {**facts, "committee": members}, {**arrays, **own}

    def _learned(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(facts, arrays) of the rounds, those of the fit whatever the parameters are now."""
        told = (*WeakFeatures.columns, *TrainedRankers.columns, *NUMBERS)
        arrays = {f"history.{name}": self.history_[name] for name in told if name in self.history_.columns}
        return {"round": self.round_, "delta": self._published_delta_}, arrays

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.rankers._record import read_nested

        rounds, best = read_history(store, self._stored()), facts["round"]
        if not 0 <= best <= len(rounds["alpha"]):
            raise RankwiseError("its table of rounds is incomplete")
        if isinstance(self.weak, str):
            feature, sign = rounds["feature"], rounds["sign"]
            if ((feature < 0) | (feature >= self.n_features_in_) | (abs(sign) != 1)).any():
                raise RankwiseError("its rounds name features that it does not have")
        if "committee" in facts:
            (committee,) = read_nested(store, facts["committee"], self.n_features_in_)
            if isinstance(self.weak, str) or not isinstance(committee, Committee):
                raise RankwiseError(f"it holds a {committee.name} in place of the rankers of its rounds")
            members = set(range(len(committee.members_)))
            if set(rounds["member"][:best].tolist()) != members:
                raise RankwiseError(f"its rounds do not take the {len(members)} rankers that it holds")
            self._set_model(committee, None)
        else:
            self._set_model(None, self._read_coef(store))
        self._tell(int(best), float(facts["delta"]), rounds)
