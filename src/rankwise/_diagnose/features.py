"""Diagnosis of the features: one pass over X in blocks, which also computes the keys that find equal rows.

:func:`summarize` makes the pass; the ``find_*`` functions turn its :class:`FeatureSummary` into findings.

:func:`find_correlated` finds pairs of features that are the same but for scale and offset: a correlation near 1 or -1
of features centered within each query, since a ranker compares documents of one query only. Not all pairs are computed
on all rows. One pass multiplies the centered features by ``SKETCH`` rows of random signs, which leaves ``SKETCH``
numbers per feature; features that are proportional have proportional sketches, whatever the signs. Sketches are
compared block by block, and what looks alike is computed exactly in a second pass. For n documents and d features that
takes n d SKETCH + d^2 SKETCH multiplications and memory for d SKETCH numbers, never for d^2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.findings import Finding
from rankwise._kernels import parallel
from rankwise._kernels.parallel import one_blas_thread
from rankwise._progress import progress
from rankwise._tables import Table
from rankwise.queries.checks import Floats, names_or_columns, plural
from rankwise.queries.queries import Queries

Keys = NDArray[np.uint64]

# Values per block: they and their working copies stay in the cache, and X is never copied as a whole.
_BLOCK_VALUES = 1 << 18
# Beyond these the weights, penalties and steps of a linear ranker mean different things for different features.
_WIDTH_RATIO, _LARGEST_VALUE = 1e3, 1e4


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """The result of one pass over X.

    Attributes
    ----------
    low, high, mean : ndarray of float64, shape (n_features,)
        The smallest, largest and mean value of each feature.
    zeros : ndarray of float64, shape (n_features,)
        The share of documents in which each feature is 0.
    constant : ndarray of float64, shape (n_features,)
        The share of queries (of two documents or more) in which each feature has one value.
    row_key : ndarray of uint64, shape (n_documents,)
        Equal rows have equal keys, and different rows almost never.
    column_key : ndarray of uint64, shape (n_features,)
        The same for columns.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean: NDArray[np.float64]
    zeros: NDArray[np.float64]
    constant: NDArray[np.float64]
    row_key: Keys
    column_key: Keys


def mix_bits(bits: Keys) -> Keys:
    """Spread the information of every 64-bit word over all its bits (a multiplication between two shifts)."""
    spread = bits ^ (bits >> np.uint64(32))
    spread *= np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as in Fibonacci hashing
    spread ^= spread >> np.uint64(29)
    return spread


def odd_words(first: int, last: int) -> Keys:
    """The pseudo-random odd multipliers number first..last-1."""
    return mix_bits(mix_bits(np.arange(first + 1, last + 1, dtype=np.uint64) << np.uint64(20))) | np.uint64(1)


