"""Slices: groups of queries that the caller defines, with means, paired differences, and a correction over all of them.

Every group of every slice is a further comparison of every ranker in every measure. The p-values of all of them are
corrected together, by the correction of the comparison.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.errors import DataError, in_one_line
from rankwise.evaluation.comparison.comparison import BASE, BETTER, EQUAL, WORSE, Comparison
from rankwise.evaluation.statistics.intervals import FEW, interval, mean
from rankwise.evaluation.statistics.multiple_testing import correct
from rankwise.evaluation.statistics.paired import paired_test
from rankwise.report.compact import finite, is_missing
from rankwise.report.descriptions import LONGEST_TEXT

Slice = ArrayLike | Callable[[Any], Any] | Mapping[Any, Any]
Slices = Mapping[str, Slice]
VERDICTS = {BETTER: "better", WORSE: "worse", EQUAL: "not shown", BASE: "baseline"}

_MOST_GROUPS = 200  # of one slice: more are ids, not groups
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": "not at all"}
_NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high", "p", "p_corrected")


def slice_results(comparison: Comparison, slices: Slices | None) -> dict[str, Any] | None:
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
        raise DataError(f"slices must be a dict of slices by their names, got {type(slices).__name__}")
    if len(set(map(str, slices))) < len(slices):
        raise DataError(f"slices must have different names, got {', '.join(map(repr, slices))}")
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
    _refuse_long(name, "a slice has a name")
    if isinstance(one, Mapping):
        by_id = {str(qid): group for qid, group in one.items()}
        if not any(str(qid) in by_id for qid in names):
            known = f"ids such as {next(iter(by_id))!r}" if by_id else "no id"
            raise DataError(f"slice {name!r} must name queries such as {str(names[0])!r}, got {known}")
        values = [by_id.get(str(qid)) for qid in names]
    elif callable(one):
        values = [_call(one, name, query) for query in comparison.queries]
    else:
        values = _as_list(name, one, len(names))
    group = np.array([_group_name(name, value) for value in values], dtype=object)
    count = len(set(group) - {""})
    if not 1 <= count <= _MOST_GROUPS:
        raise DataError(f"slice {name!r} must have 1 to {_MOST_GROUPS} groups, got {count:,}")
    return group


def _as_list(name: str, one: Any, count: int) -> list[Any]:
    """One group per query, from an array or any other sequence."""
    if isinstance(one, (str, bytes, Set)) or not isinstance(one, Iterable):
        raise DataError(
            f"slice {name!r} must be one group per query, a function or a mapping from query ids, got "
            f"{type(one).__name__}"
        )
    # plain values, and not an array of them: NumPy would turn [nan, "a"] into two texts
    values = one.tolist() if hasattr(one, "tolist") else list(islice(one, count + 1))
    if len(values) != count:
        many = f"more than {count:,}" if len(values) > count else f"{len(values):,}"
        raise DataError(f"slice {name!r} must have one group for each of the {count:,} queries, got {many}")
    return list(values)


def _call(one: Callable[[Any], Any], name: str, query: Any) -> Any:
    """What the caller's function says about a query; an error names the slice and the query."""
    try:
        return one(query)
    except Exception as error:  # the caller's own code
        raise DataError(f"slice {name!r} fails on query {str(query.qid)!r}: {in_one_line(error)}") from error


def _group_name(name: str, value: Any) -> str:
    """The name of a group; empty for no group."""
    if isinstance(value, (list, dict, Set, np.ndarray)):
        raise DataError(f"slice {name!r} must give each query one group, got a {type(value).__name__}")
    if is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    try:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    except Exception as error:  # a class of the caller's
        raise DataError(f"slice {name!r} has a group without a text: {in_one_line(error)}") from error
    _refuse_long(text, f"slice {name!r} has groups")
    return text


def _refuse_long(text: str, what: str) -> None:
    """Raise an error for a name that no table can show."""
    if len(text) > LONGEST_TEXT:
        raise DataError(f"{what} of up to {LONGEST_TEXT} characters, got {len(text):,}")


def _in_order(group: NDArray[np.object_]) -> list[str]:
    """The groups, numbers by size and texts by the alphabet."""
    names = sorted(set(group) - {""})  # 1 and 1.0 are as large, and always come in the same order
    try:
        sizes = {name: float(name) for name in names}
    except ValueError:
        return names
    return names if any(map(math.isnan, sizes.values())) else sorted(names, key=sizes.__getitem__)


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
            count = int(np.isfinite(own).sum())
            row |= {"queries": count, "few": count < FEW, **dict.fromkeys(_NUMBERS, math.nan)}
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
