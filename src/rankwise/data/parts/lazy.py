"""The features of a data set in parts as something that is indexed by rows, as an array is."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankwise.data.parts.parts import Parts


class LazyRows:
    """The features of a data set in parts, read when rows are asked for: ``X[rows]`` is an array in memory.

    Parameters
    ----------
    parts : Parts
        The data set.
    """

    ndim = 2

    def __init__(self, parts: "Parts") -> None:
        self._parts = parts
        self.shape = (parts.n_documents, parts.n_features)
        self.dtype = parts.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Rows by slice, number, mask or numbers; a second index selects features of these."""
        if isinstance(key, tuple):
            return np.asarray(self[key[0]][:, key[1]] if not np.isscalar(key[0]) else self[key[0]][key[1]])
        if isinstance(key, (int, np.integer)):
            return np.asarray(self[np.array([key])][0])
        if isinstance(key, slice) and key.step in (None, 1):
            first, last, _ = key.indices(len(self))
            return self._range(first, max(first, last))
        return self._gathered(np.arange(len(self))[key])

    def _range(self, first: int, last: int) -> NDArray[Any]:
        """Consecutive rows."""
        start = self._parts.start
        query = max(0, int(np.searchsorted(start, first, side="right")) - 1)
        end = min(len(start) - 1, max(query, int(np.searchsorted(start, last, side="left"))))
        begin = int(start[query])
        return np.asarray(self._parts.block(query, end).X[first - begin : last - begin])

    def _gathered(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows in any order, read chunk by chunk."""
        start, found = self._parts.start, np.empty((len(rows), self.shape[1]), self.dtype)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        for first, last in self._parts.chunks():
            own = slice(*np.searchsorted(ordered, [start[first], start[last]]))
            if own.stop > own.start:
                found[order[own]] = self._parts.block(first, last).X[ordered[own] - start[first]]
        return found
