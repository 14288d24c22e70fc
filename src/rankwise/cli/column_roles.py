"""Which column of a table holds the query ids, the labels and the document ids: candidates by name and by values."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
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
        *("label", "grade", "relevance", "relevancelabel", "relevancegrade", "rel", "judgement", "judgment"),
        *("rating", "target", "gain"),
    ),
    "docid": (
        *("docid", "documentid", "document", "doc", "productid", "sku", "asin", "itemid", "articleid", "item"),
        *("product", "ean", "gtin", "isbn", "listingid", "url", "uri", "id"),
    ),
}
_MOST_GRADES = 11  # different labels that judgements may have
_BY_NAME, _BY_VALUES = 2, 1


class Candidate(NamedTuple):
    """A column that may play a role.

    Attributes
    ----------
    name : str
        The column.
    score : int
        How much speaks for it: its name counts 2, its values 1.
    why : str
        What speaks for it.
    """

    name: str
    score: int
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
    for name in table.names:
        plain = _plain(name)
        why = None if name in set(taken) else _of_values(table.column(name), role, owner)
        if why is None:
            continue
        telling, text = why
        score = _BY_NAME * (plain in names) + _BY_VALUES * telling
        if plain in names or (telling and role != "docid"):
            found.append((-score, names.index(plain) if plain in names else len(names), Candidate(name, score, text)))
    return [one for *_, one in sorted(found, key=lambda each: each[:2])]


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
    """The numbers of a column without gaps and negative ones, which stand for no judgement; None for words."""
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
