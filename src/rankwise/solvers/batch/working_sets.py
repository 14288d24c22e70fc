r"""Working sets: for every query some perfect and some imperfect orders, and the hinge between them.

.. math:: F(w) = \sum_q \frac{c_q}{\lvert B_q\rvert} \sum_{b \in B_q,\, c \in C_q}
    (E^*_q - E(c))\, [1 - w \cdot (\Phi_b - \Phi_c)]_+

The hinge [1 - x]_+ may be replaced by exp(-x) or log2(1 + exp(-x)), which need O(B C) per query in place of the
logarithms below. Beyond -x = 16 the exponential is continued by its tangent, so that values stay finite wherever they
are asked for. This is still convex, and at least 1 for x <= 0.

An order is one vector Phi, so a value with its gradient costs O((B + C)(d + log(B + C))) per query, whatever its
length, and X is not read. Sets only grow; an order that is in its set already is not added.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]
OrderForm = Literal["hinge", "exp", "logistic"]

# Orders per chunk.
_CHUNK = 1 << 13
# Arrays with one entry or row per order.
_PER_ORDER = ("_vectors", "_missed", "_list", "_is_imperfect")


class WorkingSets:
    """Perfect and imperfect orders of queries, as vectors.

    Parameters
    ----------
    weight : ndarray, shape (n_queries,)
        The weights c_q.
    features : int
        Length of a vector.
    largest : bool, default=False
        Whether a query counts the largest hinge between two of its orders, in place of the mean over B_q and the sum
        over C_q.
    form : {"hinge", "exp", "logistic"}, default="hinge"
        The function of the difference.

    Attributes
    ----------
    perfect, imperfect : ndarray of int64, shape (n_queries,)
        Number of orders of either kind per query.
    """

    def __init__(self, weight: Vector, features: int, largest: bool = False, form: OrderForm = "hinge") -> None:
        count = len(weight)
        self.weight = weight
        self.largest = largest
        self.form: OrderForm = form
        self.perfect: Numbers = np.zeros(count, dtype=np.int64)
        self.imperfect: Numbers = np.zeros(count, dtype=np.int64)
        self._known: tuple[set[tuple[int, bytes]], set[tuple[int, bytes]]] = (set(), set())
        self._n = 0
        self._vectors = np.empty((64, features))
        self._missed = np.empty(64)
        self._list = np.empty(64, dtype=np.int64)
        self._is_imperfect = np.empty(64, dtype=bool)
        self._arrange()

    def take_new(self, imperfect: bool, lists: Sequence[int], names: Sequence[bytes]) -> list[int]:
        """Which orders are new; they count as known from now on.

        Parameters
        ----------
        imperfect : bool
            The kind of the orders.
        lists : sequence of int
            Their queries.
        names : sequence of bytes
            Their documents, as bytes.

        Returns
        -------
        list of int
            The places of the new ones.
        """
        known, fresh = self._known[imperfect], []
        for place, order in enumerate(zip(lists, names, strict=True)):
            if order not in known:
                known.add(order)
                fresh.append(place)
        return fresh

    def add(self, imperfect: bool, lists: Numbers, vectors: Vector, missed: Vector) -> None:
        """Add orders of one kind, of different queries.

        Parameters
        ----------
        imperfect : bool
            The kind of the orders.
        lists : ndarray of int64, shape (n,)
            Their queries.
        vectors : ndarray, shape (n, n_features)
            Their vectors Phi.
        missed : ndarray, shape (n,)
            E* - E of each; 0 for a perfect order.
        """
        first, last = self._n, self._n + len(lists)
        self._reserve(last)
        self._vectors[first:last], self._missed[first:last] = vectors, missed
        self._list[first:last], self._is_imperfect[first:last] = lists, imperfect
        (self.imperfect if imperfect else self.perfect)[lists] += 1
        self._n = last
        self._arrange()

    def __len__(self) -> int:
        return self._n

    def __call__(self, w: Vector, n_jobs: int | None = None) -> tuple[float, Vector]:
        """(F(w), a subgradient); the bits do not depend on the number of threads."""
        from rankwise._kernels.orders import EXP, LOGISTIC, hinge_of_sets

        weights, features = np.ascontiguousarray(w), self._vectors.shape[1]
        form = {"hinge": 0, "exp": EXP, "logistic": LOGISTIC}[self.form]

        def part(first: int, last: int) -> tuple[float, Vector]:
            slope = np.zeros(features)
            given = (self._vectors, self._start, self._middle, self.weight, self._missed, self.largest, form)
            return hinge_of_sets(first, last, *given, weights, slope), slope

        total, slope = 0.0, np.zeros(features)
        for value, gradient in parallel.map_chunks(part, self._chunks, n_jobs):
            total += value
            slope += gradient
        return total, slope

    def _arrange(self) -> None:
        """Sort the orders by query, perfect ones first: a value reads them in this order, some hundred times."""
        place = np.lexsort((self._is_imperfect[: self._n], self._list[: self._n]))
        for name in _PER_ORDER:
            array = getattr(self, name)
            array[: self._n] = array[place]
        self._start = np.concatenate([[0], np.cumsum(self.perfect + self.imperfect)])
        self._middle = self._start[:-1] + self.perfect
        self._chunks = list(parallel.query_chunks(self._start, _CHUNK))

    def _reserve(self, needed: int) -> None:
        """Make the buffers large enough, by doubling."""
        buffer = len(self._missed)
        if needed <= buffer:
            return
        larger = max(needed, 2 * buffer)
        for name in _PER_ORDER:
            old = getattr(self, name)
            grown = np.empty((larger, *old.shape[1:]), dtype=old.dtype)
            grown[: self._n] = old[: self._n]
            setattr(self, name, grown)
