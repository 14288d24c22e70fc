"""A table keeps what was put into it and shows it so that people can read it."""

import math
import re
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._tables import ShownAsFacts, Table
from rankwise.errors import DataError, MissingExtraError

cells = st.one_of(st.none(), st.text(max_size=5), st.tuples(st.integers(), st.text(max_size=2)))
columns = st.integers(0, 30).flatmap(
    lambda rows: st.dictionaries(
        st.text(max_size=8),
        st.one_of(
            *(
                st.lists(kind, min_size=rows, max_size=rows)
                for kind in (st.floats(), st.integers(-(2**62), 2**62), st.booleans(), cells)
            )
        ),
        max_size=5,
    )
)


@given(columns)
def test_what_was_put_in_comes_out(given_columns):
    table = Table(given_columns)
    assert table.columns == tuple(given_columns)
    assert table == Table(table.to_dict())
    rows = list(table)
    for name, values in given_columns.items():
        assert [repr(row[name]) for row in rows] == [repr(value) for value in values]


@given(columns)
def test_every_table_can_be_shown(given_columns):
    table = Table(given_columns)
    assert isinstance(repr(table), str)
    assert table._repr_html_().count("<tr>") <= 22
    assert table.rich().row_count == (len(table) if given_columns else 0)


def test_numbers_stand_right_and_texts_left():
    table = Table({"measure": ["nDCG@10", "AP"], "mean": [0.51234, math.nan], "queries": [12345, 7]})
    assert repr(table).split("\n") == [
        "measure    mean  queries",
        "nDCG@10  0.5123    12345",
        "AP          nan        7",
    ]


def test_numbers_that_four_decimals_would_hide_are_shown():
    assert repr(Table({"p": [1.25e-9, 0.00012, 0.0, 2.5e8]})).split() == [
        "p",
        "1.250e-09",
        "0.0001",
        "0.0000",
        "2.500e+08",
    ]


def test_a_long_table_is_cut_in_the_middle_and_says_how_long_it_is():
    lines = repr(Table({"number": np.arange(1000)})).split("\n")
    assert len(lines) == 1 + 10 + 1 + 10 + 1
    assert lines[10].strip() == "9"
    assert lines[11].strip() == "..."
    assert lines[12].strip() == "990"
    assert lines[-1] == "(1,000 rows)"


def test_html_is_escaped():
    html = Table({"<b>": ["<script>alert('x')</script>"]})._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html


def test_a_terminal_table_shows_names_with_brackets_as_they_are():
    from rich.console import Console

    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(Table({"name": ["[red]x[/red]"]}).rich("title"))
    assert "[red]x[/red]" in shown.get()


