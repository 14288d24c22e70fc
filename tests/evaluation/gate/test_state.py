"""The file of a gate: frozen questions, kills, other processes, copies and older versions of itself."""

import json
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.evaluation.gate import state as states

HOLDOUT = rw.make_lists(60, documents=5, features=3, random_state=1)
SCORES = np.random.default_rng(0).random((40, HOLDOUT.n_documents))


def gate(path, holdout=HOLDOUT, **given):
    return rw.Gate(holdout, **{"at_least": 0.5, "state": path, **given})


@pytest.fixture
def records(tmp_path, monkeypatch):
    """A folder for second records."""
    monkeypatch.setenv("RANKWISE_STATE_DIR", str(tmp_path / "user"))
    return tmp_path / "user" / "gates"


def test_a_gate_goes_on_where_it_was(tmp_path):
    path = tmp_path / "gate.json"
    answers = [gate(path).ask(scores) for scores in SCORES[:4]]
    assert [one.attempt for one in answers] == [1, 2, 3, 4]
    memory = rw.Gate(HOLDOUT, at_least=0.5, state=None)
    assert [vars(memory.ask(scores)) for scores in SCORES[:4]] == [vars(one) for one in answers]
    assert repr(gate(path)) == repr(memory)


@pytest.mark.parametrize(
    "given",
    [
        {"at_least": 0.51},
        {"delta": 0.1},
        {"measure": "AP"},
        {"measure": ["nDCG@10", "AP"]},
        {"empty": "zero"},
        {"ties": "pessimistic"},
        {"rel": 2.0},
        {"at_least": None, "better_than": SCORES[0]},
    ],
)
def test_a_changed_question_is_refused(tmp_path, given):
    gate(tmp_path / "gate.json").ask(SCORES[0])
    with pytest.raises(RankwiseError, match="asks another question, which is fixed"):
        gate(tmp_path / "gate.json", **given)


def test_a_changed_hold_out_is_refused_and_another_order_is_not(tmp_path):
    path = tmp_path / "gate.json"
    gate(path).ask(SCORES[0])
    labels = HOLDOUT.y.copy()
    labels[0] += 1
    X = np.array(HOLDOUT.X)
    X[3, 1] += 1e-3
    weight = np.repeat([1.0, 0.0], [59, 1])
    changed = (HOLDOUT[:-1], HOLDOUT.with_labels(labels), HOLDOUT._replace(X=X), HOLDOUT._replace(weight=weight))
    for holdout in changed:
        with pytest.raises(RankwiseError, match="counts attempts on other queries: its hold-out was 60 queries"):
            gate(path, holdout)
    assert gate(path, HOLDOUT[::-1]).attempts == 1


