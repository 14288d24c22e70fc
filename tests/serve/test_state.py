"""One file is the truth: what is acknowledged is there, once; damage is named; versions are remade to the bit."""

import itertools
import sqlite3
import time
from concurrent.futures import Future
from contextlib import closing, nullcontext, suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.serve import upkeep
from rankwise.serve.log import RequestError
from rankwise.serve.replay import Replay, file_of
from rankwise.serve.service import _new_ranking
from rankwise.serve.statefile import StateDamaged, StateFile, StateLocked, open_to_read
from rankwise.serve.structs import ExperimentRequest, Feedback, RankRequest
from tests.serve.running import IDS, Service, learner, lists, saved


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    yield service
    if not service.log._closing:
        service.close()


def ranked(service, X=None, **more):
    X = next(lists(1))[0] if X is None else X
    return service.rank(RankRequest(ids=IDS[: len(X)], **more), np.asarray(X))


def told(service, count, seed=0, first=0):
    done = []
    for number, (X, y) in enumerate(lists(count, seed=seed), first):
        shown = ranked(service, X)
        done.append(service.feedback(Feedback(f"event {number}", shown.ranking, grades=y)))
    return [one.result(10) for one in done]


def settled(service):
    """All events are written (two rounds of the writer end the first) and learned, which it does in bursts."""
    for _ in range(2):
        service.log.call(lambda: None).result(10)
    deadline = time.monotonic() + 10
    while service.log.replay.seq != service.log.committed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert service.log.replay.seq == service.log.committed
    service.log.call(lambda: None).result(10)  # the place in the log is known before its last lists are learned
    return service.log.replay


def replay_of(service, *to, **how):
    """What the events of a service say. Its own connection belongs to the thread that writes and learns."""
    with closing(open_to_read(service.state.path)) as db:
        return Replay.at(db, *to, **how)


def refusal(done):
    with pytest.raises(RequestError) as refused:
        done.result(10)
    return refused.value


# --------------------------------------------------------------------------------------------------- exactly once


def test_an_event_counts_once_however_often_it_is_sent(service):
    shown = ranked(service)
    event = Feedback("a", shown.ranking, grades=[1.0, 0, 0, 0, 0, 0])
    assert service.feedback(event).result(10) == (2, True)
    assert service.feedback(event).result(10) == (2, False)
    assert settled(service).models["news"].lists == 1


def test_an_id_with_another_content_is_a_conflict(service):
    shown = ranked(service)
    service.feedback(Feedback("a", shown.ranking, clicks=["d1"])).result(10)
    assert refusal(service.feedback(Feedback("a", shown.ranking, clicks=["d2"]))).status == 409


def test_duplicates_within_one_commit_count_once(service):
    shown = ranked(service)
    gate: Future[None] = Future()
    service.log.call(lambda: gate.result(10))  # everything after it waits, and is committed together
    sent = [service.feedback(Feedback("a", shown.ranking, grades=[1.0] * 6)) for _ in range(5)]
    gate.set_result(None)
    assert sorted(one.result(10) for one in sent) == [(2, False)] * 4 + [(2, True)]


