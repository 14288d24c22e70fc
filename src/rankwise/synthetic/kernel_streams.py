"""`KernelStream`: simulated streams of judged queries that a known function in the space of the rbf kernel ranks."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import NonNegativeInt, NumberRange, PositiveFloat
from rankwise.errors import RankwiseError
from rankwise.queries.checks import as_range
from rankwise.queries.queries import Queries
from rankwise.synthetic.streams import JudgedStream, seed_of

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Documents that are drawn together. It decides the bits of a stream, so it is part of its definition.
_BLOCK_DOCUMENTS = 1 << 13
# Points that thresholds and the share of accepted documents are computed from.
_SAMPLED = 4096
# The smallest share of documents outside of the gaps between grades.
_FEWEST = 0.02
# More than rounding can take away from a difference of scores.
_GUARD = 1e-9


@dataclass(frozen=True, kw_only=True)
class KernelStream(JudgedStream):
    r"""A stream of judged queries with a comparator of norm 1 in the space of the rbf kernel.

    .. math:: u_t(x) = \sum_a b_a(t)\, e^{-\gamma \lVert x - p_a \rVert^2}, \qquad b(t)^\top K b(t) = 1,

    with hidden anchors p. Documents are uniform in [-1, 1]^features; the grade of a document is the number of
    thresholds below u_t(x), and documents within margin / 2 of a threshold are drawn again. So documents of different
    grades in one query differ by at least ``margin`` along u_t, and every document has norm 1 in that space. With
    ``angle`` above 0 the comparator turns by so many radians per round, toward another function of norm 1.

    :func:`kernel_stream` makes streams. The same seed gives the same bits, however the stream is read.

    Parameters
    ----------
    n_queries : int
        The number of rounds.
    documents : (int, int)
        (fewest, most) documents per query.
    features : int
        The number of features.
    grades : int
        Labels are 0 .. grades - 1.
    gamma : float
        gamma of the kernel.
    anchors : int
        The number of anchors.
    margin : float
        The smallest difference along the comparator of two documents of different grades in one query.
    angle : float, default=0.0
        The angle by which the comparator turns per round, in radians.
    seed : int, default=0
        The seed of the random numbers.

    Examples
    --------
    >>> stream = kernel_stream(200, margin=0.1)
    >>> query = next(iter(stream))
    >>> best = stream.comparator(query.X)
    >>> gaps = best[:, None] - best
    >>> bool((gaps[query.y[:, None] > query.y] >= 0.1).all())
    True
    """

    gamma: PositiveFloat
    anchors: Annotated[int, NumberRange(2)]
    margin: PositiveFloat
    angle: float = 0.0
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._is_clear(self._sample_scores).mean() < _FEWEST:
            raise RankwiseError(
                f"margin={self.margin:g} leaves no room for {self.grades} grades: the scores of the comparator reach "
                f"from {self._sample_scores.min():.2g} to {self._sample_scores.max():.2g}"
            )

    def comparator(self, X: Matrix, t: int = 0) -> Vector:
        """u_t(x), the scores of the comparator of norm 1.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_features)
            Documents.
        t : int, default=0
            The round, counted from 0.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores.
        """
        return self._scores(np.asarray(X, dtype=np.float64), np.full(len(X), t))

    @property
    def _block_queries(self) -> int:
        return max(1, _BLOCK_DOCUMENTS // self.documents[1])

    @cached_property
    def _functions(self) -> tuple[Matrix, Matrix]:
        """The anchors, and the coefficients of two functions of norm 1 that are orthogonal to each other."""
        random = np.random.default_rng([self.seed, 0])
        points = random.uniform(-1.0, 1.0, (self.anchors, self.features))
        K = np.exp(-self.gamma * ((points[:, None] - points) ** 2).sum(axis=-1))
        first, other = random.standard_normal((2, self.anchors))
        first /= math.sqrt(_product(first, K, first))
        other -= _product(first, K, other) * first
        other /= math.sqrt(_product(other, K, other))
        return points, np.array([first, other])

    @cached_property
    def _sample_scores(self) -> Vector:
        """Scores of documents by the first comparator."""
        random = np.random.default_rng([self.seed, 2])
        return self.comparator(random.uniform(-1.0, 1.0, (_SAMPLED, self.features)))

    @cached_property
    def _thresholds(self) -> Vector:
        """What divides the grades: quantiles of the scores by the first comparator."""
        return np.quantile(self._sample_scores, np.arange(1, self.grades) / self.grades)

    def _scores(self, X: Matrix, t: NDArray[np.int64]) -> Vector:
        points, (first, other) = self._functions
        turned = np.cos(self.angle * t)[:, None] * first + np.sin(self.angle * t)[:, None] * other
        scores = np.zeros(len(X))
        for place, point in enumerate(points):
            scores += turned[:, place] * np.exp(-self.gamma * ((X - point) ** 2).sum(axis=1))
        return scores

    def _is_clear(self, scores: Vector) -> NDArray[np.bool_]:
        """Whether a score lies outside of the gaps between grades."""
        distance = np.abs(scores[:, None] - self._thresholds).min(axis=1)
        return np.asarray(distance >= self.margin / 2 + _GUARD)

    def _draw(self, number: int) -> Queries:
        """Block ``number``, from a generator of its own."""
        random = np.random.default_rng([self.seed, 1, number])
        rounds, start = self._draw_rounds(number, random)
        owner = np.repeat(rounds, np.diff(start))
        X = np.empty((len(owner), self.features))
        left, scores = np.arange(len(owner)), np.empty(len(owner))
        while len(left):
            X[left] = random.uniform(-1.0, 1.0, (len(left), self.features))
            scores[left] = self._scores(X[left], owner[left])
            left = left[~self._is_clear(scores[left])]
        labels = (scores[:, None] > self._thresholds).sum(axis=1).astype(np.float64)
        return Queries._trusted(X, labels, start.astype(np.int64), qid=rounds)


def _product(a: Vector, K: Matrix, b: Vector) -> float:
    """a' K b, summed in a fixed order."""
    return math.fsum((a[:, None] * K * b).ravel().tolist())


