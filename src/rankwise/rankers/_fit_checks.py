"""What ``fit`` warns about: data from which nothing can be learned, and choices on queries that were learned from."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwise._errors import DataError, warn
from rankwise.data.fingerprints import Seen, fingerprints, telling
from rankwise.data.queries import Queries


class NothingLearnedWarning(UserWarning):
    """Nothing was learned: all documents get one score, or no order of them was better than another."""


def is_outermost_fit() -> bool:
    """Whether no other ``fit`` waits for the one that asks: what a ranker fits for itself tells the caller nothing.

    The stack is looked at, because a flag would stay set after a Ctrl-C at the wrong moment.
    """
    own = sys._getframe(1)
    frame = own.f_back
    while frame is not None and frame.f_code is not own.f_code:
        frame = frame.f_back
    return frame is None


def refuse_unknown(function: str, unknown: Mapping[str, Any]) -> None:
    """Arguments that other libraries take: weights of documents have no meaning here, and others are no arguments."""
    if "sample_weight" in unknown:
        raise DataError(
            f"{function} takes no sample_weight: queries are weighted, not documents; give "
            "Queries.from_arrays(X, y, qid=..., weight=one number a query)"
        )
    for name in unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def refuse_without_documents(ranker: str, queries: Queries) -> None:
    """Nothing can be learned from no documents, and no measure of it exists."""
    if not queries.n_documents:
        raise DataError(f"{ranker}.fit needs judged documents: found {len(queries):,} queries with none")


def warn_if_all_orders_are_alike(ranker: str, queries: Queries) -> None:
    """Warn where no query that counts holds two different labels: every order of its documents is as good."""
    labels, sizes = queries.labels(), queries.sizes
    in_order = queries.in_query_order(labels)
    first = np.repeat(in_order[np.minimum(queries.start[:-1], len(labels) - 1)], sizes)
    differs = in_order != first
    if queries.weight is not None:
        differs &= np.repeat(queries.weight > 0, sizes)
    if not differs.any():
        weighted = "" if queries.weight is None else " and a weight above 0"
        warn(
            f"{ranker} has nothing to learn: no query holds documents with different labels{weighted}, so that every "
            "order of its documents is as good as any other",
            NothingLearnedWarning,
        )


def warn_of_shared_queries(ranker: str, seen: Seen, validation: Queries, n_jobs: int | None) -> None:
    """Warn where validation queries, by their fingerprints, are learned from as well, or were by what this begins with.

    What ``seen`` says of validation is not used: it knows the choices of other rankers, too.
    """
    chosen_by = fingerprints(validation, n_jobs=n_jobs)
    shared = int((np.isin(chosen_by["hash"], seen.training.marks["hash"]) & telling(chosen_by)).sum())
    if shared:
        warn(
            f"{ranker}: {shared:,} of {len(chosen_by):,} validation queries are among the training queries, so that "
            "choices made by them favour what was learned by heart: give queries that were not learned from"
        )
