"""LETOR text comes in: what is written is what is read, and what cannot be read is named."""

import gzip
import io
import re

import numpy as np
import pytest

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.io.letor import read as letor_read
from rankwise.io.letor.read import as_reading, read_letor, read_table
from rankwise.io.letor.stream import iter_letor
from rankwise.io.sources import Text
from rankwise.queries.queries import Queries

PLAIN = b"""\
2 qid:10 1:0.5 2:1 3:-0.25 # d1
0 qid:10 1:0.125 2:0 3:3 # d2
1 qid:11 1:7 2:1e-3 3:0.000001 # d3
"""
X = [[0.5, 1, -0.25], [0.125, 0, 3], [7, 1e-3, 0.000001]]


def read(text: bytes | str, **options):
    return read_letor(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


def refusal(text: bytes | str, **options) -> str:
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    stream.name = "train.txt"
    with pytest.raises(RankwiseError) as caught:
        read_letor(stream, **options)
    return str(caught.value)


def in_small_ranges(monkeypatch, size=1):
    """Cut the text at every line, as a large one is cut every few megabytes."""
    monkeypatch.setattr(letor_read, "RANGE", size)


# ------------------------------------------------------------------------------------------------------- the format


def test_labels_features_and_identities():
    queries = read(PLAIN)
    assert queries.X.tolist() == X
    assert queries.y.tolist() == [2, 0, 1]
    assert queries.qid.tolist() == [10, 11]
    assert queries.sizes.tolist() == [2, 1]
    assert list(queries.docid) == ["d1", "d2", "d3"]


@pytest.mark.parametrize(
    "variant",
    [
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b" ", b"\t"),
        PLAIN.replace(b" ", b"  \t "),
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN[:-1],
        PLAIN.replace(b"\n", b"  \n"),
        PLAIN.replace(b"\n", b"\n\n \n"),
        b"# a title\n" + PLAIN.replace(b"\n", b"\n   # between\n"),
        b"\n" + PLAIN,
        PLAIN.replace(b" # ", b"#"),
        PLAIN.replace(b"1:", b"001:"),
        gzip.compress(PLAIN, mtime=0),
        gzip.compress(PLAIN[:40], mtime=0) + gzip.compress(PLAIN[40:], mtime=0),
    ],
)
def test_the_same_lists_in_another_dress(variant):
    queries = read(variant)
    assert queries.X.tolist() == X
    assert queries.names() == [10, 11]
    assert list(queries.docid) == ["d1", "d2", "d3"]


@pytest.mark.parametrize(
    ("comment", "docid"),
    [
        ("#docid = GX008-86-4444840 inc = 1 prob = 0.08", "GX008-86-4444840"),
        ("# docid=a b", "a"),
        ("# title docid = b", "b"),
        ("#first second", "first"),
        ("# docid", "docid"),
        ("# docid =", "docid"),
        ("# mydocid = x", "mydocid"),
        ("#a#b", "a#b"),
        ("# é", "é"),
    ],
)
def test_a_comment_names_the_document(comment, docid):
    assert list(read(f"1 qid:1 1:1 {comment}\n0 qid:1 1:1\n").docid) == [docid, ""]


def test_without_comments_there_are_no_document_ids():
    assert read("1 qid:1 1:1 #\n0 qid:1 1:1 #  \n").docid is None


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (["3", "-1", "0"], [3, -1, 0]),
        (["9223372036854775807", "1"], [9223372036854775807, 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["007", "7"], ["007", "7"]),
        (["1", "-0"], ["1", "-0"]),
        (["+1", "1"], ["+1", "1"]),
        (["query:a", "é"], ["query:a", "é"]),
        (["a\0", "a"], ["a\0", "a"]),
        (["x" * 300, "y"], ["x" * 300, "y"]),
    ],
)
def test_ids_are_whole_numbers_if_all_are_written_so_and_texts_otherwise(written, read_as):
    queries = read("".join(f"1 qid:{qid} 1:1\n" for qid in written))
    assert queries.names() == read_as
    assert queries.sizes.tolist() == [1] * len(written)


