"""Where bytes come from, and streams of any length: whole queries in bounded memory, together the text."""

import gzip
import io
import itertools
import os
import re
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.io.letor.read import read_letor
from rankwise.io.letor.stream import iter_letor
from rankwise.queries.queries import Queries

PLAIN = b"2 qid:10 1:0.5 2:1 # d1\n0 qid:10 1:0.125 2:0 # d2\n1 qid:11 1:7 2:1e-3 # d3\n"
X = [[0.5, 1], [0.125, 0], [7, 1e-3]]


class Dripping:
    """A stream that gives a few bytes at a time, cannot seek, and counts what was taken."""

    def __init__(self, data: Any, size: int = 1 << 16) -> None:
        self._data, self._size = io.BytesIO(data), size
        self.taken = 0

    def read(self, size: int) -> bytes:
        block = self._data.read(min(size, self._size))
        self.taken += len(block)
        return block


class Endless:
    """Lists of ten documents without end."""

    name = "endless"

    def __init__(self) -> None:
        self.taken = 0
        self._query = 0

    def read(self, size: int) -> bytes:
        lines = []
        while sum(map(len, lines)) < 50_000:
            self._query += 1
            lines.append(b"".join(b"%d qid:%d 1:0.5 2:%d # d\n" % (row % 3, self._query, row) for row in range(10)))
        block = b"".join(lines)
        self.taken += len(block)
        return block


def text_of(sizes: list[int]) -> bytes:
    rows = ((query, row) for query, size in enumerate(sizes) for row in range(size))
    return b"".join(b"%d qid:q%d 1:%d 2:0.5 # d%d\n" % (row % 3, query, row, row) for query, row in rows)


def blocks(text: bytes, rows: int = 1, drip: int = 1 << 16, **options: Any) -> list[Queries]:
    stream = Dripping(text, drip)
    stream.name = "train.txt"
    return list(iter_letor(stream, rows=rows, **options))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(1, 60), st.sampled_from([3, 50, 1_000]))
def test_blocks_hold_whole_queries_and_together_are_the_text(sizes, rows, drip):
    text = text_of(sizes)
    parts = blocks(text, rows, drip)
    whole = read_letor(io.BytesIO(text))
    assert [name for part in parts for name in part.names()] == whole.names()
    assert [size for part in parts for size in part.sizes.tolist()] == sizes
    assert np.array_equal(np.concatenate([part.X for part in parts]), whole.X)
    assert [docid for part in parts for docid in part.docid] == list(whole.docid)
    assert all(part.n_documents >= rows for part in parts[:-1])


def test_a_stream_is_read_no_further_than_a_block_needs():
    stream = Endless()
    parts = iter_letor(stream, rows=1_000)
    first = next(parts)
    assert 1_000 <= first.n_documents < 5_000
    assert stream.taken < 200_000
    for _ in range(50):
        latest = next(parts)
    assert latest.n_documents < 5_000
    assert latest.names()[0] > first.names()[-1]


def test_one_query_may_be_longer_than_any_block():
    parts = blocks(text_of([100_000, 2]), drip=1 << 20)
    assert [part.sizes.tolist() for part in parts] == [[100_000], [2]]


def test_a_last_line_without_an_end_and_lines_of_any_kind():
    text = b"\xef\xbb\xbf# title\r\n\r\n1\tqid:1 1:1\r\n\n0 qid:2 1:2\n#\n2 qid:2  1:3"
    assert [part.X[:, 0].tolist() for part in blocks(text, drip=5)] == [[1], [2, 3]]


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n\n", b"-1 qid:1 1:1\n"])
def test_nothing_comes_of_nothing(text):
    assert blocks(text, unjudged="drop") == []


def test_gzip_of_several_members_and_standard_input(monkeypatch):
    text = text_of([3, 4, 5])
    packed = gzip.compress(text[:33]) + gzip.compress(text[33:])
    for drip in (1, 10, 1 << 16):
        assert sum(part.n_documents for part in blocks(packed, drip=drip)) == 12
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert sum(part.n_documents for part in iter_letor("-", rows=1)) == 12