@pytest.mark.parametrize(
    ("event", "status", "retry"),
    [
        (Feedback("a", "nobody knows it", clicks=["d1"]), 409, True),
        (Feedback("a", "SHOWN", clicks=["other"]), 422, False),
        (Feedback("a", "SHOWN", grades=[1.0]), 422, False),
        (Feedback("a", "SHOWN"), 422, False),
        (Feedback("a", "SHOWN", grades=[1.0] * 6, clicks=["d1"]), 422, False),
        (Feedback("rankwise:a", "SHOWN", clicks=["d1"]), 422, False),
        (Feedback("a", "new", clicks=["d1"], ids=["d1"]), 422, False),
        (Feedback("a", "new", clicks=["d1"], ids=["d1"], x=[[1.0, 2.0]]), 422, False),
        (Feedback("a", "new", clicks=["d1"], ids=["d1"], x=[[1.0, 2.0, float("inf")]]), 422, False),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_it_is_written(service, event, status, retry):
    shown = ranked(service)
    event.ranking = event.ranking.replace("SHOWN", shown.ranking)
    found = refusal(service.feedback(event))
    assert (found.status, found.retry) == (status, retry)
    assert service.log.committed == 1


def test_feedback_may_bring_its_features(service):
    X, y = next(lists(1))
    event = Feedback("a", "mine", grades=y, ids=IDS, x=X.tolist())
    assert service.feedback(event).result(10) == (2, True)
    assert settled(service).models["news"].lists == 1


# --------------------------------------------------------------------------------------------------- closing


def test_clicks_are_learned_once_when_they_are_closed(service):
    shown = ranked(service)
    service.feedback(Feedback("a", shown.ranking, clicks=["d1"])).result(10)
    service.feedback(Feedback("b", shown.ranking, clicks=["d4"])).result(10)
    assert settled(service).models["news"].lists == 0
    assert service.close_ranking(shown.ranking).result(10) == (4, True)
    assert service.close_ranking(shown.ranking).result(10) == (4, False)
    assert settled(service).models["news"].lists == 1
    late = refusal(service.feedback(Feedback("c", shown.ranking, clicks=["d2"])))
    assert (late.status, late.retry) == (409, False)
    expected = learner(names=None).partial_fit(next(lists(1))[0].astype(float), np.isin(IDS, ["d1", "d4"]) * 1.0)
    np.testing.assert_array_equal(settled(service).models["news"].ranker.coef_, expected.coef_)


def test_a_window_closes_rankings_also_after_a_restart(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path), window=3600)
    shown = ranked(service)
    service.feedback(Feedback("a", shown.ranking, clicks=["d1"])).result(10)
    service.close()
    service = Service(tmp_path / "state.db", window=0)
    try:
        assert settled(service).seq == 3
        assert service.log.replay.models["news"].lists == 1
    finally:
        service.close()


# --------------------------------------------------------------------------------------------------- replay

OPS = st.lists(
    st.sampled_from(
        ["grades", "grades", "grades", "clicks", "close", "freeze", "thaw", "rollback", "promote", "poison"]
    ),
    max_size=25,
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ops=OPS, every=st.integers(1, 9), seed=st.integers(0, 99))
def test_live_restart_and_replay_from_nothing_are_the_same_bits(tmp_path_factory, ops, every, seed):
    folder = tmp_path_factory.mktemp("replay")
    service = Service(folder / "state.db", saved(folder), snapshot_every=every)
    opened = []
    for number, (op, (X, y)) in enumerate(zip(ops, lists(len(ops), seed=seed), strict=True)):
        shown = ranked(service, X)
        if op == "grades":
            done = service.feedback(Feedback(f"{number}", shown.ranking, grades=y))
        elif op == "poison":  # a score that is too large for float64: refused by the ranker, not by the log
            done = service.feedback(
                Feedback(f"{number}", f"own {number}", grades=y, ids=IDS, x=(X.astype(float) * 1e300).tolist())
            )
        elif op == "clicks":
            opened.append(shown.ranking)
            done = service.feedback(Feedback(f"{number}", shown.ranking, clicks=[IDS[number % 6]]))
        elif op == "close":
            done = service.close_ranking(opened.pop() if opened else shown.ranking)
        else:
            version = 1 + number % service.log.committed if op in ("rollback", "promote") else None
            done = service.change(op, "news", {"version": version})
        # the present weights may find an overflow at the door
        with suppress(RequestError) if op == "poison" else nullcontext():
            done.result(10)
    live = settled(service).models["news"]
    service.close()
    with_snapshots, nothing, restarted = (
        Replay.at(open_to_read(folder / "state.db")),
        Replay.at(open_to_read(folder / "state.db"), from_nothing=True),
        Service(folder / "state.db"),
    )
    restarted.close()
    for other in (with_snapshots, nothing, restarted.log.replay):
        served = other.models["news"]
        assert file_of(served.ranker) == file_of(live.ranker)
        kept = ("version", "frozen", "lists", "refused")
        assert [getattr(served, name) for name in kept] == [getattr(live, name) for name in kept]
        assert (served.running.n, served.running.total) == (live.running.n, live.running.total)
        assert (served.pinned is None) == (live.pinned is None)
        if live.pinned is not None:
            assert file_of(served.pinned[1]) == file_of(live.pinned[1])


def test_ids_of_rankings_are_distinct_and_follow_time(monkeypatch):
    ids = []
    for at in (1e9, 1.7e9, 1.7e9 + 1, 4e9):
        with monkeypatch.context() as patch:
            patch.setattr("rankwise.serve.service.time.time", lambda at=at: at)
            ids.append(_new_ranking())
    assert sorted(ids) == ids
    assert _new_ranking() != _new_ranking()


def test_the_model_is_that_of_partial_fit_on_the_same_lists(service):
    told(service, 40)
    expected = learner().partial_fit([(X.astype(float), np.array(y)) for X, y in lists(40)])
    found = settled(service).models["news"].ranker
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.ledger_.mistakes == expected.ledger_.mistakes


def test_every_event_is_a_version(service):
    told(service, 30)
    settled(service)
    for to in (1, 7, 31):
        whole, quick = replay_of(service, to, from_nothing=True), replay_of(service, to)
        assert file_of(whole.models["news"].ranker) == file_of(quick.models["news"].ranker)
    with pytest.raises(RankwiseError, match="between 0 and 31, the last of the log, got 32"):
        replay_of(service, 32)


def test_a_rollback_publishes_an_old_version_and_stops_learning(service):
    told(service, 10)
    before = file_of(replay_of(service, 5, from_nothing=True).models["news"].ranker)
    service.change("rollback", "news", {"version": 5}).result(10)
    assert file_of(settled(service).models["news"].ranker) == before
    told(service, 3, seed=1, first=100)
    assert file_of(settled(service).models["news"].ranker) == before
    service.change("thaw", "news", {}).result(10)
    told(service, 3, seed=1, first=200)
    assert file_of(settled(service).models["news"].ranker) != before


def test_a_promoted_version_is_shown_while_the_newest_goes_on_learning(service):
    told(service, 10)
    service.change("promote", "news", {"version": 3}).result(10)
    told(service, 10, seed=1, first=100)
    assert settled(service).models["news"].lists == 20
    assert service.view.models["news"].version == 3
    expected = replay_of(service, 3).models["news"].ranker.coef_
    np.testing.assert_array_equal(service.view.models["news"].ranker.coef_, expected)
    service.change("promote", "news", {"version": None}).result(10)
    settled(service)
    assert service.view.models["news"].version == 23


@pytest.mark.parametrize(
    ("kind", "name", "body", "status"),
    [
        ("rollback", "other", {"version": 1}, 404),
        ("rollback", "news", {}, 422),
        ("rollback", "news", {"version": 99}, 422),
        ("promote", "news", {"version": 0}, 422),
        ("stop", "", {"name": "none"}, 404),
    ],
)
def test_changes_that_make_no_sense_are_refused(service, kind, name, body, status):
    assert refusal(service.change(kind, name, body)).status == status
    assert service.log.committed == 1


# --------------------------------------------------------------------------------------------------- the file


def test_a_second_process_on_the_same_state_is_refused(service, tmp_path):
    with pytest.raises(StateLocked, match="in use by another service"):
        StateFile(tmp_path / "state.db")


def test_a_full_disk_refuses_and_loses_nothing(service):
    told(service, 5)
    pages = service.log.call(lambda: service.state.db.execute("PRAGMA page_count").fetchone()[0]).result(10)
    service.log.call(lambda: service.state.db.execute(f"PRAGMA max_page_count={pages}")).result(10)
    done, refused = [], []
    long = [f"{id}{'.' * 180}" for id in IDS]  # a page is full after a few of them
    for number, (X, y) in enumerate(lists(60, documents=6, seed=3)):
        shown = service.rank(RankRequest(ids=long), X)
        event = Feedback(f"full {number}", shown.ranking, grades=y)
        try:
            done.append(service.feedback(event).result(10))
        except RequestError as error:
            refused.append((error.status, error.retry))
    assert len(refused) > 20
    assert set(refused) <= {(409, True), (503, True)}
    assert service.log.full
    assert not ranked(service).logged
    assert any("could not be written" in one for one in service.alarms())
    service.log.call(lambda: service.state.db.execute("PRAGMA max_page_count=1000000")).result(10)
    acknowledged = 6 + len(done)
    assert told(service, 1, seed=9, first=1000) == [(acknowledged + 1, True)]
    assert not service.log.full
    live = file_of(settled(service).models["news"].ranker)
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == live


def test_a_lost_tail_is_found_and_named(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 10)
    told(service, 10, first=10)
    settled(service)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("state.db", "state.db-wal", "state.db.mark"):  # as a machine that lost its power has them
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    service.close()
    wal = copy / "state.db-wal"
    wal.write_bytes(wal.read_bytes()[:-100])
    with pytest.raises(StateDamaged, match=r"lost its tail: it ends at event [\d,]+, and 21 were acknowledged"):
        Service(copy / "state.db")
    again = Service(copy / "state.db", accept_loss=True)
    assert 1 <= again.log.committed < 21
    again.close()
    Service(copy / "state.db").close()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("UPDATE event SET body=x'7b7d' WHERE seq=7", "7"),
        ("DELETE FROM event WHERE seq=9", "9"),
        ("UPDATE event SET ranking='other' WHERE seq=4", "4"),
    ],
)
def test_a_changed_event_is_found_and_named(tmp_path, change, where):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 12)
    service.close()
    db = sqlite3.connect(tmp_path / "state.db")
    db.execute(change)
    db.commit()
    db.close()
    for opening in (upkeep.check, Service):
        with pytest.raises(StateDamaged, match=f"damaged at event {where}"):
            opening(tmp_path / "state.db")