def test_rows_of_a_query_may_stand_anywhere(monkeypatch):
    text = "".join(f"{row % 3} qid:{qid} 1:{row}\n" for row, qid in enumerate("abacbbca"))
    for size in (1, 1 << 21):
        in_small_ranges(monkeypatch, size)
        queries = read(text)
        assert queries.names() == ["a", "b", "c"]
        assert queries.X[:, 0].tolist() == list(range(8))
        assert [query.X[:, 0].tolist() for query in queries] == [[0, 2, 7], [1, 4, 5], [3, 6]]


def test_ranges_that_cut_a_query_leave_it_one_query(monkeypatch):
    in_small_ranges(monkeypatch)
    assert read("1 qid:1 1:1\n" * 5 + "1 qid:2 1:1\n" * 5).is_grouped


def test_absent_features_are_0_and_order_does_not_matter():
    assert read("1 qid:1 5:5 2:2\n0 qid:1\n2 qid:1 3:3 1:1 2:2\n").X.tolist() == [
        [0, 2, 0, 0, 5],
        [0] * 5,
        [1, 2, 3, 0, 0],
    ]


def test_a_text_may_be_without_features():
    queries = read("1 qid:1 # a\n0 qid:1 # b\n")
    assert queries.X.shape == (2, 0)


@pytest.mark.parametrize(
    ("zero_based", "text", "row"),
    [
        ("auto", "1 qid:1 1:1 2:2", [1, 2]),
        ("auto", "1 qid:1 0:1 2:2", [1, 0, 2]),
        (True, "1 qid:1 1:1 2:2", [0, 1, 2]),
        (False, "1 qid:1 1:1 2:2", [1, 2]),
    ],
)
def test_where_ids_begin(zero_based, text, row):
    assert read(text, zero_based=zero_based).X.tolist() == [row]


def test_the_width_may_be_given_by_number_or_by_names():
    assert read("1 qid:1 2:2", n_features=4).X.tolist() == [[0, 2, 0, 0]]
    queries = read("1 qid:1 2:2", feature_names=["a", "b", "c"])
    assert queries.X.tolist() == [[0, 2, 0]]
    assert queries.feature_names == ("a", "b", "c")


def test_samples_that_mislead_are_made_good(monkeypatch):
    monkeypatch.setattr(letor_read, "SAMPLE", 1)
    in_small_ranges(monkeypatch, 1_000)
    rows = [f"1 qid:{row // 9} 1:{row} 2:1\n" for row in range(200)]
    assert read("".join([*rows, "1 qid:x 1:1 7:7\n"])).X[-1].tolist() == [1, 0, 0, 0, 0, 0, 7]
    assert read("".join([*rows, "1 qid:x 0:5\n", *rows])).X[200].tolist() == [5, 0, 0]
    assert read("".join([*rows, "1 qid:x 0:5 9:9\n", *rows])).X[200].tolist() == [5, *[0] * 8, 9]


# ------------------------------------------------------------------------------------------------- numbers and types


def test_values_are_what_python_makes_of_them():
    texts = [
        "0.1",
        "1e-5",
        "4.9e-324",
        "1e-400",
        "-0",
        "9007199254740993",
        "0.1000000000000000055511151231257827",
        ".5",
        "5.",
    ]
    row = "1 qid:1 " + " ".join(f"{number}:{text}" for number, text in enumerate(texts, start=1))
    assert read(row).X.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_values_too_close_to_call_are_left_to_python_however_many():
    half = "9007199254740993." + "0" * 20 + "1"
    row = "1 qid:1 " + " ".join(f"{number}:{half}" for number in range(1, 301))
    assert set(read(row).X[0]) == {float(half)}
    assert read(f"{half} qid:1 1:1").y.tolist() == [float(half)]


def test_the_last_bytes_of_a_text_are_read_as_the_others():
    for width in range(1, 60):
        row = " ".join(f"{number}:{number / 7:.6f}" for number in range(1, width + 1))
        for end in ("", "\n", " ", "#c"):
            assert read(f"1 qid:1 {row}{end}").X[0].tolist() == [round(number / 7, 6) for number in range(1, width + 1)]


