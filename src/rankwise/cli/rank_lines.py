"""Ranked documents as lines of text, made by compiled code: reading the next block goes on meanwhile."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.data.texts import Texts

if TYPE_CHECKING:
    from rankwise.cli.rank_lists import Ranked

Places = NDArray[np.int64]


class Placed(NamedTuple):
    """Documents as ranked, query after query: their rows in the block, whose they are, and their places from 0."""

    rows: Places
    query: Places
    place: Places


def placed(block: "Ranked", top: int | None) -> Placed:
    """The documents of a block in the order of their scores, equal ones as they came."""
    queries, scores, _ = block
    owner = queries.query_of_row
    rows = np.lexsort((-scores, owner))  # stable
    place = np.arange(len(rows)) - np.repeat(queries.start[:-1], queries.sizes)
    found = Placed(rows, owner[rows], place)
    return found if top is None else Placed(*(part[place < top] for part in found))


def numbers_of(block: "Ranked", by_place: bool) -> Places:
    """What documents without ids are called: their row in the input, or their place in the list; both from 0."""
    queries, scores, before = block
    if not by_place:
        return np.arange(len(scores)) + before
    inside = np.empty(len(scores), dtype=np.int64)
    inside[queries.rows] = np.arange(len(scores)) - np.repeat(queries.start[:-1], queries.sizes)
    return inside


def lines(block: "Ranked", top: int | None, behind: tuple[str, str, str, str], by_place: bool = False) -> str:
    """Query, document, rank and score of every document, with a text behind each."""
    from rankwise._kernels.ranked_lines import put_lines

    queries, scores, _ = block
    rows, query, place = placed(block, top)
    ids, no_ids = Texts.of(queries.names()), Texts._trusted(np.empty(0, np.uint8), np.empty(0, np.int64))
    documents = no_ids if queries.docid is None else queries.docid
    called = rows if queries.docid is not None else numbers_of(block, by_place)[rows]
    text, length = score_texts(scores)
    marks = Texts.of(behind)
    out = put_lines(
        query, ids.data, ids.offset, called, documents.data, documents.offset, place + 1, text, length, rows,
        marks.data, marks.offset,
    )  # fmt: skip
    return bytes(out).decode("utf-8", "surrogateescape")


def score_lines(scores: NDArray[np.float64]) -> str:
    """One score a line, in the order of the rows."""
    from rankwise._kernels.ranked_lines import put_column

    return bytes(put_column(*score_texts(scores))).decode("ascii")


def score_texts(scores: NDArray[np.float64]) -> tuple[NDArray[np.uint8], Places]:
    """``repr`` of every score: a row of letters, and how many of them count."""
    from rankwise._kernels.ranked_lines import put_scores
    from rankwise._kernels.shortest import LONGEST

    text, length = np.empty((len(scores), LONGEST), np.uint8), np.empty(len(scores), np.int64)
    put_scores(scores, text, length)
    for row in np.flatnonzero(length < 0).tolist():
        letters = repr(float(scores[row])).encode()
        text[row, : len(letters)] = np.frombuffer(letters, np.uint8)
        length[row] = len(letters)
    return text, length