def kernel_stream(
    n_queries: int,
    *,
    documents: int | tuple[int, int] = 8,
    features: int = 2,
    grades: int = 3,
    gamma: float = 4.0,
    anchors: int = 12,
    margin: float = 0.05,
    angle: float = 0.0,
    random_state: int | np.random.Generator = 0,
) -> KernelStream:
    """Simulate judged queries that a hidden function in the space of the rbf kernel ranks perfectly, with a margin.

    No linear ranker solves them. With ``angle`` above 0 the function drifts.

    Parameters
    ----------
    n_queries : int
        The number of rounds.
    documents : int or (int, int), default=8
        The number of documents per query, or (fewest, most), all numbers between being equally likely.
    features : int, default=2
        The number of features, uniform in [-1, 1].
    grades : int, default=3
        Labels are 0 .. grades - 1, about equally frequent in the first round.
    gamma : float, default=4.0
        gamma of the kernel.
    anchors : int, default=12
        The number of kernels that the function is a sum of.
    margin : float, default=0.05
        The smallest difference along the function of norm 1 of two documents of different grades in one query.
    angle : float, default=0.0
        The angle by which the function turns per round, in radians.
    random_state : int or numpy.random.Generator, default=0
        The seed, or a generator from which one is drawn.

    Returns
    -------
    stream : KernelStream
        The stream.
    """
    return KernelStream(
        n_queries=n_queries,
        documents=as_range(documents, "documents"),
        features=features,
        grades=grades,
        gamma=gamma,
        anchors=anchors,
        margin=margin,
        angle=angle,
        seed=seed_of(random_state),
    )
