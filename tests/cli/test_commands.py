"""The command line as people and programs use it: tables, JSON, exit codes, one sentence on bad input."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rankwise import evaluate, load, make_lists, read_letor, significance, write_letor


@pytest.fixture
def lists():
    return make_lists(30, documents=(3, 30), random_state=3)


@pytest.fixture
def judged(tmp_path, lists):
    path = tmp_path / "judged.txt"
    write_letor(lists, path)
    return path


def write_scores(path, scores):
    path.write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    return path


def test_inspect_tells_what_is_wrong(run, judged):
    code, out, err = run("inspect", judged)
    assert (code, err) == (0, "")
    assert "30 queries" in out
    assert "constant within every query" in out


def test_inspect_finds_queries_that_two_splits_share(run, tmp_path, judged, lists):
    write_letor(lists[:5], tmp_path / "other.txt")
    code, out, _ = run("inspect", judged, tmp_path / "other.txt", "--json")
    document = json.loads(out)
    assert code == 0
    assert any("5 queries" in finding["what"] for finding in document["findings"]), document["findings"]


def test_evaluate_prints_means_with_intervals_that_can_be_read_in_eighty_columns(run, tmp_path, judged, lists):
    scores = write_scores(tmp_path / "a.scores", lists.X[:, 0])
    code, out, _ = run("evaluate", judged, scores, "-m", "nDCG@10", "-m", "AP", "--tie-range")
    assert code == 0
    assert "nDCG@10" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_evaluate_compares_several_files_of_scores(run, tmp_path, judged, lists):
    first = write_scores(tmp_path / "a.scores", lists.X[:, 0])
    second = write_scores(tmp_path / "b.scores", lists.X[:, 1])
    code, out, _ = run("evaluate", judged, first, second, "--json", "--like", "lightgbm", "-m", "nDCG@5")
    document = json.loads(out)
    assert code == 0
    assert set(document["results"]) == {str(first), str(second)}
    assert document["results"][str(first)]["measures"]["nDCG@5"]["queries"] == 30
    (test,) = document["tests"]
    assert test["ranker"] == str(second)
    assert 0 <= test["p"] <= 1
    code, out, _ = run("evaluate", judged, first, second, "-m", "nDCG@5")
    assert "Paired tests" in out
    assert "…" not in out


@pytest.mark.parametrize("target", ["x.rankwise", "x.safetensors", "x.txt", "x.letor.gz", "x.parquet", "x.csv"])
def test_convert_there_and_back_keeps_every_bit(run, tmp_path, judged, lists, target):
    code, out, err = run("convert", judged, tmp_path / target)
    assert (code, err) == (0, "")
    assert "30 queries" in out
    assert run("convert", tmp_path / target, tmp_path / "back.rankwise")[0] == 0
    back = load(tmp_path / "back.rankwise")
    np.testing.assert_array_equal(back.X, lists.X)
    np.testing.assert_array_equal(back.y, lists.y)
    assert back.names() == lists.names()
    assert list(back.docid) == list(lists.docid)


def test_convert_reads_standard_input_and_gzip(tmp_path, judged):
    target = tmp_path / "x.rankwise"
    command = [sys.executable, "-m", "rankwise", "convert", "-", str(target), "--dtype", "float32"]
    done = subprocess.run(command, input=gzip.compress(judged.read_bytes()), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = load(target)
    assert found.X.dtype == np.float32
    np.testing.assert_array_equal(found.X, read_letor(judged, dtype="float32").X)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["inspect", "nowhere.txt"], "nowhere.txt cannot be read: there is no such file"),
        (["inspect", "."], "is a folder"),
        (["inspect", "broken.txt"], "broken.txt, line 2, column"),
        (
            ["evaluate", "judged.txt", "short.scores"],
            "short.scores must hold one score per judged document (322), got 1",
        ),
        (["evaluate", "judged.txt", "short.scores", "--like", "lucene"], "--like must be one of"),
        (["evaluate", "judged.txt", "short.scores", "-m", "nDGC@10"], "no measure is called 'nDGC'"),
        (["convert", "judged.txt", "x.docx"], "got '.docx'"),
        (["convert", "judged.txt", "no/such/folder/x.rankwise"], "x.rankwise"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(run, judged, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:abc\n")
    (tmp_path / "short.scores").write_text("1\n")
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("rankwise: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "judged.txt", "--ignore", "bm25"],
        ["train", "judged.txt", "--ranker", "RidgeRanker", "-o", "model.rankwise", "--ignore", "bm25"],
        ["train", "judged.txt", "--online", "-o", "model.rankwise", "--ignore", "bm25"],
        ["convert", "judged.txt", "judged.rankwise", "--ignore", "bm25"],
        ["evaluate", "judged.txt", "some.scores", "--ignore", "bm25"],
        ["split", "judged.txt", "-o", "divided", "--ignore", "bm25"],
    ],
)
def test_options_that_name_columns_are_refused_beside_a_file_without_columns(
    run, judged, lists, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    write_scores(tmp_path / "some.scores", np.zeros(lists.n_documents))
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert (
        err == "rankwise: --ignore: only tables (CSV, JSON lines, parquet, Arrow) have columns to "
        "name, got judged.txt\n"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("arguments", [["frobnicate"], ["evaluate"], ["inspect", "--missing", "perhaps", "x"]])
def test_wrong_usage_is_exit_code_two(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "Usage" in err


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in (
        "demo",
        "inspect",
        "convert",
        "train",
        "rank",
        "evaluate",
        "compare",
        "report",
        "certify",
        "export",
    ):
        assert command in out
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "rankwise")


def test_a_reader_that_has_seen_enough_is_no_error(judged):
    command = f"{sys.executable} -m rankwise inspect {judged} --features | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_ctrl_c_is_exit_code_130_and_leaves_nothing_behind(tmp_path):
    target = tmp_path / "x.rankwise"
    command = [sys.executable, "-m", "rankwise", "convert", "-", str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdin.write("1 qid:1 1:0.5\n" * 200_000)  # more than one block, and then the source waits
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()):  # the file that is being written beside
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == "rankwise: stopped; no incomplete file was left\n"
    assert list(tmp_path.iterdir()) == []


def test_w14_evaluations_for_pages_and_papers(run, judged, tmp_path):
    queries = read_letor(judged)
    files = [tmp_path / "one.scores", tmp_path / "two.scores"]
    for place, file in enumerate(files):
        np.savetxt(file, queries.X[:, place])
    results = {str(file): evaluate(queries, np.loadtxt(file), ["AP"]) for file in files}
    code, out, err = run("evaluate", judged, *files, "-m", "AP", "--format", "markdown")
    assert (code, err) == (0, "")
    for result in results.values():
        assert result.to_markdown() in out
    tests = significance(results, baseline=str(files[0]))
    assert out.count("|---") >= 3
    assert f"{tests['difference'][0]:.4f}" in out
    code, out, _ = run("evaluate", judged, files[0], "-m", "AP", "--format", "latex", "--per-query")
    assert code == 0
    assert out.count(r"\begin{tabular}") == 2
    code, _, err = run("evaluate", judged, files[0], "--format", "latex", "--json")
    assert code == 2
    assert "cannot be combined" in err


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demonstration prints, and where it was."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "rankwise", "demo", "--queries", "30"]
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    # without a terminal its progress is printed in lines, and nothing else is
    steps = ("looking for compiled kernels", "compiling, once on this machine", "comparing", "writing the report")
    assert [line for line in done.stderr.splitlines() if not line.startswith(steps)] == []
    return folder, done.stdout


def test_the_demo_says_what_it_does_at_each_step(shown):
    folder, out = shown
    words = " ".join(out.split())
    for step in (
        f"1. A table as people have it, one row per offer: {Path('rankwise-demo', 'judged.csv')}, 30 searches",
        "2. Inspect it",
        "left out: query (identifier), title (identifier), country (constant)",
        "a leak, which is left out: orders_after",
        "3. Compare rankers",
        "4. Choose on the validation part",
        "5. Certify on the test part, which chose nothing",
        "certified: nDCG@10 on future queries",
        "6. Export it to your stack",
        "0 stand in another order than in Python",
        f"7. See everything in a browser: open {Path('rankwise-demo', 'rankwise-demo.html')}",
    ):
        assert step in words
    for name in ("AutoRanker", "RidgeRanker", "SmoothRank", "lightgbm", "nDCG@10"):
        assert name in out
    assert "…" not in out
    assert max(map(len, out.partition("Try next")[0].splitlines())) <= 80  # commands are pasted, and stay in one line
    assert [path.name for path in folder.iterdir()] == ["rankwise-demo"]
    kept = {"judged.csv", "new.csv", "winner.rankwise", "winner.c", "rankwise-demo.html"}
    assert {path.name for path in (folder / "rankwise-demo").iterdir()} == kept


def test_the_commands_that_the_demo_names_work(run, shown, monkeypatch):
    folder, out = shown
    monkeypatch.chdir(folder)
    commands = [line.split()[1:] for line in out.partition("Try next")[2].splitlines() if "  rankwise " in line]
    assert [command[0] for command in commands] == ["rank", "inspect", "train"]
    for command in commands[:2]:  # the last one is for a table that readers have
        code, _, err = run(*command)
        assert (code, err) == (0, "")
