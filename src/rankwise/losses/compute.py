"""A loss and its gradient over many lists, chunk by chunk on threads."""

from dataclasses import dataclass

import numpy as np
from numba import types

from rankwise._kernels import drive
from rankwise._kernels.jit import compiled, kernel
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

    kernel = typed_function(type(lists.loss).kernel, KERNEL)
    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    params = np.array(lists.loss.params(), dtype=np.float64)
    values, gradient = np.zeros(len(lists.start) - 1), np.zeros(len(scores))

    def work(first: int, last: int) -> None:
        loss_range(
            kernel,
            first,
            last,
            lists.start,
            rows,
            scores,
            lists.label,
            lists.value,
            lists.table,
            params,
            values,
            gradient,
        )

    drive.run(work, list(drive.query_chunks(lists.start)), n_jobs)
    return values, gradient


# ------------------------------------------------------------------------------------------------------------- driver
# The one compiled loop over lists that runs any loss's formula.


_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)

# score, label, value, grad, table, params
KERNEL = types.float64(_floats_in, _floats_in, _floats_in, _floats, _floats_in, _floats_in)


@kernel
def _loss_lists(kernel, first, last, start, rows, score, label, value, table, params, out, gradient):
    """Values into ``out``, the gradient into ``gradient``, which holds zeros; no ``rows``: lists stand together."""
    if len(rows) == 0:
        for q in range(first, last):
            own = slice(start[q], start[q + 1])
            if start[q] < start[q + 1]:
                out[q] = kernel(score[own], label[own], value[own], gradient[own], table, params)
        return
    for q in range(first, last):
        mine = rows[start[q] : start[q + 1]]
        if len(mine) > 0:
            part = np.zeros(len(mine))
            out[q] = kernel(score[mine], label[mine], value[mine], part, table, params)
            gradient[mine] = part


loss_range = compiled(
    _loss_lists,
    types.void(
        types.FunctionType(KERNEL),
        types.int64,
        types.int64,
        _ints_in,
        _ints_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats,
        _floats,
    ),
)
