"""The memory that a file needs is estimated from some of its bytes, before it is read."""

import gzip
import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.io.memory_needed import memory_needed

LISTS = rw.make_lists(700, documents=(2, 30), features=7, random_state=3)
OPTIONS = {"qid": "qid", "label": "label"}
EXPECTED = 3 * 8 * LISTS.n_documents * 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("files")
    rw.write_letor(LISTS, found / "t.txt")
    frame = rw.io.to_frame(LISTS)
    frame.to_csv(found / "t.csv", index=False)
    frame.to_parquet(found / "t.parquet")
    (found / "t.csv.gz").write_bytes(gzip.compress((found / "t.csv").read_bytes()))
    rows = frame.to_dict("records")
    (found / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    LISTS.save(found / "t.rankwise")
    frame.assign(word="abc").to_csv(found / "words.csv", index=False)
    frame.assign(word="abc").to_parquet(found / "words.parquet")
    return found


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.csv.gz", "t.parquet", "t.jsonl", "t.rankwise"])
def test_files_of_numbers_count_three_times_their_features(name, folder, monkeypatch):
    monkeypatch.setattr("rankwise.io.memory_needed._HEAD", 1 << 14)
    assert (folder / name).stat().st_size > 1 << 15
    assert memory_needed(folder / name, OPTIONS) == pytest.approx(EXPECTED, rel=0.15)


@pytest.mark.parametrize("name", ["words.csv", "words.parquet"])
def test_tables_of_words_count_their_cells(name, folder):
    columns = 7 + 2 + 1 + (LISTS.docid is not None)
    assert memory_needed(folder / name, OPTIONS) == pytest.approx(120 * columns * LISTS.n_documents, rel=0.01)
    plain = memory_needed(folder / "t.csv", {**OPTIONS, "kinds": {"feature_1": "category"}})
    assert plain > 2 * EXPECTED


def test_the_width_of_a_sparse_text_is_that_of_its_widest_place(tmp_path):
    lines = ["1 qid:1 1:0.5 # a\n"] * 60_000 + ["0 qid:2 4000:1\n"] * 60_000
    (tmp_path / "sparse.txt").write_text("".join(lines))
    assert memory_needed(tmp_path / "sparse.txt", {}) == pytest.approx(3 * 8 * 120_000 * 4000, rel=0.15)


def test_what_cannot_be_looked_at_is_left_to_its_reader(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "log.json").write_text('{"hits": {"hits": [{"fields": {"a": [1]}}]}}')
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"qid,label,a\n1,1,1\n")[:8])
    (tmp_path / "bad.txt").write_text("no qid:here 1:x\n")
    np.save(tmp_path / "array.npy", np.zeros(3))
    names = ("empty.csv", "log.json", "cut.csv.gz", "bad.txt", "array.npy", "missing.csv", "")
    assert [memory_needed(tmp_path / name, OPTIONS) for name in names] == [None] * len(names)
    assert memory_needed("-", OPTIONS) is None
