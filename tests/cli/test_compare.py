"""``rankwise compare``: from a file or a folder of folds to a league table, and everything as JSON."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rankwise as rw
from rankwise import compare
from rankwise.evaluation.comparison.selection import USUAL, all_names, ranker_called

QUICK = ("-r", "RidgeRanker", "-r", "ada-rank")


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """In a folder of its own, on a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return run


@pytest.fixture
def lists(tmp_path):
    made = rw.make_lists(30, documents=6, features=3, random_state=2)
    rw.write_letor(made, tmp_path / "lists.txt")
    return rw.read_letor(tmp_path / "lists.txt")


@pytest.fixture
def folder(lists, tmp_path):
    for number, fold in enumerate(rw.kfold(lists, 3), start=1):
        place = tmp_path / "sets" / f"Fold{number}"
        place.mkdir(parents=True)
        for name, part in zip(("train", "vali", "test"), fold, strict=True):
            rw.write_letor(part, place / f"{name}.txt")
    return tmp_path / "sets"


def test_a_file_is_divided_and_the_table_says_what_compare_says(run, lists):
    code, out, err = run("compare", "lists.txt", *QUICK, "--folds", 3, "-o", "found.json")
    assert (code, err) == (0, "")
    with open("found.json", encoding="utf-8") as file:
        said = json.load(file)
    rankers = {name: ranker_called(name, "nDCG@10") for name in ("RidgeRanker", "ada-rank")}
    expected = compare(rankers, lists, ["nDCG@10", "AP"], folds=3)
    assert said["results"] == json.loads(expected.to_json())["results"]
    assert "30 test queries in 3 folds" in out
    assert f"{expected.means['ada-rank']['AP']:.4f}" in out
    assert "better and worse than RidgeRanker (paired randomization test over queries, Holm's correction" in out
    assert "all results: found.json" in out


def test_a_folder_of_folds(run, folder):
    code, out, err = run("compare", folder, *QUICK, "--json", "--like", "letor", "--baseline", "ada-rank")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert [fold["test"] for fold in said["data"]["folds"]] == [10, 10, 10]
    assert said["conventions"]["like"] == "letor"
    assert said["baseline"] == "ada-rank"


def test_saved_models_and_scores_take_part(run, lists):
    rw.RidgeRanker().fit(rw.make_lists(20, features=3, random_state=9)).save("mine.rankwise")
    np.savetxt("bm25.scores", lists.X[:, 0])
    code, out, _ = run("compare", "lists.txt", "-r", "old=mine.rankwise", "-r", "bm25.scores", "-m", "AP", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["results"]["bm25.scores"]["AP"]["mean"] == rw.evaluate(lists, lists.X[:, 0], "AP").mean["AP"]
    assert said["rankers"]["old"]["kind"] == "fitted"


def test_a_second_run_with_resume_says_the_same_to_the_last_second(run, lists):
    line = ("compare", "lists.txt", *QUICK, "--folds", 3, "--json", "--resume", "cells")
    first, second = run(*line), run(*line)
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere.txt", *QUICK), "nowhere.txt"),
        (("lists.txt", "-r", "nonsense"), "no ranker is called 'nonsense'"),
        (("lists.txt", "-r", "AdaRank", "-r", "AdaRank"), "--ranker AdaRank is given twice"),
        (("lists.txt", "-r", "a=nowhere"), "nowhere does not exist"),
        (("lists.txt", *QUICK, "--baseline", "b"), "got 'b'"),
        (("lists.txt", *QUICK, "-m", "nonsense"), "nonsense"),
        (("lists.txt", *QUICK, "--folds", 2), "got 2"),
        (("lists.txt", *QUICK, "-o", "no/where.json"), "cannot be written"),
        (("sets", *QUICK, "--folds", 3), "already divided into folds"),
    ],
)
def test_nonsense_is_one_sentence(run, folder, arguments, complaint):
    code, out, err = run("compare", *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


def test_the_usual_rankers_and_all_of_them_are_names():
    assert set(USUAL) < set(all_names())
    for name in all_names():
        for measure in ("nDCG@5", "AP", "ERR@10"):
            assert ranker_called(name, measure).name == name


def test_t2_the_winner_and_its_certificate_or_the_smallest_of_all_certificates(run, lists):
    code, out, _ = run("compare", "lists.txt", *QUICK, "--folds", 3)
    assert code == 0
    rankers = {name: ranker_called(name, "nDCG@10") for name in ("RidgeRanker", "ada-rank")}
    expected = compare(rankers, lists, ["nDCG@10", "AP"], folds=3)
    assert f"winner on the validation part of fold 1: {expected.winner}\n" in out
    assert expected.certificate().summary() in out
    np.savetxt("bm25.scores", lists.X[:, 0])
    code, out, _ = run("compare", "lists.txt", *QUICK, "-r", "bm25=bm25.scores", "--folds", 3)
    assert code == 0
    assert "no winner: a winner is chosen on the validation part, but 'bm25' was not trained here" in out
    assert "the smallest of 3 certificates that hold simultaneously with 95% confidence: " in out
    every = compare({**rankers, "bm25": lists.X[:, 0]}, lists, ["nDCG@10", "AP"], folds=3).certificates()
    smallest = min(every.values(), key=lambda one: one.headline.value)
    assert smallest.summary() in out


def test_w14_tables_for_pages_and_papers(run, lists):
    rankers = {name: ranker_called(name, "nDCG@10") for name in ("RidgeRanker", "ada-rank")}
    expected = compare(rankers, lists, ["nDCG@10", "AP"], folds=3)
    for form, text in (("markdown", expected.to_markdown()), ("latex", expected.to_latex())):
        assert run("compare", "lists.txt", *QUICK, "--folds", 3, "--format", form)[:2] == (0, text)
    code, out, err = run("compare", "lists.txt", *QUICK, "--format", "latex", "--json")
    assert (code, out) == (2, "")
    assert "--json and --format latex cannot be combined" in err


@pytest.mark.thorough
def test_every_ranker_takes_part(run, lists):
    code, out, _ = run("compare", "lists.txt", "-r", "all", "--folds", 1, "--json")
    assert code == 0
    assert set(json.loads(out)["results"]) == set(all_names())


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_says_where_the_finished_parts_are(tmp_path, lists):
    command = [sys.executable, "-m", "rankwise", "compare", "lists.txt", "-r", "SmoothRank", "-r", "PermuRank"]
    process = subprocess.Popen(
        [*command, "--resume", "cells", "-j", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if (tmp_path / "cells").is_dir():
            break
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished parts are in cells; run the same command to resume" in err
    assert not list((tmp_path / "cells").glob(".*.part"))
