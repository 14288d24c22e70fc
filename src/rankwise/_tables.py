""":class:`Table`: named columns of equal length, the form of every result of more than one number.

A table prints as text, as HTML in notebooks and with colors on a terminal (:meth:`Table.rich`), and converts to plain
values, to pandas, to Markdown and to LaTeX. Tables that also draw themselves are
:class:`rankwise._figures.PlottedTable`.

Whatever else notebooks show is put together here, too: :func:`notebook_html` gives all of it one style, and
:class:`ShownAsFacts` shows an object as a short table of what it knows.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise.errors import DataError

if TYPE_CHECKING:
    import rich.table

# Longer tables show this many rows at either end; to_dict(), to_frame() and iteration give all rows.
_SHOWN_AT_EITHER_END = 10
_CUT = "..."


class Table:
    """Named columns of equal length, read-only.

    ``table["name"]`` is a column as an array, ``len(table)`` the number of rows, and iteration yields the rows as dicts
    of plain Python values. Numbers are shown to 4 decimals; those that 4 decimals would hide (tiny p-values, huge
    feature values) are shown to 4 significant digits. In notebooks, counts and large numbers have fewer decimals.

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
            raise DataError(f"the columns of a table must have the same length, got {lengths}")
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

    # ------------------------------------------------------------------------------------------- for papers and pages

    def to_markdown(
        self, *, bold: Collection[str] = (), marks: Mapping[str, Sequence[str]] | None = None, note: str = ""
    ) -> str:
        """Convert to a table of Markdown, as GitHub, pandoc and Jupyter read it, with every row.

        Parameters
        ----------
        bold : collection of str, default=()
            Columns of numbers whose largest value, and all that print like it, is set in bold.
        marks : dict of str to sequence of str, default=None
            By column, a text behind each value, such as a mark of significance; an empty text is none.
        note : str, default=""
            A sentence below the table.

        Returns
        -------
        str
            The text, which ends in a line break. Characters that Markdown would read as markup are escaped.

        Examples
        --------
        >>> print(Table({"ranker": ["a_b", "c"], "AP": [0.5, 0.25]}).to_markdown(bold=["AP"]), end="")
        | ranker | AP |
        |---|---:|
        | a\\_b | **0.5000** |
        | c | 0.2500 |
        """
        sides = "|".join("---:" if self._is_number(name) else "---" for name in self.columns)
        head, *body = self._write(_MARKDOWN, bold, marks or {})
        rows = [f"| {' | '.join(cells)} |" for cells in body]
        below = ["", _MARKDOWN.text(note)] if note else []
        return "\n".join([f"| {' | '.join(head)} |", f"|{sides}|", *rows, *below]) + "\n"

    def to_latex(
        self, *, bold: Collection[str] = (), marks: Mapping[str, Sequence[str]] | None = None, note: str = ""
    ) -> str:
        """Convert to a ``tabular`` of LaTeX in the style of the package booktabs, with every row.

        Parameters
        ----------
        bold : collection of str, default=()
            Columns of numbers whose largest value, and all that print like it, is set in bold.
        marks : dict of str to sequence of str, default=None
            By column, a text behind each value, such as a mark of significance; an empty text is none.
        note : str, default=""
            A sentence in a comment below the table.

        Returns
        -------
        str
            The text, which ends in a line break; it needs ``\\usepackage{booktabs}``. Special characters are escaped.

        Examples
        --------
        >>> print(Table({"ranker": ["a_b", "c"], "AP": [0.5, 0.25]}).to_latex(bold=["AP"]), end="")
        \\begin{tabular}{lr}
        \\toprule
        ranker & AP \\\\
        \\midrule
        a\\_b & \\textbf{0.5000} \\\\
        c & 0.2500 \\\\
        \\bottomrule
        \\end{tabular}
        """
        sides = "".join("r" if self._is_number(name) else "l" for name in self.columns)
        head, *body = (f"{' & '.join(cells)} \\\\" for cells in self._write(_LATEX, bold, marks or {}))
        lines = [f"\\begin{{tabular}}{{{sides}}}", "\\toprule", head, "\\midrule", *body, "\\bottomrule"]
        below = [f"% {_in_a_line(note)}"] if note else []
        return "\n".join([*lines, "\\end{tabular}", *below]) + "\n"

    def _write(
        self, markup: "_Markup", bold: Collection[str], marks: Mapping[str, Sequence[str]]
    ) -> Iterator[tuple[str, ...]]:
        """The titles and then the rows, every cell in this markup."""
        columns = []
        for name, values in self._columns.items():
            texts, best = _texts(values.tolist()), None
            if name in bold:
                known = [value for value in values.tolist() if isinstance(value, (int, float)) and value == value]
                best = _text(max(known)) if known else None
            behind = marks.get(name, [""] * len(texts))
            cells = [
                markup.cell(text, is_number=not isinstance(value, str), bold=text == best, mark=mark)
                for text, value, mark in zip(texts, values.tolist(), behind, strict=True)
            ]
            columns.append([markup.text(name), *cells])
        return zip(*columns, strict=True)

    # ------------------------------------------------------------------------------------------- showing it

    def __repr__(self) -> str:
        """The table as text, long ones without their middle."""
        if not self._columns:
            return "Table without columns"
        shown = []
        for name, cells in self._cells(_texts).items():
            width = max(map(len, [name, *cells]))
            right = self._is_number(name)
            shown.append([text.rjust(width) if right else text.ljust(width) for text in [name, *cells]])
        lines = ["  ".join(line).rstrip() for line in zip(*shown, strict=True)]
        return "\n".join([*lines, f"({len(self):,} rows)"] if self._is_cut else lines)

    def _repr_html_(self) -> str:
        """The table as HTML, for notebooks."""
        return notebook_html(self.html())

    def html(self) -> str:
        """The table as HTML without a style, to be a part of :func:`notebook_html`.

        Returns
        -------
        str
            The HTML; long tables are without their middle.
        """

        def row(tag: str, cells: Sequence[str]) -> str:
            sides = ("right" if self._is_number(name) else "left" for name in self.columns)
            boxes = (
                f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
                for side, cell in zip(sides, cells, strict=True)
            )
            return f"<tr>{''.join(boxes)}</tr>"

        body = "\n".join(row("td", cells) for cells in zip(*self._cells(_read).values(), strict=True))
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
        for cells in zip(*self._cells(_texts, every=True).values(), strict=True):
            drawn.add_row(*map(escape_markup, cells))
        return drawn

    @property
    def _is_cut(self) -> bool:
        """Whether the text form leaves out rows of the middle."""
        return len(self) > 2 * _SHOWN_AT_EITHER_END + 1  # cutting a single row out would save nothing

    def _cells(self, written: Callable[[list[Any]], list[str]], every: bool = False) -> dict[str, list[str]]:
        """The texts of each column; the middle of a long column is one cell with dots."""
        if every or not self._is_cut:
            return {name: written(values.tolist()) for name, values in self._columns.items()}
        end = _SHOWN_AT_EITHER_END
        ends = {name: [*values[:end].tolist(), *values[-end:].tolist()] for name, values in self._columns.items()}
        shown = {name: written(values) for name, values in ends.items()}
        return {name: [*cells[:end], _CUT, *cells[end:]] for name, cells in shown.items()}

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
        raise DataError(f"column {name!r} of a table must have one dimension, got shape {column.shape}")
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


