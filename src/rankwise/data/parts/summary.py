"""What a manifest says about the values of a data set: labels, ranges and exact sums of every feature.

Sums are exact sums of the values (and of their squares, each of which is rounded to float64; those of float32 are
exact), rounded once. So they depend neither on the order of the rows nor on the cut into blocks and parts.

Columns are summed by error-free extraction. With sigma a power of two, at least 2 n times the largest of n numbers x,
q = (sigma + x) - sigma is x rounded to a multiple of ulp(sigma) / 2, x - q is computed without error, and all partial
sums of the q are multiples of the same unit below 2^53 of them: exact in any order. What is left is smaller by
2^53 / 4n, and is extracted again until nothing is left.

References
----------
S. M. Rump, T. Ogita and S. Oishi (2008). Accurate floating-point summation part I: faithful rounding. SIAM Journal on
Scientific Computing 31(1), 189-224. doi:10.1137/050645671
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.data.checks import Floats
from rankwise.data.queries import Queries

Matrix = NDArray[np.float64]

# More different labels than this are not counted one by one.
_MOST_LABELS = 1000
# Values of a strip of rows, which stay in the cache while they are extracted.
_STRIP = 1 << 16
# Rows of pending sums that are reduced together.
_PENDING = 512


class ExactSums:
    """Exact sums of the columns of matrices.

    Parameters
    ----------
    n_columns : int
        The number of columns.

    Examples
    --------
    >>> sums = ExactSums(1)
    >>> sums.add(np.array([[1e200], [1.0], [-1e200]]))
    >>> sums.rounded()
    [1.0]
    """

    def __init__(self, n_columns: int) -> None:
        self._pending: list[Matrix] = []
        self._rows, self._n_columns = 0, n_columns

    def add(self, values: Matrix) -> None:
        """Add the rows of a matrix.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows, n_columns)
            The values; columns with one that is not finite have no sum from now on.
        """
        for strip in _strips(values):
            self._keep(_extracted(strip))

    def _keep(self, sums: Matrix) -> None:
        """Keep rows with the same exact sum; many of them are reduced to few."""
        self._pending.append(sums)
        self._rows += len(sums)
        if self._rows > _PENDING:
            reduced = _extracted(np.concatenate(self._pending))
            self._pending, self._rows = [reduced], len(reduced)

    def rounded(self) -> list[float | None]:
        """The sums, rounded once; None where a column held a value that is not finite, or where a sum overflows.

        Returns
        -------
        sums : list of float or None
            One per column.
        """
        pending = np.concatenate(self._pending) if self._pending else np.zeros((0, self._n_columns))
        return [_fsum(column) for column in pending.T]


def _fsum(values: Matrix) -> float | None:
    """The exact sum, rounded once, or None."""
    if not np.isfinite(values).all():
        return None
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return None


def _extracted(values: Matrix) -> Matrix:
    """Few rows whose exact column sums are those of the values."""
    count = len(values)
    scale = 2.0 ** (2 + math.ceil(math.log2(max(2, count))))
    found = []
    rest = np.array(values)
    largest = np.abs(rest).max(axis=0, initial=0.0)
    # beyond 2^900 sigma may overflow: such columns have no sum
    fine = largest < 2.0**900
    rest[:, ~fine] = 0.0
    if not fine.all():
        found.append(np.where(fine, 0.0, np.inf)[np.newaxis])
    while largest[fine].any():
        largest[~fine] = 0.0
        # a power of two; below the normal numbers addition is exact, and nothing is left after one extraction
        sigma = np.ldexp(scale, np.frexp(largest)[1])
        high = rest + sigma
        high -= sigma
        rest -= high
        found.append(high.sum(axis=0)[np.newaxis])
        largest = np.abs(rest).max(axis=0, initial=0.0)
    return np.concatenate(found) if found else np.zeros((0, values.shape[1]))


def _strips(values: Matrix) -> Iterator[Matrix]:
    """Some rows at a time."""
    step = max(64, _STRIP // max(1, values.shape[1]))
    return (values[first : first + step] for first in range(0, len(values), step))


class Summary:
    """What is collected of all blocks: ``facts`` of the manifest.

    Parameters
    ----------
    n_features : int
        The number of features.
    """

    def __init__(self, n_features: int) -> None:
        self._labels: dict[float, int] | None = {}
        self._least, self._most = np.full(n_features, np.inf), np.full(n_features, -np.inf)
        self._missing = np.zeros(n_features, np.int64)
        self._sum, self._squares = ExactSums(n_features), ExactSums(n_features)
        self._labelled = False

    def add(self, block: Queries) -> None:
        """Count a block."""
        if block.y is not None:
            self._labelled = True
            self._count(block.y)
        for rows in _strips(block.X):  # type: ignore[arg-type]
            self._add_rows(rows)

    def _count(self, y: NDArray[np.float64]) -> None:
        """Count the labels, while there are not too many different ones."""
        if self._labels is None:
            return
        for label, count in zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True):
            self._labels[label] = self._labels.get(label, 0) + count
        if len(self._labels) > _MOST_LABELS:
            self._labels = None

    def _add_rows(self, X: Floats) -> None:
        """Add some rows to ranges and sums; missing values, which rankers may give a meaning to, are counted."""
        values = X.astype(np.float64)
        missing = np.isnan(values)
        if missing.any():
            self._missing += missing.sum(axis=0)
            np.minimum(self._least, np.where(missing, np.inf, values).min(axis=0, initial=np.inf), out=self._least)
            np.maximum(self._most, np.where(missing, -np.inf, values).max(axis=0, initial=-np.inf), out=self._most)
            values[missing] = 0.0
        else:
            np.minimum(self._least, values.min(axis=0, initial=np.inf), out=self._least)
            np.maximum(self._most, values.max(axis=0, initial=-np.inf), out=self._most)
        self._sum.add(values)
        with np.errstate(over="ignore", under="ignore"):
            self._squares.add(values * values)

    def facts(self) -> dict[str, Any]:
        """The facts, as JSON can hold them.

        Returns
        -------
        facts : dict
            ``labels``: (label, count) pairs, None where there are no labels or too many different ones; ``min``,
            ``max``, ``sum``, ``sum_of_squares`` and ``missing``: one number per feature, None where there is none.
        """
        labels = sorted(self._labels.items()) if self._labelled and self._labels is not None else None
        return {
            "labels": None if labels is None else [list(pair) for pair in labels],
            "min": _numbers(self._least),
            "max": _numbers(self._most),
            "sum": self._sum.rounded(),
            "sum_of_squares": self._squares.rounded(),
            "missing": self._missing.tolist(),
        }


def _numbers(values: Matrix) -> list[float | None]:
    """Numbers for JSON, which knows no infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
