"""What reads the past, jumps in time, fails for a while or comes together with something else."""

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from concurrent.futures import Future
from contextlib import closing

import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.serve import log as log_module
from rankwise.serve import replay as replay_module
from rankwise.serve import statefile, upkeep
from rankwise.serve.log import RequestError
from rankwise.serve.replay import Replay, file_of
from rankwise.serve.statefile import StateFile, open_to_read
from rankwise.serve.structs import ExperimentRequest, Feedback
from tests.serve.running import Service, learner, lists, saved
from tests.serve.test_state import ranked, refusal, replay_of, second, settled, told


@pytest.fixture
def service(tmp_path):
    with closing(Service(tmp_path / "state.db", saved(tmp_path))) as service:
        yield service


def together(service, *changes):
    """What becomes of changes that are waiting when the writer takes the first of them."""
    gate: Future[None] = Future()
    service.log.call(lambda: gate.result(10))
    done = [one() for one in changes]
    gate.set_result(None)
    outcomes = []
    for one in done:
        try:
            outcomes.append(one.result(10)[1])
        except RequestError as error:
            outcomes.append(error.status)
    return outcomes


def eventually(true, seconds=10):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


# --------------------------------------------------------------------------------------------------- S1


@pytest.mark.parametrize("kind", ["promote", "rollback"])
def test_s1_a_replay_reads_every_event_once_whatever_versions_it_names(service, monkeypatch, kind):
    told(service, 5)
    for _ in range(12):
        service.change(kind, "news", {"version": service.log.committed}).result(10)
        service.change("thaw", "news", {}).result(10)
    told(service, 2, seed=3, first=50)
    live = file_of(settled(service).models["news"].ranker)
    read = []
    whole = statefile.read_events
    monkeypatch.setattr(statefile, "read_events", lambda *how: (read.append(one.seq) or one for one in whole(*how)))
    for how in ({"from_nothing": True}, {}):
        assert file_of(replay_of(service, **how).models["news"].ranker) == live
    assert read == 2 * list(range(1, 33))


def test_s1_feedback_does_not_wait_while_a_version_is_rebuilt(service, monkeypatch):
    told(service, 5)
    begun, gate = threading.Event(), threading.Event()
    rebuilt = replay_module.file_at

    def slow(*about):
        begun.set()
        assert gate.wait(10)
        return rebuilt(*about)

    monkeypatch.setattr("rankwise.serve.service.file_at", slow)
    change = service.change("promote", "news", {"version": 3})
    assert begun.wait(10)
    told(service, 5, seed=1, first=100)  # committed and answered meanwhile
    assert not change.done()
    gate.set()
    assert change.result(10) == (12, True)
    settled(service)
    assert service.view.models["news"].version == 3


def test_s1_a_version_that_cannot_be_rebuilt_now_is_refused_and_may_be_asked_again(service, monkeypatch):
    told(service, 5)

    def fails(*about):
        raise OSError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr("rankwise.serve.service.file_at", fails)
        found = refusal(service.change("promote", "news", {"version": 3}, "a"))
    assert (found.status, found.retry) == (503, True)
    assert service.change("promote", "news", {"version": 3}, "a").result(10) == (7, True)
    with monkeypatch.context() as patch:  # what is sent again needs no file
        patch.setattr("rankwise.serve.service.file_at", fails)
        assert service.change("promote", "news", {"version": 3}, "a").result(10) == (7, False)
        assert refusal(service.change("promote", "news", {"version": 4}, "a")).status == 409


def test_a_service_that_stops_while_a_version_is_rebuilt_refuses_it(tmp_path, monkeypatch):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 5)
    begun = threading.Event()
    rebuilt = replay_module.file_at

    def slow(*about):
        begun.set()
        eventually(lambda: service._stopping)
        return rebuilt(*about)

    monkeypatch.setattr("rankwise.serve.service.file_at", slow)
    waiting = [service.change("promote", "news", {"version": 3}) for _ in range(3)]
    assert begun.wait(10)
    service.close()
    for one in waiting:
        assert one.done()
    after = service.change("promote", "news", {"version": 3})
    assert refusal(after).status == 503
    assert refusal(service.versions("news")).status == 503


