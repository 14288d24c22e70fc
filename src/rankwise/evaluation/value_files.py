"""Values per query that another tool computed, from its files, for paired tests."""

import os
import re
from typing import Any

from rankwise._errors import FileFormatError
from rankwise.data.json_text import items_of, member, number_of, read_json
from rankwise.data.predictions import first_line, means_in_json, means_in_line, refuse_means
from rankwise.data.sources import decoded, name_of, plain_number, read_text, without_mark

# lines of trec_eval that are no measures
_NO_MEASURE = re.compile(r"num_.*|runid|relstring.*")


def read_values(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Read the values of measures per query.

    Parameters
    ----------
    path : path
        What ``trec_eval -q`` prints or RankLib writes with ``-idv``: measure, query and value on each line; or JSON:
        the object {query: {measure: value}} that pytrec_eval returns, or the one of :meth:`Evaluation.to_dict`.

    Returns
    -------
    columns : dict of str to list
        ``qid``, in the order of their texts, and one column per measure.

    Raises
    ------
    FileFormatError
        If the file holds something else, means alone among them, or lacks the value of a query.
    """
    line = first_line(path)
    refuse_means(name_of(path), means_in_line(line))
    values = _from_json(path) if line.lstrip()[:1] == "{" else _from_lines(path)
    names = {measure: None for own in values.values() for measure in own}
    if not names:
        raise FileFormatError(f"{name_of(path)} holds no value of a query: expected a measure, a query and a value")
    for qid, own in values.items():
        lacking = next((measure for measure in names if measure not in own), None)
        if lacking is not None:
            raise FileFormatError(f"{name_of(path)} lacks the value of {lacking!r:.60} for query {qid!r:.60}")
    order = sorted(values)
    return {"qid": order, **{measure: [values[qid][measure] for qid in order] for measure in names}}


def _from_json(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """query -> measure -> value."""
    values = read_json(path)
    where, content = values[0]
    refuse_means(where, means_in_json([content]))
    if len(values) > 1:
        raise FileFormatError(f"{values[1][0]}: expected one object of query to values")
    if isinstance(content, dict) and "per_query" in content:
        columns = dict(items_of(content["per_query"], "'per_query'", where))
        qid = [str(name) for name in member(columns, "qid", list, where)]
        found: dict[str, dict[str, float]] = {name: {} for name in qid}
        if len(found) < len(qid):
            raise FileFormatError(f"{where}: two queries have the same id, expected every one once")
        for measure in columns:
            column = member(columns, measure, list, where)
            if len(column) != len(qid):
                raise FileFormatError(f"{where}: {measure!r:.60} has {len(column):,} values for {len(qid):,} queries")
            for name, value in zip(qid, column, strict=True):
                if measure != "qid":  # None: the measure is 0/0 there
                    found[name][measure] = float("nan") if value is None else number_of(value, measure, where)
        return found
    return {
        qid: {
            measure: number_of(value, f"the value of {measure!r:.60} for query {qid!r:.60}", where)
            for measure, value in items_of(own, f"the values of query {qid!r:.60}", where)
        }
        for qid, own in items_of(content, "values by query", where)
    }


def _from_lines(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """query -> measure -> value."""
    name, found = name_of(path), dict[str, dict[str, float]]()
    text = decoded(without_mark(read_text(path).data.tobytes(), name), name)
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3:
            raise FileFormatError(
                f"{name}, line {number:,}: expected a measure, a query and a value, found {len(fields)} fields"
            )
        measure, qid, word = fields
        if qid == "all" or _NO_MEASURE.fullmatch(measure):
            continue
        value = plain_number(word)
        if value is None:
            raise FileFormatError(f"{name}, line {number:,}: expected a number as value, found {word!r:.60}")
        if measure in found.setdefault(qid, {}):
            raise FileFormatError(f"{name}, line {number:,}: {measure} of query {qid!r:.60} is on an earlier line too")
        found[qid][measure] = value
    return found
