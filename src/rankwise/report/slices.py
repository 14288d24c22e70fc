"""Slices: groups of queries that the caller defines, with means, paired differences, and a correction over all of them.

Every group of every slice is a further comparison of every ranker in every measure. The p-values of all of them are
corrected together, by the correction of the comparison.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, in_one_line
from rankwise.evaluation.compare.result import BASE, BETTER, EQUAL, WORSE, Comparison
from rankwise.evaluation.statistics.intervals import interval, mean
from rankwise.evaluation.statistics.paired import paired_test
from rankwise.evaluation.statistics.significance import correct
from rankwise.report.compact import finite

Slice = ArrayLike | Callable[[Any], Any] | Mapping[Any, Any]
Slices = Mapping[str, Slice]
VERDICTS = {BETTER: "better", WORSE: "worse", EQUAL: "not shown", BASE: "baseline"}

_MOST_GROUPS = 200  # of one slice: more are ids, not groups
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": "not at all"}
_NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high", "p", "p_corrected")


def sliced(comparison: Comparison, slices: Slices | None) -> dict[str, Any] | None:
    """Means and differences to the baseline in every group of every slice.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    slices : dict of str to slice, or None
        The slices by name: one group (or True and False) per query in the order of ``comparison.queries``, a function
        from a query to its group, or a mapping from query ids to groups. None is no group.

    Returns
    -------
    dict or None
        The slices with their rows, the number of tests, and the correction; None without slices.

    Raises
    ------
    DataError
        If a slice does not match the queries, or has no group or too many.
    """
    if not slices:
        return None
    if not isinstance(slices, Mapping):
        raise DataError(f"slices are given by name, {{'long': ...}}: found {type(slices).__name__}")
    found: list[dict[str, Any]] = []
    for name, one in slices.items():
        group = groups_of(comparison, str(name), one)
        rows = [row for each in _in_order(group) for row in _rows(comparison, each, group == each)]
        found.append({"name": str(name), "left_out": int((group == "").sum()), "rows": rows})
    every = [row for one in found for row in one["rows"]]
    # one family of tests: looking at more slices costs every one of them
    for row, p in zip(every, correct([row["p"] for row in every], comparison.about["correction"]), strict=True):
        row["p_corrected"] = float(p)
        row["verdict"] = VERDICTS[_mark(comparison, row)]
    tests = sum(not math.isnan(row["p"]) for row in every)
    for row in every:
        row.update({name: finite(row[name]) for name in _NUMBERS})
    return {"slices": found, "tests": tests, "correction": _CORRECTIONS[comparison.about["correction"]]}


def groups_of(comparison: Comparison, name: str, one: Slice) -> NDArray[np.object_]:
    """The group of every query as text; empty for none.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    name : str
        The name of the slice.
    one : slice
        What defines it.

    Returns
    -------
    ndarray of str
        The groups, in the order of ``comparison.queries``.
    """
    names = comparison.queries.names()
    if isinstance(one, Mapping):
        by_id = {str(qid): group for qid, group in one.items()}
        if not any(str(qid) in by_id for qid in names):
            raise DataError(
                f"slice {name!r} names none of the queries: found such as {next(iter(by_id), None)!r}, "
                f"expected {str(names[0])!r}"
            )
        values = [by_id.get(str(qid)) for qid in names]
    elif callable(one):
        values = [_called(one, name, query) for query in comparison.queries]
    else:
        array = np.asarray(one)
        if array.shape != (len(names),):
            raise DataError(
                f"slice {name!r} holds one group per query: found shape {array.shape} for {len(names):,} queries"
            )
        values = array.tolist()
    group = np.array([_group_name(value) for value in values], dtype=object)
    count = len(set(group) - {""})
    if not 1 <= count <= _MOST_GROUPS:
        raise DataError(f"slice {name!r} has 1 to {_MOST_GROUPS} groups: found {count:,}")
    return group


def _called(one: Callable[[Any], Any], name: str, query: Any) -> Any:
    """What the caller's function says about a query; an error names the slice and the query."""
    try:
        return one(query)
    except Exception as error:  # the caller's own code
        raise DataError(f"slice {name!r} fails on query {str(query.qid)!r}: {in_one_line(error)}") from error


def _group_name(value: Any) -> str:
    """The name of a group; empty for no group."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _in_order(group: NDArray[np.object_]) -> list[str]:
    """The groups, numbers by size and texts by the alphabet."""
    names = set(group) - {""}
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _rows(comparison: Comparison, group: str, inside: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """One row for every measure and ranker."""
    about, base = comparison.about, comparison.results[comparison.baseline]
    weight = None if base.weight is None else base.weight[inside]
    draws: dict[str, Any] = {"weight": weight, "random_state": about["random_state"]}
    counts = weight is None or weight.any()  # queries of weight 0 have no mean
    rows = []
    for title in comparison.titles:
        for ranker, result in comparison.results.items():
            own, other = result[title][inside], base[title][inside]
            row: dict[str, Any] = {"group": group, "measure": title, "ranker": ranker}
            row |= {"queries": int(np.isfinite(own).sum()), **dict.fromkeys(_NUMBERS, math.nan)}
            if counts:
                row["mean"] = mean(own, weight)
                row["low"], row["high"] = interval(own, comparison.level, **draws)
            if counts and ranker != comparison.baseline and np.isfinite(own - other).any():
                tested = paired_test(own, other, about["test"], **draws)
                ends = interval(own - other, comparison.level, **draws)
                row |= {"difference": tested.difference, "p": tested.p_value}
                row |= {"difference_low": ends[0], "difference_high": ends[1]}
            rows.append(row)
    return rows


def _mark(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Whether a ranker differs from the baseline in a group, after correction."""
    if row["ranker"] == comparison.baseline:
        return BASE
    if not row["p_corrected"] <= 1 - comparison.level:  # NaN: nothing to compare
        return EQUAL
    return BETTER if row["difference"] > 0 else WORSE
