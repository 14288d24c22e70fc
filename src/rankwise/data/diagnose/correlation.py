"""Pairs of features that are the same but for scale and offset: a correlation near 1 or -1 within queries.

The correlation is that of features centred within each query, since a ranker compares documents of one query only. Not
all pairs are computed on all rows. One pass multiplies the centred features by ``SKETCH`` rows of random signs, which
leaves ``SKETCH`` numbers per feature; features that are proportional have proportional sketches, whatever the signs.
Sketches are compared block by block, and what looks alike is computed exactly in a second pass. For n documents and d
features that takes n d SKETCH + d^2 SKETCH multiplications and memory for d SKETCH numbers, never for d^2.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.drive import one_blas_thread
from rankwise.data.checks import plural
from rankwise.data.diagnose.features import feature_names
from rankwise.data.diagnose.findings import Finding
from rankwise.data.queries import Queries

Pairs = list[tuple[int, int]]

SAME = 0.999  # |r| from which two features are one
SKETCH = 64
_CANDIDATE = 0.99  # of sketches, whose cosine is within some thousandths of r where |r| is near 1
_BLOCK_VALUES = 1 << 20
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
    pairs, r = correlated_pairs(queries)
    names = feature_names(queries)
    twins = {twin for _, twin in known}
    found = [(one, two, value) for (one, two), value in zip(pairs, r, strict=True) if two not in twins]
    if found:
        count = plural(len(found), "feature is", "features are")
        what = f"{count} another one in other units (|r| >= {SAME} within queries)"
        where = (f"{names[two]} ~ {names[one]} (r = {value:+.5f})" for one, two, value in found)
        advice = "weights are shared between them in an arbitrary way: leave one of each pair out"
        yield Finding.of("note", what, where, advice)


def correlated_pairs(queries: Queries) -> tuple[Pairs, NDArray[np.float64]]:
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
    sizes = sum(np.abs(block).sum(axis=0) for block in _centred(queries, used)) / queries.n_documents
    sums, tamed, fourth = np.zeros((3, len(pairs))), np.zeros((3, len(pairs))), np.zeros((2, len(pairs)))
    for block in _centred(queries, used):
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


def _centred(queries: Queries, columns: NDArray[np.int64] | slice) -> Iterator[NDArray[np.float64]]:
    """Blocks of documents of whole queries, each column divided by its largest size there, centred in every query."""
    sizes, first = queries.sizes, 0
    largest = _largest(queries, columns)
    step = max(1, _BLOCK_VALUES // max(1, len(largest)))
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
    step = max(1, _BLOCK_VALUES // max(1, queries.n_features))
    blocks = (queries.X[row : row + step][:, columns] for row in range(0, queries.n_documents, step))
    largest = np.max([np.abs(block).max(axis=0) for block in blocks], axis=0).astype(np.float64)
    return np.where(largest > 0, largest, 1.0)


def _sketches(queries: Queries) -> NDArray[np.float64]:
    """A unit vector per feature, or zeros where the feature is constant within every query."""
    random = np.random.default_rng(0)
    total = np.zeros((SKETCH, queries.n_features))
    size = np.zeros(queries.n_features)
    for block in _centred(queries, slice(None)):
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