# --------------------------------------------------------------------------------------------------- S4


def test_s4_a_clock_that_jumps_ahead_and_back_closes_windows_in_time(tmp_path, monkeypatch):
    wall = time.time
    jump = [0.0]
    monkeypatch.setattr("time.time", lambda: wall() + jump[0])
    with closing(Service(tmp_path / "state.db", saved(tmp_path), window=0.3)) as service:
        for number, seconds in enumerate((0.0, 86_400.0, -86_400.0)):
            jump[0] = seconds
            shown = ranked(service)
            service.feedback(Feedback(f"{number}", shown.ranking, clicks=["d1"])).result(10)
        eventually(lambda: service.log.replay.models["news"].lists == 3)


def test_s4_a_clock_that_jumps_ahead_closes_nothing_and_forgets_nothing_too_early(tmp_path, monkeypatch):
    wall = time.time
    with closing(Service(tmp_path / "state.db", saved(tmp_path), window=3600, retention=3600)) as service:
        shown, other = ranked(service), ranked(service)
        service.feedback(Feedback("a", shown.ranking, clicks=["d1"])).result(10)
        monkeypatch.setattr("time.time", lambda: wall() + 86_400)
        assert service.log.call(lambda: upkeep.expire(service.state, 3600, service.log.now())).result(10) == 0
        service.feedback(Feedback("b", other.ranking, clicks=["d1"])).result(10)
        assert settled(service).models["news"].lists == 0


def test_s4_clicks_of_a_clock_that_was_ahead_wait_for_one_window_after_a_restart(tmp_path, monkeypatch):
    wall = time.time
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: wall() + 86_400)
        with closing(Service(tmp_path / "state.db", saved(tmp_path), window=3600)) as service:
            service.feedback(Feedback("a", ranked(service).ranking, clicks=["d1"])).result(10)
    with closing(Service(tmp_path / "state.db", window=0.2)) as service:
        eventually(lambda: service.log.replay.models["news"].lists == 1)


# --------------------------------------------------------------------------------------------------- S5


def test_s5_models_are_loaded_and_stored_without_a_temporary_folder(service, tmp_path, monkeypatch):
    told(service, 5)
    fresh = saved(tmp_path, "fresh")["fresh"].read_bytes()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    service.register("fresh", fresh).result(10)
    service.change("promote", "news", {"version": 3}).result(10)
    told(service, 5, seed=1, first=100)
    live = file_of(settled(service).models["news"].ranker)
    service.close()
    assert service.log.broken is None
    monkeypatch.undo()
    with closing(open_to_read(tmp_path / "state.db")) as db:
        assert db.execute("SELECT max(seq) FROM snapshot").fetchone() == (13,)
        assert file_of(Replay.at(db).models["news"].ranker) == live


def test_s5_the_bytes_of_a_model_are_those_of_its_file(tmp_path):
    for number, model in enumerate((learner(), rw.RidgeRanker().fit(rw.make_lists(20, features=3, random_state=1)))):
        model.save(tmp_path / f"{number}.rankwise")
        data = (tmp_path / f"{number}.rankwise").read_bytes()
        assert file_of(model) == data
        assert file_of(replay_module.ranker_of_bytes(data)) == data
    rw.make_lists(5, random_state=0).save(tmp_path / "lists.rankwise")
    with pytest.raises(DataError, match="got 'queries'"):
        replay_module.ranker_of_bytes((tmp_path / "lists.rankwise").read_bytes())


