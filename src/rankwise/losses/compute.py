"""A loss and its gradient over many lists, chunk by chunk on threads."""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels import drive
from rankwise.losses._base import Loss, Rows, Vector


@dataclass(frozen=True)
class PreparedLists:
    """Lists with everything that a loss can work out before it sees scores; list q owns rows[start[q]:start[q+1]]."""

    loss: Loss
    label: Vector
    value: Vector
    start: Rows
    rows: Rows | None
    table: Vector

    @classmethod
    def of(cls, loss: Loss, labels: Vector, start: Rows, rows: Rows | None = None) -> "PreparedLists":
        """Prepare the lists for a loss; rows None: they stand together, list after list."""
        longest = int(np.diff(start).max(initial=0))
        label, value = loss.prepare(labels, start, rows)
        return cls(loss, label, value, start, rows, np.ascontiguousarray(loss.table(longest)))


def loss_lists(lists: PreparedLists, scores: Vector, *, n_jobs: int | None = None) -> tuple[Vector, Vector]:
    """(value of every list, gradient with respect to every score in input order).

    Every list is computed for itself, so neither chunks nor threads change a bit.
    """
    from rankwise._kernels.jit import typed_function
    from rankwise.losses._driver import FORMULA, loss_range

    formula = typed_function(type(lists.loss).formula, FORMULA)
    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    knobs = np.array(lists.loss.knobs(), dtype=np.float64)
    values, gradient = np.zeros(len(lists.start) - 1), np.zeros(len(scores))

    def work(first: int, last: int) -> None:
        loss_range(
            formula,
            first,
            last,
            lists.start,
            rows,
            scores,
            lists.label,
            lists.value,
            lists.table,
            knobs,
            values,
            gradient,
        )

    drive.run(work, list(drive.query_chunks(lists.start)), n_jobs)
    return values, gradient
