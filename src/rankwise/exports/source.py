"""The ranker as a function in plain Python or C, without dependencies.

``c_names.txt`` lists the names that a function in C cannot have: a function called ``log`` compiles, and then replaces
the library's ``log`` in the whole program.

Trees are tables and a loop, which stay short however many trees there are. In Python a node is one row of a table:
feature, threshold, left and right child, and how it decides, where nodes differ in that. A child n >= 0 is node n,
n < 0 is leaf -1 - n of all leaves. :mod:`rankwise.exports.tree_masks` has the tables of C. The score is the sum of the
leaves, from the first tree on, and then the constant with the weighted sum or the curves, which is the order of the
ranker.
"""

import builtins
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from keyword import iskeyword
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.trees import ZERO
from rankwise.errors import RankwiseError
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.columns import ColumnFeatures
from rankwise.exports.columns_source import c_columns, c_features, python_columns
from rankwise.exports.curves import CurveSum
from rankwise.exports.formula import MEDIAN, Formula, StepSum, TreeSum, WeightedSum, fills_gaps
from rankwise.exports.map_sums import (
    FourierSum,
    KernelSum,
    MapSum,
    ProductSum,
    c_tables,
    number_after,
    python_table,
    read_c_tables,
)
from rankwise.exports.networks import NetworkSum
from rankwise.exports.tree_masks import FLIPS_ZERO, MOST, NAN_LEFT, c_trees, score_c_trees
from rankwise.exports.tree_nodes import categories_of
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

# -------------------------------------------------------------------------------------------------- names in C


@cache
def list_taken_names() -> dict[str, str]:
    """The names that a function in C cannot have, each with the reason."""
    found: dict[str, str] = {}
    reason = ""
    for line in files("rankwise.exports").joinpath("c_names.txt").read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif not line.startswith("#"):
            found |= dict.fromkeys(line.split(), reason)
    return found


def reason_against(name: str) -> str | None:
    """Why a function in C cannot have this name.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str or None
        The reason; None where the name is allowed.

    Examples
    --------
    >>> reason_against("log")
    'a function of the standard library is called so'
    >>> reason_against("score") is None
    True
    """
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return "names are letters, digits and _"
    if name.startswith("_"):
        return "names that begin with _ belong to the compiler and its libraries"
    return list_taken_names().get(name)


_MAP_SUMS: tuple[type[MapSum], ...] = (FourierSum, KernelSum, ProductSum, CurveSum, NetworkSum)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The names beside the function in Python.
_TABLES = (
    *("FEATURES", "_WEIGHTS", "_STEPS"),
    *("_ROOTS", "_NODES", "_LEAVES", "_SETS"),
    *("_CENTER", "_SCALE", "_LAYERS", "_LAST", "_LINEAR"),
    *("_WAVES", "cos", "sin", "_LANDMARKS", "exp", "tanh", "_PRODUCTS", "_CURVES"),
    *("_built", "log1p", "nan"),
)


