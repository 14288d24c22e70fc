r"""The adversary of the lower bound: it forces floor(4 R^2 / gamma^2) - 1 mistakes on any deterministic ranker.

Round i shows the rows R e_{i+1}, -R e_{i+1}, and R e_1 for every further document. Whatever ranking is published, the
only relevant document is the first one, or the second one if the first was ranked at the top. Yet

.. math:: u_1 = -a, \qquad u_{i+1} = \pm a \text{ (plus where document 1 was relevant)}, \qquad a = 1/\sqrt{T + 1},

is a unit vector that ranks all T rounds with margin 2 R a >= gamma. With two documents e_1 is not needed: T is larger
by one, and a = 1/sqrt(T). Every round costs at least 1/2 of AP and 1 - 1/log2(3) = 0.369 of NDCG. Since the max-pair
perceptron makes at most 4 R^2 / gamma^2 mistakes, neither bound can be improved by more than one.

The paper has the construction with a quarter of the rounds, and attaches the signs to the wrong coordinates.

References
----------
S. Chaudhuri, A. Tewari (2015). Perceptron-like algorithms for online learning to rank. arXiv:1508.00842.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NumberRange, PositiveFloat, check_parameters
from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query

Vector = NDArray[np.float64]


class Opponent(Protocol):
    """What the adversary plays against: a ranker that predicts and learns.

    Before it has learned anything, ``predict`` may raise a ValueError, as unfitted estimators do.
    """

    def predict(self, X: Vector, /) -> ArrayLike:
        """One score per row; a higher one is ranked first."""

    def partial_fit(self, query: Query, /) -> Any:
        """Learn from one judged query."""


@dataclass(frozen=True, kw_only=True)
class Adversary(ShownAsFacts):
    """Rounds that a unit vector separates by ``gamma`` and that no deterministic ranker gets right.

    Parameters
    ----------
    gamma : float
        Margin of the comparator.
    radius : float, default=1.0
        Norm of every row.
    documents : int, default=3
        Documents per round, 2 or more.

    Attributes
    ----------
    rounds : int
        Number of forced mistakes: floor(4 radius^2 / gamma^2), less 1 for three or more documents.
    features : int
        Number of features of the rows.

    Examples
    --------
    >>> adversary = Adversary(gamma=0.5)
    >>> adversary.rounds, adversary.features
    (15, 16)
    >>> adversary.show(0)[:, :3]
    array([[ 0.,  1.,  0.],
           [ 0., -1.,  0.],
           [ 1.,  0.,  0.]])
    """

    gamma: PositiveFloat
    radius: PositiveFloat = 1.0
    documents: Annotated[int, NumberRange(2)] = 3

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.rounds < 1:
            raise RankwiseError(
                f"with {self.documents} documents no mistake can be forced at so large a margin, got "
                f"gamma={self.gamma}, radius={self.radius}"
            )

    @property
    def rounds(self) -> int:
        """The number of forced mistakes."""
        return self.features - self._fixed

    @property
    def features(self) -> int:
        """The number of features of the rows."""
        # Exact arithmetic: 0.2 in binary is a little more than 1/5, so 99 fit and not 100.
        return math.floor(4 * Fraction(self.radius) ** 2 / Fraction(self.gamma) ** 2)

    @property
    def _fixed(self) -> int:
        """Coordinates that belong to no round."""
        return 1 if self.documents > 2 else 0

    def show(self, i: int) -> Vector:
        """The rows of round ``i``, counted from 0; they do not depend on the earlier rounds."""
        X = np.zeros((self.documents, self.features))
        X[2:, 0] = self.radius
        X[0, i + self._fixed] = self.radius
        X[1, i + self._fixed] = -self.radius
        return X

    def answer(self, order: ArrayLike) -> Vector:
        """Labels for a published ranking; its top document is never relevant.

        Parameters
        ----------
        order : array-like of int, shape (documents,)
            Documents by position, numbered from 0.

        Returns
        -------
        ndarray, shape (documents,)
            Labels: 1 for one document, 0 for the others.

        Raises
        ------
        RankwiseError
            If ``order`` is no ranking of the documents.
        """
        ranking = np.asarray(order)
        if not np.array_equal(np.sort(ranking), np.arange(self.documents)):
            raise RankwiseError(
                f"a ranking must be a permutation of the {self.documents} documents, counted from 0, got {order!r}"
            )
        labels = np.zeros(self.documents)
        labels[1 if ranking[0] == 0 else 0] = 1.0
        return labels

    def comparator(self, first_relevant: ArrayLike) -> Vector:
        """The unit vector that ranks all rounds with the margin.

        Parameters
        ----------
        first_relevant : array-like of bool, shape (rounds,)
            Whether document 1 was relevant, for every round.

        Returns
        -------
        ndarray, shape (features,)
            The comparator.
        """
        signs = np.asarray(first_relevant, dtype=bool)
        if signs.shape != (self.rounds,):
            raise RankwiseError(f"signs must hold one answer per round ({self.rounds:,}), got shape {signs.shape}")
        u = np.full(self.features, -1.0)
        u[self._fixed :][signs] = 1.0
        return u / math.sqrt(self.features)


@dataclass(frozen=True, eq=False)
class Game(ShownAsFacts):
    """A finished game: the rounds as judged queries, and the comparator that makes no mistake on them.

    Attributes
    ----------
    adversary : Adversary
        The adversary.
    first_relevant : ndarray of bool, shape (rounds,)
        Whether the first document was the relevant one, for every round.
    mistakes : int
        Rounds in which the relevant document was not ranked first.
    """

    adversary: Adversary
    first_relevant: NDArray[np.bool_]
    mistakes: int

    def __len__(self) -> int:
        return len(self.first_relevant)

    def __iter__(self) -> Iterator[Query]:
        """The rounds as judged queries, one by one."""
        return (_judge(self.adversary, i, bool(first)) for i, first in enumerate(self.first_relevant))

    def queries(self) -> Queries:
        """All rounds as one set of queries."""
        X, y = zip(*((query.X, query.y) for query in self), strict=True)
        return Queries.from_arrays(np.concatenate(X), np.concatenate(y), group=[self.adversary.documents] * len(self))

    @property
    def comparator(self) -> Vector:
        """The unit vector that ranks every round with the margin."""
        return self.adversary.comparator(self.first_relevant)

    @one_blas_thread()
    def margin(self) -> float:
        """The smallest gap of the comparator between a relevant document and another, computed from the rows."""
        u = self.comparator
        scores = ((query.X @ u, query.y) for query in self)
        return min(float(s[y == 1].min() - s[y == 0].max()) for s, y in scores)


def play(ranker: Opponent, adversary: Adversary) -> Game:
    """Play the adversary against a ranker: in every round it predicts, receives the labels, and learns.

    A ranker that cannot predict the first round, because it has learned nothing, publishes the documents in the order
    in which they were given, as weights of 0 would.

    Parameters
    ----------
    ranker : object
        Has ``predict(X)``, one score per row, and ``partial_fit(query)``. The bound is about deterministic rankers,
        though no randomness helps against labels that are chosen after the published ranking.
    adversary : Adversary
        The adversary.

    Returns
    -------
    Game
        The game; its ``mistakes`` are ``adversary.rounds``.

    Examples
    --------
    >>> class Indifferent:
    ...     def predict(self, X):
    ...         return [0.0] * len(X)
    ...
    ...     def partial_fit(self, query):
    ...         pass
    >>> game = play(Indifferent(), Adversary(gamma=0.25))
    >>> game.mistakes, game.margin()
    (63, 0.25)
    """
    first_relevant = np.zeros(adversary.rounds, dtype=bool)
    mistakes = 0
    for i in range(adversary.rounds):
        order = publish(_scores(ranker, adversary.show(i), i), adversary.documents)
        labels = adversary.answer(order)
        first_relevant[i] = labels[0] == 1
        mistakes += int(labels[order[0]] == 0)
        ranker.partial_fit(_judge(adversary, i, bool(first_relevant[i])))
    return Game(adversary, first_relevant, mistakes)


def _scores(ranker: Opponent, X: Vector, i: int) -> ArrayLike:
    """The ranker's scores; zeros in the first round if it cannot predict yet."""
    try:
        return ranker.predict(X)
    except ValueError:
        if i > 0:
            raise
        return np.zeros(len(X))


def publish(scores: ArrayLike, documents: int) -> NDArray[np.int64]:
    """The ranking of these scores: higher scores first, equal ones in the order in which they were given."""
    s = np.asarray(scores, dtype=np.float64)
    if s.shape != (documents,) or not np.isfinite(s).all():
        raise RankwiseError(f"predict must return one finite score per row ({documents}), got {scores!r}")
    return np.argsort(-s, kind="stable")


def _judge(adversary: Adversary, i: int, first: bool) -> Query:
    """Round ``i`` as a judged query."""
    y = np.zeros(adversary.documents)
    y[0 if first else 1] = 1.0
    return Query(X=adversary.show(i), y=y, qid=i, docid=None, weight=1.0, feature_names=None)
