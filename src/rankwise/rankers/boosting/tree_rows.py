"""The rows that symmetric trees are grown on: what a tree asks of them level by level, and the sums that they answer.

A tree asks three times: for the largest derivatives, which set the scale of their integers; at every level for sums by
leaf and bin, where the split of the level before is applied first; and at the end for the sums of the leaves. Answers
are integers, or maxima: those of several ranges of rows are added, in any order. :class:`TreeRows` holds all rows of a
model in memory, or a range of them; :class:`~rankwise.rankers.boosting.parted_rows.PartedRows` asks ranges by passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import histograms, parallel
from rankwise.rankers.boosting.objectives import Derivatives

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]

# (group, lane, shift, limit) of a split, as the kernels compare bins.
Comparison = tuple[int, int, int, int]

# The deepest tree whose leaves have numbers of a byte.
_BYTE_DEEP = 8
# What the hash of a row is made of, and its size.
_STEP, _WORDS = 0x9E3779B97F4A7C15, 1 << 64


class RowBlocks(NamedTuple):
    """Blocks of rows.

    Attributes
    ----------
    words : ndarray of uint32, shape (n_blocks, n_groups, block)
        Their bins.
    first, last : int
        The rows: first..last-1.
    steepness, bend : ndarray of int64, shape (n_blocks,)
        Memory for the sums of the sizes of both derivatives in every block.
    """

    words: NDArray[np.uint32]
    first: int
    last: int
    steepness: Wholes
    bend: Wholes

    @classmethod
    def of(cls, words: NDArray[np.uint32], first: int, last: int) -> "RowBlocks":
        """Blocks that begin at a row."""
        return cls(words, first, last, np.zeros(len(words), np.int64), np.zeros(len(words), np.int64))

    @property
    def rows(self) -> slice:
        """The rows."""
        return slice(self.first, self.last)


class TreeLevel(NamedTuple):
    """What is asked at a level of a tree.

    Attributes
    ----------
    key : int
        What the draw of rows is a function of.
    scale : tuple of float
        The factors by which first and second derivatives are rounded to integers.
    asked : tuple of Comparison
        The splits of the levels before.
    side : ndarray of uint8
        For every leaf of the level before which of its children is counted.
    groups : ndarray of int64
        The groups of features whose bins are counted.
    """

    key: int
    scale: tuple[float, float]
    asked: tuple[Comparison, ...]
    side: NDArray[np.uint8]
    groups: Wholes


class ModelRows(Protocol):
    """The rows of a model, wherever they are.

    Attributes
    ----------
    n_learned : int
        Number of rows that are learned from; known after the first question.
    """

    @property
    def n_learned(self) -> int:
        """Number of rows that are learned from."""

    def largest(self, iteration: int) -> tuple[float, float, int]:
        """(largest first derivative in size, largest second one, rows with a curvature) before tree ``iteration``."""

    def count(self, level: TreeLevel) -> tuple[int, Wholes, Wholes]:
        """(sum of the integers of second derivatives, at level 0; sums of both by group, leaf and bin)."""

    def close(self, level: TreeLevel) -> Wholes:
        """Sums of both derivatives and number of rows by leaf, after the last split."""

    def add(self, asked: Sequence[Comparison], value: Vector) -> None:
        """Add the tree with these splits and leaf values, the last that was grown, to the scores."""

    def scores(self, rows: Wholes | None = None) -> Vector:
        """The scores of these rows; None for all."""


class RowMemory(NamedTuple):
    """What a tree under way notes for every row; the models of a fit grow in turn, and share it.

    Attributes
    ----------
    packed : ndarray of int64
        Both derivatives.
    leaf : ndarray of uint8 or uint16
        The leaf.
    kept : ndarray of uint8
        1 for the rows that splits are found on.
    """

    packed: Wholes
    leaf: NDArray[Any]
    kept: NDArray[np.uint8]

    @classmethod
    def of(cls, count: int, depth: int, empty: Callable[[int, Any], Any] = np.empty) -> "RowMemory":
        """For so many rows and levels."""
        leaf = np.uint8 if depth <= _BYTE_DEEP else np.uint16
        return cls(empty(count, np.int64), empty(count, leaf), empty(count, np.uint8))


# Running sums, and the two that they are emptied into, of one thread.
Sums = tuple[Wholes, Wholes, Wholes]


def sums_of(groups: int, leaves: int) -> Sums:
    """Sums of nothing by group, leaf and bin."""
    shape = groups, leaves * histograms.WIDTH
    return np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)


@dataclass
class TreeRows:
    """Rows of a model in memory: all of them, or a range.

    Attributes
    ----------
    shares : sequence of sequence of RowBlocks
        The rows, by thread.
    derivatives : Derivatives
        The loss and its queries.
    learned : ndarray of uint8, shape (n_documents,)
        1 for the rows that are learned from.
    score : ndarray of shape (n_documents,)
        The scores.
    memory : RowMemory
        Memory for a tree.
    row_fraction : float
        The share of rows that splits are found on.
    offset : int
        The number of the first row among all.
    n_jobs : int or None
        Number of threads of the loss.
    sums : sequence of Sums, or None
        Memory for sums of every thread, which hold zeros; None makes it at every level.
    slopes : tuple of ndarray, or None
        The derivatives, between their largest and their rounding.
    """

    shares: Sequence[Sequence[RowBlocks]]
    derivatives: Derivatives
    learned: NDArray[np.uint8]
    score: Vector
    memory: RowMemory
    row_fraction: float
    offset: int = 0
    n_jobs: int | None = 1
    sums: Sequence[Sums] | None = None
    slopes: tuple[Vector, Vector] | None = field(default=None, repr=False)

    @property
    def n_learned(self) -> int:
        """Number of rows that are learned from."""
        return int(np.count_nonzero(self.learned))

    def largest(self, iteration: int) -> tuple[float, float, int]:
        """See :class:`ModelRows`; NaN if a derivative is."""
        self.derivatives = self.derivatives.before_tree(self.score, iteration, self.n_jobs)
        self.slopes = self.derivatives.at(self.score, iteration, self.n_jobs)
        found = self._run(lambda _, piece: histograms.largest(*self._slopes, piece.first, piece.last))
        steepest, most, counts = zip(*found, strict=True)
        return float(np.max(steepest)), float(np.max(most)), sum(counts)

    def count(self, level: TreeLevel) -> tuple[int, Wholes, Wholes]:
        """See :class:`ModelRows`."""
        depth, memory, groups = len(level.asked), self.memory, len(level.groups)
        bend = 0 if depth else self.pack(level)
        leaves = max(1 << depth >> 1, 1)
        every = self.sums or [sums_of(groups, leaves) for _ in self.shares]
        sums = [tuple(one[:groups] for one in own) for own in every]
        asked = level.asked[-1] if depth else (0, 0, 0, 0)

        def add(share: int, piece: RowBlocks) -> None:
            own = tuple(one[piece.rows] for one in (memory.kept, memory.leaf, memory.packed))
            sizes = piece.steepness, piece.bend
            blocks = len(piece.words)
            histograms.add_level(
                piece.words, 0, blocks, depth, asked, level.side, *own, *sizes, level.groups, *sums[share]
            )

        self._run(add)
        _, *counted = sums[0]
        for _, *others in sums[1:]:
            for whole, part in zip(counted, others, strict=True):
                whole[:, : leaves * histograms.WIDTH] += part[:, : leaves * histograms.WIDTH]
                part[:, : leaves * histograms.WIDTH] = 0
        return bend, counted[0], counted[1]

    def close(self, level: TreeLevel) -> Wholes:
        """See :class:`ModelRows`."""
        depth, memory = len(level.asked), self.memory
        sums = np.zeros((len(self.shares), 3, 1 << depth), np.int64)

        def close(share: int, piece: RowBlocks) -> None:
            own = tuple(one[piece.rows] for one in (self.learned, memory.leaf, memory.packed))
            histograms.close_leaves(piece.words, 0, len(piece.words), depth, level.asked[-1], *own, *sums[share])

        self._run(close)
        return np.asarray(sums.sum(axis=0))

    def add(self, asked: Sequence[Comparison], value: Vector) -> None:
        """See :class:`ModelRows`."""
        if asked:
            leaf, score = self.memory.leaf, self.score
            self._run(lambda _, piece: histograms.add_leaf_values(leaf, value, piece.first, piece.last, score))

    def scores(self, rows: Wholes | None = None) -> Vector:
        """See :class:`ModelRows`."""
        return self.score.copy() if rows is None else self.score[rows]

    @property
    def _slopes(self) -> tuple[Vector, Vector]:
        assert self.slopes is not None
        return self.slopes

    def pack(self, level: TreeLevel) -> int:
        """Round the derivatives and draw rows; returns the sum of the integers of the second derivatives."""
        memory, slopes = self.memory, self._slopes
        memory.leaf[:] = 0
        start = np.uint64((level.key + self.offset * _STEP) % _WORDS)
        limit = np.uint64(round(self.row_fraction * 2**32))

        def pack(_: int, piece: RowBlocks) -> int:
            own = tuple(one[piece.rows] for one in slopes)
            sizes = piece.steepness, piece.bend
            blocks, size = len(piece.words), piece.words.shape[2]
            histograms.pack(*own, *level.scale, size, 0, blocks, memory.packed[piece.rows], *sizes)
            histograms.sample_rows(self.learned, start, limit, piece.first, piece.last, memory.kept)
            return int(piece.bend.sum())

        self.slopes = None
        return sum(self._run(pack))

    def _run(self, work: Callable[[int, RowBlocks], Any]) -> list[Any]:
        """``work(number of the thread, piece)`` for every piece, in order."""

        def share(number: int) -> list[Any]:
            return [work(number, piece) for piece in self.shares[number]]

        count = len(self.shares)
        return [one for own in parallel.map_chunks(share, [(number,) for number in range(count)], count) for one in own]
