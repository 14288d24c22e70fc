"""Parity of an engine and the ranker on a sample: scores, order of pairs, and measure."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import Table
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures._base import Measure, Vector
from rankwise.queries.queries import Queries

_BLOCK = 1 << 22  # pairs looked at together


@dataclass(frozen=True)
class Parity:
    """Scores of an engine against those of the ranker, on the documents of a sample.

    Attributes
    ----------
    arithmetic : str
        How the engine's scores were computed.
    documents : int
        Documents of the sample.
    lists : int
        Queries of the sample.
    largest_difference : float
        The largest abs(engine's score - ranker's score), apart from a constant that the file cannot hold.
    largest_score : float
        The largest abs(ranker's score), for comparison.
    pairs : int
        Pairs of documents of one query that the ranker orders.
    inverted : int
        Of these, the pairs that the engine orders the other way.
    inverted_beyond_float32 : int
        Of these, the pairs whose scores differ when rounded to float32. An engine that adds in float32 rounds at every
        feature, and so may invert pairs that are a few units of the last place apart.
    widest_inversion : float
        The largest difference of the ranker's scores in an inverted pair; 0 where there is none.
    tied : int
        Pairs that the ranker orders and to which the engine gives one score.
    negative : int
        Documents whose score is below 0 in the engine.
    measure : str or None
        The ranker's measure; None where it is undefined on the sample.
    ranker : float or None
        The mean of the measure for the ranker.
    engine : float or None
        The mean of the measure for the engine.
    largest_change : float or None
        The largest change of the measure on any query.
    """

    arithmetic: str
    documents: int
    lists: int
    largest_difference: float
    largest_score: float
    pairs: int
    inverted: int
    inverted_beyond_float32: int
    widest_inversion: float
    tied: int
    negative: int
    measure: str | None = None
    ranker: float | None = None
    engine: float | None = None
    largest_change: float | None = None

    @property
    def same_order(self) -> bool:
        """Whether no pair is ordered the other way, except for scores that single precision cannot tell apart."""
        return self.inverted_beyond_float32 == 0

    def table(self) -> Table:
        """Convert to a table.

        Returns
        -------
        Table
            One row per number.
        """
        return Table({"what": [name.replace("_", " ") for name in self.to_dict()], "value": list(_format(self))})

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return self.table()._repr_html_()


def parity_of(
    queries: Queries, ranker: Vector, engine: Vector, measure: Measure, arithmetic: str, dropped: float = 0.0
) -> Parity:
    """Compare two scores of the same documents.

    Parameters
    ----------
    queries : Queries
        The sample.
    ranker : ndarray
        Scores of the ranker.
    engine : ndarray
        Scores of the engine.
    measure : Measure
        The measure to compare.
    arithmetic : str
        How the engine computes.
    dropped : float, default=0.0
        The constant that the engine's scores lack.

    Returns
    -------
    Parity
        The comparison.
    """
    counted, widest = np.zeros(4, dtype=np.int64), 0.0
    for query in np.flatnonzero(queries.sizes > 1).tolist():
        rows = queries.rows_of(query)
        own, gap = compare_orders(ranker[rows], engine[rows])
        counted += own
        widest = max(widest, gap)
    difference = engine - (ranker - dropped)
    found: dict[str, Any] = {}
    if queries.y is not None and len(queries):
        before, after = (evaluate(queries, scores, [measure]) for scores in (ranker, engine))
        (title,) = before.titles
        change = np.abs(after.per_query[title] - before.per_query[title])
        if not np.isnan(change).all():  # some list says something about the measure
            found = {"measure": title, "ranker": before.mean[title], "engine": after.mean[title]}
            found["largest_change"] = float(np.nanmax(change))
    pairs, inverted, beyond, tied = map(int, counted)
    return Parity(
        arithmetic=arithmetic,
        documents=queries.n_documents,
        lists=len(queries),
        largest_difference=float(np.abs(difference).max(initial=0.0)),
        largest_score=float(np.abs(ranker).max(initial=0.0)),
        pairs=pairs,
        inverted=inverted,
        inverted_beyond_float32=beyond,
        widest_inversion=widest,
        tied=tied,
        negative=int((engine < 0).sum()),
        **found,
    )


def compare_orders(ranker: Vector, engine: Vector) -> tuple[NDArray[np.int64], float]:
    """Compare the orders of the documents of one query.

    Parameters
    ----------
    ranker : ndarray
        Scores of the ranker.
    engine : ndarray
        Scores of the engine.

    Returns
    -------
    counts : ndarray of int64, shape (4,)
        Pairs ordered, inverted, inverted beyond float32, and tied.
    widest : float
        The widest gap that was inverted.
    """
    # sorted by the ranker, so only pairs above the diagonal have to be looked at
    order = np.argsort(-ranker, kind="stable")
    own, other = ranker[order], engine[order]
    with np.errstate(over="ignore"):
        rounded = own.astype(np.float32)
    counted, widest = np.zeros(4, dtype=np.int64), 0.0
    # a query with many documents has too many pairs for one matrix
    step = max(1, _BLOCK // max(1, len(own)))
    for first in range(0, len(own), step):
        part = slice(first, first + step)
        above = own[part, None] > own[None, first:]  # sorted: who stands before `first` is not below
        against = above & (other[part, None] < other[None, first:])
        beyond = against & (rounded[part, None] != rounded[None, first:])
        tied = above & (other[part, None] == other[None, first:])
        counted += [int(np.count_nonzero(mask)) for mask in (above, against, beyond, tied)]
        for high, low in zip(*np.nonzero(against), strict=True):
            widest = max(widest, float(own[first + high] - own[first + low]))
    return counted, widest


def _format(parity: Parity) -> list[str]:
    """Every value as text: counts with separators, differences by significant digits."""
    shown = []
    for name, value in parity.to_dict().items():
        if isinstance(value, float):
            shown.append(f"{value:.3g}" if name.startswith(("largest", "widest")) else f"{value:.6f}")
        else:
            shown.append(f"{value:,}" if isinstance(value, int) else str(value if value is not None else ""))
    return shown
