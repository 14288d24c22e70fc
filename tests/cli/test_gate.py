"""``rankwise gate``: two model files and a CSV file, one command, an exit code and a table."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import rankwise as rw
from rankwise.evaluation.gate import gate as gates
from rankwise.guarantees import level_of_attempt

LISTS = rw.make_lists(400, documents=8, features=4, random_state=3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two models, and a hold-out as a table."""
    folder = tmp_path_factory.mktemp("gate")
    rw.RidgeRanker().fit(LISTS[:1]).save(folder / "old.rankwise")
    rw.RidgeRanker().fit(LISTS[:150]).save(folder / "new.rankwise")
    holdout = LISTS[150:]
    with open(folder / "judged.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["qid", "label", *holdout.feature_names])
        for query in range(len(holdout)):
            for row in range(holdout.start[query], holdout.start[query + 1]):
                rows.writerow([f"q{query}", int(holdout.y[row]), *holdout.X[row].tolist()])
    np.savetxt(folder / "noise.scores", np.random.default_rng(0).random(holdout.n_documents))
    return folder


@pytest.fixture
def ask(made, tmp_path, run):
    """Run the command on the hold-out with a state of its own."""

    def call(new, *options):
        return run("gate", made / new, "--data", made / "judged.csv", "--state", tmp_path / "gate.json", *options)

    return call


def table_of(text):
    """The Markdown table as a dictionary."""
    lines = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return {cells[0]: cells[-1] for cells in lines[2:]}


def test_a_stranger_reads_what_was_decided(made, ask):
    against = ("--against", made / "old.rankwise", "--allow", 0.005, "--markdown")
    code, out, err = ask("new.rankwise", *against)
    assert (code, err) == (0, "")
    found = table_of(out)
    assert found["decision"] == "passed"
    assert found["claim"].startswith(
        "mean nDCG@10 on future queries with a relevant document is above that of the model"
    )
    assert found["attempt"] == "1"
    assert found["level of this attempt"] == "0.025"
    assert int(found["hold-out queries that count"]) <= 250
    assert any(name.startswith("queries needed to pass in 80% of cases") for name in found)

    code, out, _ = ask("old.rankwise", "--against", made / "new.rankwise", "--allow", 0.005, "--markdown")
    found = table_of(out)
    assert code == 1
    assert (found["decision"], found["attempt"]) == ("not passed", "2")
    assert found["level of this attempt"] == f"{level_of_attempt(0.05, 2, 1):.3g}"

    code, out, _ = ask("new.rankwise", *against)
    assert code == 0
    assert table_of(out)["attempt"] == "1 (asked before: the stored answer)"


def test_a_threshold_scores_and_json(ask):
    code, out, _ = ask("noise.scores", "--at-least", 0.9, "-m", "RR", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["passed"], found["attempt"], found["level"], found["again"]) == (False, 1, 0.025, False)
    assert found["thresholds"] == [0.9]
    code, out, _ = ask("new.rankwise", "--at-least", 0.9, "-m", "RR")
    assert code == 1
    assert "not shown" in out
    assert "mean RR on future queries" in " ".join(out.split())


def test_several_measures(ask):
    code, out, _ = ask("new.rankwise", "--at-least", 0.3, "-m", "RR", "-m", "nDCG@10", "--json")
    assert code == 0
    assert json.loads(out)["claim"].count("is above 0.3") == 2


@pytest.mark.parametrize(
    ("new", "options", "said"),
    [
        ("missing.rankwise", ("--at-least", 0.5), "missing.rankwise does not exist"),
        ("new.rankwise", (), "requires either"),
        ("new.rankwise", ("--at-least", 2), "at_least must be above 0 and below 1"),
        ("new.rankwise", ("--at-least", 0.5, "--markdown", "--json"), "cannot be combined"),
        ("new.rankwise", ("--at-least", 0.5, "--margin", 0.6), "--margin must be above 0 and below 0.5"),
        ("new.rankwise", ("--at-least", 0.5, "-m", "DCG"), "between 0 and 1, got DCG"),
        ("new.rankwise", ("--at-least", 0.5, "--delta", 2), "must be between 0 and 1, got 2"),
    ],
)
def test_errors_are_exit_code_2_and_spend_nothing(ask, tmp_path, new, options, said):
    code, out, err = ask(new, *options)
    assert (code, out) == (2, "")
    assert said in err.replace("--at-least", "at_least")
    state = tmp_path / "gate.json"
    assert not state.exists() or json.loads(state.read_text())["attempts"] == []


def test_a_changed_question_is_exit_code_2(ask):
    assert ask("new.rankwise", "--at-least", 0.3)[0] == 0
    code, _, err = ask("new.rankwise", "--at-least", 0.4)
    assert code == 2
    assert "asks another question" in err


def test_what_nobody_foresaw_is_exit_code_2(ask, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(gates, "shows_above", broken)
    code, _, err = ask("new.rankwise", "--at-least", 0.3)
    assert code == 2
    assert "ZeroDivisionError: of all things" in err


@pytest.mark.thorough
def test_a_reader_that_is_gone_does_not_change_the_answer(made, tmp_path):
    """Standard output is closed: the exit code is still that of a model that did not pass."""
    words = [made / "noise.scores", "--data", made / "judged.csv", "--state", tmp_path / "gate.json", "--at-least", 0.9]
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rankwise", "gate", *map(str, words)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 1, done.stderr
    assert json.loads((tmp_path / "gate.json").read_text())["attempts"][0]["passed"] is False


def test_a_table_with_words_is_read_by_the_builders_of_the_models(made, tmp_path, run):
    header, *rows = (made / "judged.csv").read_text().splitlines()
    colors = np.where(LISTS.y > 1, "red", "blue")
    messy = tmp_path / "messy.csv"
    messy.write_text(
        "\n".join(
            [
                header + ",color",
                *(f"{row},{color}" for row, color in zip(rows, colors[LISTS.start[150] :], strict=True)),
            ]
        )
    )
    parts = {"train": rows[:400], "more": rows[400:1200], "holdout": rows[1200:]}
    lines = messy.read_text().splitlines()
    places = {"train": slice(1, 401), "more": slice(1, 1201), "holdout": slice(1201, None)}
    for name in parts:
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *lines[places[name]]]) + "\n")
    for name, data in (("old", "train"), ("new", "more")):
        code, _, err = run(
            "train",
            tmp_path / f"{data}.csv",
            "-r",
            "RidgeRanker",
            "--test-share",
            0,
            "-o",
            tmp_path / f"{name}.rankwise",
        )
        assert code == 0, err
    words = ("--data", tmp_path / "holdout.csv", "--state", tmp_path / "gate.json", "--at-least", 0.5, "--json")
    answers = [run("gate", tmp_path / f"{name}.rankwise", *words) for name in ("new", "old", "new")]
    assert [code for code, _, _ in answers] == [0, 0, 0], answers
    assert [json.loads(out)["attempt"] for _, out, _ in answers] == [1, 2, 1]
    code, _, err = run("gate", tmp_path / "new.rankwise", *words, "--qid", "qid")
    assert code == 2
    assert "the columns" in err
