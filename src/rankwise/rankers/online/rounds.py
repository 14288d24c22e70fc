"""`OnlineRounds`: an online ranker prepared to learn from one list at a time, as :class:`rankwise.Scorer` is to rank.

A call of ``partial_fit`` learns, and then brings the whole account up to date: ledger, history, fingerprints and a
digest of the state. For one list the account costs many times the round. :class:`OnlineRounds` runs each round when its
list comes, and settles the account of many rounds together, by the same code and therefore with the same bits.
"""

from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.selection import Query
from rankwise.rankers.online.learner import GATHERED, LinearOnlineLearner
from rankwise.solvers.online.config import State
from rankwise.solvers.online.single import SingleRounds

Vector = NDArray[np.float64]

# Lists whose account waits, at most.
_WAITING = 1024
_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))


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
            raise DataError(f"rounds are prepared for a linear online ranker: found {type(model).__name__}")
        self._model = model
        self._one: SingleRounds | None = None
        self._began: State | None = None
        self._adopt()

    def _adopt(self) -> None:
        """Go on from the state of the model."""
        model = self._model
        self._began = getattr(model, "state_", None)
        if self._began is None or hasattr(model, "features_"):  # the first list tells the width; raw tables are built
            self._one = None
            return
        # a run of an older version has no fingerprints
        self._one = SingleRounds(model.ledger_.config, self._began, hasattr(model, "seen_"), GATHERED, _WAITING)

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
                f"this {self._model.name} has learned outside of its OnlineRounds: give lists to one of them alone"
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
