"""The ranker as a function of plain Python or C, which needs nothing else."""

import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.checks import Floats
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.c_names import reason_against
from rankwise.exports.formula import Formula, WeightedSum

Vector = NDArray[np.float64]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLES = ("FEATURES", "_WEIGHTS", "_STEPS")  # of the module in Python, beside the function


@dataclass(frozen=True, kw_only=True)
class Python(Target):
    """``NAME.py``: a function ``NAME(x)`` of a sequence of features, and their names as ``FEATURES``."""

    name = "python"
    title = "Python without dependencies"
    arithmetic = "float64, run by Python"

    def write(self, formula: Formula, called: str) -> Written:
        _check_python_name(called)
        value = "v if v - v == 0.0 else 0.0" if formula.missing == "zero" else "v"
        if isinstance(formula, WeightedSum):
            own = formula.raw()
            table = f"_WEIGHTS = (\n{_rows(own.weight)})\n"
            loop = ["for w, v in zip(_WEIGHTS, x):", f"    s += w * ({value})"]
            if formula.missing != "zero":
                loop[1] = "    s += w * v"
            constant = own.constant
        else:
            steps = zip(formula.feature.tolist(), formula.threshold.tolist(), formula.alpha.tolist(), strict=True)
            rows = "".join(f"    ({place}, {threshold!r}, {alpha!r}),\n" for place, threshold, alpha in steps)
            table = f"_STEPS = (  # feature, threshold, alpha\n{rows})\n"
            loop = ["for f, t, a in _STEPS:", "    v = x[f]", f"    s += a if ({value}) > t else 0.0"]
            constant = formula.constant
        names = "".join(f"    {name!a},\n" for name in formula.names)
        width = len(formula.names)
        body = "\n".join(f"    {line}" for line in loop)
        text = (
            f"FEATURES = (\n{names})\n{table}\n\n"
            f"def {called}(x):\n"
            f'    """The score of a document whose features, in the order of FEATURES, are x."""\n'
            f"    if len(x) != {width}:\n"
            f'        raise ValueError("expected {width} features, found %d" % len(x))\n'
            f"    s = {constant!r}\n{body}\n    return s\n"
        )
        return Written({f"{called}.py": text}, (_missing(formula),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run in a namespace of its own; the text is the one that :meth:`write` made a moment ago."""
        ((file, text),) = files.items()
        room: dict[str, Any] = {"__builtins__": {"len": len, "zip": zip, "ValueError": ValueError}}
        exec(text, room)
        function = room[file.removesuffix(".py")]
        return np.array([function(row) for row in np.asarray(X, dtype=np.float64).tolist()], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class C(Target):
    """``NAME.c``: ``double NAME(const double *x)``, and the names of features as ``NAME_features[NAME_width]``."""

    name = "c"
    title = "C without dependencies"
    arithmetic = "float64, feature after feature (C without contraction)"

    def write(self, formula: Formula, called: str) -> Written:
        reason = reason_against(called)
        if reason is not None:
            raise RankwiseError(f"{called!r:.60} cannot be the name of a function of C: {reason}")
        value = "(v - v == 0.0 ? v : 0.0)" if formula.missing == "zero" else "v"
        if isinstance(formula, WeightedSum):
            own = formula.raw()
            tables = f"static const double {called}_weight[] = {{\n{_rows(own.weight)}}};\n"
            count, constant = len(own.weight), own.constant
            loop = ["double v = x[i];", f"s += {called}_weight[i] * {value};"]
        else:
            count, constant = len(formula.alpha), formula.constant
            feature, threshold, alpha = (
                values if count else [0] for values in (formula.feature, formula.threshold, formula.alpha)
            )
            tables = (
                f"static const int {called}_feature[] = {{\n{_rows(feature)}}};\n"
                f"static const double {called}_threshold[] = {{\n{_rows(threshold)}}};\n"
                f"static const double {called}_alpha[] = {{\n{_rows(alpha)}}};\n"
            )
            loop = [
                f"double v = x[{called}_feature[i]];",
                f"if ({value} > {called}_threshold[i]) s += {called}_alpha[i];",
            ]
        names = "".join(f"    {c_text(name)},\n" for name in formula.names)
        width = len(formula.names)
        body = "\n".join(f"        {line}" for line in loop)
        text = (
            f"/* The score of a document with {width} features in the order of {called}_features; a higher one comes\n"
            f"   first. Compile without -ffast-math, and with -ffp-contract=off for the same bits everywhere. */\n\n"
            f"const int {called}_width = {width};\n"
            f"const char *const {called}_features[] = {{\n{names}}};\n\n{tables}\n"
            f"double {called}(const double *x)\n{{\n    double s = {constant!r};\n    int i;\n"
            f"    for (i = 0; i < {count}; i++) {{\n{body}\n    }}\n    return s;\n}}\n"
        )
        return Written({f"{called}.c": text}, (_missing(formula),))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """The loop of the text over its own tables, without a compiler."""
        ((file, content),) = files.items()
        called, text, rows = file.removesuffix(".c"), str(content), np.asarray(X, dtype=np.float64)
        if "v - v == 0.0" in text:
            rows = np.where(np.isfinite(rows), rows, 0.0)
        total = np.full(len(rows), float(text.split("double s = ")[1].split(";")[0]))
        if f" {called}_weight[]" in text:
            for place, weight in enumerate(_table(text, f"{called}_weight")):
                total += weight * rows[:, place]
            return total
        count = int(text.split("i < ")[1].split(";")[0])
        steps = [_table(text, f"{called}_{name}")[:count] for name in ("feature", "threshold", "alpha")]
        for feature, threshold, alpha in zip(*steps, strict=True):
            total += np.where(rows[:, int(feature)] > threshold, alpha, 0.0)
        return total


def c_text(name: str) -> str:
    """A text of C: ASCII, every other byte of its UTF-8 by three octal digits, no trigraph."""
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in name.encode()) + '"'


def _check_python_name(called: str) -> None:
    """Refuse a name that Python, or the module that is written, uses for something else."""
    if not _IDENTIFIER.fullmatch(called):
        raise RankwiseError(f"the name of a function of Python is letters, digits and _: found {called!r:.60}")
    # a function called len would call itself in place of the built-in one
    if iskeyword(called) or hasattr(builtins, called) or called in _TABLES or re.fullmatch("__.*__", called):
        raise RankwiseError(f"{called!r:.60} cannot be the name of a function: Python uses it otherwise")


def _rows(values: Sequence[float] | NDArray[Any]) -> str:
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    return "".join(f"    {value!r},\n" for value in listed)


def _table(text: str, name: str) -> list[float]:
    body = text.split(f" {name}[] = {{")[1].split("}")[0]
    return [float(word) for word in body.replace(",", " ").split()]


def _missing(formula: Formula) -> str:
    if formula.missing == "zero":
        return "NaN and infinities count 0, as the ranker's missing='zero' has it"
    return "NaN is not looked for: a weighted sum with it is NaN, and it is above no threshold"