def _texts(values: list[Any]) -> list[str]:
    """A column as text."""
    return list(map(_text, values))


def _read(values: list[Any]) -> list[str]:
    """A column for the eye: counts without decimals, and large numbers with few.

    Columns of other numbers, such as means, keep 4 decimals in every row.
    """
    numbers = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    largest = max(map(abs, numbers), default=0.0)
    counts = largest > 1 and all(value.is_integer() for value in numbers)  # a mean may be 0 or 1 in every row
    return list(map(_short, values)) if counts or largest >= 1000 else _texts(values)


def _short(value: Any) -> str:
    """A value by itself: 5,000, 1,239.7, 0.0500."""
    if not isinstance(value, float) or not math.isfinite(value) or abs(value) >= 1e7:
        return _text(value)
    if value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else _text(value)


# ---------------------------------------------------------------------------------------------- Markdown and LaTeX


def _in_a_line(text: str) -> str:
    """A text without line breaks and other control characters, which end a row or cannot be printed."""
    return " ".join("".join(" " if _is_control(one) else one for one in text).split())


def _is_control(one: str) -> bool:
    """Control characters, halves of characters, line separators, and what reverses the text behind it."""
    return unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(one) in _REVERSING


_REVERSING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_DASH = "\u2013"
_POWER = re.compile(r"(-?[\d.]+)e([+-]\d+)")


@dataclass(frozen=True)
class _Markup:
    """A language of tables.

    Attributes
    ----------
    escapes : dict of str to str
        What stands for each special character.
    bold : str
        A format of a cell in bold.
    mark : str
        A format of a mark behind a number.
    number : callable
        How a number is written, from its digits.
    """

    escapes: Mapping[str, str]
    bold: str
    mark: str
    number: Callable[[str], str]

    def text(self, text: str) -> str:
        """Any text as one that has no meaning but itself."""
        return "".join(self.escapes.get(one, one) for one in _in_a_line(text))

    def cell(self, text: str, *, is_number: bool, bold: bool, mark: str) -> str:
        """One value."""
        if is_number and text == "nan":
            text = self.text(_DASH)
        elif is_number and _NUMBER.fullmatch(text):
            text = self.number(text)
        else:
            text = self.text(text)
        return (self.bold.format(text) if bold else text) + (self.mark.format(self.text(mark)) if mark else "")


_NUMBER = re.compile(r"-?\d[\d.]*(e[+-]\d+)?")


