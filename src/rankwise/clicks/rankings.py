"""Where a ranking puts the candidates: scores to ranks, and the discounts of ranks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.queries.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def discounts(k: int) -> Floats:
    """1/log2(1 + j) by rank j = 1 ... k; index 0 (not on the page) and k + 1 (beyond the cut-off) are 0.

    Parameters
    ----------
    k : int
        The cut-off.

    Returns
    -------
    ndarray, shape (k + 2,)
        The discounts.
    """
    table = np.zeros(k + 2)
    table[1 : k + 1] = 1 / np.log2(np.arange(2, k + 2))
    return table


def scores_of(ranker: Any, documents: Queries, function: str) -> Floats:
    """Scores of candidates: from a fitted ranker, an array, or lists of document ids by query id.

    Parameters
    ----------
    ranker : object with predict, array of shape (n_documents,), or mapping of query id to document ids
        What ranks. A mapping lists documents best first; those that it leaves out are ranked last.
    documents : Queries
        The candidates.
    function : str
        The caller, for error messages.

    Returns
    -------
    ndarray, shape (n_documents,)
        Scores; a higher one is ranked first.
    """
    if isinstance(ranker, Mapping):
        return _scores_of_lists(ranker, documents, function)
    found = ranker.predict(documents) if hasattr(ranker, "predict") else ranker
    try:
        scores = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{function}: the ranker must be fitted, scores of the candidates or lists of ids, got "
            f"{type(ranker).__name__}"
        ) from None
    if scores.shape != (documents.n_documents,):
        raise DataError(
            f"{function}: scores must have one value for each of {documents.n_documents:,} candidates, got "
            f"shape {scores.shape}"
        )
    if np.isnan(scores).any():
        raise DataError(f"{function}: scores must not be NaN, got one at row {int(np.argmax(np.isnan(scores))):,}")
    return scores


def _scores_of_lists(lists: Mapping[Any, Any], documents: Queries, function: str) -> Floats:
    if documents.docid is None:
        raise DataError(f"{function}: lists of document ids require candidates with docid")
    by_name = {str(name): order for name, order in lists.items()}
    rank: dict[tuple[str, str], int] = {}
    names = [str(name) for name in documents.names()]
    for name in names:
        if name not in by_name:
            raise DataError(f"{function}: the ranking has no query {name!r:.40}")
        for place, document in enumerate(by_name[name]):
            rank.setdefault((name, str(document)), place)
    owner = documents.query_of_row.tolist()
    found = [-float(rank.get((names[q], str(d)), np.inf)) for q, d in zip(owner, list(documents.docid), strict=True)]
    return np.array(found)


def ranks_of(documents: Queries, scores: Floats) -> Ints:
    """The rank of every document in its query, from 1; ties in the order of the input, as ``Ranker.rank`` has them.

    Parameters
    ----------
    documents : Queries
        The candidates.
    scores : ndarray, shape (n_documents,)
        Their scores.

    Returns
    -------
    ndarray of int64, shape (n_documents,)
        Ranks, in the order of the input.
    """
    owner = documents.query_of_row
    order = np.lexsort((np.arange(len(scores)), -scores, owner))
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(documents.start[:-1], documents.sizes) + 1
    return ranks
