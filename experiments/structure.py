"""The shape of the package in numbers: modules, code lines, docstrings, comments, and modules with a single importer.

``python3 run.py python -m experiments.structure`` prints them; ``--importers`` lists the modules that exactly one other
module imports. A code line is a line that is neither blank, nor a comment, nor part of a docstring.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

import rankwise
from rankwise._tables import Table

SOURCES = Path(rankwise.__file__).parent


def modules() -> dict[str, Path]:
    """The modules of the package by their dotted names."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def line_counts(text: str) -> dict[str, int]:
    """Lines of a source by kind: code, docstring, comment, blank."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            documented |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    counts = {"code": 0, "docstring": 0, "comment": 0, "blank": 0}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip()
        kind = "docstring" if number in documented else "blank" if not plain else "code"
        counts["comment" if kind == "code" and plain.startswith("#") else kind] += 1
    return counts


def importers() -> dict[str, set[str]]:
    """For each module the other modules that import it, at the top or inside of functions."""
    known, found = modules(), defaultdict(set)
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                targets = [
                    inner if (inner := f"{node.module}.{alias.name}") in known else str(node.module)
                    for alias in node.names
                ]
            else:
                continue
            for target in targets:
                if target in known and target != name:
                    found[target].add(name)
    return found


def shape() -> dict[str, float]:
    """The figures."""
    sources = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    counts = [line_counts(text) for text in sources.values()]
    total = {kind: sum(one[kind] for one in counts) for kind in counts[0]}
    lines = sum(total.values())
    return {
        "modules": len(sources),
        "modules with one importer": sum(len(users) == 1 for users in importers().values()),
        "modules above 450 lines": sum(len(text.splitlines()) > 450 for text in sources.values()),
        "lines": lines,
        "code lines": total["code"],
        "docstrings, % of lines": round(100 * total["docstring"] / lines, 1),
        "comments, % of lines": round(100 * total["comment"] / lines, 1),
    }


if __name__ == "__main__":
    figures = shape()
    print(Table({"figure": list(figures), "value": list(figures.values())}))
    if "--importers" in sys.argv:
        for module, users in sorted(importers().items()):
            if len(users) == 1:
                print(f"{module} <- {next(iter(users))}")
