"""One owner of a state, whatever leads to it; files that are no state; who may read what is written."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.serve import upkeep
from rankwise.serve.log import RequestError
from rankwise.serve.statefile import StateFile, StateLocked, open_to_read
from tests.serve.running import Service, saved
from tests.serve.test_state import settled, told

ROOT = Path(__file__).parents[2]
OPEN = "import sys; from rankwise.serve.statefile import StateFile; StateFile(sys.argv[1])"

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and FIFOs of POSIX")


def other_process(path):
    """What another process says when it opens a state."""
    command = [sys.executable, "-c", OPEN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def owned(tmp_path):
    with closing(StateFile(tmp_path / "state.db")) as state:
        yield state.path


@posix
def test_s9_a_second_owner_by_another_name_or_without_the_files_beside_is_refused(owned, tmp_path):
    link, hard = tmp_path / "link.db", tmp_path / "hard.db"
    link.symlink_to(owned)
    (tmp_path / "folder").symlink_to(tmp_path)
    for path in (owned, link, tmp_path / "folder" / "state.db"):
        with pytest.raises(StateLocked, match="in use by another service"):
            StateFile(path)
    for beside in tmp_path.glob("state.db.*"):
        beside.unlink()
    with pytest.raises(StateLocked):
        StateFile(owned)
    os.link(owned, hard)
    with pytest.raises(StateLocked):
        StateFile(hard)
    assert "in use by another service" in other_process(link)  # our own refusals have dropped no lock


@posix
def test_s9_a_state_with_two_names_is_refused(tmp_path):
    StateFile(tmp_path / "state.db").close()
    os.link(tmp_path / "state.db", tmp_path / "hard.db")
    with pytest.raises(RankwiseError, match=r"has 2 hard links"):
        StateFile(tmp_path / "hard.db")
    (tmp_path / "hard.db").unlink()
    StateFile(tmp_path / "state.db").close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_processes_that_start_at_once_one_owns_the_state(tmp_path):
    begin, stay, children = os.pipe(), os.pipe(), []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.read(begin[0], 1)
                with closing(StateFile(tmp_path / "state.db")):
                    os.close(stay[1])
                    os.read(stay[0], 1)  # until the others have tried
                code = 0
            except StateLocked:
                code = 2
            finally:
                os._exit(code)
        children.append(child)
    os.write(begin[1], b"1234")
    codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)]
    os.close(stay[1])
    codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
    assert codes == [2, 2, 2, 0]
    StateFile(tmp_path / "state.db").close()


@posix
@pytest.mark.parametrize("what", ["folder", "fifo", "device"])
def test_what_is_no_file_is_refused(tmp_path, what):
    path = tmp_path / "state.db"
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path = Path("/dev/null")
    with pytest.raises(RankwiseError, match="the state must be a file"):
        StateFile(path)
    for reading in (open_to_read, upkeep.check):
        with pytest.raises(RankwiseError, match="does not exist"):
            reading(path)
    assert list(tmp_path.iterdir()) in ([], [path])


def test_an_empty_file_becomes_a_state_and_another_database_stays_as_it_is(tmp_path):
    (tmp_path / "empty.db").touch()
    with pytest.raises(FileFormatError, match="not the state of a service"):
        upkeep.check(tmp_path / "empty.db")
    StateFile(tmp_path / "empty.db").close()
    assert upkeep.check(tmp_path / "empty.db")["events"] == 0
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE mine(x)")
    before = (tmp_path / "other.db").read_bytes()
    for opening in (StateFile, open_to_read):
        with pytest.raises(FileFormatError, match="another application"):
            opening(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes() == before
    assert [one.name for one in tmp_path.glob("other.db*")] == ["other.db"]


@posix
def test_s18_the_state_and_its_copies_are_for_their_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with closing(Service(tmp_path / "state.db", saved(tmp_path))) as service:
            told(service, 3)
            settled(service)
            upkeep.backup(tmp_path / "state.db", tmp_path / "copy.db")
            found = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob("*.db*")}
    finally:
        os.umask(before)
    assert set(found) == {"state.db", "state.db-wal", "state.db-shm", "state.db.mark", "copy.db"}
    assert set(found.values()) == {0o600}


@posix
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_state_that_is_removed_or_replaced_under_the_service_takes_nothing(tmp_path, how):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 3)
    settled(service)
    os.rename(tmp_path / "state.db", tmp_path / "moved.db")
    if how == "replaced":
        (tmp_path / "state.db").touch()
    with pytest.raises(RequestError, match="could not be written") as refused:
        service.change("freeze", "news", {}).result(10)
    assert (refused.value.status, refused.value.retry) == (503, True)
    os.replace(tmp_path / "moved.db", tmp_path / "state.db")
    assert service.change("freeze", "news", {}).result(10) == (5, True)
    service.close()


@posix
def test_a_backup_that_finds_no_room_blames_the_copy_and_leaves_nothing(tmp_path):
    with closing(Service(tmp_path / "state.db", saved(tmp_path))) as service:
        told(service, 3)
    (tmp_path / "nowhere").touch()
    with pytest.raises(RankwiseError, match=r"copy\.db\.part cannot be read or written: Not a directory"):
        upkeep.backup(tmp_path / "state.db", tmp_path / "nowhere" / "copy.db")
    child = os.fork()
    if child == 0:  # a process that may write no more than this
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
            upkeep.backup(tmp_path / "state.db", tmp_path / "copy.db")
        except RankwiseError as error:
            code = 0 if "copy.db.part cannot be read or written" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not list(tmp_path.glob("copy.db*"))
