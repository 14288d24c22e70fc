"""The families of rankers that are tried: linear rankers, and boosted trees whose folds are grown together."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankwise._progress import progress
from rankwise.queries import checks
from rankwise.queries.concat import concat
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.auto.choice import criterion, judged

if TYPE_CHECKING:
    from rankwise.rankers.auto.trial import CandidateTrial
    from rankwise.rankers.boosting.boosted import BoostedRanker
    from rankwise.rankers.boosting.growing import Growing

Vector = NDArray[np.float64]
Engine = Literal["lightgbm", "catboost"]


class Clock:
    """The time that is left of a limit in seconds; without one, all the time in the world.

    Parameters
    ----------
    limit : float or None
        The seconds.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit, self._began = limit, time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and time.monotonic() - self._began >= self.limit


class _TimeIsOver(Exception):  # noqa: N818  it ends the growth of trees and is no fault
    """The limit was reached while trees were grown."""


def joined(train: Queries, validation: Queries) -> Queries:
    """All queries of both sets, without their identities, which may occur in both."""
    plain = [part._replace(qid=None, docid=None) for part in (train, validation)]
    return concat([plain[0], plain[1]._replace(feature_names=plain[0].feature_names)])


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear rankers.

    Attributes
    ----------
    ranker : Ranker
        The ranker that is cloned and fitted.
    """

    ranker: Ranker

    @classmethod
    def of(cls, auto: Any) -> Self:
        """Those that :class:`AutoRanker` tries."""
        from rankwise.rankers.linear.committee import RidgeCommittee
        from rankwise.rankers.smooth.smoothrank import SmoothRank

        if auto.linear == "RidgeCommittee":
            return cls(RidgeCommittee(auto.measure, n_jobs=auto.n_jobs))
        # its own measure, nDCG@50, sees more of each ranking than most that are reported
        return cls(SmoothRank(n_jobs=auto.n_jobs))

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``, by a ranker that has not seen its query."""
        scores = np.zeros(trial.queries.n_documents)
        for train, rows in trial.splits():
            scores[rows] = self.fitted(train).predict(trial.queries)[rows]
            bar.advance(1)
        return scores

    def fitted(self, queries: Queries) -> Ranker:
        """The ranker for these queries."""
        fresh: Ranker = clone(self.ranker)
        return fresh.fit(queries)


class Boosted:
    """Boosted trees. The boosters of all folds grow together, and the criterion over all of them sets their number.

    Parameters
    ----------
    ranker : BoostedRanker
        The ranker that is cloned and fitted; ``trees`` is the largest number of trees.

    Attributes
    ----------
    trees : int
        The number of trees that :meth:`out_of_fold` found.
    """

    def __init__(self, ranker: "BoostedRanker") -> None:
        self.ranker = ranker
        self.trees = 0

    @classmethod
    def of(cls, auto: Any, engine: Engine) -> Self:
        """Those that :class:`AutoRanker` tries."""
        from rankwise.rankers.boosting.boosted import BoostedRanker

        return cls(
            BoostedRanker(
                auto.measure,
                engine=engine,
                trees=auto.max_trees,
                random_state=checks.as_random(auto.random_state).integers(2**31).item(),
                n_jobs=auto.n_jobs,
                missing="error",
            )
        )

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``: the mean over the seeds of the ranker, as in its own fit."""
        from rankwise.rankers.boosting.growing import TreeCurve, grow_together

        first, *others = self._seeds()
        growing = _Folds(self.ranker, trial)
        if not growing.splittable:
            return np.zeros(trial.queries.n_documents)
        models, curve, looks = growing.models(first), TreeCurve(), []
        weight = trial.queries.query_weight

        def look(scores: Sequence[Vector]) -> float:
            looks.append(growing.held_out(scores))
            values = judged(trial.queries, looks[-1], trial.measures, trial.n_jobs)
            return weighted_mean(criterion(values), weight)

        def after() -> None:
            bar.advance(len(models))
            if clock.is_over and curve.values:
                raise _TimeIsOver

        with suppress(_TimeIsOver):
            grow_together(models, look, self.ranker.trees, self.ranker.patience or self.ranker.trees, curve, after)
        self.trees = curve.best if curve.judged else curve.trees[-1]
        scores = looks[curve.trees.index(self.trees)] / (1 + len(others))
        for seed in others:
            models = growing.models(seed)
            for _ in range(self.trees):
                for model in models:
                    model.grow()
            scores += growing.held_out([model.scores() for model in models]) / (1 + len(others))
        return scores

    def _seeds(self) -> list[int]:
        """The seeds that the ranker itself draws."""
        drawn = checks.as_random(self.ranker.random_state).integers(0, 2**31 - 1, self.ranker.seeds)
        return list(map(int, drawn))

    def fitted(self, queries: Queries) -> Ranker:
        """The ranker for these queries, with the number of trees that was found."""
        fresh: Ranker = clone(self.ranker).set_params(trees=self.trees, patience=None)
        return fresh.fit(queries)


class _Folds:
    """The boosters of all folds of a trial: one set of binned rows, in which held-out rows have a weight of 0."""

    def __init__(self, ranker: "BoostedRanker", trial: "CandidateTrial") -> None:
        from rankwise.rankers.boosting.growing import joined, rows_of
        from rankwise.rankers.boosting.objectives import Derivatives

        everything = joined([trial.everything])
        self._ranker, self._trial = ranker, trial
        self._derivatives = Derivatives.of(ranker._loss(), everything, ranker.n_jobs)
        self._rows = ranker._rows([trial.everything], [])
        self._held = [rows_of(everything, part) for part in trial.parts]
        self._places = [rows_of(trial.queries, place) for place in trial.places]

    @property
    def splittable(self) -> bool:
        """Whether a tree can have a split."""
        return self._rows.splittable

    def models(self, seed: int) -> "list[Growing]":
        """A booster without trees for every fold."""
        from rankwise.rankers.boosting.boosted import _seeded

        seeded = _seeded(self._derivatives, seed)
        return [self._rows.model(seeded.without(rows), seed, None, self._ranker.n_jobs) for rows in self._held]

    def held_out(self, scores: Sequence[Vector]) -> Vector:
        """The scores of the documents of ``trial.queries``, each by the booster that did not learn from it."""
        found = np.zeros(self._trial.queries.n_documents)
        for score, rows, places in zip(scores, self._held, self._places, strict=True):
            found[places] = score[rows]
        return found
