"""The form in which trees of any shape are scored by comparisons of bytes."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.bins import MOST_CUTS, padded
from rankwise._kernels.tree_scores import CATEGORIES, NUMBERS, ZERO_IS_MISSING, ByteTrees
from rankwise._kernels.trees import LEAVES
from rankwise.rankers.boosting.tree_checks import MISSING_ZERO

if TYPE_CHECKING:
    from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

Wholes = NDArray[np.int64]

# Bins of categories, beside the one for what is no category of a column.
_MOST_CLASSES = 255


@dataclass
class _Columns:
    """Columns under construction, and the comparisons of the nodes with them."""

    trees: "TreeEnsemble"
    feature: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    cuts: list[NDArray[np.float64]] = field(default_factory=list)
    classes: list[NDArray[np.uint8]] = field(default_factory=list)
    right: list[NDArray[np.uint8]] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.trees.feature)
        self.column, self.shift, self.limit = (np.zeros(count, np.int64) for _ in range(3))
        self.set_start = np.full(count, -1)  # of nodes with a set that is no single bin
        self.n_right = 0

    def _add(self, feature: int, kind: int, cuts: Any = (), classes: Any = ()) -> int:
        """A new column."""
        self.feature.append(feature)
        self.kind.append(kind)
        self.cuts.append(padded(np.asarray(cuts, np.float64)) if kind != CATEGORIES else np.empty(0))
        self.classes.append(np.asarray(classes, np.uint8))
        return len(self.feature) - 1

    def compare_numbers(self, feature: int, kind: int, own: Wholes) -> None:
        """Nodes that compare a feature with thresholds, in the order of the trees.

        A column holds the first thresholds that come, and the next one those that come then: more than bytes can count
        are found in the trees one after the other.
        """
        cuts, first, at = np.unique(self.trees.threshold[own], return_index=True, return_inverse=True)
        part = np.empty(len(cuts), np.int64)
        part[np.argsort(first)] = np.arange(len(cuts)) // MOST_CUTS
        nan_right = ~self.trees.nan_left[own]
        for number in range(part.max() + 1):
            inside, nodes = part == number, part[at] == number
            place = np.cumsum(inside) - 1
            # the bin of a value is 1 + the thresholds below it: above threshold k is a bin above k + 1
            self.column[own[nodes]] = self._add(feature, kind, cuts[inside])
            self.shift[own[nodes]] = nan_right[nodes]
            self.limit[own[nodes]] = place[at[nodes]] + 1 - nan_right[nodes]

    def compare_categories(self, feature: int, own: Wholes) -> None:
        """Nodes that ask whether the category of a feature is in a set, in the order of the trees."""
        nodes_of: dict[tuple[bytes, bool], list[int]] = {}
        for node, nan_left in zip(own.tolist(), self.trees.nan_left[own].tolist(), strict=True):
            words = self.trees.words[self.trees.word_start[node] : self.trees.word_start[node + 1]]
            nodes_of.setdefault((words.tobytes().rstrip(b"\0"), nan_left), []).append(node)
        codes = [_places(*one) for one in nodes_of]
        every = np.unique(np.concatenate(codes))
        sets: list[tuple[list[int], NDArray[np.bool_]]] = []
        label = np.zeros(len(every), np.int64)
        for nodes, code in zip(nodes_of.values(), codes, strict=True):
            member = np.isin(every, code, assume_unique=True)
            found, finer = np.unique(2 * label + member, return_inverse=True)
            if len(found) > _MOST_CLASSES:
                self._close(feature, every, label, sets)
                sets, finer = [], member.astype(np.int64)
            label = finer
            sets.append((nodes, member))
        self._close(feature, every, label, sets)

    def _close(
        self, feature: int, every: Wholes, label: Wholes, sets: list[tuple[list[int], NDArray[np.bool_]]]
    ) -> None:
        """A column whose bins are 1 + the labels of the categories, for nodes with these sets."""
        classes = np.zeros(every[-1] + 1 if len(every) else 1, np.uint8)
        classes[every] = label + 1
        column = self._add(feature, CATEGORIES, classes=classes)
        for nodes, member in sets:
            right = np.ones(label.max(initial=-1) + 2, np.uint8)
            right[label[member] + 1] = 0
            self.column[nodes] = column
            left = np.flatnonzero(right == 0)
            if len(left) == 1:  # all bins but one go right
                self.shift[nodes], self.limit[nodes] = left[0], 0
                continue
            self.set_start[nodes] = self.n_right
            self.right.append(right)
            self.n_right += len(right)

    def form(self, place: NDArray[np.uint8], then: NDArray[np.uint8]) -> ByteTrees:
        """What the kernel takes."""
        has_set = np.flatnonzero(self.set_start >= 0)
        set_column = self.column[has_set]
        first_set = np.searchsorted(has_set, self.trees.start)
        tree = np.searchsorted(self.trees.start, has_set, side="right") - 1
        self.column[has_set] = len(self.feature) + np.arange(len(has_set)) - first_set[tree]
        form = ByteTrees(
            feature=np.array(self.feature, np.int64),
            kind=np.array(self.kind, np.uint8),
            first_cut=_starts(self.cuts),
            cut=np.concatenate([*self.cuts, np.empty(0)]),
            first_class=_starts(self.classes),
            class_of=np.concatenate([*self.classes, np.empty(0, np.uint8)]),
            column=self.column.astype(np.uint32),
            shift=(self.shift + 128).astype(np.uint8),
            limit=(self.limit - 128).astype(np.int8),
            place=place,
            then=then,
            first_set=first_set.astype(np.int64),
            set_column=set_column,
            set_start=self.set_start[has_set],
            right=np.concatenate([*self.right, np.empty(0, np.uint8)]),
        )
        for array in form:
            array.setflags(write=False)
        return form


def byte_form(trees: "TreeEnsemble", place: Wholes, then: Wholes) -> ByteTrees:
    """Trees of any shape as the kernel takes them; those of more than 255 leaves have no part in it.

    Parameters
    ----------
    trees : TreeEnsemble
        The trees.
    place, then : ndarray of int64
        For every node the place of its first leaf from the left, and that of its right child's.

    Returns
    -------
    ByteTrees
        The form.
    """
    columns = _Columns(trees)
    sizes = np.diff(trees.start)
    compared = np.repeat(sizes < LEAVES, sizes)
    zero = np.where(trees.missing == MISSING_ZERO, ZERO_IS_MISSING, NUMBERS)
    key = 3 * trees.feature + np.where(trees.categorical, CATEGORIES, zero)
    nodes = np.flatnonzero(compared)
    nodes = nodes[np.argsort(key[nodes], kind="stable")]
    for own in np.split(nodes, np.flatnonzero(np.diff(key[nodes])) + 1) if len(nodes) else []:
        feature, kind = divmod(int(key[own[0]]), 3)
        if kind == CATEGORIES:
            columns.compare_categories(feature, own)
        else:
            columns.compare_numbers(feature, kind, own)
    return columns.form(place.astype(np.uint8), then.astype(np.uint8))


def _places(words: bytes, nan_left: bool) -> Wholes:
    """The places of a set's categories among the classes of a column, which begin with that of NaN."""
    inside = np.unpackbits(np.frombuffer(words, np.uint8), bitorder="little")
    return np.flatnonzero(np.append(np.uint8(nan_left), inside))


def _starts(arrays: list[Any]) -> Wholes:
    """Where each array begins when they stand one after the other."""
    return np.cumsum([0, *map(len, arrays)], dtype=np.int64)
