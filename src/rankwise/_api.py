"""The door to whatever was saved: one function opens every rankwise file."""

import os
from collections.abc import Callable
from typing import Any

from rankwise._errors import FileFormatError
from rankwise._store import Store, open_store


def _queries(store: Store) -> Any:
    from rankwise.data.stored import read_queries

    return read_queries(store)


def _ranker(store: Store) -> Any:
    from rankwise.rankers._stored import read_ranker

    return read_ranker(store)


# kind of file -> what reads it; imported when a file of that kind is opened
_READERS: dict[str, Callable[[Store], Any]] = {"queries": _queries, "ranker": _ranker}


def load(path: str | os.PathLike[str]) -> Any:
    """What was saved under ``path``: a ranker, or :class:`~rankwise.Queries` with ``X`` mapped into memory.

    Files hold numbers and texts, no code, and everything in them is checked before it is used, so that a stranger's
    file can be opened. A file that is damaged, cut short, of a newer format or no rankwise file is refused in one
    sentence.

    Examples
    --------
    >>> queries.save("train.rankwise")  # doctest: +SKIP
    >>> load("train.rankwise")  # doctest: +SKIP
    Queries(106 queries, 16,140 documents, 45 features, labels 0 to 2)
    """
    store = open_store(path)
    reader = _READERS.get(store.kind)
    if reader is None:
        known = ", ".join(sorted(_READERS))
        raise FileFormatError(
            f"{store.path} holds {store.kind!r:.40}, which this version does not know: it reads {known}"
        )
    return reader(store)
