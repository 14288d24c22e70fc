"""Hashes of the content of queries: exact ones that any change alters, and sketches that small changes leave alone.

The exact hash of a row is the sum over its values of (low half + key) (high half + key'), with keys of the column,
which the processor computes four at a time (the NH hash of UMAC: two rows have the same sum with probability 2^-32 at
most). Rows are then mixed and added up to the query; a sum does not depend on the order of its terms, so neither does
the hash.

The sketch of a document is a hash of a few random projections of its features, each rounded to a cell: values that are
rounded, or stored in less precision, move a projection by much less than a cell. Values go through a logarithm first,
because a feature of large numbers would hide all others.

References
----------
J. Black, S. Halevi, H. Krawczyk, T. Krovetz and P. Rogaway (1999). UMAC: fast and secure message authentication. CRYPTO
1999, 216-233. doi:10.1007/3-540-48405-1_14

G. L. Steele, D. Lea and C. H. Flood (2014). Fast splittable pseudorandom number generators. OOPSLA 2014, 453-472.
doi:10.1145/2660193.2660195
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.bits import to_bits
from rankwise._kernels.jit import kernel

# The lowest bit of a query's hash: whether its documents differ. Queries whose documents are all equal, such as those
# of one document, coincide by chance.
TELLS = np.uint64(1)
# Projections that a sketch is made of, and documents of a query that are sketched.
PROJECTIONS, SKETCHED = 6, 4
# Values far below this enter by their size, values far above by their logarithm.
SMALL = 2.0**-7


def _mixed(word):
    """Spread the information of 64 bits over all of them: a bijection (SplitMix)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


mix = kernel(_mixed)


@kernel
def word_of(number):
    """The bits of a number as a float64; 0 and -0, which are equal, have the same."""
    return np.uint64(to_bits(np.float64(number) + 0.0))


@kernel
def product_of_halves(word, key):
    """(low half of the word + low half of the key) times the same of the high halves, each sum within 32 bits."""
    half = np.uint64(0xFFFFFFFF)
    low = ((word & half) + (key & half)) & half
    high = ((word >> np.uint64(32)) + (key >> np.uint64(32))) & half
    return low * high


@kernel
def row_word(x, keys):
    """The exact hash of a row: the sum over its values."""
    word = np.uint64(0)
    for j in range(len(x)):
        word += product_of_halves(word_of(x[j]), keys[j])
    return word


@lru_cache(maxsize=8)
def column_keys(count: int) -> NDArray[np.uint64]:
    """A key for each column: the sequence of SplitMix."""
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys: NDArray[np.uint64] = _mixed(word)
    keys.setflags(write=False)
    return keys


@kernel(inline="always")
def query_hash(own, X, label, keys):
    """The exact hash of the query with the rows ``own``; an empty ``label`` means without labels."""
    total, first, alike = np.uint64(len(own)), np.uint64(0), True
    for i in range(len(own)):
        word = row_word(X[own[i]], keys)
        if len(label):
            word += mix(word_of(label[i]) + keys[X.shape[1]])
        if i == 0:
            first = word
        alike = alike and word == first
        total += mix(word)
    hashed = mix(total) | TELLS
    return hashed ^ TELLS if alike else hashed


# ----------------------------------------------------------------------------------------------- sketches


@lru_cache(maxsize=8)
def projection_signs(count: int) -> NDArray[np.float64]:
    """+1 or -1 for every column and projection."""
    bit = (column_keys(count)[:, None] >> np.arange(0, 8 * PROJECTIONS, 8, dtype=np.uint64)) & np.uint64(1)
    signs = np.where(bit == 1, 1.0, -1.0)
    signs.setflags(write=False)
    return signs


@kernel(inline="always")
def cell_width(features):
    """The width of a cell: many times the effect of rounding, which adds up over features with random signs.

    With few features there are few ways to differ, so different documents need narrower cells.
    """
    if features < 4:
        return (2.0**-20, 2.0**-20, 2.0**-16, 2.0**-15)[features]
    return (2.0**-14 if features < 16 else 2.0**-10) * math.sqrt(features)


@kernel
def projections(x, signs, out):
    """Random projections of the logarithm of a row, in cells; returns whether any value is not negligible."""
    zero, counts, width = to_bits(SMALL), False, cell_width(len(x))
    # six sums side by side: one after the other, each addition would wait for the one before
    a, b, c, d, e, f = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(x)):
        value = np.float64(x[j])
        # the bits of a float, read as an integer, are its logarithm drawn as straight lines between powers of two
        size = np.float64(to_bits(abs(value) + SMALL) - zero) * 2.0**-52
        counts = counts or size > width
        size = -size if value < 0 else size
        a += signs[j, 0] * size
        b += signs[j, 1] * size
        c += signs[j, 2] * size
        d += signs[j, 3] * size
        e += signs[j, 4] * size
        f += signs[j, 5] * size
    out[0], out[1], out[2] = a / width, b / width, c / width
    out[3], out[4], out[5] = d / width, e / width, f / width
    return counts