def test_what_is_no_state_is_named(tmp_path):
    (tmp_path / "text.db").write_text("no database, however long this text may be " * 100)
    with pytest.raises(StateDamaged, match=r"text\.db is damaged, or is not the state"):
        Service(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine(x)")
    other.close()
    with pytest.raises(FileFormatError, match="another application"):
        Service(tmp_path / "other.db")
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version=99")
    newer.close()
    with pytest.raises(FileFormatError, match="newer rankwise"):
        Service(tmp_path / "newer.db")
    with pytest.raises(RankwiseError, match="folder of the state"):
        Service(tmp_path / "nowhere" / "state.db")


def test_a_state_of_an_older_schema_is_one_sentence(tmp_path):
    Service(tmp_path / "state.db", saved(tmp_path)).close()
    db = sqlite3.connect(tmp_path / "state.db")
    db.execute("PRAGMA user_version=2")
    db.close()
    for opening in (Service, upkeep.check, open_to_read):
        with pytest.raises(FileFormatError, match=r"written by an older rankwise \(schema 2, this version has 3\)"):
            opening(tmp_path / "state.db")


def test_a_backup_of_a_running_service_opens(service, tmp_path):
    told(service, 8)
    settled(service)
    assert upkeep.backup(tmp_path / "state.db", tmp_path / "copy.db") == 9
    with pytest.raises(RankwiseError, match="already exists"):
        upkeep.backup(tmp_path / "state.db", tmp_path / "copy.db")
    copy = Service(tmp_path / "copy.db")
    assert file_of(copy.log.replay.models["news"].ranker) == file_of(service.log.replay.models["news"].ranker)
    copy.close()


def test_compaction_keeps_models_ids_and_open_rankings(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 50)
    waiting = ranked(service)
    service.feedback(Feedback("click", waiting.ranking, clicks=["d1"])).result(10)
    before = file_of(settled(service).models["news"].ranker)
    service.close()
    size = (tmp_path / "state.db").stat().st_size
    state = StateFile(tmp_path / "state.db")
    assert upkeep.compact(state) == {"events": 51, "rankings": 50}
    state.close()
    assert (tmp_path / "state.db").stat().st_size < size
    assert upkeep.check(tmp_path / "state.db")["events"] == 52
    service = Service(tmp_path / "state.db")
    assert file_of(service.log.replay.models["news"].ranker) == before
    _, y = next(lists(1))
    assert refusal(service.feedback(Feedback("event 0", "other", grades=y))).status == 409
    with pytest.raises(RankwiseError, match=r"before event 52 was compacted"):
        replay_of(service, 20)
    service.close_ranking(waiting.ranking).result(10)
    told(service, 5, seed=5, first=500)
    live = file_of(settled(service).models["news"].ranker)
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == live
    service.close()


def test_rankings_without_feedback_are_forgotten(service):
    told(service, 2)
    for _ in range(3):
        ranked(service)
    service.log.call(lambda: None).result(10)
    assert service.log.call(lambda: upkeep.expire(service.state, 3600)).result(10) == 0
    assert service.log.call(lambda: upkeep.expire(service.state, -1)).result(10) == 3
    assert replay_of(service, from_nothing=True).seq == 3


def test_another_model_under_a_known_name_is_refused(tmp_path):
    Service(tmp_path / "state.db", saved(tmp_path)).close()
    Service(tmp_path / "state.db", saved(tmp_path)).close()
    other = saved(tmp_path, model=learner(width=4))
    with pytest.raises(RankwiseError, match="another model named 'news'"):
        Service(tmp_path / "state.db", other)
    (tmp_path / "news.rankwise").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match="the model file"):
        Service(tmp_path / "new.db", {"news": tmp_path / "news.rankwise"})
    assert not (tmp_path / "new.db").exists()


