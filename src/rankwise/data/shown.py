"""Queries and a query as HTML, for notebooks: a sentence and a short table, whatever the size of the data."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._tables import Table
from rankwise.data.checks import plural

if TYPE_CHECKING:
    from rankwise.data.parts.parts import Parts
    from rankwise.data.queries import Queries
    from rankwise.data.selection import Query

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
    names = queries.names()[:shown]
    columns: dict[str, Any] = {"query": [str(name) for name in names], "documents": queries.sizes[:shown]}
    if queries.y is not None:
        labels = [queries.y[queries.rows_of(query)] for query in range(shown)]
        columns["labels"] = [_counts(one) for one in labels]
    if queries.weight is not None:
        columns["weight"] = queries.weight[:shown]
    more = f"<p>and {len(queries) - shown:,} more</p>" if len(queries) > shown else ""
    features = _named(queries.feature_names)
    return f"<p>{escape(repr(queries))}{features}</p>\n{Table(columns)._repr_html_()}{more}"


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
    first = queries_html(parts.block(0, shown)).partition("\n")[2]
    more = f"<p>and {len(parts) - shown:,} more</p>" if len(parts) > shown else ""
    return f"<p>{escape(repr(parts))}{_named(parts.feature_names)}</p>\n{first}{more}"


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
    order = np.arange(len(query)) if query.y is None else np.argsort(-query.y, kind="stable")
    rows, width = order[:_DOCUMENTS], min(query.X.shape[1], _FEATURES)
    columns: dict[str, Any] = {"row": rows}
    if query.docid is not None:
        columns["document"] = [str(query.docid[int(row)]) for row in rows]
    if query.y is not None:
        columns["label"] = query.y[rows]
    for place in range(width):
        name = f"X[:, {place}]" if query.feature_names is None else query.feature_names[place]
        columns[f"{name} " if name in columns else name] = np.asarray(query.X[rows, place], dtype=np.float64)
    left = {"document": len(query) - len(rows), "feature": query.X.shape[1] - width}
    more = " and ".join(plural(count, what) for what, count in left.items() if count)
    said = f"Query {query.qid}: {plural(len(query), 'document')}, {plural(query.X.shape[1], 'feature')}"
    return f"<p>{escape(said)}</p>\n{Table(columns)._repr_html_()}" + (f"<p>{more} more</p>" if more else "")


def _counts(labels: Any) -> str:
    """Labels with how often each occurs, the highest first."""
    values, counts = np.unique(labels, return_counts=True)
    return ", ".join(
        f"{value:g}: {count}" for value, count in list(zip(values, counts, strict=True))[: -_QUERIES - 1 : -1]
    )


def _named(names: tuple[str, ...] | None) -> str:
    """The first names of features as a part of a sentence."""
    if not names:
        return ""
    more = f" and {len(names) - _FEATURES} more" if len(names) > _FEATURES else ""
    return f"<br>features: {escape(', '.join(names[:_FEATURES]))}{more}"
