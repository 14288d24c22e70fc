"""Document weights: a document of weight k counts in a loss as k copies of it would, and one of weight 0 not at all."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError
from rankwise.data.checks import WEIGHTS, as_vector, usual_weights

if TYPE_CHECKING:
    from rankwise.data.queries import Queries


def as_document_weights(weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Document weights as float64: one per row, 0 or of a usual size, not all zero."""
    weights = as_vector(weight, n_rows, "document_weight")
    usual = usual_weights(weights)
    if not usual.all():
        row = int(np.argmin(usual))
        raise DataError(f"document_weight is {weights[row]} at row {row:,}: {WEIGHTS}")
    if n_rows and not weights.any():
        raise DataError("document_weight is zero at every row: at least one document must count")
    return weights


def differing_weights(queries: "Queries") -> NDArray[np.float64] | None:
    """The document weights, or None if there are none or all of them are 1, which is the same to the last bit."""
    weight = queries.document_weight
    return None if weight is None or (weight == 1.0).all() else weight


def recorded_weights(queries: "Queries") -> NDArray[np.float64] | None:
    """What the record of a fit keeps of the weights: the query weights, and a digest of any document weights.

    A digest stands in place of the query's weight, as the bits of a float64; the record looks at bits alone.
    """
    weight = differing_weights(queries)
    if weight is None:
        return queries.weight
    digests = np.empty(len(queries), dtype=np.uint64)
    for query in range(len(queries)):
        own = np.append(weight[queries.rows_of(query)], queries.query_weight[query])
        digests[query] = int.from_bytes(hashlib.blake2b(own.tobytes(), digest_size=8).digest(), "little")
    return digests.view(np.float64)
