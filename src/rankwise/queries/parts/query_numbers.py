"""Number query ids by first appearance, in 24 bytes per query whatever the length of the ids.

Ids are known by two hashes of 64 bits: multilinear hashes whose multipliers are drawn anew in every process, so
nobody can prepare ids that collide. The first one is the key, the second one confirms it. The numbers do not depend on
the hashes.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.bits import mixed
from rankwise.errors import RankwiseError
from rankwise.queries.grouping import StringColumn

Words = NDArray[np.uint64]

# Sorted runs of keys are merged when the newer one has this share of the older one.
_MERGED = 4


class QueryNumbers:
    """The numbers of query ids, in order of first appearance."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(list(os.urandom(16)))
        self._multipliers = np.zeros((2, 0), np.uint64)
        # sorted keys, their confirmation and their numbers; each run has at least twice the keys of the next one
        self._runs: list[tuple[Words, Words, NDArray[np.int64]]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, ids: StringColumn) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number ids, new ones after all that are known.

        Parameters
        ----------
        ids : StringColumn
            The ids, repeats included.

        Returns
        -------
        numbers : ndarray of int64, shape (n_ids,)
            The number of each id.
        new : ndarray of int64
            The places at which new ids appear, in the order of their numbers.
        """
        key, confirmation = self._hashes(ids)
        keys, place, code = np.unique(key, return_index=True, return_inverse=True)
        code = code.reshape(-1)
        _refuse_collision(confirmation[place][code] == confirmation)
        found = np.full(len(keys), -1, np.int64)
        for known, confirming, number in self._runs:
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            hit = known[at] == keys
            _refuse_collision(confirming[at[hit]] == confirmation[place[hit]])
            found[hit] = number[at[hit]]
        unknown = np.flatnonzero(found < 0)
        new = np.argsort(place[unknown], kind="stable")
        found[unknown[new]] = self._count + np.arange(len(unknown))
        self._add(keys[unknown], confirmation[place[unknown]], found[unknown])
        return found[code], place[unknown[new]].astype(np.int64)

    def _add(self, keys: Words, confirmation: Words, numbers: NDArray[np.int64]) -> None:
        """Keep new keys, which are sorted; runs of similar length are merged to keep them few."""
        if not len(keys):
            return
        self._count += len(keys)
        run = (keys, confirmation, numbers)
        while self._runs and len(self._runs[-1][0]) < _MERGED * len(run[0]):
            older = self._runs.pop()
            order = np.argsort(np.concatenate([older[0], run[0]]), kind="stable")
            run = tuple(np.concatenate(pair)[order] for pair in zip(older, run, strict=True))  # type: ignore[assignment]
        self._runs.append(run)

    def _hashes(self, ids: StringColumn) -> tuple[Words, Words]:
        """Two hashes of 64 bits of every text."""
        lengths = np.diff(ids.offset)
        begin = ids.offset[:-1] - ids.offset[0]
        longest = int(lengths.max(initial=0))
        if longest >= self._multipliers.shape[1]:
            more = self._random.integers(0, 2**64, (2, 2 * longest + 64), dtype=np.uint64)
            more[:, : self._multipliers.shape[1]] = self._multipliers
            self._multipliers = more
        # one more than the byte, so that zeros at the end count; a zero behind everything for texts that are empty
        values = np.zeros(int(lengths.sum()) + 1, np.uint64)
        values[:-1] = ids.data[ids.offset[0] : ids.offset[-1]]
        values[:-1] += np.uint64(1)
        place = np.arange(len(values) - 1) - np.repeat(begin, lengths)
        one, two = (self._sums(values, place, begin, lengths, row) for row in range(2))
        return mixed(one) + two, one

    def _sums(self, values: Words, place: Any, begin: Any, lengths: Any, row: int) -> Words:
        """Sum over the bytes of a text of byte times the multiplier of its place, modulo 2^64."""
        products = values.copy()
        products[:-1] *= self._multipliers[row][place]
        return np.where(lengths > 0, np.add.reduceat(products, begin) if len(begin) else products[:0], np.uint64(0))


def _refuse_collision(same: NDArray[np.bool_]) -> None:
    """Refuse two ids with one key, which happens by chance once in 10^5 runs over ten million queries."""
    if not same.all():
        raise RankwiseError("two query ids have the same hash of 64 bits: try again, hashes are drawn anew")
