"""`load` opens whatever was saved, queries or rankers, and imports only the reader of that kind of file."""

import os
from collections.abc import Callable
from typing import Any

from rankwise._files import path_of
from rankwise._store import Store, read_store
from rankwise.errors import FileFormatError


def _queries(store: Store, mmap: bool) -> Any:
    """Read queries; imported when a file of this kind is opened."""
    from rankwise.queries.stored import read_queries

    queries = read_queries(store, mmap)
    if "features" in store.metadata:
        queries = queries._replace(built_by=_builder(store, queries.feature_names))
    return queries


def _builder(store: Store, names: tuple[str, ...] | None) -> Any:
    """The FeatureBuilder that made features of these names."""
    from rankwise.features.state import read_builder

    builder = read_builder(store)
    if builder.feature_names_out_ != names:
        raise FileFormatError(f"{store.path} is damaged: its features are not those of its FeatureBuilder")
    return builder


def _ranker(store: Store, mmap: bool) -> Any:
    """Read a ranker; imported when a file of this kind is opened."""
    from rankwise.rankers._record import read_ranker

    return read_ranker(store)


# kind of file -> what reads it; imported when a file of that kind is opened
_READERS: dict[str, Callable[[Store, bool], Any]] = {"queries": _queries, "ranker": _ranker}


def load(path: str | os.PathLike[str], *, mmap: bool = True) -> Any:
    """Load what was saved: a ranker, :class:`~rankwise.Queries` with ``X`` mapped into memory, or
    :class:`~rankwise.Parts`.

    Files hold numbers and texts, no code, and everything in them is checked before it is used, so a file from an
    untrusted source can be opened. A file that is damaged, truncated, of a newer format or not from rankwise raises a
    clear error.

    Parameters
    ----------
    path : str or path-like
        The file, or the folder of a data set in parts.
    mmap : bool, default=True
        Whether ``X`` of queries stays in the file and is read as it is used. The file then must not be truncated or
        written to in place while the queries are in use (by ``cp``, ``rsync --inplace``, a synchronized folder ...):
        the operating system ends a process that reads what is no longer there (SIGBUS). Saving over it with rankwise,
        renaming another file onto it and deleting it are safe: the queries keep the old file. False reads ``X`` into
        memory, after which the file is no longer needed. Rankers are always read into memory.

    Returns
    -------
    Ranker, Queries or Parts
        The object that was saved.

    Raises
    ------
    FileFormatError
        If the file is not there, or does not hold what its format promises.

    Examples
    --------
    >>> queries.save("train.rankwise")  # doctest: +SKIP
    >>> load("train.rankwise")  # doctest: +SKIP
    Queries(106 queries, 16,140 documents, 45 features, labels 0 to 2)
    """
    if os.path.isdir(path_of(path)):
        return _parts(path)
    with read_store(path) as store:
        # a file of a newer version may hold a kind that this version does not know
        reader = _READERS.get(store.kind)
        if reader is None:
            known = ", ".join(sorted(_READERS))
            raise FileFormatError(
                f"{store.path} holds {store.kind!r:.40}, which this version does not know: it reads {known}"
            )
        return reader(store, mmap)


def _parts(path: str | os.PathLike[str]) -> Any:
    """Open a data set in parts, with the FeatureBuilder that made its features."""
    from rankwise.queries.parts.parts import Parts

    parts = Parts(path)
    index = parts._files.index
    if "features" in index.metadata:
        parts._files.built_by = _builder(index, parts.feature_names)
    return parts
