"""The commands around a service: a demo that learns, tokens, replay, checks, copies, compaction."""

import json
import socket

import pytest

import rankwise as rw
from rankwise.cli import main
from rankwise.serve.replay import Replay, file_of
from rankwise.serve.server import _listen
from rankwise.serve.service import Service
from rankwise.serve.statefile import open_to_read
from rankwise.serve.structs import Feedback, RankRequest
from tests.serve.running import IDS, lists, saved


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr("sys.argv", ["rankwise", *map(str, words)])
        code = main()
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def state(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    for number, (X, y) in enumerate(lists(20)):
        shown = service.rank(RankRequest(ids=IDS), X)
        service.feedback(Feedback(f"{number}", shown.ranking, grades=y)).result(10)
    service.close()
    return tmp_path / "state.db"


def test_the_demo_starts_learns_and_stops(run):
    code, out, _ = run("serve", "--demo", "--port", "0", "--seconds", "3.5")
    assert code == 0
    assert "serving learner, first-feature at http://127.0.0.1:" in out
    assert "lists judged" in out
    assert "stopped cleanly at version" in out


def test_a_model_is_served_from_the_shell(run, tmp_path):
    rw.RidgeRanker().fit(rw.make_lists(10, features=3, random_state=0)).save(tmp_path / "ridge.rankwise")
    code, out, _ = run("serve", "ridge.rankwise", "--state", "own.db", "--port", "0", "--seconds", "0.2", "--json")
    assert code == 0
    started, stopped = map(json.loads, out.splitlines())
    assert started["models"] == ["ridge"]
    assert stopped == {"stopped": True, "version": 1}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("serve",), "nothing to serve"),
        (("serve", "none.rankwise"), "none.rankwise does not exist"),
        (("serve", "news.rankwise", "--host", "0.0.0.0", "--port", "0"), "requires --tokens"),
        (("serve", "--new-token", "shop:rank"), "requires --tokens FILE"),
        (("serve", "--new-token", "shop:all", "--tokens", "tokens"), "scopes among"),
        (("serve", "--tokens", "news.rankwise"), ""),
        (("replay", "none.db", "-o", "x.rankwise"), "none.db does not exist"),
        (("state", "backup", "none.db"), "requires --to FILE"),
        (("state", "compact", "none.db"), "none.db does not exist"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(run, tmp_path, words, sentence):
    saved(tmp_path)
    code, _, said = run(*words)
    assert code == 2
    assert sentence in said
    assert not (tmp_path / "x.rankwise").exists()


def test_answers_in_two_parts_do_not_wait_for_an_acknowledgement():
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_port_that_is_taken_is_a_sentence(run, tmp_path, caplog):
    saved(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, said = run("serve", "news.rankwise", "--port", port)
    assert (code, out) == (2, "")
    assert said == f"rankwise: cannot serve at 127.0.0.1:{port}: address already in use\n"
    assert caplog.text == ""
    assert run("serve", "--seconds", "0.1", "--port", "0")[0] == 0  # the state was closed, and opens again


def test_a_token_is_printed_once_and_kept_as_a_hash(run, tmp_path):
    code, out, _ = run("serve", "--new-token", "shop:rank,feedback", "--tokens", "tokens")
    assert code == 0
    kept = (tmp_path / "tokens").read_text()
    assert kept.startswith("shop rank,feedback ")
    assert out.strip() not in kept


def test_replay_writes_the_model_of_any_version(run, state, tmp_path):
    for to, more in ((11, ()), (11, ("--snapshots",)), (None, ())):
        where = () if to is None else ("--to", to)
        code, out, _ = run("replay", state, *where, "-o", "again.rankwise", *more)
        assert code == 0
        assert f"after event {to or 21}" in out
        db = open_to_read(state)
        expected = file_of(Replay.at(db, to).models["news"].ranker)
        db.close()
        assert (tmp_path / "again.rankwise").read_bytes() == expected
    code, _, said = run("replay", state, "--to", "99", "-o", "more.rankwise")
    assert (code, "between 0 and 21, the last of the log, got 99" in said) == (2, True)
    code, _, said = run("replay", state, "--model", "none", "-o", "more.rankwise")
    assert (code, "available: news" in said) == (2, True)


def test_a_state_is_checked_copied_and_compacted(run, state, tmp_path):
    assert run("state", "check", state)[1].startswith(f"{state} is intact: 21 events")
    assert run("state", "backup", state, "--to", "copy.db")[1] == "copy.db holds the first 21 events\n"
    code, out, _ = run("state", "compact", "copy.db", "--json")
    assert code == 0
    assert json.loads(out)["rankings"] == 20
    assert json.loads(run("state", "check", "copy.db", "--json")[1])["rankings"] == 0
    assert run("state", "check", state)[0] == 0


def test_a_missing_package_names_the_extra(run, tmp_path, monkeypatch):
    saved(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "starlette", None)
    code, _, said = run("serve", "news.rankwise")
    assert code == 2
    assert "[serve]'" in said
