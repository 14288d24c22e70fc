"""Files that are not what a reader expects: the right answer or one clear sentence, never a guess or all memory."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import tarfile
import zipfile

import numpy as np
import pytest

import rankwise as rw
from rankwise._files import SIGNATURES, signature
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.evaluation.files import read_scores
from rankwise.io import sources
from rankwise.io.any_file import kind_of
from rankwise.io.sources import refuse_binary
from rankwise.io.tables import rows as tabular_rows

CSV = b"qid,label,a\n" + b"".join(b"%d,%d,%d.5\n" % (row // 4, row % 3, row) for row in range(40))


def sqlite(tmp_path):
    with sqlite3.connect(tmp_path / "made") as base:
        base.execute("create table if not exists t (a)")
    base.close()
    return (tmp_path / "made").read_bytes()


def zipped(name):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, CSV)
    return target.getvalue()


def tarred():
    target, member = io.BytesIO(), tarfile.TarInfo("t.csv")
    member.size = len(CSV)
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.addfile(member, io.BytesIO(CSV))
    return target.getvalue()


def npz():
    target = io.BytesIO()
    np.savez(target, a=np.zeros(3))
    return target.getvalue()


def npy():
    target = io.BytesIO()
    np.save(target, np.zeros(3))
    return target.getvalue()


FOREIGN = {
    "a zip file": lambda _: zipped("t.csv"),
    "an Excel workbook": lambda _: zipped("xl/workbook.xml"),
    "a NumPy .npz file": lambda _: npz(),
    "a NumPy .npy file": lambda _: npy(),
    "a file packed with xz": lambda _: lzma.compress(CSV),
    "a file packed with bzip2": lambda _: bz2.compress(CSV),
    "a file packed with zstd": lambda _: b"\x28\xb5\x2f\xfd" + bytes(99),
    "a tar archive": lambda _: tarred(),
    "a SQLite database": sqlite,
    "a Python pickle": lambda _: pickle.dumps({"a": np.zeros(3)}),
    "an HDF5 file": lambda _: b"\x89HDF\r\n\x1a\n" + bytes(99),
    "a binary file of an unknown format": lambda _: np.random.default_rng(0).bytes(5000).replace(b"\n", b""),
}
READERS = {
    "read_letor": rw.read_letor,
    "iter_letor": lambda path: list(rw.iter_letor(path)),
    "read_table": rw.read_table,
    "read_columns": rw.io.read_columns,
    "read_run": rw.io.read_run,
    "read_qrels": rw.io.read_qrels,
    "read_model": rw.read_model,
    "scores": lambda path: read_scores(path, rw.make_lists(3, random_state=0)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FOREIGN)
def test_w2_a_binary_file_is_called_by_its_name_whatever_its_ending(tmp_path, kind, reader):
    for ending in (".csv", ".txt"):
        path = tmp_path / f"t{ending}"
        path.write_bytes(FOREIGN[kind](tmp_path))
        with pytest.raises(FileFormatError, match=rf"t\{ending} is {kind}, expected text") as refused:
            READERS[reader](path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", [*FOREIGN, "text", "empty"])
def test_a_file_that_is_no_model_is_called_by_its_name(tmp_path, kind):
    """Once the message spoke of a header that is too large."""
    path = tmp_path / "m.rankwise"
    path.write_bytes({"text": CSV, "empty": b""}.get(kind) if kind in ("text", "empty") else FOREIGN[kind](tmp_path))
    with pytest.raises(FileFormatError, match=r"m\.rankwise is not a rankwise file") as refused:
        rw.load(path)
    sentence = str(refused.value)
    if kind != "a binary file of an unknown format":
        assert kind in sentence
        assert "header" not in sentence


def test_every_signature_is_within_reach_and_no_text_has_one():
    assert all(one.called and one.advice for one in SIGNATURES)
    for text in (
        CSV,
        b"1 qid:1 1:2\n",
        b"{}",
        b"q Q0 d 1 2 t\n",
        "\u20ac,qid\n".encode("cp1252"),
        b"P,K\n",
        b"BZh,qid\n",
    ):
        assert signature(text) is None
        refuse_binary(text, "t")


def test_packed_files_that_hold_no_text_are_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(gzip.compress(CSV)))
    with pytest.raises(FileFormatError, match=r"t\.csv\.gz, unpacked, is a gzip file, expected text: unpack it first"):
        rw.read_table(path)
    pyarrow = pytest.importorskip("pyarrow.parquet")
    pyarrow.write_table(rw.io.to_frame(rw.make_lists(3, random_state=0), "pyarrow"), tmp_path / "t.parquet")
    path.write_bytes(gzip.compress((tmp_path / "t.parquet").read_bytes()))
    with pytest.raises(FileFormatError, match=r"unpacked, is a Parquet file, expected text"):
        rw.read_table(path)


def test_w2_tables_are_known_by_their_content(tmp_path):
    pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    lists = rw.make_lists(5, random_state=0)
    rw.io.write_table(lists, tmp_path / "t.parquet")
    feather.write_feather(rw.io.to_frame(lists, "pyarrow"), tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        content = (tmp_path / name).read_bytes()
        for ending in (".csv", ".txt", ".parquet", ".arrow", ""):
            path = tmp_path / f"other{ending}"
            path.write_bytes(content)
            assert kind_of(path) == "table"
            np.testing.assert_array_equal(rw.read_table(path).X, lists.X)
            assert rw.io.read_columns(path).n_rows == lists.n_documents


# ------------------------------------------------------------------------------------------------- memory


def test_w2_a_packed_file_that_unpacks_to_more_than_memory_is_one_sentence(tmp_path, monkeypatch):
    """Some kilobytes that would be gigabytes: reading ends when little memory is free."""
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(CSV + b"1,1,1\n" * 2_000_000))
    free = iter([1 << 34, 1 << 33, 1 << 32, *[1 << 26] * 99])
    monkeypatch.setattr(sources, "available_memory", lambda: next(free))
    with pytest.raises(
        RankwiseError, match=r"bomb\.csv\.gz is larger, unpacked, than fits into memory, of which 64 MiB"
    ):
        rw.read_table(path)


def test_w2_a_parquet_file_of_equal_values_is_one_sentence(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    ones = arrow.array(np.zeros(1_000_000))
    parquet.write_table(arrow.table({"qid": ones, "label": ones, "a": ones}), tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 20_000
    monkeypatch.setattr(tabular_rows, "available_memory", lambda: 10_000_000)
    for read in (rw.read_table, rw.io.read_columns):
        with pytest.raises(FileFormatError, match=r"holds 1,000,000 rows of 3 columns, about 0\.0 GiB, and 0\.0 GiB"):
            read(tmp_path / "bomb.parquet")


# ------------------------------------------------------------------------------------------------- odd texts


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "t.csv is empty"),
        (b"\xef\xbb\xbf", "t.csv is empty"),
        (b"\xff\xfe", "t.csv is empty"),
        (b"\n\r\n \n", "t.csv is empty"),
        (b"qid,label,a\n", "t.csv has a header but no rows"),
        (b"qid,label,a,a\n1,1,1,1\n", "two columns are called 'a'"),
        (b"qid,la\0bel,a\n1,1,1\n", "line 1: byte 7 is zero"),
        (b"qid,label,a\n1,1,\0\n", "line 2: feature columns must be numeric, got '\\x00' in column 'a'"),
        (b"x," * (9 << 20), "its first line does not end"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_odd_tables_are_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with pytest.raises(RankwiseError) as refused:
        rw.read_table(path)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_mixed_ends_of_lines_and_very_long_lines_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"qid,label,a,note\r\n1,1,2,x\n1,0,3," + b"y" * 5_000_000 + b"\r\n2,1,4,z")
    found = rw.read_table(path, ignore=["note"])
    assert found.X.tolist() == [[2.0], [3.0], [4.0]]
    assert rw.io.read_columns(path).column("note").values[2] == "z"


def test_a_hundred_thousand_columns_are_read(tmp_path):
    width = 100_000
    names = ",".join(f"f{number}" for number in range(width))
    cells = ",".join(str(number % 10) for number in range(width))
    path = tmp_path / "t.csv"
    path.write_text(f"qid,label,{names}\n1,1,{cells}\n1,0,{cells}\n")
    found = rw.read_table(path)
    assert found.X.shape == (2, width)
    assert found.X[0, 17] == 7


# ------------------------------------------------------------------------------------------------- JSON


ROWS = [{"qid": row // 3, "docid": f"d{row}", "label": row % 3, "a": row / 7, "b": bool(row % 2)} for row in range(9)]


def queries_of(table):
    return [
        {"qid": qid, "docs": [{k: v for k, v in row.items() if k != "qid"} for row in table if row["qid"] == qid]}
        for qid in range(3)
    ]


JSON_FORMS = {
    "lines": "\n".join(map(json.dumps, ROWS)),
    "lines, blank ones between": "\n\n".join(map(json.dumps, ROWS)) + "\r\n",
    "a list": json.dumps(ROWS),
    "a list on many lines": json.dumps(ROWS, indent=2),
    "queries": "\n".join(map(json.dumps, queries_of(ROWS))),
    "a list of queries": json.dumps(queries_of(ROWS), indent=1),
}


@pytest.mark.parametrize("form", JSON_FORMS)
@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t", "t.csv", "t.jsonl.gz"])
def test_w7_rows_in_json_are_judged_queries(tmp_path, form, name):
    path = tmp_path / name
    content = JSON_FORMS[form].encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert kind_of(path) == "table"
    found = rw.read_table(path)
    assert found.feature_names == ("a", "b")
    assert found.X.tobytes() == np.array([[row["a"], row["b"]] for row in ROWS]).tobytes()
    assert (found.names(), list(found.docid)) == ([0, 1, 2], [row["docid"] for row in ROWS])
    assert rw.io.write_parts(path, tmp_path / "parts").n_documents == 9
    assert rw.io.read_columns(path).column("a").values.tolist() == [str(row["a"]) for row in ROWS]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"qid": 1, "label": 1, "a": 1}\n{"qid": 1, "label": 0, "a": "x"}',
            "t.jsonl, line 2: feature columns must be numeric, got 'x' in column 'a'",
        ),
        (
            '{"qid": 1, "label": 1, "a": 1}\n\n{"qid": 1, "label": 0}',
            "line 3: column 'a' must be finite",
        ),
        ('{"qid": 1, "label": 1, "a": "two\\nlines"}', "t.jsonl, line 1: feature columns must be numeric, got 'two"),
        (
            '{"qid": 1, "docs": [{"label": 1, "a": 1}, {"label": 1, "a": "x"}]}',
            "t.jsonl, line 1: feature columns must be numeric, got 'x' in column 'a'",
        ),
        ('[{"qid": 1, "label": 1, "a": 1}, {"qid": 1, "label": 1, "a": "x"}]', "element 2: feature columns must be"),
        ('{"qid": 1, "label": 1, "a": 1}\n{"qid": 1, ', "t.jsonl, line 2, column 12: not JSON"),
        ('{"qid": 1, "label": 1, "a": 1}\n[1]', "t.jsonl, line 2: expected an object with one value for each column"),
        ('{"qid": 1, "label": 1, "a": 1}\n{"qid": 1, "a": {}}', "line 2: expected an object with one value"),
        ('{"qid": 1, "label": 1, "docs": [{"label": 1}]}', "'label' is a member of the query and of a document"),
        ('{"qid": 1, "x": [{"label": 1}], "y": [{"a": 1}]}', "expected one list of documents, got 'x' and 'y'"),
        ('{"qid": 1, "label": 1, "a": 1, "a": 2}', "the key 'a' occurs twice in one object"),
        ('{"qid": 1, "label": 1, "a": NaN}', "expected numbers, got NaN"),
        ('{"q": {"d": 1.5}}', "t.jsonl is JSON without rows"),
    ],
    ids=lambda value: value[:40],
)
def test_w7_wrong_json_names_its_line(tmp_path, text, sentence):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(RankwiseError) as refused:
        rw.read_table(path)
    assert sentence in str(refused.value)


def test_w7_answers_of_other_tools_are_no_tables(tmp_path):
    for number, value in enumerate(
        (
            {"qid": "1", "hits": {"hits": []}},
            {"responses": [{"hits": {"hits": []}}]},
            {"q1": {"d1": 0.5}},
            {"level": 0.95, "measures": {"AP": 1}},
        )
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(value))
        assert kind_of(path) == "json"


# ------------------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize("read", [*READERS.values(), rw.load], ids=[*READERS, "load"])
def test_a_missing_file_is_one_traceback(tmp_path, read):
    with pytest.raises(RankwiseError, match=r"nothing.*(there is no such file|does not exist)") as refused:
        read(tmp_path / "nothing")
    error = refused.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
