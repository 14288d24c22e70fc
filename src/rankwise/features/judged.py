"""Judged queries from files of any kind: tables of plain numbers as they are, all others through a FeatureBuilder.

:func:`read_or_open` reads what holds numbers as queries, and opens a table with words, dates or gaps as it is.
:func:`new_builder` makes the builder for such a table, from the same options that readers take. Every command and
:func:`rankwise.compare` read through these two, so a table that one of them takes is taken by all.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rankwise.errors import DataError, FileFormatError
from rankwise.features.table import RawTable, read_columns
from rankwise.features.texts import number_of
from rankwise.io.any_file import kind_of
from rankwise.io.sources import open_text
from rankwise.io.tables.rows import is_arrow
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder

T = TypeVar("T")
Options = Mapping[str, Any]
ROLES = ("qid", "label", "docid")


def open_table(path: str | os.PathLike[str]) -> RawTable | None:
    """Open a table with columns of any kind.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    table : RawTable or None
        None for files that are no tables, and for streams, which are read once.
    """
    name = os.fspath(path)
    if not os.path.isfile(name) or kind_of(name) != "table":
        return None
    if not is_arrow(name):
        with open_text(name) as source:
            if not source.is_table:
                return None
    return read_columns(name)


def read_or_open(path: str | os.PathLike[str], options: Options, read: Callable[[], T]) -> T | RawTable:
    """Read queries; a table with texts, dates or gaps, or with columns of given kinds, is opened as it is.

    Parameters
    ----------
    path : path
        The file.
    options : mapping
        ``qid``, ``label``, ``docid``, ``ignore`` and ``kinds``, where they are known.
    read : callable
        Reads the file, if it holds numbers.

    Returns
    -------
    data : object or RawTable
        What was read; the table if a FeatureBuilder is needed.
    """
    if any(kind != "number" for kind in options.get("kinds", {}).values()):
        table = open_table(path)
        if table is not None:
            return table
    try:
        return read()
    except (DataError, FileFormatError):
        table = open_table(path)
        if table is None or plain_numbers(table, options):
            raise
        return table


def plain_numbers(table: RawTable, options: Options) -> bool:
    """Whether no FeatureBuilder could help: columns with a role are missing, or all others hold numbers without gaps.

    Parameters
    ----------
    table : RawTable
        The table.
    options : mapping
        As for :func:`read_or_open`.

    Returns
    -------
    bool
        Whether that is so.
    """
    known = with_roles(options)
    roles = [known["qid"], *([known["label"]] if known["label"] else [])]
    if any(name not in table.names for name in (*roles, *known.get("ignore", ()))):
        return True
    taken = {*roles, known.get("docid") or "docid", *known.get("ignore", ())}
    return all(_is_plain(table, name) for name in table.names if name not in taken)


def _is_plain(table: RawTable, name: str) -> bool:
    """Whether a column holds numbers without gaps."""
    column = table.column(name)
    if column.stored == "text":
        return all(text is not None and number_of(text, column.decimal) is not None for text in column.values.tolist())
    return column.stored in ("number", "boolean") and not column.missing.any()


def with_roles(options: Options) -> dict[str, Any]:
    """The options with the default names of the columns of query ids and labels."""
    return {"qid": "qid", "label": "label", **options}


def new_builder(options: Options) -> "FeatureBuilder":
    """A FeatureBuilder as the options say.

    Parameters
    ----------
    options : mapping
        As for :func:`read_or_open`; also ``grades``, ``unjudged`` and ``missing``. Gaps that are filled by another rule
        than an error are left to that rule.

    Returns
    -------
    builder : FeatureBuilder
        The builder, which is not fitted.
    """
    known = with_roles(options)
    from rankwise.features.builder import FeatureBuilder  # which imports scikit-learn

    return FeatureBuilder(
        qid=known["qid"],
        label=known["label"],
        docid=known.get("docid"),
        columns=known.get("kinds"),
        ignore=known.get("ignore", ()),
        grades=known.get("grades"),
        unjudged=known.get("unjudged", "error"),
        missing="median" if known.get("missing", "error") == "error" else "keep",
    )


def apply_builder(
    builder: "FeatureBuilder", table: RawTable, path: str | os.PathLike[str], options: Options, *, judged: bool = True
) -> Queries:
    """Apply the builder of a model; columns with a role are the model's unless the options name others.

    Parameters
    ----------
    builder : FeatureBuilder
        The builder.
    table : RawTable
        The table.
    path : path
        Its file, for messages.
    options : mapping
        As for :func:`new_builder`.
    judged : bool, default=True
        Whether labels are read.

    Returns
    -------
    queries : Queries
        The queries.
    """
    twin = with_options(builder, options)
    label = twin.roles_["label"]
    try:
        if judged and label is not None and label not in table.names:
            raise DataError(f"there is no column {label!r}, which held the labels in training: give label='its name'")
        return twin._transform(table, judged=judged)
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from error


def with_options(builder: "FeatureBuilder", options: Options) -> "FeatureBuilder":
    """A copy of a fitted builder, whose columns with a role are its own unless the options name others."""
    twin = builder.as_fitted()
    twin.roles_ = {**builder.roles_, **{role: options[role] for role in ROLES if role in options}}
    twin.grades = options.get("grades", twin.grades)
    if options.get("unjudged", "error") != "error":
        twin.unjudged = options["unjudged"]
    return twin