def test_bytes_after_the_end_make_no_difference():
    how = as_reading("float64", "error", "error", "auto", None, None, 1)
    whole = b"1 qid:1 " + b" ".join(b"%d:0.%06d" % (number, number) for number in range(1, 40)) + b"\n"
    for length in range(len(whole)):
        if whole[length - 1 : length].isdigit() and b":0." in whole[:length].rsplit(b" ")[-1]:
            tables = []
            for after in (b"", b"9" * 64, b":1 " * 20, b"\n" * 64):
                data = np.frombuffer(whole[:length] + after, dtype=np.uint8)[:length]
                tables.append(read_table(Text("t", data), how).X.tolist())
            assert tables[0] == tables[1] == tables[2] == tables[3]


def test_float32_is_the_float64_rounded():
    text = "1 qid:1 1:0.1 2:16777217 3:1e-46 4:3.4e38\n"
    queries = read(text, dtype="float32")
    assert queries.X.dtype == np.float32
    assert np.array_equal(queries.X, read(text).X.astype(np.float32))
    assert "feature 1 must be finite, got '1e39'" in refusal("1 qid:1 1:1e39", dtype=np.float32)


def test_labels_may_be_real():
    assert read("1.5 qid:1 1:1\n+2 qid:1 1:1\n1e-3 qid:1 1:1\n").y.tolist() == [1.5, 2, 0.001]


@pytest.mark.parametrize(("missing", "expected"), [("zero", [0, 5, 3, 0, 7]), ("min", [3, 5, 3, 0, 7])])
@pytest.mark.parametrize("text", ["NULL", "nan", "inf", "-inf", "1e400"])
def test_missing_values(missing, expected, text):
    rows = [("a", text), ("a", "5"), ("a", "3"), ("b", text), ("c", "7")]
    queries = read("".join(f"1 qid:{qid} 1:{value}\n" for qid, value in rows), missing=missing)
    assert queries.X[:, 0].tolist() == expected


def test_the_smallest_of_the_query_also_where_its_rows_stand_apart():
    assert read("1 qid:a 1:NULL\n1 qid:b 1:1\n1 qid:a 1:4\n", missing="min").X[:, 0].tolist() == [4, 1, 4]


