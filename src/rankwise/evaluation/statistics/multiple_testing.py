"""Comparisons of many rankings at once: paired tests for every measure, corrected for their number."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankwise._parameters import OpenFraction, PositiveInt, Seed, validated
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError, in_one_line
from rankwise.evaluation.statistics.intervals import How, interval
from rankwise.evaluation.statistics.paired import Alternative, Test, paired_test
from rankwise.measures._base import Vector

Correction = Literal["holm", "bh", "none"]
COLUMNS = (
    "measure", "ranker", "baseline", "difference", "low", "high", "p", "p_corrected", "wins", "losses", "ties",
)  # fmt: skip


@validated
def correct(p_values: ArrayLike, how: Correction = "holm") -> Vector:
    """Correct p-values for their number; NaN stays NaN and does not count.

    ``"holm"`` keeps the probability of a single false claim among all below the level, under any dependence; ``"bh"``
    (Benjamini-Hochberg) keeps the expected share of false ones among the claims below it; ``"none"`` changes nothing.

    Parameters
    ----------
    p_values : array-like
        The p-values.
    how : {"holm", "bh", "none"}, default="holm"
        The correction.

    Returns
    -------
    ndarray
        The corrected p-values, in the same order.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
    65-70.

    Y. Benjamini and Y. Hochberg (1995). Controlling the false discovery rate. Journal of the Royal Statistical Society
    B 57, 289-300.

    Examples
    --------
    >>> correct([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    try:
        p = np.array(p_values, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"p-values must be numbers between 0 and 1: {in_one_line(error)}") from error
    known = ~np.isnan(p)
    if ((p[known] < 0) | (p[known] > 1)).any():
        raise DataError(f"p-values must lie between 0 and 1, got values from {p[known].min():g} to {p[known].max():g}")
    if how == "holm":
        p[known] = _holm(p[known])
    elif how == "bh":
        from scipy.stats import false_discovery_control

        p[known] = false_discovery_control(p[known], method="bh")
    return p


@validated
def significance(
    evaluations: Mapping[str, Any],
    *,
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    resamples: PositiveInt = 100_000,
    random_state: Seed = 0,
    alternative: Alternative = "two-sided",
) -> Table:
    """Compare rankings of the same queries, measure by measure, and correct for the number of comparisons.

    Parameters
    ----------
    evaluations : dict of str to Evaluation, dict or path
        For each ranker, what :func:`evaluate` returned, or a dict of measure to values per query (a key ``"qid"`` names
        the queries), or the file of another tool that holds values per query (``trec_eval -q``, RankLib's ``-idv``,
        pytrec_eval's results as JSON).
    baseline : str, default=None
        Compare each other ranker with this one; None compares all pairs, the later one with the earlier.
    test : {"randomization", "t", "wilcoxon", "sign"}, default="randomization"
        The paired test, see :func:`paired_test`.
    correction : {"holm", "bh", "none"}, default="holm"
        The correction over all rows of the table together, see :func:`correct`.
    level : float, default=0.95
        Confidence level of the intervals of the mean differences.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval, see :func:`~rankwise.evaluation.statistics.intervals.interval`.
    resamples : int, default=100000
        Random flips of the randomization test.
    random_state : int or Generator, default=0
        Seed of the flips and of the bootstrap.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        The alternative of the tests.

    Returns
    -------
    Table
        A row for each measure and pair with columns measure, ranker, baseline, difference (ranker minus baseline), low,
        high, p, p_corrected, wins, losses, ties (in queries).

    Raises
    ------
    DataError
        If the rankers were not measured by the same measures on the same queries with the same weights.

    Examples
    --------
    >>> per_query = {"bm25": {"AP": [0.2, 0.3, 0.1, 0.4]}, "new": {"AP": [0.3, 0.4, 0.3, 0.5]}}
    >>> table = significance(per_query)
    >>> table["p"], table["wins"]
    (array([0.125]), array([4]))
    """
    if not isinstance(evaluations, Mapping):
        raise DataError(f"evaluations must be a dict such as {{'a': ..., 'b': ...}}, got {type(evaluations).__name__}")
    # evaluations and plain dicts are read alike from here on
    judged = {name: _Judged.of(evaluation) for name, evaluation in evaluations.items()}
    pairs = _pairs(list(judged), baseline)
    _refuse_different_queries(judged)
    rows = []
    for measure in judged[pairs[0][0]].values:
        for ranker, other in pairs:
            first, second = judged[ranker].values[measure], judged[other].values[measure]
            weight = judged[ranker].weight
            # the same seed in every row, so a row does not depend on which others are computed
            draws: dict[str, Any] = {"weight": weight, "random_state": random_state}
            result = paired_test(first, second, test, resamples=resamples, alternative=alternative, **draws)
            low, high = interval(first - second, level, how, **draws)
            counts = (result.wins, result.losses, result.ties)
            rows.append((measure, ranker, other, result.difference, low, high, result.p_value, *counts))
    names = [name for name in COLUMNS if name != "p_corrected"]
    columns = Table.of_rows(names, rows).to_dict()
    columns["p_corrected"] = correct(columns["p"], correction).tolist()
    return Table({name: columns[name] for name in COLUMNS})


def _holm(p: Vector) -> Vector:
    """The i-th smallest of n times n - i + 1, never smaller than the one before."""
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return corrected


@dataclass(frozen=True, slots=True)
class _Judged:
    """The values per query of one ranker, by measure, and what is known of the queries."""

    values: dict[str, Vector]
    qid: list[Any] | None
    weight: Vector | None

    @classmethod
    def of(cls, evaluation: Any) -> "_Judged":
        """Read an evaluation, a dict of columns, or a file."""
        if isinstance(evaluation, (str, os.PathLike)):
            from rankwise.evaluation.files import read_values

            evaluation = read_values(evaluation)
        if isinstance(evaluation, Mapping):
            table, titles = Table(evaluation), [key for key in evaluation if key != "qid"]
        else:
            table, titles = evaluation.per_query, list(evaluation.titles)
        values = {title: np.asarray(table[title], dtype=np.float64) for title in titles}
        qid = table["qid"].tolist() if "qid" in table else None
        return cls(values, qid, getattr(evaluation, "weight", None))


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    """(ranker, baseline) pairs: every other one with the baseline, or each later one with each earlier one."""
    if len(names) < 2:
        raise RankwiseError(f"significance requires at least two rankers, got {len(names)}")
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(names, 2)]
    if baseline not in names:
        raise RankwiseError(f"baseline must be one of {', '.join(map(repr, names))}, got {baseline!r}")
    return [(name, baseline) for name in names if name != baseline]


def _refuse_different_queries(judged: Mapping[str, _Judged]) -> None:
    """Raise an error unless all values are of the same measures on the same queries, in the same order."""
    (base, known), *others = judged.items()
    for name, other in others:
        if set(other.values) != set(known.values):
            lacking = sorted(set(other.values) ^ set(known.values))[0]
            raise DataError(f"{base!r} and {name!r} must have the same measures: only one of them has {lacking}")
        sizes = [next(map(len, side.values.values()), 0) for side in (known, other)]
        if sizes[0] != sizes[1]:
            raise DataError(
                f"{base!r} and {name!r} must be evaluated on the same queries, got {sizes[0]:,} and {sizes[1]:,}"
            )
        if known.qid is not None and other.qid is not None and known.qid != other.qid:
            place = next(i for i, (a, b) in enumerate(zip(known.qid, other.qid, strict=True)) if a != b)
            raise DataError(
                f"{base!r} and {name!r} must be evaluated on the same queries: number {place:,} is "
                f"{known.qid[place]!r} in the first and {other.qid[place]!r} in the second"
            )
        one, two = (np.ones(sizes[0]) if side.weight is None else side.weight for side in (known, other))
        if not np.array_equal(one, two):
            raise DataError(f"{base!r} and {name!r} must have the same query weights")
