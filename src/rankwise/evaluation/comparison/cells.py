"""The unit of work of a comparison: one ranker on one fold, trained, selected, and tested once.

A :class:`Cell` is the result: scores of the test part, the settings that were selected, and what they cost.
:func:`learn` makes the cell of a ranker that is trained here, :func:`score` that of a model which was fitted elsewhere.
:class:`MemoryWatch` measures how much the process grows meanwhile.
"""

import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.evaluation.comparison.foreign import OnArrays
from rankwise.evaluation.comparison.keys import plain
from rankwise.evaluation.comparison.rankers import Fitted, Learner, takes_lists
from rankwise.evaluation.comparison.selection import combinations, fit_apart
from rankwise.measures._base import Measure, Vector
from rankwise.queries import checks
from rankwise.queries.fingerprints import fingerprints
from rankwise.queries.folds import Fold
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import mean_measure, mean_of_known, parts_of
from rankwise.rankers._record import record_of

INNER_FOLDS = 5
_STATM = Path("/proc/self/statm")
_EVERY = 0.01  # seconds between two looks at the size of the process


class Growth:
    """How far the process has grown since this object was made: ``bytes``, None where the system does not say."""

    def __init__(self, size: int | None) -> None:
        self._first, self.bytes = size, None if size is None else 0

    def see(self, size: int | None) -> None:
        """Take note of the present size of the process."""
        if size is not None and self._first is not None and self.bytes is not None:
            self.bytes = max(self.bytes, size - self._first)


class MemoryWatch:
    """A thread that looks at the size of the process a hundred times a second; shorter peaks are not seen.

    It is started by the thread that makes the comparison: those of the cells may be stopped at any line, and one that
    is stopped while it starts a thread never ends.

    Examples
    --------
    >>> with MemoryWatch() as watch, watch.growth() as growth:
    ...     block = bytearray(1 << 24)
    >>> growth.bytes is None or growth.bytes >= 0
    True
    """

    def __init__(self) -> None:
        self._running: list[Growth] = []
        self._over = threading.Event()
        # a daemon, which never keeps the process alive
        self._thread = threading.Thread(target=self._look, name="rankwise-memory", daemon=True)

    def __enter__(self) -> "MemoryWatch":
        if resident() is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextmanager
    def growth(self) -> Iterator[Growth]:
        """Context manager: measure the growth during the block, that of anything else that runs meanwhile included."""
        own = Growth(resident())
        self._running.append(own)
        try:
            yield own
        finally:
            self._running.remove(own)
            own.see(resident())

    def _look(self) -> None:
        """The loop of the thread."""
        while not self._over.wait(_EVERY):
            size = resident()
            # a copy, because cells come and go in other threads
            for growth in tuple(self._running):
                growth.see(size)