def test_a_model_gets_a_new_file_and_goes_on_from_there(service, tmp_path):
    told(service, 5)
    fresh = saved(tmp_path, "fresh")["fresh"].read_bytes()
    seq, _ = service.register("news", fresh).result(10)
    assert settled(service).models["news"].since == seq
    assert service.log.replay.models["news"].lists == 0
    assert refusal(service.change("rollback", "news", {"version": 3})).status == 422


# --------------------------------------------------------------------------------------------------- experiments


def second(service, tmp_path, weights=(0.0, 0.0, 1.0)):
    path = saved(tmp_path, "fixed", rw.LinearModel.of(np.array(weights)))["fixed"]
    service.register("fixed", path.read_bytes()).result(10)


@pytest.mark.parametrize("kind", ["shadow", "split", "interleave"])
def test_experiments_are_read_out_and_replayed(service, tmp_path, kind):
    second(service, tmp_path)
    service.experiment(ExperimentRequest("test", kind, "news", "fixed")).result(10)
    settled(service)
    told(service, 40)
    (found,) = service.experiments() if settled(service) else ()
    assert found.difference.n >= 30
    assert found.difference.low <= found.difference.mean <= found.difference.high
    live = service.log.replay.experiments["test"].to_dict()
    assert replay_of(service, from_nothing=True).experiments["test"].to_dict() == live
    assert file_of(replay_of(service, from_nothing=True).models["news"].ranker) == file_of(
        service.log.replay.models["news"].ranker
    )
    service.change("stop", "", {"name": "test"}).result(10)
    settled(service)
    told(service, 5, seed=2, first=100)
    assert settled(service).experiments["test"].answer().difference == found.difference


