"""What rankers are given, as queries or rows with the features that they learned from, and the rankings of these.

``fit``, ``predict``, ``rank``, ``score`` and ``certificate`` take arrays, data frames, raw tables, `Queries`, `Parts`
and click logs. These functions check them, warn about them, and change nothing in the ranker.

A ranker that learned from features of a :class:`rankwise.FeatureBuilder` keeps the builder in its record. Tables with
the columns of the builder are raw; `Queries` that the same builder made, and arrays and tables with its features, are
used as they are. A feature has the name of a column only if it is that column, so names tell the two apart.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankwise._arrays import Mask, Vector
from rankwise._diagnose.row_order import DEVIATIONS, PREDICTS, feature_order
from rankwise._tables import Table
from rankwise.errors import DataError, NothingLearnedWarning, RankwiseError, warn
from rankwise.features.table import RawTable, as_table
from rankwise.queries import checks
from rankwise.queries.fingerprints import Seen
from rankwise.queries.folds import Unsliced
from rankwise.queries.grouped_labels import Labels
from rankwise.queries.overlap import overlap
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query

if TYPE_CHECKING:
    from rankwise.guarantees.cutoff import Cutoff
    from rankwise.rankers._base import Ranker


# Standard deviations that differ by more than this factor are uneven: a rare indicator beside a standardized number
# differs by 10. Deviations of few rows say nothing, and those of many rows are estimated from some.
_UNEVEN = 30.0
_FEW_ROWS, _LOOKED_AT = 100, 20_000

# -------------------------------------------------------------------------------------------------- to learn from


def training_queries(
    ranker: "Ranker", X: Any, y: Any, group: Any, qid: Any, sample_weight: Any, checkpoint: Any
) -> Any:
    """The judged queries that ``fit`` learns from, checked; :meth:`Ranker.fit` documents the parameters."""
    if hasattr(X, "as_training_queries"):  # a click log, which a higher layer has
        X = X.as_training_queries(ranker)
    queries = judged_queries(ranker, X, y, group, qid)
    if sample_weight is not None:
        queries = queries.with_document_weight(sample_weight)
    if checkpoint is not None and not isinstance(queries, ChunkedQueries):
        raise RankwiseError("checkpoint= records passes over Parts: pass Parts, or leave it out")
    check_document_weights(ranker, queries)
    if not queries.n_documents:
        raise DataError(f"{ranker.name}.fit needs judged documents, got {len(queries):,} queries without any")
    if not queries.n_features:
        raise DataError(
            f"{ranker.name}.fit needs features, got 0 feature(s) (shape={(queries.n_documents, 0)}) while a minimum of "
            "1 is required."
        )
    # what continues needs the features that it began with
    continued = getattr(ranker, "warm_start", False) and hasattr(ranker, "n_features_in_")
    return align(ranker, queries) if continued else queries


def validation_queries(ranker: "Ranker", validation: Any, eval_set: Any, eval_group: Any) -> Any:
    """The validation set in either form, or None; a ranker without model selection does not use ``eval_set``."""
    if eval_set is None and eval_group is None:
        return validation
    if validation is not None:
        raise DataError("validation= and eval_set= have the same meaning: pass one of them")
    try:
        ((X, y),) = eval_set
        (sizes,) = (None,) if eval_group is None and isinstance(y, Labels) else eval_group
    except (TypeError, ValueError) as error:
        raise DataError("eval_set=[(X, y)] goes with eval_group=[sizes], one of each") from error
    queries = judged_queries(ranker, X, y, sizes, None)
    if ranker.takes_validation:
        return queries
    # PyTerrier and users of LightGBM pass one to every learner
    warn(f"{ranker.name} does no model selection: eval_set is not used", UserWarning)
    return None


def align_validation(ranker: "Ranker", validation: Any) -> Queries | None:
    """The validation set with the features of the training queries; it may be a table if these were made of one."""
    if validation is None:
        return None
    if ranker.record_.builder is not None and not isinstance(validation, Unsliced):
        validation = apply_builder(ranker, validation, grouped=True, judged=True)
    return align(ranker, Unsliced.open(validation))


def judged_queries(ranker: "Ranker", X: Any, y: Any, group: Any, qid: Any, method: str = "fit") -> Any:
    """Judged queries from arrays, data frames, `Queries` or `Parts`, checked for this ranker.

    Parameters
    ----------
    ranker : Ranker
        The ranker.
    X, y, group, qid : object
        As :meth:`Ranker.fit` takes them.
    method : str, default="fit"
        The method that was called, for messages.

    Returns
    -------
    QuerySource
        The queries: :class:`Queries`, or :class:`ChunkedQueries` if they are in parts.

    Raises
    ------
    DataError
        If the data are malformed, or the ranker cannot take them.
    """
    if isinstance(X, (ChunkedQueries, Parts)):
        if not (y is None and group is None and qid is None):
            raise DataError("Parts hold their own labels and grouping: leave out y, group= and qid=")
        if method == "fit":
            check_runs_on_parts(ranker)
        queries: Any = X.as_source(verbose=ranker.verbose)
    elif isinstance(X, Queries):
        if group is not None or qid is not None:
            raise DataError("Queries hold their own grouping: leave out group= and qid=")
        queries = X if y is None else X.with_labels(y)
    elif isinstance(X, (str, bytes, os.PathLike)):
        raise DataError(checks.not_a_path(X))
    elif group is None and qid is None and not isinstance(y, Labels):
        raise DataError(
            f"{ranker.name}.{method}(X, y) needs the grouping of rows: pass group= (sizes of consecutive queries), "
            "qid= (one id per row), or Queries; inside scikit-learn, y=rankwise.sklearn.labels(y, qid=...) carries "
            "it, and rankwise.sklearn.DocumentTransformer(transformer) keeps Queries"
        )
    elif isinstance(y, Labels) and y.qid is not None and not (group is None and qid is None):
        raise DataError("y carries its own grouping (rankwise.sklearn.labels): leave out group= and qid=")
    else:
        queries = Queries.from_arrays(X, y, group=group, qid=qid, missing=ranker.missing)
    queries.require_labels()
    check_missing_policy(ranker)
    queries = fill_missing(ranker, queries)
    check_missing(ranker, queries)
    return queries


# -------------------------------------------------------------------------------------------------- to rank


def align(ranker: "Ranker", queries: Any, scaled: bool = True) -> Queries:
    """Queries with their features in the fitted order, matched by name if both have names."""
    queries = apply_builder(ranker, queries, scaled=scaled).as_source(verbose=ranker.verbose)
    queries = fill_missing(ranker, queries)
    names = ranker._names()
    if names is not None and queries.feature_names is not None and names != queries.feature_names:
        queries = queries.select_features(names)
    check_width(ranker, queries.n_features)
    check_missing(ranker, queries)
    return cast(Queries, queries)


def score_queries(queries: Queries, ranker: "Ranker") -> Vector:
    """The scores of the documents."""
    return ranker._scores(align(ranker, queries).X)


def as_rows(ranker: "Ranker", X: Any) -> checks.Floats:
    """The rows of an array or a data frame with the features of the ranker; missing values are kept."""
    features = checks.as_features(order_columns(ranker, X), ranker.n_features_in_)
    check_width(ranker, features.shape[1])
    return features


def fill_rows(ranker: "Ranker", features: checks.Floats) -> checks.Floats:
    """Rows without their grouping, with missing values filled in by the policy of the ranker."""
    check_missing_policy(ranker)
    if ranker.missing == "min" and checks.first_not_finite(features) is not None:
        raise DataError("missing='min' takes the smallest value within a query: pass Queries, which hold the grouping")
    nowhere = np.zeros(1, dtype=np.int64)
    return checks.fill_missing(features, nowhere, None, ranker.missing, ranker._names())


def as_single_query(query: Query) -> Queries:
    """One query as a set of queries."""
    return Queries._trusted(query.X, query.y, np.array([0, len(query.X)]), feature_names=query.feature_names)


def order_columns(ranker: "Ranker", X: Any) -> Any:
    """A data frame with its columns in the fitted order, without other columns; arrays as they are."""
    names = ranker._names()
    if names is None or not hasattr(X, "columns"):
        return X
    columns = {str(column): column for column in X.columns}
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DataError(f"{ranker.name} was fitted on a feature {lacking[0]!r}, and this data frame has no such column")
    return X[[columns[name] for name in names]]


# -------------------------------------------------------------------------------------------------- raw tables


def apply_builder(
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
    X : Queries, Parts, Query, data frame, RawTable or array
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
    builder = ranker.record_.builder
    if builder is None or X is None:
        if isinstance(X, RawTable):
            raise DataError(f"{ranker.name} learned from features and not from a table: it has no FeatureBuilder")
        return X
    if isinstance(X, Query):
        X = as_single_query(X)
    if isinstance(X, Queries):
        X = _build_queries(ranker, X)
        return _scale(ranker, X) if scaled and X.built_by is not None else X
    if isinstance(X, RawTable) or hasattr(X, "columns") or hasattr(X, "column_names"):
        table = as_table(X)
        if _lacks(table.names, builder.columns_in_) and not _lacks(table.names, builder.feature_names_out_):
            return X
        one_query = one_query or not (grouped or builder.needs_queries)
        built = builder._transform(table, one_query=one_query, judged=judged)
        return _scale(ranker, built) if scaled else built
    if builder.needs_queries and not hasattr(X, "as_source"):
        names = [name for one in builder._treated if one.needs_queries for name in one.features]
        raise DataError(
            f"{ranker.name} has features that compare the documents of a query ({names[0]!r}): pass Queries, a table "
            f"with the column {builder.roles_['qid']!r}, or one Query, not an array"
        )
    return X


def _build_queries(ranker: "Ranker", queries: Queries) -> Queries:
    """Queries with the features of the builder."""
    builder: Any = ranker.record_.builder
    if queries.built_by is not None:
        if queries.built_by.digest_ != builder.digest_:
            raise DataError(
                f"these queries were made by another FeatureBuilder than those that {ranker.name} learned from: pass "
                "the raw table, or what its features_.transform makes of it"
            )
        return queries
    if queries.feature_names is None or not _lacks(queries.feature_names, builder.feature_names_out_):
        return queries
    return cast(Queries, builder._transform(queries))


def _scale(ranker: "Ranker", queries: Queries) -> Queries:
    """Queries scaled as the training queries were."""
    scaler = ranker.record_.scaler
    return queries if scaler is None or queries.scaling is not None else scaler.transform(queries)


def _lacks(names: Sequence[str], needed: Sequence[str]) -> bool:
    return not set(needed) <= set(names)


# -------------------------------------------------------------------------------------------------- missing values


def fill_missing(ranker: "Ranker", queries: Queries) -> Queries:
    """The queries without the NaN that a builder with ``missing="keep"`` leaves, by the policy of the ranker."""
    if queries.built_by is None or queries.built_by.missing != "keep" or ranker.keeps_missing:
        return queries
    return queries.fill_missing(ranker.missing)


def check_missing_policy(ranker: "Ranker") -> None:
    """Raise an error if missing values are to be kept and mean nothing to the ranker."""
    if ranker.missing == "keep" and not ranker.keeps_missing:
        raise RankwiseError(f"{ranker.name} gives no meaning to missing values: pass missing='zero' or missing='min'")


def check_missing(ranker: "Ranker", queries: Queries) -> None:
    """Raise an error if there are missing values that the ranker cannot take."""
    if not ranker.keeps_missing:
        queries.refuse_missing(ranker.name)


# -------------------------------------------------------------------------------------------------- other checks


def check_width(ranker: "Ranker", n_features: int) -> None:
    """Raise an error unless there are as many features as the ranker was fitted on."""
    if n_features != ranker.n_features_in_:
        raise DataError(f"{ranker.name} was fitted on {ranker.n_features_in_} features, got {n_features}")


def check_document_weights(ranker: "Ranker", queries: Queries) -> None:
    """Raise an error if there are document weights, even weights of 1, and the ranker takes none."""
    if queries.document_weight is not None and not ranker.takes_document_weights:
        raise DataError(
            f"{ranker.name} takes no document weights: {ranker._reason_no_document_weights}; leave out sample_weight= "
            "and document_weight=, or weight queries by weight="
        )


def check_runs_on_parts(ranker: "Ranker") -> None:
    """Raise an error unless ``fit`` takes parts."""
    if not ranker.runs_on_parts:
        raise DataError(
            f"{ranker.name} does not run on Parts: {ranker._reason_not_on_parts}; pass queries in memory, as "
            "parts[:10_000].to_queries() makes them"
        )


def refuse_unknown(function: str, unknown: Mapping[str, Any]) -> None:
    """Raise an error for unknown arguments; for ``sample_weight`` it names the alternative."""
    if "sample_weight" in unknown:
        raise DataError(
            f"{function} takes no sample_weight: in rounds, queries are weighted and documents are not; pass "
            "Queries.from_arrays(X, y, qid=..., weight=one number per query)"
        )
    for name in unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


# -------------------------------------------------------------------------------------------------- warnings


def warn_if_all_orders_are_alike(ranker: str, queries: Queries) -> None:
    """Warn if no query of non-zero weight holds two different labels."""
    differs = queries.labels_differ() & (queries.query_weight > 0)
    if not differs.any():
        weighted = "" if queries.weight is None else " and a weight above 0"
        warn(
            f"{ranker} has nothing to learn: no query holds documents with different labels{weighted}, so all "
            "orders of its documents are equally good",
            NothingLearnedWarning,
        )


def warn_of_document_order(ranker: Any, queries: Queries) -> None:
    """Warn if equal labels get different weights by their place in the input, and that place predicts a feature.

    Parameters
    ----------
    ranker : Ranker
        The ranker; those with a loss of their own return it from ``_loss``.
    queries : Queries
        The training queries; data sets in parts are not looked at.
    """
    loss = ranker._loss() if hasattr(ranker, "_loss") else getattr(ranker, "loss", None)
    if getattr(loss, "order_free", True) or getattr(loss, "noisy", False) or isinstance(queries, ChunkedQueries):
        return
    correlation, deviations = feature_order(queries, by_label=True)
    strength = np.where(deviations >= DEVIATIONS, abs(correlation), 0.0)
    if not strength.max(initial=0.0) >= PREDICTS:
        return
    column = int(np.argmax(strength))
    names = queries.feature_names or [f"number {number}" for number in range(queries.n_features)]
    symmetric = "symmetric=True" if hasattr(loss, "symmetric") else "weights that end in '_sym', the default"
    warn(
        f"{ranker.name} learns the order of the input: documents with equal labels get weights by their place in it, "
        f"and that place predicts feature {names[column]!s:.40} (rank correlation {correlation[column]:+.2f}); shuffle "
        f"the documents of each query, or use {symmetric}"
    )


def warn_of_shared_queries(ranker: str, seen: Seen, validation: Queries, n_jobs: int | None) -> None:
    """Warn if validation queries, by their content, are among the training queries.

    The training queries of rankers that this one starts from count; their validation queries do not.
    """
    shared = int(overlap(validation, seen.training, n_jobs=n_jobs).identified.sum())
    if shared:
        warn(
            f"{ranker}: {shared:,} of {len(validation):,} validation queries are among the training queries, so model "
            "selection favors overfitting: pass queries that are not used for training"
        )


def warn_of_uneven_features(ranker: str, queries: Queries, instead: str) -> None:
    """Warn if features vary on very different scales, and the ranker moves all weights by steps of one size.

    Parameters
    ----------
    ranker : str
        The name of the ranker.
    queries : Queries
        The training queries; data sets in parts and queries that a Scaler made are not looked at.
    instead : str
        What to do.
    """
    if isinstance(queries, ChunkedQueries) or queries.scaling is not None or queries.n_documents < _FEW_ROWS:
        return
    some = np.asarray(queries.X[:: -(-queries.n_documents // _LOOKED_AT)], dtype=np.float64)
    with np.errstate(all="ignore"):  # huge features are an error elsewhere
        deviation = some.std(axis=0)
    varies = np.flatnonzero((deviation > 0) & np.isfinite(deviation))
    if not len(varies):
        return
    low, high = (int(varies[place(deviation[varies])]) for place in (np.argmin, np.argmax))
    ratio = deviation[high] / deviation[low]
    if ratio > _UNEVEN:
        names = queries.feature_names or [f"number {number}" for number in range(queries.n_features)]
        warn(
            f"{ranker} learns little from features on different scales: the standard deviation of feature "
            f"{names[high]!s:.40} is {ratio:,.0f} times that of feature {names[low]!s:.40}; {instead}"
        )


def rank_by_scores(queries: Queries, scores: Vector, kept: Mask | None = None) -> Table:
    """The documents of every query by falling scores, ties in input order; those that are kept, if that is given."""
    owner = queries.query_of_row
    order = np.lexsort((np.arange(len(scores)), -scores, owner))
    place = np.arange(len(order)) - np.repeat(queries.start[:-1], queries.sizes) + 1
    if kept is not None:
        order, place = order[kept[order]], place[kept[order]]
    names = queries.names()
    rows: Any = order if queries.docid is None else list(queries.docid[order])
    qid = [names[number] for number in owner[order].tolist()]
    return Table({"qid": qid, "docid": rows, "rank": place, "score": scores[order]})


def rank_parts(ranker: "Ranker", parts: Parts, cutoff: "Cutoff | None" = None) -> Table:
    """The ranking of a data set in parts, whose rows are numbered through."""
    columns: dict[str, list[Any]] = {name: [] for name in ("qid", "docid", "rank", "score")}
    for first, last in parts.chunks():
        block = parts.block(first, last)
        block = block if block.qid is not None else block._replace(qid=np.arange(first, last))
        table = ranker.rank(block, cutoff=cutoff)
        before = int(parts.start[first]) if block.docid is None else 0
        for name, column in columns.items():
            column.extend((table[name] + before if before and name == "docid" else table[name]).tolist())
    return Table({**columns, "rank": np.array(columns["rank"], np.int64), "score": np.array(columns["score"], float)})
