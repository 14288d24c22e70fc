"""Files that the package writes: whole or not at all, as private as what they replace, and nobody's leftovers."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise import Queries, RidgeRanker, _files
from rankwise._files import atomic_write, remove_parts, writing
from rankwise.errors import RankwiseError

posix = pytest.mark.skipif(os.name != "posix", reason="modes and locks of POSIX")

WAITING = """
import sys, time
from rankwise._files import atomic_write
with atomic_write(sys.argv[1]) as part:
    part.write_bytes(b"half")
    print(part, flush=True)
    sys.stdin.readline()
"""


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def put(path, content=b"new"):
    with writing(path) as part:
        part.write_bytes(content)


def everything_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def waiting_writer(tmp_path):
    """Start another process that has begun to write ``path``: (process, its part)."""
    started = []

    def start(path):
        command = [sys.executable, "-c", WAITING, str(path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.communicate()


# ------------------------------------------------------------------------------------------- modes and links


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666, 0o400])
def test_r9_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(mode)
    put(path)
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


@posix
def test_r9_every_writer_of_the_package_keeps_the_mode(tmp_path):
    queries = rw.make_lists(6, documents=3, features=2, random_state=0)
    model = RidgeRanker(alpha=1.0).fit(queries)
    writers = {
        "queries": queries.save,
        "model": model.save,
        "letor.txt": lambda path: rw.write_letor(queries, path),
        "run": lambda path: rw.io.write_run(queries, model.predict(queries), path),
        "table.csv": lambda path: rw.io.write_table(queries, path),
        "model.txt": lambda path: rw.export(model, "ranklib", path),
    }
    for name, write in writers.items():
        path = tmp_path / name
        path.write_bytes(b"")
        path.chmod(0o600)
        write(path)
        assert (mode_of(path), path.stat().st_size > 0) == (0o600, True), name


@posix
def test_r9_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(0o644)
    with writing(path) as part:
        assert mode_of(part) == 0o600


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path, umask):
    before = os.umask(umask)
    try:
        put(tmp_path / "new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new") == 0o666 & ~umask


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_r9_root_leaves_a_file_to_its_owner(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    put(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@posix
def test_r9_a_group_that_cannot_be_kept_gives_no_rights_to_another(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(0o664)
    was = os.lstat(path)
    monkeypatch.setattr(_files, "_status", lambda target: os.stat_result([*was[:5], was.st_gid + 1, *was[6:10]]))

    def refuse(*_):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    put(path)
    assert mode_of(path) == 0o604


def test_r9_a_chain_of_links_is_kept_and_its_end_replaced(tmp_path):
    end = tmp_path / "far" / "model"
    end.parent.mkdir()
    end.write_bytes(b"old")
    (tmp_path / "middle").symlink_to(end)
    (tmp_path / "link").symlink_to("middle")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert end.read_bytes() == b"new"
    assert everything_in(end.parent) == ["model"]


def test_a_link_to_what_is_not_there_yet_makes_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    put(tmp_path / "link")
    assert (tmp_path / "model").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RankwiseError, match=r"a cannot be written: "):
        put(tmp_path / "a")
    assert everything_in(tmp_path) == ["a", "b"]


@posix
def test_a_pipe_or_a_device_is_refused_and_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RankwiseError, match="pipe cannot be written: it is not a regular file"):
        put(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_longest_name_that_a_file_can_have_can_be_written(tmp_path):
    path = tmp_path / ("\u00e4" * 127)  # 254 bytes
    try:
        path.write_bytes(b"")
    except OSError:
        pytest.skip("this file system has shorter names")
    put(path)
    assert path.read_bytes() == b"new"


# ------------------------------------------------------------------------------------------- to the disk


@posix
def test_r9_the_file_is_on_the_disk_before_it_is_renamed_and_the_folder_after(tmp_path, monkeypatch):
    path, happened = tmp_path / "model", []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.fstat(descriptor).st_size
        happened.append(("sync", kind))
        fsync(descriptor)

    def renamed(source, target):
        happened.append(("rename", os.path.basename(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    put(path, b"12345")
    assert happened == [("sync", 5), ("rename", "model"), ("sync", "folder")]


def test_r9_what_the_disk_does_not_take_is_a_sentence_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RankwiseError, match=r"model cannot be written: No space left on device"):
        put(path)
    assert path.read_bytes() == b"old"
    assert everything_in(tmp_path) == ["model"]


FULL = """
import resource, sys
import rankwise as rw
queries = rw.make_lists(60, documents=20, features=5, random_state=0)
model = rw.RidgeRanker(alpha=1.0).fit(queries)
scores = model.predict(queries)
rw.write_letor(queries, sys.argv[1] + "/warm")  # compiled, and cached, before there is no room
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
writers = {"queries": queries.save, "model": model.save, "letor": lambda p: rw.write_letor(queries, p),
           "run": lambda p: rw.io.write_run(queries, scores, p), "qrels": lambda p: rw.io.write_qrels(queries, p),
           "t.csv": lambda p: rw.io.write_table(queries, p), "t.parquet": lambda p: rw.io.write_table(queries, p),
           "page.py": lambda p: rw.export(model, "python", p), "gone.gz": lambda p: rw.write_letor(queries, p)}
