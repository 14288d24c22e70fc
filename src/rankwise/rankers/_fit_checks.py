"""Checks of the data of a fit, and its warnings: nothing to learn, or validation queries among the training queries."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwise._errors import DataError, warn
from rankwise.data.fingerprints import Seen, fingerprints, telling
from rankwise.data.queries import Queries


class NothingLearnedWarning(UserWarning):
    """Nothing was learned: all documents get the same score, or all orders of the documents are equally good."""


def is_outermost_fit() -> bool:
    """Whether the calling ``fit`` is not inside another one; rankers fitted inside another ranker do not warn.

    The call stack is inspected because a flag could stay set after Ctrl-C.
    """
    own = sys._getframe(1)
    frame = own.f_back
    while frame is not None and frame.f_code is not own.f_code:
        frame = frame.f_back
    return frame is None


def refuse_unknown(function: str, unknown: Mapping[str, Any]) -> None:
    """Raise an error for unknown arguments; for ``sample_weight`` it names the alternative."""
    if "sample_weight" in unknown:
        raise DataError(
            f"{function} takes no sample_weight: in rounds, queries are weighted and documents are not; give "
            "Queries.from_arrays(X, y, qid=..., weight=one number per query)"
        )
    for name in unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def refuse_without_documents(ranker: str, queries: Queries) -> None:
    """Raise an error if there are no documents, or no features."""
    if not queries.n_documents:
        raise DataError(f"{ranker}.fit needs judged documents: found {len(queries):,} queries with none")
    if not queries.n_features:
        raise DataError(
            f"{ranker}.fit needs features: found 0 feature(s) (shape={queries.X.shape}) while a minimum of 1 is "
            "required."
        )


def warn_if_all_orders_are_alike(ranker: str, queries: Queries) -> None:
    """Warn if no query of non-zero weight holds two different labels."""
    labels, sizes = queries.labels(), queries.sizes
    in_order = queries.in_query_order(labels)
    first = np.repeat(in_order[np.minimum(queries.start[:-1], len(labels) - 1)], sizes)
    differs = in_order != first
    if queries.weight is not None:
        differs &= np.repeat(queries.weight > 0, sizes)
    if not differs.any():
        weighted = "" if queries.weight is None else " and a weight above 0"
        warn(
            f"{ranker} has nothing to learn: no query holds documents with different labels{weighted}, so that all "
            "orders of its documents are equally good",
            NothingLearnedWarning,
        )


def warn_of_shared_queries(ranker: str, seen: Seen, validation: Queries, n_jobs: int | None) -> None:
    """Warn if validation queries, by their fingerprints, are among the training queries.

    The training queries of rankers that this one starts from count; their validation queries do not.
    """
    chosen_by = fingerprints(validation, n_jobs=n_jobs)
    shared = int((np.isin(chosen_by["hash"], seen.training.marks["hash"]) & telling(chosen_by)).sum())
    if shared:
        warn(
            f"{ranker}: {shared:,} of {len(chosen_by):,} validation queries are among the training queries, so that "
            "model selection favours overfitting: give queries that are not used for training"
        )
