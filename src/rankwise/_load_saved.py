"""`load` opens whatever was saved, queries or rankers, and imports only the reader of that kind of file."""

import os
from collections.abc import Callable
from typing import Any

from rankwise._files import path_of
from rankwise._store import Store, read_store
from rankwise.errors import FileFormatError, RankwiseError


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


def load(path: str | os.PathLike[str], *, mmap: bool = True, memory: int | str | None = None, **options: Any) -> Any:
    """Load what was saved: a ranker, :class:`~rankwise.Queries` with ``X`` mapped into memory, or
    :class:`~rankwise.Parts`. With ``memory=``, load judged queries from a file of any format and size, too.

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

    memory : int or str, default=None
        The bytes that judged queries, and a fit on them, may take: a number, or a text such as "2GB". LETOR text, CSV
        and JSON lines (gzipped or not), Parquet and Arrow files are read as well then. One that would take more, which
        is estimated from some of its bytes, is converted to parts in the cache folder of the user at its first use; a
        line on standard error says where, and how to remove them. Passes over these parts, and over those of a folder,
        keep to the limit. What Python, the libraries and compiled code take, about 200 MB, comes on top.
    **options : keyword arguments
        With ``memory=``, how the file is read: ``qid``, ``label``, ``docid``, ``ignore``, ``grades``, ``missing``,
        ``unjudged``, ``zero_based``, as for :func:`~rankwise.io.write_parts`; ``kinds``, what columns are, as
        ``columns`` of :class:`~rankwise.FeatureBuilder`.

    Returns
    -------
    Ranker, Queries or Parts
        The object that was saved. With ``memory=``, ``Queries`` of a file that fits and ``Parts`` of one that does not;
        fits on both have the same bits.

    Raises
    ------
    FileFormatError
        If the file is not there, or does not hold what its format promises.

    Notes
    -----
    Features of a table with words, dates or gaps are made by a :class:`~rankwise.FeatureBuilder`, which comes with the
    queries as ``built_by``. It learns from all rows of a table that fits, and from a sample of whole queries with
    200,000 rows of one that does not. Queries that are split off later were among them: for a certificate, take queries
    from another file, or ``rankwise train``, which divides the queries before the builder learns.

    Examples
    --------
    >>> queries.save("train.rankwise")  # doctest: +SKIP
    >>> load("train.rankwise")  # doctest: +SKIP
    Queries(106 queries, 16,140 documents, 45 features, labels 0 to 2)
    """
    if os.path.isdir(path_of(path)):
        return _parts(path, memory)
    if memory is not None and not _is_saved(path):
        return _judged(path, memory, options)
    if options:
        raise RankwiseError(f"{next(iter(options))}= says how judged queries are read, and needs memory=")
    with read_store(path) as store:
        # a file of a newer version may hold a kind that this version does not know
        reader = _READERS.get(store.kind)
        if reader is None:
            known = ", ".join(sorted(_READERS))
            raise FileFormatError(
                f"{store.path} holds {store.kind!r:.40}, which this version does not know: it reads {known}"
            )
        return reader(store, mmap)


def _is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that rankwise wrote, or is not there."""
    from rankwise.io.any_file import is_store

    return not os.path.isfile(path_of(path)) or is_store(path_of(path))


def _parts(path: str | os.PathLike[str], memory: int | str | None) -> Any:
    """Open a data set in parts, with the FeatureBuilder that made its features."""
    from rankwise.features.converted import open_parts, within
    from rankwise.queries.checks import as_bytes

    parts = open_parts(path)
    return parts if memory is None else within(parts, as_bytes(memory, "memory", 1))


def _judged(path: str | os.PathLike[str], memory: int | str, options: dict[str, Any]) -> Any:
    """Judged queries of a file: in memory if they fit, otherwise in parts."""
    from rankwise.features.converted import open_converted, within
    from rankwise.features.judged import new_builder, read_or_open, with_roles
    from rankwise.features.table import RawTable
    from rankwise.io.any_file import read_any
    from rankwise.io.memory_needed import exceeds, memory_needed
    from rankwise.queries.checks import as_bytes

    most = as_bytes(memory, "memory", 1)
    known = {name: value for name, value in with_roles(options).items() if name != "kinds"}
    needed = memory_needed(path, with_roles(options))
    if needed is not None and needed > most:
        return within(open_converted(path, options, most, exceeds(needed, most)), most)
    found = read_or_open(path, options, lambda: read_any(path, **known))
    return new_builder(options).fit_transform(found) if isinstance(found, RawTable) else found