@pytest.mark.parametrize("where", ["learn", "publish"])
def test_s5_learning_that_fails_is_tried_again_and_learns_nothing_twice(service, monkeypatch, where):
    told(service, 5)
    settled(service)
    monkeypatch.setattr(log_module, "_AGAIN", (0.05, 0.2))
    fails = threading.Event()
    fails.set()
    learn, publish = replay_module.Served.learn, service.log.on_advance

    def learns(self, given):
        learn(self, given)  # half of the work is done when it fails
        if fails.is_set() and where == "learn" and given:
            raise OSError("no space left on device")

    def publishes(replay):
        if fails.is_set() and where == "publish":
            raise MemoryError("no memory")
        publish(replay)

    monkeypatch.setattr(replay_module.Served, "learn", learns)
    service.log.on_advance = publishes
    assert [new for _, new in told(service, 5, seed=1, first=100)] == [True] * 5  # recorded, and not learned
    eventually(lambda: any("learning has failed since event 6" in one for one in service.alarms()))
    assert service.log.broken is None
    assert refusal(service.change("freeze", "news", {})).status == 503
    fails.clear()
    eventually(lambda: service.view.seq == 11)
    eventually(lambda: service.alarms() == [])
    assert service.log.replay.models["news"].lists == 10
    told(service, 2, seed=2, first=200)
    live = file_of(settled(service).models["news"].ranker)
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == live


def test_a_log_that_has_stopped_lets_nobody_wait(service, monkeypatch):
    told(service, 2)
    settled(service)

    def damaged(self, db, to):
        raise replay_module.StateDamaged("a page is gone")

    monkeypatch.setattr(Replay, "advance", damaged)
    service.feedback(Feedback("a", ranked(service).ranking, grades=[1.0] * 6)).result(10)
    eventually(lambda: service.log.broken is not None)
    assert refusal(service.versions("news")).status == 503
    assert refusal(service.feedback(Feedback("b", "other", clicks=["d1"]))).status == 503


# --------------------------------------------------------------------------------------------------- S10, S11


def test_s10_changes_that_come_together_see_each_other(service, tmp_path):
    second(service, tmp_path)
    settled(service)
    twin = [lambda: service.experiment(ExperimentRequest("test", "split", "news", "fixed", share=0.3))] * 2
    assert together(service, *twin) == [True, 409]
    wide = saved(tmp_path, "wide", learner(width=5))["wide"].read_bytes()
    assert together(service, lambda: service.register("fixed", wide)) == [409]
    assert together(service, lambda: service.change("stop", "", {"name": "test"})) == [True]
    again = lambda: service.experiment(ExperimentRequest("again", "shadow", "news", "fixed"))  # noqa: E731
    assert together(service, again, lambda: service.register("fixed", wide)) == [True, 409]
    settled(service)
    assert ranked(service).items  # every ranking would be refused if the features differed
    service.change("stop", "", {"name": "again"}).result(10)
    more = lambda: service.experiment(ExperimentRequest("more", "shadow", "news", "fixed"))  # noqa: E731
    assert together(service, lambda: service.register("fixed", wide), more) == [True, 422]


def test_s10_a_version_of_a_file_that_was_replaced_meanwhile_is_refused(service, tmp_path):
    told(service, 5)
    settled(service)
    wide = saved(tmp_path, "wide", learner(width=5))["wide"].read_bytes()
    gate: Future[None] = Future()
    service.log.call(lambda: gate.result(10))
    upload, back = service.register("news", wide), service.change("rollback", "news", {"version": 3})
    gate.set_result(None)
    assert upload.result(10) == (7, True)
    assert refusal(back).status == 422


def test_s11_another_file_under_a_known_name_is_refused_after_a_compaction(tmp_path):
    Service(tmp_path / "state.db", saved(tmp_path)).close()
    with closing(StateFile(tmp_path / "state.db")) as state:
        upkeep.compact(state)
    Service(tmp_path / "state.db", saved(tmp_path)).close()
    other = saved(tmp_path, model=learner(width=4))
    with pytest.raises(RankwiseError, match="another model named 'news'"):
        Service(tmp_path / "state.db", other)


# --------------------------------------------------------------------------------------------------- the disk


class Failing:
    """A connection on which some statements fail, as they do where a disk is full or gone."""

    def __init__(self, db, statement, error):
        self.db, self.statement, self.error, self.left = db, statement, error, 2

    def execute(self, sql, *more):
        if sql.startswith(self.statement) and self.left:
            self.left -= 1
            raise self.error
        return self.db.execute(sql, *more)

    def __getattr__(self, name):
        return getattr(self.db, name)