def test_what_was_read_is_reported_in_bytes_of_the_source(tmp_path):
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(text_of([3, 4, 5] * 100)))
    taken: list[int] = []
    list(iter_letor(path, on_read=taken.append))
    assert sum(taken) == path.stat().st_size


def test_a_query_that_returns_is_refused_by_name():
    text = text_of([3, 2]) + b"# back again\n1 qid:q0 1:1 2:2\n"
    for drip in (5, 1 << 16):
        with pytest.raises(FileFormatError) as caught:
            blocks(text, drip=drip)
        assert str(caught.value) == (
            "train.txt, line 7: query q0 has rows in several places, and a stream needs them together: "
            "read_letor takes rows in any order"
        )


@given(
    st.lists(st.tuples(st.sampled_from(["7", "8", "x"]), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(1, 30),
    st.sampled_from([3, 40, 1_000]),
)
def test_a_query_that_returns_may_begin_a_list_of_its_own_wherever_blocks_end(runs, rows, drip):
    lines = [(qid, number) for number, (qid, size) in enumerate(runs) for _ in range(size)]
    text = b"".join(b"1 qid:%s 1:%d\n" % (qid.encode(), number) for qid, number in lines)
    expected = [(qid, len(list(group))) for qid, group in itertools.groupby(qid for qid, _ in lines)]
    parts = blocks(text, rows, drip, returning="new")
    found = [pair for part in parts for pair in zip(part.names(), part.sizes.tolist(), strict=True)]
    assert [(str(qid), size) for qid, size in found] == expected
    assert np.concatenate([part.X[:, 0] for part in parts]).tolist() == [number for _, number in lines]


def test_a_run_that_is_read_in_several_ranges_is_one_list():
    parts = blocks(text_of([3, 200_000, 4]), rows=1 << 20, drip=1 << 20, returning="new")
    assert [part.sizes.tolist() for part in parts] == [[3, 200_000, 4]]


def test_nothing_is_remembered_of_lists_that_may_return():
    stream = Endless()
    parts = iter_letor(stream, rows=1_000, returning="new")
    latest = next(parts)
    tracemalloc.start()
    try:
        for _ in range(20):
            latest = next(parts)
        early, _ = tracemalloc.get_traced_memory()
        for _ in range(100):
            latest = next(parts)
        late, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert late < early + 200_000  # the ids of the further lists would take more than 600,000 bytes
    assert latest.n_documents < 5_000


def test_problems_in_later_blocks_are_named_by_their_line_in_the_file():
    text = text_of([50, 50, 50]) + b"1 qid:z 1:oops\n"
    for drip in (64, 1 << 16):
        with pytest.raises(FileFormatError, match=r"train\.txt, line 151, column 11: expected a number after '1:'"):
            blocks(text, drip=drip)


def test_blocks_before_a_problem_are_still_given():
    stream = Dripping(text_of([5, 5, 5]) + b"nonsense\n", 40)
    parts = iter_letor(stream, rows=1)
    assert next(parts).names() == ["q0"]


def test_the_first_block_decides_the_width_unless_it_is_given():
    text = b"1 qid:1 1:1 2:2\n0 qid:2 3:3\n"
    sentence = "train.txt, line 2, column 9: feature 3 is beyond the 2 features of the first block: pass n_features="
    with pytest.raises(FileFormatError) as caught:
        blocks(text)
    assert str(caught.value) == sentence
    assert [part.X.tolist() for part in blocks(text, n_features=4)] == [[[1, 2, 0, 0]], [[0, 0, 3, 0]]]
    with pytest.raises(FileFormatError, match=r"feature 3 is beyond n_features=2 \(ids begin at 1\)"):
        blocks(text, n_features=2)


def test_narrower_blocks_are_as_wide_as_the_first():
    assert [part.X.tolist() for part in blocks(b"1 qid:1 3:1\n0 qid:2 1:3\n")] == [[[0, 0, 1]], [[3, 0, 0]]]


def test_the_first_block_decides_where_ids_begin_unless_it_is_given():
    text = b"1 qid:1 1:1 2:2\n0 qid:2 0:3\n"
    with pytest.raises(FileFormatError, match="got feature 0, but the ids of the first block begin at 1: pass zero_"):
        blocks(text)
    assert [part.X.tolist() for part in blocks(text, zero_based=True)] == [[[0, 1, 2]], [[3, 0, 0]]]
    assert [part.X.tolist() for part in blocks(b"1 qid:1 0:1 2:2\n0 qid:2 1:3\n")] == [[[1, 0, 2]], [[0, 3, 0]]]


def test_every_line_needs_a_qid():
    with pytest.raises(FileFormatError) as caught:
        blocks(b"1 1:1\n")
    assert str(caught.value) == (
        "train.txt, line 1, column 3: expected qid: because a stream is cut between queries, got '1:1'"
    )


def test_policies_hold_in_every_block():
    text = b"1 qid:1 1:NULL\n-1 qid:1 1:4\n2 qid:1 1:2\n-1 qid:2 1:9\n1 qid:3 1:nan\n1 qid:3 1:7\n"
    parts = blocks(text, missing="min", unjudged="drop", dtype="float32", feature_names=["a"])
    assert [part.X[:, 0].tolist() for part in parts] == [[2, 2], [7, 7]]
    assert {part.X.dtype for part in parts} == {np.dtype(np.float32)}
    assert {part.feature_names for part in parts} == {("a",)}


def test_dropped_rows_do_not_count():
    text = b"".join(b"%d qid:%d 1:1\n" % (-1 if row % 2 else 1, query) for query in range(40) for row in range(4))
    parts = blocks(text, rows=10, drip=30, unjudged="drop")
    assert all(part.n_documents >= 10 for part in parts[:-1])
    assert sum(part.n_documents for part in parts) == 80


@pytest.mark.parametrize("drip", [1, 7, 1 << 16])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_dropped_rows_between_those_of_a_query_do_not_end_it(rows, drip):
    text = b"0 qid:a 1:1\n-1 qid:b 1:2\n-0 qid:a 1:3\n-0 qid:c 1:4\n-1 qid:a 1:5\n1 qid:c 1:6\n2 qid:b 1:7\n"
    parts = blocks(text, rows=rows, drip=drip, unjudged="drop")
    assert [(name, x) for part in parts for name, one in zip(part.names(), part, strict=True) for x in one.X[:, 0]] == [
        ("a", 1),
        ("a", 3),
        ("c", 4),
        ("c", 6),
        ("b", 7),
    ]


def test_a_file_is_closed_when_nobody_wants_more(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(text_of([5] * 1_000))
    parts = iter_letor(path, rows=1)
    next(parts)
    parts.close()
    with pytest.raises(StopIteration):
        next(parts)


def test_what_cannot_be_asked_for():
    with pytest.raises(RankwiseError, match="'rows' parameter of"):
        iter_letor("train.txt", rows=0)
    with pytest.raises(RankwiseError, match="'missing' parameter of iter_letor"):
        iter_letor("train.txt", missing="x")
    with pytest.raises(RankwiseError, match="'returning' parameter of iter_letor"):
        iter_letor("train.txt", returning="old")
    with pytest.raises(RankwiseError, match="there is no such file"):
        next(iter_letor("nowhere.txt"))
    packed = gzip.compress(text_of([3]))
    with pytest.raises(FileFormatError, match=r"train\.txt is cut off"):
        blocks(packed[:-3])


# --------------------------------------------------------------------------------------------------------- sources


def test_files_are_recognized_by_what_they_hold(tmp_path):
    for name, data in ("plain.gz", PLAIN), ("packed.txt", gzip.compress(PLAIN)):
        path = tmp_path / name
        path.write_bytes(data)
        assert read_letor(path).X.tolist() == X
        assert read_letor(str(path), n_jobs=2).X.tolist() == X
        with open(path, "rb") as file:
            assert read_letor(file).X.tolist() == X


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PLAIN)))
    assert read_letor("-").X.tolist() == X


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(PLAIN),))
    writer.start()
    assert read_letor(path).X.tolist() == X
    writer.join()


