"""Compiled code on the disk: no disk error reaches a user, nothing damaged is used, nobody else's code is run."""

import errno
import hashlib
import os
import pickle
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import numba
import pytest

from rankwise._kernels.machine import cache as kernel_cache
from rankwise._kernels.machine import jit
from rankwise._kernels.machine.cache import private_folder, prune
from rankwise._kernels.machine.jit import KernelLoader

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")

SCRIPT = """
{before}
from rankwise._kernels.machine.jit import kernel

@kernel
def doubled(x):
    return 2.0 * x

print(doubled(21.0), sum(doubled.stats.cache_hits.values()))
"""


def run(folder, script, before=""):
    """Call a compiled function in another process: (from the cache or not, standard error)."""
    script.write_text(SCRIPT.format(before=before))
    environment = {**os.environ, "RANKWISE_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    value, hits = done.stdout.split()
    assert value == "42.0"
    return hits == "1", done.stderr


INTERRUPTED = """
import signal, sys
from numba.core.codegen import JITCodeLibrary

def linked(cls, *arguments):
    if interrupting:
        signal.raise_signal(signal.SIGINT)
    return link(*arguments)

link, interrupting = JITCodeLibrary._object_getbuffer_hook, False
JITCodeLibrary._object_getbuffer_hook = classmethod(linked)  # before the first engine is made

from rankwise._kernels.machine.jit import kernel

@kernel
def doubled(x):
    return 2.0 * x

interrupting = len(sys.argv) > 1
try:
    print(doubled(21.0))
except KeyboardInterrupt:
    interrupting = False
    print(doubled(21.0), "after", signal.getsignal(signal.SIGINT).__name__)
"""


def test_ctrl_c_while_loaded_code_is_linked_comes_afterwards(tmp_path):
    script, environment = tmp_path / "script.py", {**os.environ, "RANKWISE_CACHE_DIR": str(tmp_path / "cache")}
    script.write_text(INTERRUPTED)
    for arguments, printed in ([], "42.0\n"), (["interrupt"], "42.0 after default_int_handler\n"):
        command = [sys.executable, script, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def kept(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def tripled(x):
    return 3.0 * x


def is_cached(folder, form="Python"):
    """Compile a function as a new process would: whether its code was in the folder."""
    function = numba.njit(tripled)
    function._cache = KernelLoader(tripled, {}, form)
    with mock.patch.object(jit, "cache_folder", return_value=str(folder)):
        assert function(14.0) == 42.0
    return sum(function.stats.cache_hits.values()) == 1


# ------------------------------------------------------------------------------------------- disks


def test_what_was_compiled_once_is_found_again(tmp_path):
    assert [is_cached(tmp_path), is_cached(tmp_path)] == [False, True]
    (file,) = kept(tmp_path)
    assert file.suffix == ".kernel"


@posix
def test_r5_a_full_disk_means_no_cache(tmp_path):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    assert run(tmp_path / "cache", tmp_path / "script.py", full) == (False, "")
    assert kept(tmp_path / "cache") == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO], ids=os.strerror)
@pytest.mark.parametrize("step", ["open", "rename"])
def test_r5_whatever_the_system_refuses_means_no_cache(tmp_path, monkeypatch, number, step):
    def refuse(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    if step == "open":
        refusing = lambda path, *rest: (refuse if ".kernel" in path else open)(path, *rest)  # noqa: E731
        monkeypatch.setattr(kernel_cache, "open", refusing, raising=False)
    else:
        monkeypatch.setattr(os, "replace", refuse)
    assert not is_cached(tmp_path)
    assert kept(tmp_path) == []


DAMAGES = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[:10],
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "one bit": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    "longer": lambda content: content + b"x",
    "another key": lambda content: sealed(pickle.dumps(("another key", ()))),
    "no pair": lambda content: sealed(pickle.dumps("of another kind")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_r5_a_damaged_file_is_compiled_anew_and_replaced(tmp_path, damage):
    is_cached(tmp_path)
    (file,) = kept(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert [is_cached(tmp_path), is_cached(tmp_path)] == [False, True]


def test_r5_the_file_of_another_form_is_not_used(tmp_path):
    for form in ("Python", "C"):
        assert not is_cached(tmp_path, form)
    first, second = kept(tmp_path)
    first.write_bytes(second.read_bytes())
    found = [is_cached(tmp_path, form) for form in ("Python", "C")]
    assert sorted(found) == [False, True]


# ------------------------------------------------------------------------------------------- strangers


def sealed(content):
    return hashlib.sha256(content).digest() + content


class Poison:
    """What leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@posix
def test_r6_code_that_a_stranger_could_have_put_there_is_not_run(tmp_path):
    cache, script = tmp_path / "cache", tmp_path / "script.py"
    assert run(cache, script) == (False, "")
    for path in kept(cache):
        path.write_bytes(sealed(pickle.dumps(Poison(tmp_path / "marked"))))
    (folder,) = cache.iterdir()
    folder.chmod(0o777)
    hit, said = run(cache, script)
    assert not hit
    assert said.count("RuntimeWarning") == 1
    assert f"others can write to {folder} (mode 0777)" in said
    assert not (tmp_path / "marked").exists()
    # the same file in a folder that is private is trusted, which shows that the poison works
    folder.chmod(0o700)
    run(cache, script)
    assert (tmp_path / "marked").exists()


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o002])
def test_r6_the_folder_and_those_made_above_it_are_private(tmp_path, umask):
    before = os.umask(umask)
    try:
        found = private_folder(tmp_path / "new" / "cache" / "kernels")
    finally:
        os.umask(before)
    assert found == str(tmp_path / "new" / "cache" / "kernels")
    for made in (found, tmp_path / "new" / "cache", tmp_path / "new"):
        assert stat.S_IMODE(os.stat(made).st_mode) == 0o700


def refused(folder):
    """The one warning with which a folder is refused."""
    with pytest.warns(RuntimeWarning) as said:
        assert private_folder(folder) is None
    (warning,) = said
    assert "\n" not in str(warning.message)
    return str(warning.message)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o707, 0o702])
def test_r6_a_folder_that_others_can_write_to_is_refused(tmp_path, mode):
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    assert f"others can write to {folder} (mode {mode:04o})" in refused(folder)


@posix
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_r6_a_folder_below_one_that_others_can_write_to_is_refused(tmp_path, depth):
    folder = tmp_path / "a" / "b" / "kernels"
    folder.mkdir(parents=True)
    folder.parents[depth - 1].chmod(0o777)
    assert f"others can write to {folder.parents[depth - 1]} " in refused(folder)
    folder.parents[depth - 1].chmod(0o755)
    assert private_folder(folder) == str(folder)


@posix
def test_r6_a_folder_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "kernels").symlink_to(tmp_path / "elsewhere")
    assert "it is a symbolic link" in refused(tmp_path / "kernels")


@posix
def test_r6_a_link_above_is_followed_and_what_it_points_to_is_looked_at(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    assert private_folder(tmp_path / "link" / "kernels") == str(tmp_path / "real" / "kernels")
    (tmp_path / "real").chmod(0o777)
    assert f"others can write to {tmp_path / 'real'} " in refused(tmp_path / "link" / "kernels")


@posix
@as_root
@pytest.mark.parametrize("level", [0, 1])
def test_r6_a_folder_of_another_user_is_refused(tmp_path, level):
    folder = tmp_path / "cache" / "kernels"
    folder.mkdir(parents=True, mode=0o700)
    os.chown([folder, folder.parent][level], 12345, -1)
    assert "belongs to user 12345, and you are user 0" in refused(folder)


@posix
@as_root
def test_r6_a_file_of_another_user_is_not_used(tmp_path):
    is_cached(tmp_path)
    os.chown(kept(tmp_path)[0], 12345, -1)
    assert [is_cached(tmp_path), is_cached(tmp_path)] == [False, True]


@posix
def test_r6_a_shared_folder_whose_entries_nobody_else_can_rename_is_fine(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o1777)
        if os.geteuid() == 0:  # as /tmp is root's
            assert private_folder(tmp_path / "shared" / "kernels") == str(tmp_path / "shared" / "kernels")
        assert private_folder(tmp_path / "shared" / "mine" / "kernels")


def test_a_file_in_the_way_means_no_cache_without_a_word(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert private_folder(tmp_path / "file" / "kernels") is None
        assert private_folder(tmp_path / "file") is None


# ------------------------------------------------------------------------------------------- pruning

DAY = 24 * 3600


def write(path, days, content=b"x"):
    """A file that was last read so many days ago, and its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    os.utime(path.parent, (then, then))
    return path


@pytest.fixture
def pruned(tmp_path):
    """Prune beside the folder in use: the names that are left."""

    def call():
        prune.cache_clear()
        prune(tmp_path / IN_USE)
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}

    return call


IN_USE = "kernels-" + "0" * 16
OTHER = "kernels-" + "1" * 16
FILE = "dot-" + "a" * 20 + ".kernel"


def test_code_that_nobody_has_read_for_a_month_is_removed(tmp_path, pruned):
    write(tmp_path / IN_USE / FILE, 31)
    recent = write(tmp_path / IN_USE / FILE.replace("dot", "exp"), 1)
    write(tmp_path / OTHER / FILE, 31)
    write(tmp_path / OTHER / (FILE + "." + "b" * 12 + ".part"), 31)
    write(tmp_path / f"{OTHER}-checked" / FILE, 29)
    left = pruned()
    assert left == {IN_USE, f"{IN_USE}/{recent.name}", f"{OTHER}-checked", f"{OTHER}-checked/{FILE}"}


@pytest.mark.parametrize(
    "name",
    ["kernels-0123", f"{OTHER}x", f"my-{OTHER}", f"{OTHER}-other", "models", OTHER.upper()],
)
def test_folders_of_other_names_are_left_alone(tmp_path, pruned, name):
    write(tmp_path / name / FILE, 400)
    assert f"{name}/{FILE}" in pruned()


@pytest.mark.parametrize("name", ["notes.txt", "dot-abc.kernel", FILE + ".bak", "." + FILE, "model.rankwise"])
def test_other_files_in_an_old_folder_are_left_alone(tmp_path, pruned, name):
    write(tmp_path / OTHER / name, 400)
    write(tmp_path / OTHER / FILE, 400)
    assert pruned() == {OTHER, f"{OTHER}/{name}"}


@posix
def test_links_are_not_followed(tmp_path, pruned):
    target = write(tmp_path / "elsewhere" / FILE, 400)
    (tmp_path / OTHER).symlink_to(target.parent)
    pruned()
    assert target.exists()


@posix
@as_root
def test_folders_of_other_users_are_left_alone(tmp_path, pruned):
    write(tmp_path / OTHER / FILE, 400)
    os.chown(tmp_path / OTHER, 12345, -1)
    assert f"{OTHER}/{FILE}" in pruned()


def test_a_new_folder_of_another_process_is_left_alone(tmp_path, pruned):
    (tmp_path / OTHER).mkdir()
    assert OTHER in pruned()


def test_code_that_is_loaded_is_not_old(tmp_path):
    is_cached(tmp_path)
    (file,) = kept(tmp_path)
    write(file, 40, file.read_bytes())
    assert is_cached(tmp_path)
    assert time.time() - file.stat().st_mtime < DAY
