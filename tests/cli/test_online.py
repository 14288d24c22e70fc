"""``rankwise train --online`` and ``rankwise simulate`` as people and programs use them."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rankwise import ListNet, MaxPairPerceptron, SLAMPerceptron, load, make_lists, read_letor
from rankwise import write_letor as write
from rankwise.synthetic import separable_stream


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """In a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture(scope="module")
def stream():
    """Lists that take some learning."""
    return make_lists(60, documents=(3, 12), random_state=1)


@pytest.fixture
def text(tmp_path, stream):
    write(stream, tmp_path / "lists.txt")
    return tmp_path / "lists.txt"


def same_bits(first, second):
    """Two files of models, or a file and a ranker."""
    first, second = (one if hasattr(one, "coef_") else load(one) for one in (first, second))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.ledger_.table() == second.ledger_.table()
    np.testing.assert_array_equal(first.ledger_.curve.points, second.ledger_.curve.points)


# ------------------------------------------------------------------------------------------------------ learning


def test_a_file_is_learned_from_as_fit_learns(run, text, stream):
    code, out, err = run("train", text, "--online")
    assert code == 0
    assert "features on different scales" in err
    assert "mean nDCG@10" in out
    assert out.endswith("SLAMPerceptron on 20 features: model.rankwise\n")
    assert max(map(len, out.splitlines())) <= 80
    same_bits("model.rankwise", SLAMPerceptron().fit(read_letor(text)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ranker", "max-pair", "-m", "AP"], MaxPairPerceptron("AP")),
        (["--ranker", "listnet", "--eta", "0.5", "--averaging", "uniform"], ListNet(eta=0.5, averaging="uniform")),
        (["--ranker", "ListNet", "--scale", "standard"], ListNet(scale="standard")),
        (
            ["-m", "nDCG@5", "--margin", "1", "--eta", "0.1", "--weights", "ndcg_003", "--scale", "radius"],
            SLAMPerceptron("nDCG@5", margin=1.0, eta=0.1, weights="ndcg_003", scale="radius"),
        ),
        (["--epochs", "3"], SLAMPerceptron(epochs=3)),
    ],
)
def test_options_mean_what_parameters_mean(run, text, options, expected):
    code, out, err = run("train", text, "--online", "--out", "x.rankwise", "--json", *options)
    assert code == 0
    assert ("features on different scales" in err) == ("--scale" not in options)
    told, model = json.loads(out), load("x.rankwise")
    expected.fit(read_letor(text))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert told["ranker"] == expected.name
    assert told["rounds"] == expected.ledger_.rounds
    assert told["mistakes"] == expected.ledger_.mistakes
    assert told["mean"] == expected.ledger_.mean
    assert told["model"] == "x.rankwise"


def test_gzip_standard_input_tables_and_rankwise_files_give_the_same_model(run, text, stream, tmp_path):
    (tmp_path / "lists.gz").write_bytes(gzip.compress(text.read_bytes()))
    stream.save(tmp_path / "lists.rankwise")
    assert run("convert", text, "lists.csv")[0] == 0
    for source in ("lists.txt", "lists.gz", "lists.rankwise", "lists.csv"):
        assert run("train", source, "--online", "-o", f"{source}.model")[0] == 0
        same_bits(f"{source}.model", "lists.txt.model")
    command = [sys.executable, "-m", "rankwise", "train", "-", "--online", "--out", "piped.model"]
    done = subprocess.run(command, input=text.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "piped.model").read_bytes() == (tmp_path / "lists.txt.model").read_bytes()


def test_a_qid_that_returns_begins_another_list(run, tmp_path):
    (tmp_path / "x.txt").write_text("1 qid:a 1:1\n0 qid:a 1:2\n1 qid:b 1:3\n0 qid:b 1:1\n0 qid:a 1:2\n2 qid:a 1:7\n")
    code, out, _ = run("train", "x.txt", "--online", "--json")
    assert (code, json.loads(out)["rounds"]) == (0, 3)


