"""What AdaRank boosts: single features (:class:`WeakFeatures`), or rankers trained on reweighted queries.

Both are asked for the weak ranker of a round by :meth:`WeakRankers.choose`, and number those that they have given.
:class:`TrainedRankers` clones a ranker and fits it by the distribution of the round: on all queries with these weights,
or on queries drawn by them. :func:`type_one` has what a type one bound of the measure makes of the queries: their
weights in the next round.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np

from rankwise._arrays import Numbers, Vector
from rankwise._parameters import Check
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.committee import fit_member, within_query_deviation

Bounded = Literal["exp", "logistic"]

# Features whose phi differs by less are equally good: the choice must not depend on the order of a sum.
_EQUAL = 1e-12


def _boosts(value: Any) -> bool:
    if not isinstance(value, Ranker):
        return False
    if not value.learns:
        raise RankwiseError(f"{value.name} learns nothing from queries")
    if value.scores_by_query:
        raise RankwiseError(f"the score of {value.name} depends on the other documents of the query")
    return True


WeakRanker = Annotated[Any, Check("a ranker of this package that learns from queries", _boosts)]


def type_one(bound: Bounded, measure: Vector) -> Vector:
    """What a query with this measure weighs: the slope of the bound with respect to the measure, up to its sign.

    exp(-E) for the bound exp(-E), 1 / (1 + exp(E)) for log(1 + exp(-E)).
    """
    weight = np.exp(-measure) if bound == "exp" else 1.0 / (1.0 + np.exp(measure))
    return np.asarray(weight)


class WeakRankers(Protocol):
    """The weak rankers of a fit, by number.

    Attributes
    ----------
    columns : mapping of str to type
        The columns of the history that tell which weak ranker a round took.
    """

    columns: ClassVar[Mapping[str, type[np.generic]]]

    def choose(self, share: Vector) -> int | None:
        """The number of the weak ranker of a round with this distribution; None if there is none any more."""

    def measured(self, number: int) -> Vector:
        """The measure of every training query that counts, ranked by this weak ranker."""

    def told(self, number: int) -> tuple[int, ...]:
        """The values of ``columns``."""

    def add(self, scores: Vector, number: int, alpha: float, held: bool) -> None:
        """Add alpha times its scores, of the validation queries if ``held``, to these scores."""


@dataclass(kw_only=True)
class WeakFeatures:
    """Single features, with a sign.

    Attributes
    ----------
    train : RankedLists
        The training queries.
    held : RankedLists or None
        The validation queries.
    alone : ndarray of shape (n_candidates, n_queries)
        The measure of every training query that counts by every candidate: candidate c is feature c % features,
        negated in the second half.
    factor : ndarray of shape (n_features,)
        What features are multiplied by.
    repeats : bool
        Whether a feature may be taken again.
    """

    train: RankedLists
    held: RankedLists | None
    alone: Vector
    factor: Vector
    repeats: bool = True

    columns: ClassVar[Mapping[str, type[np.generic]]] = {"feature": np.int64, "sign": np.int64}

    def __post_init__(self) -> None:
        self._free = np.full(len(self.alone), self.alone.shape[1] > 0)

    def choose(self, share: Vector) -> int | None:
        """The candidate of the largest phi; of those that are equally good the first."""
        if not self._free.any():
            return None
        worth = np.where(self._free, self.alone @ share, -np.inf)
        number = int(np.argmax(worth >= worth.max() - _EQUAL))
        if not self.repeats:
            self._free[number % len(self.factor) :: len(self.factor)] = False
        return number

    def measured(self, number: int) -> Vector:
        """The measure of every training query that counts."""
        measured: Vector = self.alone[number]
        return measured

    def told(self, number: int) -> tuple[int, ...]:
        """Feature and sign."""
        negated, feature = divmod(number, len(self.factor))
        return feature, -1 if negated else 1

    def add(self, scores: Vector, number: int, alpha: float, held: bool) -> None:
        """Add alpha times the feature to the scores."""
        lists = self.held if held else self.train
        assert lists is not None
        feature, sign = self.told(number)
        weight = sign * alpha * self.factor[feature]
        _add(scores, weight, lists.column(feature), f"feature {feature} times its weight {weight:g}")


@dataclass(kw_only=True)
class TrainedRankers:
    """Clones of a ranker, one per round, each trained on the queries weighted by the distribution of the round.

    Attributes
    ----------
    ranker : Ranker
        What is cloned.
    queries : Queries
        The training queries.
    validation : Queries or None
        The validation queries. A ranker that does model selection gets them, unless it would learn from them: they
        judge the rounds.
    train, held : RankedLists or None
        The same, prepared for the measure.
    counted : ndarray of int64
        Which training queries the shares are about.
    random : numpy.random.Generator or None
        None: all queries with their weights; otherwise queries are drawn by this generator.
    scaled : bool
        Whether scores are divided by their deviation within queries.
    n_jobs : int or None
        Number of threads.
    """

    ranker: Ranker
    queries: Queries
    validation: Queries | None
    train: RankedLists
    held: RankedLists | None
    counted: Numbers
    random: np.random.Generator | None
    scaled: bool
    n_jobs: int | None
    members: list[Ranker] = field(default_factory=list)
    deviations: list[float] = field(default_factory=list)

    columns: ClassVar[Mapping[str, type[np.generic]]] = {"member": np.int64}

    def __post_init__(self) -> None:
        self._scores: Vector = np.empty(0)
        self._share: Vector | None = None

    def choose(self, share: Vector) -> int | None:
        """The number of a ranker trained by the shares; that of the round before if they are still the same."""
        if not len(share):
            return None
        if self.random is None and self._share is not None and np.array_equal(share, self._share):
            return len(self.members) - 1
        weight = np.zeros(len(self.queries))
        times = len(share)  # weights of 1 on average, so that a penalty of the ranker keeps its meaning
        weight[self.counted] = share * times if self.random is None else self.random.multinomial(times, share)
        learns_from_it = self.ranker.learns_from_validation
        held = None if learns_from_it else self.validation
        member = fit_member(self.ranker, self.queries.with_weight(weight), held, self.n_jobs)
        scores = member.predict(self.queries)
        if not np.isfinite(scores).all():
            raise RankwiseError(f"the scores of {member.name} are not finite: scale the features")
        deviation = within_query_deviation(self.queries, scores) if self.scaled else 1.0
        self._scores, self._share = scores[self.train.rows], share
        self.members.append(member)
        self.deviations.append(deviation)
        return len(self.members) - 1

    def measured(self, number: int) -> Vector:
        """The measure of every training query that counts, by the last ranker."""
        values = self.train.measured(self._scores)
        measured: Vector = values[~np.isnan(values)]
        return measured

    def told(self, number: int) -> tuple[int, ...]:
        """The number of the ranker."""
        return (number,)

    def add(self, scores: Vector, number: int, alpha: float, held: bool) -> None:
        """Add alpha times the scores of the last ranker, divided by their deviation."""
        deviation = self.deviations[number]
        if not deviation:  # equal scores in every query
            return
        own = self._scores
        if held:
            assert self.held is not None
            own = self.members[number].predict(self.validation)[self.held.rows]
        _add(scores, alpha / deviation, own, f"ranker {number} times its weight {alpha / deviation:g}")


def _add(scores: Vector, weight: float, own: Vector, what: str) -> None:
    """Add the scores of a weak ranker times its weight."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores += weight * own
    if not np.isfinite(scores).all():
        raise RankwiseError(f"{what} exceeds the largest float: scale the features")
