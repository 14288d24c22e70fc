"""Columns of a table to features, in Python and in C.

Both write one statement per step. The statements of C are read back and run, without a compiler, by :func:`c_features`.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankwise.exports.columns import Chain, ColumnFeatures, ColumnStep, compute_features, read_step, step_patterns
from rankwise.measures._base import Vector

# ------------------------------------------------------------------------------------------------------------- Python

_PYTHON = {
    "fill": "v = {value!r} if v is None or v - v != 0.0 else v",
    "missing": "v = 1.0 if v is None or v - v != 0.0 else 0.0",
    "before": "v = v if v is None else {value!r} - v",
    "log": "v = v if v is None else log1p(v) if v > 0.0 else -log1p(-v)",
    "subtract": "v = v if v is None else v - {value!r}",
    "divide": "v = v if v is None else v / {value!r}",
    "multiply": "v = v if v is None else v * {value!r}",
    "add": "v = v if v is None else v + {value!r}",
}


def python_columns(columns: ColumnFeatures) -> str:
    """The function of a module in Python that makes features of the columns of a row.

    Parameters
    ----------
    columns : ColumnFeatures
        The features.

    Returns
    -------
    text : str
        The definition of ``_built(c)``, with the imports that it needs.
    """
    lines = ["x = []"]
    for place in np.flatnonzero(columns.is_text).tolist():
        lines += [
            f"if c[{place}] is not None and not isinstance(c[{place}], str):",
            f'    raise TypeError("column %s must be a text, got %r" % (FEATURES[{place}], c[{place}]))',
        ]
    for place, steps in columns.chains:
        lines.append(f"v = c[{place}]")
        for step in steps:
            if step.kind == "level":
                known = "{" + ", ".join(f"{level!a}: {value!r}" for level, value in step.levels) + "}"
                lines.append(f'v = {known}.get("" if v is None else v, {step.value!r})')
            else:
                lines.append(_PYTHON[step.kind].format(value=step.value))
        lines.append("x.append(nan if v is None else v)")
    body = "".join(f"    {line}\n" for line in [*lines, "return x"])
    return f'\n\ndef _built(c):\n    """The features of a row of columns."""\n{body}'


# ------------------------------------------------------------------------------------------------------------------ C

_C = {
    "fill": "u = u - u == 0.0 ? u : {value};",
    "missing": "u = u - u == 0.0 ? 0.0 : 1.0;",
    "before": "u = {value} - u;",
    "log": "u = u < 0.0 ? -log(1.0 - u) : log(1.0 + u);",
    "subtract": "u = u - {value};",
    "divide": "u = u / {value};",
    "multiply": "u = u * {value};",
    "add": "u = u + {value};",
}
_PATTERNS = step_patterns(_C)
_READ = re.compile(r"u = number\[(\d+)\];")
_OTHER = re.compile(r"u = (\S+); /\* text (\d+) \*/")
_LEVEL = re.compile(r'if \(text\[\d+\] && !strcmp\(text\[\d+\], ("(?:[^"\\]|\\.)*")\)\) u = (\S+);')
_EMPTY = re.compile(r"if \(!text\[\d+\] \|\| !\*text\[\d+\]\) u = (\S+);")
_SET = re.compile(r"x\[\d+\] = u;")


def c_columns(columns: ColumnFeatures, called: str, c_text: Callable[[str], str]) -> str:
    """The function of C that makes features of the columns of a row and scores them.

    Parameters
    ----------
    columns : ColumnFeatures
        The features.
    called : str
        The name of the function.
    c_text : callable
        Writes a text as a literal of C.

    Returns
    -------
    text : str
        The function, which calls ``CALLED_of_features``.
    """
    lines = [f"double x[{len(columns.chains)}], u;"]
    if not any(columns.is_text):
        lines.append("(void) text;")
    if all(columns.is_text):
        lines.append("(void) number;")
    for feature, (place, steps) in enumerate(columns.chains):
        if not columns.is_text[place]:
            lines.append(f"u = number[{place}];")
        for step in steps:
            if step.kind == "level":
                lines += _c_levels(place, step, c_text)
            else:
                lines.append(_C[step.kind].format(value=step.value))
        lines.append(f"x[{feature}] = u;")
    body = "".join(f"    {line}\n" for line in [*lines, f"return {called}_of_features(x);"])
    return f"\ndouble {called}(const double *number, const char *const *text)\n{{\n{body}}}\n"


def _c_levels(place: int, step: ColumnStep, c_text: Callable[[str], str]) -> list[str]:
    """One comparison per level."""
    lines = [f"u = {step.value!r}; /* text {place} */"]
    for level, value in step.levels:
        same = f"text[{place}] && !strcmp(text[{place}], {c_text(level)})"
        lines.append(f"if ({same if level else f'!text[{place}] || !*text[{place}]'}) u = {value!r};")
    return lines


def c_features(text: str, rows: NDArray[np.object_]) -> Vector:
    """Run the statements of :func:`c_columns` on rows of columns, without a compiler.

    Parameters
    ----------
    text : str
        What was written.
    rows : ndarray of object, shape (n_documents, n_columns)
        Numbers and texts; None for what is missing.

    Returns
    -------
    ndarray of float64, shape (n_documents, n_features)
        The features.
    """
    chains: list[Chain] = []
    place, steps, levels = 0, list[ColumnStep](), list[tuple[str, float]]()
    for line in map(str.strip, text.split("const char *const *text)\n")[1].splitlines()):
        if found := _READ.fullmatch(line):
            place, steps = int(found[1]), []
        elif found := _OTHER.fullmatch(line):
            place, steps, levels = int(found[2]), [ColumnStep("level", float(found[1]))], []
        elif found := _LEVEL.fullmatch(line):
            levels.append((ast.literal_eval(f"b{found[1]}").decode(), float(found[2])))
        elif found := _EMPTY.fullmatch(line):
            levels.append(("", float(found[1])))
        elif _SET.fullmatch(line):
            chains.append((place, tuple(replace(one, levels=tuple(levels)) for one in steps)))
        elif step := read_step(_PATTERNS, line):
            steps.append(step[1])
    return compute_features(tuple(chains), rows)
