"""Packs for tests: built once per state of the sources, and installations that carry one."""

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import rankwise
from rankwise._kernels.machine.cache import cache_folder
from rankwise._kernels.machine.pack import pack_name
from wheels import pack as builder

SOURCE = Path(rankwise.__file__).parent
# What a normal run packs: half a minute of compiling, once.
FEW = ["evaluate", "read_letor", "Scorer"]


@contextmanager
def _alone(path):
    """Hold a lock that other processes of the test run wait for."""
    import fcntl

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def built_pack(names=None):
    """The pack of these workloads, or of all, from the cache folder if the sources are those that it was built from."""
    try:
        builder.level()
    except builder.PackBuildError as reason:
        pytest.skip(str(reason))
    written = hashlib.sha256(repr(names).encode() + Path(builder.__file__).read_bytes())
    for path in sorted(SOURCE.rglob("*.py")):
        written.update(path.read_bytes())
    used = cache_folder()
    folder = Path(used).parent / "test-packs" if used else Path(tempfile.mkdtemp())
    folder.mkdir(mode=0o700, exist_ok=True)
    covered = "few" if names else "all"
    path = folder / f"{covered}-{written.hexdigest()[:16]}-{pack_name()}"
    with _alone(folder / "lock"):
        if not path.exists():
            for old in folder.glob(f"{covered}-*.pack"):
                old.unlink()
            builder.build(path, cache=folder / "cache", names=names)
    return path


def install(folder, pack=None):
    """A copy of the package, of links to its files, that carries a pack: the variable that puts it on the path."""
    package = folder / "rankwise"
    packs = package / "_kernels" / "machine" / "packs"
    packs.mkdir(parents=True)
    for inside, apart in (("", "_kernels"), ("_kernels", "machine"), ("_kernels/machine", "packs")):
        for path in (SOURCE / inside).iterdir():
            if path.name != apart:
                (package / inside / path.name).symlink_to(path)
    if pack is not None:
        (packs / pack_name()).write_bytes(pack)
    return {"PYTHONPATH": str(folder), "RANKWISE_CACHE_DIR": str(folder / "cache")}


def run(code, variables, *arguments):
    """What a script prints in a fresh process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RANKWISE_"))}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env={**kept, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
