"""PyTerrier's data frames: results (qid, docno, score, features) and judgments (qid, docno, label).

:func:`from_pyterrier` makes queries to learn from. To measure results, :func:`rankwise.io.from_trec` takes the same two
frames in place of files.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise._parameters import validated
from rankwise.errors import DataError, in_one_line
from rankwise.io.tables.frames import open_frame
from rankwise.io.trec import as_qrels, by_query, with_judgments
from rankwise.queries.checks import Missing
from rankwise.queries.queries import Queries

logger = logging.getLogger(__name__)


@validated
def from_pyterrier(
    results: Any, qrels: Any = None, *, feature_names: Sequence[str] | None = None, missing: Missing = "error"
) -> Queries:
    """Queries to learn from, of what a PyTerrier pipeline with features returns.

    The rows keep their order. A document that ``qrels`` does not hold has label 0, as in PyTerrier's own ``fit``, and
    is marked as not judged. A judged document that was not retrieved has no features and is left out; ``logging``
    counts these.

    Parameters
    ----------
    results : data frame
        One row per retrieved document with the columns qid, docno and features, an array of numbers.
    qrels : data frame, default=None
        Judgments with the columns qid, docno and label; None for queries without labels.
    feature_names : sequence of str, default=None
        One name per feature.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with NaN and infinity, as in :meth:`rankwise.Queries.from_arrays`.

    Returns
    -------
    queries : Queries
        The queries, with document ids.

    Raises
    ------
    DataError
        If a column is missing, or rows have different numbers of features.

    Examples
    --------
    >>> import pandas as pd
    >>> found = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "features": [[0.5, 2.0], [0.1, 3.0]]})
    >>> from_pyterrier(found, pd.DataFrame({"qid": ["1"], "docno": ["b"], "label": [2]}))
    Queries(1 query, 2 documents, 2 features, labels 0 to 2)
    """
    table = open_frame(results)
    for name in ("qid", "docno", "features"):
        if name not in table.columns:
            raise DataError(f"results must have a column {name!r}, got {', '.join(map(repr, table.columns)):.200}")
    qid, docid = ([str(value) for value in table[name].to_list()] for name in ("qid", "docno"))
    queries = Queries.from_arrays(
        _matrix(table["features"].to_list()), qid=qid, docid=docid, feature_names=feature_names, missing=missing
    )
    if qrels is None:
        return queries
    judgments = as_qrels(qrels)
    labels = by_query(judgments.qid, judgments.docid, judgments.label)
    found = [labels.get(query, {}).get(document) for query, document in zip(qid, docid, strict=True)]
    if lost := len(judgments) - sum(label is not None for label in found):
        logger.warning("%d of %d judged documents were not retrieved, left out", lost, len(judgments))
    return with_judgments(queries, found)


def _matrix(rows: list[Any]) -> Any:
    """The arrays of all rows, one below the other."""
    lengths = {len(row) if hasattr(row, "__len__") else -1 for row in rows}
    if len(lengths) > 1 or -1 in lengths:
        raise DataError("features must hold arrays of one length, got different lengths")
    try:
        return np.array([np.asarray(row, dtype=np.float64) for row in rows]).reshape(len(rows), *lengths)
    except (TypeError, ValueError) as error:
        raise DataError(f"features must hold arrays of numbers: {in_one_line(error)}") from error
