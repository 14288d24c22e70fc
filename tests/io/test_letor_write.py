"""LETOR text goes out: reading it back gives the same bits, and what the format cannot hold is refused by name."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankwise.errors import DataError, DataWarning, RankwiseError
from rankwise.io.letor import write as letor_write
from rankwise.io.letor.read import read_letor
from rankwise.io.letor.write import write_letor
from rankwise.queries.queries import Queries

words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters=" \t\n\r\v\f#"), min_size=1, max_size=8)
docids = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters=" \t\n\r\v\f"), max_size=12)


def floats(dtype):
    width = np.dtype(dtype).itemsize * 8
    return st.floats(allow_nan=False, allow_infinity=False, width=width) | st.integers(-9999, 9999).map(float)


@st.composite
def judged_lists(draw, dtype):
    n_rows, width = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    return Queries.from_arrays(
        draw(arrays.arrays(dtype, (n_rows, width), elements=floats(dtype))),
        draw(st.lists(st.floats(0, 1e300) | st.integers(0, 4), min_size=n_rows, max_size=n_rows)),
        qid=draw(st.lists(st.integers(-5, 5) if draw(st.booleans()) else words, min_size=n_rows, max_size=n_rows)),
        docid=draw(st.none() | st.lists(docids, min_size=n_rows, max_size=n_rows)),
    )


def assert_comes_back(queries: Queries, path, sparse: bool = False) -> None:
    write_letor(queries, path, sparse=sparse)
    back = read_letor(path, dtype=queries.X.dtype)
    assert back.X.tobytes() == queries.X.tobytes()
    assert back.y.tobytes() == queries.y.tobytes()
    assert [str(name) for name in back.names()] == [str(name) for name in queries.names()]
    assert np.array_equal(back.rows, queries.rows)
    assert np.array_equal(back.start, queries.start)
    written = [] if queries.docid is None else list(queries.docid)
    assert ([] if back.docid is None else list(back.docid)) == (written if any(written) else [])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_bit_comes_back(dtype, sparse, tmp_path):
    @given(judged_lists(dtype))
    def comes_back(queries):
        assert_comes_back(queries, tmp_path / "train.txt", sparse)

    comes_back()


@given(st.floats(0, 1e15), st.integers(0, 15))
def test_short_decimals_are_written_as_python_writes_them(number, decimals):
    from rankwise._kernels.text.written import short_decimal

    value = round(number, decimals)
    m, k = short_decimal(value, False)
    if k >= 0:
        whole, part = divmod(m, 10**k)
        text = f"{whole}.{part:0{k}d}" if k else f"{whole}"
        assert float(text) == value
        assert text == np.format_float_positional(value, trim="-")


def test_the_text(tmp_path):
    queries = Queries.from_arrays(
        [[0.5, 0.0, -1.0], [1e-7, 123456.789, 0.0], [0.0, -0.0, 1e22]],
        [2, 0.5, 0],
        qid=["b", "a", "b"],
        docid=["d1", "", "docid=x"],
    )
    path = tmp_path / "train.txt"
    write_letor(queries, path)
    assert path.read_text() == (
        "2 qid:b 1:0.5 2:0 3:-1 # d1\n"
        "0.5 qid:a 1:0.0000001 2:123456.789 3:0\n"
        "0 qid:b 1:0 2:-0 3:1e+22 # docid = docid=x\n"
    )
    write_letor(queries, path, sparse=True)
    assert path.read_text() == (
        "2 qid:b 1:0.5 3:-1 # d1\n"
        "0.5 qid:a 1:0.0000001 2:123456.789\n"
        "0 qid:b 2:-0 3:1e+22 # docid = docid=x\n"
    )  # fmt: skip


def test_a_sparse_text_keeps_the_width(tmp_path):
    assert_comes_back(Queries.from_arrays(np.zeros((3, 7)), [0, 0, 1], qid=[1, 1, 2]), tmp_path / "t", sparse=True)


def test_queries_without_ids_are_numbered(tmp_path):
    path = tmp_path / "train.txt"
    write_letor(Queries.from_arrays(np.ones((3, 1)), [0, 0, 1], group=[2, 1]), path)
    assert read_letor(path).names() == [0, 1]


def test_many_rows_and_parts_of_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(letor_write, "BLOCK", 1_000)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 5)) < 0.5, rng.normal(size=(300, 5)).round(6), rng.normal(size=(300, 5)))
    docid = [f"d{row}" for row in range(300)]
    queries = Queries.from_arrays(X, rng.random(300), qid=rng.integers(0, 20, 300), docid=docid)
    assert_comes_back(queries, tmp_path / "whole.txt")
    assert_comes_back(queries[3:9], tmp_path / "part.txt")


def test_gzip_holds_the_same_text_and_the_same_lists_give_the_same_bytes(tmp_path):
    queries = Queries.from_arrays(np.eye(4), [0, 1, 2, 3], qid=[1, 1, 2, 2])
    for name in ("a.txt", "a.txt.gz", "b.txt.gz"):
        write_letor(queries, tmp_path / name)
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == (tmp_path / "a.txt").read_bytes()
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


def test_scikit_learn_reads_what_was_written(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(1)
    queries = Queries.from_arrays(rng.normal(size=(50, 3)), rng.integers(0, 5, 50), qid=np.arange(50) // 10)
    write_letor(queries, tmp_path / "train.txt")
    X, y, qid = load_svmlight_file(str(tmp_path / "train.txt"), query_id=True, zero_based=False)
    assert np.array_equal(X.toarray(), queries.X)
    assert np.array_equal(y, queries.y)
    assert np.array_equal(qid, np.arange(50) // 10)


def test_real_sets_come_back(data_folder, tmp_path):
    assert_comes_back(read_letor(data_folder / "mq2008" / "S2.txt.gz"), tmp_path / "train.txt")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"y": None}, "these queries have no labels"),
        ({"qid": ["a b", "c"]}, "query 'a b' holds ' ', which would end its id in the text"),
        ({"qid": ["a", "c#"]}, "query 'c#' holds '#', which would end its id in the text"),
        ({"qid": ["a", ""]}, "query 1 has an empty id, which the format cannot hold"),
        ({"qid": [1, "1"]}, "query '1' occurs twice, and the two queries would become one"),
        ({"docid": ["d1", "d\n2"]}, r"document 'd\n2' holds '\n', which would end its id in the text"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_by_name(fields, sentence, tmp_path):
    arguments = {"X": np.ones((2, 1)), "y": [0, 1], "qid": ["a", "b"], **fields}
    path = tmp_path / "train.txt"
    with pytest.raises(DataError) as caught:
        write_letor(Queries.from_arrays(**arguments), path)
    assert sentence in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_query_taken_twice_is_refused(tmp_path):
    queries = Queries.from_arrays(np.ones((2, 1)), [0, 1], qid=["a", "b"])
    with pytest.raises(DataError, match="query 'a' occurs twice"):
        write_letor(queries[[0, 1, 0]], tmp_path / "train.txt")


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "train.txt"
    path.write_text("before")

    def breaks_off(*arguments):
        raise MemoryError

    monkeypatch.setattr(letor_write, "_format", breaks_off)
    with pytest.raises(MemoryError):
        write_letor(Queries.from_arrays(np.ones((2, 1)), [0, 1], qid=[1, 1]), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RankwiseError, match="cannot be written"):
        write_letor(Queries.from_arrays(np.ones((2, 1)), [0, 1], qid=[1, 1]), tmp_path / "none" / "train.txt")


def test_letters_of_windows_come_back(tmp_path):
    with pytest.warns(DataWarning, match="was read as Windows-1252"):
        queries = read_letor(io.BytesIO(b"1 qid:\xff 1:1 # \xfe\n0 qid:\xff 1:2\n"))
    assert_comes_back(queries, tmp_path / "train.txt")
