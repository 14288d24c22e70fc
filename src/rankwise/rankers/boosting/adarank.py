"""AdaRank: boosting over lists, with single features as rankers and any measure in [0, 1] as the goal."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import MeasureError, RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import Scale, scale_factors
from rankwise.guarantees._bound import Bound
from rankwise.guarantees.bounds.training import adarank_certificate, log_factor
from rankwise.measures._base import Measure
from rankwise.measures.ndcg import DCG
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._history import History, read_history
from rankwise.rankers.boosting.feature_rankings import RankedLists
from rankwise.rankers.linear.ridge import read_coef

Vector = NDArray[np.float64]


# ----------------------------------------------------------------------------------------------------- adarank rounds
# The rounds of AdaRank: choose a feature, add it, measure, weigh the lists anew; and the account of them.


# A phi above this would make alpha infinite, or so large that nothing else counts.
LARGEST_PHI = 1 - 1e-12

# Candidates whose phi differ by less are equally good: which is taken must not hang on the order of a sum.
_EQUAL = 1e-12


@dataclass(frozen=True)
class BoostingRound:
    """What one round did, on lists with their ``share`` each; their measures ``before`` and after it (``values``)."""

    candidate: int
    alpha: float
    phi: float
    delta: float
    share: Vector
    before: Vector
    values: Vector


def least_gain(before: Vector, values: Vector, alpha: float, alone: Vector) -> float:
    """delta = min over lists of (measure after) - (measure before) - alpha (measure of the feature alone)."""
    return float((values - before - alpha * alone).min())


def boost(
    alone: Vector, weight: Vector, add: Callable[[int, float], Vector], *, features: int, repeats: bool = True
) -> Iterator[BoostingRound]:
    """Round after round: the candidate that is best on lists ranked badly so far, with a weight that says how good.

    Parameters
    ----------
    alone : measures of the candidates, candidates x lists, in [0, 1]
    weight : of the lists, above 0
    add : ``add(candidate, alpha)`` adds to the scores and returns the measures of the lists under them
    features : candidate c is feature c % features, negated in the second half
    repeats : whether a feature may be chosen again

    Notes
    -----
    Ends when phi was clipped; when the candidate of the round before came again and changed no measure, since the
    distribution is then what it was and nothing else would come until that feature outweighs all others; or when no
    feature is left.
    """
    before, chosen = np.zeros(len(weight)), -1
    free = np.full(len(alone), len(weight) > 0)
    weight = weight / weight.max(initial=0.0)
    while free.any():
        share = weight * np.exp(-before)
        share /= math.fsum(share)
        worth = np.where(free, alone @ share, -np.inf)
        candidate = int(np.argmax(worth >= worth.max() - _EQUAL))
        phi = max(0.0, 1.0 - math.fsum(share * (1.0 - alone[candidate])))  # exactly 1 where all lists are perfect
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


class Row(NamedTuple):
    """One round in the history."""

    feature: int
    sign: int
    alpha: float
    phi: float
    delta: float
    train: float
    validation: float


@dataclass(frozen=True)
class Finished:
    """So many rounds are over; the one that would be returned now, by its number from 1, and the sums of alphas."""

    rounds: int
    best: int
    w: Vector
    last: BoostingRound


@dataclass(kw_only=True)
class Boosting:
    """A fit under way. ``finished`` is set once a round, by one assignment, and the rows are only added to.

    Parameters
    ----------
    lists, held : training and validation lists; without the second, or where the measure says nothing about it, the
        last round is returned
    alone : measures of every candidate on every training list, NaN where the measure says nothing
    factor : by which features are multiplied
    """

    lists: RankedLists
    held: RankedLists | None
    alone: Vector
    factor: Vector
    rows: list[Row] = field(default_factory=list)
    finished: Finished | None = None

    def __post_init__(self) -> None:
        self.told = ~np.isnan(self.alone).any(axis=0)
        self.alone = self.alone[:, self.told]

    def run(self, rounds: int, patience: int | None, repeats: bool, after: Callable[[], None]) -> None:
        """Rounds until one of the reasons to stop; ``after`` is called when one is over."""
        features = len(self.factor)
        w, top, waited, best = np.zeros(features), -math.inf, 0, None
        scores = np.zeros(len(self.lists.rows))
        on_held = np.zeros(0 if self.held is None else len(self.held.rows))

        def add(candidate: int, alpha: float) -> Vector:
            feature, signed = self._meant(candidate, alpha)
            _add(scores, self.lists, feature, signed * self.factor[feature])
            return self.lists.measured(scores)[self.told]

        weight = self.lists.weight[self.told]
        for one in boost(self.alone, weight, add, features=features, repeats=repeats):
            feature, signed = self._meant(one.candidate, one.alpha)
            validation = math.nan
            if self.held is not None:
                _add(on_held, self.held, feature, signed * self.factor[feature])
                validation = self.held.mean(self.held.measured(on_held))
            train = math.fsum(weight * one.values) / math.fsum(weight)
            w = w.copy()
            w[feature] += signed
            sign = 1 if one.candidate < features else -1
            self.rows.append(Row(feature, sign, one.alpha, one.phi, one.delta, train, validation))
            done = len(self.rows)
            watched = train if math.isnan(validation) else validation
            waited = 0 if watched > top else waited + 1
            top = max(top, watched)
            if best is None or waited == 0 or math.isnan(validation):
                best = Finished(done, done, w, one)
            self.finished = replace(best, rounds=done)
            after()
            if done == rounds or waited == patience:
                return

    def _meant(self, candidate: int, alpha: float) -> tuple[int, float]:
        """(feature, alpha with its sign) of a candidate."""
        features = len(self.factor)
        return candidate % features, alpha if candidate < features else -alpha


def _add(scores: Vector, lists: RankedLists, feature: int, weight: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        scores += weight * lists.column(feature)
    if not np.isfinite(scores).all():
        raise RankwiseError(
            f"feature {feature} times its weight {weight:g} goes beyond the largest number: scale the features"
        )


# What a file holds of every round; the other columns follow from these.
STORED: dict[str, type[np.generic]] = {
    "feature": np.int64,
    "sign": np.int64,
    "alpha": np.float64,
    "phi": np.float64,
    "delta": np.float64,
    "train": np.float64,
    "validation": np.float64,
}


@dataclass(eq=False, repr=False, kw_only=True)
class AdaRank(LinearRanker):
    r"""f = sum_t alpha_t h_t: in every round the feature h that ranks best what f ranks badly so far, E the measure:

    h_t = argmax_h phi_t(h),  phi_t(h) = sum_q P_t(q) E(q, h),  alpha_t = log((1 + phi_t) / (1 - phi_t)) / 2,
    P_{t+1}(q) proportional to weight_q exp(-E(q, f_t)).

    Parameters
    ----------
    measure : any with values between 0 and 1
    rounds : so many at most
    patience : stop after so many rounds without a better validation measure (training measure, where there is no
        validation set); None: never
    negated : every feature may also be used upside down
    repeats : whether a feature may be chosen again, as in the paper; False: every round brings a new one
    ties : how equal scores are measured in training, "expected" or "pessimistic"
    scale : "auto" divides features by their standard deviation unless all of them lie in [-1, 1]; "none"
    n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    coef_ : weights on raw features: the sum of the alphas of each, with its sign and in its scale
    round_ : the returned round, from 1: the first that is best on the validation set, without one the last; 0 where
        there was nothing to learn from
    history_ : for every round the feature and its sign, alpha, phi, delta, Pi, certificate (-log Pi), printed (1 - Pi),
        train and validation measure; it draws itself
    training_certificate_ : what the rounds up to the returned one guarantee about the scores of ``predict`` on the
        training lists; see :func:`~rankwise.guarantees.bounds.training.adarank_certificate`

    Notes
    -----
    Every list is ranked by every feature once, in one reading of X. A round then takes one column of X and one measure
    of all lists. Lists that the measure says nothing about are left out; of features that are equally good, up to
    1e-12, the first is taken.

    The distribution depends on the present measures alone, and none of its weights is e times another: AdaRank often
    settles on one feature. It stops as soon as a feature is chosen again and changes no measure. ``repeats=False``
    goes on to the next feature instead.

    The ``train`` column measures ``ties`` as told, and ``validation`` as ``score`` does, equal scores in no order; the
    scores of a round are running sums, which are those of ``predict`` up to rounding.

    References
    ----------
    Figure 6 and Theorem 4 of directly optimising evaluation measures in learning to rank.

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

    rounds: int = 200
    patience: int | None = None
    negated: bool = False
    repeats: bool = False
    ties: Literal["pessimistic", "expected"] = "expected"
    scale: Scale = "auto"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls("nDCG@5", rounds=5), cls("AP", rounds=9, patience=3, negated=True, repeats=True, ties="pessimistic")

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._checked()
        factor, _ = scale_factors(queries, self.scale)
        lists = RankedLists.of(queries, measure, self.ties, self.n_jobs)
        held = None if validation is None else RankedLists.of(validation, measure, "expected", self.n_jobs)
        with progress("boosting", self.rounds + 1, enabled=None if self.verbose else False) as bar:
            alone = lists.by_features(self.negated, bar.advance)
            boosting = Boosting(lists=lists, held=held, alone=alone, factor=factor)

            def keep() -> bool:
                if boosting.finished is not None:
                    self._take(boosting)
                return boosting.finished is not None

            with self._kept_on_ctrl_c(keep):
                boosting.run(self.rounds, self.patience, self.repeats, lambda: bar.advance(1))
        self._take(boosting)

    def _checked(self) -> Measure:
        """The measure, once it and the other parameters were found to make sense."""
        measure = self._measure()
        if isinstance(measure, DCG):
            raise MeasureError(f"AdaRank takes a measure with values between 0 and 1, such as nDCG: found {measure!r}")
        if self.ties not in ("pessimistic", "expected"):
            raise RankwiseError(f"ties is 'pessimistic' or 'expected' in training: found {self.ties!r}")
        if not _counts(self.rounds):
            raise RankwiseError(f"rounds is a whole number from 1 on: found {self.rounds!r}")
        if self.patience is not None and not _counts(self.patience):
            raise RankwiseError(f"patience is a whole number from 1 on, or None: found {self.patience!r}")
        return measure

    def _take(self, boosting: Boosting) -> None:
        """The state after the rounds that are finished."""
        finished = boosting.finished
        if finished is None:
            self._learned(np.zeros(len(boosting.factor)), 0, 0.0, {name: np.empty(0, STORED[name]) for name in STORED})
            return
        coef, last, lists = finished.w * boosting.factor, finished.last, boosting.lists
        # a certificate is about scores as they are published: rounding may make and break ties
        published = lists.measured(lists.scores(linear_scores(lists.X, coef, self.n_jobs)))[boosting.told]
        delta = least_gain(last.before, published, last.alpha, boosting.alone[last.candidate])
        rows = zip(*boosting.rows[: finished.rounds], strict=True)
        columns = {name: np.array(row, kind) for (name, kind), row in zip(STORED.items(), rows, strict=True)}
        self._learned(coef, finished.best, delta, columns)

    def _learned(self, coef: Vector, best: int, delta: float, rounds: Mapping[str, NDArray[Any]]) -> None:
        """Everything that ends in _; ``delta`` is that of the returned round on published scores."""
        steps = list(zip(*(rounds[name].tolist() for name in ("phi", "alpha", "delta")), strict=True))
        log_pi = np.cumsum([log_factor(phi=phi, alpha=alpha, delta=low) for phi, alpha, low in steps])
        with np.errstate(over="ignore"):
            pi = np.exp(log_pi)
        derived = {"Pi": pi, "certificate": -log_pi, "printed": 1 - pi}
        columns = {name: rounds[name] for name in STORED if name not in ("train", "validation")} | derived
        measured = {name: rounds[name] for name in ("train", "validation")}
        number = {"round": np.arange(1, len(pi) + 1)}
        title = f"AdaRank, {self._measure().title}"
        returned = steps[:best]
        self.training_certificate_: Bound = adarank_certificate(
            phi=[step[0] for step in returned],
            alpha=[step[1] for step in returned],
            delta=[*(step[2] for step in returned[:-1]), delta][:best],
        )
        self.history_ = History(number | columns | measured, ("train", "validation"), title)
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
        if len({len(column) for column in rounds.values()}) != 1 or not 0 <= best <= len(feature):
            raise RankwiseError("its rounds are not all there")
        if ((feature < 0) | (feature >= self.n_features_in_) | (abs(sign) != 1)).any():
            raise RankwiseError("its rounds name features that it does not have")
        self._learned(read_coef(store, self.n_features_in_), int(best), float(facts["delta"]), rounds)


def _counts(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool) and bool(number >= 1)
