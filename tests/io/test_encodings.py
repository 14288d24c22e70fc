"""Text in every encoding through every reader and writer: the right answer, or one clear error."""

import gzip
import io
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise import Queries
from rankwise._files import signature
from rankwise.cli.reading import as_grades
from rankwise.cli.train import as_settings
from rankwise.errors import DataWarning, FileFormatError, RankwiseError
from rankwise.evaluation.files import read_scores
from rankwise.io.sources import is_utf8, mark_of, plain_number, read_text
from rankwise.io.tables import csv as csv_text
from tests.io import reference_letor

WORD = "gr\u00f6\u00dfe"
LATIN = WORD.encode("latin-1").decode("utf-8", "surrogateescape")  # bytes that are not UTF-8, as an id keeps them


def judged():
    X = [[1.0, 2], [3, 4], [5, 6]]
    return Queries.from_arrays(X, [1, 0, 1], qid=["a", "a", "b"], docid=["d1", "d2", "d3"])


def sizes(path):
    text = path.with_name("plain.txt")
    text.write_text("1 1:1\n0 1:2\n1 1:3\n")
    return rw.read_letor(text, query_file=path).sizes.tolist()


LETOR = f"1 qid:a 1:1 2:2 # d1\n0 qid:a 1:3 2:4 # {WORD}\n1 qid:{WORD} 1:5 2:6 # d3 {WORD}\n"

# name of the file -> its text, and what a reader makes of it
READERS = {
    "letor.txt": (LETOR, lambda path: rw.read_letor(path).X.tolist()),
    "stream.txt": (LETOR, lambda path: [block.X.tolist() for block in rw.iter_letor(path)]),
    "table.csv": (f"qid,label,docid,b\na,1,{WORD},3\n{WORD},0,1,2\n", lambda path: rw.read_table(path).X.tolist()),
    "named.csv": (f"qid;label;{WORD}\na;1;3\nb;0;2\n", lambda path: rw.read_table(path).feature_names),
    "qrels.txt": (f"{WORD} 0 d1 1\n{WORD} 0 {WORD} 0\n", lambda path: rw.io.read_qrels(path).label.tolist()),
    "run.txt": (f"{WORD} Q0 d1 1 2.5 {WORD}\nb Q0 {WORD} 2 1.5 x\n", lambda path: rw.io.read_run(path).score.tolist()),
    "scores.txt": ("1.5\n2.5\n3.5\n", lambda path: read_scores(path, judged()).tolist()),
    "by_index.txt": ("a 0 1.5\na 1 2.5\nb 0 3.5\n", lambda path: read_scores(path, judged()).tolist()),
    "by_docid.txt": (
        f"a Q0 d1 1 1.5 {WORD}\na Q0 d2 2 2.5 x\nb Q0 d3 1 3.5 x\n",
        lambda path: read_scores(path, judged()).tolist(),
    ),
    "ranklib.txt": (f"## Coordinate Ascent\n## {WORD}\n1:0.5 2:1.5\n", lambda path: rw.read_model(path).coef_.tolist()),
    "sizes.query": ("2\n1\n", sizes),
}
every_reader = pytest.mark.parametrize("name", READERS)


def read(tmp_path, name, change):
    text, reader = READERS[name]
    path = tmp_path / name
    path.write_bytes(change(text))
    return reader(path)


@every_reader
def test_r4_a_byte_order_mark_of_utf8_changes_nothing(tmp_path, name):
    plain = read(tmp_path, name, str.encode)
    assert read(tmp_path, name, lambda text: b"\xef\xbb\xbf" + text.encode()) == plain


@every_reader
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_w1_wide_encodings_with_a_mark_change_nothing(tmp_path, name, encoding, packed):
    mark = "\ufeff" if encoding.endswith("be") else ""  # the codec without an order writes the mark itself
    plain = read(tmp_path, name, str.encode)
    pack = gzip.compress if packed else bytes
    assert read(tmp_path, name, lambda text: pack((mark + text).encode(encoding))) == plain


@every_reader
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_w1_the_encoding_of_windows_changes_nothing_but_for_one_warning(tmp_path, name, encoding):
    plain = read(tmp_path, name, str.encode)
    if READERS[name][0].isascii():
        assert read(tmp_path, name, lambda text: text.encode(encoding)) == plain
        return
    with pytest.warns(
        DataWarning, match=rf"{name} is not UTF-8 \(byte \d+ is 0xF6\) and was read as Windows-1252"
    ) as said:
        assert read(tmp_path, name, lambda text: text.encode(encoding)) == plain
    assert {one.filename for one in said} == {__file__}  # the line of the caller
    assert len({str(one.message) for one in said}) == 1


@pytest.mark.parametrize(("encoding", "text"), [("utf-16", b"\xff\xfea"), ("utf-16", b"\xff\xfe\x00\xd8a\x00")])
def test_w1_damaged_wide_text_is_one_sentence(tmp_path, encoding, text):
    (tmp_path / "run").write_bytes(text)
    with pytest.raises(
        FileFormatError, match=r"run is damaged: its byte order mark says UTF-16, but .* codec can't decode"
    ):
        rw.io.read_run(tmp_path / "run")


