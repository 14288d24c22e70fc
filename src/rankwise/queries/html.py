"""Queries and a query as HTML, for notebooks: a sentence and a short table, whatever the size of the data.

:class:`QueryBrowser` is what ``queries.browse()`` returns: the first queries, each of which opens and shows documents.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import Table, notebook_html, paragraph
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.checks import plural

if TYPE_CHECKING:
    from rankwise.queries.parts.parts import Parts
    from rankwise.queries.queries import Queries
    from rankwise.queries.selection import Query

_QUERIES, _DOCUMENTS, _FEATURES = 5, 10, 8


def queries_html(queries: "Queries") -> str:
    """A sentence about all queries, and a table of the first ones.

    Parameters
    ----------
    queries : Queries
        The queries.

    Returns
    -------
    str
        The HTML.
    """
    shown = min(len(queries), _QUERIES)
    first = _first_queries(queries, shown).html()
    about = paragraph(repr(queries), *_list_features(queries.feature_names))
    return notebook_html(about, first, _more(len(queries) - shown))


def _first_queries(queries: "Queries", shown: int) -> Table:
    """The first queries with their sizes, labels and weights."""
    names = queries.names()[:shown]
    columns: dict[str, Any] = {"query": [str(name) for name in names], "documents": queries.sizes[:shown]}
    if queries.y is not None:
        labels = [queries.y[queries.rows_of(query)] for query in range(shown)]
        columns["labels"] = [_counts(one) for one in labels]
    if queries.weight is not None:
        columns["weight"] = queries.weight[:shown]
    return Table(columns)


def parts_html(parts: "Parts") -> str:
    """A sentence about a data set in parts, and a table of its first queries.

    Parameters
    ----------
    parts : Parts
        The data set.

    Returns
    -------
    str
        The HTML.
    """
    shown = min(len(parts), _QUERIES)
    first = _first_queries(parts.block(0, shown), shown).html()
    return notebook_html(paragraph(repr(parts), *_list_features(parts.feature_names)), first, _more(len(parts) - shown))


def query_html(query: "Query") -> str:
    """A sentence about a query, and a table of its documents with the first features, the highest labels first.

    Parameters
    ----------
    query : Query
        The query.

    Returns
    -------
    str
        The HTML.
    """
    rows = np.argsort(-query.y, kind="stable") if query.y is not None else np.arange(len(query))
    table, more = _documents(query, rows[:_DOCUMENTS], None)
    said = f"Query {query.qid}: {plural(len(query), 'document')}, {plural(query.X.shape[1], 'feature')}"
    return notebook_html(paragraph(said), table.html(), paragraph(f"{more} more") if more else "")


def _documents(query: "Query", rows: NDArray[np.int64], scores: NDArray[np.float64] | None) -> tuple[Table, str]:
    """Some documents of a query with the first features, and how many are not shown."""
    width = min(query.X.shape[1], _FEATURES)
    columns: dict[str, Any] = {"row": rows}
    if query.docid is not None:
        columns["document"] = [str(query.docid[int(row)]) for row in rows]
    if query.y is not None:
        columns["label"] = query.y[rows]
    if scores is not None:
        columns["score"] = scores[rows]
    for place in range(width):
        name = f"X[:, {place}]" if query.feature_names is None else query.feature_names[place]
        columns[f"{name} " if name in columns else name] = np.asarray(query.X[rows, place], dtype=np.float64)
    left = {"document": len(query) - len(rows), "feature": query.X.shape[1] - width}
    return Table(columns), " and ".join(plural(count, what) for what, count in left.items() if count)


def _counts(labels: Any) -> str:
    """Labels with how often each occurs, the highest first."""
    values, counts = np.unique(labels, return_counts=True)
    return ", ".join(
        f"{value:g}: {count}" for value, count in list(zip(values, counts, strict=True))[: -_QUERIES - 1 : -1]
    )


def _list_features(names: tuple[str, ...] | None) -> list[str]:
    """A line with the first names of features; none where they have no names."""
    if not names:
        return []
    more = f" and {len(names) - _FEATURES} more" if len(names) > _FEATURES else ""
    return [f"features: {', '.join(names[:_FEATURES])}{more}"]


def _more(count: int) -> str:
    """A line with the number of queries that are not shown."""
    return paragraph(f"and {count:,} more") if count > 0 else ""


# ------------------------------------------------------------------------------------------------------------ browsing

_MOST_QUERIES, _MOST_DOCUMENTS = 100, 50


class QueryBrowser:
    """Queries to leaf through in a notebook: each opens and shows its documents, without a widget or a script.

    Parameters
    ----------
    queries : Queries
        The queries.
    chosen : sequence of int
        The places of those that are shown.
    scores : ndarray or None
        One score per document: the order of the documents of a query. None orders them by their labels.
    documents : int
        How many documents of a query are shown.
    """

    def __init__(
        self, queries: "Queries", chosen: Sequence[int], scores: NDArray[np.float64] | None, documents: int
    ) -> None:
        self._queries, self._chosen, self._scores, self._documents = queries, chosen, scores, documents

    @classmethod
    def of(cls, queries: "Queries", scores: Any, first: int, documents: int) -> "QueryBrowser":
        """Check what was asked for; see :meth:`rankwise.Queries.browse`.

        Parameters
        ----------
        queries : Queries
            The queries.
        scores : array-like or None
            One score per document.
        first : int
            How many queries are shown.
        documents : int
            How many documents of a query are shown.

        Returns
        -------
        QueryBrowser
            The browser.
        """
        for name, value, most in (("first", first, _MOST_QUERIES), ("documents", documents, _MOST_DOCUMENTS)):
            if not checks.is_whole(value) or value > most:
                raise DataError(f"{name} must be a whole number from 1 to {most}, got {value!r:.60}")
        known = None if scores is None else checks.as_vector(scores, queries.n_documents, "scores")
        return cls(queries, range(min(first, len(queries))), known, documents)

    def __repr__(self) -> str:
        return f"QueryBrowser({plural(len(self._chosen), 'query', 'queries')} of {len(self._queries):,})"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        left = len(self._queries) - len(self._chosen)
        return notebook_html(paragraph(repr(self._queries)), *map(self._details, self._chosen), _more(left))

    def _details(self, place: int) -> str:
        """One query that opens."""
        query, rows = self._queries[place], self._queries.rows_of(place)
        scores = None if self._scores is None else self._scores[rows]
        by = scores if scores is not None else query.y
        order = np.arange(len(query)) if by is None else np.argsort(-by, kind="stable")
        table, more = _documents(query, order[: self._documents], scores)
        labels = "" if query.y is None else f"; labels {_counts(query.y)}"
        head = escape(f"{query.qid}: {plural(len(query), 'document')}{labels}")
        more = paragraph(f"{more} more") if more else ""
        return f"<details><summary>{head}</summary>\n{table.html()}{more}</details>"
