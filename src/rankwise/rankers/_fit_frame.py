"""Checks of the data and parameters of a fit, with their errors and warnings."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, NothingLearnedWarning, warn
from rankwise.queries.fingerprints import Seen
from rankwise.queries.overlap import overlap
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries

Vector = NDArray[np.float64]

# Standard deviations that differ by more than this factor are uneven: a rare indicator beside a standardized number
# differs by 10. Deviations of few rows say nothing, and those of many rows are estimated from some.
_UNEVEN = 30.0
_FEW_ROWS, _LOOKED_AT = 100, 20_000

# -------------------------------------------------------------------------------------------------- checks of the data


def refuse_unknown(function: str, unknown: Mapping[str, Any]) -> None:
    """Raise an error for unknown arguments; for ``sample_weight`` it names the alternative."""
    if "sample_weight" in unknown:
        raise DataError(
            f"{function} takes no sample_weight: in rounds, queries are weighted and documents are not; give "
            "Queries.from_arrays(X, y, qid=..., weight=one number per query)"
        )
    for name in unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


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