EURO = "x" * 9 + "\u20ac" + "y" * 9


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 10, 100])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-32"])
def test_w1_letters_are_whole_whatever_the_blocks(size, encoding):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = Dripping(io.BytesIO(EURO.encode(encoding)), size)
        assert read_text(stream).data.tobytes() == EURO.encode()


@settings(max_examples=200)
@given(data=st.binary(max_size=40), size=st.integers(1, 9))
def test_w1_any_bytes_become_utf8_and_stray_ones_letters(data, size):
    """Against the plain definition, letter by letter; whole reads and streams agree."""
    if signature(data) is not None or mark_of(data)[1] in ("UTF-16", "UTF-32"):
        return
    stream = io.BytesIO(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_text(Dripping(stream, size)).data.tobytes()
    assert found == reference_letor.as_utf8(data)
    assert is_utf8([data[first : first + size] for first in range(0, len(data), size)]) == _decodes(data)


class Dripping:
    """A stream that gives a few bytes at a time."""

    def __init__(self, stream, size):
        self.stream, self.size = stream, size

    def read(self, size):
        return self.stream.read(min(size, self.size))


def _decodes(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@every_reader
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.filterwarnings("ignore:.*Windows-1252:rankwise.errors.DataWarning")
def test_r4_wide_encodings_without_a_mark_are_an_error(tmp_path, name, encoding):
    with pytest.raises(RankwiseError) as refused:
        read(tmp_path, name, lambda text: text.encode(encoding))
    assert name in str(refused.value)
    assert "\0" not in str(refused.value)


@every_reader
@pytest.mark.parametrize("inside", [b"\xed\xa0\x80", b"\xff", b"\xc3", b"\xf0\x9f\x98"], ids=repr)
@pytest.mark.filterwarnings("ignore:.*Windows-1252:rankwise.errors.DataWarning")
def test_r4_bytes_that_are_no_utf8_are_letters(tmp_path, name, inside):
    plain = read(tmp_path, name, str.encode)
    if name == "named.csv":
        plain = (inside.decode("cp1252"),)
    assert read(tmp_path, name, lambda text: text.encode().replace(WORD.encode(), inside)) == plain


@every_reader
@pytest.mark.parametrize("separator", ["\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\u00a0", "\u3000"], ids=ascii)
def test_r7_separators_of_unicode_end_neither_lines_nor_words(tmp_path, name, separator):
    """str.splitlines and str.split take them for ends; the tools that write such files do not."""
    plain = read(tmp_path, name, str.encode)
    found = read(tmp_path, name, lambda text: text.replace(WORD, f"x{separator}y").encode())
    assert found == ((f"x{separator}y",) if name == "named.csv" else plain)


@every_reader
@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.filterwarnings("ignore:.*Windows-1252:rankwise.errors.DataWarning")
def test_r4_a_zero_byte_anywhere_gives_an_answer_or_one_error(tmp_path, name, place):
    def broken(text):
        at = int(place * len(text.encode()))
        return text.encode()[:at] + b"\0" + text.encode()[at:]

    try:
        read(tmp_path, name, broken)
    except RankwiseError as error:
        sentence = str(error)
    else:
        sentence = ""
    assert "\n" not in sentence
    assert "\0" not in sentence


@pytest.mark.parametrize("fast", [True, False], ids=["pyarrow", "cell by cell"])
@pytest.mark.parametrize("cell", ["\u0661", "1\u0660", "\uff11", "1_000"], ids=ascii)
def test_r7_digits_of_other_scripts_are_no_numbers_of_a_table(monkeypatch, cell, fast):
    if not fast:
        monkeypatch.setattr(csv_text, "read_fast", lambda *_: None)
    with pytest.raises(FileFormatError, match="line 2: feature columns must be numeric"):
        rw.read_table(_peeked(f"qid,label,f\n1,0,{cell}\n"))


def _peeked(text):
    from rankwise.io.sources import ByteStream

    return ByteStream("t.csv", io.BytesIO(text.encode()))


@pytest.mark.parametrize("word", ["1_000", "\u0661", "nan", "1e", "0x1", "", " 1", "1 ", "1,5", "--1", "inf", "1\n"])
def test_r7_what_only_python_takes_for_a_number_is_none(word):
    assert plain_number(word) is None


@pytest.mark.parametrize("word", ["0", "-1", "+1.5", ".5", "5.", "1e5", "1E-400", "1e400", "007"])
def test_numbers_are_what_python_makes_of_them(word):
    assert plain_number(word) == float(word)


@pytest.mark.parametrize("score", ["1_000", "\u0661", "nan", "NaN", "1,5", "x"])
def test_r7_a_score_is_a_number_of_every_tool(tmp_path, score):
    path = tmp_path / "scores"
    path.write_text(f"1\n{score}\n2\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="line 2: expected a score"):
        read_scores(path, judged())


def test_a_score_may_be_infinite(tmp_path):
    path = tmp_path / "scores"
    path.write_text("-inf\n+Infinity\n2\n")
    assert read_scores(path, judged()).tolist() == [-np.inf, np.inf, 2.0]


@pytest.mark.parametrize("index", ["\u00b2", "\u0661", "9" * 5000, "-1", "2"], ids=lambda index: ascii(index[:9]))
def test_r7_an_index_is_a_plain_number_below_the_length_of_the_list(tmp_path, index):
    path = tmp_path / "scores"
    path.write_text(f"a 0 1\na {index} 2\nb 0 3\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="line 2: expected an index below 2"):
        read_scores(path, judged())


@pytest.mark.parametrize("grades", ["bad=1_0", "bad=\u0661", "bad=nan", "bad=inf", "=1", "bad", "bad="])
def test_r7_grades_of_the_command_line_are_plain_numbers(grades):
    expected = f"--labels must be WORD=GRADE pairs, such as bad=0,good=1, got {grades!r}"
    with pytest.raises(RankwiseError, match=f"^{re.escape(expected)}$"):
        as_grades(grades)


@pytest.mark.parametrize(
    "value", ["{[1]: 2}", "\0", "\udcff", "(" * 5000, "\u0661"], ids=lambda value: ascii(value[:9])
)
def test_r4_whatever_stands_behind_an_equals_sign_is_a_value(value):
    assert as_settings([f"name={value}"]) == {"name": value}


# ------------------------------------------------------------------------------------------- writing


ODD = [
    LATIN,
    "\ud800",
    "a\nb",
    "a\r\nb",
    "a\tb",
    "a,b",
    'a"b',
    "a;b",
    "a b",
    "\0",
    "a\u2028b",
    "a\x1eb",
    "#",
    "",
    "\u202e",
]


def lists(qid="q", docid="d", feature="f"):
    X = np.arange(12.0).reshape(6, 2)
    return Queries.from_arrays(
        X, [0, 1, 2, 0, 1, 2], qid=[qid, qid, "r", "r", "r", qid], docid=[docid, *"vwxyz"], feature_names=[feature, "g"]
    )


def identities(back):
    return list(map(str, back.names())), list(back.docid)


def through_run(queries, path):
    rw.io.write_run(queries, -np.arange(6.0), path)
    run = rw.io.read_run(path)
    return list(dict.fromkeys(run.qid)), sorted(run.docid)


WRITERS = {
    "lists.rankwise": lambda queries, path: (queries.save(path), identities(rw.load(path)))[1],
    "lists.txt": lambda queries, path: (rw.write_letor(queries, path), identities(rw.read_letor(path)))[1],
    "lists.csv": lambda queries, path: (rw.io.write_table(queries, path), identities(rw.read_table(path)))[1],
    "lists.parquet": lambda queries, path: (rw.io.write_table(queries, path), identities(rw.read_table(path)))[1],
    "lists.run": through_run,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("role", ["qid", "docid", "feature"])
@pytest.mark.parametrize("text", ODD, ids=ascii)
@pytest.mark.filterwarnings("ignore:.*Windows-1252:rankwise.errors.DataWarning")
def test_r4_odd_texts_come_back_as_they_were_or_are_refused_by_name(tmp_path, name, role, text):
    path = tmp_path / name
    try:
        queries = lists(**{role: text})
        found = WRITERS[name](queries, path)
    except RankwiseError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert repr(text)[1:-1] in sentence or "empty" in sentence
    else:
        expected = identities(queries)
        if text == LATIN and name in ("lists.txt", "lists.run"):  # its bytes are written, and read as letters
            expected = [[one.replace(LATIN, WORD) for one in part] for part in expected]
            expected = (expected[0], expected[1])
        assert found == ((expected[0], sorted(expected[1])) if name == "lists.run" else expected)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("role", ["qid", "docid", "feature"])
def test_r4_a_table_refuses_what_is_no_utf8_by_its_name(backend, role):
    what = {"qid": "query id", "docid": "document id", "feature": "feature name"}[role]
    with pytest.raises(
        RankwiseError, match=f"the {what} 'gr.*' cannot go into a table: it holds bytes that are not UTF"
    ):
        rw.io.to_frame(lists(**{role: LATIN}), backend)


def test_w1_the_command_line_prints_ids_that_are_no_utf8_and_says_so_once(tmp_path):
    (tmp_path / "judged").write_bytes(
        "".join(f"{i % 2} qid:{WORD}{i // 4} 1:{i}\n" for i in range(8)).encode("latin-1")
    )
    (tmp_path / "scores").write_text("".join(f"{i}\n" for i in range(8)))
    command = [sys.executable, "-X", "utf8=0", "-m", "rankwise", "evaluate", "judged", "scores", "--per-query"]
    environment = {"PATH": "", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8:strict", "HOME": str(tmp_path)}
    from rankwise._kernels.machine.cache import cache_folder

    folder = cache_folder()
    if folder is not None:
        environment["RANKWISE_CACHE_DIR"] = os.path.dirname(folder)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gr\u00f6\u00dfe1".encode() in done.stdout
    assert done.stderr.count(b"judged is not UTF-8 (byte 9 is 0xF6) and was read as Windows-1252") == 1
