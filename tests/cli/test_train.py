"""``rankwise train`` in batch: with no option at all, with every choice named, stopped, and given nonsense."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import rankwise as rw

QUICK = (
    "-r",
    "SmoothRank",
    "--set",
    "protocol=paper",
    "--set",
    "alpha=1.0",
    "--set",
    "steps=3",
    "--set",
    "sigmas=(4.0, 0.25)",
)


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """In a folder of its own, on a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return run


@pytest.fixture
def lists(tmp_path):
    made = rw.make_lists(40, documents=8, features=4, random_state=2)
    rw.write_letor(made, tmp_path / "lists.txt")
    return made


def test_no_option_is_needed(run, lists):
    code, out, err = run("train", "lists.txt")
    assert (code, err) == (0, "")
    assert "AutoRanker on 4 features" in out
    assert "nDCG@10" in out
    assert out.count("test") == 1
    assert out.count("train") == 1
    model = rw.load("model.rankwise")
    assert isinstance(model, rw.AutoRanker)
    assert f"\nweights: ridge {model.weights_['ridge']:.2f}, normal {model.weights_['normal']:.2f}, trees " in out
    assert model.measure == "nDCG@10"


def test_what_is_said_is_what_the_model_does(run, lists):
    code, out, _ = run("train", "lists.txt", "--json", "--seed", "5", "--test-share", "0.25", "-m", "AP", *QUICK)
    assert code == 0
    said = json.loads(out)
    model, read = rw.load("model.rankwise"), rw.read_letor("lists.txt")
    train, test = rw.split(read, (0.75, 0.25), random_state=5)
    assert [said["parts"][name]["queries"] for name in ("train", "test")] == [len(train), len(test)] == [30, 10]
    again = rw.SmoothRank("AP", protocol="paper", alpha=1.0, steps=3, sigmas=(4.0, 0.25), random_state=5).fit(train)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    found = rw.evaluate(test, model.predict(test), "AP")
    assert said["parts"]["test"]["mean"] == found.mean["AP"]
    assert (said["parts"]["test"]["low"], said["parts"]["test"]["high"]) == found.interval(0.95)["AP"]
    assert said["chosen"] == ({"alpha": 1.0})


def test_a_validation_file_makes_the_choices_and_nothing_is_held_out(run, lists, tmp_path):
    held = rw.make_lists(15, documents=8, features=4, random_state=3)
    rw.write_letor(held, tmp_path / "vali.txt")
    code, out, _ = run("train", "lists.txt", "--validation", "vali.txt", "--ranker", "ridgeranker", "-o", "r", "--json")
    assert code == 0
    said = json.loads(out)
    assert {name: part["queries"] for name, part in said["parts"].items()} == {"train": 40, "validation": 15}
    train, vali = rw.read_letor("lists.txt"), rw.read_letor("vali.txt")
    assert said["chosen"] == {"alpha": rw.RidgeRanker("nDCG@10").fit(train, validation=vali).alpha_}


