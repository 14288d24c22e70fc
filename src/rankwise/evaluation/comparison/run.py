"""Run a comparison: all rankers on all folds, in parallel, resumable, and then measured and tested.

:func:`rankwise.compare` checks its arguments with :func:`baseline_of` and :func:`precompile`, makes a
:class:`ComparisonRun` and passes its cells to :func:`make_comparison`. :func:`side_by_side` runs the cells in threads.

Threads and not processes, because kernels release the interpreter lock: nothing is copied, nothing is imported again,
and classes that were defined in a notebook can take part. The result of a cell depends on nothing outside it, so the
bits are the same however many cells run in parallel.
"""

import ctypes
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._progress import progress
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.evaluation.comparison.cells import Cell, MemoryWatch, learn, score
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.evaluation.comparison.folds import FoldParts
from rankwise.evaluation.comparison.keys import code_of, describe, fingerprint, key_of, plain, versions
from rankwise.evaluation.comparison.rankers import Entry, Fitted, Given, Learner
from rankwise.evaluation.comparison.store import Cells
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.multiple_testing import COLUMNS, significance
from rankwise.evaluation.statistics.paired import Test, paired_test
from rankwise.measures._base import Measure
from rankwise.queries.folds import Fold
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker


def make_comparison(
    run: "ComparisonRun",
    cells: Sequence[Cell],
    measures: Any,
    conventions: Mapping[str, Any],
    tests: Mapping[str, Any],
    source: Mapping[str, Any],
    folds: int | None,
) -> Comparison:
    """Measure the finished cells, test every ranker against the baseline, and describe the configuration.

    Parameters
    ----------
    run : ComparisonRun
        The run.
    cells : sequence of Cell
        Its finished cells.
    measures : str, Measure or list of them
        The measures to report.
    conventions : dict
        Conventions of the measures: like, ties, empty, rel.
    tests : dict
        baseline, level, test and correction.
    source : dict
        Where the data came from and how they were read.
    folds : int or None
        The argument ``folds`` of :func:`rankwise.compare`.

    Returns
    -------
    Comparison
        The result.
    """
    tested, seed = run.parts.tested, run.seed
    scores = {name: np.concatenate([cell.scores for cell in cells if cell.ranker == name]) for name in run.entries}
    results = {
        name: evaluate(tested, own, measures, random_state=seed, n_jobs=run.n_jobs, **conventions)
        for name, own in scores.items()
    }
    found = significance(results, random_state=seed, **tests) if len(results) > 1 else Table(dict.fromkeys(COLUMNS, ()))
    first = next(iter(results.values()))
    about = {
        "versions": dict(versions()),
        "random_state": seed,
        **tests,
        "choose_by": None if run.chooser is None else repr(run.chooser),
        "conventions": dict(conventions),
        "measures": {title: repr(measure) for title, measure in zip(first.titles, first.measures, strict=True)},
        "data": {**source, **run.data()},
        "rankers": {name: _about(entry) for name, entry in run.entries.items()},
    }
    base, level = tests["baseline"], tests["level"]
    return Comparison(tested, scores, results, found, tuple(cells), base, level, about, run.parts.folds[0], folds)


