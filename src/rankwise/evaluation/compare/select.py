"""Select settings on validation sets and test once: rankers x grids x folds.

:func:`select` is the plain relative of :func:`rankwise.compare`: it returns scores and selected settings, and leaves
measures and tests to the caller.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rankwise._errors import DataError, RankwiseError
from rankwise._progress import track
from rankwise._tables import Table
from rankwise.data.folds import Fold
from rankwise.data.queries import Queries
from rankwise.evaluation.evaluate import Evaluation, evaluate
from rankwise.measures._base import Measure, Vector

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Selection:
    """Scores of every ranker on the test parts of all folds, and how its settings were selected.

    Attributes
    ----------
    queries : Queries
        The test queries of all folds, one after the other.
    scores : dict of str to ndarray
        For each ranker one score per document of ``queries``.
    chosen : Table
        Columns fold, ranker, settings, measure on the validation part, settings tried, seconds.
    """

    queries: Queries
    scores: dict[str, Vector]
    chosen: Table

    def evaluate(self, measures: Any, **conventions: Any) -> dict[str, Evaluation]:
        """Evaluate every ranker over the test queries of all folds.

        Parameters
        ----------
        measures : str, Measure or list of them
            The measures.
        **conventions : dict
            Further options of :func:`rankwise.evaluate`.

        Returns
        -------
        dict of str to Evaluation
            The evaluations by ranker.
        """
        return {name: evaluate(self.queries, scores, measures, **conventions) for name, scores in self.scores.items()}


def select(
    rankers: Mapping[str, Any],
    folds: Iterable[Fold],
    *,
    grids: Mapping[str, Grid] | None = None,
    measure: str | Measure | None = None,
    verbose: bool = False,
) -> Selection:
    """Fit on the training part, select on the validation part, test once; fold after fold.

    Parameters
    ----------
    rankers : dict of str to ranker
        The rankers, which are cloned and never changed. A ranker that selects its own settings (``takes_validation`` is
        True) receives the validation part; no ranker sees the test part.
    folds : iterable of Fold
        What :func:`read_folds` or :func:`kfold` return.
    grids : dict of str to dict, default=None
        For each ranker the values to try by parameter, in all combinations; a ranker without a grid is fitted as it is.
    measure : str or Measure, default=None
        The measure used for model selection; None takes each ranker's own.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    Selection
        Scores and settings.

    Examples
    --------
    >>> from rankwise import SLAMPerceptron, kfold, make_lists
    >>> folds = kfold(make_lists(60, documents=8, features=4, random_state=1), 3)
    >>> found = select({"slam": SLAMPerceptron()}, folds, grids={"slam": {"epochs": [1, 5]}})
    >>> len(found.queries), found.chosen["tried"].tolist()
    (60, [2, 2, 2])
    """
    for name, given in (("rankers", rankers), ("grids", {} if grids is None else grids)):
        if not isinstance(given, Mapping):
            raise RankwiseError(f"{name} are given by name, {{'name': ...}}: found {type(given).__name__}")
    unknown = sorted(set(grids or {}) - set(rankers))
    if unknown:
        raise RankwiseError(
            f"grids names {unknown[0]!r}, which is not among the rankers {', '.join(map(repr, rankers))}"
        )
    tests: list[Queries] = []
    scores: dict[str, list[Vector]] = {name: [] for name in rankers}
    chosen: list[dict[str, Any]] = []
    for number, fold in enumerate(track(list(folds), "folds", enabled=None if verbose else False), start=1):
        tests.append(fold.test)
        for name, ranker in rankers.items():
            began = time.perf_counter()
            best, line = _best(ranker, fold, (grids or {}).get(name, {}), measure)
            scores[name].append(best.predict(fold.test))
            seconds = time.perf_counter() - began
            chosen.append({"fold": number, "ranker": name, **line, "seconds": seconds})
    if not tests:
        raise DataError("a selection needs at least one fold: found none")
    columns = {key: [line[key] for line in chosen] for key in chosen[0]} if chosen else {}
    return Selection(
        Queries.concat(tests), {name: np.concatenate(parts) for name, parts in scores.items()}, Table(columns)
    )


def _best(ranker: Any, fold: Fold, grid: Grid, measure: str | Measure | None) -> tuple[Any, dict[str, Any]]:
    """The ranker with the best settings on the validation part, the first of equals."""
    best, found, settings, tried = None, -np.inf, {}, 0
    for setting in combinations(grid):
        candidate = _fitted(ranker, setting, fold)
        # strictly better wins, so the first of equal settings is kept
        worth = _measured(candidate, fold.validation, measure)
        tried += 1
        if best is None or worth > found:
            best, found, settings = candidate, worth, setting
    return best, {"settings": settings, "validation": found, "tried": tried}


def combinations(grid: Grid) -> Iterator[dict[str, Any]]:
    """Every combination of the values, in order; one empty combination for an empty grid."""
    return (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def _fitted(ranker: Any, setting: Mapping[str, Any], fold: Fold) -> Any:
    """A fitted clone with this setting."""
    from sklearn.base import clone

    candidate = clone(ranker).set_params(**setting)
    if getattr(candidate, "takes_validation", False):
        return candidate.fit(fold.train, validation=fold.validation)
    return candidate.fit(fold.train)


def _measured(candidate: Any, queries: Queries, measure: str | Measure | None) -> float:
    """The measure of a fitted ranker."""
    if measure is None:
        return float(candidate.score(queries))
    return float(next(iter(evaluate(queries, candidate.predict(queries), measure).mean.values())))
