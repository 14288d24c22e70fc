"""Rounds of single lists: what a call of the compiled loop needs is prepared once, and the account waits.

:class:`SingleRounds` plays one round per call, from a state of its own. What happened is kept, and
:meth:`SingleRounds.finished` accounts for all rounds together, as :func:`rankwise.solvers.online.loop.run_rounds` does
for a block: any division of the same rounds gives the same bits.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.jit import typed_function
from rankwise.data.fingerprints import SKETCHED, column_keys, packed, projection_signs
from rankwise.data.queries import Queries
from rankwise.losses.compute import KERNEL, label_classes
from rankwise.measures.compute import ScoredLists
from rankwise.solvers.online.config import OnlineConfig, RoundLog, State
from rankwise.solvers.online.loop import Shown, round_log, rounds_on

Vector = NDArray[np.float64]

_FLOATS = ("w", "sums", "moments", "sizes", "scale")  # the fields of a state that can become too large for float64
_FIRST, _NO_ROWS, _NO_WEIGHT = np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0)


class _FlatState:
    """A state whose numbers lie one after the other, so that they are copied and checked in one go."""

    def __init__(self, state: State) -> None:
        self.floats = np.concatenate([getattr(state, name).ravel() for name in _FLOATS])
        self.counts = state.counts.copy()
        ends = np.cumsum([getattr(state, name).size for name in _FLOATS])[:-1]
        parts = dict(zip(_FLOATS, np.split(self.floats, ends), strict=True))
        shaped = {name: part.reshape(getattr(state, name).shape) for name, part in parts.items()}
        self.state = State(counts=self.counts, **shaped)

    def become(self, other: "_FlatState") -> None:
        """Take the numbers of another state."""
        self.floats[:] = other.floats
        self.counts[:] = other.counts


class SingleRounds:
    """Rounds of one list each, whose account is made later.

    Parameters
    ----------
    config : OnlineConfig
        How to learn.
    state : State
        Where the run is; not changed.
    read : bool
        Whether to compute the fingerprints of the lists as well.
    documents, rounds : int
        Room for so many documents and rounds until :meth:`finished`.
    """

    def __init__(self, config: OnlineConfig, state: State, read: bool, documents: int, rounds: int) -> None:
        self.config, self._read = config, read
        self._now, self._next = _FlatState(state), _FlatState(state)
        self._start = [0]
        self._labels, self._value, self._scores = np.empty(documents), np.empty(documents), np.empty(documents)
        self._loss, self._mistake = np.zeros(rounds), np.zeros(rounds, np.bool_)
        kept = rounds if read else 0
        self._hashes, self._sketches = np.zeros(kept, np.uint64), np.zeros((kept, SKETCHED), np.uint32)
        features = len(state.w)
        self._scaled, self._onto_l1 = config.scale != "none", config.projection == "l1"
        self._given = (
            np.array(config.loss.params(), dtype=np.float64),
            config.as_numbers(),
            float(config.max_norm) if self._onto_l1 else None,
            column_keys(features + 1),
            projection_signs(features),
        )
        self._kernel = typed_function(type(config.loss).kernel, KERNEL)
        self._table = lru_cache(64)(lambda size: np.ascontiguousarray(config.loss.table(size)))

    @property
    def state(self) -> State:
        """The state after the last round; the next round but one changes it."""
        return self._now.state

    @property
    def rounds(self) -> int:
        """Rounds since the beginning."""
        return len(self._start) - 1

    def has_room(self, documents: int) -> bool:
        """Whether a list of so many documents fits before :meth:`finished`."""
        return self._start[-1] + documents <= len(self._labels) and self.rounds < len(self._loss)

    def play(self, X: NDArray[Any], y: NDArray[Any]) -> bool:
        """One round, if the numbers allow it.

        Parameters
        ----------
        X : ndarray of float32 or float64, shape (n_documents, n_features)
            The features, C-contiguous; at least one document.
        y : ndarray, shape (n_documents,)
            The labels.

        Returns
        -------
        played : bool
            False if something is not finite or a label is negative; nothing has changed then.
        """
        r, first, size = self.rounds, self._start[-1], len(y)
        labels = self._labels[first : first + size]
        labels[:] = y
        if not (np.isfinite(X).all() and np.isfinite(labels).all() and labels.min() >= 0.0):
            return False
        measure, loss, start = self.config.measure, self.config.loss, _start(size)
        grade = label_classes(measure.row_values(labels) if measure.binary else labels, start)
        label, value = loss.prepare(labels, start, None)
        after = self._next
        after.become(self._now)
        state = after.state
        one = slice(r, r + 1)
        done = rounds_on(X.dtype, self._scaled, self._onto_l1)(
            self._kernel,
            _FIRST,
            start,
            _NO_ROWS,
            X,
            labels,
            grade,
            label,
            value,
            _NO_WEIGHT,
            self._table(size),
            *self._given,
            state.w,
            state.sums,
            state.moments if self._scaled else None,
            state.counts,
            state.sizes,
            state.scale,
            self._scores[first : first + size],
            self._loss[one],
            self._mistake[one],
            self._hashes[one],
            self._sketches[one],
        )
        if not done or not np.isfinite(after.floats).all():
            self._loss[one], self._hashes[one], self._sketches[one] = 0.0, 0, 0
            return False
        self._value[first : first + size] = value
        self._start.append(first + size)
        self._now, self._next = after, self._now
        return True

    def finished(self) -> tuple[State, RoundLog, Queries]:
        """The state after all rounds, what happened in them, and their lists without features."""
        rounds, documents, start = self.rounds, self._start[-1], np.array(self._start, np.int64)
        shown = Shown(
            self._scores[:documents],
            self._loss[:rounds],
            self._mistake[:rounds],
            packed(self._hashes[:rounds], self._sketches[:rounds]),
        )
        labels = self._labels[:documents]
        lists = ScoredLists(shown.scores, labels, start)
        log = round_log(self.config, np.arange(rounds), lists, self._value[:documents], None, shown)
        return self._now.state.copy(), log, Queries._trusted(np.empty((documents, 0)), labels, start)


@lru_cache(256)
def _start(size: int) -> NDArray[np.int64]:
    """Where the only list begins and ends."""
    return np.array([0, size], np.int64)
