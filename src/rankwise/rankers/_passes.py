"""Rankings of queries in memory and in parts, scores and measures by passes, and the checkpoint of a fit."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import Table
from rankwise._version import __version__
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.chunks import Job
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ScoresOfChunk(Job):
    """The scores of the documents of a chunk."""

    ranker: "Ranker"

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> Vector:
        return self.ranker.predict(block)


@dataclass(frozen=True)
class MeasuredOfChunk(Job):
    """The measure of a ranker on every query of a chunk."""

    ranker: "Ranker"
    measure: Measure
    ties: Ties

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> Vector:
        lists = ScoredLists(self.ranker.predict(block), block.labels(), block.start)
        return np.asarray(measure_lists([self.measure], lists, ties=self.ties, n_jobs=1)[0])


def measured(ranker: "Ranker", queries: ChunkedQueries, measure: Measure, ties: Ties = "expected") -> Vector:
    """The measure of a ranker on every query; NaN where it is 0/0."""
    return np.concatenate([np.empty(0), *queries.map(MeasuredOfChunk(ranker, measure, ties))])


def rank_by_scores(queries: Queries, scores: Vector) -> Table:
    """The documents of every query by falling scores, ties in input order."""
    owner = queries.query_of_row
    order = np.lexsort((np.arange(len(scores)), -scores, owner))
    place = np.arange(len(order)) - np.repeat(queries.start[:-1], queries.sizes) + 1
    names = queries.names()
    rows: Any = order if queries.docid is None else list(queries.docid[order])
    qid = [names[number] for number in owner[order].tolist()]
    return Table({"qid": qid, "docid": rows, "rank": place, "score": scores[order]})


def rank_parts(ranker: "Ranker", parts: Parts) -> Table:
    """The ranking of a data set in parts, whose rows are numbered through."""
    columns: dict[str, list[Any]] = {name: [] for name in ("qid", "docid", "rank", "score")}
    for first, last in parts.chunks():
        block = parts.block(first, last)
        table = ranker.rank(block if block.qid is not None else block._replace(qid=np.arange(first, last)))
        before = int(parts.start[first]) if block.docid is None else 0
        for name, column in columns.items():
            column.extend((table[name] + before if before and name == "docid" else table[name]).tolist())
    return Table({**columns, "rank": np.array(columns["rank"], np.int64), "score": np.array(columns["score"], float)})


@contextmanager
def recorded_passes(ranker: "Ranker", checkpoint: "str | os.PathLike[str]", train: Any, held: Any) -> Iterator[None]:
    """Record the passes of a fit, and take those that an earlier run recorded.

    Parameters
    ----------
    ranker : Ranker
        The ranker.
    checkpoint : path
        The folder.
    train, held : Queries, ChunkedQueries or None
        What is learned from, and what judges.

    Yields
    ------
    None
        Nothing.
    """
    from rankwise._codec import Opaque, encode_parameters
    from rankwise.queries.passes.journal import Journal
    from rankwise.rankers._record import IDLE

    given = {
        name: type(value.value).__name__ if isinstance(value, Opaque) else value
        for name, value in encode_parameters(ranker).items()
        if name not in IDLE
    }
    about = {
        "ranker": ranker.name,
        "parameters": json.dumps(given, sort_keys=True, default=repr),
        "data": _identity(train),
        "validation": _identity(held),
        # other versions may have other bits
        "versions": f"rankwise {__version__}, numpy {version('numpy')}, numba {version('numba')}",
    }
    journal = Journal(checkpoint, about)
    recorded = [one for one in (train, held) if isinstance(one, ChunkedQueries)]
    for one in recorded:
        one.account.journal = journal
    try:
        yield
    finally:
        for one in recorded:
            one.account.journal = None
        journal.close()


def _identity(queries: "Queries | ChunkedQueries | None") -> str:
    """What tells a data set from others, in a few words."""
    if queries is None:
        return "none"
    if isinstance(queries, ChunkedQueries):
        return f"{queries.source!r} {queries.source.identity}"
    digest = hashlib.blake2b(digest_size=16)
    for one in (queries.X, queries.y, queries.start, queries.weight, queries.document_weight):
        digest.update(b"-" if one is None else np.ascontiguousarray(one).data)
    return f"{queries!r} {digest.hexdigest()}"