for name, write in writers.items():
    try:
        write(sys.argv[1] + "/" + name)
        print(name, "written")
    except rw.errors.RankwiseError as error:
        print(name, "refused")
        assert " cannot be written: " in str(error), error
"""


@posix
def test_r9_no_room_is_a_sentence_for_every_writer_and_keeps_the_old_files(tmp_path):
    names = ["queries", "model", "letor", "run", "qrels", "t.csv", "t.parquet", "page.py", "gone.gz"]
    for name in names:
        (tmp_path / name).write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert found == {name: "written" if name == "page.py" else "refused" for name in names}
    assert everything_in(tmp_path) == sorted([*names, "warm"])
    assert all((tmp_path / name).read_bytes() == b"old" for name in names if name != "page.py")


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RankwiseError, match="cannot be written: Permission denied"):
            put(tmp_path / "model")
    finally:
        tmp_path.chmod(0o700)


# ------------------------------------------------------------------------------------------- parts of dead writers


@posix
def test_r9_the_part_of_a_killed_writer_is_removed_by_the_next_save(tmp_path, waiting_writer):
    path = tmp_path / "model"
    process, part = waiting_writer(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert part.exists()
    put(path)
    assert everything_in(tmp_path) == ["model"]


@posix
def test_r9_the_part_of_a_writer_at_work_is_left_alone(tmp_path, waiting_writer):
    path = tmp_path / "model"
    process, part = waiting_writer(path)
    put(path)
    remove_parts(tmp_path)
    assert part.exists()
    process.communicate("go on\n")
    assert process.returncode == 0
    assert path.read_bytes() == b"half"  # whoever renames last has written the file
    assert everything_in(tmp_path) == ["model"]


@posix
def test_r9_only_parts_of_the_same_target_are_removed(tmp_path):
    others = [".model.x.0123456789ab.part", ".other.0123456789ab.part", ".model.part", "model.0123456789ab.part"]
    for name in [*others, ".model.0123456789ab.part"]:
        (tmp_path / name).write_bytes(b"")
    put(tmp_path / "model")
    assert everything_in(tmp_path) == sorted([*others, "model"])


@posix
def test_r9_a_link_that_is_called_like_a_part_is_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"kept")
    (tmp_path / ".model.0123456789ab.part").symlink_to(tmp_path / "precious")
    put(tmp_path / "model")
    assert (tmp_path / "precious").read_bytes() == b"kept"


def test_many_writers_at_once_all_succeed_and_leave_one_whole_file(tmp_path):
    path, failed = tmp_path / "model", []

    def write(letter):
        try:
            for _ in range(20):
                put(path, letter * 10_000)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert path.read_bytes() in [letter * 10_000 for letter in (b"a", b"b", b"c", b"d")]
    assert everything_in(tmp_path) == ["model"]


def test_an_error_between_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def stopped():
        with atomic_write(path) as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_bytes() == b"old"
    assert everything_in(tmp_path) == ["model"]


# ------------------------------------------------------------------------------------------- what is not a path

NO_PATHS = [
    ("a\0b", "zero byte"),
    ("", "empty"),
    ("\ud800", "is not a path"),
    (5, "a path must be a str or path-like, got 5"),
    (None, "a path must be a str or path-like, got None"),
]


@pytest.mark.parametrize(("path", "found"), NO_PATHS, ids=repr)
def test_r8_what_is_no_path_is_refused_by_every_writer_and_reader(path, found, tmp_path):
    queries = rw.make_lists(4, documents=3, features=2, random_state=0)
    model = RidgeRanker(alpha=1.0).fit(queries)
    doors = {
        "save queries": lambda: queries.save(path),
        "save model": lambda: model.save(path),
        "write_letor": lambda: rw.write_letor(queries, path),
        "write_qrels": lambda: rw.io.write_qrels(queries, path),
        "write_run": lambda: rw.io.write_run(queries, queries.y, path),
        "write_table": lambda: rw.io.write_table(queries, path),
        "export": lambda: rw.export(model, "python").write(path),
        "load": lambda: rw.load(path),
        "read_letor": lambda: rw.read_letor(path),
        "iter_letor": lambda: list(rw.iter_letor(path)),
        "read_table": lambda: rw.read_table(path),
        "read_qrels": lambda: rw.io.read_qrels(path),
        "read_run": lambda: rw.io.read_run(path),
        "read_model": lambda: rw.read_model(path),
        "read_folds": lambda: rw.io.read_folds(path),
        "resume": lambda: rw.compare({"r": model}, queries, resume=path or 5),
        "query_file": lambda: rw.read_letor(_letor_without_qids(tmp_path), query_file=path),
    }
    if path is None:
        del doors["resume"], doors["query_file"]  # None is a value there
    for name, door in doors.items():
        with pytest.raises(RankwiseError) as refused:
            door()
        assert "\n" not in str(refused.value), name
    with pytest.raises(RankwiseError, match=found):
        queries.save(path)


def _letor_without_qids(folder):
    path = folder / "plain.txt"
    path.write_text("1 1:2\n0 1:3\n")
    return path


@pytest.mark.parametrize("form", ["file", "stream"])
def test_r3_a_table_of_arrow_is_read_and_not_mapped(tmp_path, form):
    """In a process of its own, which the system ends where a mapped page is no longer there."""
    code = """
