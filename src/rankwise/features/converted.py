"""Files of judged queries that are larger than memory, as data sets in parts in the cache folder of the user.

:func:`open_converted` converts a file at its first use and opens the parts later on. A folder is named by what decides
its content: the path, size and time of the file, how it is read, and for a table of words the queries that the builder
learned from. It appears when it is complete: a conversion that was stopped or killed begins again. Folders that
nobody has opened for a month are removed by the next conversion.
"""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._files import path_of, refusing, remove_left_folders
from rankwise._kernels import parallel
from rankwise._kernels.machine.cache import user_cache
from rankwise._version import __version__
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.features.judged import new_builder, plain_numbers, with_options, with_roles
from rankwise.features.sampled import Learned, learn_from_sample, write_built_parts
from rankwise.features.state import read_builder
from rankwise.features.table import iter_columns
from rankwise.io.any_file import kind_of
from rankwise.io.convert import write_parts
from rankwise.io.memory_needed import dtype_in_memory
from rankwise.io.sources import open_stream
from rankwise.io.tables.rows import is_arrow
from rankwise.queries.folds import split
from rankwise.queries.parts.manifest import NAME
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder

FOLDER, FORMAT = "parts", 1
_MONTH = 30 * 86_400  # seconds
_OF_PARTS = ("missing", "unjudged", "zero_based", "qid", "label", "docid", "ignore", "grades", "features")
# Shares of the memory for what is read, or put into order, together; and for what is kept between passes.
_TOGETHER, _KEPT = 12, 4
# Chunks in float64 that a thread holds, with what it computes of them.
_OF_A_THREAD = 4
_LEAST = 1 << 16


def open_parts(path: str | os.PathLike[str], **how: Any) -> Parts:
    """Open a data set in parts, with the FeatureBuilder that made its features.

    Parameters
    ----------
    path : path
        The folder.
    **how : keyword arguments
        Those of :class:`~rankwise.Parts`.

    Returns
    -------
    parts : Parts
        The data set.

    Raises
    ------
    FileFormatError
        If its features are not those of its builder.
    """
    parts = Parts(path, **how)
    index = parts._files.index
    if "features" in index.metadata:
        builder = read_builder(index)
        if builder.feature_names_out_ != parts.feature_names:
            raise FileFormatError(f"{index.path} is damaged: its features are not those of its FeatureBuilder")
        parts._files.built_by = builder
    return parts