def test_unjudged_documents(monkeypatch):
    text = "-1 qid:1 1:NULL\n2 qid:1 1:1 # a\n-1 qid:2 1:2\n0 qid:3 2:3 # b\n-0.5 qid:3 1:4\n1 qid:3 1:5\n"
    for size in (1, 1 << 21):
        in_small_ranges(monkeypatch, size)
        kept = read(text, unjudged="drop")
        assert kept.X.tolist() == [[1, 0], [0, 3], [5, 0]]
        assert kept.names() == [1, 3]
        assert kept.y.tolist() == [2, 0, 1]
        assert list(kept.docid) == ["a", "b", ""]
        assert kept.X.flags.c_contiguous
        zero = read(text, unjudged="zero", missing="zero")
        assert zero.y.tolist() == [0, 2, 0, 0, 0, 1]
        assert zero.sizes.tolist() == [2, 1, 3]


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("1 qid:1 1:2\n2 qid:1 abc\n", "line 2, column 9", "expected feature:value, got 'abc'"),
        ("\n# c\n1 qid:é x:1\n", "line 3, column 9", "expected feature:value, got 'x:1'"),
        ("\ufeff1 qid:1 x\n", "line 1, column 9", "expected feature:value, got 'x'"),
        ("1 qid:1 1:0.5 2:x\n", "line 1, column 17", "expected a number after '2:', got 'x'"),
        ("1 qid:1 1: 2:1\n", "line 1, column 11", "expected a number after '1:', got nothing"),
        ("1 qid:1 1:1 " + "x" * 50, "line 1, column 13", f"expected feature:value, got '{'x' * 40}...'"),
        ("good qid:1 1:1\n", "line 1, column 1", "expected a label (a finite number), got 'good'"),
        ("nan qid:1 1:1\n", "line 1, column 1", "expected a label (a finite number), got 'nan'"),
        ("1 qid: 1:1\n", "line 1, column 3", "expected an id after 'qid:', got nothing"),
        ("1 qid:1 3:1 1:2 3:4\n", "line 1, column 17", "feature 3 occurs twice in this line"),
        ("1 1:1\n1 qid:1\n", "line 2, column 3", "got 'qid:1', but the lines before have no qid"),
        ("1 qid:1\n1 1:1\n", "line 2, column 3", "expected qid: because the lines before have one, got '1:1'"),
    ],
)
def test_a_malformed_line_is_named(text, where, what):
    assert refusal(text) == f"train.txt, {where}: {what}"


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("-1 qid:1", {}, ", line 1, column 1: labels must be 0 or more, got '-1': pass "
         "unjudged='drop' or unjudged='zero'"),
        ("-1 qid:1", {"unjudged": "drop"}, ": every label is negative, and unjudged='drop' leaves no row"),
        ("1 qid:1 1:NULL", {}, ", line 1, column 11: feature 1 must be finite, got 'NULL': pass "
         "missing='zero' or missing='min', or replace it"),
        ("1 qid:1 2:inf", {"feature_names": ["a", "bm25"]}, ", line 1, column 11: feature 2 (bm25) must be finite, "
         "got 'inf': pass missing='zero' or missing='min', or replace it"),
        ("1 qid:1 4:1", {"n_features": 3}, ", line 1, column 9: feature 4 is beyond n_features=3 (ids begin at 1)"),
        ("1 qid:1 0:1", {"zero_based": False}, ", line 1, column 9: got feature 0, but zero_based=False says that "
         "ids begin at 1: pass zero_based=True"),
        ("1 qid:1 1:1", {"query_file": "q"}, " has qids, so query_file='q' has no effect: leave it out"),
        ("1 1:1", {}, ": no line has a qid: put qid:<id> after each label, or pass query_file=, a file with the size "
         "of each query (train.txt.query or train.txt.group would be found by its name)"),
        ("# c\n\n", {}, " has no rows: expected lines of the form label qid:id feature:value ..."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_would_help(text, options, sentence):
    assert refusal(text, **options) == f"train.txt{sentence}"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dtype", "int64"),
        ("dtype", "x"),
        ("missing", "max"),
        ("unjudged", "keep"),
        ("zero_based", "no"),
        ("n_features", 0),
    ],
)
def test_options_are_checked_by_name(option, value):
    assert refusal("1 qid:1 1:1", **{option: value}).startswith(f"The '{option}' parameter of read_letor must be ")


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_the_first_problem_of_the_file_whatever_the_threads(monkeypatch, n_jobs):
    in_small_ranges(monkeypatch)
    lines = ["1 qid:1 1:1"] * 50
    lines[31] = "1 qid:1 1:first"
    lines[32] = lines[49] = "1 qid:1 1:later"
    assert "line 32, column 11: expected a number after '1:', got 'first'" in refusal("\n".join(lines), n_jobs=n_jobs)


def test_an_id_that_no_memory_holds_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr(letor_read, "available_memory", lambda: 2**30)
    assert refusal("1 qid:1 1:1 99999999999:1\n") == (
        "train.txt: a table of 1 x 99,999,999,999 values would take 745.1 GiB, and 1.0 GiB of memory are free: the "
        "largest feature id is 99,999,999,999"
    )
    for length in range(11, 45):
        assert "GiB of memory are free: the largest feature id is" in refusal(f"1 qid:1 {'9' * length}:1\n")
    monkeypatch.setattr(letor_read, "available_memory", lambda: None)
    assert "that is more than there is" in refusal(f"1 qid:1 1:1 {10**30}:1\n")


@pytest.mark.parametrize("zeros", ["", "000"])
def test_r11_one_stray_id_does_not_ask_for_memory_that_its_text_does_not_bear_out(zeros):
    text = f"1 qid:1 1:1\n0 qid:1 1:2 {zeros}100000000:2\n"
    assert refusal(text) == (
        "train.txt, line 2, column 13: feature 100,000,000 would make a table of 2 x 100,000,000 values, 1,526 MiB, "
        f"out of {len(text)} bytes of text: pass n_features=100000000 to allow it"
    )
    with pytest.raises(FileFormatError, match="line 2, column 13: feature 100,000,000 would make a table"):
        list(iter_letor(io.BytesIO(text.encode())))


