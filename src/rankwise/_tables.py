""":class:`Table`: named columns of equal length, the form of every result of more than one number.

A table prints as text, as HTML in notebooks and with colours on a terminal (:meth:`Table.rich`), and converts to plain
values and to pandas. Tables that also draw themselves are :class:`rankwise._figures.PlottedTable`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise._extras import require

if TYPE_CHECKING:
    import rich.table

# Longer tables show this many rows at either end; to_dict(), to_frame() and iteration give all rows.
_SHOWN_AT_EITHER_END = 10
_CUT = "..."


class Table:
    """Named columns of equal length, read-only.

    ``table["name"]`` is a column as an array, ``len(table)`` the number of rows, and iteration yields the rows as dicts
    of plain Python values. Numbers are shown to 4 decimals; those that 4 decimals would hide (tiny p-values, huge
    feature values) are shown to 4 significant digits.

    Parameters
    ----------
    columns : dict of str to array-like
        The columns by name. Texts and mixed values are kept as objects.
    title : str, default=""
        What the rows are, for the figure of a table that draws itself.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    title : str
        As given.

    Examples
    --------
    >>> table = Table({"measure": ["nDCG@10", "AP"], "mean": [0.5, 0.25]})
    >>> table
    measure    mean
    nDCG@10  0.5000
    AP       0.2500
    >>> table["mean"]
    array([0.5 , 0.25])
    >>> [row["measure"] for row in table if row["mean"] > 0.3]
    ['nDCG@10']
    """

    __slots__ = ("_columns", "title")

    def __init__(self, columns: Mapping[str, Any], title: str = "") -> None:
        # columns are copied and made read-only: a table may be shared and cached without surprises
        self._columns = {str(name): _as_column(name, values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"the columns of a table have the same length: found {lengths}")
        self.title = title

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Make a table from rows.

        Parameters
        ----------
        names : sequence of str
            The names of the columns.
        rows : iterable of sequence
            The rows, each with one value per column; there may be none.

        Returns
        -------
        Table
            The table.
        """
        listed = list(rows)
        return cls({name: [row[place] for row in listed] for place, name in enumerate(names)})

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column of this name, as a read-only array."""
        try:
            return self._columns[name]
        except KeyError:
            raise DataError(f"there is no column {name!r}: the columns are {', '.join(self.columns)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts of plain Python values."""
        # tolist gives Python numbers, which JSON and format strings accept
        lists = [values.tolist() for values in self._columns.values()]
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*lists, strict=True))

    def __eq__(self, other: object) -> bool:
        """Whether another table has the same columns with the same values; NaN equals NaN here."""
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and all(_same(self[name], other[name]) for name in self.columns)

    __hash__ = None  # type: ignore[assignment]

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Restore a pickled table of this class, or of a class with further slots."""
        for name, value in state[1].items():
            setattr(self, name, value)
        for column in self._columns.values():
            column.flags.writeable = False  # arrays come writable out of a pickle

    def to_dict(self) -> dict[str, list[Any]]:
        """Convert to a dict of column name to list of plain Python values.

        Returns
        -------
        dict
            The columns as lists.
        """
        return {name: values.tolist() for name, values in self._columns.items()}

    def to_frame(self) -> Any:
        """Convert to a pandas ``DataFrame`` with the same columns.

        Returns
        -------
        pandas.DataFrame
            A copy of the columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return require("pandas").DataFrame({name: values.copy() for name, values in self._columns.items()})

    # ------------------------------------------------------------------------------------------- showing it

    def __repr__(self) -> str:
        """The table as text, long ones without their middle."""
        if not self._columns:
            return "Table without columns"
        shown = []
        for name, cells in self._cells().items():
            width = max(map(len, [name, *cells]))
            right = self._is_number(name)
            shown.append([text.rjust(width) if right else text.ljust(width) for text in [name, *cells]])
        lines = ["  ".join(line).rstrip() for line in zip(*shown, strict=True)]
        return "\n".join([*lines, f"({len(self):,} rows)"] if self._is_cut else lines)

    def _repr_html_(self) -> str:
        """The table as HTML, for notebooks."""

        def row(tag: str, cells: Sequence[str]) -> str:
            sides = ("right" if self._is_number(name) else "left" for name in self.columns)
            boxes = (
                f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
                for side, cell in zip(sides, cells, strict=True)
            )
            return f"<tr>{''.join(boxes)}</tr>"

        body = "\n".join(row("td", cells) for cells in zip(*self._cells().values(), strict=True))
        note = f"\n<p>{len(self):,} rows</p>" if self._is_cut else ""
        return f"<table>\n<thead>{row('th', self.columns)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>{note}"

    def rich(self, title: str | None = None) -> "rich.table.Table":
        """Convert to a table of the package rich, for a terminal; it shows every row.

        Parameters
        ----------
        title : str, default=None
            A title above the table.

        Returns
        -------
        rich.table.Table
            The table to print on a ``rich.console.Console``.
        """
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape as escape_markup
        from rich.table import Table as RichTable

        drawn = RichTable(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for name in self.columns:
            if self._is_number(name):
                drawn.add_column(escape_markup(name), justify="right", no_wrap=True)
            else:
                drawn.add_column(escape_markup(name), overflow="fold")  # a long text may take a second line
        for cells in zip(*self._cells(every=True).values(), strict=True):
            drawn.add_row(*map(escape_markup, cells))
        return drawn

    @property
    def _is_cut(self) -> bool:
        """Whether the text form leaves out rows of the middle."""
        return len(self) > 2 * _SHOWN_AT_EITHER_END + 1  # cutting a single row out would save nothing

    def _cells(self, every: bool = False) -> dict[str, list[str]]:
        """The texts of each column; the middle of a long column is one cell with dots."""
        if every or not self._is_cut:
            return {name: list(map(_text, values.tolist())) for name, values in self._columns.items()}
        end = _SHOWN_AT_EITHER_END
        return {
            name: [*map(_text, values[:end].tolist()), _CUT, *map(_text, values[-end:].tolist())]
            for name, values in self._columns.items()
        }

    def _is_number(self, name: str) -> bool:
        """Whether a column holds numbers, which are aligned to the right."""
        return self._columns[name].dtype.kind in "iuf"


def _as_column(name: str, values: Any) -> NDArray[Any]:
    """Convert to a read-only array of numbers or booleans, or of objects for anything else."""
    if isinstance(values, np.ndarray):
        column = values.astype(object) if values.dtype.kind in "US" else values.copy()
    else:
        items = list(values)
        # decided by the types and not by NumPy, which would turn [1, "a"] into texts and [True, 2] into numbers
        kinds = set(map(type, items))
        numbers = all(issubclass(kind, (int, float, np.number)) and kind is not bool for kind in kinds)
        if items and (numbers or kinds <= {bool, np.bool_}):
            column = np.asarray(items)
        else:
            column = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):  # one by one: a tuple is a value, not a row
                column[place] = item
    if column.ndim != 1:
        raise DataError(f"column {name!r} of a table has one dimension: found shape {column.shape}")
    column.flags.writeable = False
    return column


def _same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two columns have equal values; NaN equals NaN here."""
    # a missing value in both tables is no difference
    if first.dtype.kind == "f" and second.dtype.kind == "f":
        return bool(np.array_equal(first, second, equal_nan=True))
    return bool(first.tolist() == second.tolist())


def _text(value: Any) -> str:
    """One cell as text: floats to 4 decimals, or to 4 significant digits where decimals would hide the number."""
    if value is None:
        return ""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    # 0.0000 would hide a small p-value, and 4 decimals of a huge number are noise
    hidden = 0 < abs(value) < 5e-5 or abs(value) >= 1e7
    return f"{value:.3e}" if hidden else f"{value:.4f}"
