"""`OnlineRounds`: an online ranker prepared to learn from one list at a time, as :class:`rankwise.Scorer` is to rank.

A call of ``partial_fit`` learns, and then brings the whole account up to date: ledger, history, fingerprints and a
digest of the state. For one list the account costs many times the round. :class:`OnlineRounds` runs each round when its
list comes, and settles the account of many rounds together, by the same code and therefore with the same bits.
"""

from functools import lru_cache
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Numbers, Vector
from rankwise._kernels.machine.jit import typed_function
from rankwise._tables import facts_html
from rankwise.errors import DataError, RankwiseError
from rankwise.losses.compute import KERNEL, label_classes
from rankwise.measures.compute import ScoredLists
from rankwise.queries.fingerprints import SKETCHED, column_keys, pack_marks, projection_signs
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers.online.learner import GATHERED, LinearOnlineLearner
from rankwise.solvers.online.config import OnlineConfig, RoundLog, State
from rankwise.solvers.online.loop import BlockOutcome, RoundInputs, RoundOutputs, round_log, rounds_on, weight_arrays

# Lists whose account waits, at most.
_WAITING = 1024
_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))
_FLOATS = ("w", "sums", "moments", "sizes", "scale")  # the fields of a state that can become too large for float64
_FIRST, _NO_ROWS, _NO_WEIGHT = np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0)


class OnlineRounds:
    """The run of an online ranker, prepared to learn from single lists in microseconds.

    Parameters
    ----------
    model : SLAMPerceptron, MaxPairPerceptron, OnlineRanker or ListNet
        A linear online ranker, fitted or not. It goes on from where it is, and is brought up to date by
        :meth:`settle`, at the end of a ``with`` block, and whenever some thousand documents have come.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights after the last list; ``Scorer.with_coef`` ranks with them.

    Notes
    -----
    Between two settlements the model is what it was at the first of them, as a whole. However the same lists are
    divided into calls of :meth:`learn`, settlements and calls of ``partial_fit``, the model has the same weights,
    ledger, fingerprints and digest, to the bit. One thread at a time may call these methods.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(50, random_state=0)
    >>> model = rw.SLAMPerceptron()
    >>> with rw.OnlineRounds(model) as rounds:
    ...     for query in queries:
    ...         rounds.learn(query.X, query.y)
    >>> bool((model.coef_ == rw.SLAMPerceptron().fit(queries).coef_).all()), model.ledger_.rounds
    (True, 50)
    """

    def __init__(self, model: LinearOnlineLearner) -> None:
        if not isinstance(model, LinearOnlineLearner):
            raise DataError(f"OnlineRounds requires a linear online ranker, got {type(model).__name__}")
        self._model = model
        self._one: SingleRounds | None = None
        self._began: State | None = None
        self._adopt()

    def _adopt(self) -> None:
        """Go on from the state of the model."""
        model = self._model
        self._began = getattr(model, "state_", None)
        # the first list tells the width; raw tables are built; random rankings have a loop of their own
        depth = None if self._began is None else model.ledger_.config.feedback_depth
        if self._began is None or model.record_.builder is not None or depth is not None:
            self._one = None
            return
        # a run of an older version has no fingerprints
        self._one = SingleRounds(model.ledger_.config, self._began, model.record_.seen is not None, GATHERED, _WAITING)

    @property
    def coef_(self) -> Vector:
        """The weights after the last list."""
        if self._one is None:
            return np.array(self._model.coef_)
        return self._one.state.coef(self._one.config.averaging)

    def learn(self, X: Any, y: ArrayLike | None = None) -> None:
        """Predict one list, then learn from it.

        Parameters
        ----------
        X : array of shape (n_documents, n_features), or Query
            The features of the documents.
        y : array of shape (n_documents,), default=None
            The labels, if X is an array.

        Raises
        ------
        DataError
            If the list does not fit the model; nothing is learned from it then.
        """
        if y is None and type(X) is Query and X.weight == 1.0 and X.feature_names is None:
            X, y = (X.X, X.y) if X.document_weight is None else (X, None)
        # the conditions under which compiled code reads the same numbers as partial_fit
        if (
            self._one is not None
            and type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.ndim == 2
            and y.ndim == 1
            and len(X) == len(y)
            and X.shape[1] == self._model.n_features_in_
            and X.dtype in _PLAIN
            and y.dtype in _PLAIN
            and X.flags.c_contiguous
            and 0 < len(X) <= GATHERED
        ):
            if not self._one.has_room(len(X)):
                self.settle()
            if self._one.play(X, y):
                return
        self._carefully(X, y)

    def _carefully(self, X: Any, y: Any) -> None:
        """Learn by ``partial_fit``, which takes more kinds of data, and says what is wrong with others."""
        self.settle()
        self._model.partial_fit(X, y)
        self._adopt()

    def settle(self) -> LinearOnlineLearner:
        """Bring the model up to date.

        Returns
        -------
        LinearOnlineLearner
            The model, with everything that was learned.

        Raises
        ------
        RankwiseError
            If the model has learned from something else meanwhile: what waits would be lost, or counted wrongly.
        """
        if getattr(self._model, "state_", None) is not self._began:
            raise RankwiseError(
                f"this {self._model.name} has learned outside of its OnlineRounds: pass queries to only one of them"
            )
        if self._one is not None and self._one.rounds:
            self._model._continue(*self._one.finished())
            self._adopt()
        return self._model

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.settle()

    def __repr__(self) -> str:
        return f"OnlineRounds({self._model.name}, {0 if self._one is None else self._one.rounds:,} lists to settle)"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return facts_html(self, {"model": self._model.name, "lists to settle": self._one.rounds if self._one else 0})


