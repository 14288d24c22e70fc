"""Damage: whatever changes a replay is found, by `state check` and by the replay itself, and is one sentence."""

import os
import random
import shutil
import sqlite3
from contextlib import closing, suppress

import pytest

from rankwise.errors import RankwiseError
from rankwise.serve import upkeep
from rankwise.serve.replay import Replay, file_of
from rankwise.serve.statefile import StateDamaged, StateFile, open_to_read
from rankwise.serve.structs import ExperimentRequest, Feedback
from tests.serve.running import IDS, Service, learner, lists, saved
from tests.serve.test_state import ranked, second, settled, told


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A state with everything in it: grades, clicks, snapshots, models, experiments, versions, a compaction."""
    folder = tmp_path_factory.mktemp("damage")
    with closing(Service(folder / "state.db", saved(folder), snapshot_every=8)) as service:
        told(service, 5)
    with closing(StateFile(folder / "state.db")) as opened:
        upkeep.compact(opened)
    with closing(Service(folder / "state.db", snapshot_every=8)) as service:
        told(service, 6, seed=4, first=50)
        second(service, folder)
        for kind in ("shadow", "interleave"):
            service.experiment(ExperimentRequest(kind, kind, "news", "fixed")).result(10)
            settled(service)
            told(service, 5, seed=5, first=100 if kind == "shadow" else 200)
            service.change("stop", "", {"name": kind}).result(10)
        settled(service)
        service.change("promote", "news", {"version": 9}).result(10)
        for number, (X, _) in enumerate(lists(6, seed=6)):
            shown = ranked(service, X)
            for click in (1, 4):
                service.feedback(Feedback(f"click {number} {click}", shown.ranking, clicks=[IDS[click]])).result(10)
            if number % 2:
                service.close_ranking(shown.ranking).result(10)
        service.change("rollback", "news", {"version": 12}).result(10)
        service.change("thaw", "news", {}).result(10)
        told(service, 5, seed=7, first=300)
        ranked(service)
        settled(service)
    return folder / "state.db"


def outcome_of(path, **how):
    """Everything that a replay gives."""
    with closing(open_to_read(path)) as db:
        replay = Replay.at(db, **how)
    models = {
        name: [
            file_of(one.ranker),
            None if one.pinned is None else file_of(one.pinned[1]),
            one.version,
            one.lists,
            one.frozen,
            one.running.total,
            one.running.n,
        ]
        for name, one in replay.models.items()
    }
    return replay.seq, replay.default, models, [one.answer() for one in replay.experiments.values()]


def refusal_of(opening, path):
    """What is said of a damaged state; nothing if it is taken for intact."""
    try:
        opening(path)
    except RankwiseError as error:
        return str(error)
    return ""


def flipped(state, folder, flips, seed):
    """Flip single bits of a copy of the state: (found by the check, unfound and without consequences)."""
    expected = [outcome_of(state, from_nothing=True), outcome_of(state)]
    path, data, chance = folder / "state.db", bytearray(state.read_bytes()), random.Random(seed)
    shutil.copy(f"{state}.mark", f"{path}.mark")
    found = harmless = 0
    for _ in range(flips):
        place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        data[place] ^= bit
        path.write_bytes(data)
        data[place] ^= bit
        outcomes = []
        for how in ({"from_nothing": True}, {}):
            try:
                outcomes.append(outcome_of(path, **how))
            except RankwiseError as error:  # any other error ends the test
                outcomes.append(str(error))
        said = refusal_of(upkeep.check, path)
        found, harmless = found + (said != ""), harmless + (said == "")
        assert len(said.splitlines()) <= 1
        assert said or outcomes == expected, (place, bit)
        # a replay gives the right bits or an error, checked or not
        for one, right in zip(outcomes, expected, strict=True):
            assert isinstance(one, str) or one == right, (place, bit)
        with suppress(RankwiseError):
            Service(path).close()
        for more in ("-wal", "-shm"):
            (folder / f"state.db{more}").unlink(missing_ok=True)
    return found, harmless


def test_s2_the_state_is_intact_before_it_is_damaged(state):
    found = upkeep.check(state)
    assert found["snapshots"] >= 2
    assert found["files"] >= 4
    assert outcome_of(state) == outcome_of(state, from_nothing=True)


def test_s2_single_bits_that_change_a_replay_are_found(state, tmp_path):
    found, harmless = flipped(state, tmp_path, 50, seed=1)
    assert found >= 10
    assert found + harmless == 50


@pytest.mark.thorough
def test_s2_a_thousand_single_bits(state, tmp_path):
    found, harmless = flipped(state, tmp_path, 1_000, seed=2)
    print(f"\n1,000 flips: {found} found, {harmless} without consequences")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE shown SET x=zeroblob(length(x)) WHERE id=(SELECT ranking FROM event WHERE seq=8)",
        "UPDATE shown SET ids=replace(ids, 'd0', 'd9') WHERE id=(SELECT ranking FROM event WHERE seq=8)",
        "UPDATE shown SET place=zeroblob(length(place)) WHERE id=(SELECT ranking FROM event WHERE seq=8)",
        "UPDATE shown SET teams=zeroblob(length(teams)) WHERE teams IS NOT NULL",
        "UPDATE shown SET experiment=NULL WHERE experiment IS NOT NULL",
        "UPDATE shown SET wide=-wide WHERE id=(SELECT max(id) FROM shown)",  # shown, and not judged yet
        "DELETE FROM shown WHERE id=(SELECT ranking FROM event WHERE seq=8)",
        "UPDATE event SET at=at+1 WHERE seq=8",
        "UPDATE event SET reads=zeroblob(16) WHERE kind='close'",
        "UPDATE event SET ranking='other' WHERE seq=3",  # compacted: its body is gone
        "UPDATE event SET body=NULL WHERE seq=8",
        "UPDATE event SET body=NULL WHERE kind='clicks'",
        "DELETE FROM event WHERE seq=(SELECT max(seq) FROM event)",
        "UPDATE outcome SET closed=closed+1 WHERE closed=8",
        "UPDATE outcome SET closed=NULL WHERE closed=8",
        "DELETE FROM outcome WHERE closed IS NULL",
        "UPDATE snapshot SET body=replace(body, '\"lists\": ', '\"lists\": 1')",
        "UPDATE snapshot SET seq=seq+1 WHERE seq=(SELECT max(seq) FROM snapshot)",
        "UPDATE file SET data=zeroblob(length(data))",
        "DELETE FROM file WHERE digest=(SELECT lower(hex(reads)) FROM event WHERE kind='promote')",
        "UPDATE fact SET value=value-1",
        "UPDATE fact SET value='six'",
        "DELETE FROM fact",
    ],
)
def test_s2_whatever_learning_reads_is_in_a_digest(state, tmp_path, change):
    path = tmp_path / "state.db"
    shutil.copy(state, path)
    shutil.copy(f"{state}.mark", f"{path}.mark")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(change).rowcount
        db.commit()
    with pytest.raises(StateDamaged, match=r"damaged|lost its tail"):
        upkeep.check(path)


def test_s2_an_index_that_lost_a_click_is_found(state, tmp_path):
    path = tmp_path / "state.db"
    shutil.copy(state, path)
    with closing(sqlite3.connect(path)) as db:  # an index over fewer rows under the schema of the whole one
        sql = db.execute("SELECT sql FROM sqlite_master WHERE name='clicks_of_ranking'").fetchone()[0]
        db.execute("DROP INDEX clicks_of_ranking")
        db.execute("CREATE INDEX clicks_of_ranking ON event(ranking) WHERE kind = 'clicks' AND seq % 2")
        db.execute("PRAGMA writable_schema=1")
        db.execute("UPDATE sqlite_master SET sql=? WHERE name='clicks_of_ranking'", (sql,))
        db.commit()
    with pytest.raises(StateDamaged):
        upkeep.check(path)
    with pytest.raises(StateDamaged, match="damaged at event"):
        outcome_of(path, from_nothing=True)


def test_s2_a_model_file_that_was_changed_is_not_served(state, tmp_path):
    path = tmp_path / "state.db"
    shutil.copy(state, path)
    other = saved(tmp_path, model=learner(names=["bm25", "age", "clicks"]).partial_fit(*next(lists(1))))["news"]
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE file SET data=?", (other.read_bytes(),))
        db.commit()
    with pytest.raises(StateDamaged, match="was changed"):
        Service(path)


def test_s17_a_restored_backup_beside_an_old_wal_is_named_and_left_intact(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path), window=3600)
    told(service, 40)
    settled(service)
    upkeep.backup(tmp_path / "state.db", tmp_path / "backup.db")
    told(service, 200, seed=2, first=1_000)
    # the log of SQLite has gone into the file, and goes on
    service.log.call(lambda: service.state.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()).result(10)
    told(service, 40, seed=1, first=100)
    settled(service)
    copy = tmp_path / "copy"
    copy.mkdir()
    for more in ("-wal", ".mark"):
        shutil.copy(tmp_path / f"state.db{more}", copy)
    service.close()
    shutil.copy(tmp_path / "backup.db", copy / "state.db")
    with pytest.raises(StateDamaged, match=r"if this is a restored backup, remove .*state\.db-wal and .*-shm"):
        Service(copy / "state.db")
    assert (copy / "state.db").read_bytes() == (tmp_path / "backup.db").read_bytes()
    for more in ("-wal", "-shm"):
        (copy / f"state.db{more}").unlink(missing_ok=True)
    with pytest.raises(StateDamaged, match="lost its tail: it ends at event 41, and 281 were acknowledged"):
        Service(copy / "state.db")
    with closing(Service(copy / "state.db", accept_loss=True)) as again:
        assert again.log.committed == 41


@pytest.mark.parametrize("size", [0, 100, 5_000, 70_000])
def test_a_state_that_was_cut_is_one_sentence(state, tmp_path, size):
    path = tmp_path / "state.db"
    path.write_bytes(state.read_bytes()[:size])
    for opening in (upkeep.check, outcome_of):
        with pytest.raises(RankwiseError):
            opening(path)
    if size:
        with pytest.raises(StateDamaged):
            Service(path)
    assert sorted(os.listdir(tmp_path))[0] == "state.db"