def test_a_user_sees_one_side_of_a_split(service, tmp_path):
    second(service, tmp_path)
    service.experiment(ExperimentRequest("test", "split", "news", "fixed", share=0.3)).result(10)
    settled(service)
    sides = {user: {ranked(service, user=user).model for _ in range(3)} for user in map(str, range(200))}
    assert all(len(one) == 1 for one in sides.values())
    assert 35 <= sum(one == {"fixed"} for one in sides.values()) <= 85


def test_experiments_between_what_is_not_there_are_refused(service, tmp_path):
    assert refusal(service.experiment(ExperimentRequest("test", "split", "news", "none"))).status == 422
    second(service, tmp_path)
    service.register("wide", saved(tmp_path, "wide", learner(width=5))["wide"].read_bytes()).result(10)
    settled(service)
    assert refusal(service.experiment(ExperimentRequest("test", "split", "news", "wide"))).status == 422
    service.experiment(ExperimentRequest("test", "split", "news", "fixed")).result(10)
    settled(service)
    assert refusal(service.experiment(ExperimentRequest("test", "split", "news", "fixed", share=0.1))).status == 409
    assert refusal(service.experiment(ExperimentRequest("more", "split", "news", "fixed"))).status == 409


def test_an_interleaved_list_is_fair_and_complete():
    from rankwise.serve.experiments import interleave

    a, b = np.array([0, 1, 2, 3]), np.array([3, 1, 0, 2])
    firsts = []
    for seed in range(400):
        order, team = interleave(a, b, seed)
        assert sorted(order) == [0, 1, 2, 3]
        assert sorted(team[order[:2]]) == sorted(team[order[2:]]) == [0, 1]  # every turn has one pick of each
        assert order[0] == (a, b)[team[order[0]]][0]
        firsts.append(team[order[0]])
    assert 160 <= sum(firsts) <= 240
    for size in (0, 1, 5, 70):
        order, team = interleave(np.arange(size), np.arange(size)[::-1], 1)
        assert sorted(order) == list(range(size))
        assert len(team) == size
        assert (np.diff(order[50:]) > 0).all()  # the rest as the first ranker has it


def test_a_promise_that_is_provably_broken_rings(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path), floor=0.99)
    for number, (X, y) in enumerate(itertools.islice(lists(400), 400)):
        worst = [1.0 - one for one in y]  # what the model learned is always wrong
        shown = ranked(service, X)
        service.feedback(Feedback(f"{number}", shown.ranking, grades=worst if number % 2 else y))
    settled(service)
    assert any("below the promised 0.99" in one for one in service.alarms())
    service.close()
