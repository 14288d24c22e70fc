"""Files are written beside their target and renamed: nobody ever sees half a file, and an error leaves none behind."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rankwise._errors import RankwiseError


@contextmanager
def beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new path in the folder of ``path``: renamed to it when all went well, removed when not."""
    target = Path(os.path.realpath(path))  # a link keeps pointing where it pointed
    if not target.parent.is_dir():
        raise RankwiseError(f"{os.fspath(path)} cannot be written: the folder {target.parent} is not there")
    if target.is_dir():
        raise RankwiseError(f"{os.fspath(path)} cannot be written: it is a folder")
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        yield part
        with refusing(path):
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system refuses (no room, no permission) into a sentence that names the file."""
    try:
        yield
    except OSError as error:
        raise RankwiseError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """:func:`beside` for a body that does nothing but write: what the system refuses becomes a sentence."""
    with refusing(path), beside(path) as part:
        yield part