def test_r11_a_table_that_its_text_bears_out_or_that_is_small_or_asked_for_is_read(monkeypatch):
    monkeypatch.setattr(letor_read, "_UNQUESTIONED", 4_000)
    assert read("1 qid:1 500:1\n").n_features == 500  # 4,000 bytes
    assert "pass n_features=1501" in refusal("1 qid:1 1501:1\n")  # 15 bytes bear 1,500 values
    assert read("1 qid:1 1500:1\n").n_features == 1_500
    assert read("1 qid:1 1501:1\n", n_features=1_501).n_features == 1_501


# ------------------------------------------------------------------------------------------------------- line ends


def old_text(end):
    """60 documents of three queries, with comments, and the given line end."""
    return "".join(f"{row % 3} qid:{row // 20} 1:{row} # d{row}{end}" for row in range(60)).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("reader", [read_letor, lambda source: Queries.concat(list(iter_letor(source, rows=7)))])
def test_n8_carriage_returns_end_lines_before_a_newline_and_are_refused_alone(pack, reader):
    for end in ("\n", "\r\n", "\r\r\n", " \r \n"):
        assert reader(io.BytesIO(pack(old_text(end)))).n_documents == 60
    with pytest.raises(FileFormatError, match=r"line 1, column 17: found a carriage return \(\\r\) inside a line"):
        reader(io.BytesIO(pack(old_text("\r"))))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("1 qid:1 1:1\r0 qid:1 1:2\r", "line 1, column 13: expected feature:value, got '0' after"),
        ("# a title\r1 qid:1 1:1\r", "line 1, column 10"),
        ("1 qid:1 1:1\n# a\r0 qid:1 1:2\n", "line 2, column 4"),
        ("1 qid:1 1:1\n0 qid:1 1:2 # d2\r2 qid:1 1:3\n1 qid:1 1:4\n", "line 2, column 17"),
    ],
)
def test_n8_a_line_that_a_carriage_return_hides_is_never_lost(text, where):
    sentence = refusal(text)
    assert sentence.startswith(f"train.txt, {where}")
    assert "a carriage return (\\r) inside a line, with text behind it: lines end with \\n or \\r\\n" in sentence
    with pytest.raises(FileFormatError, match="carriage return"):
        list(iter_letor(io.BytesIO(text.encode())))


# ------------------------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize("name", ["ohsumed/S1", "mq2008/S1", "ohsumed-raw/S1", "lightgbm-rank/train"])
def test_real_sets_are_read_as_scikit_learn_reads_them(data_folder, name):
    from sklearn.datasets import load_svmlight_file

    path = data_folder / f"{name}.txt.gz"
    queries = read_letor(path)
    features, labels, qid = load_svmlight_file(str(path), zero_based=False, query_id=True)
    assert np.array_equal(queries.X, features.toarray())
    assert np.array_equal(queries.y, labels)
    assert np.array_equal(queries.qid[queries.query_of_row], qid)


def test_real_document_ids_are_kept(data_folder):
    path = data_folder / "mq2008" / "S1.txt.gz"
    written = re.findall(r"#docid = (\S+)", gzip.decompress(path.read_bytes()).decode())
    assert list(read_letor(path).docid) == written


def test_real_missing_values(data_folder):
    path = data_folder / "ohsumed-null" / "S1.txt.gz"
    with pytest.raises(FileFormatError, match=r"line \d+, column \d+: feature \d+ must be finite, got 'NULL'"):
        read_letor(path)
    absent = read_letor(io.BytesIO(gzip.decompress(path.read_bytes()).replace(b"NULL", b"0")))
    assert np.array_equal(read_letor(path, missing="zero").X, absent.X)
    assert not np.array_equal(read_letor(path, missing="min").X, absent.X)


def test_real_sparse_rows(data_folder):
    queries = read_letor(data_folder / "trecnews" / "train.txt")
    assert queries.n_features == 5
    assert queries.X[0].tolist() == [-1, -2, -1, 6.520804200793011e-08, 0.03703703703703703]
    assert queries.X[1].tolist()[1] == 0