import os, sys
import numpy as np, pyarrow as pa
import rankwise as rw
from rankwise.io.tables.frames import iter_table
from rankwise.io.tables.rows import Roles
table = pa.table({"qid": np.arange(20_000) // 10, "label": np.arange(20_000) % 3 * 1.0, "f": np.arange(20_000.0)})
path, make = sys.argv[1], pa.ipc.new_file if sys.argv[2] == "file" else pa.ipc.new_stream
with make(path, table.schema) as writer:
    writer.write_table(table, max_chunksize=3_000)
queries = rw.read_table(path)
blocks = list(iter_table(path, Roles("qid", "label", None, None, None, ()), rows=1_000))
os.truncate(path, 100)
assert queries.X.sum() == sum(block.X.sum() for block in blocks) == np.arange(20_000.0).sum()
assert queries.y.sum() == sum(block.y.sum() for block in blocks) == table["label"].to_numpy().sum()
assert len(blocks) > 10
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.arrow"), form], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_r3_a_save_over_a_mapped_file_leaves_the_map_as_it_was(tmp_path):
    path = tmp_path / "lists"
    first, second = (
        Queries.from_arrays(np.full((rows, 3), float(rows)), np.zeros(rows), group=[rows]) for rows in (5000, 3)
    )
    first.save(path)
    mapped = rw.load(path)
    second.save(path)
    assert path.stat().st_size < mapped.X.nbytes
    assert (mapped.X == 5000.0).all()
    assert rw.load(path).n_documents == 3
