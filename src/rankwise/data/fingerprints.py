"""Fingerprints of judged lists: what a ranker has seen, in 8 bytes a list.

A fingerprint is made of all labels of a list, and of all features of some of its documents: those of its rarest
labels, the higher of equally rare ones first, until there are eight; all of them in lists of up to 16, and where these
are alike. So X is hardly read where lists are long. The query's id, the order of its rows, and whether a value is
stored as float32 or float64 do not matter; a changed label, or a changed feature of a document that is looked at, makes
another list of it. Two lists that differ there have the same fingerprint with a chance of 1 in 2^32 at most. Lists
whose documents are all alike, as those of one document are, have none: they tell nothing about where they come from.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.queries import Queries

Words = NDArray[np.uint64]

# Lists that are remembered at most, in 32 MB; of a longer stream the first so many are.
MOST = 1 << 22


def fingerprints(queries: Queries, *, n_jobs: int | None = None) -> Words:
    """One word a list; 0 for a list whose documents are all alike.

    >>> one = Queries.from_arrays([[1.0, 0.5], [0.0, 2.0]], [1, 0], qid=["a", "a"])
    >>> two = Queries.from_arrays(np.float32([[0.0, 2.0], [1.0, 0.5]]), [0, 1], qid=["b", "b"])
    >>> bool((fingerprints(one) == fingerprints(two)).all())
    True
    """
    from rankwise._kernels.fingerprint import column_keys, fingerprint_lists

    X, found = np.asarray(queries.X), np.zeros(len(queries), np.uint64)
    labels = np.empty(0) if queries.y is None else queries.y
    rows = np.empty(0, np.int64) if queries.is_grouped else queries.rows
    keys = column_keys(queries.n_features + 1)
    drive.run(
        lambda first, last: fingerprint_lists(first, last, queries.start, rows, X, labels, keys, found),
        list(drive.query_chunks(queries.start)),
        n_jobs,
    )
    return found


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Words of lists in the order in which they came, ``MOST`` at most, in memory that grows by doubling.

    Those of one stream share their memory: only what lies before ``length`` is theirs. ``filled`` says how far anybody
    went on; where two streams part, the second one gets memory of its own.

    Attributes
    ----------
    length : lists that are remembered
    forgotten : lists that came when there was no more room
    """

    length: int = 0
    forgotten: int = 0
    room: Words = field(default_factory=lambda: np.zeros(0, np.uint64), repr=False)
    filled: list[int] = field(default_factory=lambda: [0], repr=False)

    @classmethod
    def of(cls, words: Words, forgotten: int = 0) -> "Fingerprints":
        return cls(len(words), forgotten, words, [len(words)])

    def added(self, words: Words) -> "Fingerprints":
        """The same and these."""
        kept = words[: MOST - self.length]
        length, room, filled = self.length + len(kept), self.room, self.filled
        if len(kept) and (length > len(room) or filled[0] > self.length):
            room = np.zeros(min(MOST, max(length, 2 * len(room))), np.uint64)
            room[: self.length] = self.room[: self.length]
            filled = [0]
        room[self.length : length] = kept
        filled[0] = max(filled[0], length)
        return Fingerprints(length, self.forgotten + len(words) - len(kept), room, filled)

    @property
    def words(self) -> Words:
        """One a list."""
        return self.room[: self.length]

    def shared(self, words: Words) -> NDArray[np.bool_]:
        """For each of these lists whether it is remembered; a list that tells nothing is not."""
        return np.asarray(np.isin(words, self.words) & (words != 0))

    def are(self, words: Words) -> bool | None:
        """Whether these are the lists that are remembered, in any order; None if some were forgotten."""
        if self.forgotten:
            return None
        return len(words) == self.length and bool((np.sort(words) == np.sort(self.words)).all())


@dataclass(frozen=True)
class Seen:
    """The lists that a ranker learned from, and those by which it made choices."""

    training: Fingerprints = field(default_factory=Fingerprints)
    validation: Fingerprints = field(default_factory=Fingerprints)

    def with_training(self, words: Words) -> "Seen":
        return Seen(self.training.added(words), self.validation)

    def with_validation(self, words: Words) -> "Seen":
        return Seen(self.training, self.validation.added(words))

    def __or__(self, other: "Seen") -> "Seen":
        """What both have seen: how a ranker that begins where another ended remembers that one's lists."""
        return Seen(_both(self.training, other.training), _both(self.validation, other.validation))


def _both(one: Fingerprints, two: Fingerprints) -> Fingerprints:
    whole = one.added(two.words)
    return Fingerprints(whole.length, whole.forgotten + two.forgotten, whole.room, whole.filled)
