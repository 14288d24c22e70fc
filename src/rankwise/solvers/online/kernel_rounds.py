"""Rounds of perceptrons with a kernel: on mapped features, or with a budget of stored documents.

:class:`MappedRunner` maps the documents of a block and runs the rounds of linear weights on them.
:class:`BudgetRunner` keeps the documents that taught something, and scores by s(x) = sum_j c_j k(x_j, x). Both are
runners for :func:`rankwise.solvers.online.loop.run_rounds`: blocks, threads and logs are those of linear weights.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Self

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS, MATRIX, compiled, kernel
from rankwise._kernels.mercer import expansion_score, norm_in_space
from rankwise.queries.fingerprints import fingerprint_query, fingerprints
from rankwise.solvers.online.loop import (
    CUT,
    ETA,
    BlockOutcome,
    QueryBlock,
    RoundInputs,
    RoundOutputs,
    RoundRunner,
    is_mistake,
    make_buffers,
    rounds_signature,
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Removal = Literal["oldest", "smallest"]

# Mapped values per block of rounds, 16 MB.
_MAPPED_VALUES = 1 << 21

# Places in ``counts``, and of the largest norm in ``sizes``.
ROUNDS, STORED, REMOVED = range(3)
LARGEST = 1


# ---------------------------------------------------------------------------------------------------- mapped features


@dataclass(frozen=True)
class MappedRunner(RoundRunner):
    """Rounds of linear weights on features that a transformer makes; fingerprints are those of the raw queries.

    Attributes
    ----------
    transformer : object
        A fitted transformer that gives a row the same bits alone and among others.
    """

    transformer: Any = None

    def block_documents(self, threads: int) -> int:
        """Documents whose mapped features are held at a time."""
        return max(1, min(super().block_documents(threads), _MAPPED_VALUES // max(1, len(self.state.w))))

    def present(self, part: QueryBlock) -> BlockOutcome:
        """Show the queries one after the other."""
        queries = self.queries[part.order]
        mapped = queries.map_features(self.transformer.transform)
        rounds = RoundRunner(self.config, mapped, self.state)
        shown = rounds.present(replace(part, order=np.arange(len(part.order))))
        return shown._replace(marks=fingerprints(queries, n_jobs=1)) if self.read else shown


# ----------------------------------------------------------------------------------------------------------- a budget


@dataclass(frozen=True)
class BudgetState:
    """Everything that the next round depends on; a state is never changed, and its size is fixed.

    Attributes
    ----------
    documents : ndarray, shape (budget, n_features)
        Stored documents, the oldest first; rows beyond the number stored are 0.
    c : ndarray, shape (budget,)
        Their coefficients.
    born : ndarray of int64, shape (budget,)
        The round that stored each of them.
    counts : ndarray of int64, shape (3,)
        Number of rounds, of documents stored now, and of documents that were removed.
    sizes : ndarray, shape (2,)
        0, and the largest norm sqrt(k(x, x)) of a document of a query that was learned from.
    """

    documents: Matrix
    c: Vector
    born: NDArray[np.int64]
    counts: NDArray[np.int64]
    sizes: Vector

    @classmethod
    def fresh(cls, budget: int, features: int) -> Self:
        """The state before the first round: nothing is stored."""
        return cls(
            np.zeros((budget, features)),
            np.zeros(budget),
            np.zeros(budget, np.int64),
            np.zeros(3, np.int64),
            np.zeros(2),
        )

    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
        return int(self.counts[ROUNDS])

    @property
    def stored(self) -> int:
        """Number of documents that are stored."""
        return int(self.counts[STORED])

    @property
    def removed(self) -> int:
        """Number of documents that were removed."""
        return int(self.counts[REMOVED])

    @property
    def radius(self) -> float:
        """The largest norm in the space of the kernel of a document of a query that was learned from."""
        return float(self.sizes[LARGEST])

    @property
    def feedback(self) -> None:
        """None: such runs see all labels."""

    def copy(self) -> "BudgetState":
        """A copy that the compiled loop may write into."""
        return BudgetState(*(getattr(self, name).copy() for name in self.__dataclass_fields__))


@kernel
def _first_to_drop(c, born, count, smallest):
    """(first, last) of the stored documents of the oldest round, or of the round whose c has the smallest norm."""
    best, best_first, best_last = np.inf, 0, 0
    first = 0
    while first < count:
        last, square = first, 0.0
        while last < count and born[last] == born[first]:
            square += c[last] * c[last]
            last += 1
        if square < best:
            best, best_first, best_last = square, first, last
        if not smallest:
            break
        first = last
    return best_first, best_last


@kernel
def make_room(needed, documents, c, born, counts, smallest):
    """Drop the documents of whole rounds until so many more fit; the others move up and keep their order."""
    while counts[STORED] + needed > len(c) and counts[STORED] > 0:
        count = counts[STORED]
        first, last = _first_to_drop(c, born, count, smallest)
        gap = last - first
        for j in range(last, count):
            documents[j - gap] = documents[j]
            c[j - gap], born[j - gap] = c[j], born[j]
        for j in range(count - gap, count):
            documents[j] = 0.0
            c[j], born[j] = 0.0, 0
        counts[STORED] -= gap
        counts[REMOVED] += gap


@kernel
def store_documents(X, own, step, documents, c, born, counts, smallest):
    """Store the documents whose step is not 0; of more than the budget, those of the largest steps."""
    needed = 0
    for p in range(len(own)):
        needed += step[p] != 0.0
    if needed > len(c):
        order = np.argsort(-np.abs(step), kind="mergesort")
        for place in range(len(c), len(order)):
            counts[REMOVED] += step[order[place]] != 0.0
            step[order[place]] = 0.0
        needed = len(c)
    make_room(needed, documents, c, born, counts, smallest)
    for p in range(len(own)):
        if step[p] != 0.0:
            j = counts[STORED]
            for f in range(documents.shape[1]):
                documents[j, f] = X[own[p], f]
            c[j], born[j] = step[p], counts[ROUNDS]
            counts[STORED] = j + 1


def _play_budget_rounds(kernel, inputs, state, outputs, shape, smallest):
    """Show the queries one after the other; returns how many, fewer only if a score overflowed.

    ``shape`` has the parameters of the Mercer kernel.
    """
    order, start, rows, X, judged, grade, label, value, weight, table, params, config, keys, signs = inputs
    documents, c, born, counts, sizes = state
    scores, losses, mistaken, hashes, sketches = outputs
    gradient, places, top, class_size, clear, spot, cells, words = make_buffers(order, start)
    end = 0
    for r in range(len(order)):
        low, size = start[order[r]], start[order[r] + 1] - start[order[r]]
        counts[ROUNDS] += 1
        s, g = scores[end : end + size], gradient[:size]
        y, v, cls = label[end : end + size], value[end : end + size], grade[end : end + size]
        own = places[:size] if len(rows) == 0 else rows[low : low + size]
        if len(rows) == 0:
            for p in range(size):
                places[p] = low + p
        for p in range(size):
            s[p] = expansion_score(X[own[p]], documents, c, counts[STORED], shape)
            if not math.isfinite(s[p]):
                return r
        if len(hashes) > 0:
            judgments = judged[end : end + size]
            hashes[r] = fingerprint_query(own, X, judgments, keys, signs, words, spot, cells, sketches[r])
        end += size
        mistaken[r] = size > 0 and is_mistake(s, cls, config[CUT], top, class_size, clear)
        if not mistaken[r]:
            continue
        query_weight = 1.0 if len(weight) == 0 else weight[order[r]]
        for p in range(size):
            g[p] = 0.0
        losses[r] = query_weight * kernel(s, y, v, g, table, params)
        for p in range(size):
            sizes[LARGEST] = max(sizes[LARGEST], norm_in_space(X[own[p]], shape))
            g[p] *= -config[ETA] * query_weight
        store_documents(X, own, g, documents, c, born, counts, smallest)
    return len(order)


@cache
def budget_rounds_on(dtype: np.dtype[Any]) -> Any:
    """The loop compiled for this type of X."""
    state = (MATRIX, FLOATS, INTS, INTS, FLOATS)
    return compiled(kernel(_play_budget_rounds), rounds_signature(dtype, state, FLOATS_IN, types.boolean))


@dataclass(frozen=True)
class BudgetRunner(RoundRunner):
    """Rounds of a perceptron that stores documents.

    Attributes
    ----------
    shape : ndarray, shape (4,)
        The parameters of the Mercer kernel.
    removal : {"oldest", "smallest"}
        Which round's documents are removed.
    """

    shape: Any = None
    removal: Removal = "oldest"

    def _run(self, kernel: Any, inputs: RoundInputs, outputs: RoundOutputs) -> int:
        """Run the compiled loop; returns the number of queries that were scored."""
        loop, state = budget_rounds_on(inputs.X.dtype), tuple(vars(self.state).values())
        return int(loop(kernel, tuple(inputs), state, tuple(outputs), self.shape, self.removal == "smallest"))
