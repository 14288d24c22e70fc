r"""Upper bounds on a mean loss where it is not known which queries of a hold-out are independent draws.

Queries with the same content are copies of one draw, or several draws of a query that is frequent; and queries whose
content was seen in training are the training rows themselves, or further draws. Data cannot tell which. A *reading*
says which queries are draws:

- of a group of queries with the same content, at least one is a draw, and any number of the others;
- of a group whose content was seen in training, any number, and possibly none;
- of a group in which some query does not count, any number of those that do, and possibly none: the draw may be the
  query that does not count.

Each bound here is the largest over all readings, mixtures included. It therefore holds under the reading that is true.

*Which readings matter.* Let the bound grow with every loss, and otherwise depend on the number N of draws alone. Among
the readings with N draws, take one with the largest bound. From every group of the first kind it may be assumed to hold
the query with the largest loss: if it does not, exchange one of its queries for that one. The other draws may be
assumed to be the largest of all other losses. So the largest bound is found among the readings that take the largest
loss of every group of the first kind (the ``sure`` losses), and of all other losses (the ``optional`` ones) the
largest, next to largest and so on, up to any number.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.guarantees.holdout.betting import lower_end_of_readings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Readings:
    """The losses of a hold-out, divided by what is known about them.

    Attributes
    ----------
    sure : ndarray
        The losses of queries that are draws under the readings that matter.
    optional : ndarray
        The losses of queries of which any number may be draws, in falling order.
    """

    sure: Floats
    optional: Floats

    @classmethod
    def of(
        cls, losses: ArrayLike, group: NDArray[np.int64] | None = None, seen: NDArray[np.bool_] | None = None
    ) -> "Readings":
        """Divide losses by group.

        Parameters
        ----------
        losses : array-like, shape (n_queries,)
            Losses; NaN where a query does not count.
        group : ndarray of int64, shape (n_queries,), default=None
            Numbers of :func:`rankwise.queries.overlap.same_content`: queries of one group have the same content. None
            means that all queries are distinct.
        seen : ndarray of bool, shape (n_queries,), default=None
            Whether the content of each query was seen in training.

        Returns
        -------
        Readings
            The losses that count.

        Examples
        --------
        >>> Readings.of([0.1, 0.4, 0.2, float("nan")], np.array([0, 0, 1, 2]))
        Readings(sure=array([0.4, 0.2]), optional=array([0.1]))
        """
        values = np.asarray(losses, dtype=np.float64)
        group = np.arange(len(values)) if group is None else group
        aside = np.isnan(values) if seen is None else np.isnan(values) | seen
        counted = np.flatnonzero(~np.isin(group, group[aside]))
        order = counted[np.lexsort((counted, -values[counted], group[counted]))]
        sure = np.sort(order[np.unique(group[order], return_index=True)[1]])
        rest = np.setdiff1d(np.flatnonzero(~np.isnan(values)), sure)
        return cls(values[sure], np.sort(values[rest])[::-1])

    @property
    def largest_mean(self) -> float:
        """The largest mean loss of all readings; NaN if no query is sure to be a draw."""
        if not len(self.sure):
            return math.nan
        return float(self._means.max())

    @property
    def _means(self) -> Floats:
        """The mean of the sure losses, and of those with 1, 2, ... of the optional ones."""
        sums = math.fsum(self.sure.tolist()) + np.concatenate([[0.0], np.cumsum(self.optional)])
        return np.asarray(sums / np.arange(len(self.sure), len(self.sure) + len(self.optional) + 1))

    def hoeffding(self, delta: float) -> float:
        """The largest of Hoeffding's upper ends: mean + sqrt(log(1/delta)/(2 N)), of losses in [0, 1]."""
        N = np.arange(len(self.sure), len(self.sure) + len(self.optional) + 1)
        return min(1.0, float((self._means + np.sqrt(math.log(1 / delta) / (2 * N))).max()))

    def betting(self, delta: float) -> float:
        """The largest upper end by bets whose sizes are fixed, see :func:`lower_end_of_readings`."""
        return 1.0 - lower_end_of_readings(1 - self.sure, 1 - self.optional, delta)
