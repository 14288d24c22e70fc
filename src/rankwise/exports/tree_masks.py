"""Trees in C as masks of leaves, without a branch per node.

Bit b of word w of a tree stands for its leaf 32 w + b from the left. A row leaves the words as they are at a node that
sends it left; a node that sends it right takes the leaves of its left part out, by one mask for each word that holds
some. The leaf of the row is then the first from the left that is still there. Masks are sorted by feature and
threshold: a feature of a row is compared until the first threshold that it is not above, and that comparison alone is
hard to foresee for a processor.

References
----------
.. [1] C. Lucchese, F. M. Nardini, S. Orlando, R. Perego, N. Tonellotto, R. Venturini. QuickScorer: A fast algorithm to
   rank documents with additive ensembles of regression trees. SIGIR 2015. doi:10.1145/2766462.2767733
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.trees import ZERO
from rankwise.exports.curves import CurveSum
from rankwise.exports.formula import TreeSum
from rankwise.exports.map_sums import CTables, c_tables, number_after
from rankwise.exports.tree_nodes import place_leaves
from rankwise.measures._base import Vector

# How a node decides: bits of the number in its row.
NAN_LEFT, FLIPS_ZERO = 1, 2
MOST = "2147483648.0"  # categories are below
_BITS = 32
_ALL = (1 << _BITS) - 1
# Its highest five bits differ for every power of two that it is multiplied by: the number of a bit without a loop.
_DE_BRUIJN = 0x077CB531
_BIT = [(_DE_BRUIJN << bit & _ALL) >> 27 for bit in range(_BITS)]

Wholes = NDArray[np.int64]


class _Masks(NamedTuple):
    """One mask for every node and every word in which its left part has leaves."""

    node: Wholes
    word: Wholes
    mask: Wholes
    tree: list[int]  # the first word of every tree, and the number of words
    leaves: list[int]  # the leaf of the first bit of every word
    value: Vector  # of the leaves


def _masks(formula: TreeSum) -> _Masks:
    """The masks of all nodes."""
    trees, places = formula.trees, place_leaves(formula.trees)
    rows: list[tuple[int, int, int]] = []
    tree, leaves = [0], []
    for number, n_nodes in enumerate(np.diff(trees.start).tolist()):
        first, begin = int(trees.start[number]), tree[-1]
        for node in range(first, first + n_nodes):
            low, high = places.first[node], places.middle[node]
            for word in range(low // _BITS, (high - 1) // _BITS + 1):
                start, end = max(low - word * _BITS, 0), min(high - word * _BITS, _BITS)
                rows.append((node, begin + word, _ALL & ~((1 << end) - (1 << start))))
        n_words = n_nodes // _BITS + 1
        leaves += [first + number + _BITS * word for word in range(n_words)]
        tree.append(begin + n_words)
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return _Masks(table[:, 0], table[:, 1], table[:, 2], tree, leaves, places.value)


def _words(name: str, values: Any) -> str:
    """A table of words of 32 bits."""
    return f"static const unsigned int {name}[] = {{\n" + "".join(f"    {value}U,\n" for value in values) + "};\n"


def c_trees(formula: TreeSum, called: str) -> tuple[str, list[str]]:
    """The tables of a file in C89, and the body of its function.

    Parameters
    ----------
    formula : TreeSum
        The trees.
    called : str
        The name of the function, with which the names of tables begin.

    Returns
    -------
    tables : str
        The tables.
    body : list of str
        The lines of the function, without their first indent.
    """
    trees, masks = formula.trees, _masks(formula)
    numerical = ~trees.categorical[masks.node]
    order = np.lexsort((trees.threshold[masks.node], trees.feature[masks.node]))
    order = order[numerical[order]]
    node = masks.node[order]
    used, counts = np.unique(trees.feature[node], return_counts=True)
    tables = c_tables(
        called,
        split_feature=used,
        split_first=np.concatenate([[0], np.cumsum(counts)]),
        split_threshold=trees.threshold[node],
        split_word=masks.word[order],
        tree_word=np.array(masks.tree),
        word_leaf=np.array(masks.leaves, dtype=np.int64),
        bit=np.argsort(_BIT),
        leaf=masks.value,
    )
    tables += _words(f"{called}_split_mask", masks.mask[order].tolist() or [0])
    filled = "v - v == 0.0 ? v : 0.0" if formula.missing == "zero" else "v == v ? v : 0.0"
    flips = bool(trees.flips_zero.any())
    has_rules = formula.decides_missing
    if has_rules:
        kinds = NAN_LEFT * trees.nan_left.astype(np.int64) + FLIPS_ZERO * trees.flips_zero
        tables += c_tables(called, split_rule=kinds[node])
    clear = f"{called}_split_word[i]] &= {called}_split_mask[i];"
    body = [
        f"double s = {formula.raw_linear()[1]!r};",
        "double trees = 0.0;",
        f"unsigned int reached[{max(masks.tree[-1], 1)}];",
        "int i, j;",
        f"for (i = 0; i < {masks.tree[-1]}; i++) reached[i] = {_ALL}U;",
        f"for (j = 0; j < {len(used)}; j++) {{",
        f"    double v = x[{called}_split_feature[j]];",
        f"    int last = {called}_split_first[j + 1];",
    ]
    if not has_rules or formula.missing == "zero":
        body += [f"    v = {filled};"]
    body += [f"    i = {called}_split_first[j];"]
    if has_rules:
        zero = f" || (v >= {-ZERO!r} && v <= {ZERO!r})" if flips else ""
        body += [
            f"    if (v != v{zero})",
            "        for (; i < last; i++) {",
            f"            int k = {called}_split_rule[i];",
            f"            if ((v != v || k > 1) ? k % 2 == 0 : v > {called}_split_threshold[i])",
            f"                reached[{clear}",
            "        }",
        ]
    body += [f"    for (; i < last && v > {called}_split_threshold[i]; i++) reached[{clear}", "}"]
    if trees.categorical.any():
        own, adding = _c_categories(formula, called, masks, np.flatnonzero(~numerical))
        tables, body = tables + own, body + adding
    body += [
        f"for (i = 0; i < {trees.n_trees}; i++) {{",
        "    unsigned int r;",
        f"    for (j = {called}_tree_word[i]; !reached[j]; j++) ;",
        "    r = reached[j];",
        f"    r = ((r & (0U - r)) * {_DE_BRUIJN}U & {_ALL}U) >> 27;",
        f"    trees += {called}_leaf[{called}_word_leaf[j] + {called}_bit[r]];",
        "}",
    ]
    weights, _ = formula.raw_linear()
    value = f"({filled})" if formula.missing == "zero" else "v"
    if formula.curves is not None:
        own, adding = formula.curves.c(called, value)
        tables, body = tables + own, [*body, "{", *(f"    {line}" for line in adding), "}"]
    elif weights:
        weighted, weight = zip(*weights, strict=True)
        tables += c_tables(called, weighted=np.array(weighted, dtype=np.int64), weight=weight)
        body += [
            f"for (i = 0; i < {len(weights)}; i++) {{",
            f"    double v = x[{called}_weighted[i]];",
            f"    s += {called}_weight[i] * {value};",
            "}",
        ]
    return tables, [*body, "return trees + s;"]


def _c_categories(formula: TreeSum, called: str, masks: _Masks, rows: Wholes) -> tuple[str, list[str]]:
    """The tables of the categorical nodes, and the loop over their masks."""
    trees, node = formula.trees, masks.node[rows]
    tables = c_tables(
        called,
        set_feature=trees.feature[node],
        set_nan=trees.nan_left[node].astype(np.int64),
        set_first=trees.word_start[node],
        set_last=trees.word_start[node + 1],
        set_word=masks.word[rows],
    )
    tables += _words(f"{called}_set_mask", masks.mask[rows].tolist())
    tables += _words(f"{called}_categories", trees.words.tolist())
    fill = ["    v = v - v == 0.0 ? v : 0.0;"] if formula.missing == "zero" else []
    return tables, [
        f"for (i = 0; i < {len(rows)}; i++) {{",
        f"    double v = x[{called}_set_feature[i]];",
        "    long c, w;",
        "    int go;",
        *fill,
        f"    c = v > -1.0 && v < {MOST} ? (long) v : -1L;",
        f"    w = {called}_set_first[i] + c / {_BITS};",
        f"    go = c >= 0 && w < {called}_set_last[i] && (({called}_categories[w] >> (c % {_BITS})) & 1U);",
        f"    if (v != v) go = {called}_set_nan[i];",
        f"    if (!go) reached[{called}_set_word[i]] &= {called}_set_mask[i];",
        "}",
    ]


def score_c_trees(tables: CTables, text: str, X: Vector) -> Vector:
    """Run the loops of a text with trees over its own tables, for all rows at once.

    Parameters
    ----------
    tables : dict of str to ndarray
        Those of what was written from :func:`c_trees`.
    text : str
        What was written.
    X : ndarray of shape (n_documents, n_features)
        Raw features.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.
    """
    # NaN is 0 for the trees where no rule says otherwise, and stays NaN in the weighted sum
    seen = X if "split_rule" in tables else np.where(np.isnan(X), 0.0, X)
    first, n_trees = tables["split_first"], len(tables["tree_word"]) - 1
    reached = np.full((max(int(tables["tree_word"][-1]), 1), len(X)), _ALL, dtype=np.uint32)

    def clear(word: int, mask: int, goes_right: NDArray[np.bool_]) -> None:
        reached[word, goes_right] &= np.uint32(mask)

    for feature, low, high in zip(tables["split_feature"], first[:-1], first[1:], strict=False):
        v = seen[:, feature]
        missing, zero = np.isnan(v), (v >= -ZERO) & (v <= ZERO)
        for entry in range(low, high):
            right = v > tables["split_threshold"][entry]
            if "split_rule" in tables:
                k = tables["split_rule"][entry]
                right = np.where(missing | (zero & (k > 1)), k % 2 == 0, right)
            clear(tables["split_word"][entry], tables["split_mask"][entry], right)
    for entry in range(len(tables.get("set_feature", ()))):
        v = X[:, tables["set_feature"][entry]]
        low, high = tables["set_first"][entry], tables["set_last"][entry]
        inside = (v > -1.0) & (v < float(MOST))
        c = np.where(inside, v, 0.0).astype(np.int64)
        w = low + c // _BITS
        inside &= w < high
        go = inside & (tables["categories"][np.minimum(w, high - 1)] >> (c % _BITS) & 1 == 1)
        go = np.where(np.isnan(v), tables["set_nan"][entry] == 1, go)
        clear(tables["set_word"][entry], tables["set_mask"][entry], ~go)
    total = np.zeros(len(X))
    for tree in range(n_trees):
        words = reached[tables["tree_word"][tree] : tables["tree_word"][tree + 1]]
        word = np.argmax(words != 0, axis=0)
        r = words[word, np.arange(len(X))]
        lowest = (r & (np.uint32(0) - r)).astype(np.uint64) * np.uint64(_DE_BRUIJN)
        bit = tables["bit"][(lowest & np.uint64(_ALL)) >> np.uint64(27)]
        total += tables["leaf"][tables["word_leaf"][tables["tree_word"][tree] + word] + bit]
    rest = np.full(len(X), number_after("double s = ", text))
    if CurveSum.mark in tables:
        return np.asarray(total + CurveSum.c_add(tables, X, rest))
    with np.errstate(invalid="ignore", over="ignore"):
        for place, weight in zip(tables.get("weighted", ()), tables.get("weight", ()), strict=True):
            rest += weight * X[:, place]
    return np.asarray(total + rest)
