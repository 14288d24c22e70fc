"""Judged lists laid out grade after grade: the form in which pairs of different grades are summed over."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise.data.queries import Queries

Vector = NDArray[np.float64]
Ints = NDArray[np.int64]

# Looks at a pair that are worth a thread of their own, and the most parts that pairs are shared out in.
_WORK, _PARTS = 1 << 20, 8


@dataclass(frozen=True)
class GradedLists:
    """The documents of lists that count, in places: first those that have pairs, list after list, worst grade first.

    Attributes
    ----------
    rows : the row of X at each place; lists of a single grade come last, lists of weight 0 not at all
    segment : segment g of equal grade has the places segment[g] .. segment[g+1]-1; the last entry is the number of
        documents that have pairs
    lists : list q has the segments lists[q] .. lists[q+1]-1, two or more
    weight : one number a list, above 0
    """

    rows: Ints
    segment: Ints
    lists: Ints
    weight: Vector

    @classmethod
    def of(cls, queries: Queries) -> Self:
        """Places are found list by list, so that scattered rows give the same ones as grouped rows."""
        label, rows = queries.labels()[queries.rows], queries.rows
        owner = np.repeat(np.arange(len(queries)), queries.sizes)
        weight = np.ones(len(queries)) if queries.weight is None else queries.weight
        order = np.lexsort((label, owner))  # stable
        label = label[order]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (label[1:] != label[:-1]) | (owner[1:] != owner[:-1])
        grades = np.bincount(owner[begins], minlength=len(queries))
        paired = ((grades > 1) & (weight > 0))[owner]
        alone = ((grades == 1) & (weight > 0))[owner]
        counted = (grades > 1) & (weight > 0)
        return cls(
            rows=rows[np.concatenate([order[paired], order[alone]])],
            segment=np.append(np.flatnonzero(begins[paired]), paired.sum()),
            lists=np.concatenate([[0], np.cumsum(grades[counted])]),
            weight=weight[counted],
        )

    @property
    def n_paired(self) -> int:
        """Documents that have pairs."""
        return int(self.segment[-1])

    @cached_property
    def pairs(self) -> Vector:
        """The number of pairs of each list."""
        sizes = np.diff(self.segment).astype(np.float64)
        worse = self.segment[:-1] - np.repeat(self.segment[self.lists[:-1]], np.diff(self.lists))
        return np.add.reduceat(sizes * worse, self.lists[:-1]) if len(self.lists) > 1 else np.empty(0)

    def chunks(self, work: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of lists with about the same number of pairs; the more ``work``, the more of them."""
        parts = min(1 + work // _WORK, _PARTS)
        done = np.append(0.0, np.cumsum(self.pairs))
        bounds = np.unique(np.searchsorted(done, np.linspace(0, done[-1], parts + 1)))
        return list(pairwise(np.unique([0, *bounds.tolist(), len(self.pairs)]).tolist()))