@dataclass(frozen=True)
class ComparisonRun:
    """Everything that is trained and scored in one comparison.

    Attributes
    ----------
    entries : dict of str to Learner, Fitted or Given
        What takes part, by name.
    parts : FoldParts
        The data.
    chooser : Measure or None
        The measure used for model selection; None takes that of each ranker.
    first : Measure
        The first measure, used for model selection of objects that have none.
    seed : int
        Seed of inner folds.
    n_jobs : int or None
        Cells in parallel; None uses every core.
    kept : Cells or None
        The folder of finished cells.
    """

    entries: Mapping[str, Entry]
    parts: FoldParts
    chooser: Measure | None
    first: Measure
    seed: int
    n_jobs: int | None
    kept: Cells | None

    @cached_property
    def fingerprints(self) -> list[dict[str, str | None]]:
        """The digest of every part of every fold."""
        return [{name: fingerprint(queries) for name, queries in part._asdict().items()} for part in self.parts.folds]

    def cells(self, verbose: bool) -> list[Cell]:
        """Compute one cell for every ranker and fold, fold after fold; finished ones are read from disk.

        Parameters
        ----------
        verbose : bool
            Whether to show a progress bar.

        Returns
        -------
        list of Cell
            The cells.
        """
        given = {
            name: self.parts.scores_of(name, entry.scores)
            for name, entry in self.entries.items()
            if isinstance(entry, Given)
        }
        for name, entry in self.entries.items():
            if isinstance(entry, Fitted) and self.parts.table is not None and hasattr(entry.model, "features_"):
                given[name] = self.parts.scores_of(name, self.parts.features_for(name, entry.model))
            elif isinstance(entry, Fitted):
                self.parts.refuse_seen(name, entry.model)
        # models and scores are checked before the first cell is trained
        count = len(self.entries) * len(self.parts.folds)
        trained = [part.train.n_documents for part in self.parts.folds if part.train is not None]
        workers, inner = share_out(self.n_jobs, count, max(trained, default=0))
        bar = progress("comparing", count, enabled=None if verbose else False)
        with bar, MemoryWatch() as watch:
            tasks = [
                self._task(name, entry, number, part, given, inner, watch)
                for number, part in enumerate(self.parts.folds, start=1)
                for name, entry in self.entries.items()
            ]
            return side_by_side(tasks, workers, bar.advance)

    def _task(
        self,
        name: str,
        entry: Entry,
        number: int,
        part: Fold,
        given: Mapping[str, list[NDArray[np.float64]]],
        inner: int,
        watch: MemoryWatch,
    ) -> Callable[[], Cell]:
        """The function that computes, or reads, one cell."""
        if name in given:
            return lambda: Cell(name, number, given[name][number - 1], {}, {}, None, 0, 0.0, None)
        assert not isinstance(entry, Given)
        if isinstance(entry, Fitted):
            return lambda: score(name, number, entry, part.test, watch)
        # rankers of the package have a measure of their own; foreign objects take the first one
        measure = self.chooser if self.chooser is not None or isinstance(entry.ranker, Ranker) else self.first
        if self.kept is None:
            return lambda: learn(name, number, entry, part, measure, self.seed, inner, watch)
        kept, key = self.kept, self._key(entry, number, measure)

        def learn_or_read() -> Cell:
            found = kept.read(key, name, number, part)
            if found is None:
                found = learn(name, number, entry, part, measure, self.seed, inner, watch)
                kept.write(key, found)
            return found

        return learn_or_read

    def _key(self, entry: Learner, number: int, measure: Measure | None) -> str:
        """The key of a cell: everything that it depends on. Its name and the reported measures are not part of it."""
        facts = {
            "data": self.fingerprints[number - 1],
            "ranker": describe(entry.model),
            "code": code_of(entry.model),
            "grid": plain(dict(entry.grid), "grid"),
            "choose_by": None if measure is None else repr(measure),
            "random_state": self.seed,
            "versions": dict(versions()),
        }
        return key_of(facts)

    def data(self) -> dict[str, Any]:
        """The data as counts and fingerprints."""
        folds = []
        for part, found in zip(self.parts.folds, self.fingerprints, strict=True):
            sizes = {name: 0 if queries is None else len(queries) for name, queries in part._asdict().items()}
            folds.append({**sizes, "fingerprints": found})
        tests = [part.test for part in self.parts.folds]
        return {
            "queries": sum(map(len, tests)),
            "documents": sum(test.n_documents for test in tests),
            "features": tests[0].n_features,
            "folds": folds,
        }


def _about(entry: Entry) -> dict[str, Any]:
    """A ranker as plain values; one that cannot be described exactly is described by its class alone."""
    if isinstance(entry, Given):
        return {"kind": "scores"}
    kind = "learned" if isinstance(entry, Learner) else "fitted"
    try:
        found = {"kind": kind, **describe(entry.model)}
    except RankwiseError:
        found = {"kind": kind, "class": f"{type(entry.model).__module__}.{type(entry.model).__qualname__}"}
    if isinstance(entry, Learner):
        found["grid"] = {name: plain(values, name) for name, values in entry.grid.items()}
    return found


def baseline_of(baseline: str | None, entries: Mapping[str, Entry]) -> str:
    """The name of the baseline: the one that was given, or the first ranker."""
    if baseline is None:
        return next(iter(entries))
    if not isinstance(baseline, str) or baseline not in entries:
        raise RankwiseError(f"baseline must be one of {', '.join(map(repr, entries))}, got {baseline!r}")
    return baseline


