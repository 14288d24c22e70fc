"""A loss and its gradient over many lists, chunk by chunk on threads."""

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.losses._base import Loss, Vector


def loss_lists(
    loss: Loss,
    scores: Vector,
    labels: Vector,
    start: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    *,
    n_jobs: int | None = None,
) -> tuple[Vector, Vector]:
    """(value of every list, gradient of every score in input order); list q owns ``rows[start[q]:start[q+1]]``.

    Every list is computed for itself, so neither chunks nor threads change a bit.
    """
    from rankwise._kernels.jit import typed_function
    from rankwise.losses._driver import FORMULA, loss_range

    formula = typed_function(type(loss).formula, FORMULA)
    longest = int(np.diff(start).max(initial=0))
    no_rows = np.empty(0, dtype=np.int64) if rows is None else rows
    row_values, table = loss.row_values(labels), np.ascontiguousarray(loss.table(longest))
    knobs = np.array(loss.knobs(), dtype=np.float64)
    values, gradient = np.zeros(len(start) - 1), np.zeros(len(scores))

    def work(first: int, last: int) -> None:
        loss_range(formula, first, last, start, no_rows, scores, labels, row_values, table, knobs, values, gradient)

    drive.run(work, list(drive.query_chunks(start)), n_jobs)
    return values, gradient
