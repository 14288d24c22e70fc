"""Columns that describe documents or queries in a report: titles, texts, categories.

Queries carry ids and no texts. A table that has them is matched by id here; an id that it does not hold is shown as an
id, and a table that holds none of the ids raises an error, because then the ids are of another kind.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankwise.errors import DataError
from rankwise.features.table import RawTable, as_table
from rankwise.report.compact import is_missing

LONGEST_TEXT = 300  # characters of a text in a report
_TEXT = "text"  # the column of a mapping from an id to one text
_TITLE = "title"


class Descriptions:
    """Texts by id, in named columns.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    """

    def __init__(self, columns: Sequence[str], rows: Mapping[str, tuple[Any, ...]]) -> None:
        self.columns = tuple(columns)
        self._rows = rows

    @classmethod
    def of(cls, source: Any, key: str, argument: str) -> "Descriptions":
        """Read a mapping or a table.

        Parameters
        ----------
        source : mapping, data frame, RawTable or None
            A mapping from an id to a text, or to a mapping of column to value; or a table with a column of ids.
        key : str
            The column of ids of a table.
        argument : str
            What the argument is called, for messages.

        Returns
        -------
        Descriptions
            The texts; no columns for None.
        """
        if source is None:
            return cls((), {})
        if isinstance(source, (str, os.PathLike)):
            raise DataError(
                f"{argument} must be a mapping or a data frame, got the path {source!r}: read_columns reads it"
            )
        return (
            cls._of_mapping(source, argument) if isinstance(source, Mapping) else cls._of_table(source, key, argument)
        )

    @classmethod
    def _of_mapping(cls, source: Mapping[Any, Any], argument: str) -> "Descriptions":
        nested = [isinstance(value, Mapping) for value in source.values()]
        if any(nested) and not all(nested):
            raise DataError(f"{argument} must map ids to texts or ids to columns, got both in one mapping")
        if not any(nested):
            return cls((_TEXT,), _by_id(((name, (value,)) for name, value in source.items()), argument))
        columns = list(dict.fromkeys(column for value in source.values() for column in value))
        rows = ((name, tuple(value.get(one) for one in columns)) for name, value in source.items())
        return cls(list(map(str, columns)), _by_id(rows, argument))

    @classmethod
    def _of_table(cls, source: Any, key: str, argument: str) -> "Descriptions":
        table: RawTable = as_table(source)
        if key not in table.names:
            raise DataError(
                f"{argument} must have a column {key!r} of ids, got the columns {', '.join(map(repr, table.names))}"
            )
        columns = [name for name in table.names if name != key]
        values = [table.column(name).values.tolist() for name in columns]
        # a column of a type that is no text and no number has no values
        known = [place for place, each in enumerate(values) if len(each) == table.n_rows]
        rows = zip(*(values[place] for place in known), strict=True) if known else [()] * table.n_rows
        names = table.identities(key).tolist()
        return cls([columns[place] for place in known], _by_id(zip(names, rows, strict=True), argument))

    def check(self, ids: Sequence[Any], argument: str) -> "Descriptions":
        """Raise an error if a table was given that describes none of the ids.

        Parameters
        ----------
        ids : sequence
            The ids of a comparison.
        argument : str
            What the argument is called.

        Returns
        -------
        Descriptions
            The same.
        """
        if self._rows and len(ids) and not any(str(name) in self._rows for name in ids):
            found, expected = next(iter(self._rows)), str(ids[0])
            raise DataError(f"{argument} must have ids such as {expected!r}, got ids such as {found!r}")
        return self

    def column(self, name: str, argument: str) -> dict[str, Any]:
        """One column as a dict from id to value, without missing values.

        Parameters
        ----------
        name : str
            The column.
        argument : str
            What the table is called.

        Returns
        -------
        dict of str to object
            The values by id.
        """
        place = self.place_of(name, argument)
        return {key: row[place] for key, row in self._rows.items() if _format(row[place]) is not None}

    def place_of(self, name: str, argument: str) -> int:
        """The place of a column.

        Parameters
        ----------
        name : str
            The column.
        argument : str
            What the table is called.

        Returns
        -------
        int
            Its place among the columns.
        """
        if name not in self.columns:
            known = ", ".join(map(repr, self.columns)) or "none"
            raise DataError(f"{argument} has no column {name!r}: its columns are {known}")
        return self.columns.index(name)

    def title(self, name: str | None, argument: str) -> int | None:
        """The place of the column of titles: the named one, one that is called title, or the first.

        Parameters
        ----------
        name : str or None
            The name that was given.
        argument : str
            What the table is called.

        Returns
        -------
        int or None
            Its place; None where there are no columns.
        """
        if name is not None:
            return self.place_of(name, argument)
        return next(
            (place for place, one in enumerate(self.columns) if one.lower() == _TITLE), 0 if self.columns else None
        )

    def texts(self, identity: Any) -> list[str | None] | None:
        """The texts of one id.

        Parameters
        ----------
        identity : object
            The id.

        Returns
        -------
        list of str or None
            One text per column, cut to some hundred characters; None for an id that is not described.
        """
        row = self._rows.get(str(identity))
        return None if row is None else [_format(value) for value in row]


def _by_id(rows: Iterable[tuple[Any, tuple[Any, ...]]], argument: str) -> dict[str, tuple[Any, ...]]:
    """The rows by the text of their ids; an id with two different rows raises an error, because one would be wrong."""
    found: dict[str, tuple[Any, ...]] = {}
    for identity, row in rows:
        name = str(identity)
        if name in found and list(map(_format, found[name])) != list(map(_format, row)):
            raise DataError(f"{argument} must describe every id once, got two different rows for {name!r}")
        found.setdefault(name, row)
    return found


def _format(value: Any) -> str | None:
    """A value as text; None for what is missing."""
    if is_missing(value):
        return None
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "\u2026"
