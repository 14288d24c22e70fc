"""Folders that appear whole: written beside their target, renamed when they are complete, removed on any failure."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankwise._atomic_write import refusing, take_lock
from rankwise._errors import RankwiseError
from rankwise._paths import path_of
from rankwise.data.parts.manifest import NAME

_LOCK = "lock"


@contextmanager
def new_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder beside ``path``: renamed to it on success, removed with its content on failure.

    The folder in progress is ``.NAME.TOKEN.parts`` with a locked file inside. A writer that is killed leaves it
    without a lock, and the next writer of the same target removes it.

    Parameters
    ----------
    path : path
        The target: nothing, an empty folder, or with ``overwrite`` a data set in parts.
    overwrite : bool, default=False
        Whether a data set in parts may be replaced.

    Yields
    ------
    folder : Path
        The folder to write to.

    Raises
    ------
    RankwiseError
        If the target cannot be written or is something else.
    """
    name = path_of(path)
    with refusing(name):
        target = Path(os.path.realpath(name))
        check_target(target, name, overwrite)
        _remove_left(target)
        part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.parts")
        part.mkdir()
    held = -1
    try:
        held = os.open(part / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        take_lock(held)
        yield part
        with refusing(name):
            check_target(target, name, overwrite)
            os.unlink(part / _LOCK)
            _replace(part, target)
    finally:
        if held >= 0:
            os.close(held)
        shutil.rmtree(part, ignore_errors=True)


def check_target(target: Path, name: str, overwrite: bool) -> None:
    """Raise an error if a folder cannot be written at this place."""
    if not target.parent.is_dir():
        raise RankwiseError(f"{name} cannot be written: the folder {target.parent} does not exist")
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise RankwiseError(f"{name} cannot be written: it is a file, expected a new folder")
    if any(target.iterdir()):
        if not (target / NAME).is_file():
            raise RankwiseError(f"{name} cannot be written: the folder holds other files")
        if not overwrite:
            raise RankwiseError(
                f"{name} cannot be written: it holds a data set already; remove it, or overwrite it "
                "(overwrite=True, --overwrite)"
            )


def _replace(part: Path, target: Path) -> None:
    """Put a complete folder in the place of its target; processes that have the old files open keep them."""
    old = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
    moved = False
    if target.is_dir():
        if any(target.iterdir()):
            os.replace(target, old)
            moved = True
        else:
            target.rmdir()
    try:
        os.replace(part, target)
    except BaseException:
        if moved:
            os.replace(old, target)
        raise
    if moved:
        shutil.rmtree(old, ignore_errors=True)


def _remove_left(target: Path) -> None:
    """Remove the folders that killed writers of this target have left: those without a lock."""
    for left in target.parent.glob(f".{_escaped(target.name)}.{'[0-9a-f]' * 12}.parts"):
        with suppress(OSError):
            if not (left / _LOCK).exists():
                continue  # being made, or being renamed at this moment
            held = os.open(left / _LOCK, os.O_RDWR)
            try:
                free = take_lock(held)
            finally:
                os.close(held)
            if free:
                shutil.rmtree(left, ignore_errors=True)


def _escaped(name: str) -> str:
    """The name with the letters that patterns give a meaning to taken literally."""
    import glob

    return glob.escape(name)
