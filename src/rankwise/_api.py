"""Public functions that need more than one upper room: opening whatever was saved, and comparisons with a report."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankwise._errors import FileFormatError
from rankwise._store import Store, read_store

if TYPE_CHECKING:
    from rankwise.evaluation.compare.grids import Grid
    from rankwise.evaluation.compare.result import Comparison
    from rankwise.evaluation.statistics.paired import Test
    from rankwise.evaluation.statistics.significance import Correction
    from rankwise.measures._base import Empty, Measure, Ties


def _queries(store: Store, mmap: bool) -> Any:
    from rankwise.data.stored import read_queries

    return read_queries(store, mmap)


def _ranker(store: Store, mmap: bool) -> Any:
    from rankwise.rankers._persist import read_ranker

    return read_ranker(store)


# kind of file -> what reads it; imported when a file of that kind is opened
_READERS: dict[str, Callable[[Store, bool], Any]] = {"queries": _queries, "ranker": _ranker}


def load(path: str | os.PathLike[str], *, mmap: bool = True) -> Any:
    """What was saved under ``path``: a ranker, or :class:`~rankwise.Queries` with ``X`` mapped into memory.

    Files hold numbers and texts, no code, and everything in them is checked before it is used, so that a stranger's
    file can be opened. A file that is damaged, cut short, of a newer format or no rankwise file raises a clear error.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=True
        Whether ``X`` of queries stays in the file and is read as it is used. The file then must not be cut short or
        written to in place while the queries are in use (by ``cp``, ``rsync --inplace``, a synchronised folder ...):
        the operating system ends a process that reads what is no longer there (SIGBUS). Saving over it with rankwise,
        renaming another file onto it and deleting it are safe: the queries keep the old file. False reads ``X`` into
        memory, after which anything may happen to the file. Rankers are always read into memory.

    Raises
    ------
    FileFormatError
        If the file is not there, or does not hold what its format promises.

    Examples
    --------
    >>> queries.save("train.rankwise")  # doctest: +SKIP
    >>> load("train.rankwise")  # doctest: +SKIP
    Queries(106 queries, 16,140 documents, 45 features, labels 0 to 2)
    """

    def read(store: Store) -> Any:
        reader = _READERS.get(store.kind)
        if reader is None:
            known = ", ".join(sorted(_READERS))
            raise FileFormatError(
                f"{store.path} holds {store.kind!r:.40}, which this version does not know: it reads {known}"
            )
        return reader(store, mmap)

    return read_store(path, read)


def compare(
    rankers: Any,
    data: Any,
    measures: "str | Measure | Sequence[str | Measure]" = ("nDCG@10",),
    *,
    folds: int | None = None,
    baseline: str | None = None,
    choose_by: "str | Measure | None" = None,
    grids: "Mapping[str, Grid] | None" = None,
    level: float = 0.95,
    test: "Test" = "randomisation",
    correction: "Correction" = "holm",
    resume: str | os.PathLike[str] | None = None,
    like: str | None = None,
    ties: "Ties | None" = None,
    empty: "Empty | None" = None,
    rel: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    reading: Mapping[str, Any] | None = None,
    report: str | os.PathLike[str] | None = None,
) -> "Comparison":
    """Compare rankers on the same test lists: means with intervals, and paired tests against a baseline.

    A ranker is learned on the training part of every fold, its settings are chosen on the validation part (by folds of
    the training part where there is none), and the test part is scored once.

    Parameters
    ----------
    rankers : name -> ranker, or a list of them. A ranker is one of ours or any object with ``fit(X, y)`` and
        ``predict`` (told ``group`` or ``qid`` where its ``fit`` takes them), which is cloned and learned on every fold;
        a fitted model, which only scores; scores of the documents, as an array or a file, or one of them a fold; a name
        such as ``"SmoothRank"`` or ``"lightgbm"``; or the file of a saved ranker
    data : `Queries`, or the file of some, which are divided by query; folds, (train, validation, test) or (train,
        test); or a folder of folds, see :func:`read_folds`
    measures : what is reported, see :func:`evaluate`
    folds : into how many parts `Queries` are divided: 5 where None, or none at all where nobody has to learn; 1 is one
        division into 60, 20 and 20 %
    baseline : the ranker that the others are tested against; None: the first
    choose_by : the measure by which settings of a grid are chosen; None: the ranker's own, or the first of ``measures``
        where it has none
    grids : name -> parameter -> values to try; rankers that it does not name have the declared ones (``{}``: none).
        What a ranker chooses for itself on the validation part needs no grid
    level : of intervals; a ranker is marked where its corrected p is at most 1 - level
    test, correction : as for :func:`significance`
    resume : a folder that keeps what has finished; the same call goes on from there, and a call with anything changed
        (data, parameters, seed, versions) computes it anew
    like, ties, empty, rel : conventions of the measures, see :func:`evaluate`
    random_state : seed of the folds, of the bootstrap and of objects that have a ``random_state`` of None
    n_jobs : rankers and folds that are learned side by side, in threads; None: as many as there are cores. The result
        does not depend on it
    verbose : show a progress bar with the time left
    reading : options for files, see :func:`read_letor`
    report : also write everything to this HTML file, see :func:`write_report`; whether it can be written is found out
        before anything is learned. Needs the extra ``report``

    Notes
    -----
    Ctrl-C stops all threads; what has finished is in ``resume``. All folds are held in memory. Seconds and memory of
    cells that run side by side are those of a machine that is shared.

    Examples
    --------
    >>> from rankwise import RidgeRanker, SLAMPerceptron, make_lists
    >>> lists = make_lists(60, documents=8, features=4, random_state=1)
    >>> found = compare({"ridge": RidgeRanker(), "slam": SLAMPerceptron()}, lists, ["nDCG@5", "AP"], folds=3)
    >>> len(found.queries), found.baseline, len(found.cells)
    (60, 'ridge', 6)
    """
    from rankwise.evaluation.compare.folds import divide
    from rankwise.evaluation.compare.rankers import Learner, as_entries
    from rankwise.evaluation.compare.run import ComparisonRun, baseline_of, check_options, compared, rehearse
    from rankwise.evaluation.compare.store import Cells
    from rankwise.measures.conventions import settle

    if report is not None:
        from rankwise.report.page import check_report

        check_report(report)
    conventions: dict[str, Any] = {"like": like, "ties": ties, "empty": empty, "rel": rel}
    first = settle(measures, like, rel)[1][0]
    chooser = None if choose_by is None else settle(choose_by, like, rel)[1][0]
    options = check_options(level, correction, random_state, reading)
    entries = as_entries(rankers, first, grids, random_state)
    base = baseline_of(baseline, entries)
    parts = divide(data, folds, any(isinstance(one, Learner) for one in entries.values()), random_state, options)
    rehearse(parts.tested, measures, conventions, test)
    finished = None if resume is None else Cells(resume)
    run = ComparisonRun(entries, parts, chooser, first, random_state, n_jobs, finished)
    found = compared(
        run,
        run.cells(verbose),
        measures,
        conventions,
        {"baseline": base, "level": level, "test": test, "correction": correction},
        {"source": os.fspath(data) if isinstance(data, (str, os.PathLike)) else None, "reading": options},
        folds,
    )
    if report is not None:
        from rankwise.report.page import write_report

        write_report(found, report, verbose=verbose)
    return found