def summarize(
    queries: Queries, multipliers: Keys, *, n_jobs: int | None = None, verbose: bool = False
) -> FeatureSummary:
    """Pass once over X, in blocks of whole queries on threads.

    Parameters
    ----------
    queries : Queries
        The queries.
    multipliers : ndarray of uint64, shape (n_features,)
        One word per feature. The same words on two sets make their row keys comparable.
    n_jobs : int, default=None
        The number of threads; None uses every core.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.

    Returns
    -------
    summary : FeatureSummary
        The statistics and keys.
    """
    start, n_documents, n_features = queries.start, queries.n_documents, queries.n_features
    row_key = np.zeros(n_documents, dtype=np.uint64)
    if n_documents == 0 or n_features == 0:
        nothing = np.full(n_features, np.nan)
        return FeatureSummary(
            nothing, nothing, nothing, nothing, nothing, row_key, np.zeros(n_features, dtype=np.uint64)
        )
    step = max(1, _BLOCK_VALUES // n_features)

    def look(first: int, last: int) -> _FeatureStatistics:
        sizes = np.diff(start[first : last + 1])
        heads = (start[first:last] - start[first])[sizes > 0]
        begin, end = int(start[first]), int(start[last])
        # more than one block only if this is a single long query, whose head is then the head of every block
        blocks = [(row, min(row + step, end)) for row in range(begin, end, step)]
        part = reduce(_merge, (_look(queries, *block, heads, multipliers, row_key) for block in blocks))
        bar.advance(end - begin)
        listed = sizes[sizes > 0] > 1
        constant = (part.low == part.high)[listed].sum(axis=0)
        return part._replace(low=part.low.min(axis=0), high=part.high.max(axis=0), constant=constant)

    chunks = [(first, last) for first, last in parallel.query_chunks(start, step) if start[last] > start[first]]
    with progress("looking at features", n_documents, verbose) as bar:
        parts = parallel.map_chunks(look, chunks, n_jobs)
    listed = np.count_nonzero(queries.sizes > 1)
    return FeatureSummary(
        low=np.min([part.low for part in parts], axis=0).astype(np.float64),
        high=np.max([part.high for part in parts], axis=0).astype(np.float64),
        mean=np.sum([part.total for part in parts], axis=0) / n_documents,
        zeros=np.sum([part.zeros for part in parts], axis=0) / n_documents,
        constant=np.sum([part.constant for part in parts], axis=0) / listed if listed else np.full(n_features, np.nan),
        row_key=row_key,
        column_key=np.sum([part.key for part in parts], axis=0, dtype=np.uint64),
    )


class _FeatureStatistics(NamedTuple):
    """Statistics of a few rows: low and high per query and feature, the others per feature."""

    low: Floats
    high: Floats
    total: NDArray[np.float64]
    zeros: NDArray[np.int64]
    key: Keys
    constant: NDArray[np.int64]


def _look(
    queries: Queries, begin: int, end: int, heads: NDArray[np.int64], multipliers: Keys, row_key: Keys
) -> _FeatureStatistics:
    """Statistics of places begin..end-1, where queries begin at ``heads``; writes the keys of their rows."""
    rows = slice(begin, end) if queries.is_grouped else queries.rows[begin:end]
    block = queries.X[rows]
    words = mix_bits((block.astype(np.float64) + 0.0).view(np.uint64))  # + 0.0: -0 equals 0
    row_key[rows] = np.einsum("ij,j->i", words, multipliers)
    return _FeatureStatistics(
        low=np.minimum.reduceat(block, heads, axis=0),
        high=np.maximum.reduceat(block, heads, axis=0),
        total=block.sum(axis=0, dtype=np.float64),
        zeros=(block == 0).sum(axis=0),
        key=np.einsum("i,ij->j", odd_words(begin, end), words),
        constant=np.zeros(block.shape[1], dtype=np.int64),
    )


def _merge(one: _FeatureStatistics, two: _FeatureStatistics) -> _FeatureStatistics:
    """The statistics of two parts of the same long query."""
    low, high = np.minimum(one.low, two.low), np.maximum(one.high, two.high)
    return _FeatureStatistics(low, high, one.total + two.total, one.zeros + two.zeros, one.key + two.key, one.constant)


# --------------------------------------------------------------------------------------------------- findings


def feature_table(queries: Queries, summary: FeatureSummary) -> Table:
    """A table with one row per feature."""
    return Table(
        {
            "name": names_or_columns(queries),
            "min": summary.low,
            "max": summary.high,
            "mean": summary.mean,
            "zeros": summary.zeros,
            "constant": summary.constant,
        }
    )


def equal_features(queries: Queries, summary: FeatureSummary) -> list[tuple[int, int]]:
    """(first, twin) pairs of features with equal values everywhere; constant ones are not among them."""
    return _same_columns(queries, summary.column_key, np.flatnonzero(summary.low != summary.high))


def find_in_features(queries: Queries, summary: FeatureSummary, same: list[tuple[int, int]]) -> Iterator[Finding]:
    """Findings about single features and about features that repeat each other."""
    if queries.n_features == 0 or queries.n_documents == 0:
        return
    names = names_or_columns(queries)
    everywhere = summary.low == summary.high
    within = (summary.constant == 1) & ~everywhere
    if everywhere.any():
        what = f"{plural(int(everywhere.sum()), 'feature has', 'features have')} the same value everywhere"
        yield Finding.of(
            "note", what, _names_where(names, everywhere), "they cost time and carry no information: leave them out"
        )
    if within.any():
        what = f"{plural(int(within.sum()), 'feature is', 'features are')} constant within every query"
        advice = (
            "useless to a linear ranker, which only compares documents of one query; trees and products may use them"
        )
        yield Finding.of("warning", what, _names_where(names, within), advice)
    yield from _find_scales(names, summary, ~everywhere)
    if same:
        what = f"{plural(len(same), 'feature repeats', 'features repeat')} another one"
        where = (f"{names[twin]} = {names[first]}" for first, twin in same)
        yield Finding.of(
            "note", what, where, "weights are shared between equal features in an arbitrary way: leave one out"
        )


def _find_scales(names: list[str], summary: FeatureSummary, varies: NDArray[np.bool_]) -> Iterator[Finding]:
    """Findings about features of very different or very large ranges."""
    if not varies.any():
        return
    width = np.where(varies, summary.high - summary.low, np.nan)
    narrow, wide = int(np.nanargmin(width)), int(np.nanargmax(width))
    largest = np.maximum(np.abs(summary.low), np.abs(summary.high))
    advice = (
        "linear rankers want features of similar size: rankwise.Scaler(how='standard') or, for heavy tails, how='log'"
    )
    if width[wide] > _WIDTH_RATIO * width[narrow]:
        what = (
            f"the features are not scaled: ranges go from {width[narrow]:.3g} ({names[narrow]}) "
            f"to {width[wide]:.3g} ({names[wide]})"
        )
        by_width = np.argsort(-np.where(varies, width, 0), kind="stable")
        strange = (names[place] for place in by_width if width[place] > _WIDTH_RATIO * width[narrow])
        yield Finding.of("warning", what, strange, advice)
    elif largest.max() > _LARGEST_VALUE:
        what = f"the features are not scaled: values reach {largest.max():.3g}"
        yield Finding.of("warning", what, _names_where(names, largest > _LARGEST_VALUE), advice)


def find_drift(
    name: str, other: str, names: list[str], first: FeatureSummary, low: NDArray[np.float64], high: NDArray[np.float64]
) -> Iterator[Finding]:
    """Features whose range in another split leaves the range in the first one by more than its whole width."""
    width = first.high - first.low
    beyond = np.maximum(np.maximum(first.low - low, high - first.high), 0)
    far = beyond > width  # also: anything else than the one value of a constant feature
    if far.any():
        what = f"{plural(int(far.sum()), 'feature leaves', 'features leave')} the range of {name!r} by far in {other!r}"
        widths_away = np.divide(beyond, width, out=np.full(len(width), np.inf), where=width > 0)
        where = (
            f"{names[place]} ({first.low[place]:.3g} to {first.high[place]:.3g}, "
            f"there {low[place]:.3g} to {high[place]:.3g})"
            for place in np.argsort(-widths_away, kind="stable")
            if far[place]
        )
        yield Finding.of("warning", what, where, "check that both were made the same way; heavy tails want how='log'")


def _same_columns(queries: Queries, key: Keys, columns: NDArray[np.int64]) -> list[tuple[int, int]]:
    """(first, twin) pairs of equal columns: candidates by their keys, then compared value by value."""
    X, step = queries.X, max(1, _BLOCK_VALUES // 2)

    def equal(one: int, two: int) -> bool:
        return all(np.array_equal(X[r : r + step, one], X[r : r + step, two]) for r in range(0, len(X), step))

    seen: dict[int, int] = {}
    pairs = []
    for column in columns.tolist():
        first = seen.setdefault(int(key[column]), column)
        if first != column and equal(first, column):
            pairs.append((first, column))
    return pairs


def _names_where(names: list[str], mask: NDArray[np.bool_]) -> list[str]:
    """The names where the mask is True."""
    return [names[place] for place in np.flatnonzero(mask)]


# --------------------------------------------------------------------------------------------------- pairs of features


Pairs = list[tuple[int, int]]

SAME = 0.999  # |r| from which two features are one
SKETCH = 64
_CANDIDATE = 0.99  # of sketches, whose cosine is within some thousandths of r where |r| is near 1
_PAIRED_VALUES = 1 << 20
_BLOCK_FEATURES = 1 << 10
# A feature that differs in fewer documents than this correlates with others by chance.
_FEWEST = 10


def find_correlated(queries: Queries, known: list[tuple[int, int]]) -> Iterator[Finding]:
    """Features that another one determines up to scale and offset within every query.

    Parameters
    ----------
    queries : Queries
        The queries.
    known : list of (int, int)
        Pairs of equal features, which were named already.

    Yields
    ------
    finding : Finding
        One finding about all pairs.
    """
    if queries.n_features < 2 or queries.n_documents < _FEWEST:
        return
    pairs, r = find_correlated_pairs(queries)
    names = names_or_columns(queries)
    twins = {twin for _, twin in known}
    found = [(one, two, value) for (one, two), value in zip(pairs, r, strict=True) if two not in twins]
    if found:
        count = plural(len(found), "feature is", "features are")
        what = f"{count} another one in other units (|r| >= {SAME} within queries)"
        where = (f"{names[two]} ~ {names[one]} (r = {value:+.5f})" for one, two, value in found)
        advice = "weights are shared between them in an arbitrary way: leave one of each pair out"
        yield Finding.of("note", what, where, advice)


def find_correlated_pairs(queries: Queries) -> tuple[Pairs, NDArray[np.float64]]:
    """Find the features that correlate with an earlier one, and how much.

    Parameters
    ----------
    queries : Queries
        The queries.

    Returns
    -------
    pairs : list of (int, int)
        For each such feature the earlier one that it correlates with most, and itself.
    r : ndarray of float64, shape (n_pairs,)
        The correlation within queries, between -1 and 1.
    """
    with one_blas_thread():
        pairs = _alike(_sketches(queries))
    if not pairs:
        return [], np.empty(0)
    one, two = np.array(pairs).T
    used = np.union1d(one, two)
    sizes = sum(np.abs(block).sum(axis=0) for block in _center(queries, used)) / queries.n_documents
    sums, tamed, fourth = np.zeros((3, len(pairs))), np.zeros((3, len(pairs))), np.zeros((2, len(pairs)))
    for block in _center(queries, used):
        sums += _products(block, *(np.searchsorted(used, side) for side in (one, two)))
        # asinh makes heavy tails as long as logarithms do, and keeps features equal that are so but for their units
        block = np.arcsinh(block / np.where(sizes > 0, sizes, 1.0))
        tamed += _products(block, *(np.searchsorted(used, side) for side in (one, two)))
        fourth += np.stack([(block[:, np.searchsorted(used, side)] ** 4).sum(axis=0) for side in (one, two)])
    r, r_tamed = (part[0] / np.sqrt(part[1] * part[2]) for part in (sums, tamed))
    # (sum x^2)^2 / sum x^4 is n where all |x| are equal, and 1 where one document has all of the variance
    enough = (tamed[1:] ** 2 / fourth).min(axis=0) >= _FEWEST
    # one document that is far out in both features makes r near 1, but not r of the tamed ones
    kept = np.flatnonzero((np.abs(r) >= SAME) & (np.abs(r_tamed) >= _CANDIDATE) & enough)
    return [pairs[place] for place in kept], np.clip(r[kept], -1, 1)


def _products(block: NDArray[np.float64], one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of a b, a^2 and b^2 for pairs of columns."""
    a, b = block[:, one], block[:, two]
    return np.stack([(a * b).sum(axis=0), (a * a).sum(axis=0), (b * b).sum(axis=0)])


def _center(queries: Queries, columns: NDArray[np.int64] | slice) -> Iterator[NDArray[np.float64]]:
    """Blocks of documents of whole queries, each column divided by its largest size there, centered in every query."""
    sizes, first = queries.sizes, 0
    largest = _largest(queries, columns)
    step = max(1, _PAIRED_VALUES // max(1, len(largest)))
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(queries.start, queries.start[first] + step, side="right")) - 1)
        begin, end = int(queries.start[first]), int(queries.start[last])
        filled = sizes[first:last][sizes[first:last] > 0]
        if len(filled):
            rows = slice(begin, end) if queries.is_grouped else queries.rows[begin:end]
            block = np.asarray(queries.X[rows][:, columns], dtype=np.float64) / largest
            heads = np.cumsum(filled) - filled
            block -= np.repeat(np.add.reduceat(block, heads, axis=0) / filled[:, np.newaxis], filled, axis=0)
            yield block
        first = last


def _largest(queries: Queries, columns: NDArray[np.int64] | slice) -> NDArray[np.float64]:
    """The largest size of every column, 1 where it is 0: fourth powers of what is divided by it do not overflow."""
    step = max(1, _PAIRED_VALUES // max(1, queries.n_features))
    blocks = (queries.X[row : row + step][:, columns] for row in range(0, queries.n_documents, step))
    largest = np.max([np.abs(block).max(axis=0) for block in blocks], axis=0).astype(np.float64)
    return np.where(largest > 0, largest, 1.0)


def _sketches(queries: Queries) -> NDArray[np.float64]:
    """A unit vector per feature, or zeros where the feature is constant within every query."""
    random = np.random.default_rng(0)
    total = np.zeros((SKETCH, queries.n_features))
    size = np.zeros(queries.n_features)
    for block in _center(queries, slice(None)):
        signs = random.integers(0, 2, (SKETCH, len(block))) * 2.0 - 1.0
        total += signs @ block
        size += (block * block).sum(axis=0)
    total = total.T
    length = np.linalg.norm(total, axis=1)
    # what rounding leaves of a constant column is no feature
    varies = (size > 1e-20 * queries.n_documents) & (length > 0)
    return np.where(varies[:, np.newaxis], total / np.where(varies, length, 1.0)[:, np.newaxis], 0.0)


def _alike(sketches: NDArray[np.float64]) -> Pairs:
    """(other, itself) for every feature whose sketch looks like that of an earlier one, and most like the other's."""
    found = []
    for begin in range(0, len(sketches), _BLOCK_FEATURES):
        block = sketches[begin : begin + _BLOCK_FEATURES]
        nearest, most = np.zeros(len(block), dtype=np.int64), np.zeros(len(block))
        for other in range(0, begin + 1, _BLOCK_FEATURES):
            alike = np.abs(block @ sketches[other : other + _BLOCK_FEATURES].T)
            # a feature is compared with those before it; what rounding tells apart is equal
            alike[np.arange(other, other + alike.shape[1]) >= np.arange(begin, begin + len(block))[:, np.newaxis]] = 0
            alike = alike.round(9)
            new = alike.max(axis=1) > most
            nearest[new], most[new] = other + alike[new].argmax(axis=1), alike[new].max(axis=1)
        found += [(int(nearest[place]), begin + int(place)) for place in np.flatnonzero(most >= _CANDIDATE)]
    return found
