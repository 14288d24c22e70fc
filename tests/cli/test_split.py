"""``rankwise split``: by query, the same every time, every format, every column kept, and nothing half-written."""

import csv
import gzip
import io
import json
import os
import sys

import numpy as np
import pytest

import rankwise as rw
from rankwise.cli import split as splitting

LISTS = rw.make_lists(30, documents=(2, 6), features=3, random_state=6)
CALLED = {"qid": "query", "label": "grade", "docid": "url"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = rw.io.to_frame(LISTS).rename(columns=CALLED)
    frame["text"] = [f'a "quoted", text\nof row {row}' for row in range(len(frame))]
    frame.sample(frac=1, random_state=0).to_csv("my.csv", index=False)
    rw.write_letor(LISTS, "judged.txt")
    rw.io.write_table(LISTS, "judged.parquet")
    LISTS.save("judged.rankwise")
    return tmp_path


def records(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_a_csv_keeps_every_column_and_every_row_once(folder, run):
    code, out, err = run("split", "my.csv", "--qid", "query")
    assert (code, err) == (0, "")
    parts = {name: records(folder / "my" / f"{name}.csv") for name in ("train", "vali", "test")}
    header, *rows = records("my.csv")
    assert all(part[0] == header for part in parts.values())
    assert sorted(row for part in parts.values() for row in part[1:]) == sorted(rows)
    queries = {name: {row[0] for row in part[1:]} for name, part in parts.items()}
    assert {name: len(found) for name, found in queries.items()} == {"train": 18, "vali": 6, "test": 6}
    assert not queries["train"] & queries["vali"]
    assert not queries["train"] & queries["test"]
    assert f"{os.path.join('my', 'train.csv')}: 18 queries, {len(parts['train']) - 1} documents" in out
    # rows stay in the order of the file, byte for byte
    whole = (folder / "my.csv").read_bytes()
    kept = (folder / "my" / "test.csv").read_bytes()
    assert all(whole.count(b",".join(line.split(b",")[:3])) for line in kept.splitlines() if line.startswith(b"q"))


@pytest.mark.parametrize(
    ("file", "read"),
    [("judged.txt", rw.read_letor), ("judged.parquet", rw.read_table), ("judged.rankwise", rw.load)],
)
def test_every_format_gives_the_division_of_the_library(folder, run, file, read):
    code, out, _ = run("split", file, "--parts", "a=0.5,b=0.3,c=0.2", "--seed", 7, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["out"] == "judged"
    expected = rw.split(read(file), (0.5, 0.3, 0.2), random_state=7)
    for (name, one), part in zip(said["parts"].items(), expected, strict=True):
        found = read(one["file"])
        assert one["file"].endswith(os.path.splitext(file)[1])
        assert (one["queries"], one["documents"]) == (len(part), part.n_documents), name
        assert found.names() == part.names()
        np.testing.assert_array_equal(found.X, part.X)
        np.testing.assert_array_equal(found.y, part.y)
        assert [str(one) for one in found.docid] == [str(one) for one in part.docid]


def test_folds_are_folders_that_compare_reads(folder, run):
    assert run("split", "judged.txt", "--folds", 3, "--out", "folds")[0] == 0
    expected = rw.kfold(rw.read_letor("judged.txt"), 3, random_state=0)
    for found, fold in zip(rw.io.read_folds(folder / "folds"), expected, strict=True):
        for one, two in zip(found, fold, strict=True):
            np.testing.assert_array_equal(one.X, two.X)


def test_the_same_seed_gives_the_same_bytes(folder, run):
    for out, seed in (("one", 1), ("two", 1), ("three", 2)):
        assert run("split", "my.csv", "--qid", "query", "-o", out, "--seed", seed)[0] == 0
    one, two, three = ((folder / out / "train.csv").read_bytes() for out in ("one", "two", "three"))
    assert one == two != three


def test_another_format_reads_the_features(folder, run):
    roles = ("--qid", "query", "--label", "grade", "--docid", "url", "--ignore", "text")
    assert run("split", "my.csv", *roles, "--to", "txt", "-o", "texts")[0] == 0
    found = rw.read_letor(folder / "texts" / "train.txt")
    assert (len(found), found.n_features) == (18, 3)
    assert run("split", "judged.txt", "--to", "rankwise", "-o", "stored")[0] == 0
    assert len(rw.load(folder / "stored" / "test.rankwise")) == 6


def test_gzip_and_standard_input(folder, run, monkeypatch):
    content = (folder / "my.csv").read_bytes()
    (folder / "packed.csv.gz").write_bytes(gzip.compress(content))
    assert run("split", "packed.csv.gz", "--qid", "query", "-o", "gz")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run("split", "-", "--qid", "query", "-o", "piped")[0] == 0
    unpacked = gzip.decompress((folder / "gz" / "test.csv.gz").read_bytes())
    assert unpacked == (folder / "piped" / "test.csv").read_bytes()


def test_windows_line_ends_and_a_file_without_a_last_one(folder, run):
    rows = [f"q{row // 3},{row},x\r\n" for row in range(30)]
    (folder / "w.csv").write_bytes(("qid,a,b\r\n" + "".join(rows)).removesuffix("\r\n").encode())
    assert run("split", "w.csv", "--parts", "a=0.5,b=0.5")[0] == 0
    found = [(folder / "w" / f"{name}.csv").read_bytes() for name in "ab"]
    assert all(one.startswith(b"qid,a,b\r\n") for one in found)
    assert sorted(b"".join(one.partition(b"\r\n")[2] for one in found).split(b"\r\n")[:-1]) == sorted(
        row.strip().encode() for row in rows
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["my.csv"], "there is no column 'qid' (did you mean 'query'?)"),
        (["my.csv", "--qid", "query", "--parts", "train=0.6,test"], "--parts must be NAME=SHARE pairs"),
        (["my.csv", "--qid", "query", "--parts", "../a=0.5,b=0.5"], "--parts must be NAME=SHARE pairs"),
        (["my.csv", "--qid", "query", "--parts", "a=0.5,a=0.5"], "unique names, got 'a' twice"),
        (["my.csv", "--qid", "query", "--parts", "a=0.5,b=0.4"], "--parts must add up to 1, got [0.5, 0.4]"),
        (["my.csv", "--qid", "query", "--parts", "a=-0.5,b=1.5"], "--parts must be a sequence of floats in (0, inf)"),
        (["my.csv", "--qid", "query", "--parts", "a=0.999,b=0.001"], "30 queries are too few"),
        (["my.csv", "--parts", "a=1", "--folds", "3"], "cannot be combined"),
        (["my.csv", "--qid", "query", "-o", "full"], "full already exists: choose a new folder with --out"),
        (["my.csv", "--qid", "query", "-o", "no/such"], "the folder"),
        (["-"], "reading from standard input requires --out FOLDER"),
        (["nowhere.csv"], "nowhere.csv cannot be read"),
        (["bad.csv", "--qid", "query"], "bad.csv, line 3: expected 2 cells as in the header, got 3"),
    ],
)
def test_what_cannot_be_divided_is_one_sentence_and_leaves_nothing(folder, run, arguments, sentence):
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    (folder / "bad.csv").write_text("query,a\nq1,1\nq2,1,1\n")
    before = sorted(os.listdir(folder))
    code, out, err = run("split", *arguments)
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert sorted(os.listdir(folder)) == before


def test_a_failure_in_the_middle_leaves_nothing_behind(folder, run, monkeypatch):
    made = splitting._as_queries

    def failing(queries, ending):
        opened = made(queries, ending)

        def write(numbers, rows, file):
            if file.name.startswith("test"):
                raise OSError(28, "No space left on device", str(file))
            opened.write(numbers, rows, file)

        return opened._replace(write=write)

    monkeypatch.setattr(splitting, "_as_queries", failing)
    before = sorted(os.listdir(folder))
    code, _, err = run("split", "judged.txt")
    assert code == 2
    assert "No space left" in err
    assert sorted(os.listdir(folder)) == before
