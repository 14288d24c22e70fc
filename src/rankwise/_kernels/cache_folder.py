"""The folder of compiled code: private, since code that others could have put there would be run.

Compiled code is read back by ``pickle``, which runs what a file tells it to. A folder is therefore used only if it
belongs to the user and nobody else can write to it, or to a folder above it. Otherwise nothing is kept, and one
warning says why; where the folder merely cannot be written, nothing is kept and nothing is said.
"""

import os
import stat
import tempfile
import warnings
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_folder(folder: Path) -> str | None:
    """The folder, made with mode 0700 where it is not there; None where nothing can or should be kept.

    Parameters
    ----------
    folder : a folder of its own for compiled code, inside the folder of the user's or of ``RANKWISE_CACHE_DIR``
    """
    try:
        # Links above are followed once, so that what is looked at is what is used.
        folder = Path(os.path.realpath(folder.parent)) / folder.name
        _make(folder)
        if os.name == "posix":
            reason = _reason_against(folder)
            if reason:
                warnings.warn(
                    f"rankwise compiles its kernels anew in this process and keeps nothing in {folder}: {reason}; "
                    "let RANKWISE_CACHE_DIR name a folder that is yours and that only you can write to",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return None
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, ValueError):  # ValueError: a name that cannot be one of a folder
        return None


def _make(folder: Path) -> None:
    """Make the folder and those above it, for nobody but the user."""
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _reason_against(folder: Path) -> str | None:
    """Why compiled code in that folder, whose path holds no link but its last part, cannot be trusted."""
    if stat.S_ISLNK(os.lstat(folder).st_mode):
        return "it is a symbolic link"
    for place in (folder, folder.parent):
        status = os.lstat(place)
        if place != folder and _is_shared_safely(status):
            continue
        if status.st_mode & _OTHERS and not _is_private_group(status):
            return f"others can write to {place} (mode {stat.S_IMODE(status.st_mode):04o})"
        if status.st_uid != os.geteuid():
            return f"{place} belongs to user {status.st_uid}, and you are user {os.geteuid()}"
    for place in folder.parents:
        status = os.lstat(place)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"others can write to {place} (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _is_shared_safely(status: os.stat_result) -> bool:
    """Whether a folder is root's and nobody can rename what others have in it, as in /tmp."""
    return status.st_uid == 0 and (bool(status.st_mode & stat.S_ISVTX) or not status.st_mode & _OTHERS)


def _is_private_group(status: os.stat_result) -> bool:
    """Whether only the group can write, and the user is alone in it, as many systems set users up."""
    if status.st_mode & stat.S_IWOTH:
        return False
    try:
        import grp
        import pwd

        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(status.st_gid)
    except (ImportError, KeyError):
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
