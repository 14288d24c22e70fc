"""The shape of the package in numbers: modules, code lines, docstrings, and how many concepts a reader meets.

``python3 run.py python -m experiments.structure`` prints them with the values from before the concepts were reduced,
and the targets; ``--names`` lists what is counted, ``--importers`` the modules that exactly one other module imports. A
code line is a line that is neither blank, nor a comment, nor part of a docstring. The walks are those of
``experiments.walk``.
"""

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import rankwise
from experiments.walk import whole_walks

SOURCES = Path(rankwise.__file__).parent
CONTAINERS = {"ChunkedQueries", "Parts"}
BOTH = {"ListNet"}  # the loss and the ranker of one paper
_PARTICIPLE = re.compile(
    r"_*(?!(need|feed|seed|speed|embed|exceed|proceed|succeed)(_|$))([a-z]+ed|begun|brought|built|chosen|drawn|found|"
    r"frozen|given|held|kept|known|made|meant|mistaken|seen|sent|shown|spent|taken|told|unknown|written)(_|$)"
)

# (before the concepts were reduced, at most); None: to become less, without a target
GOALS: dict[str, tuple[int, int | None]] = {
    "code lines": (51_427, 47_427),
    "isinstance lines with ChunkedQueries or Parts": (45, 8),
    "methods of Ranker": (46, 26),
    "lines of Ranker": (642, 400),
    "names in rankwise.__all__": (114, 54),
    "class names that stand for two things": (11, 0),
    'messages with ": found"': (449, 0),
    "functions named by a participle": (411, None),
    '"so that"': (223, None),
    "modules with the name of a public function": (8, 0),
    "read_letor, RidgeRanker.fit, evaluate: files": (24, 20),
    "read_letor, RidgeRanker.fit, evaluate: calls": (2_399, 1_300),
    "read_letor, RidgeRanker.fit, evaluate: bounces": (105, None),
    "read_letor, AutoRanker.fit (linear part): files": (35, None),
    "read_letor, AutoRanker.fit (linear part): calls": (28_120, None),
    "read_letor, AutoRanker.fit (linear part): bounces": (2_589, None),
    "CSV, rankwise train, rankwise certify: files": (62, 45),
    "CSV, rankwise train, rankwise certify: calls": (7_403, None),
    "CSV, rankwise train, rankwise certify: bounces": (180, None),
    "click log, clicks.value: files": (19, None),
    "click log, clicks.value: calls": (2_792, None),
    "click log, clicks.value: bounces": (4, None),
    "POST /v1/rank: files": (7, None),
    "POST /v1/rank: calls": (30, None),  # or 29, if the thread of the log is awake already
    "POST /v1/rank: bounces": (0, None),
}


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
    known, found = modules(), defaultdict[str, set[str]](set)
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


# ------------------------------------------------------------------------------------------- concepts


def concepts() -> dict[str, list[str]]:
    """What is to become less, place by place."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    nodes = [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]
    homes = defaultdict[str, list[str]](list)
    for name, node in nodes:
        if isinstance(node, ast.ClassDef):
            homes[node.name].append(name)
    ranker = next(kind for kind in rankwise.RidgeRanker.__mro__ if kind.__name__ == "Ranker")
    lines = inspect.getsourcelines(ranker)[0]
    (body,) = ast.parse("".join(lines)).body
    functions = set(_public_functions())
    return {
        "isinstance lines with ChunkedQueries or Parts": sorted(
            {f"{name}:{node.lineno}" for name, node in nodes if _tells_containers_apart(node)}
        ),
        "methods of Ranker": [one.name for one in ast.iter_child_nodes(body) if isinstance(one, ast.FunctionDef)],
        "lines of Ranker": lines,
        "names in rankwise.__all__": list(rankwise.__all__),
        "class names that stand for two things": [
            f"{name}: {', '.join(where)}" for name, where in homes.items() if len(where) > 1 and name not in BOTH
        ],
        'messages with ": found"': [
            f"{name}:{node.lineno}"
            for name, tree in trees.items()
            for node in _strings(tree)
            if ": found" in str(node.value)
        ],
        "functions named by a participle": [
            f"{name}.{node.name}"
            for name, node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and _PARTICIPLE.match(node.name)
            and not any("property" in ast.unparse(one) for one in node.decorator_list)
        ],
        '"so that"': [
            f"{name}:{text[: one.start()].count(chr(10)) + 1}"
            for name, text in texts.items()
            for one in re.finditer(r"so[\s#]+that", text)
        ],
        # a file of cli/ has the name of its command
        "modules with the name of a public function": [
            name for name in trees if name.rpartition(".")[2] in functions and not name.startswith("rankwise.cli.")
        ],
    }


def _tells_containers_apart(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "isinstance":
        return False
    return bool(CONTAINERS & set(re.findall(r"\w+", ast.unparse(node.args[1]))))


def _strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that are not docstrings."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and not isinstance(node, ast.Expr):
                yield child


def _public_functions() -> Iterator[str]:
    """The names of the functions that the package and its public subpackages offer."""
    for name in rankwise.__all__:
        value = getattr(rankwise, name)
        if isinstance(value, FunctionType):
            yield name
        elif isinstance(value, ModuleType):
            inside = getattr(value, "__all__", None) or [one for one in dir(value) if one[0] != "_"]
            found = {one: getattr(value, one) for one in inside}
            yield from (
                one
                for one, value in found.items()
                if isinstance(value, FunctionType) and value.__module__.startswith("rankwise")
            )


def counts() -> dict[str, float]:
    """Every figure."""
    found = shape() | {name: len(places) for name, places in concepts().items()}
    for call, walk in whole_walks().items():
        found |= {f"{call}: files": len(walk.files), f"{call}: calls": walk.calls, f"{call}: bounces": walk.bounces}
    return found


if __name__ == "__main__":
    print(f"{'figure':50} {'before':>8} {'now':>8} {'at most':>8}")
    for figure, now in counts().items():
        before, target = GOALS.get(figure, ("", None))
        print(f"{figure:50} {before:>8} {now:>8} {'' if target is None else target:>8}")
    if "--names" in sys.argv:
        for name, places in concepts().items():
            print(f"\n{name}\n  " + "\n  ".join(map(str.rstrip, places)))
    if "--importers" in sys.argv:
        for module, users in sorted(importers().items()):
            if len(users) == 1:
                print(f"{module} <- {next(iter(users))}")