@dataclass(frozen=True, kw_only=True)
class Python(Target):
    """``NAME.py``: a function ``NAME(x)`` of a sequence of features, and their names as ``FEATURES``."""

    name = "python"
    title = "Python without dependencies"
    arithmetic = "float64, run by Python"
    takes = (*Target.takes, MapSum)
    holds_columns = True
    holds_tables = True

    def write(self, formula: Formula | MapSum, called: str, columns: ColumnFeatures | None = None) -> Written:
        """Write the module."""
        _check_python_name(called)
        functions = list(formula.functions) if isinstance(formula, MapSum) else []
        names, what = _inputs(formula, columns)
        tables, body = _python_sum(formula)
        if columns is not None:
            functions += ["log1p", "nan"]
            tables += python_columns(columns)
            body = ["x = _built(x)", *body]
        listed = "".join(f"    {name!a},\n" for name in names)
        lines = "".join(f"    {line}\n" for line in body)
        above = f"from math import {', '.join(sorted(functions))}\n\n" if functions else ""
        text = (
            f"{above}FEATURES = (\n{listed})\n{tables}\n\n"
            f"def {called}(x):\n"
            f'    """The score of a document whose {what}, in the order of FEATURES, are x."""\n'
            f"    if len(x) != {len(names)}:\n"
            f'        raise ValueError("expected {len(names)} {what}, found %d" % len(x))\n'
            f"{lines}"
        )
        return Written({f"{called}.py": text}, (_missing(formula, columns),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the function in a namespace of its own; the text is the one that :meth:`write` has just made."""
        ((file, text),) = files.items()
        # without builtins that it does not need: the text holds names from untrusted data
        needed: tuple[Any, ...] = (len, zip, int, ValueError, isinstance, str, TypeError)
        known = {one.__name__: one for one in needed}
        known["__import__"] = _only_math
        namespace: dict[str, Any] = {"__builtins__": known}
        exec(text, namespace)
        function = namespace[file.removesuffix(".py")]
        return np.array([function(row) for row in np.asarray(X).tolist()], dtype=np.float64)


def _inputs(formula: Formula | MapSum, columns: ColumnFeatures | None) -> tuple[tuple[str, ...], str]:
    """The names of what the function gets, and what that is."""
    return (formula.names, "features") if columns is None else (columns.names, "columns")


def _python_sum(formula: Formula | MapSum) -> tuple[str, list[str]]:
    """The tables of the module, and the body of its function."""
    if isinstance(formula, TreeSum):
        return python_trees(formula)
    value = "v if v - v == 0.0 else 0.0" if formula.missing == "zero" else "v"
    if isinstance(formula, MapSum):
        tables, adding = formula.python(value)
    elif isinstance(formula, WeightedSum):
        formula = formula.raw()
        tables = python_table("_WEIGHTS", formula.weight)
        added = f"({value})" if formula.missing == "zero" else "v"
        adding = ["for w, v in zip(_WEIGHTS, x):", f"    s += w * {added}"]
    else:
        steps = zip(formula.feature.tolist(), formula.threshold.tolist(), formula.alpha.tolist(), strict=True)
        tables = python_table("_STEPS", list(steps), "feature, threshold, alpha")
        adding = ["for f, t, a in _STEPS:", "    v = x[f]", f"    s += a if ({value}) > t else 0.0"]
    return tables, [f"s = {formula.constant!r}", *adding, "return s"]


@dataclass(frozen=True, kw_only=True)
class C(Target):
    """``NAME.c``: ``double NAME(const double *x)``, and the names of features as ``NAME_features[NAME_width]``."""

    name = "c"
    title = "C without dependencies"
    arithmetic = "float64, feature after feature (C without contraction)"
    takes = (*Target.takes, MapSum)
    holds_columns = True
    holds_tables = True

    def write(self, formula: Formula | MapSum, called: str, columns: ColumnFeatures | None = None) -> Written:
        """Write the source file."""
        reason = reason_against(called)
        if reason is not None:
            raise RankwiseError(f"{called!r:.60} cannot be the name of a function of C: {reason}")
        names, what = _inputs(formula, columns)
        tables, body = _c_sum(formula, called)
        listed = "".join(f"    {c_text(name)},\n" for name in names)
        lines = "".join(f"    {line}\n" for line in body)
        above, about, head, more = "", "", f"double {called}(const double *x)", ""
        if isinstance(formula, MapSum) and not isinstance(formula, NetworkSum):
            above = "#include <math.h>\n"
        if columns is not None:
            above = above or "#include <math.h>\n" * columns.uses("log")
            above += "#include <string.h>\n" * columns.uses("level")
            about = (
                "\n   Column i is number[i], NaN where it is missing, or text[i] in UTF-8, NULL where it is missing; of"
                "\n   the other one nothing is read."
            )
            head = f"static double {called}_of_features(const double *x)"
            more = c_columns(columns, called, c_text)
        text = (
            f"/* The score of a document with {len(names)} {what} in the order of {called}_features; a higher "
            "one comes\n   first. Compile without -ffast-math, and with -ffp-contract=off for the same bits everywhere."
            f"{about} */\n\n{above}{chr(10) if above else ''}const int {called}_width = {len(names)};\n"
            f"const char *const {called}_features[] = {{\n{listed}}};\n\n{tables}\n"
            f"{head}\n{{\n{lines}}}\n{more}"
        )
        return Written({f"{called}.c": text}, (_missing(formula, columns),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the loop of the text over its own tables, without a compiler."""
        ((file, content),) = files.items()
        called, text = file.removesuffix(".c"), str(content)
        given: Any = X
        rows = c_features(text, given) if X.dtype == object else np.asarray(X, dtype=np.float64)
        # only tables and the function of features: names and levels are data, which may look like code
        text = text.split("};\n\n", 1)[1].split(f"\ndouble {called}(const double *number")[0]
        tables = read_c_tables(text, called)
        if "v - v == 0.0" in text:
            rows = np.where(np.isfinite(rows), rows, 0.0)
        if "split_mask" in tables:
            return score_c_trees(tables, text, rows)
        for kind in _MAP_SUMS:
            if kind.mark in tables:
                return kind.c_scores(tables, text, rows)
        # the constant comes first, as in the loop of the C function
        total = np.full(len(rows), number_after("double s = ", text))
        if "weight" in tables:
            for place, weight in enumerate(tables["weight"]):
                total += weight * rows[:, place]
            return total
        steps = [tables[name][: int(number_after("i < ", text))] for name in ("feature", "threshold", "alpha")]
        for feature, threshold, alpha in zip(*steps, strict=True):
            total += np.where(rows[:, feature] > threshold, alpha, 0.0)
        return total


def _only_math(name: str, *rest: Any) -> Any:
    """``import`` of a module that may use the functions of ``math`` and no other."""
    if name != "math":
        raise ImportError(f"the exported function may import only math, got {name!r:.40}")
    return math


def _c_sum(formula: Formula | MapSum, called: str) -> tuple[str, list[str]]:
    """The tables of the file, and the body of its function."""
    if isinstance(formula, TreeSum):
        return c_trees(formula, called)
    value = "(v - v == 0.0 ? v : 0.0)" if formula.missing == "zero" else "v"
    if isinstance(formula, WeightedSum):
        formula = formula.raw()
        tables = c_tables(called, weight=formula.weight)
        loop = ["double v = x[i];", f"s += {called}_weight[i] * {value};"]
        adding = _c_loop(len(formula.weight), loop)
    elif isinstance(formula, StepSum):
        tables = c_tables(called, feature=formula.feature, threshold=formula.threshold, alpha=formula.alpha)
        condition = f"if ({value} > {called}_threshold[i]) s += {called}_alpha[i];"
        adding = _c_loop(len(formula.alpha), [f"double v = x[{called}_feature[i]];", condition])
    else:
        tables, adding = formula.c(called, value)
    return tables, [f"double s = {formula.constant!r};", *adding, "return s;"]


def _c_loop(count: int, inside: list[str]) -> list[str]:
    return ["int i;", f"for (i = 0; i < {count}; i++) {{", *(f"    {line}" for line in inside), "}"]


def c_text(name: str) -> str:
    """A string literal of C: ASCII, every other byte of its UTF-8 by three octal digits, no trigraph."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in name.encode()) + '"'


def _check_python_name(called: str) -> None:
    """Raise an error for a name that Python, or the module that is written, uses for something else."""
    if not _IDENTIFIER.fullmatch(called):
        raise RankwiseError(f"the name of a Python function must consist of letters, digits and _, got {called!r:.60}")
    # a function called len would call itself in place of the built-in one
    if iskeyword(called) or hasattr(builtins, called) or called in _TABLES or re.fullmatch("__.*__", called):
        raise RankwiseError(f"{called!r:.60} cannot be the name of a function: Python uses it otherwise")


def _missing(formula: Formula | MapSum, columns: ColumnFeatures | None) -> str:
    """The note about missing values."""
    if columns is not None and columns.uses("fill"):
        return "missing numbers and texts are treated as the FeatureBuilder of the ranker does"
    filled = fills_gaps(formula)
    if isinstance(formula, TreeSum) and formula.missing != "zero":
        return "NaN goes where the trees of the ranker send it" + f"; beside the trees it {MEDIAN}" * filled
    if filled:
        return f"NaN {MEDIAN}"
    if formula.missing == "zero":
        return "NaN and infinities count 0, as the ranker's missing='zero' has it"
    return "NaN is not looked for: a weighted sum with it is NaN, and it is above no threshold"


# ---------------------------------------------------------------------------------------------------------------- trees

# How a node decides: bits of the number in its row.
_CATEGORICAL = 4


def _children(formula: TreeSum) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The root of every tree, and the children of every node, numbered over all trees."""
    trees = formula.trees
    sizes = np.diff(trees.start)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    first = trees.start[:-1][tree]

    def number_nodes(child: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(child >= 0, first + child, child - first - tree)

    roots = np.where(sizes > 0, trees.start[:-1], -1 - trees.start[:-1] - np.arange(trees.n_trees))
    return roots, number_nodes(trees.left), number_nodes(trees.right)


def _kinds(formula: TreeSum) -> NDArray[np.int64] | None:
    """How every node decides; None where NaN is 0 at all of them, and all compare numbers."""
    trees = formula.trees
    if not formula.decides_missing and not trees.categorical.any():
        return None
    bits = {NAN_LEFT: trees.nan_left, FLIPS_ZERO: trees.flips_zero, _CATEGORICAL: trees.categorical}
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
    nodes = list(zip(*(column.tolist() for column in columns), strict=True))
    about = "feature, threshold, left, right" + ("" if kinds is None else ", rule")
    weights, constant = formula.raw_linear()
    sets = {
        node: sum(1 << one for one in categories_of(trees, node)) for node in np.flatnonzero(trees.categorical).tolist()
    }
    tables = python_table("_ROOTS", roots) + python_table("_NODES", nodes, about) + python_table("_LEAVES", trees.value)
    if sets:
        rows = "".join(f"    {node}: {bits:#x},\n" for node, bits in sets.items())
        tables += f"_SETS = {{  # categories as bits\n{rows}}}\n"
    filled = "v if v - v == 0.0 else 0.0" if formula.missing == "zero" else "v if v == v else 0.0"
    if kinds is None:
        decide = ["f, t, l, r = _NODES[n]", "v = x[f]", f"n = l if ({filled}) <= t else r"]
    else:
        decide = ["f, t, l, r, k = _NODES[n]", "v = x[f]"]
        decide += [f"v = {filled}"] if formula.missing == "zero" else []
        numbers = "1 < k < 4" if sets else "k > 1"
        decide += [f"if v != v or ({numbers} and {-ZERO!r} <= v <= {ZERO!r}):", "    go = k % 2"]
        if sets:
            decide += ["elif k > 3:", f"    go = -1.0 < v < {MOST} and _SETS[n] >> int(v) & 1"]
        decide += [
            "else:",
            "    go = v <= t",
            "n = l if go else r",
        ]
    added = f"({filled})" if formula.missing == "zero" else "v"
    more = python_table("_WEIGHTS", weights, "feature, weight")
    adding = ["for f, w in _WEIGHTS:", "    v = x[f]", f"    s += w * {added}"]
    if formula.curves is not None:
        more, adding = formula.curves.python(filled if formula.missing == "zero" else "v")
    return tables + more, [
        "trees = 0.0",
        "for n in _ROOTS:",
        "    while n >= 0:",
        *(f"        {line}" for line in decide),
        "    trees += _LEAVES[-1 - n]",
        f"s = {constant!r}",
        *adding,
        "return trees + s",
    ]