def _latex_number(text: str) -> str:
    """A number with a minus sign and a power that are set as such."""
    if power := _POWER.fullmatch(text):
        return rf"${power[1]} \times 10^{{{int(power[2])}}}$"
    return text.replace("-", "$-$")


_MARKDOWN = _Markup(
    {one: f"\\{one}" for one in "\\`*_[]|~$"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}, "**{}**", " {}", str
)
_LATEX = _Markup(
    {one: f"\\{one}" for one in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}"}
    | {">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", _DASH: "--"}
    | {one: f"{{{one}}}" for one in "[]*"},  # behind \\, at the end of the row before, they would be its options
    r"\textbf{{{}}}",
    "$^{{{}}}$",
    _latex_number,
)


# ---------------------------------------------------------------------------------------------------------- notebooks

# Colors are those of the notebook, mixed with nothing: right on light and on dark pages.
_RULE = "1px solid color-mix(in srgb, currentColor 20%, transparent)"
_STYLE = f"""<style>
.rankwise table {{ border-collapse: collapse; margin: .3em 0; font-variant-numeric: tabular-nums; }}
.rankwise th, .rankwise td {{ border: 0; border-bottom: {_RULE}; padding: .15em .7em .15em 0; color: inherit;
  background: none; vertical-align: top; max-width: 40em; overflow-wrap: break-word; }}
.rankwise p {{ margin: .2em 0; max-width: 60em; }} .rankwise summary {{ cursor: pointer; }}
.rankwise details {{ margin: .1em 0; }} .rankwise details > * {{ margin-left: 1em; }}
</style>"""
_LONGEST_FACT = 300  # characters
_MOST_FACTS, _MOST_LINES = 24, 12


def notebook_html(*parts: str) -> str:
    """Put HTML together as notebooks show it, in the style of the package.

    Parameters
    ----------
    *parts : str
        The parts, one below the other: HTML whose texts are escaped already, such as :func:`paragraph` makes it.

    Returns
    -------
    str
        One element with its style, which suits light and dark pages.
    """
    return f'<div class="rankwise">{_STYLE}\n' + "\n".join(filter(None, parts)) + "\n</div>"


def paragraph(*lines: str) -> str:
    """A paragraph of texts, which are escaped.

    Parameters
    ----------
    *lines : str
        The lines.

    Returns
    -------
    str
        The HTML; empty without lines.
    """
    return f"<p>{'<br>'.join(map(escape, lines))}</p>" if lines else ""


class ShownAsFacts:
    """Something that notebooks show as what it prints, and a table of its fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return facts_html(self, self._facts())

    def _facts(self) -> Mapping[str, Any]:
        """The names and values to show: the public fields."""
        return facts_of(self)


def facts_of(shown: Any) -> dict[str, Any]:
    """The public fields of a dataclass or a named tuple; none for other objects.

    Parameters
    ----------
    shown : object
        The object.

    Returns
    -------
    dict of str to object
        The values by name.
    """
    names: Iterable[str] = getattr(shown, "_fields", ())
    if is_dataclass(shown):
        names = [one.name for one in fields(shown)]
    return {name: getattr(shown, name) for name in names if not name.startswith("_")}


def facts_html(shown: Any, facts: Mapping[str, Any]) -> str:
    """The text of an object, and a table of facts about it.

    Parameters
    ----------
    shown : object
        The object.
    facts : dict of str to object
        Names and values; long ones are cut.

    Returns
    -------
    str
        The HTML.
    """
    name, text = type(shown).__name__, repr(shown)
    # a repr that only lists the fields would say everything twice
    lists_fields = facts and text.startswith(f"{name}({next(iter(facts))}=")
    facts = {name: value for name, value in facts.items() if not _is_nothing(value)}
    lines = [name] if lists_fields or text.startswith("<") else text.splitlines()[:_MOST_LINES]
    kept = list(facts.items())[:_MOST_FACTS]
    table = Table({name: [one for one, _ in kept], "": [_fact(value) for _, value in kept]}).html() if kept else ""
    return notebook_html(paragraph(*(_cut(line) for line in lines)) if not lists_fields else "", table)


def _is_nothing(value: Any) -> bool:
    """Whether a fact is not worth a line: not given, empty, or no limit."""
    if isinstance(value, float):
        return math.isinf(value)
    return value is None or (isinstance(value, (str, list, tuple, Mapping)) and not value)


def _fact(value: Any) -> str:
    """A value in one short line."""
    if isinstance(value, Table):
        return f"{len(value):,} rows of {', '.join(value.columns)}"
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array of shape {value.shape}, {value.dtype}"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{name} = {_fact(each)}" for name, each in value.items()))
    if type(value) in (list, tuple):
        return _cut(", ".join(map(_fact, value)))
    return _cut(_short(value) if isinstance(value, float) else "" if value is None else str(value))


def _cut(text: str) -> str:
    """A text in one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_FACT else line[: _LONGEST_FACT - 1] + "\u2026"