def test_an_attempt_is_on_the_disk_before_its_answer_is_known(tmp_path, monkeypatch):
    path = tmp_path / "gate.json"
    asked = gate(path)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # after the write, before the answer
        patched.setattr(type(asked), "_decide", killed)
        with pytest.raises(KeyboardInterrupt):
            asked.ask(SCORES[0])
    assert gate(path).attempts == 1
    assert gate(path).ask(SCORES[0]).again
    with monkeypatch.context() as patched:  # before the write: nothing is spent, and nothing was shown
        patched.setattr(states.GateState, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            gate(path).ask(SCORES[1])
    assert gate(path).attempts == 1


def test_a_state_that_cannot_be_written_gives_no_answer(tmp_path, monkeypatch):
    asked = gate(tmp_path / "gate.json")
    before = (tmp_path / "gate.json").read_bytes()

    def full(*_):
        raise RankwiseError("gate.json cannot be written: no space left on device")

    monkeypatch.setattr(states, "writing", full)
    with pytest.raises(RankwiseError, match="no space"):
        asked.ask(SCORES[0])
    assert (tmp_path / "gate.json").read_bytes() == before
    with pytest.raises(RankwiseError, match=r"the folder .* does not exist"):
        gate(tmp_path / "nowhere" / "gate.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"gate": 1}', "\0", '{"gate": "x", "attempts": 3}'])
def test_a_file_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "gate.json").write_text(text)
    with pytest.raises(FileFormatError, match="is not the state of a gate"):
        gate(tmp_path / "gate.json")


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "gate.json"
    gate(path).ask(SCORES[0])
    document = json.loads(path.read_text())
    for change in ({"attempts": []}, {"attempts": [{**document["attempts"][0], "passed": True, "level": 0.5}]}):
        path.write_text(json.dumps(document | change))
        with pytest.raises(FileFormatError, match="is damaged"):
            gate(path)
    path.write_text(json.dumps(document | {"gate": 2}))
    with pytest.raises(FileFormatError, match="requires a newer version"):
        gate(path)


def test_an_older_copy_is_noticed(tmp_path, records):
    path, copy = tmp_path / "gate.json", tmp_path / "copy.json"
    gate(path).ask(SCORES[0])
    shutil.copy(path, copy)
    gate(path).ask(SCORES[1])
    with pytest.raises(RankwiseError, match="is an older or a changed copy: it has 1 attempt, and"):
        gate(copy)
    shutil.copy(copy, path)
    with pytest.raises(RankwiseError, match="restore the newest state"):
        gate(path)
    shutil.rmtree(records)  # together with the record it cannot be noticed
    assert gate(path).attempts == 1


def test_a_copy_that_went_another_way_is_noticed(tmp_path, records):
    path, copy = tmp_path / "gate.json", tmp_path / "copy.json"
    gate(path).ask(SCORES[0])
    shutil.copy(path, copy)
    first = gate(path)
    second = gate(copy)  # opened before the other one goes on
    first.ask(SCORES[1])
    with pytest.raises(RankwiseError, match="older or a changed copy"):
        second.ask(SCORES[2])


def test_a_second_gate_on_the_same_hold_out_is_refused(tmp_path, records):
    path = tmp_path / "gate.json"
    gate(path)
    gate(tmp_path / "other.json")  # nothing was asked yet
    gate(path).ask(SCORES[0])
    for other in ({"path": tmp_path / "new.json"}, {"path": tmp_path / "new.json", "at_least": 0.2}):
        with pytest.raises(RankwiseError, match=r"the hold-out of a gate whose state is .*gate.json, with 1 attempt"):
            gate(**other)
    path.unlink()
    with pytest.raises(RankwiseError, match="the hold-out of a gate"):
        gate(path)
    gate(tmp_path / "new.json", HOLDOUT[:30])  # other queries


def test_a_state_may_be_moved_and_may_lose_its_record(tmp_path, records):
    path = tmp_path / "gate.json"
    gate(path).ask(SCORES[0])
    moved = path.rename(tmp_path / "moved.json")
    assert gate(moved).ask(SCORES[1]).attempt == 2
    for record in records.iterdir():
        record.write_text("{")
    assert gate(moved).ask(SCORES[2]).attempt == 3


def test_queries_that_arrive_are_remembered_too(tmp_path, records):
    model, path, copy = rw.RidgeRanker().fit(HOLDOUT[:20]), tmp_path / "gate.json", tmp_path / "copy.json"
    rw.Gate(None, at_least=0.5, state=path).ask(model, HOLDOUT[20:30])
    shutil.copy(path, copy)
    rw.Gate(None, at_least=0.5, state=path).ask(model, HOLDOUT[30:40])
    with pytest.raises(RankwiseError, match="older or a changed copy"):
        rw.Gate(None, at_least=0.5, state=copy)


def test_threads_that_ask_at_once_get_attempts_of_their_own(tmp_path):
    path, found = tmp_path / "gate.json", []
    threads = [
        threading.Thread(target=lambda own=scores: found.append(gate(path).ask(own).attempt)) for scores in SCORES[:12]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 13))
    attempts = gate(path)._state.attempts
    assert [one.level for one in attempts] == [
        rw.guarantees.level_of_attempt(0.05, place + 1, sum(one.passed for one in attempts[:place]))
        for place in range(12)
    ]


def test_another_process_is_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "gate.json"
    gate(path)
    code = (
        "import fcntl, sys, time\n"
        "held = open(sys.argv[1], 'a'); fcntl.flock(held, fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    )
    pytest.importorskip("fcntl")
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(path) + ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"locked\n"
        monkeypatch.setattr(states, "_PATIENCE", 0.05)
        with pytest.raises(RankwiseError, match="in use by another process"):
            gate(path)
    finally:
        other.communicate()
    assert gate(path).attempts == 0


def test_the_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKWISE_STATE_DIR", "")
    assert states.user_state() is None
    monkeypatch.delenv("RANKWISE_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert states.user_state() == tmp_path / "rankwise"
    monkeypatch.setenv("RANKWISE_STATE_DIR", os.devnull + "/no/folder")  # cannot be written: nothing is noticed
    assert gate(tmp_path / "gate.json").ask(SCORES[0]).attempt == 1
