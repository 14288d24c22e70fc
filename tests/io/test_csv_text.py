"""CSV text: pyarrow's reading and the one cell by cell agree, no record is cut in two, and ids stay as written."""

import csv
import io
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankwise.errors import DataWarning, RankwiseError
from rankwise.io.sources import ByteStream, open_text
from rankwise.io.tables import csv as csv_text
from rankwise.io.tables.frames import iter_table, read_table
from rankwise.io.tables.rows import Roles
from rankwise.queries import checks

WORD = st.text(st.characters(blacklist_characters="\0\r", blacklist_categories=("Cs",)), min_size=1, max_size=6)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
ROW = st.tuples(WORD, WORD, st.integers(0, 4), NUMBER, st.one_of(NUMBER, st.none()))


def opened(text):
    return ByteStream("t.csv", io.BytesIO(text))


def written(rows, delimiter):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([("qid", "docid", "label", "a", "b"), *rows])
    return out.getvalue().encode()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=st.lists(ROW, min_size=1, max_size=20), delimiter=st.sampled_from(",;\t|"), block=st.integers(1, 80))
def test_both_readers_give_what_was_written_whatever_the_blocks(monkeypatch, rows, delimiter, block):
    text = written(rows, delimiter)
    monkeypatch.setattr(csv_text, "_BLOCK", block)
    for package in ("there", "missing"):
        with monkeypatch.context() as patch:
            if package == "missing":
                patch.setitem(sys.modules, "pyarrow", None)
            found = read_table(opened(text), missing="zero")
        assert found.X.tolist() == [[a, 0.0 if b is None else b] for *_, a, b in rows]
        assert found.y.tolist() == [label for _, _, label, *_ in rows]
        assert list(found.docid) == [docid for _, docid, *_ in rows]
        assert list(map(str, found.names())) == list(dict.fromkeys(qid for qid, *_ in rows))


def test_a_stream_gives_whole_queries(monkeypatch):
    monkeypatch.setattr(csv_text, "_BLOCK", 30)
    rows = [(f"q{query}", f"d{query}.{place}", place, query, place) for query in range(9) for place in range(1 + query)]
    blocks = list(iter_table(opened(written(rows, ",")), Roles(), rows=4))
    assert len(blocks) > 3
    assert [name for block in blocks for name in block.names()] == [f"q{query}" for query in range(9)]
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), [row[3:] for row in rows])
    assert blocks[0].y is not None
    assert next(iter_table(opened(written(rows, ",")), Roles(judged=False))).y is None


def test_a_stream_refuses_a_query_that_returns():
    rows = [("a", "d", 0, 1, 1), ("b", "d", 0, 1, 1), ("a", "d", 0, 1, 1)]
    with pytest.raises(RankwiseError, match=r"t\.csv: query a has rows in several places"):
        list(iter_table(opened(written(rows, ",")), Roles()))


@pytest.mark.parametrize("cell", ["1_000", "0x10", "1.2.3", "--1", "1e", "one"])
def test_what_other_tools_do_not_read_as_a_number_is_none(cell):
    with pytest.raises(RankwiseError, match=rf"line 2: feature columns must be numeric, got '{cell}' in column 'a'"):
        read_table(opened(f"qid,label,a\n1,0,{cell}\n".encode()))


def test_truths_are_numbers():
    found = read_table(opened(b"qid,label,a\n1,0,True\n1,0,false\n"))
    assert found.X.tolist() == [[1.0], [0.0]]


def test_w1_bytes_that_are_no_utf8_are_letters_of_windows():
    with pytest.warns(DataWarning, match=r"t\.csv is not UTF-8 \(byte 20 is 0xE9\) and was read as Windows-1252"):
        found = read_table(opened(b"qid,docid,label,a\nq\xe9,d\x80,0,1\n"))
    assert found.names() == ["q\xe9"]
    assert found.docid[0] == "d\N{EURO SIGN}"


def test_a_decimal_comma_is_found_out():
    found = read_table(opened(b"qid;label;a;b\n1;0;0,5;-1,25e3\n1;1;2;3\n"))
    assert found.X.tolist() == [[0.5, -1250.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"2 qid:7 1:0.5\n", "letor"),
        (b"# a comment\n0 1:0.5 2:1\n", "letor"),
        (b"qid,label,a\n", "csv"),
        (b"\xef\xbb\xbfqid;label\n", "csv"),
        (b"2 qid:7 1:0.5 # a, b\n", "letor"),
    ],
)
def test_a_text_is_known_by_its_first_line(line, kind):
    with open_text(io.BytesIO(line)) as source:
        assert source.kind == kind
        assert source.read(1 << 20) == line.removeprefix(b"\xef\xbb\xbf")


class CountedName(str):
    """A name that counts how often it is compared with another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "check",
    [
        lambda names: csv_text._check_names(names, "wide.csv"),
        lambda names: checks.as_names(names, len(names)),
        lambda names: checks.first_repeated(names),
    ],
    ids=["csv", "features", "first repeated"],
)
def test_r10_names_of_columns_are_compared_a_few_times_each(check, monkeypatch):
    monkeypatch.setattr(CountedName, "compared", 0)
    check(tuple(CountedName(f"column {number}") for number in range(2_000)))
    assert CountedName.compared < 4 * 2_000  # all pairs would be two million


def test_r10_the_first_name_that_stands_twice_is_the_one_that_is_named():
    with pytest.raises(RankwiseError, match="line 1: two columns are called 'b'"):
        csv_text._check_names(("a", "b", "c", "b", "a"), "wide.csv")