@kernel(inline="always")
def cell_hash(places):
    """A hash of 32 bits for a cell; never 0, which stands for no document."""
    word = np.uint64(0)
    for k in range(len(places)):
        word = mix(word + np.uint64(places[k]) + np.uint64(0x9E3779B97F4A7C15))
    short = np.uint32(word & np.uint64(0xFFFFFFFF))
    return short if short != 0 else np.uint32(1)


@kernel(inline="always")
def sketch_query(own, X, signs, spot, places, out):
    """Sketches of some documents of a query, no two the same, into ``out``, which holds zeros."""
    step, found = max(1, len(own) // (2 * SKETCHED)), 0
    for i in range(0, len(own), step):
        if found == SKETCHED:
            break
        if not projections(X[own[i]], signs, spot):
            continue
        for k in range(PROJECTIONS):
            places[k] = math.floor(spot[k])
        hashed, new = cell_hash(places), True
        for known in range(found):
            new = new and out[known] != hashed
        if new:
            out[found] = hashed
            found += 1


@kernel
def fingerprint_queries(first, last, start, rows, X, y, keys, signs, hashes, sketches):
    """Hashes and sketches of queries first..last-1.

    Parameters
    ----------
    first, last : int
        The range of queries.
    start, rows : ndarray of int64
        The layout; ``rows`` is empty where the rows are grouped.
    X : ndarray, shape (n_documents, n_features)
        The features.
    y : ndarray of float64
        The labels; empty means without labels.
    keys : ndarray of uint64, shape (n_features + 1,)
        From :func:`column_keys`.
    signs : ndarray of float64, shape (n_features, PROJECTIONS)
        From :func:`projection_signs`.
    hashes : ndarray of uint64, shape (n_queries,)
        Receives the exact hashes.
    sketches : ndarray of uint32, shape (n_queries, SKETCHED)
        Receives the sketches.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    places_buffer, label_buffer = np.empty(longest, np.int64), np.empty(longest)
    spot, places = np.empty(PROJECTIONS), np.empty(PROJECTIONS, np.int64)
    for q in range(first, last):
        size = start[q + 1] - start[q]
        own, label = places_buffer[:size], label_buffer[: size if len(y) else 0]
        for p in range(size):
            own[p] = rows[start[q] + p] if len(rows) else start[q] + p
        for p in range(len(label)):
            label[p] = y[own[p]]
        hashes[q] = query_hash(own, X, label, keys)
        sketch_query(own, X, signs, spot, places, sketches[q])


@kernel
def find_sketches(first, last, X, signs, known, out):
    """For rows first..last-1 the place of their sketch in ``known``, which is sorted, or -1.

    A sketch is also looked up in the neighbouring cells that are no farther than a quarter of a cell, so a document is
    found if none of its projections has moved by more than that.
    """
    spot, places = np.empty(PROJECTIONS), np.empty(PROJECTIONS, np.int64)
    base, side = np.empty(PROJECTIONS, np.int64), np.empty(PROJECTIONS, np.int64)
    for row in range(first, last):
        out[row] = -1
        if not projections(X[row], signs, spot):
            continue
        near = 0
        for k in range(PROJECTIONS):
            base[k] = math.floor(spot[k])
            beyond = spot[k] - base[k]
            side[k] = -1 if beyond < 0.25 else 1 if beyond >= 0.75 else 0
            near += side[k] != 0
        for choice in range(1 << near):
            bit = 0
            for k in range(PROJECTIONS):
                places[k] = base[k]
                if side[k] != 0:
                    if (choice >> bit) & 1:
                        places[k] += side[k]
                    bit += 1
            hashed = cell_hash(places)
            place = np.searchsorted(known, hashed)
            if place < len(known) and known[place] == hashed:
                out[row] = place
                break


@kernel
def mean_projections(first, last, start, rows, X, signs, out):
    """The mean projection of the documents of queries first..last-1, in cells."""
    spot = np.empty(PROJECTIONS)
    for q in range(first, last):
        size = start[q + 1] - start[q]
        for place in range(start[q], start[q + 1]):
            projections(X[rows[place] if len(rows) else place], signs, spot)
            for k in range(PROJECTIONS):
                out[q, k] += spot[k] / size


@kernel
def record_hashes(trail, hashes, weight):
    """Hashes of queries in their order and in any order.

    Returns
    -------
    trail : uint64
        One hash for queries in their order, with their weights, after those that the argument is the hash of.
    content, weighted : uint64
        The sum over queries of a hash of each, and the same with its weight: which queries, in any order.
    """
    content, weighted = np.uint64(0), np.uint64(0)
    for q in range(len(hashes)):
        heavy = mix(word_of(weight[q]))
        content += mix(hashes[q] + np.uint64(0x9E3779B97F4A7C15))
        weighted += mix(hashes[q] + heavy)
        trail = mix(trail * np.uint64(0x9E3779B97F4A7C15) + hashes[q] + heavy)
    return trail, content, weighted
