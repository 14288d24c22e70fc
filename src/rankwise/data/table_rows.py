"""Rows of a table as arrays, and from there to lists: all at once, or block after block of whole queries."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.checks import Floats, Missing
from rankwise.data.letor_groups import as_written
from rankwise.data.queries import Queries
from rankwise.data.texts import Texts

Unjudged = Literal["error", "drop", "zero"]


class Rows(NamedTuple):
    """Consecutive rows of a table; ids are an array, or texts where nobody knows yet whether all are numbers."""

    X: Floats
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | Texts
    docid: Texts | None
    weight: NDArray[np.float64] | None

    def at(self, places: Any) -> "Rows":
        """The rows at these places."""
        columns: list[Any] = [None if column is None else column[places] for column in self]
        return Rows(*columns)

    def identities(self) -> NDArray[Any]:
        """One id a row: whole numbers where each is written as one."""
        if not isinstance(self.qid, Texts):
            return self.qid
        return as_written(self.qid) if len(self.qid) else np.empty(0, dtype=str)

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """One after another."""
        return parts[0] if len(parts) == 1 else cls(*(_joined(column) for column in zip(*parts, strict=True)))


def _joined(columns: tuple[Any, ...]) -> Any:
    if columns[0] is None:
        return None
    return Texts.concat(columns) if isinstance(columns[0], Texts) else np.concatenate(columns)


def without_unjudged(rows: Rows, unjudged: Unjudged) -> Rows:
    """Labels that are negative or absent made 0, or their rows left out; "error" leaves them to be refused."""
    if unjudged not in ("error", "drop", "zero"):
        raise RankwiseError(f"unjudged is 'error', 'drop' or 'zero': found {unjudged!r}")
    if rows.y is None or unjudged == "error":
        return rows
    bad = np.isnan(rows.y) | (rows.y < 0)
    if not bad.any():
        return rows
    return rows.at(~bad) if unjudged == "drop" else rows._replace(y=np.where(bad, 0.0, rows.y))


def as_queries(rows: Rows, names: Sequence[str], missing: Missing, weight_column: str | None = None) -> Queries:
    """The rows as lists, whatever their order."""
    docid: Any = rows.docid
    queries = Queries.from_arrays(
        rows.X, rows.y, qid=rows.identities(), docid=docid, feature_names=names, missing=missing
    )
    if rows.weight is None:
        return queries
    return queries.with_weight(_query_weights(queries, rows.weight, str(weight_column)))


def whole_lists(
    parts: Iterable[Rows], names: Sequence[str], missing: Missing, rows: int | None, name: str
) -> Iterator[Queries]:
    """Blocks of whole queries with about so many rows; memory holds one block and the ids.

    A query that returns after its rows have ended is refused by name. None: one block, whatever the order of the rows.
    """
    if rows is None:
        yield as_queries(Rows.joined(list(parts)), names, missing)
        return
    seen: set[str] = set()
    waiting: list[Rows] = []
    for part in parts:
        waiting.append(part)
        if sum(len(one.X) for one in waiting) < rows:
            continue
        held = Rows.joined(waiting)
        ids = held.identities()
        changes = np.flatnonzero(ids[1:] != ids[:-1])
        end = int(changes[-1]) + 1 if len(changes) else 0
        if end:
            yield _block(held.at(slice(0, end)), names, missing, seen, name)
        waiting = [held.at(slice(end, None))]
    if waiting and sum(len(one.X) for one in waiting):
        yield _block(Rows.joined(waiting), names, missing, seen, name)


def _block(rows: Rows, names: Sequence[str], missing: Missing, seen: set[str], name: str) -> Queries:
    ids = rows.identities()
    runs = ids[np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))]
    for qid in map(str, runs.tolist()):
        if qid in seen:
            raise DataError(
                f"{name}: query {qid} returns after its rows have ended, and a stream needs them together: sort the "
                "rows by query, or read the file as a whole"
            )
        seen.add(qid)
    return as_queries(rows, names, missing)


def _query_weights(queries: Queries, values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """One weight a query out of one a row."""
    ordered = values[queries.rows]
    first = ordered[queries.start[:-1]]
    other = np.flatnonzero(ordered != np.repeat(first, queries.sizes))
    if len(other):
        query = int(np.searchsorted(queries.start, other[0], side="right")) - 1
        raise DataError(
            f"column {name!r} is {first[query]:g} and {ordered[other[0]]:g} within query {queries.names()[query]!r}: "
            "a weight belongs to a query as a whole"
        )
    return first