def resident() -> int | None:
    """Bytes of this process that are in memory; None where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


@dataclass(frozen=True)
class Cell:
    """The result of one ranker on one fold.

    Attributes
    ----------
    ranker : str
        The name of the ranker.
    fold : int
        The fold, counted from 1.
    scores : ndarray
        One score per document of the test part.
    settings : dict
        What was selected from the grid, as plain values.
    settled : dict
        What the fit selected itself: attributes that repeat the name of a parameter.
    validation : float or None
        The measure used for model selection, of the settings that were selected; None where nothing was selected by
        one.
    tried : int
        Settings that were tried.
    seconds : float
        Time of training, selection and scoring.
    memory : int or None
        Bytes by which the process grew meanwhile, at its largest (cells that run in parallel see each other's); None
        where the system does not say.
    model : object or None
        The fitted ranker, where it is kept.
    validation_scores : ndarray or None
        One score per document of the validation part, by the selected settings fitted without the validation queries;
        None where nothing was trained here, or without a validation part.
    """

    ranker: str
    fold: int
    scores: Vector
    settings: dict[str, Any]
    settled: dict[str, Any]
    validation: float | None
    tried: int
    seconds: float
    memory: int | None
    model: Any = None
    validation_scores: Vector | None = None

    def line(self) -> dict[str, Any]:
        """Everything but scores and model as plain values."""
        names = ("ranker", "fold", "settings", "settled", "validation", "tried", "seconds", "memory")
        return {name: getattr(self, name) for name in names}


def learn(
    name: str,
    number: int,
    entry: Learner,
    part: Fold,
    measure: Measure | None,
    seed: int,
    jobs: int,
    watch: MemoryWatch,
) -> Cell:
    """Fit, select, and score the test part, which nothing before has seen.

    Parameters
    ----------
    name : str
        The name of the ranker.
    number : int
        The fold, counted from 1.
    entry : Learner
        The ranker and its grid.
    part : Fold
        The data of the fold.
    measure : Measure or None
        The measure used for model selection; None takes the ranker's own.
    seed : int
        Seed of the inner folds, which select where there is no validation part.
    jobs : int
        Threads for the ranker itself.
    watch : MemoryWatch
        Measures the memory.

    Returns
    -------
    Cell
        The result.
    """
    began = time.perf_counter()
    with watch.growth() as growth, _name_in_errors(name, number):
        chosen = choose(entry, part, measure, seed, jobs)
        model, judged = chosen.model, chosen.judged
        scores = _scores(model, part.test)
    return Cell(
        name,
        number,
        scores,
        # as it will be read back from a file
        settings=json.loads(json.dumps({key: plain(value, key) for key, value in chosen.setting.items()})),
        settled=_settle(model),
        validation=judged if judged is not None and math.isfinite(judged) else None,
        tried=chosen.tried,
        seconds=time.perf_counter() - began,
        memory=growth.bytes,
        model=model.model_ if isinstance(model, OnArrays) else model,
        validation_scores=chosen.scores,
    )


def score(name: str, number: int, entry: Fitted, test: Queries, watch: MemoryWatch) -> Cell:
    """Score the test part with a model that was fitted elsewhere.

    Parameters
    ----------
    name : str
        The name of the model.
    number : int
        The fold, counted from 1.
    entry : Fitted
        The model.
    test : Queries
        The test part.
    watch : MemoryWatch
        Measures the memory.

    Returns
    -------
    Cell
        The result.
    """
    began = time.perf_counter()
    with watch.growth() as growth, _name_in_errors(name, number):
        given = test if takes_lists(entry.model) else np.asarray(test.X)
        scores = checks.as_scores(entry.model.predict(given), test.n_documents)
    return Cell(name, number, scores, {}, {}, None, 0, time.perf_counter() - began, growth.bytes, entry.model)


class ChosenSetting(NamedTuple):
    """The selected setting: a fitted model, its measure (None: not selected by one), how many settings were tried, and
    scores of the validation part by a fit that did not learn from it.
    """

    model: Any
    setting: Mapping[str, Any]
    judged: float | None
    tried: int
    scores: Vector | None = None


def choose(entry: Learner, part: Fold, measure: Measure | None, seed: int, jobs: int | None) -> ChosenSetting:
    """The best setting on the validation part, the first of equals."""
    assert part.train is not None
    # an empty grid has one setting, the ranker as it is
    settings = list(combinations(entry.grid))
    if part.validation is None:
        # without a validation part, inner folds select and the winner is fitted on all training queries
        judged = _by_inner_folds(entry, settings, part.train, measure, seed, jobs) if len(settings) > 1 else None
        best = 0 if judged is None or np.isnan(judged).all() else int(np.nanargmax(judged))
        model = _fit(entry.fresh(settings[best], jobs), part.train, None)
        return ChosenSetting(model, settings[best], None if judged is None else float(judged[best]), len(settings))
    first = entry.fresh(settings[0], jobs)
    pools = isinstance(first, Ranker) and first.learns_from_validation  # the final fit learns from it, too
    kept: ChosenSetting | None = None
    for setting in settings:
        model = entry.fresh(setting, jobs)
        model = (fit_apart if pools else _fit)(model, part.train, part.validation)
        scores = _scores(model, part.validation)
        found = _evaluate(model, part.validation, scores, measure, jobs)
        if kept is None or not found <= (-math.inf if kept.judged is None or math.isnan(kept.judged) else kept.judged):
            kept = ChosenSetting(model, setting, found, len(settings), scores)
    assert kept is not None
    if pools:
        return kept._replace(model=_fit(entry.fresh(kept.setting, jobs), part.train, part.validation))
    return kept


def _by_inner_folds(
    entry: Learner, settings: list[dict[str, Any]], train: Queries, measure: Measure | None, seed: int, jobs: int | None
) -> Vector | None:
    """The mean measure of every setting over queries that were held out in turn; None for a single query."""
    found = []
    for held in parts_of(train, INNER_FOLDS, seed):
        # settings are compared on the same inner folds
        others = train[np.setdiff1d(np.arange(len(train)), held)]
        models = (_fit(entry.fresh(setting, jobs), others, None) for setting in settings)
        own = train[held]
        found.append([_evaluate(model, own, _scores(model, own), measure, jobs) for model in models])
    return mean_of_known(found) if found else None


def _fit(model: Any, train: Queries, validation: Queries | None) -> Any:
    """Fit a model, with the validation part where it takes one."""
    if validation is not None and getattr(model, "takes_validation", False):
        fitted = model.fit(train, validation=validation)
        return model if fitted is None else fitted
    fitted = model.fit(train)
    model = model if fitted is None else fitted
    record = record_of(model)
    if validation is not None and record.seen is not None:
        # settings and the winner are selected on these queries, so a certificate must not count them as unseen
        model.record_ = replace(record, seen=record.seen.with_validation(fingerprints(validation)))
    return model


def _scores(model: Any, queries: Queries) -> Vector:
    """One score per document."""
    return checks.as_scores(model.predict(queries), queries.n_documents)


def _evaluate(model: Any, queries: Queries, scores: Vector, measure: Measure | None, jobs: int | None) -> float:
    """The mean measure of the scores of a fitted model."""
    if measure is None and not isinstance(model, Ranker):
        return float(model.score(queries))
    return mean_measure(queries, scores, model._measure() if measure is None else measure, jobs)


@contextmanager
def _name_in_errors(name: str, number: int) -> Iterator[None]:
    """Name the ranker and the fold in the message of any error."""
    try:
        yield
    except Exception as error:
        # one line, since messages of foreign packages may have many
        about = (str(error).splitlines() or [type(error).__name__])[0]
        raise RankwiseError(f"{name} on fold {number}: {about}") from error


def _settle(model: Any) -> dict[str, Any]:
    """What a fit selected itself: numbers and texts whose name is that of a parameter with an underscore."""
    names = model.get_params(deep=False) if isinstance(model, Ranker) else ()
    found = {name: getattr(model, f"{name}_", None) for name in names}
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in found.items()}
    known = {name: value for name, value in values.items() if isinstance(value, (int, float, str))}
    return {name: plain(value, name) for name, value in known.items() if value == value}  # NaN: not used