@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO event", "COMMIT", "ROLLBACK", "PRAGMA sync", "SELECT seq"])
@pytest.mark.parametrize("error", ["disk I/O error", "database or disk is full"])
def test_a_disk_that_fails_in_the_middle_of_a_write_loses_nothing(service, statement, error):
    told(service, 3)
    settled(service)
    db = service.state.db
    failing = Failing(db, statement, sqlite3.OperationalError(error))
    service.log.call(lambda: setattr(service.state, "db", failing)).result(10)
    if statement == "ROLLBACK":  # a rollback that fails needs a commit that failed
        failing.statement = ("ROLLBACK", "COMMIT")
    done = []
    for number, (X, y) in enumerate(lists(6, seed=1)):
        event = Feedback(f"more {number}", f"own {number}", grades=y, ids=[f"d{n}" for n in range(6)], x=X.tolist())
        for _ in range(5):
            try:
                done.append(service.feedback(event).result(10))
                break
            except RequestError as refused:
                assert refused.retry  # noqa: PT017
    assert failing.left == 0
    service.log.call(lambda: setattr(service.state, "db", db)).result(10)
    assert [seq for seq, _ in done] == list(range(5, 11))
    live = file_of(settled(service).models["news"].ranker)
    assert service.log.broken is None
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == live
    assert upkeep.check(service.state.path)["events"] == 10


def test_a_mark_that_cannot_be_written_stops_nobody(service):
    class Full:
        def seek(self, place):
            raise OSError(28, "No space left on device")

    mark, service.state._mark = service.state._mark, Full()
    told(service, 3)
    service.state._mark = mark
    assert service.log.broken is None
    assert told(service, 1, seed=1, first=50) == [(5, True)]


def test_windows_that_a_full_disk_kept_open_are_closed_when_it_recovers(tmp_path):
    with closing(Service(tmp_path / "state.db", saved(tmp_path), window=0.2)) as service:
        db = service.state.db
        shown = [ranked(service) for _ in range(3)]
        for number, one in enumerate(shown):
            service.feedback(Feedback(f"{number}", one.ranking, clicks=["d1"])).result(10)
        failing = Failing(db, "COMMIT", sqlite3.OperationalError("database or disk is full"))
        service.log.call(lambda: setattr(service.state, "db", failing)).result(10)
        eventually(lambda: service.log.replay.models["news"].lists == 3)


# --------------------------------------------------------------------------------------------------- at once


def test_a_backup_is_of_one_moment_while_the_service_writes(service, tmp_path):
    told(service, 20)
    stop, copies = threading.Event(), []

    def copy():
        while not stop.is_set():
            path = tmp_path / f"copy {len(copies)}.db"
            copies.append((path, upkeep.backup(service.state.path, path)))

    thread = threading.Thread(target=copy)
    thread.start()
    for number in range(10):
        told(service, 10, seed=number, first=100 * (number + 1))
    stop.set()
    thread.join()
    for path, last in copies:
        assert upkeep.check(path)["events"] == last
    assert settled(service).seq == 121


def compacted_until(path, steps):
    """Whether a compaction in a process of its own was killed after so many steps of SQLite's machine."""
    child = os.fork()
    if child == 0:
        left = [steps]

        def count():
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return 0

        state = StateFile(path)
        state.db.set_progress_handler(count, 20)
        upkeep.compact(state)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("every", [60, pytest.param(5, marks=pytest.mark.thorough)])
def test_a_compaction_that_is_killed_leaves_a_whole_state(tmp_path, every):
    with closing(Service(tmp_path / "state.db", saved(tmp_path))) as service:
        told(service, 30)
        live = file_of(settled(service).models["news"].ranker)
    killed, steps = True, 0
    while killed:
        path = tmp_path / f"{steps}.db"
        shutil.copy(tmp_path / "state.db", path)
        killed = compacted_until(path, steps)
        assert upkeep.check(path)["events"] == 31
        with closing(Service(path)) as service:
            assert file_of(service.log.replay.models["news"].ranker) == live
            assert told(service, 1, seed=5, first=500) == [(32, True)]
        steps += every
    assert steps >= 3 * every
