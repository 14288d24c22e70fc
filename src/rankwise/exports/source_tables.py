"""Trees as source text of Python and C: tables and a loop, which stay short however many trees there are.

A node is one row of a table: feature, threshold, left and right child, and how it decides, where nodes differ in that.
A child n >= 0 is node n, n < 0 is leaf -1 - n of all leaves. The score is the sum of the leaves, from the first tree
on, and then the constant with the weighted sum, which is the order of the ranker.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.trees import ZERO
from rankwise.exports.formula import TreeSum
from rankwise.exports.map_sums import rows_of, table_of
from rankwise.exports.tree_nodes import categories_of
from rankwise.measures._base import Vector

# How a node decides: bits of the number in its row.
_NAN_LEFT, _FLIPS_ZERO, _CATEGORICAL = 1, 2, 4
_MOST = "2147483648.0"  # categories are below


def _children(formula: TreeSum) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The root of every tree, and the children of every node, numbered over all trees."""
    trees = formula.trees
    sizes = np.diff(trees.start)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    first = trees.start[:-1][tree]

    def numbered(child: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(child >= 0, first + child, child - first - tree)

    roots = np.where(sizes > 0, trees.start[:-1], -1 - trees.start[:-1] - np.arange(trees.n_trees))
    return roots, numbered(trees.left), numbered(trees.right)


def _kinds(formula: TreeSum) -> NDArray[np.int64] | None:
    """How every node decides; None where NaN is 0 at all of them, and all compare numbers."""
    trees = formula.trees
    if not formula.decides_missing and not trees.categorical.any():
        return None
    bits = {_NAN_LEFT: trees.nan_left, _FLIPS_ZERO: trees.flips_zero, _CATEGORICAL: trees.categorical}
    return sum((bit * which.astype(np.int64) for bit, which in bits.items()), np.zeros(len(trees.feature), np.int64))


# ------------------------------------------------------------------------------------------------------------- Python


def python_trees(formula: TreeSum) -> tuple[str, list[str]]:
    """The tables of a module in Python, and the body of its function.

    Parameters
    ----------
    formula : TreeSum
        The trees.

    Returns
    -------
    tables : str
        The tables.
    body : list of str
        The lines of the function after its checks, without their first indent.
    """
    trees, (roots, left, right), kinds = formula.trees, _children(formula), _kinds(formula)
    columns = [trees.feature, trees.threshold, left, right, *([] if kinds is None else [kinds])]
    nodes = "".join(f"    {row!r},\n" for row in zip(*(column.tolist() for column in columns), strict=True))
    names = "feature, threshold, left, right" + ("" if kinds is None else ", rule")
    weights, constant = formula.raw_linear()
    sets = {
        node: sum(1 << one for one in categories_of(trees, node)) for node in np.flatnonzero(trees.categorical).tolist()
    }
    tables = (
        f"_ROOTS = (\n{rows_of(roots)})\n_NODES = (  # {names}\n{nodes})\n_LEAVES = (\n{rows_of(trees.value)})\n"
        f"_WEIGHTS = (  # feature, weight\n{''.join(f'    {pair!r},{chr(10)}' for pair in weights)})\n"
    )
    if sets:
        tables += (
            "_SETS = {  # categories as bits\n" + "".join(f"    {n}: {bits:#x},\n" for n, bits in sets.items()) + "}\n"
        )
    filled = "v if v - v == 0.0 else 0.0" if formula.missing == "zero" else "v if v == v else 0.0"
    if kinds is None:
        decide = ["f, t, l, r = _NODES[n]", "v = x[f]", f"n = l if ({filled}) <= t else r"]
    else:
        decide = ["f, t, l, r, k = _NODES[n]", "v = x[f]"]
        decide += [f"v = {filled}"] if formula.missing == "zero" else []
        if sets:
            decide += ["if k > 3:", f"    go = -1.0 < v < {_MOST} and _SETS[n] >> int(v) & 1"]
        decide += [
            f"{'elif' if sets else 'if'} v != v or (k > 1 and {-ZERO!r} <= v <= {ZERO!r}):",
            "    go = k % 2",
            "else:",
            "    go = v <= t",
            "n = l if go else r",
        ]
    added = f"({filled})" if formula.missing == "zero" else "v"
    return tables, [
        "s = 0.0",
        "for n in _ROOTS:",
        "    while n >= 0:",
        *(f"        {line}" for line in decide),
        "    s += _LEAVES[-1 - n]",
        f"rest = {constant!r}",
        "for f, w in _WEIGHTS:",
        "    v = x[f]",
        f"    rest += w * {added}",
        "return s + rest",
    ]


# ------------------------------------------------------------------------------------------------------------------ C


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
    trees, (roots, left, right), kinds = formula.trees, _children(formula), _kinds(formula)
    weights, constant = formula.raw_linear()
    columns: list[tuple[str, str, Any]] = [
        ("int", "root", roots),
        ("int", "feature", trees.feature),
        ("double", "threshold", trees.threshold),
        ("int", "left", left),
        ("int", "right", right),
        ("double", "leaf", trees.value),
        ("int", "weighted", [place for place, _ in weights]),
        ("double", "weight", [weight for _, weight in weights]),
    ]
    if kinds is not None:
        columns.append(("int", "rule", kinds))
    if trees.categorical.any():
        columns.append(("int", "set", trees.word_start))
    tables = "".join(
        f"static const {kind} {called}_{name}[] = {{\n{rows_of(values if len(values) else [0])}}};\n"
        for kind, name, values in columns
    )
    if trees.categorical.any():
        words = "".join(f"    {word}UL,\n" for word in trees.words.tolist())
        tables += f"static const unsigned long {called}_word[] = {{\n{words}}};\n"
    filled = "v - v == 0.0 ? v : 0.0" if formula.missing == "zero" else "v == v ? v : 0.0"
    added = f"({filled})" if formula.missing == "zero" else "v"
    decision = _c_decision(called, filled, kinds, bool(trees.categorical.any()), formula.missing)
    return tables, [
        f"double s = 0.0, rest = {constant!r};",
        "int i;",
        f"for (i = 0; i < {trees.n_trees}; i++) {{",
        f"    int n = {called}_root[i];",
        "    while (n >= 0) {",
        f"        double v = x[{called}_feature[n]];",
        *(f"        {line}" for line in decision),
        "    }",
        f"    s += {called}_leaf[-1 - n];",
        "}",
        f"for (i = 0; i < {len(weights)}; i++) {{",
        f"    double v = x[{called}_weighted[i]];",
        f"    rest += {called}_weight[i] * {added};",
        "}",
        "return s + rest;",
    ]


def _c_decision(called: str, filled: str, kinds: Any, categories: bool, missing: str) -> list[str]:
    """The lines that find the next node from the value v at node n."""
    if kinds is None:
        return [f"n = ({filled}) <= {called}_threshold[n] ? {called}_left[n] : {called}_right[n];"]
    lines = [f"int k = {called}_rule[n], go;"]
    lines += [f"v = {filled};"] if missing == "zero" else []
    if categories:
        lines += [
            "if (k > 3) {",
            f"    long c = v > -1.0 && v < {_MOST} ? (long) v : -1L;",
            f"    long w = {called}_set[n] + c / 32;",
            f"    go = c >= 0 && w < {called}_set[n + 1] && (({called}_word[w] >> (c % 32)) & 1UL);",
            "} else",
        ]
    return [
        *lines,
        f"if (v != v || (k > 1 && v >= {-ZERO!r} && v <= {ZERO!r}))",
        "    go = k % 2;",
        "else",
        f"    go = v <= {called}_threshold[n];",
        f"n = go ? {called}_left[n] : {called}_right[n];",
    ]


def score_c_trees(text: str, called: str, X: Vector) -> Vector:
    """Run the loop of a text with trees over its own tables, for all rows at once.

    Parameters
    ----------
    text : str
        What was written from :func:`c_trees`.
    called : str
        The name of the function.
    X : ndarray of shape (n_documents, n_features)
        Raw features.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.
    """
    tables = {
        name: np.array(table_of(text, f"{called}_{name}"))
        for name in (
            "root",
            "feature",
            "threshold",
            "left",
            "right",
            "leaf",
            "weighted",
            "weight",
            "rule",
            "set",
            "word",
        )
        if f" {called}_{name}[] = " in text
    }
    whole = {name: tables[name].astype(np.int64) for name in tables if name not in ("threshold", "leaf", "weight")}
    if "v - v == 0.0" in text:
        X = np.where(np.isfinite(X), X, 0.0)
    # NaN is 0 for the trees where no rule says otherwise, and stays NaN in the weighted sum
    seen = X if "rule" in tables else np.where(np.isnan(X), 0.0, X)
    counts = [int(part.split(";")[0]) for part in text.split("i < ")[1:]]
    total = np.zeros(len(X))
    for root in whole["root"][: counts[0]].tolist():
        node = np.full(len(X), root)
        rows = np.flatnonzero(node >= 0)
        while len(rows):
            at = node[rows]
            left = _goes_left(seen[rows, whole["feature"][at]], at, tables["threshold"], whole)
            node[rows] = np.where(left, whole["left"][at], whole["right"][at])
            rows = rows[node[rows] >= 0]
        total += tables["leaf"][-1 - node]
    rest = np.full(len(X), float(text.split("rest = ")[1].split(";")[0]))
    with np.errstate(invalid="ignore", over="ignore"):
        for place, weight in list(zip(whole["weighted"].tolist(), tables["weight"].tolist(), strict=True))[: counts[1]]:
            rest += weight * X[:, place]
    return np.asarray(total + rest)


def _goes_left(v: Vector, node: NDArray[np.int64], threshold: Vector, whole: dict[str, NDArray[np.int64]]) -> Any:
    """What goes left at its node, in the words of the C text."""
    go = v <= threshold[node]
    if "rule" not in whole:
        return go
    k = whole["rule"][node]
    missing = np.isnan(v) | ((k > 1) & (v >= -ZERO) & (v <= ZERO))
    go = np.where(missing, k % 2 == 1, go)
    if "set" in whole:
        inside = (v > -1.0) & (v < float(_MOST))
        c = np.where(inside, v, -1.0).astype(np.int64)
        first, last = whole["set"][node], whole["set"][node + 1]
        w = np.where(inside, first + c // 32, first)
        inside &= w < last
        bit = whole["word"][np.minimum(w, len(whole["word"]) - 1)] >> (c % 32) & 1
        go = np.where(k > 3, inside & (bit == 1), go)
    return go
