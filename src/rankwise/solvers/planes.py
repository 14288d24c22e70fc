"""`Planes`: planes that lie below a convex function, with their Gram matrix."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Planes:
    r"""Planes below a convex function F of z: F(z) >= offset_i + slope_i'z for every i.

    The products slope_i'slope_j are kept and grow by one row a plane, in O(planes x dimensions).

    Parameters
    ----------
    dimensions : of z

    Attributes
    ----------
    slope : planes x dimensions
    offset : one a plane
    gram : slope slope'
    idle : for how many rounds each plane has not been needed
    """

    def __init__(self, dimensions: int) -> None:
        self._n = 0
        self._slope = np.empty((16, dimensions))
        self._offset = np.empty(16)
        self._gram = np.empty((16, 16))
        self._idle = np.zeros(16, dtype=np.int64)

    def __len__(self) -> int:
        return self._n

    @property
    def slope(self) -> Matrix:
        return self._slope[: self._n]

    @property
    def offset(self) -> Vector:
        return self._offset[: self._n]

    @property
    def gram(self) -> Matrix:
        return self._gram[: self._n, : self._n]

    @property
    def idle(self) -> NDArray[np.int64]:
        return self._idle[: self._n]

    def add(self, slope: Vector, offset: float) -> None:
        """One more plane."""
        if self._n == len(self._offset):
            self._move_to(np.arange(self._n), room=2 * self._n)
        n = self._n
        self._slope[n], self._offset[n], self._idle[n] = slope, offset, 0
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = self._slope[: n + 1] @ slope
        self._n = n + 1  # last, so that a plane that was broken off is not there

    def height(self, z: Vector) -> float:
        """The highest plane at z, which F is not below; -inf without planes."""
        return float((self.offset + self.slope @ z).max(initial=-np.inf))

    def note_use(self, alpha: Vector) -> None:
        """Planes whose weight is next to nothing were idle for one round more, the others no longer."""
        needed = alpha > 1e-9 * alpha.max()
        self._idle[: self._n] = np.where(needed, 0, self.idle + 1)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Forget all but the chosen planes."""
        if not chosen.all():
            self._move_to(np.flatnonzero(chosen), room=len(self._offset))

    def _move_to(self, places: NDArray[np.int64], room: int) -> None:
        """The planes at these places alone, in arrays with this much room."""
        n = len(places)
        slope, offset, gram = np.empty((room, self._slope.shape[1])), np.empty(room), np.empty((room, room))
        idle = np.zeros(room, dtype=np.int64)
        slope[:n], offset[:n], idle[:n] = self._slope[places], self._offset[places], self._idle[places]
        gram[:n, :n] = self._gram[np.ix_(places, places)]
        self._n, self._slope, self._offset, self._gram, self._idle = n, slope, offset, gram, idle
