"""Rankings of queries in memory and in parts, scores and measures by passes, and the checkpoint of a fit."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import Table
from rankwise._version import __version__
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker

Vector = NDArray[np.float64]


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
def recorded_passes(
    ranker: "Ranker", checkpoint: "str | os.PathLike[str]", train: QuerySource, held: QuerySource | None
) -> Iterator[None]:
    """Record the passes of a fit, and take those that an earlier run recorded.

    Parameters
    ----------
    ranker : Ranker
        The ranker.
    checkpoint : path
        The folder.
    train : QuerySource
        What is learned from.
    held : QuerySource or None
        What is used for model selection.

    Yields
    ------
    None
        Nothing.
    """
    from rankwise.queries.passes.journal import Journal
    from rankwise.rankers._record import IDLE, Opaque, encode_parameters

    given = {
        name: type(value.value).__name__ if isinstance(value, Opaque) else value
        for name, value in encode_parameters(ranker).items()
        if name not in IDLE
    }
    about = {
        "ranker": ranker.name,
        "parameters": json.dumps(given, sort_keys=True, default=repr),
        "data": train.identity,
        "validation": "none" if held is None else held.identity,
        # other versions may have other bits
        "versions": f"rankwise {__version__}, numpy {version('numpy')}, numba {version('numba')}",
    }
    journal = Journal(checkpoint, about)
    recorded = [one for one in (train, held) if one is not None]
    for one in recorded:
        one.record_in(journal)
    try:
        yield
    finally:
        for one in recorded:
            one.record_in(None)
        journal.close()