def test_the_widest_list_may_come_late(run, tmp_path):
    (tmp_path / "x.txt").write_text("1 qid:a 1:1\n0 qid:a 2:2\n")
    (tmp_path / "y.txt").write_text("1 qid:b 1:1\n0 qid:b 2:2\n")
    assert run("train", "x.txt", "--online", "--features", "5", "-o", "m")[0] == 0
    assert run("train", "y.txt", "--online", "--resume", "m")[0] == 0  # a resumed run knows its width
    assert load("m").coef_.shape == (5,)


# ------------------------------------------------------------------------------------------- stopping and going on


@pytest.mark.parametrize("ranker", ["slam", "max-pair", "listnet"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_resumed_run_ends_with_the_bits_of_one_run(run, stream, tmp_path, ranker, scale):
    write(stream, tmp_path / "all.txt")
    write(stream[:23], tmp_path / "first.txt")
    write(stream[23:], tmp_path / "second.txt")
    rules = ("--ranker", ranker, "--scale", scale, "--averaging", "suffix")
    assert run("train", "all.txt", "--online", *rules, "-o", "whole.rankwise")[0] == 0
    assert run("train", "first.txt", "--online", *rules)[0] == 0
    code, out, _ = run("train", "second.txt", "--online", "--resume", "model.rankwise", "--json")
    assert (code, json.loads(out)["model"]) == (0, "model.rankwise")
    assert (tmp_path / "model.rankwise").read_bytes() == (tmp_path / "whole.rankwise").read_bytes()


def test_a_run_goes_on_in_the_middle_of_a_file(run, text, stream, tmp_path):
    write(stream[:41], tmp_path / "first.txt")
    assert run("train", "first.txt", "--online", "-o", "part")[0] == 0
    assert run("train", text, "--online", "--resume", "part", "--skip", "41", "--out", "rest")[0] == 0
    assert run("train", text, "--online", "--out", "whole")[0] == 0
    assert load("part").ledger_.rounds == 41  # --out left the resumed model alone
    same_bits("rest", "whole")


def test_checkpoints_are_whole_models_of_exactly_their_rounds(run, text, monkeypatch):
    saved = []
    keep = SLAMPerceptron.save

    def save(model, path):
        keep(model, path)
        saved.append(load(path).ledger_.rounds)

    monkeypatch.setattr(SLAMPerceptron, "save", save)
    assert run("train", text, "--online", "--checkpoint", "7")[0] == 0
    assert saved == [*range(7, 60, 7), 60]
    same_bits("model.rankwise", SLAMPerceptron().fit(read_letor(text)))


def interrupted(command, lists, ready):
    """Send lists through a pipe that stays open, and Ctrl-C once ``ready()``: (exit code, standard error)."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(lists)
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while not ready():
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        return process.stderr.read().decode()


def test_ctrl_c_saves_what_was_learned(run, tmp_path):
    lists = [b"%d qid:%d 1:%d 2:%d\n" % (row % 3, row // 8, row * 7 % 11, row * 5 % 13) for row in range(50_000)]
    target = tmp_path / "x.rankwise"
    command = [sys.executable, "-m", "rankwise", "train", "-", "--online", "-o", "x.rankwise", "--checkpoint", "1000"]
    told = interrupted(command, b"".join(lists), target.exists)
    model = load(target)
    assert model.ledger_.rounds >= 1_000
    assert f"the model after {model.ledger_.rounds:,} rounds is in x.rankwise" in told
    assert told.endswith("rankwise: stopped; no incomplete file was left\n")
    assert os.listdir(tmp_path) == ["x.rankwise"]
    # the sentence says how to go on, and that ends with the bits of one run
    (tmp_path / "all.txt").write_bytes(b"".join(lists))
    words = told[told.index("--resume") :].split()[:4]
    for options in (words, ["--out", "whole"]):
        assert run("train", "all.txt", "--online", *options)[0] == 0
    same_bits(target, tmp_path / "whole")


def test_ctrl_c_before_the_first_list_writes_nothing(tmp_path):
    command = [
        sys.executable,
        "-c",
        "import sys, rankwise.cli.train_online; print('on', file=sys.stderr, flush=True); ",
    ]
    command[-1] += "sys.argv[1:] = ['train', '-', '--online', '--out', sys.argv[1]]; sys.exit(rankwise.cli.main())"
    with subprocess.Popen([*command, tmp_path / "x"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"on\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"no incomplete file was left" in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_a_live_line_counts_rounds_and_mistakes(text, tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rankwise", "train", text, "--online", "--out", tmp_path / "x", "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(command, stderr=theirs, stdout=subprocess.PIPE, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 1 << 20).decode()
    os.close(ours)
    assert f"60 rounds  {json.loads(done.stdout)['mistakes']} mistakes  nDCG@10 0." in shown


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.txt", "--online"], "nowhere.txt cannot be read: there is no such file"),
        (["broken.txt", "--online"], "broken.txt, line 2, column"),
        (["empty.txt", "--online"], "empty.txt has no judged queries"),
        (["lists.txt", "--online", "--skip", "60"], "lists.txt has nothing after the first 60 queries"),
        (["lists.txt", "--online", "--ranker", "svm"], "--ranker must be one of slam, max-pair, listnet"),
        (["lists.txt", "--online", "--ranker", "listnet", "--margin", "1"], "ListNet has no parameter 'margin'"),
        (["lists.txt", "--online", "--measure", "nDGC"], "no measure is called 'nDGC'"),
        (["lists.txt", "--online", "--measure", "RR"], "SLAM bounds nDCG, nDCG@k and AP"),
        (["lists.txt", "--online", "--eta", "0"], "must be a float in (0, inf)"),
        (["-", "--online", "--epochs", "2"], "--epochs 2 requires a file"),
        (["lists.txt", "--online", "--out", "no/folder/x"], "no/folder/x cannot be written: the folder"),
        (["lists.txt", "--online", "--out", "."], "cannot be written: it is a folder"),
        (["lists.txt", "--online", "--resume", "lists.txt"], "lists.txt is not a rankwise file"),
        (["lists.txt", "--online", "--resume", "queries.rankwise"], "--resume must be a saved online ranker"),
        (["lists.txt", "--online", "--resume", "saved", "--eta", "2"], "leave out --eta"),
        (["narrow.txt", "--online", "--resume", "saved"], "feature 21 is beyond"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(run, text, stream, tmp_path, arguments, sentence):
    (tmp_path / "broken.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:abc\n")
    (tmp_path / "narrow.txt").write_text("1 qid:1 21:0.5\n0 qid:1 1:2\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    stream.save(tmp_path / "queries.rankwise")
    SLAMPerceptron().fit(stream).save(tmp_path / "saved")
    before = sorted(os.listdir(tmp_path))
    code, out, err = run("train", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("rankwise: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("out", [[], ["--out", "model.rankwise"]], ids=["default", "named"])
def test_an_older_model_is_replaced_whether_it_is_named_or_not(run, text, tmp_path, out):
    """The same rule as for ``save``: a file is replaced, atomically and after all learning."""
    (tmp_path / "model.rankwise").write_text("old")
    assert run("train", text, "--online", "--label", "nowhere", *out)[0] == 2
    assert (tmp_path / "model.rankwise").read_text() == "old"
    assert run("train", text, "--online", *out)[0] == 0
    assert load("model.rankwise").ledger_.rounds == 60


def test_a_problem_in_the_middle_leaves_the_last_checkpoint(run, tmp_path):
    lines = "".join(f"{row % 2} qid:{row // 4} 1:{row % 7}\n" for row in range(80_000))
    (tmp_path / "x.txt").write_text(lines + "1 qid:z 1:oops\n")
    code, _, err = run("train", "x.txt", "--online", "--checkpoint", "3000")
    assert code == 2
    assert "x.txt, line 80001" in err.replace(",001", "001")
    assert load("model.rankwise").ledger_.rounds % 3_000 == 0


# ------------------------------------------------------------------------------------------------------ simulating


def test_simulate_draws_a_picture_and_tells_the_curves(run, tmp_path):
    code, out, err = run(
        "simulate", "--rounds", "300", "--documents", "8", "--features", "5", "--png", "s.png", "--json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found["rankers"]) == ["SLAMPerceptron", "MaxPairPerceptron", "ListNet", "Algorithm 2"]
    assert found["rounds"][-1] == 300
    assert {1, 10, 100} < set(found["rounds"])
    assert found["tuning"]["seed"] != found["stream"]["seed"]
    for name, curve in found["rankers"].items():
        assert len(curve["mean"]) == len(curve["mistakes"]) == len(curve["loss"]) == len(found["rounds"])
        assert curve["mistakes"] == sorted(curve["mistakes"])
        assert (curve["floor"] is None) == (name == "ListNet")
        if curve["floor"] is not None:
            assert all(mean >= floor for mean, floor in zip(curve["mean"], curve["floor"], strict=True))
            assert curve["loss"][-1] <= min(bound["value"] for bound in curve["bounds"])
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert os.listdir(tmp_path) == ["s.png"]


def test_simulate_tells_what_the_rankers_themselves_say(run):
    _, out, _ = run("simulate", "--rounds", "400", "--documents", "6", "--features", "4", "--margin", "0.1", "--json")
    found = json.loads(out)
    queries = separable_stream(400, documents=6, features=4, margin=0.1).queries()
    models = {
        "SLAMPerceptron": SLAMPerceptron(),
        "MaxPairPerceptron": MaxPairPerceptron(),
        "ListNet": ListNet(eta=found["tuning"]["eta"]),
        "Algorithm 2": SLAMPerceptron(margin=1.0, weights="ndcg_003", eta=found["tuning_printed"]["eta"]),
    }
    assert list(models) == list(found["rankers"])
    for name, model in models.items():
        ledger, curve = model.fit(queries).ledger_, found["rankers"][name]
        assert (curve["mean"][-1], curve["mistakes"][-1], curve["loss"][-1]) == (
            ledger.mean,
            ledger.mistakes,
            ledger.loss,
        )
    for tuning in (found["tuning"], found["tuning_printed"]):
        means = {line["eta"]: line["mean"] for line in tuning["grid"]}
        assert means[tuning["eta"]] == max(means.values())


@pytest.mark.parametrize(("options", "bounded"), [(["--noise", "0.1"], True), (["--drift", "0.01"], False)])
def test_simulate_knows_where_bounds_hold(run, options, bounded):
    code, out, _ = run("simulate", "--rounds", "150", "--documents", "6", "--features", "4", "--json", *options)
    assert code == 0
    for name, curve in json.loads(out)["rankers"].items():
        assert bool(curve["bounds"]) == (bounded and name != "ListNet")
        if curve["bounds"]:
            assert curve["loss"][-1] <= min(bound["value"] for bound in curve["bounds"])


def test_simulate_prints_a_chart_and_a_table_in_eighty_columns(run):
    code, out, err = run("simulate", "--rounds", "120", "--documents", "6", "--features", "4")
    assert (code, err) == (0, "")
    assert "● SLAMPerceptron   ▲ MaxPairPerceptron   ○ ListNet   ◆ Algorithm 2" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith(" MaxPair")] == ["10", "100", "120"]
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--margin", "0.9"], "--margin must be above 0 and below 2 radius / (grades - 1), or the grades do not fit"),
        (["--png", "no/folder/s.png"], "no/folder/s.png cannot be written"),
    ],
)
def test_worlds_that_cannot_be_are_refused(run, options, sentence):
    code, out, err = run("simulate", *options)
    assert (code, out) == (2, "")
    assert sentence in err
