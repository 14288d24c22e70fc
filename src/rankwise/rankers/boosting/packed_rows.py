"""The features of some sets in bins, four to a word, from which the package's own trees are grown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.bits import mixed
from rankwise._kernels.histograms import BINS, BLOCK, LANES, LARGEST_BLOCK, fill_words
from rankwise._kernels.thresholds import take_columns
from rankwise._kernels.trees import ZERO
from rankwise.errors import DataError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.candidates import thresholds_between

Vector = NDArray[np.float64]

# Rows whose values the thresholds divide evenly; of more, one out of each of so many stretches is taken.
_SAMPLED = 1 << 16
# Features read together, as in :mod:`~rankwise.rankers.boosting.candidates`, and rows per call into compiled code.
_TOGETHER, _CHUNK = 16, 1 << 14
# A set of categories has a bit for every code up to its largest.
_MOST_CODE = 1 << 20


@dataclass(frozen=True)
class Lanes:
    """Where the features stand in words of four bins, and what divides their values.

    Attributes
    ----------
    feature : ndarray of int64, shape (n_groups, 4)
        The feature of every lane, -1 for none. Features with a single bin have no lane.
    cut : ndarray of float64, shape (n_groups, 4, 63)
        The thresholds of every feature, or the codes of its categories; infinity where there are no more.
    facts : ndarray of int64, shape (4 n_groups, 3)
        For every lane its number of bins with that of NaN, whether it has NaN, and whether it is categorical.
    n_features : int
        Number of all features.
    """

    feature: NDArray[np.int64]
    cut: NDArray[np.float64]
    facts: NDArray[np.int64]
    n_features: int

    @classmethod
    def choose(
        cls,
        sampled: Sequence[tuple[Any, NDArray[np.int64]]],
        codes: Mapping[int, Vector],
        bins: int,
        order: NDArray[np.int64] | None,
        n_jobs: int | None,
    ) -> "Lanes":
        """Choose thresholds.

        Parameters
        ----------
        sampled : sequence of (ndarray, ndarray)
            Features and the rows of them that the thresholds divide evenly: those of :func:`sampled_rows`.
        codes : mapping of int to ndarray
            The codes of every categorical feature, ascending.
        bins : int
            The largest number of bins of a feature, with that of NaN.
        order : ndarray of int64, or None
            The order in which features fill groups of four; None is that of the features.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        Lanes
            The lanes; whether features have NaN is known of the sampled rows alone.
        """
        tables, holes = _thresholds(sampled, bins, n_jobs)
        for number, own in codes.items():
            tables[number] = own
        many = [len(table) - (number in codes) + holes[number] for number, table in enumerate(tables)]
        wanted = np.arange(len(tables)) if order is None else order
        kept = [number for number in wanted.tolist() if many[number] > 0]
        feature = np.full((-(-len(kept) // LANES), LANES), -1, np.int64)
        feature.flat[: len(kept)] = kept
        cut = np.full((*feature.shape, BINS - 1), np.inf)
        facts = np.zeros((feature.size, 3), np.int64)
        for lane, number in enumerate(kept):
            table, is_code = tables[number], number in codes
            cut.reshape(feature.size, BINS - 1)[lane, : len(table)] = table
            facts[lane] = len(table) + (1 if is_code else 2), holes[number], is_code
        return Lanes(feature, cut, facts, len(tables))

    @property
    def splittable(self) -> bool:
        """Whether a feature has two bins."""
        return len(self.feature) > 0


@dataclass(frozen=True)
class PackedRows(Lanes):
    """Rows in bins, set after set and query after query.

    Attributes
    ----------
    words : ndarray of uint32, shape (n_blocks, n_groups, block)
        Four bins in a word, as :mod:`rankwise._kernels.histograms` describes them.
    n_documents : int
        Number of rows.
    """

    words: NDArray[np.uint32]
    n_documents: int

    @classmethod
    def of(
        cls,
        sets: Sequence[Queries],
        categorical: Sequence[int] = (),
        bins: int = BINS,
        order: NDArray[np.int64] | None = None,
        block: int = BLOCK,
        n_jobs: int | None = None,
    ) -> Self:
        """Choose thresholds and find the bins.

        Parameters
        ----------
        sets : sequence of Queries
            The sets.
        categorical : sequence of int, default=()
            Features whose values are codes of categories.
        bins : int, default=64
            The largest number of bins of a feature, with that of NaN.
        order : ndarray of int64, default=None
            The order in which features fill groups of four; None is that of the features.
        block : int, default=4096
            Rows of a block, at most 32,768.
        n_jobs : int, default=None
            Number of threads; None uses all cores.

        Returns
        -------
        PackedRows
            The rows.
        """
        ends = np.cumsum([one.n_documents for one in sets])
        place = sampled_rows(int(ends[-1]))
        pieces = np.split(place, np.searchsorted(place, ends[:-1]))
        sampled = [
            (np.asarray(one.X), one.rows[piece - (end - one.n_documents)])
            for one, piece, end in zip(sets, pieces, ends.tolist(), strict=True)
        ]
        codes = {number: checked_codes(number, [distinct_codes(one, number) for one in sets]) for number in categorical}
        return cls.filled(Lanes.choose(sampled, codes, bins, order, n_jobs), sets, int(ends[-1]), block, n_jobs)

    @classmethod
    def filled(cls, lanes: Lanes, sets: Iterable[Queries], n_documents: int, block: int, n_jobs: int | None) -> Self:
        """The rows of these sets, which have so many documents together; sets are looked at one after the other."""
        size = max(min(block, n_documents, LARGEST_BLOCK), 1)
        words = np.zeros((-(-n_documents // size), len(lanes.feature), size), np.uint32)
        found = cls(lanes.feature, lanes.cut, lanes.facts.copy(), lanes.n_features, words, n_documents)
        offset = 0
        for one in sets:
            found._fill(one, offset, n_jobs)
            offset += one.n_documents
        return found

    def _fill(self, queries: Queries, offset: int, n_jobs: int | None) -> None:
        """Find the bins of a set, whose first row is row ``offset``, and which features have NaN."""
        X, rows = np.asarray(queries.X), queries.scattered_rows
        rows = np.empty(0, np.int64) if rows is None else rows
        codes = self.facts[:, 2].reshape(self.feature.shape)

        def task(first: int, last: int) -> NDArray[np.uint8]:
            holes = np.zeros(self.feature.shape, np.uint8)
            fill_words(X, rows, first, last, offset, self.feature, self.cut, codes, ZERO, self.words, holes)
            return holes

        for holes in parallel.map_chunks(task, _chunks(queries.n_documents, _CHUNK), n_jobs):
            self.facts[:, 1] |= holes.ravel()


def sampled_rows(n_documents: int) -> NDArray[np.int64]:
    """The rows whose values thresholds divide evenly, ascending; they do not depend on how rows are divided."""
    count = min(n_documents, _SAMPLED)
    place = np.arange(count, dtype=np.int64)
    if count == n_documents:
        return place
    with np.errstate(over="ignore"):
        chance = (mixed((place + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)) * 2.0**-53
    found: NDArray[np.int64] = np.minimum(((place + chance) * (n_documents / count)).astype(np.int64), n_documents - 1)
    return found


def _thresholds(
    sampled: Sequence[tuple[Any, NDArray[np.int64]]], bins: int, n_jobs: int | None
) -> tuple[list[Vector], NDArray[np.int64]]:
    """Thresholds of every feature, and whether it has NaN, from some rows of several arrays."""
    count = sum(len(rows) for _, rows in sampled)

    def on_block(first: int, last: int) -> list[tuple[Vector, bool]]:
        columns = np.empty((last - first, count))
        at = 0
        for X, rows in sampled:
            part = np.empty((last - first, len(rows)))
            take_columns(X, rows, first, last, part)
            columns[:, at : at + len(rows)] = part
            at += len(rows)
        columns[np.abs(columns) <= ZERO] = 0.0
        known = [column[~np.isnan(column)] for column in columns]
        return [(thresholds_between(values, bins - 2), len(values) < count) for values in known]

    blocks = _chunks(sampled[0][0].shape[1], _TOGETHER)
    found = [one for block in parallel.map_chunks(on_block, blocks, n_jobs) for one in block]
    return [cuts for cuts, _ in found], np.array([holes for _, holes in found], np.int64)


def distinct_codes(queries: Queries, number: int) -> Vector:
    """The codes of a categorical feature, ascending, with NaN where there is some."""
    return np.unique(np.asarray(queries.X[:, number], np.float64))


def refuse_odd_codes(number: int, codes: Vector, where: str = "") -> None:
    """Raise an error for values of a categorical feature that are no codes; NaN is none of these."""
    odd = ~np.isnan(codes) & ((codes < 0) | (codes != np.rint(codes)) | (codes >= 2**31 - 1))
    if odd.any():
        place = int(np.argmax(odd))
        raise DataError(
            f"categories of feature {number} must be non-negative integers, got {codes[place]:g}{where.format(place)}"
        )


def checked_codes(number: int, found: Sequence[Vector]) -> Vector:
    """The codes of a categorical feature from those of several sets, or an error if there are too many."""
    codes = np.unique(np.concatenate(found))
    codes = codes[~np.isnan(codes)]
    if len(codes) > BINS - 1:
        raise DataError(
            f"feature {number} has {len(codes)} categories, and engine='symmetric' splits at most {BINS - 1}: pass "
            "engine='lightgbm'"
        )
    if len(codes) and codes[-1] >= _MOST_CODE:
        raise DataError(
            f"categories of feature {number} must be below {_MOST_CODE:,} for engine='symmetric', got {codes[-1]:.0f}: "
            "number them from 0"
        )
    return codes


def _chunks(count: int, size: int) -> list[tuple[int, int]]:
    """Ranges of at most ``size``."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]


def with_signs(facts: NDArray[np.int64], feature: NDArray[np.int64], signs: Sequence[int]) -> NDArray[np.int64]:
    """The facts of every lane and the sign of its feature, as the kernels take them."""
    own: Any = np.asarray(signs, np.int64)[feature.ravel()] if len(signs) else np.zeros(feature.size, np.int64)
    return np.column_stack([facts, np.where(feature.ravel() >= 0, own, 0)])
