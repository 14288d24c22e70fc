"""The file of ``--columns``: which column of a table plays which role, and what the others are, as TOML.

``rankwise inspect --write-columns FILE`` writes what it decided, one line per column with the reason as a comment, for
people to edit. Commands that read tables take the file by ``--columns``.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankwise._atomic_write import writing
from rankwise.errors import FileFormatError, RankwiseError, in_one_line

KINDS = ("number", "boolean", "date", "category", "ignore")
_ROLES = ("qid", "label", "docid")
_KNOWN = (*_ROLES, "ignore", "grades", "kinds")
_HEAD = """\
# Columns of {source}, for --columns. Edit it: what is not here is decided by its values.
"""
_ABOUT_KINDS = """
# What the other columns are: "number", "boolean", "date", "category", or "ignore" to leave one out.
[kinds]
"""


def read_columns_file(path: Path) -> dict[str, Any]:
    """Read a file of columns.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        ``qid``, ``label``, ``docid``, ``ignore``, ``grades`` and ``kinds``, where the file has them. Columns whose kind
        is "ignore" are in ``ignore``.

    Raises
    ------
    FileFormatError
        If it is not TOML, or says something that is not known.
    """
    from rankwise.io.sources import read_text

    if not path.exists():
        raise RankwiseError(f"{path} does not exist: rankwise inspect DATA --write-columns {path} writes it")
    try:
        found = tomllib.loads(read_text(path).data.tobytes().decode())
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path} is not TOML: {in_one_line(error)}") from error
    unknown = [name for name in found if name not in _KNOWN]
    if unknown:
        raise FileFormatError(f"{path} has the entry {unknown[0]!r:.40}: known are {', '.join(_KNOWN)}")
    for name in _ROLES:
        if not isinstance(found.get(name, ""), str):
            raise FileFormatError(f"{path}: {name} is the name of a column, in quotes: found {found[name]!r:.40}")
    ignore, grades, kinds = found.get("ignore", []), found.get("grades", {}), found.get("kinds", {})
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise FileFormatError(f'{path}: ignore is a list of columns, such as ["url"]: found {ignore!r:.40}')
    if not isinstance(grades, dict) or not all(type(grade) in (int, float) for grade in grades.values()):
        raise FileFormatError(f"{path}: grades holds a number for each word of the label column")
    if not isinstance(kinds, dict):
        raise FileFormatError(f"{path}: kinds holds one of {', '.join(KINDS)} for each column")
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise FileFormatError(f"{path}: the kind of {name!r:.40} is one of {', '.join(KINDS)}: found {kind!r:.40}")
    left_out = [*ignore, *(name for name, kind in kinds.items() if kind == "ignore")]
    given = {name: found[name] for name in _ROLES if found.get(name)}
    if found.get("label") == "":
        given["label"] = None
    given |= {"ignore": list(dict.fromkeys(left_out)), "grades": {word: float(x) for word, x in grades.items()}}
    given["kinds"] = {name: kind for name, kind in kinds.items() if kind != "ignore"}
    return {name: value for name, value in given.items() if value or name == "label"}


def write_columns_file(
    path: Path, source: str, roles: Mapping[str, Any], kinds: Sequence[tuple[str, str, str]]
) -> None:
    """Write a file of columns.

    Parameters
    ----------
    path : Path
        The file, which is replaced.
    source : str
        The name of the table, for the first line.
    roles : mapping
        ``qid``, ``label``, ``docid`` and ``grades``, where they are known.
    kinds : sequence of (str, str, str)
        (column, kind, remark) of every other column.
    """
    lines = [_HEAD.format(source=_in_comment(source))]
    lines += [f"{name} = {_quoted(roles[name])}\n" for name in _ROLES if roles.get(name)]
    if roles.get("grades"):
        lines.append("\n[grades]\n")
        lines += [f"{_quoted(word)} = {grade:g}\n" for word, grade in roles["grades"].items()]
    if kinds:
        lines.append(_ABOUT_KINDS)
        lines += [f"{_quoted(name)} = {_quoted(kind)}  # {_in_comment(remark)}\n" for name, kind, remark in kinds]
    with writing(path) as part:
        Path(part).write_text("".join(lines), encoding="utf-8")


def _quoted(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON, and DEL beside."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _in_comment(text: str) -> str:
    """A text without the control characters that a comment may not hold."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)