def test_the_result_does_not_need_the_file_any_more(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(PLAIN)
    queries = read_letor(path)
    path.write_bytes(b"")
    assert queries.X.tolist() == X
    assert list(queries.docid) == ["d1", "d2", "d3"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "source cannot be read: there is no such file"),
        (lambda path: path.mkdir(), "source cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b""), "source has no rows"),
        (lambda path: path.write_bytes(gzip.compress(PLAIN)[:-9]), "source is cut off: its gzip data has no end mark"),
        (lambda path: path.write_bytes(gzip.compress(PLAIN)[:-8] + bytes(8)), "source is damaged: its gzip data"),
        (lambda path: path.write_bytes(gzip.compress(PLAIN) + b"junk"), "source is damaged: its gzip data"),
    ],
)
def test_sources_that_cannot_be_read(tmp_path, make, sentence):
    path = tmp_path / "source"
    make(path)
    with pytest.raises(RankwiseError, match=re.escape(sentence)):
        read_letor(path)


def test_objects_that_give_no_bytes_are_refused():
    with pytest.raises(RankwiseError, match="the stream must give bytes, got str: open it in binary mode"):
        read_letor(io.StringIO("1 qid:1 1:1"))
    closed = io.BytesIO(PLAIN)
    closed.close()
    with pytest.raises(RankwiseError, match=r"the stream cannot be read: I/O operation on closed file"):
        read_letor(closed)
    with pytest.raises(RankwiseError, match="a source must be a path, '-' or a binary file object, got 7"):
        read_letor(7)