def within(parts: Parts, memory: int, executor: str = "threads", workers: int | None = None) -> Parts:
    """The same queries, with passes that keep to an amount of memory: fewer threads, and less between passes.

    Parameters
    ----------
    parts : Parts
        The data set.
    memory : int
        The bytes that passes may take.
    executor : {"threads", "processes"}, default="threads"
        What computes them.
    workers : int, default=None
        The number of threads or processes; None is the number of cores, and fewer where threads lack memory.

    Returns
    -------
    Parts
        The data set.
    """
    if workers is None and executor == "threads":
        chunk = 8 * parts.n_features * min(parallel.CHUNK, max(1, parts.n_documents))
        workers = max(1, min(parallel.threads(None), memory // (_OF_A_THREAD * chunk)))
    return parts.on(executor, workers, memory_limit=max(1, memory // _KEPT))


def open_converted(
    path: str | os.PathLike[str],
    options: Mapping[str, Any],
    memory: int,
    why: str,
    *,
    held_out: tuple[float, int] | None = None,
    builder: "FeatureBuilder | None" = None,
) -> Parts:
    """Open the data set in parts of a file, which is converted if that was not done before.

    A line on standard error says so, and how to remove the parts.

    Parameters
    ----------
    path : path
        A file that :func:`~rankwise.io.write_parts` reads, or a table with columns of any kind.
    options : mapping
        How the file is read, as for :func:`~rankwise.features.judged.read_or_open`.
    memory : int
        The bytes that the conversion may take.
    why : str
        What the line says of the size of the file.
    held_out : tuple of (float, int), default=None
        The share of queries that :func:`rankwise.split` will hold out, and its seed: of a table of words, features are
        learned from the others alone. None learns from all.
    builder : FeatureBuilder, default=None
        A fitted builder that makes the features, as for a second table.

    Returns
    -------
    parts : Parts
        The data set.

    Raises
    ------
    RankwiseError
        If the file cannot be read, or the cache folder cannot be written to.
    """
    name, place = path_of(path), user_cache() / FOLDER
    known = {key: value for key, value in with_roles(options).items() if key != "columns"}
    makes = builder.digest_ if builder is not None else repr(held_out)
    plain, built = (place / _name(name, known, one) for one in ("", makes))
    for folder in (plain, built) if builder is None else (built,):
        if (folder / NAME).is_file():
            with suppress(FileFormatError, OSError):
                parts = open_parts(folder)
                os.utime(folder)
                _say(f"{name} {why}: the parts of an earlier run are used, in {folder} (rm -r {folder} removes them)")
                return parts
            shutil.rmtree(folder, ignore_errors=True)  # damaged
    try:
        with refusing(place):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(place)
        _refuse_list(name, why)
        together = max(_LEAST, memory // _TOGETHER)
        if builder is None and not _needs_builder(name, known, first=True):
            _say_converting(name, why, plain)
            try:
                given = {option: value for option, value in known.items() if option in _OF_PARTS}
                dtype = dtype_in_memory(name, known)
                with _unless_there(plain):
                    write_parts(name, plain, dtype=dtype, memory=together, **given)
                return open_parts(plain)
            except (DataError, FileFormatError):
                if kind_of(name) != "table" or not _needs_builder(name, known):
                    raise
        _say_converting(name, why, built)
        count = None
        if builder is None:
            builder = new_builder(known)
            count = learn_from_sample(builder, name, _learned(held_out), 0 if held_out is None else held_out[1])
        else:
            builder = with_options(builder, options)
        missing = known.get("missing", "error")
        with _unless_there(built):
            write_built_parts(builder, name, built, missing=missing, memory=together, n_queries=count)
        return open_parts(built)
    except RankwiseError as error:
        if str(place) not in str(error):
            raise
        raise RankwiseError(
            f"{name} {why}, and cannot be converted to parts: {error}; make room, or let RANKWISE_CACHE_DIR name "
            f"another folder"
        ) from error


class _unless_there:  # noqa: N801  used as a verb
    """Leave it at the folder of another process that has converted the same file in the meantime."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        done = isinstance(error, RankwiseError) and not isinstance(error, (DataError, FileFormatError))
        return done and (self._folder / NAME).is_file()


def _learned(held_out: tuple[float, int] | None) -> Learned:
    """Which queries may be learned from: those that ``split`` does not hold out."""

    def of(count: int) -> Any:
        every = np.arange(count)
        if held_out is None or not held_out[0]:
            return every
        share, seed = held_out
        numbered = Queries.from_arrays(every[:, None].astype(np.float64), None, group=[1] * count)
        return split(numbered, (1 - share, share), random_state=seed)[0].X[:, 0].astype(np.int64)

    return of


def _needs_builder(name: str, options: Mapping[str, Any], first: bool = False) -> bool:
    """Whether a column of a table, or of its ``first`` rows, has to be made a feature, or is said to be no number."""
    if kind_of(name) != "table":
        return False
    if any(kind != "number" for kind in options.get("kinds", {}).values()):
        return True
    for table in iter_columns(name):
        if not plain_numbers(table, options):
            return True
        if first:
            return False
    return False


def _name(path: str, options: Mapping[str, Any], makes: str) -> str:
    """The folder of a file that is read in this way."""
    status = os.stat(path)
    about = os.path.realpath(path), status.st_size, status.st_mtime_ns
    digest = hashlib.sha256(repr((FORMAT, __version__, about, sorted(options.items()), makes)).encode()).hexdigest()
    stem = "".join(letter if letter.isalnum() else "-" for letter in os.path.basename(path))
    return f"{stem.encode()[:60].decode('utf-8', 'ignore')}-{digest[:16]}"


def _remove_old(place: Path) -> None:
    """Remove what killed conversions have left, and the data sets that nobody has opened for a month."""
    remove_left_folders(place, "*")
    for other in place.iterdir():
        with suppress(OSError):
            if not other.name.startswith(".") and time.time() - other.stat().st_mtime > _MONTH:
                shutil.rmtree(other, ignore_errors=True)


def _refuse_list(name: str, why: str) -> None:
    """Raise an error for rows in one JSON list, which is a single value."""
    if kind_of(name) == "table" and not is_arrow(name):
        with open_stream(name) as stream:
            if stream.kind == "records" and stream.head.lstrip()[:1] == b"[":
                raise FileFormatError(
                    f"{name} {why}, and one JSON list is read as a whole: write each object on a line of its own"
                )


def _say_converting(name: str, why: str, folder: Path) -> None:
    _say(f"{name} {why}: it is converted to parts, which later runs use, in {folder} (rm -r {folder} removes them)")


def _say(sentence: str) -> None:
    print(f"rankwise: {sentence}", file=sys.stderr)
