"""Fingerprints of judged queries: what a ranker has seen, in 24 bytes per query.

A fingerprint has two parts. The *hash* is made of all labels and all features of a query. Its id, the order of its
rows, and whether a value is stored as float32 or float64 do not matter; any other change makes another query of it, and
two different queries have the same hash with a chance of 1 in 2^32 at most. The *sketches* are those of up to four of
its documents. A sketch stays the same, or is found in a neighbouring cell, where features are rounded to about five
digits or decimals, and it does not depend on labels: by sketches a query is known again after rounding, after a change
of precision, and without some of its documents.

Queries whose documents are all alike, as those of one document are, tell nothing about where they come from.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.queries import Queries

# One fingerprint per query.
FINGERPRINT = np.dtype([("hash", np.uint64), ("documents", np.uint32, (4,))])
Marks = NDArray[np.void]

# Queries that are remembered at most, in 96 MB; of a longer stream the first so many are.
MOST = 1 << 22

Same = Literal["same", "in another order", "with other weights", "other"]


def fingerprints(queries: Queries, *, n_jobs: int | None = None) -> Marks:
    """One fingerprint per query.

    >>> one = Queries.from_arrays([[1.0, 0.5], [0.0, 2.0]], [1, 0], qid=["a", "a"])
    >>> two = Queries.from_arrays(np.float32([[0.0, 2.0], [1.0, 0.5]]), [0, 1], qid=["b", "b"])
    >>> bool((fingerprints(one)["hash"] == fingerprints(two)["hash"]).all())
    True
    """
    from rankwise._kernels.fingerprint import SKETCHED, column_keys, fingerprint_queries, projection_signs

    X = np.asarray(queries.X)
    hashes, sketches = np.zeros(len(queries), np.uint64), np.zeros((len(queries), SKETCHED), np.uint32)
    labels = np.empty(0) if queries.y is None else queries.y
    rows = np.empty(0, np.int64) if queries.is_grouped else queries.rows
    keys, signs = column_keys(queries.n_features + 1), projection_signs(queries.n_features)
    drive.run(
        lambda first, last: fingerprint_queries(
            first, last, queries.start, rows, X, labels, keys, signs, hashes, sketches
        ),
        list(drive.query_chunks(queries.start)),
        n_jobs,
    )
    return packed(hashes, sketches)


def packed(hashes: NDArray[np.uint64], sketches: NDArray[np.uint32]) -> Marks:
    """Hashes and sketches as fingerprints."""
    found = np.zeros(len(hashes), FINGERPRINT)
    found["hash"], found["documents"] = hashes, sketches
    return found


def telling(marks: Marks) -> NDArray[np.bool_]:
    """For each fingerprint whether the documents of its query differ."""
    return np.asarray(marks["hash"] & np.uint64(1) != 0)


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Fingerprints in the order in which queries came, ``MOST`` at most, in memory that grows by doubling.

    Those of one stream share their memory: only what lies before ``length`` is theirs. ``filled`` says how far anybody
    went on; where two streams part, the second one gets memory of its own.

    Attributes
    ----------
    length : int
        Queries that are remembered.
    forgotten : int
        Queries that came when there was no more room.
    """

    length: int = 0
    forgotten: int = 0
    buffer: Marks = field(default_factory=lambda: np.zeros(0, FINGERPRINT), repr=False)
    filled: list[int] = field(default_factory=lambda: [0], repr=False)

    @classmethod
    def of(cls, marks: Marks, forgotten: int = 0) -> Self:
        return cls(len(marks), forgotten, marks, [len(marks)])

    def added(self, marks: Marks) -> "Fingerprints":
        """The same and these."""
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
        """One per query."""
        return self.buffer[: self.length]


@dataclass(frozen=True)
class TrainingRecord:
    """Which queries, with which weights and in which order, in a few bytes however many they are.

    Attributes
    ----------
    count : int
        Queries so far.
    content, weighted : int
        Sums over queries of a hash of each, without and with its weight: they do not depend on the order.
    trail : int
        A hash of all of them in their order, with their weights.
    """

    count: int = 0
    content: int = 0
    weighted: int = 0
    trail: int = 0

    @classmethod
    def of(cls, queries: Queries, *, n_jobs: int | None = None) -> "TrainingRecord":
        return cls().added(fingerprints(queries, n_jobs=n_jobs), queries.weight)

    def added(self, marks: Marks, weight: NDArray[np.float64] | None) -> "TrainingRecord":
        """The record with some more queries."""
        from rankwise._kernels.fingerprint import added_up, chained

        hashes = np.ascontiguousarray(marks["hash"])
        weights = np.ones(len(hashes)) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        content, weighted = added_up(hashes, weights)
        return TrainingRecord(
            self.count + len(hashes),
            (self.content + int(content)) % 2**64,
            (self.weighted + int(weighted)) % 2**64,
            int(chained(np.uint64(self.trail), hashes, weights)),
        )

    def compared(self, other: "TrainingRecord") -> Same:
        """What the queries of another record are to these."""
        if self == other:
            return "same"
        if (self.count, self.weighted) == (other.count, other.weighted):
            return "in another order"
        return "with other weights" if (self.count, self.content) == (other.count, other.content) else "other"


@dataclass(frozen=True)
class Seen:
    """The queries that a ranker learned from, and those used for model selection.

    Attributes
    ----------
    training, validation : Fingerprints
        Of queries that ``fit`` saw, and of those that rankers saw which it began with.
    record : TrainingRecord or None
        Of the queries that ``fit`` learned from itself; None where that is not known.
    """

    training: Fingerprints = field(default_factory=Fingerprints)
    validation: Fingerprints = field(default_factory=Fingerprints)
    record: TrainingRecord | None = None

    def with_training(self, marks: Marks) -> "Seen":
        return Seen(self.training.added(marks), self.validation, self.record)

    def with_validation(self, marks: Marks) -> "Seen":
        return Seen(self.training, self.validation.added(marks), self.record)

    def __or__(self, other: "Seen") -> "Seen":
        """What both have seen: how a ranker that begins where another ended remembers that one's queries."""
        return Seen(_both(self.training, other.training), _both(self.validation, other.validation), self.record)


def _both(one: Fingerprints, two: Fingerprints) -> Fingerprints:
    whole = one.added(two.marks)
    return Fingerprints(whole.length, whole.forgotten + two.forgotten, whole.buffer, whole.filled)
