"""Columns of a table: which may hold the query ids, labels and document ids, and the file of ``--columns``.

:func:`candidates` finds columns for a role by name and by values. ``rankwise inspect --write-columns FILE`` writes what
it decided as TOML, one line per column with the reason as a comment, for people to edit. Commands that read tables take
the file by ``--columns``.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._files import writing
from rankwise.errors import DataError, FileFormatError, RankwiseError, in_one_line
from rankwise.queries.checks import plural

if TYPE_CHECKING:
    from rankwise.features.table import Column, RawTable

# Names without case and punctuation, the most telling ones first.
NAMES = {
    "qid": (
        *("qid", "queryid", "searchid", "topicid", "requestid", "query", "search", "searchterm", "searchquery"),
        *("userquery", "keyword", "keywords", "topic", "request", "sessionid", "session", "term"),
    ),
    "label": (
        *("label", "grade", "relevance", "relevancelabel", "relevancegrade", "rel", "judgment", "judgement"),
        *("rating", "target", "gain"),
    ),
    "docid": (
        *("docid", "documentid", "document", "doc", "productid", "sku", "asin", "itemid", "articleid", "item"),
        *("product", "ean", "gtin", "isbn", "listingid", "url", "uri", "id"),
    ),
}
_MOST_GRADES = 11  # different labels that judgments may have


class Candidate(NamedTuple):
    """A column that may play a role.

    Attributes
    ----------
    name : str
        The column.
    why : str
        What speaks for it.
    """

    name: str
    why: str


def candidates(table: "RawTable", role: str, taken: Iterable[str], owner: NDArray[np.int64] | None) -> list[Candidate]:
    """Find the columns that may play a role.

    Parameters
    ----------
    table : RawTable
        The table.
    role : {"qid", "label", "docid"}
        The role.
    taken : iterable of str
        Columns with another role, and those to ignore.
    owner : ndarray of int64, shape (n_rows,), or None
        The query of each row, where it is known.

    Returns
    -------
    list of Candidate
        The best first.
    """
    names, found = NAMES[role], []
    for name in (name for name in table.names if name not in set(taken)):
        plain, why = _plain(name), _of_values(table.column(name), role, owner)
        if why is None:
            continue
        telling, text = why
        if plain in names or (telling and role != "docid"):
            # the name speaks louder than the values
            order = plain not in names, not telling, names.index(plain) if plain in names else 0
            found.append((order, Candidate(name, text)))
    return [one for _, one in sorted(found, key=lambda each: each[0])]


def is_called_id(name: str) -> bool:
    """Whether a column has the name of an identifier."""
    return _plain(name).endswith("id") or _plain(name) in NAMES["docid"]


def _plain(name: str) -> str:
    """A name without case and punctuation."""
    return re.sub(r"[\W_]", "", name).lower()


def _of_values(column: "Column", role: str, owner: NDArray[np.int64] | None) -> tuple[bool, str] | None:
    """(whether the values speak for a role, what they are), or None where they exclude it."""
    if column.stored == "other" or not len(column.values):
        return None
    code = _codes(column)
    rows, different = len(code), len(np.unique(code))
    missing = int(column.missing.sum())
    counted = f"{plural(different, 'value')} in {plural(rows, 'row')}"
    if role == "qid":
        if missing or different < 2 or different > rows / 2:
            return None
        together = int((code[1:] != code[:-1]).sum()) + 1 == different
        return together, counted + (", rows together" if together else "")
    if role == "docid":
        return None if missing or owner is None or different < 2 else (True, counted)
    if different < 2 or different - bool(missing) > _MOST_GRADES:
        return None
    within = owner is not None and len(np.unique(np.column_stack([owner, code]), axis=0)) > len(np.unique(owner))
    if not within:
        return None
    grades = _numbers(column)
    whole = grades is not None and bool((grades == np.floor(grades)).all()) and len(np.unique(grades)) > 2
    levels = "different words" if grades is None else f"numbers from {grades.min():g} to {grades.max():g}"
    return whole, f"{different - bool(missing)} {levels}"


def _codes(column: "Column") -> NDArray[np.int64]:
    """A whole number for every row, equal where the values are."""
    values = column.values
    if column.stored == "text":
        values = np.array(["" if text is None else text for text in values.tolist()], dtype=str)
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64).ravel()


def _numbers(column: "Column") -> NDArray[np.float64] | None:
    """The numbers of a column without gaps and negative ones, which stand for no judgment; None for words."""
    from rankwise.features.columns import read_numbers

    try:
        values = np.asarray(read_numbers(column, "number", {}), dtype=np.float64)
    except DataError:
        return None
    values = values[values >= 0]
    return values if len(values) else None


def owners(table: "RawTable", qid: str) -> NDArray[Any]:
    """The query of each row."""
    from rankwise.queries.grouping import number_by_appearance

    return np.asarray(number_by_appearance(table.identities(qid))[0])


# ------------------------------------------------------------------------------------------- the file of --columns

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
        raise RankwiseError(f"{path} does not exist: rankwise inspect DATA --write-columns {path} creates it")
    try:
        found = tomllib.loads(read_text(path).data.tobytes().decode())
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path} is not TOML: {in_one_line(error)}") from error
    unknown = [name for name in found if name not in _KNOWN]
    if unknown:
        raise FileFormatError(f"{path}: entries must be among {', '.join(_KNOWN)}, got {unknown[0]!r:.40}")
    for name in _ROLES:
        if not isinstance(found.get(name, ""), str):
            raise FileFormatError(f"{path}: {name} must be the name of a column, in quotes, got {found[name]!r:.40}")
    ignore, grades, kinds = found.get("ignore", []), found.get("grades", {}), found.get("kinds", {})
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise FileFormatError(f'{path}: ignore must be a list of columns, such as ["url"], got {ignore!r:.40}')
    if not isinstance(grades, dict) or not all(type(grade) in (int, float) for grade in grades.values()):
        raise FileFormatError(f"{path}: grades must have a number for each word of the label column")
    if not isinstance(kinds, dict):
        raise FileFormatError(f"{path}: kinds must have one of {', '.join(KINDS)} for each column")
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise FileFormatError(
                f"{path}: the kind of {name!r:.40} must be one of {', '.join(KINDS)}, got {kind!r:.40}"
            )
    left_out = [*ignore, *(name for name, kind in kinds.items() if kind == "ignore")]
    given = {name: found[name] for name in _ROLES if found.get(name)}
    if found.get("label") == "":
        given["label"] = None
    given |= {"ignore": list(dict.fromkeys(left_out)), "grades": {word: float(x) for word, x in grades.items()}}
    given["kinds"] = {name: kind for name, kind in kinds.items() if kind != "ignore"}
    return {name: value for name, value in given.items() if value or name == "label"}


def reading_words(
    reads: Mapping[str, Any], columns: Path | None, left_out: Iterable[str] = (), *, roles: bool = True
) -> list[str]:
    """The options of a command that read a table in this way.

    Parameters
    ----------
    reads : dict
        What the options mean, see :func:`rankwise.cli.reading.options`.
    columns : Path or None
        The file of ``--columns``; what it says is not said again.
    left_out : iterable of str
        Further columns to leave out.
    roles : bool, default=True
        Whether to name the columns of ids and labels.

    Returns
    -------
    list of str
        The words, before they are quoted for a shell.
    """
    said = {} if columns is None else read_columns_file(columns)
    words = [] if columns is None else ["--columns", str(columns)]
    for role in ("qid", "label", "docid") if roles else ():
        if reads.get(role, role) not in (said.get(role, role), None):
            words += [f"--{role}", reads[role]]
    every = dict.fromkeys([*reads.get("ignore", ()), *left_out])
    ignored = [name for name in every if name not in said.get("ignore", ())]
    if ignored:
        words += ["--ignore", ",".join(f'"{name}"' if "," in name else name for name in ignored)]
    if reads.get("grades") and reads["grades"] != said.get("grades"):
        words += ["--labels", ",".join(f"{word}={grade:g}" for word, grade in reads["grades"].items())]
    for name in ("unjudged", "missing"):
        if reads[name] != "error":
            words += [f"--{name}", reads[name]]
    return words


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
    lines += [f"{name} = {_quote(roles[name])}\n" for name in _ROLES if roles.get(name)]
    if roles.get("grades"):
        lines.append("\n[grades]\n")
        lines += [f"{_quote(word)} = {grade:g}\n" for word, grade in roles["grades"].items()]
    if kinds:
        lines.append(_ABOUT_KINDS)
        lines += [f"{_quote(name)} = {_quote(kind)}  # {_in_comment(remark)}\n" for name, kind, remark in kinds]
    with writing(path) as part:
        Path(part).write_text("".join(lines), encoding="utf-8")


def _quote(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON, and DEL beside."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _in_comment(text: str) -> str:
    """A text without the control characters that a comment may not hold."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)