# ------------------------------------------------------------------------------------------------- files of sizes


@pytest.fixture
def unnamed(tmp_path):
    """A text without qids, as LightGBM has it."""
    path = tmp_path / "rank.train"
    path.write_text("1 0:1\n0 0:2\n-1 0:3\n2 0:4\n-1 0:5\n")
    return path


@pytest.mark.parametrize("end", [".query", ".group"])
def test_sizes_beside_the_text_are_found(unnamed, end):
    unnamed.with_name(unnamed.name + end).write_text("2\n3\n")
    queries = read_letor(unnamed, unjudged="zero")
    assert queries.sizes.tolist() == [2, 3]
    assert queries.qid is None


def test_sizes_may_be_named_and_lose_what_is_dropped(unnamed, tmp_path):
    sizes = tmp_path / "sizes"
    sizes.write_text("2\n1\n\n2\n")
    assert read_letor(unnamed, unjudged="drop", query_file=sizes).sizes.tolist() == [2, 1]
    packed = tmp_path / "rank.txt.gz"
    packed.write_bytes(gzip.compress(unnamed.read_bytes()))
    (tmp_path / "rank.txt.query").write_text("5")
    assert read_letor(packed, unjudged="zero").sizes.tolist() == [5]


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ("2\n2\n", r"sizes: the sizes add up to 4, but .*rank.train has 5 rows"),
        ("2\nthree\n", r"sizes, line 2: expected the size of a query, got 'three'"),
        ("2 3\n", r"sizes, line 1: expected the size of a query, got '2 3'"),
        ("-2\n7\n", r"sizes, line 1: expected the size of a query, got '-2'"),
    ],
)
def test_sizes_that_cannot_be_right(unnamed, tmp_path, sizes, sentence):
    path = tmp_path / "sizes"
    path.write_text(sizes)
    with pytest.raises(FileFormatError, match=sentence):
        read_letor(unnamed, unjudged="zero", query_file=path)