def precompile(tested: Queries, measures: Any, conventions: Mapping[str, Any], test: Test) -> None:
    """Measure and test arbitrary scores: errors in the data or the options appear before any learning."""
    evaluate(tested, np.arange(tested.n_documents), measures, **conventions)
    paired_test([0.0, 1.0], [1.0, 0.5], test, weight=None if tested.weight is None else [1.0, 1.0])


# ------------------------------------------------------------------------------------------------------ workers


Result = TypeVar("Result")

_GLANCE = 0.2  # seconds between checks for Ctrl-C
_AGAIN, _PATIENCE = 2.0, 20.0  # seconds until a thread is asked to stop once more, and until it is left alone

# From this many training documents on, a ranker's own threads keep the cores busy; cells then run one after the other,
# so memory does not grow with their number.
_MANY_DOCUMENTS = 4 * parallel.CHUNK


def share_out(n_jobs: int | None, cells: int, documents: int) -> tuple[int, int]:
    """Divide the cores between cells and the threads inside a cell.

    Parameters
    ----------
    n_jobs : int or None
        Cores to use; None uses all.
    cells : int
        The number of cells.
    documents : int
        The number of documents of the largest training part.

    Returns
    -------
    workers : int
        Cells in parallel.
    inner : int
        Threads of each cell.
    """
    # large data: one cell after the other, each on all cores
    cores = parallel.threads(n_jobs)
    workers = 1 if documents >= _MANY_DOCUMENTS else min(cores, cells)
    return workers, max(1, cores // workers)


def side_by_side(
    tasks: Sequence[Callable[[], Result]], workers: int, done: Callable[[], None] = lambda: None
) -> list[Result]:
    """``[task() for task in tasks]`` in threads; the first error, or Ctrl-C, stops all of them.

    Parameters
    ----------
    tasks : sequence of callable
        The tasks.
    workers : int
        The number of threads.
    done : callable, default=None
        Called after every task, in the caller's thread.

    Returns
    -------
    list
        The results, in order.
    """
    if workers <= 1 or len(tasks) <= 1:
        results = []
        for task in tasks:
            results.append(task())
            done()
        return results
    return _CellWorkers(tasks, workers).work(done)


class _CellWorkers(Generic[Result]):
    """Threads that take one task after the other, and stop at once when they are asked to."""

    def __init__(self, tasks: Sequence[Callable[[], Result]], workers: int) -> None:
        self._waiting: queue.SimpleQueue[tuple[int, Callable[[], Result]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
        self._stopping = False
        for place, task in enumerate(tasks):
            self._waiting.put((place, task))
        self._count = len(tasks)
        names = (f"rankwise-cell-{number}" for number in range(min(workers, len(tasks))))
        self._threads = [threading.Thread(target=self._take_turns, name=name, daemon=True) for name in names]

    def work(self, done: Callable[[], None]) -> list[Result]:
        """Start the threads and collect the results; any error stops all threads."""
        found: dict[int, Result] = {}
        try:
            for thread in self._threads:
                thread.start()
            while len(found) < self._count:
                try:
                    place, result, error = self._answers.get(timeout=_GLANCE)
                except queue.Empty:
                    continue
                if error is not None:
                    raise error
                found[place] = result  # type: ignore[assignment]
                done()
        except BaseException:
            self._stop()
            raise
        return [found[place] for place in range(self._count)]

    def _take_turns(self) -> None:
        """The loop of one thread."""
        while not self._stopping:
            try:
                place, task = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._answers.put((place, task(), None))
            except BaseException as error:  # SystemExit too, by which a cell is stopped
                self._stopping = True
                self._answers.put((place, None, error))

    def _stop(self) -> None:
        """Raise SystemExit in every thread at its next step; calls into compiled code and compilers end first."""
        self._stopping = True
        began = time.monotonic()
        asked = dict.fromkeys(self._threads, -math.inf)
        while alive := [thread for thread in self._threads if thread.is_alive()]:
            now = time.monotonic()
            if now - began > _PATIENCE:
                return  # they end with the process
            for thread in alive:
                if now - asked[thread] > _AGAIN and not _is_compiling(thread):
                    asked[thread] = now
                    _raise_in(thread)
            alive[0].join(_GLANCE)


def _is_compiling(thread: threading.Thread) -> bool:
    """Whether a thread compiles or loads a kernel: an exception in the middle of that can crash the process."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("numba", "llvmlite"):
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: threading.Thread) -> None:
    """Raise SystemExit in another thread."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
