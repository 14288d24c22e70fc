"""A list as an online ranker with a feedback depth shows it, to be returned with the labels of its first documents."""

from dataclasses import dataclass, replace
from hashlib import sha256
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Mask, Numbers, Vector
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.solvers.online.top_k_rounds import IN_TOP, RECORDED, UNSEEN, draw_ranking

# Depth and probability of exploration, before one byte per document.
_HEADER = Struct("<Id")


@dataclass(frozen=True, eq=False)
class ShownList(ShownAsFacts):
    """The documents of one query in the order in which they are shown, and which of them could have been seen.

    Made by :meth:`rankwise.OnlineRanker.show`; ``partial_fit`` takes it once it is :meth:`labeled`, also later, after
    other lists: what the estimate needs of the moment at which the list was shown is kept here.

    Attributes
    ----------
    X : array of shape (n_documents, n_features)
        The features, in the order of the input.
    order : ndarray of int64, shape (n_documents,)
        The rows in the order in which they are shown.
    top : ndarray of bool, shape (n_documents,)
        Whether a row was among the first ``depth`` by its score when the list was shown.
    depth : int
        How many of the documents shown first have labels.
    explore : float
        The probability with which these documents were drawn at random.
    y : ndarray of shape (n_documents,), or None
        The labels, NaN for the documents that are not seen; None before :meth:`labeled`.
    round : int or None
        The round whose random draw the list has, which has to be the one that learns from it; None if it has a name.
    """

    X: Any
    order: Numbers
    top: Mask
    depth: int
    explore: float
    y: Vector | None = None
    round: int | None = None

    @property
    def seen(self) -> Numbers:
        """The rows whose labels are seen, in the order in which they are shown."""
        return self.order[: self.depth]

    def labeled(self, labels: ArrayLike) -> "ShownList":
        """The list with the labels of the documents that are seen.

        Parameters
        ----------
        labels : array-like of shape (min(depth, n_documents),)
            The labels of the rows :attr:`seen`, in that order.

        Returns
        -------
        ShownList
            A copy with labels.
        """
        y = np.full(len(self.order), np.nan)
        y[self.seen] = checks.as_labels(labels, len(self.seen))
        return replace(self, y=y)

    def record(self) -> bytes:
        """What has to be kept besides the order until the labels come."""
        return _HEADER.pack(self.depth, self.explore) + self.top.tobytes()

    @classmethod
    def of_record(cls, X: Any, place: Array, record: bytes | None) -> "ShownList":
        """The list that was shown.

        Parameters
        ----------
        X : array of shape (n_documents, n_features)
            The features.
        place : ndarray of int, shape (n_documents,)
            The position of every row.
        record : bytes or None
            What :meth:`record` returned.

        Returns
        -------
        ShownList
            The list, without labels.

        Raises
        ------
        DataError
            If the record is not that of a list of this length.
        """
        if record is None or len(record) != _HEADER.size + len(place):
            raise DataError(
                "a list must have been shown by the ranker that learns from its first labels, got no record"
            )
        top = np.frombuffer(record, np.uint8, offset=_HEADER.size).astype(bool)
        return cls(X, np.argsort(place, kind="stable"), top, *_HEADER.unpack_from(record))

    def flags(self) -> Numbers:
        """What the rounds have to know of each document."""
        if self.y is None:
            raise DataError("a shown list must have the labels of its first documents, got none: call labeled(labels)")
        known = ~np.isnan(self.y)
        if not known.sum() == self.top.sum() == min(self.depth, len(self.order)) or not known[self.seen].all():
            raise DataError(f"a shown list must have labels for its first {self.depth} documents and no others")
        return np.asarray(RECORDED + UNSEEN * ~known + IN_TOP * self.top, dtype=np.int64)


def show_list(X: Any, scores: Vector, depth: int, explore: float, key: int, draw: int | str) -> ShownList:
    """The documents in the order in which they are shown.

    Parameters
    ----------
    X : array of shape (n_documents, n_features)
        The features.
    scores : ndarray of shape (n_documents,)
        The scores to rank by.
    depth : int
        How many labels will be seen.
    explore : float
        The probability that the documents shown first are drawn at random.
    key : int
        What decides that, with ``draw``.
    draw : int or str
        The number of the round, or the name of the list.

    Returns
    -------
    ShownList
        The list.
    """
    size = len(scores)
    by_score, shown, top = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size, np.bool_)
    # the draw of a list with a name is that of the name, in any round
    number = draw if isinstance(draw, int) else int.from_bytes(sha256(draw.encode()).digest()[:8], "big")
    draw_ranking(np.ascontiguousarray(scores), depth, explore, np.uint64(key), np.uint64(number), by_score, shown)
    top[by_score[:depth]] = True
    return ShownList(X, shown, top, depth, explore, round=draw if isinstance(draw, int) else None)


def is_live(item: Any) -> bool:
    """Whether an item of a stream has labels of some documents alone."""
    if isinstance(item, ShownList):
        return True
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        return False
    try:
        return bool(np.isnan(np.asarray(item[1], dtype=np.float64)).any())
    except (TypeError, ValueError):  # what is wrong with it is said where labels are checked
        return False


def pair_and_flags(item: Any) -> tuple[tuple[Any, Vector], Numbers]:
    """(X, labels with 0 for unseen documents) of a live item, and its flags."""
    if isinstance(item, ShownList):
        flags = item.flags()
        return (item.X, np.nan_to_num(np.asarray(item.y))), flags
    y = checks.as_vector(item[1], len(item[0]), "y")
    return (item[0], np.where(np.isnan(y), 0.0, y)), np.where(np.isnan(y), UNSEEN, 0).astype(np.int64)
