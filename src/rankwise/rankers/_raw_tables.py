"""Raw tables for rankers that learned from features of a :class:`rankwise.FeatureBuilder`.

A ranker keeps the builder as ``features_``. Tables with the columns of the builder are raw; `Queries` that the same
builder made, and arrays and tables with its features, are used as they are. A feature has the name of a column only if
it is that column, so that names tell the two apart.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.errors import DataError
from rankwise.features.table import RawTable, as_table
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker


def as_built(
    ranker: "Ranker",
    X: Any,
    *,
    grouped: bool = False,
    one_query: bool = False,
    judged: bool = False,
    scaled: bool = True,
) -> Any:
    """What a ranker was given, with the features that it learned from.

    Parameters
    ----------
    ranker : Ranker
        The fitted ranker.
    X : Queries, Query, data frame, RawTable or array
        What it was given.
    grouped : bool, default=False
        Whether the caller needs the query ids of a table, and not only its scores.
    one_query : bool, default=False
        Whether a table without the column of query ids is one query, even where features compare its documents.
    judged : bool, default=False
        Whether labels are read.
    scaled : bool, default=True
        Whether features are scaled as those of the training queries were.

    Returns
    -------
    X : Queries, or as given
        Queries if the builder was applied; otherwise ``X``, which holds features already.

    Raises
    ------
    DataError
        If it is neither a raw table nor one of features, or lacks the grouping that features need.
    """
    builder = getattr(ranker, "features_", None)
    if builder is None:
        if isinstance(X, RawTable):
            raise DataError(f"{ranker.name} learned from features and not from a table: it has no FeatureBuilder")
        return X
    if isinstance(X, Query):
        X = Queries._trusted(X.X, X.y, np.array([0, len(X.X)]), feature_names=X.feature_names)
    if isinstance(X, Queries):
        X = _of_queries(ranker, builder, X)
        return _scaled(ranker, X) if scaled and X.built_by is not None else X
    if isinstance(X, RawTable) or hasattr(X, "columns") or hasattr(X, "column_names"):
        table = as_table(X)
        if _lacks(table.names, builder.columns_in_) and not _lacks(table.names, builder.feature_names_out_):
            return X
        one_query = one_query or not (grouped or builder.needs_queries)
        built = builder._transform(table, one_query=one_query, judged=judged)
        return _scaled(ranker, built) if scaled else built
    if builder.needs_queries:
        names = [name for one in builder._treated if one.needs_queries for name in one.features]
        raise DataError(
            f"{ranker.name} has features that compare the documents of a query ({names[0]!r}): give Queries, a table "
            f"with the column {builder.roles_['qid']!r}, or one Query, not an array"
        )
    return X


def without_gaps(ranker: "Ranker", queries: Queries) -> Queries:
    """The queries without NaN, by the ranker's policy; builders with ``missing="keep"`` leave gaps."""
    if queries.built_by is None or queries.built_by.missing != "keep" or ranker.keeps_missing:
        return queries
    X = checks.fill_missing(queries.X, queries.start, queries.scattered_rows, ranker.missing, queries.feature_names)
    return queries._replace(X=X)


def _of_queries(ranker: "Ranker", builder: Any, queries: Queries) -> Queries:
    """Queries with the features of the builder."""
    if queries.built_by is not None:
        if queries.built_by.digest_ != builder.digest_:
            raise DataError(
                f"these queries were made by another FeatureBuilder than those that {ranker.name} learned from: give "
                "the raw table, or what its features_.transform makes of it"
            )
        return queries
    if queries.feature_names is None or not _lacks(queries.feature_names, builder.feature_names_out_):
        return queries
    return builder._transform(queries)  # type: ignore[no-any-return]


def _scaled(ranker: "Ranker", queries: Queries) -> Queries:
    """Queries scaled as the training queries were."""
    scaling = getattr(ranker, "scaling_", None)
    return queries if scaling is None or queries.scaling is not None else scaling.transform(queries)


def _lacks(names: Sequence[str], needed: Sequence[str]) -> bool:
    return not set(needed) <= set(names)
