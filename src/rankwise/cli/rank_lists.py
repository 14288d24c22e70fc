"""Lists of a file block by block, their features in the order of a ranker, and their scores."""

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, FileFormatError
from rankwise.cli import reading
from rankwise.data.anyfile import kind_of
from rankwise.data.letor.read import iter_letor, read_letor
from rankwise.data.sources import ByteStream, peeked
from rankwise.data.tabular.frames import is_table, iter_table
from rankwise.data.tabular.rows import Roles

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.rankers._base import Ranker

# Documents a block: some megabytes of features, enough to keep threads busy and few enough to stay in a cache.
_ROWS = 1 << 14
_SHOWN = 5  # names that a sentence can carry
_IDS = re.compile(rb"(?:^|\s)(\d+):")

OnRead = Callable[[int], object]


class Ranked(NamedTuple):
    """Lists, the score of every document, and the number of documents that came before."""

    queries: "Queries"
    scores: NDArray[np.float64]
    before: int


@dataclass(frozen=True)
class Asked:
    """What is ranked, by what, and how it is read."""

    ranker: "Ranker"
    model: Path
    data: Path
    missing: Any
    zero_based: Any
    features: int | None
    unsorted: bool
    columns: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.ranker._names()


def ranked_blocks(asked: Asked, on_read: OnRead) -> Iterator[Ranked]:
    """Blocks of whole queries with their scores."""
    before = 0
    for queries in _one_ahead(_lists(asked, on_read)):
        _check_features(asked, queries)
        yield Ranked(queries, asked.ranker.predict(queries), before)
        before += queries.n_documents


def _one_ahead(blocks: Iterator["Queries"]) -> Iterator["Queries"]:
    """The same blocks, each read on a thread of its own while the one before is ranked and written."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def _lists(asked: Asked, on_read: OnRead) -> Iterator["Queries"]:
    data = asked.data
    if data.is_file() and not is_table(data) and kind_of(data) == "store":
        yield from _stored(data, on_read)
    elif is_table(data) and not reading.is_csv(data):
        yield from _table(asked, data, on_read)
    else:
        with peeked(data, on_read) as source:
            if source.kind == "csv":
                yield from _table(asked, source, on_read)
            else:
                yield from _text(asked, source)


def _stored(data: Path, on_read: OnRead) -> Iterator["Queries"]:
    from rankwise.data.stored import load_queries

    queries = load_queries(data)
    size, first = os.path.getsize(data), 0
    while first < len(queries):
        last = max(first + 1, int(np.searchsorted(queries.start, queries.start[first] + _ROWS, side="right")) - 1)
        yield queries[first:last]
        on_read(size * (last - first) // len(queries))
        first = last


def _table(asked: Asked, source: Path | ByteStream, on_read: OnRead) -> Iterator["Queries"]:
    """By the names that the ranker knows, or else every column that has no other role."""
    columns = {**asked.columns, "ignore": () if asked.names else asked.columns["ignore"]}
    rows = None if asked.unsorted else _ROWS
    roles = Roles(**columns, features=asked.names, judged=False, learned_by=f"{asked.ranker.name} ({asked.model})")
    try:
        yield from iter_table(source, roles, rows=rows, missing=asked.missing, on_read=on_read)
    except DataError as error:
        raise DataError(str(error).replace("read the file as a whole", "give --unsorted")) from error


def _text(asked: Asked, source: ByteStream) -> Iterator["Queries"]:
    """A text says nothing about features that are 0 in all of its lines, so its beginning is looked at."""
    width = asked.ranker.n_features_in_
    _check_text(asked, source, width)
    how = {"missing": asked.missing, "unjudged": "zero", "zero_based": asked.zero_based, "n_features": width}
    if asked.unsorted:
        yield read_letor(source, **how)
        return
    try:
        yield from iter_letor(source, rows=_ROWS, **how)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace("read_letor takes", "--unsorted takes")) from error


def _check_text(asked: Asked, source: ByteStream, width: int) -> None:
    if asked.features is not None and asked.features != width:
        raise DataError(f"{asked.ranker.name} has learned from {width} features: found --features {asked.features}")
    lines = source.head.split(b"\n")
    ids = [int(found) for line in lines[: max(1, len(lines) - 1)] for found in _IDS.findall(line.partition(b"#")[0])]
    if not ids:
        return
    base = int(asked.zero_based is False or (asked.zero_based == "auto" and 0 not in ids))
    found = max(ids) - base + 1
    if found > width:
        raise DataError(
            f"{source.name} has {found} features, and {asked.ranker.name} has learned from {width}: "
            f"{_span(width + base, max(ids))} {'is' if found == width + 1 else 'are'} unknown to it"
        )
    if found < width and asked.features is None:
        raise DataError(
            f"{source.name} has {found} features in its first lines, and {asked.ranker.name} has learned from {width}: "
            f"{_span(max(ids) + 1, width + base - 1)} {'is' if found == width - 1 else 'are'} missing (if they are 0 "
            f"there and left out, give --features {width})"
        )


def _span(first: int, last: int) -> str:
    return f"feature {first}" if first == last else f"features {first} to {last}"


def _check_features(asked: Asked, queries: "Queries") -> None:
    width, known = asked.ranker.n_features_in_, asked.names
    if known is not None and queries.feature_names is not None:
        lacking = [name for name in known if name not in queries.feature_names]
        if lacking:
            more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
            raise DataError(
                f"{asked.data} lacks {', '.join(map(repr, lacking[:_SHOWN]))}{more}, which {asked.ranker.name} has "
                "learned from"
            )
    elif queries.n_features != width:
        names = "" if queries.feature_names is None else f" ({', '.join(queries.feature_names[:_SHOWN])} ...)"
        raise DataError(
            f"{asked.data} has {queries.n_features} features{names}, and {asked.ranker.name} has learned from {width}"
        )
