"""`compare`: the only place that joins a comparison (:mod:`rankwise.evaluation.comparison`) with its report."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from rankwise._parameters import Check, Jobs, NonNegativeInt, OpenFraction, PositiveInt, validated
from rankwise.evaluation.statistics.multiple_testing import Correction
from rankwise.evaluation.statistics.paired import Test

if TYPE_CHECKING:
    from rankwise.evaluation.comparison.comparison import Comparison
    from rankwise.evaluation.comparison.selection import Grid
    from rankwise.measures._base import Empty, Measure, Ties

Reading = Annotated[
    Mapping[str, Any] | None,
    Check("a dict of options of read_letor or None", lambda value: value is None or isinstance(value, Mapping)),
]


@validated
def compare(
    rankers: Any,
    data: Any,
    measures: "str | Measure | Sequence[str | Measure]" = ("nDCG@10",),
    *,
    folds: PositiveInt | None = None,
    baseline: str | None = None,
    choose_by: "str | Measure | None" = None,
    grids: "Mapping[str, Grid] | None" = None,
    level: OpenFraction = 0.95,
    test: Test = "randomization",
    correction: Correction = "holm",
    resume: str | os.PathLike[str] | None = None,
    like: str | None = None,
    ties: "Ties | None" = None,
    empty: "Empty | None" = None,
    rel: float | None = None,
    random_state: NonNegativeInt = 0,
    n_jobs: Jobs = None,
    verbose: bool = False,
    reading: Reading = None,
    report: str | os.PathLike[str] | None = None,
) -> "Comparison":
    """Compare rankers on the same test queries: means with intervals, and paired tests against a baseline.

    A ranker is trained on the training part of every fold. Its settings are selected on the validation part, or by
    folds of the training part where there is no validation part. The test part is scored once.

    Parameters
    ----------
    rankers : dict of str to ranker, or list of rankers
        The rankers by name. Each is one of:

        - a ranker of this package, or any object with ``fit(X, y)`` and ``predict`` (``fit`` also receives ``group`` or
          ``qid`` where it takes them), which is cloned and trained on every fold;
        - a fitted model, which only scores;
        - scores of the documents: an array, a file, or one of these for each fold;
        - a name such as ``"SmoothRank"`` or ``"lightgbm"``;
        - the file of a saved ranker.
    data : Queries, RawTable, sequence of folds, str or path-like
        Queries, or a file of them, which are divided by query; folds, each (train, validation, test) or (train, test);
        or a folder of folds, see :func:`read_folds`. Of a table with words, dates or gaps, as :func:`read_columns`
        opens it, a :class:`FeatureBuilder` makes features in every fold, learned from its training part alone.
    measures : str, Measure or list of them, default=("nDCG@10",)
        The measures to report, see :func:`evaluate`.
    folds : int, default=None
        Number of folds of `Queries`. None means 5, or no division where no ranker has to be trained; 1 is one division
        into 60, 20 and 20%.
    baseline : str, default=None
        The ranker that the others are tested against; None takes the first.
    choose_by : str or Measure, default=None
        The measure used for model selection over a grid; None takes the ranker's own, or the first of ``measures``
        where it has none.
    grids : dict of str to dict, default=None
        For each ranker, the values to try by parameter. Rankers that it does not name have the declared grids (``{}``:
        none). What a ranker selects itself on the validation part needs no grid.
    level : float, default=0.95
        Confidence level of the intervals. A ranker is marked where its corrected p-value is at most 1 - level.
    test : {"randomization", "t", "wilcoxon", "sign"}, default="randomization"
        The paired test, see :func:`paired_test`.
    correction : {"holm", "bh", "none"}, default="holm"
        The correction for the number of tests, see :func:`correct`.
    resume : str or path-like, default=None
        A folder that keeps finished parts. The same call resumes from there; a call in which anything differs (data,
        parameters, seed, versions) computes the parts anew.
    like : str, default=None
        Convention of another tool for the measures, see :func:`evaluate`.
    ties : {"expected", "pessimistic", "optimistic", "stable"}, default=None
        Order of equal scores, see :func:`evaluate`.
    empty : {"skip", "zero", "one"}, default=None
        Value of queries on which a measure is 0/0, see :func:`evaluate`.
    rel : float, default=None
        The smallest relevant label of binary measures, see :func:`evaluate`.
    random_state : int, default=0
        Seed of the folds, of the bootstrap, and of objects whose own ``random_state`` is None.
    n_jobs : int, default=None
        Rankers and folds that are trained in parallel, in threads; None uses every core. The result does not depend on
        it.
    verbose : bool, default=False
        Whether to show a progress bar with the remaining time.
    reading : dict, default=None
        Options for reading files, see :func:`read_letor` and :func:`read_table`; ``kinds`` says what columns of a table
        are, as ``columns`` of :class:`FeatureBuilder` does.
    report : str or path-like, default=None
        Also write a report to this HTML file, see :func:`write_report`; a place that cannot be written raises an error
        before any training. An error after it is a warning: the comparison is returned. Needs the extra ``report``.

    Returns
    -------
    Comparison
        Means, intervals and tests, scores and fitted models, settings, times and memory.

    Raises
    ------
    RankwiseError
        If an argument, the data, or a combination of them is not valid; most checks run before any training.

    Notes
    -----
    Ctrl-C stops all threads; finished parts are in ``resume``. All folds are held in memory. Times and memory of parts
    that run in parallel are those of a shared machine.

    Examples
    --------
    >>> from rankwise import RidgeRanker, SLAMPerceptron, make_lists
    >>> lists = make_lists(60, documents=8, features=4, random_state=1)
    >>> found = compare({"ridge": RidgeRanker(), "slam": SLAMPerceptron()}, lists, ["nDCG@5", "AP"], folds=3)
    >>> len(found.queries), found.baseline, len(found.cells)
    (60, 'ridge', 6)
    """
    from rankwise._kernels.parallel import announce_kernels
    from rankwise.evaluation.comparison.folds import divide
    from rankwise.evaluation.comparison.rankers import Learner, as_entries
    from rankwise.evaluation.comparison.run import (
        ComparisonRun,
        baseline_of,
        make_comparison,
        precompile,
    )
    from rankwise.evaluation.comparison.store import Cells
    from rankwise.measures._base import settle

    if report is not None:
        from rankwise.report.page import check_report

        # a report that cannot be written is an error now, not after hours of training
        check_report(report)
    conventions: dict[str, Any] = {"like": like, "ties": ties, "empty": empty, "rel": rel}
    first = settle(measures, like, rel)[1][0]
    chooser = None if choose_by is None else settle(choose_by, like, rel)[1][0]
    options = dict(reading or {})
    entries = as_entries(rankers, first, grids, random_state)
    announce_kernels(
        "evaluate", *(getattr(one.model, "name", "") for one in entries.values() if isinstance(one, Learner))
    )
    # all checks that need no data come before the data are read
    base = baseline_of(baseline, entries)
    parts = divide(data, folds, any(isinstance(one, Learner) for one in entries.values()), random_state, options)
    # what the test labels do not allow is an error before any training
    precompile(parts.tested, measures, conventions, test)
    finished = None if resume is None else Cells(resume)
    run = ComparisonRun(entries, parts, chooser, first, random_state, n_jobs, finished)
    found = make_comparison(
        run,
        run.cells(verbose),
        measures,
        conventions,
        {"baseline": base, "level": level, "test": test, "correction": correction},
        {"source": os.fspath(data) if isinstance(data, (str, os.PathLike)) else None, "reading": options},
        folds,
    )
    if report is not None:
        from rankwise.report.page import write_report_or_warn

        write_report_or_warn(found, report, verbose=verbose)
    return found
