"""Labels that carry the grouping of their rows through scikit-learn.

scikit-learn slices ``y`` wherever it slices ``X``, and hands it to ``fit`` and to ``score``. Other arguments reach
``score`` only where metadata routing is enabled. :func:`labels` makes a ``y`` that remembers which row belongs to
which query. :class:`Labels` also remembers how many documents each query had, so a split which cuts queries in
two raises an error instead of giving a wrong score.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.errors import DataError
from rankwise.queries import checks, grouping


class Labels(np.ndarray):
    """Labels of documents, each with the id of its query; made by :func:`labels`.

    Indexing, slicing, ``take``, ``astype``, copies and pickles keep the grouping. Every other operation, such as
    arithmetic or concatenation, returns labels without it.

    Attributes
    ----------
    qid : ndarray of shape (n_documents,), or None
        The query id of each row; None where an operation has lost the grouping.
    """

    _qid: NDArray[Any] | None = None  # views that NumPy makes by itself have these
    _whole: NDArray[np.int64] | None = None

    @classmethod
    def _of(cls, values: NDArray[Any], qid: NDArray[Any] | None, whole: NDArray[np.int64] | None) -> "Labels":
        """Labels of checked parts; ``whole`` is the number of documents of each row's query."""
        made = values.view(cls)
        made._qid, made._whole = qid, whole
        return made

    @property
    def qid(self) -> NDArray[Any] | None:
        """The query id of each row; None where an operation has lost the grouping."""
        return self._qid

    def whole_queries(self) -> NDArray[Any]:
        """The query id of each row, if every query has all of its documents.

        Returns
        -------
        qid : ndarray of shape (n_documents,)
            The ids.

        Raises
        ------
        DataError
            If an operation has lost the grouping, or queries were cut.
        """
        if self._qid is None or self._whole is None:
            raise DataError(
                "these labels have lost the grouping of rows, which only indexing and copies keep: call labels(y, "
                "qid=...) after all other operations"
            )
        code, first = grouping.number_by_appearance(self._qid)
        found = np.bincount(code, minlength=len(first))
        expected = self._whole[first]
        if (found != expected).any():
            query = int(np.argmax(found != expected))
            name = self._qid[first[query] : first[query] + 1].tolist()[0]
            raise DataError(
                f"query {name!r} has {found[query]:,} of its {expected[query]:,} documents here: a split has "
                "cut queries: split by query, for example with cv=GroupKFold() and groups=y.qid"
            )
        return self._qid

    # ------------------------------------------------------------------------------------------- keeps the grouping

    def _each(self, function: Any) -> Any:
        """The function of the labels; with their grouping where the result is one-dimensional."""
        found = function(np.asarray(self))
        if self._qid is None or not isinstance(found, np.ndarray) or found.ndim != 1:
            return found
        return Labels._of(found, function(self._qid), function(self._whole))

    def __getitem__(self, key: Any) -> Any:
        key = tuple(map(_plain, key)) if isinstance(key, tuple) else _plain(key)
        return self._each(lambda values: values[key])

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """The labels at these places, with their grouping; see :meth:`numpy.ndarray.take`."""
        if out is not None:
            return np.asarray(self).take(indices, axis, _plain(out), mode)
        return self._each(lambda values: values.take(indices, axis, mode=mode))

    def copy(self, order: Any = "C") -> "Labels":
        """A copy with the grouping; see :meth:`numpy.ndarray.copy`."""
        return Labels._of(np.asarray(self).copy(order), self._qid, self._whole)

    def __copy__(self) -> "Labels":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "Labels":
        return self.copy()

    def astype(self, *args: Any, **kwargs: Any) -> "Labels":
        """The labels as another type, with the grouping; see :meth:`numpy.ndarray.astype`."""
        return Labels._of(np.asarray(self).astype(*args, **kwargs), self._qid, self._whole)

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels._of, (np.asarray(self), self._qid, self._whole)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    # ------------------------------------------------------------------------------------------- loses the grouping

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is not np.take:
            args = tuple(map(_plain, args))
            kwargs = {name: _plain(one) for name, one in kwargs.items()}
        return super().__array_function__(func, types, args, kwargs)


def labels(y: Any, *, qid: ArrayLike | Sequence[Any] | None = None, group: ArrayLike | None = None) -> Labels:
    """Labels that remember the grouping of their rows, for pipelines and searches of scikit-learn.

    Every ranker's ``fit`` and ``score`` takes the grouping from such a ``y``. It needs no metadata routing.

    Parameters
    ----------
    y : array-like of shape (n_documents,), or Queries
        The labels, 0 or more; those of Queries bring their own grouping.
    qid : sequence of hashable, length n_documents, default=None
        One id per row, in any order. Give either ``qid`` or ``group``.
    group : array-like of int, shape (n_queries,), default=None
        The sizes of consecutive queries, which are numbered from 0.

    Returns
    -------
    labels : Labels
        An array of float64 with the attribute ``qid``.

    Raises
    ------
    DataError
        If the grouping is not given exactly once, or a label is negative or not finite.

    Examples
    --------
    >>> y = labels([2, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> y[2:].qid.tolist()
    ['b', 'b']
    >>> (y + 1).tolist()
    [3.0, 1.0, 2.0, 1.0]
    """
    from rankwise.queries.queries import Queries

    if isinstance(y, Queries):
        if qid is not None or group is not None:
            raise DataError("Queries hold their own grouping: leave out group= and qid=")
        owner = y.query_of_row
        return Labels._of(y.labels().copy(), owner if y.qid is None else y.qid[owner], y.sizes[owner])
    if (qid is None) == (group is None):
        found = "neither" if qid is None else "both"
        raise DataError(f"pass either qid= (one id per row) or group= (query sizes); got {found}")
    values = checks.as_floats(y, "y must hold one number per row")
    values = checks.as_labels(values, len(values) if values.ndim else 0).copy()
    if qid is not None:
        ids = grouping.as_ids(qid, "qid")
        if len(ids) != len(values):
            raise DataError(f"qid must hold one id per row, got {len(ids):,} ids for {len(values):,} rows")
        code, _ = grouping.number_by_appearance(ids)
        sizes = np.bincount(code)
    else:
        start = grouping.by_size(group, len(values)).start  # type: ignore[arg-type]
        sizes = start[1:] - start[:-1]
        ids = code = np.repeat(np.arange(len(sizes)), sizes)
    return Labels._of(values, ids, sizes[code].astype(np.int64))


def _plain(value: Any) -> Any:
    """The value, or the items of a list, as plain arrays where they are labels."""
    if isinstance(value, Labels):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(one, Labels) for one in value):
        return type(value)(map(_plain, value))
    return value
