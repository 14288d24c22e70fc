"""Fingerprints of judged queries: what is remembered of the queries that a ranker has seen, in 24 bytes per query.

A fingerprint has two parts. The *hash* is computed from all labels and all features of a query. It does not depend on
the id of the query, on the order of its rows, or on whether a value is stored as float32 or float64; any other change
makes another query of it. Two different queries have the same hash with probability 2^-32 at most (the NH hash of
UMAC). The *sketches* are those of up to four documents, the ones whose features have the smallest hashes. A sketch
stays the same, or moves to a neighboring cell, where features are rounded, and it does not depend on labels.

Documents without features are identified by their ids and by the id of their query, where there are any.

:func:`fingerprints` computes fingerprints. :class:`Fingerprints` and :class:`TrainingRecord` store those that a ranker
has seen, together as :class:`Seen`. :mod:`rankwise.queries.overlap` decides from them which queries are the same. What
is compiled stands at the end.

References
----------
J. Black, S. Halevi, H. Krawczyk, T. Krovetz and P. Rogaway (1999). UMAC: fast and secure message authentication. CRYPTO
1999, 216-233. doi:10.1007/3-540-48405-1_14
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.bits import mix, mixed, to_bits, word_of
from rankwise._kernels.machine.jit import kernel
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource

# One fingerprint per query.
FINGERPRINT = np.dtype([("hash", np.uint64), ("documents", np.uint32, (4,))])
Marks = NDArray[np.void]

# The largest number of queries that are remembered (96 MB): the first ones of a longer stream.
MOST = 1 << 22

Same = Literal["same", "in another order", "with other weights", "other"]


def fingerprints(queries: QuerySource, *, n_jobs: int | None = None) -> Marks:
    """Compute one fingerprint per query.

    Parameters
    ----------
    queries : Queries
        With or without labels.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    marks : structured ndarray, shape (n_queries,)
        Of type ``FINGERPRINT``: ``hash`` and ``documents``, the sketches.

    Examples
    --------
    >>> one = Queries.from_arrays([[1.0, 0.5], [0.0, 2.0]], [1, 0], qid=["a", "a"])
    >>> two = Queries.from_arrays(np.float32([[0.0, 2.0], [1.0, 0.5]]), [0, 1], qid=["b", "b"])
    >>> bool((fingerprints(one)["hash"] == fingerprints(two)["hash"]).all())
    True
    """
    return queries.fingerprints(n_jobs)


def compute_fingerprints(queries: Queries, n_jobs: int | None) -> Marks:
    """One fingerprint per query in memory."""
    X = content(queries)
    hashes, sketches = np.zeros(len(queries), np.uint64), np.zeros((len(queries), SKETCHED), np.uint32)
    labels = np.empty(0) if queries.y is None else queries.y
    rows = np.empty(0, np.int64) if queries.is_grouped else queries.rows
    keys, signs = column_keys(X.shape[1] + 1), projection_signs(X.shape[1])
    parallel.map_chunks(
        lambda first, last: fingerprint_queries(
            first, last, queries.start, rows, X, labels, keys, signs, hashes, sketches
        ),
        list(parallel.query_chunks(queries.start)),
        n_jobs,
    )
    return pack_marks(hashes, sketches)


def content(queries: Queries) -> NDArray[Any]:
    """The numbers that identify documents: their features or, without features, hashes of their ids.

    Parameters
    ----------
    queries : Queries
        In memory.

    Returns
    -------
    ndarray, shape (n_documents, n_columns)
        The features; without features four columns for document ids and four for query ids, as far as there are any.
    """
    if queries.n_features:
        return np.asarray(queries.X)
    columns = []
    if queries.docid is not None:
        columns.append(_hash_ids(queries.docid))
    if queries.qid is not None:
        columns.append(_hash_ids(queries.qid)[queries.query_of_row])
    return np.column_stack([np.empty((queries.n_documents, 0)), *columns])


def _hash_ids(ids: Iterable[Any]) -> NDArray[np.float64]:
    """Each id as four integers of 16 bits, shape (n, 4)."""
    texts = (str(one).encode("utf-8", "surrogateescape") for one in ids)
    words = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(words), dtype=np.uint16).reshape(-1, 4).astype(np.float64)


def pack_marks(hashes: NDArray[np.uint64], sketches: NDArray[np.uint32]) -> Marks:
    """Hashes and sketches as an array of fingerprints."""
    found = np.zeros(len(hashes), FINGERPRINT)
    found["hash"], found["documents"] = hashes, sketches
    return found


def is_among(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each hash is among the known ones."""
    return np.isin(hashes, known, kind="sort")  # NumPy 2.0 chooses a table where it overflows on unsigned integers


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Fingerprints in the order in which queries came, at most ``MOST``, in memory that grows by doubling.

    Records of one stream share their memory: only what lies before ``length`` belongs to a record. ``filled`` says how
    far any record has written; where two streams diverge, the second one gets memory of its own.

    Attributes
    ----------
    length : int
        The number of queries that are remembered.
    forgotten : int
        The number of queries that came after the memory was full.
    buffer : structured ndarray
        The shared memory.
    filled : list of int
        One number: how many fingerprints of the shared memory are in use.
    """

    length: int = 0
    forgotten: int = 0
    buffer: Marks = field(default_factory=lambda: np.zeros(0, FINGERPRINT), repr=False)
    filled: list[int] = field(default_factory=lambda: [0], repr=False)

    @classmethod
    def of(cls, marks: Marks, forgotten: int = 0) -> Self:
        """A record of these fingerprints."""
        return cls(len(marks), forgotten, marks, [len(marks)])

    def add(self, marks: Marks) -> "Fingerprints":
        """The record with more fingerprints."""
        kept = marks[: MOST - self.length]
        length, buffer, filled = self.length + len(kept), self.buffer, self.filled
        if len(kept) and (length > len(buffer) or filled[0] > self.length):
            buffer = np.zeros(min(MOST, max(length, 2 * len(buffer))), FINGERPRINT)
            buffer[: self.length] = self.buffer[: self.length]
            filled = [0]
        buffer[self.length : length] = kept
        filled[0] = max(filled[0], length)
        return Fingerprints(length, self.forgotten + len(marks) - len(kept), buffer, filled)

    @property
    def marks(self) -> Marks:
        """The fingerprints, one per query."""
        return self.buffer[: self.length]


@dataclass(frozen=True)
class TrainingRecord:
    """Which queries, with which weights and in which order, in a few bytes whatever their number.

    Attributes
    ----------
    count : int
        The number of queries so far.
    content : int
        The sum over queries of a hash of each, which does not depend on their order.
    weighted : int
        The same sum with the weight of each query in its hash.
    trail : int
        A hash of all queries in their order, with their weights.
    """

    count: int = 0
    content: int = 0
    weighted: int = 0
    trail: int = 0

    @classmethod
    def of(cls, queries: QuerySource, *, n_jobs: int | None = None) -> "TrainingRecord":
        """The record of a set of queries."""
        return cls().add(fingerprints(queries, n_jobs=n_jobs), weights_to_record(queries))

    def add(self, marks: Marks, weight: NDArray[np.float64] | None) -> "TrainingRecord":
        """The record with more queries."""

        hashes = np.ascontiguousarray(marks["hash"])
        weights = np.ones(len(hashes)) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        trail, content, weighted = record_hashes(np.uint64(self.trail), hashes, weights)
        return TrainingRecord(
            self.count + len(hashes),
            (self.content + int(content)) % 2**64,
            (self.weighted + int(weighted)) % 2**64,
            int(trail),
        )

    def compare(self, other: "TrainingRecord") -> Same:
        """How the queries of another record relate to these."""
        if self == other:
            return "same"
        if (self.count, self.weighted) == (other.count, other.weighted):
            return "in another order"
        return "with other weights" if (self.count, self.content) == (other.count, other.content) else "other"


def weights_to_record(queries: QuerySource) -> NDArray[np.float64] | None:
    """What the record of a fit keeps of the weights: the query weights, and a digest of any document weights.

    A digest stands in place of the query's weight, as the bits of a float64; the record looks at bits alone.
    """
    if not queries.has_document_weights:
        return queries.weight
    digests: NDArray[np.float64] = queries.apply(weight_digests)
    return digests


def weight_digests(queries: Queries) -> NDArray[np.float64]:
    """A digest of the document weights and of the weight of every query, as the bits of a float64."""
    weight = np.ones(queries.n_documents) if queries.document_weight is None else queries.document_weight
    digests = np.empty(len(queries), dtype=np.uint64)
    for query in range(len(queries)):
        own = np.append(weight[queries.rows_of(query)], queries.query_weight[query])
        digests[query] = int.from_bytes(hashlib.blake2b(own.tobytes(), digest_size=8).digest(), "little")
    return digests.view(np.float64)


@dataclass(frozen=True)
class Seen:
    """The queries that a ranker learned from, and those used for model selection.

    Attributes
    ----------
    training : Fingerprints
        Of the queries that ``fit`` learned from, and of those that the rankers it started from learned from.
    validation : Fingerprints
        Of the queries used for model selection, likewise.
    record : TrainingRecord or None
        Of the queries that ``fit`` itself learned from; None where it is not known.
    """

    training: Fingerprints = field(default_factory=Fingerprints)
    validation: Fingerprints = field(default_factory=Fingerprints)
    record: TrainingRecord | None = None

    def with_training(self, marks: Marks) -> "Seen":
        """The same with more queries that were learned from."""
        return Seen(self.training.add(marks), self.validation, self.record)

    def with_validation(self, marks: Marks) -> "Seen":
        """The same with more queries that were used for model selection."""
        return Seen(self.training, self.validation.add(marks), self.record)

    def __or__(self, other: "Seen") -> "Seen":
        """What either has seen: a ranker that starts from another one remembers the queries of both."""
        return Seen(_both(self.training, other.training), _both(self.validation, other.validation), self.record)


def _both(one: Fingerprints, two: Fingerprints) -> Fingerprints:
    """The fingerprints of both records."""
    whole = one.add(two.marks)
    return Fingerprints(whole.length, whole.forgotten + two.forgotten, whole.buffer, whole.filled)


# ---------------------------------------------------------------------------------------------- compiled: exact hashes

# The exact hash of a row is the sum over its values of (low half + key) (high half + key'), with keys of the column,
# which the processor computes four at a time. Rows are then mixed and added up to the query; a sum does not depend on
# the order of its terms, so neither does the hash.

# Projections that a sketch is made of, documents of a query that are sketched, and documents that are tried for it:
# those whose features are all negligible have no sketch.
PROJECTIONS, SKETCHED, TRIED = 6, 4, 8
# Values far below this enter by their size, values far above by their logarithm.
SMALL = 2.0**-7


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
    keys: NDArray[np.uint64] = mixed(word)
    keys.setflags(write=False)
    return keys


# -------------------------------------------------------------------------------------------------- compiled: sketches

# The sketch of a document is a hash of a few random projections of its features, each rounded to a cell: values that
# are rounded, or stored in less precision, move a projection by much less than a cell. Values go through a logarithm
# first, because a feature of large numbers would hide all others.


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
    return (2.0**-12 if features < 6 else 2.0**-8 if features < 16 else 2.0**-6) * math.sqrt(features)


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
def fingerprint_query(own, X, label, keys, signs, words, spot, places, out):
    """The exact hash of the query with the rows ``own``; sketches of its documents into ``out``, which holds zeros.

    Documents are sketched in the order of the hashes of their features. That order depends neither on their places, so
    no part of a list goes without, nor on labels, so copies of a query have the same sketches.

    Parameters
    ----------
    own : ndarray of int64
        The rows.
    X : ndarray, shape (n_documents, n_features)
        The features.
    label : ndarray of float64
        The labels of these rows; empty means without labels.
    keys, signs : ndarray
        From :func:`column_keys` and :func:`projection_signs`.
    words : ndarray of uint64
        Room for a number per row.
    spot, places : ndarray, shape (PROJECTIONS,)
        Room for a document.
    out : ndarray of uint32, shape (SKETCHED,)
        Receives the sketches, no two the same.

    Returns
    -------
    uint64
        The hash.
    """
    total = np.uint64(len(own))
    for i in range(len(own)):
        word = row_word(X[own[i]], keys)
        words[i] = mix(word)
        if len(label):
            word += mix(word_of(label[i]) + keys[X.shape[1]])
        total += mix(word)
    found, last = 0, np.uint64(0)
    for trial in range(TRIED):
        if found == SKETCHED:
            break
        next_one = -1
        for i in range(len(own)):
            if (trial == 0 or words[i] > last) and (next_one < 0 or words[i] < words[next_one]):
                next_one = i
        if next_one < 0:
            break
        last = words[next_one]
        if not projections(X[own[next_one]], signs, spot):
            continue
        for k in range(PROJECTIONS):
            places[k] = math.floor(spot[k])
        hashed, new = cell_hash(places), True
        for known in range(found):
            new = new and out[known] != hashed
        if new:
            out[found] = hashed
            found += 1
    return mix(total)


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
    spot, places, words = np.empty(PROJECTIONS), np.empty(PROJECTIONS, np.int64), np.empty(longest, np.uint64)
    for q in range(first, last):
        size = start[q + 1] - start[q]
        own, label = places_buffer[:size], label_buffer[: size if len(y) else 0]
        for p in range(size):
            own[p] = rows[start[q] + p] if len(rows) else start[q] + p
        for p in range(len(label)):
            label[p] = y[own[p]]
        hashes[q] = fingerprint_query(own, X, label, keys, signs, words, spot, places, sketches[q])


@kernel
def find_sketches(first, last, X, signs, known, out):
    """For rows first..last-1 the place of their sketch in ``known``, which is sorted, or -1.

    A sketch is also looked up in the neighboring cells that are no farther than a quarter of a cell, so a document is
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