# ------------------------------------------------------------------------------------------ rounds without an account


class _FlatState:
    """A state whose numbers lie one after the other, so they are copied and checked in one go."""

    def __init__(self, state: State) -> None:
        self.floats = np.concatenate([getattr(state, name).ravel() for name in _FLOATS])
        self.counts = state.counts.copy()
        ends = np.cumsum([getattr(state, name).size for name in _FLOATS])[:-1]
        parts = dict(zip(_FLOATS, np.split(self.floats, ends), strict=True))
        shaped = {name: part.reshape(getattr(state, name).shape) for name, part in parts.items()}
        self.state = State(counts=self.counts, **shaped)
        self.arrays = weight_arrays(self.state)

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
        self._scaled = config.scale != "none"
        self._l1_radius = float(config.max_norm) if config.projection == "l1" else None
        self._numbers = (
            np.array(config.loss.params(), dtype=np.float64),
            config.as_numbers(),
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

    def play(self, X: Array, y: Array) -> bool:
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
        if not (np.isfinite(X).all() and labels.min() >= 0.0 and labels.max() < np.inf):  # not NaN either
            return False
        measure, loss, start = self.config.measure, self.config.loss, _start(size)
        grade = label_classes(measure.row_values(labels) if measure.binary else labels, start)
        label, value = loss.prepare(labels, start, None)
        after = self._next
        after.become(self._now)
        one = slice(r, r + 1)
        inputs = RoundInputs(
            _FIRST, start, _NO_ROWS, X, labels, grade, label, value, _NO_WEIGHT, self._table(size), *self._numbers
        )
        outputs = RoundOutputs(
            self._scores[first : first + size],
            self._loss[one],
            self._mistake[one],
            self._hashes[one],
            self._sketches[one],
        )
        moments = after.state.moments if self._scaled else None
        done = rounds_on(X.dtype, self._scaled, self._l1_radius is not None)(
            self._kernel, tuple(inputs), after.arrays, tuple(outputs), moments, self._l1_radius
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
        shown = BlockOutcome(
            self._scores[:documents],
            self._loss[:rounds],
            self._mistake[:rounds],
            pack_marks(self._hashes[:rounds], self._sketches[:rounds]),
        )
        labels = self._labels[:documents]
        lists = ScoredLists(shown.scores, labels, start)
        log = round_log(self.config, np.arange(rounds), lists, self._value[:documents], None, shown)
        return self._now.state.copy(), log, Queries._trusted(np.empty((documents, 0)), labels, start)


@lru_cache(256)
def _start(size: int) -> Numbers:
    """Where the only list begins and ends."""
    return np.array([0, size], np.int64)