@pytest.mark.parametrize("name", ["AdaRank", "rank-boost", "RANKSVM", "svmmap"])
def test_every_ranker_is_a_name(run, lists, name):
    code, out, err = run("train", "lists.txt", "--ranker", name, "--test-share", "0", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert "NaN" not in out
    assert said["ranker"].lower() == name.replace("-", "").lower()
    assert list(said["parts"]) == ["train"]
    assert said["parts"]["train"]["queries"] == 40


STOPPED = """
import sys
from rankwise.cli import main
from rankwise.rankers.smooth import annealing

measure, calls, last = annealing.measure_of_weights, [0], int(sys.argv[1])

def stopping(*arguments):
    calls[0] += 1
    if calls[0] == last:
        raise KeyboardInterrupt
    return measure(*arguments)

annealing.measure_of_weights = stopping
sys.argv = ["rankwise", "train", "lists.txt", "-r", "SmoothRank", "--set", "protocol=paper"]
sys.argv += ["--set", "alpha=1.0", "--set", "n_jobs=1"]
sys.exit(main())
"""


@pytest.mark.parametrize(("calls", "kept"), [(1, False), (5, True)])
def test_ctrl_c_saves_what_was_learned_and_exits_with_130(lists, tmp_path, calls, kept):
    command = [sys.executable, "-c", STOPPED, str(calls)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 130
    assert done.stdout == ""
    assert (tmp_path / "model.rankwise").exists() == kept
    if kept:
        assert "stopped early; SmoothRank as of the last finished round is in model.rankwise" in done.stderr
        model = rw.load(tmp_path / "model.rankwise")
        assert 0 < len(model.history_) < 13
        assert np.isfinite(model.predict(lists)).all()
    assert sorted(os.listdir(tmp_path)) == sorted(["lists.txt", *(["model.rankwise"] if kept else [])])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.txt"], "nowhere.txt cannot be read: there is no such file"),
        (["lists.txt", "--ranker", "forest"], "--ranker must be one of AdaRank, AutoRanker"),
        (
            ["lists.txt", "--set", "rounds=3"],
            "AutoRanker has no parameter 'rounds'; available: boosters, compact, folds, max_trees, measure, members",
        ),
        (["lists.txt", "--set", "rounds"], "--set must be NAME=VALUE, such as --set rounds=100, got 'rounds'"),
        (["lists.txt", "--margin", "1"], "AutoRanker has no parameter 'margin'"),
        (["lists.txt", "--checkpoint", "5"], "--checkpoint requires --online"),
        (["lists.txt", "--measure", "nDGC"], "no measure is called 'nDGC'"),
        (["one.txt"], "one.txt has 1 query, too few to hold some out: use --test-share 0"),
        (["lists.txt", "--out", "no/folder/x"], "no/folder/x cannot be written: the folder"),
        (["lists.txt", "--validation", "narrow.txt"], "4 features, got 2"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(run, lists, tmp_path, arguments, sentence):
    (tmp_path / "one.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    (tmp_path / "narrow.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:3\n")
    before = sorted(os.listdir(tmp_path))
    code, out, err = run("train", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


# ------------------------------------------------------------------------------------------- test, certificate, leaks


def test_four_lines_train_test_and_certify(run, lists):
    code, out, err = run("train", "lists.txt", "--test-share", "0.5", *QUICK)
    assert (code, err) == (0, "")
    model, trained, tested, certified = out.splitlines()
    assert model.endswith(": model.rankwise")
    assert trained.startswith("trained on 20 queries: nDCG@10 0.")
    assert tested.startswith("tested on 20 queries that were held out: nDCG@10 0.")
    found = json.loads(run("certify", "model.rankwise", "--holdout", "lists.txt", "--json")[1])
    assert any(note.startswith("20 of the 40 hold-out queries (") for note in found["notes"])
    # T9: the line names the queries that it is about; those of the training rows only weaken the bound of the file
    least = re.fullmatch(
        r"certified: (nDCG@10.* on future queries.*) is at least (0\.\d{4}) on average, with 95% confidence",
        certified,
    )
    assert f"1 - {least[1]}" == found["headline"]["bounds"]
    assert float(least[2]) >= round(1 - found["headline"]["value"], 4)


def test_json_has_the_whole_certificate_and_no_leak(run, lists):
    said = json.loads(run("train", "lists.txt", "--json", *QUICK)[1])
    model = rw.load("model.rankwise")
    _, test = rw.split(rw.read_letor("lists.txt"), (0.8, 0.2), random_state=0)
    assert said["certificate"] == model.certificate(None, test).to_dict()
    assert said["leaks"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--test-share", "0"),
            "not certified, since no query was held out: use rankwise certify model.rankwise --holdout",
        ),
        (("--test-share", "0.05"), "not certified: 2 queries are too few for a bound on nDCG@10"),
        (("-m", "DCG@5"), "not certified: DCG@5 has no largest value"),
    ],
)
def test_what_is_not_certified_says_why(run, lists, arguments, sentence):
    code, out, _ = run("train", "lists.txt", *QUICK, *arguments)
    assert code == 0
    assert sentence in out.splitlines()[-1]
    assert len(out.splitlines()) <= 4


def test_a_leak_is_a_warning_and_the_column_stays(run, tmp_path):
    frame = rw.io.to_frame(rw.make_lists(60, documents=10, features=3, random_state=2))
    frame["judged"], frame["again"] = frame["label"] * 2.5, 1 - frame["label"]
    frame.to_csv(tmp_path / "leak.csv", index=False)
    code, out, err = run("train", "leak.csv", "-r", "RidgeRanker")
    assert code == 0
    assert err.startswith("rankwise: warning: 2 features rank like the label itself")
    assert "judged (alone: nDCG 1.000, skill 1.00)" in err
    assert "--ignore judged,again" in err
    assert "on 5 features" in out
    code, out, err = run("train", "leak.csv", "-r", "RidgeRanker", "--ignore", "judged,again", "-o", "clean.rankwise")
    assert (code, err) == (0, "")
    assert "on 3 features" in out


def test_columns_to_ignore_are_listed_or_repeated(run, tmp_path):
    frame = rw.io.to_frame(rw.make_lists(30, documents=5, features=3, random_state=2))
    frame["a"], frame["b, c"] = "text", "text"
    frame.to_csv(tmp_path / "my.csv", index=False)
    for ignored in (("--ignore", 'a,"b, c"'), ("--ignore", "a", "--ignore", '"b, c"')):
        code, out, err = run("inspect", "my.csv", *ignored)
        assert (code, err) == (0, "")
        assert "3 features" in out
