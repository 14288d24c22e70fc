"""Every message of the package on one page, to be read from top to bottom.

``python3 run.py python -m experiments.messages [FOLDER ...]`` prints the texts of errors, warnings and the help of
commands, module by module with their lines; values that are filled in stand in braces. A folder is one of the
package, such as ``rankers``. Texts of other calls that reach people, such as lines of the shell, are not listed.
"""

import ast
import sys
from collections.abc import Iterator

from experiments.structure import modules

HELP = {"Option", "Argument", "command"}


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every message of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found = node.exc.args
        elif isinstance(node, ast.Call) and called(node) in ("warn", "say", "echo", "fail"):
            found = node.args[:1]
        elif isinstance(node, ast.Call) and called(node) in HELP:
            found = [word.value for word in node.keywords if word.arg == "help"] + node.args[-1:]
        else:
            continue
        for value in found:
            text = text_of(value)
            if " " in text:
                yield value.lineno, text


def called(node: ast.Call) -> str:
    """The last part of the name of the function that is called."""
    return ast.unparse(node.func).rpartition(".")[2]


def text_of(value: ast.expr) -> str:
    """The text of a string, with values in braces; empty for anything else."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    if isinstance(value, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"  # type: ignore[attr-defined]
            for part in value.values
        )
    return ""


if __name__ == "__main__":
    folders = tuple(f"rankwise.{folder.strip('/').replace('/', '.')}" for folder in sys.argv[1:]) or ("rankwise",)
    for name, path in modules().items():
        if name.startswith(folders):
            for line, text in messages(ast.parse(path.read_text(encoding="utf-8"))):
                print(f"{name}:{line}: {text}")
