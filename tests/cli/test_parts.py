"""The commands on data sets in parts: the same results as on the file, in folders that appear whole."""

import gzip
import json
import os

import numpy as np
import pytest

import rankwise as rw
from tests.queries.test_parts import assert_same

LISTS = rw.make_lists(40, documents=(2, 9), features=3, random_state=6)
ORDER = np.random.default_rng(0).permutation(LISTS.n_documents)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = rw.io.to_frame(LISTS).iloc[ORDER]
    frame.iloc[:100].to_csv("day1.csv.gz", index=False)
    frame.iloc[100:].to_csv("day2.csv", index=False)
    frame.to_csv("whole.csv", index=False)
    rw.RidgeRanker(alpha=1.0).fit(LISTS).save("model.rankwise")
    return tmp_path


@pytest.fixture
def whole(folder):
    found = rw.read_table("whole.csv")
    return found[np.arange(len(found))]


def converted(run, *more):
    code, out, err = run("convert", "day1.csv.gz", "day2.csv", "lists", *more)
    assert (code, err) == (0, "")
    return out


def test_several_files_become_one_data_set(folder, run, whole):
    out = converted(run, "--parts", "1MB")
    assert out.startswith(f"lists: Parts(40 queries, {LISTS.n_documents} documents, 3 features, labels 0 to 4, 1 part")
    assert_same(rw.load("lists").to_queries(), whole)
    assert sorted(os.listdir()) == ["day1.csv.gz", "day2.csv", "lists", "model.rankwise", "whole.csv"]


def test_the_json_of_a_conversion_says_what_was_written(folder, run):
    assert json.loads(converted(run, "--json", "--dtype", "float32"))["out"] == "lists"
    assert rw.load("lists").dtype == np.float32


def test_a_folder_is_overwritten_only_if_asked(folder, run):
    converted(run)
    code, _, err = run("convert", "day1.csv.gz", "lists")
    assert code == 2
    assert "--overwrite" in err
    assert run("convert", "day1.csv.gz", "lists", "--overwrite")[0] == 0


def test_what_convert_does_not_take_is_one_sentence(folder, run):
    for arguments, sentence in (
        (("day1.csv.gz",), "got one path"),
        (("day1.csv.gz", "day2.csv", "both.rankwise"), "several sources require a folder of parts"),
        (("day1.csv.gz", "lists", "--parts", "many"), "256MB"),
        (("missing.csv", "lists"), "no such file"),
    ):
        code, out, err = run("convert", *arguments)
        assert (code, out) == (2, "")
        assert sentence in err
    assert not os.path.exists("lists")


def test_gzipped_letor_text_becomes_parts(folder, run):
    rw.write_letor(LISTS, "judged.txt")
    with open("judged.txt", "rb") as file, gzip.open("judged.txt.gz", "wb") as packed:
        packed.write(file.read())
    assert run("convert", "judged.txt.gz", "lists", "--parts", "256MB")[0] == 0
    assert_same(rw.load("lists").to_queries(), rw.read_letor("judged.txt"))


def test_commands_say_the_same_of_parts_and_of_the_file(folder, run, whole):
    converted(run)
    whole.save("whole.rankwise")
    for command in (
        ("evaluate", "{}", "model.rankwise", "-m", "nDCG@5", "--json"),
        ("inspect", "{}", "--json"),
        ("rank", "model.rankwise", "{}", "--top", "3"),
        ("rank", "model.rankwise", "{}", "--to", "scores"),
    ):
        found = [run(*(word.format(data) for word in command)) for data in ("lists", "whole.rankwise")]
        assert found[0][0] == 0
        texts = [out.replace("whole.rankwise", "lists") for _, out, _ in found]
        if command[0] == "inspect":  # a folder of parts has no command for training yet
            texts = [json.dumps({**json.loads(text), "command": None}) for text in texts]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("target", ["one.rankwise", "one.txt", "one.parquet"])
def test_parts_become_one_file_again(folder, run, whole, target):
    converted(run)
    code, out, err = run("convert", "lists", target)
    assert (code, err) == (0, "")
    assert out == f"{target}: 40 queries, {whole.n_documents} documents\n"
    found = rw.load(target) if target == "one.rankwise" else rw.read_letor(target) if "txt" in target else None
    found = rw.read_table(target) if found is None else found
    assert np.array_equal(found.X, whole.X)
    assert found.names() == whole.names()


def test_scores_of_parts_are_evaluated(folder, run):
    converted(run)
    assert run("rank", "model.rankwise", "lists", "-o", "lists.scores")[0] == 0
    by_file = run("evaluate", "lists", "lists.scores", "--json")[1]
    by_model = run("evaluate", "lists", "--model", "model.rankwise", "--json")[1]
    assert json.loads(by_file)["results"]["lists.scores"] == json.loads(by_model)["results"]["model.rankwise"]


def test_parts_are_split_into_parts(folder, run, whole):
    converted(run)
    code, out, err = run("split", "lists", "--out", "cut", "--seed", "3")
    assert (code, err) == (0, "")
    for name, part in zip(("train", "vali", "test"), rw.split(whole, random_state=3), strict=True):
        assert_same(rw.load(f"cut/{name}").to_queries(), part)
        assert f"{os.path.join('cut', name)}: {len(part)} queries, {part.n_documents} documents" in out
    assert run("split", "lists", "--folds", "4", "--out", "folds")[0] == 0
    fold = list(rw.kfold(whole, 4))[1]
    assert_same(rw.load("folds/Fold2/test").to_queries(), fold.test)
    assert "--to does not apply" in run("split", "lists", "--out", "other", "--to", "csv")[2]


def test_a_damaged_part_is_named_by_inspect(folder, run):
    converted(run)
    with open("lists/part-00000.rankwise", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"???")
    code, _, err = run("inspect", "lists")
    assert code == 2
    assert "part-00000.rankwise is damaged" in err
