"""Scores of sums of trees of any shape, by comparisons of bytes.

A tile of rows is brought into columns of bins, a byte per row (:mod:`rankwise._kernels.bins`). The leaves of a tree are
numbered from left to right, and a row starts at leaf 0. The nodes of a tree are asked one after the other, parents
before their children, all rows at once: a row that stands at the first leaf of a node and goes right there moves on to
the first leaf of its right child. A row stands at the first leaf of a node if and only if it came to the node: its last
move before took it there, or to the other child of the node where it went another way. In the end it stands at its
leaf. The comparison of :mod:`rankwise._kernels.histograms`, uint8(bin - shift) > limit, holds for the bins that go
right.

A node is five operations on 32 rows. QuickScorer's masks of leaves that are out of reach take eight bytes where the
number of a leaf takes one, and its search for the lowest bit falls away.

Leaves are added in the order of the trees, beginning with 0: the bits of a score depend on its row alone.

References
----------
C. Lucchese, F. M. Nardini, S. Orlando, R. Perego, N. Tonellotto, R. Venturini (2016). Exploiting CPU SIMD extensions to
speed-up document scoring with tree ensembles. SIGIR 2016. doi:10.1145/2911451.2914758
T. Ye, H. Zhou, W. Y. Zou, B. Gao, R. Zhang (2018). RapidScorer: fast tree ensemble evaluation by maximizing compactness
in data level parallelization. KDD 2018. doi:10.1145/3219819.3219857
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from rankwise._kernels.bins import find_bins
from rankwise._kernels.bits import intrinsic
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel
from rankwise._kernels.trees import BYTES_IN, LEAVES, NODES, ZERO, walk

# The kinds of columns: numbers, numbers whose zeros count as missing, categories.
NUMBERS, ZERO_IS_MISSING, CATEGORIES = 0, 1, 2
# Rows of a register of AVX2 (two of NEON), of which a tile has whole ones, and of a tile: the leaves of so many stay in
# registers from node to node.
_WIDTH, TILE = 32, 128


class ByteTrees(NamedTuple):
    """Trees for comparisons of bytes; arrays are read-only.

    Attributes
    ----------
    feature : ndarray of int64, shape (n_columns,)
        The feature that a column is made of.
    kind : ndarray of uint8, shape (n_columns,)
        :data:`NUMBERS`, :data:`ZERO_IS_MISSING` or :data:`CATEGORIES`.
    first_cut : ndarray of int64, shape (n_columns + 1,)
        The thresholds of a column are ``cut[first_cut[n]:first_cut[n + 1]]``.
    cut : ndarray of float64
        Thresholds, as :func:`~rankwise._kernels.bins.find_bins` takes them.
    first_class : ndarray of int64, shape (n_columns + 1,)
        NaN has the bin ``class_of[first_class[n]]`` of a column, category c the one 1 + c places behind it; what is no
        category there has bin 0.
    class_of : ndarray of uint8
        The bins of categories: a bin holds those that go the same way at all nodes of the column.
    column : ndarray of uint32, shape (n_nodes,)
        The column that a node compares; beyond the last one are those that hold 1 for rows that go right.
    shift : ndarray of uint8, shape (n_nodes,)
        The shift + 128, with which bytes are compared as signed ones.
    limit : ndarray of int8, shape (n_nodes,)
        The limit - 128.
    place, then : ndarray of uint8, shape (n_nodes,)
        The first leaf of a node, and that of its right child.
    first_set : ndarray of int64, shape (n_trees + 1,)
        The sets of categories of tree t are first_set[t] .. first_set[t + 1]-1, with a column beyond the last for each.
    set_column : ndarray of int64, shape (n_sets,)
        The column of bins.
    set_start : ndarray of int64, shape (n_sets,)
        Bin b goes right if ``right[set_start[s] + b]`` is 1.
    right : ndarray of uint8
        1 for the bins that go right.
    """

    feature: NDArray[np.int64]
    kind: NDArray[np.uint8]
    first_cut: NDArray[np.int64]
    cut: NDArray[np.float64]
    first_class: NDArray[np.int64]
    class_of: NDArray[np.uint8]
    column: NDArray[np.uint32]
    shift: NDArray[np.uint8]
    limit: NDArray[np.int8]
    place: NDArray[np.uint8]
    then: NDArray[np.uint8]
    first_set: NDArray[np.int64]
    set_column: NDArray[np.int64]
    set_start: NDArray[np.int64]
    right: NDArray[np.uint8]


_WORDS_IN, _SIGNED_IN = (types.Array(kind, 1, "C", readonly=True) for kind in (types.uint32, types.int8))
_TREES = types.NamedTuple(
    (
        INTS_IN, BYTES_IN, INTS_IN, FLOATS_IN, INTS_IN, BYTES_IN, _WORDS_IN, BYTES_IN, _SIGNED_IN, BYTES_IN, BYTES_IN,
        INTS_IN, INTS_IN, INTS_IN, BYTES_IN,
    ),
    ByteTrees,
)  # fmt: skip


def _asking(rows: int) -> Any:
    """``ask(first, last, column, shift, limit, place, then, bins, row, leaf)``: the leaves of so many rows.

    Nodes first..last-1 are those of a tree. LLVM makes as many registers of a vector as a processor needs. It would not
    keep the leaves of a loop over rows in registers while the nodes change, and would begin each such loop with a test
    whether its arrays overlap: requests of 10 to 100 documents would take 1.5 times as long.
    """

    @intrinsic
    def ask(context, first, last, column, shift, limit, place, then, bins, row, leaf):
        byte, whole, index = ir.IntType(8), ir.IntType(64), ir.IntType(32)
        vector = ir.VectorType(byte, rows)
        names = ("first", "last", "column", "shift", "limit", "place", "then", "bins", "row", "leaf")
        arrays = ("column", "shift", "limit", "place", "then", "bins", "leaf")

        def generate(context, builder, signature, arguments):
            kinds = dict(zip(names, signature.args, strict=True))
            given = dict(zip(names, arguments, strict=True))
            data = {name: context.make_array(kinds[name])(context, builder, given[name]) for name in arrays}
            stride = builder.extract_value(data["bins"].shape, 1)
            byte_arrays = [name for name in arrays if name != "column"]
            bytes_of = {name: builder.bitcast(data[name].data, byte.as_pointer()) for name in byte_arrays}

            def rows_at(pointer, place):
                return builder.bitcast(builder.gep(pointer, [place]), vector.as_pointer())

            def of_node(name):
                one = builder.load(builder.gep(bytes_of[name], [node]))
                first_of = builder.insert_element(ir.Constant(vector, ir.Undefined), one, index(0))
                everywhere = ir.Constant(ir.VectorType(index, rows), None)
                return builder.shuffle_vector(first_of, ir.Constant(vector, ir.Undefined), everywhere)

            before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
            start = ir.Constant(vector, None)
            builder.cbranch(builder.icmp_signed("<", given["first"], given["last"]), loop, after)
            builder.position_at_end(loop)
            node, stands = builder.phi(whole), builder.phi(vector)
            node.add_incoming(given["first"], before)
            stands.add_incoming(start, before)
            own = builder.zext(builder.load(builder.gep(data["column"].data, [node])), whole)
            own = builder.add(builder.mul(own, stride), given["row"])
            value = builder.sub(builder.load(rows_at(bytes_of["bins"], own), align=1), of_node("shift"))
            left = builder.sext(builder.icmp_signed("<=", value, of_node("limit")), vector)
            # a row that goes left compares its leaf with 255, which is none: what depends on the leaf is the shorter
            moves = builder.icmp_unsigned("==", stands, builder.or_(left, of_node("place")))
            moved = builder.select(moves, of_node("then"), stands)
            following = builder.add(node, whole(1))
            node.add_incoming(following, loop)
            stands.add_incoming(moved, loop)
            builder.cbranch(builder.icmp_signed("<", following, given["last"]), loop, after)
            builder.position_at_end(after)
            result = builder.phi(vector)
            result.add_incoming(start, before)
            result.add_incoming(moved, loop)
            builder.store(result, rows_at(bytes_of["leaf"], given["row"]), align=1)
            return context.get_dummy_value()

        return types.void(first, last, column, shift, limit, place, then, bins, row, leaf), generate

    return ask


_ask_32, _ask_64, _ask_128 = _asking(32), _asking(64), _asking(128)


@kernel
def _find_leaves(t, nodes, trees, bins, rows, leaf):
    """The leaves of a tree that the rows of a tile fall into; ``rows`` is a multiple of a vector."""
    columns = len(trees.feature)
    for s in range(trees.first_set[t], trees.first_set[t + 1]):
        own, flag = bins[trees.set_column[s]], bins[columns + s - trees.first_set[t]]
        start = np.uint64(trees.set_start[s])
        for r in range(rows):
            flag[r] = trees.right[start + np.uint64(own[r])]
    first, last, row = nodes.start[t], nodes.start[t + 1], 0
    column, shift, limit, place, then = trees.column, trees.shift, trees.limit, trees.place, trees.then
    if rows == TILE:
        _ask_128(first, last, column, shift, limit, place, then, bins, row, leaf)
        return
    if rows >= 2 * _WIDTH:
        _ask_64(first, last, column, shift, limit, place, then, bins, row, leaf)
        row = 2 * _WIDTH
    if row < rows:
        _ask_32(first, last, column, shift, limit, place, then, bins, row, leaf)


@kernel
def _take_bins(X, begin, count, trees, value, below, bins):
    """The columns of a tile of rows."""
    width = (count + 7) // 8 * 8  # whole vectors of numbers
    for n in range(len(trees.feature)):
        for r in range(count):
            x = np.float64(X[begin + r, trees.feature[n]])
            small = np.nan if trees.kind[n] == ZERO_IS_MISSING else 0.0
            value[r] = small if -ZERO <= x <= ZERO else x
        if trees.kind[n] != CATEGORIES:
            cut = trees.cut[trees.first_cut[n] : trees.first_cut[n + 1]]
            find_bins(value[:width], cut, below[:width], bins[n, :width])
            continue
        classes = trees.class_of[trees.first_class[n] : trees.first_class[n + 1]]
        most = np.float64(len(classes) - 1)
        for r in range(count):
            inside = -1.0 < value[r] < most
            place = 1 + np.int64(value[r]) if inside else 0
            bins[n, r] = classes[place] if inside or value[r] != value[r] else np.uint8(0)


def _score(first, last, X, nodes, trees, value, out):
    """Scores of rows first..last-1: the leaves of all trees, added in their order.

    ``value`` has the leaves of every tree from left to right, in trees of more than :data:`LEAVES` as they number them.
    """
    stride = min(TILE, (last - first + _WIDTH - 1) // _WIDTH * _WIDTH)
    sets = 0
    for t in range(len(nodes.start) - 1):
        sets = max(sets, trees.first_set[t + 1] - trees.first_set[t])
    bins = np.zeros((len(trees.feature) + sets, stride), np.uint8)
    leaf, total = np.empty(stride, np.uint8), np.empty(stride)
    number, below = np.zeros(stride), np.empty(stride, np.uint64)
    for begin in range(first, last, TILE):
        count = min(TILE, last - begin)
        rows = (count + _WIDTH - 1) // _WIDTH * _WIDTH
        _take_bins(X, begin, count, trees, number, below, bins)
        total[:] = 0.0
        for t in range(len(nodes.start) - 1):
            low, high = nodes.start[t], nodes.start[t + 1]
            if high - low >= LEAVES:
                for r in range(count):
                    total[r] += value[low + t + walk(X[begin + r], low, high, nodes)]
                continue
            _find_leaves(t, nodes, trees, bins, rows, leaf)
            base = np.uint64(low + t)
            for r in range(count):
                total[r] += value[base + np.uint64(leaf[r])]
        out[begin : begin + count] = total[:count]


@cache
def score_on(dtype: "np.dtype[Any]") -> Any:
    """The scores of rows, compiled for this type of X."""
    given = (types.int64, types.int64, features_in(dtype), NODES, _TREES, FLOATS_IN, FLOATS)
    return compiled(kernel(_score), types.void(*given))
