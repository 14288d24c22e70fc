"""The columns of a raw table that are no features: query ids, labels, document ids and query weights."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.features.columns import read_numbers
from rankwise.features.table import Column, QueriesTable, RawTable
from rankwise.features.texts import number_of
from rankwise.features.treatments import Layout
from rankwise.io.tables.rows import Roles, labels_by_grades
from rankwise.queries.grouping import StringColumn, by_id

Array = NDArray[np.float64]


def training_layout(
    table: RawTable, roles: dict[str, str | None], labeled: bool
) -> tuple[Layout, NDArray[np.int64] | None, set[str]]:
    """(start and rows, the query of each row, columns with a role) of the training table."""
    if isinstance(table, QueriesTable):
        queries = table.queries
        if queries.built_by is not None:
            raise DataError("a FeatureBuilder made these queries already: pass the raw table")
        return (queries.start, queries.scattered_rows), queries.query_of_row, set()
    label = roles["label"] if not labeled or roles["label"] in table.names else None
    columns = Roles(str(roles["qid"]), label, roles["docid"], roles["weight"]).among(table.names)
    parts = by_id(table.identities(columns.qid), table.n_rows)
    owner = np.repeat(np.arange(len(parts.start) - 1), np.diff(parts.start))
    if parts.rows is not None:
        placed = np.empty_like(owner)
        placed[parts.rows] = owner
        owner = placed
    taken = {name for name in (columns.qid, columns.label, columns.docid, columns.weight) if name is not None}
    return (parts.start, parts.rows), owner, taken


def labels_of(table: RawTable, name: str | None, grades: Mapping[str, float] | None) -> Array | None:
    """The labels, NaN where they are missing; None without their column."""
    if name is None or name not in table.names:
        return None
    column = table.column(name)
    if grades is not None:
        return labels_by_grades(_words(column), name, grades)
    return _numbers(
        column,
        "labels",
        f"give grades={propose_grades(column)}, with the grades of your words" if column.stored == "text" else "",
    )


def docids_of(table: RawTable, name: str | None, features: Sequence[str]) -> StringColumn | None:
    """The document ids; None without their column. One called ``docid`` needs no naming, unless it is a feature."""
    if name is None and "docid" in features:
        return None
    name = name or "docid"
    return table.texts(name) if name in table.names else None


def weights_of(table: RawTable, name: str | None) -> Array | None:
    """The weight of the query of each row; None without their column."""
    if name is None or name not in table.names:
        return None
    return _numbers(table.column(name), "query weights", "")


def _numbers(column: Column, role: str, advice: str) -> Array:
    """The numbers of a column with a role."""
    try:
        return np.asarray(read_numbers(column, "number", {}), dtype=np.float64)
    except DataError:
        texts = (text for text in column.values.tolist() if text is not None)
        found = next((text for text in texts if number_of(text, column.decimal) is None), None)
        holds = f"{found!r:.40}" if column.stored == "text" else column.type_name or "dates"
        end = f": {advice}" if advice else ""
        raise DataError(f"the {role} in column {column.name!r} must be numbers, got {holds}{end}") from None


# Words of judgments in their usual order, from which grades are proposed.
_ORDERS = (
    ("no", "yes"),
    ("false", "true"),
    ("bad", "poor", "fair", "ok", "good", "excellent", "perfect"),
    ("none", "low", "medium", "high"),
    ("irrelevant", "partial", "relevant"),
    ("irrelevant", "complement", "substitute", "exact"),
    ("i", "c", "s", "e"),
)


def propose_grades(column: Column) -> dict[str, int]:
    """Grades for the words of a label column: in the usual order where it is known, else by the alphabet.

    Parameters
    ----------
    column : Column
        The labels.

    Returns
    -------
    grades : dict of str to int
        A grade for each word.
    """
    words = sorted({text for text in column.values.tolist() if text is not None})
    for order in _ORDERS:
        if {word.lower() for word in words} <= set(order):
            words.sort(key=lambda word, order=order: order.index(word.lower()))  # type: ignore[misc]
            break
    return {word: grade for grade, word in enumerate(words)}


def _words(column: Column) -> list[str | None]:
    """The values of a column as texts."""
    if column.stored == "text":
        return list(column.values.tolist())
    return [None if not np.isfinite(value) else f"{value:g}" for value in column.values.tolist()]