def test_a_table_cannot_be_changed():
    values = np.array([1.0, 2.0])
    table = Table({"a": values})
    values[0] = 9
    assert table["a"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        table["a"][0] = 3.0


def test_equality_means_the_same_columns_with_the_same_values():
    table = Table({"a": [1.0, math.nan], "b": ["x", None]})
    assert table == Table({"a": [1.0, math.nan], "b": ["x", None]})
    assert table != Table({"a": [1.0, 2.0], "b": ["x", None]})
    assert table != Table({"b": ["x", None], "a": [1.0, math.nan]})
    assert table != {"a": [1.0, math.nan], "b": ["x", None]}


def test_tuples_are_values():
    table = Table({"qid": [("a", 1), ("b", 2)]})
    assert table["qid"].shape == (2,)
    assert next(iter(table)) == {"qid": ("a", 1)}


def test_columns_of_different_length_are_refused():
    with pytest.raises(DataError, match="same length"):
        Table({"a": [1, 2], "b": [1]})
    with pytest.raises(DataError, match="one dimension"):
        Table({"a": np.zeros((2, 2))})


def test_a_column_that_is_not_there_is_named():
    table = Table({"a": [1], "b": [2]})
    assert "a" in table
    assert "c" not in table
    with pytest.raises(DataError, match="no column 'c': the columns are a, b"):
        table["c"]


def test_a_table_becomes_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = Table({"name": ["a", "b"], "value": [0.5, math.nan], "n": [1, 2]}).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["value"].dtype == float
    assert frame["name"].tolist() == ["a", "b"]


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pandas is not installed; run .*pip install .*pandas"):
        Table({"a": [1]}).to_frame()


def html_cells(table):
    return re.findall(r"<td[^>]*>([^<]*)</td>", table._repr_html_())


def test_notebooks_show_counts_without_decimals_and_large_numbers_with_few():
    assert html_cells(Table({"grade": [2.0, 0.0, float("nan")]})) == ["2", "0", "nan"]
    assert html_cells(Table({"value": [5000.0, 1239.6719, 0.05, 2e8]})) == ["5,000", "1,239.7", "0.0500", "2.000e+08"]
    assert html_cells(Table({"mean": [1.0, 0.25]})) == ["1.0000", "0.2500"]
    assert html_cells(Table({"p": [1.0, 1.0]})) == ["1.0000", "1.0000"]
    assert "5000.0000" in repr(Table({"value": [5000.0, 0.5]}))


def test_a_long_table_in_a_notebook_has_dots_in_its_middle():
    cells = html_cells(Table({"n": np.arange(30.0)}))
    assert cells == [*map(str, range(10)), "...", *map(str, range(20, 30))]


def test_facts_that_say_nothing_are_left_out():
    @dataclass
    class Kept(ShownAsFacts):
        name: str = "x"
        source: str = ""
        parts: tuple = ()
        limit: float = float("inf")
        weight: np.ndarray | None = None
        rounds: float = 5000.0
        path: Table = field(default_factory=lambda: Table({"a": [1, 2], "b": [3, 4]}))

    cells = html_cells(Kept())
    assert cells == ["name", "x", "rounds", "5,000", "path", "2 rows of a, b"]


# ------------------------------------------------------------------------------------------- Markdown and LaTeX (W14)

hostile = st.text(st.characters() | st.sampled_from('|\\`*_[]~$&<>%#{}^"\n\r\0\u2028\u202e'), max_size=12)


@given(st.lists(hostile, min_size=1, max_size=4), hostile)
def test_w14_no_text_breaks_a_table_of_markdown_or_latex(texts, title):
    table = Table({title: texts, title + "n": [0.5] * len(texts)})
    lines = table.to_markdown().removesuffix("\n").split("\n")
    assert len(lines) == 2 + len(texts)
    for line in lines:
        assert not any(one in line for one in "\0\r\u2028\u202e")
        assert len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) == 3
        assert "<" not in line
    lines = table.to_latex().removesuffix("\n").split("\n")
    assert len(lines) == 6 + len(texts)
    for line in (lines[2], *lines[4:-2]):
        bare = re.sub(r"\\[&%$#_{}]", "", line.removesuffix(r" \\"))
        assert bare.count("&") == 1
        assert not re.search(r"[%#$^~_<>|]", bare)
        assert bare.count("{") == bare.count("}")
        assert not line.startswith(("[", "*"))  # options of the line break before it


def test_w14_numbers_marks_and_the_best():
    table = Table(
        {
            "ranker": ["a", "b", "c"],
            "AP": [0.25, 0.5, 0.50001],
            "difference": [-0.25, 1e-9, math.nan],
            "wins": [3, 20, 1],
        }
    )
    how = {"bold": ["AP"], "marks": {"AP": ["-", "", "+"]}, "note": "Marks: 100 %"}
    assert table.to_markdown(**how) == (
        "| ranker | AP | difference | wins |\n|---|---:|---:|---:|\n"
        "| a | 0.2500 - | -0.2500 | 3 |\n| b | **0.5000** | 1.000e-09 | 20 |\n| c | **0.5000** + | \u2013 | 1 |\n"
        "\nMarks: 100 %\n"
    )
    assert table.to_latex(**how).splitlines()[4:] == [
        r"a & 0.2500$^{-}$ & $-$0.2500 & 3 \\",
        r"b & \textbf{0.5000} & $1.000 \times 10^{-9}$ & 20 \\",
        r"c & \textbf{0.5000}$^{+}$ & -- & 1 \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% Marks: 100 %",
    ]
    long = Table({"x": range(100)})
    assert len(long.to_markdown().splitlines()) == 102
    with pytest.raises(ValueError, match=r"shorter|longer"):
        table.to_markdown(marks={"AP": ["+"]})
