"""`Stream`: simulated streams of judged queries whose best linear ranker is known.

:func:`separable_stream`, :func:`noisy_stream` and :func:`drifting_stream` make streams in which one weight vector ranks
all queries perfectly, some judgments are wrong, or the best weight vector turns.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeInt, NumberRange, PositiveInt, check_parameters
from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.queries.checks import as_range, as_whole
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]
Flip = Literal["labels", "queries"]

# Feature values that are drawn together (2 MB). It decides the bits of a stream, so it is part of its definition.
_BLOCK_VALUES = 1 << 18
# How far documents lie from the line of the comparator, root mean square, in units of the radius.
_SPREAD = 0.5


@dataclass(frozen=True, kw_only=True)
class JudgedStream(ShownAsFacts, ABC):
    """Judged queries that are drawn block by block, each from a generator of its own, and never held as a whole.

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
    """

    n_queries: PositiveInt
    documents: tuple[int, int]
    features: PositiveInt
    grades: Annotated[int, NumberRange(2)]

    def __post_init__(self) -> None:
        check_parameters(self)
        self.__dict__.update({name: one.item() for name, one in vars(self).items() if isinstance(one, np.generic)})
        fewest, most = as_range(self.documents, "documents")
        if not 1 <= fewest <= most:
            raise RankwiseError(f"documents must be at least 1 per query, the fewest first, got {self.documents}")

    def __len__(self) -> int:
        return self.n_queries

    def __iter__(self) -> Iterator[Query]:
        """The judged queries, one after the other."""
        return (query for block in self.blocks() for query in block)

    def blocks(self, *, first: int = 0) -> Iterator[Queries]:
        """The stream in blocks of whole queries, as :func:`rankwise.iter_letor` gives them.

        A block takes about 2 MB, or one query if that takes more. The query ids are the numbers of the rounds.

        Parameters
        ----------
        first : int, default=0
            The first round.

        Returns
        -------
        blocks : iterator of Queries
            The queries from round ``first`` on.
        """
        if not 0 <= first <= self.n_queries:
            raise RankwiseError(f"first must be a round of this stream, 0 to {self.n_queries:,}, got {first}")
        return self._blocks(first)

    def _blocks(self, first: int) -> Iterator[Queries]:
        """The blocks from a checked round on."""
        size = self._block_queries
        for number in range(first // size, -(-self.n_queries // size)):
            begin, end = number * size, min((number + 1) * size, self.n_queries)
            # A whole block is drawn even where the last one is cut: the first queries of a longer stream are the same.
            block = self._draw(number)[max(first - begin, 0) : end - begin]
            if len(block):
                yield block

    def queries(self) -> Queries:
        """All judged queries at once.

        Returns
        -------
        queries : Queries
            The whole stream.
        """
        return Queries.concat(list(self.blocks()))

    @property
    @abstractmethod
    def _block_queries(self) -> int:
        """The number of queries per block."""

    @abstractmethod
    def _draw(self, number: int) -> Queries:
        """Block ``number``, from a generator of its own."""

    def _draw_rounds(self, number: int, random: np.random.Generator) -> tuple[Rows, Rows]:
        """The numbers of the rounds of a block, and where the documents of each begin."""
        fewest, most = self.documents
        count = self._block_queries
        start = np.concatenate([[0], np.cumsum(random.integers(fewest, most + 1, size=count))])
        return np.arange(number * count, (number + 1) * count), start


@dataclass(frozen=True, kw_only=True)
class Stream(JudgedStream):
    r"""A stream of judged queries with a hidden comparator u_t, drawn block by block and never held as a whole.

    A document of grade g in round t is

    .. math:: x = p + a\,u_t, \qquad p \perp u_t, \qquad a \in [\,b_g,\ b_g + w\,], \qquad b_{g+1} - b_g = \gamma + w,

    with normal p of root mean square length radius / 2, shortened where x would leave the ball of the radius, and a
    uniform in the band of its grade. Bands are as wide as the margin, or narrower where that does not fit, and lie
    symmetrically around 0. So before anything is flipped, in exact arithmetic on the numbers that the stream yields,

    - documents of different grades in one query differ by at least ``margin`` along u_t, the better one above;
    - no row is longer than ``radius`` and no comparator longer than 1 (shorter only by rounding).

    :func:`separable_stream`, :func:`noisy_stream` and :func:`drifting_stream` make streams. The same seed gives the
    same bits, however the stream is read: as a whole, by blocks, or from any round on.

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
    margin : float
        The smallest difference along the comparator of two documents of different grades in one query.
    radius : float
        The largest length of a row.
    noise : float, default=0.0
        The share of labels or queries that are flipped.
    flip : {"labels", "queries"}, default="labels"
        What is flipped.
    angle : float, default=0.0
        The angle by which the comparator turns per round, in radians.
    seed : int, default=0
        The seed of the random numbers.

    Examples
    --------
    >>> stream = separable_stream(1000, documents=5, features=3, margin=0.2)
    >>> stream.queries()
    Queries(1,000 queries, 5,000 documents, 3 features, labels 0 to 4)
    >>> query = next(iter(stream))
    >>> best = query.X @ stream.comparator()
    >>> bool((best[query.y == 4].min() - best[query.y == 2].max()) > 0.2)
    True
    """

    margin: float
    radius: Annotated[float, NumberRange(0, 1e150, closed="neither")]  # it is squared below
    noise: Annotated[float, NumberRange(0, 1, closed="both")] = 0.0
    flip: Flip = "labels"
    angle: float = 0.0
    seed: NonNegativeInt = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.margin < 2 * self.radius / (self.grades - 1) * (1 - 1e-9):
            raise RankwiseError(
                "margin must be above 0 and below 2 radius / (grades - 1), or the grades do not fit, "
                f"got margin={self.margin}, radius={self.radius}, grades={self.grades}"
            )
        if self.angle and self.features < 2:
            raise RankwiseError(f"features must be at least 2 if angle is not 0, got {self.features}")

    def comparator(self, t: int = 0) -> Vector:
        """u_t: the unit vector that ranks a round with the margin.

        Parameters
        ----------
        t : int, default=0
            The round, counted from 0.

        Returns
        -------
        u : ndarray of float64, shape (n_features,)
            The comparator.
        """
        (u,) = self._comparators(np.array([t]))
        return np.asarray(u)

    @property
    def _block_queries(self) -> int:
        return max(1, _BLOCK_VALUES // (self.documents[1] * self.features))

    @property
    def _guard(self) -> float:
        """More than all rounding errors together can take away from a difference along the comparator."""
        return 16 * (self.features + 8) * float(np.finfo(np.float64).eps) * self.radius

    @cached_property
    @one_blas_thread()
    def _plane(self) -> tuple[Vector, Vector]:
        """The first comparator, and the direction into which it turns."""
        random = np.random.default_rng([self.seed, 0])
        first, other = random.standard_normal((2, self.features))
        first /= math.sqrt(first @ first)
        other -= (other @ first) * first
        other /= math.sqrt(other @ other) or 1.0  # one feature: there is nowhere to turn
        return first, other

    def _comparators(self, rounds: NDArray[np.int64]) -> Vector:
        """The comparators of these rounds."""
        first, other = self._plane
        turned = np.cos(self.angle * rounds)[:, None] * first + np.sin(self.angle * rounds)[:, None] * other
        longest = 1 + (self.features + 8) * np.finfo(np.float64).eps
        return np.asarray(turned / (np.sqrt(_dots(turned, turned)) * longest)[:, None])

    def _draw(self, number: int) -> Queries:
        """Block ``number``, from a generator of its own."""
        random = np.random.default_rng([self.seed, 1, number])
        rounds, start = self._draw_rounds(number, random)
        owner = np.repeat(np.arange(len(rounds)), np.diff(start))
        grade = random.integers(self.grades, size=len(owner))
        X = self._place(
            grade, self._comparators(rounds)[owner] if self.angle else self._comparators(rounds[:1]), random
        )
        # What is flipped is drawn last: noise changes labels, and nothing else.
        hit = random.random(len(rounds))[owner] if self.flip == "queries" else random.random(len(owner))
        another = (grade + random.integers(1, self.grades, size=len(grade))) % self.grades
        flipped = self.grades - 1 - grade if self.flip == "queries" else another
        labels = np.where(hit < self.noise, flipped, grade).astype(np.float64)
        return Queries._trusted(X, labels, start, qid=rounds)

    def _place(self, grade: NDArray[np.int64], u: Vector, random: np.random.Generator) -> Vector:
        """Rows of these grades around the comparators ``u``, one for all rows or one per row."""
        reach = self.radius - self._guard
        gap = self.margin + self._guard
        # Bands take at most half of the space that the gaps leave, so that the outer grades can spread too.
        width = min(self.margin, (2 * reach - (self.grades - 1) * gap) / (2 * self.grades))
        lowest = -((self.grades - 1) * gap + self.grades * width) / 2
        along = lowest + grade * (gap + width) + width * random.random(len(grade))
        X = random.standard_normal((len(grade), self.features))
        X *= _SPREAD * self.radius / math.sqrt(self.features)
        X -= _dots(X, u)[:, None] * u
        length = np.sqrt(_dots(X, X))
        buffer = np.sqrt(reach**2 - along**2)
        X *= (buffer / np.maximum(length, buffer))[:, None]
        X += along[:, None] * u
        return X


def separable_stream(
    n_queries: int,
    *,
    documents: int | tuple[int, int] = 20,
    features: int = 20,
    grades: int = 5,
    margin: float = 0.1,
    radius: float = 1.0,
    random_state: int | np.random.Generator = 0,
) -> Stream:
    """Simulate judged queries that one hidden unit vector ranks perfectly, with a margin.

    This is the simulation of the online perceptron for ranking: by default 20 documents per query, 20 features and 5
    grades, uniform over the documents; normal features around a center of each grade; a comparator drawn from a normal
    distribution and scaled to length 1. Where the paper leaves a choice open, this package chooses as follows. The
    centers of the grades lie on the line of the comparator, along which documents are uniform in disjoint bands instead
    of normal, so the margin holds in every query and not just on average. Across that line all grades are alike.
    Rows are bounded by a radius.

    Parameters
    ----------
    n_queries : int
        The number of rounds.
    documents : int or (int, int), default=20
        The number of documents per query, or (fewest, most), all numbers between being equally likely.
    features : int, default=20
        The number of features; with 1 there is only the line of the comparator.
    grades : int, default=5
        Labels are 0 .. grades - 1, uniform, so a short query may hold a single grade.
    margin : float, default=0.1
        The smallest difference along the comparator of two documents of different grades in one query.
    radius : float, default=1.0
        The largest length of a row.
    random_state : int or numpy.random.Generator, default=0
        The seed, or a generator from which one is drawn.

    Returns
    -------
    stream : Stream
        The stream.

    References
    ----------
    S. Chaudhuri and A. Tewari (2015). Perceptron like algorithms for online learning to rank. arXiv:1508.00842, Section
    8 and equation (21).
    """
    return _make(n_queries, documents, features, grades, margin, radius, random_state)


def noisy_stream(
    n_queries: int,
    *,
    noise: float = 0.1,
    flip: Flip = "labels",
    documents: int | tuple[int, int] = 20,
    features: int = 20,
    grades: int = 5,
    margin: float = 0.1,
    radius: float = 1.0,
    random_state: int | np.random.Generator = 0,
) -> Stream:
    """Simulate a separable stream in which some judgments are wrong.

    The documents are those of :func:`separable_stream` with the same seed; only the labels differ.

    Parameters
    ----------
    n_queries : int
        The number of rounds.
    noise : float, default=0.1
        The probability with which each label or query is flipped.
    flip : {"labels", "queries"}, default="labels"
        "labels": a document gets another grade, all others being equally likely. "queries": all grades of a query are
        reversed, g into grades - 1 - g, so its comparator is the worst possible.
    documents, features, grades, margin, radius, random_state : as in separable_stream
        See :func:`separable_stream`.

    Returns
    -------
    stream : Stream
        The stream.
    """
    return _make(n_queries, documents, features, grades, margin, radius, random_state, noise=noise, flip=flip)


def drifting_stream(
    n_queries: int,
    *,
    angle: float = 1e-3,
    documents: int | tuple[int, int] = 20,
    features: int = 20,
    grades: int = 5,
    margin: float = 0.1,
    radius: float = 1.0,
    random_state: int | np.random.Generator = 0,
) -> Stream:
    """Simulate a stream whose comparator turns: u_t = cos(angle t) u_0 + sin(angle t) v, v a unit vector across u_0.

    Every round is separable with the margin by its own comparator, ``stream.comparator(t)``; a longer stream by none.

    Parameters
    ----------
    n_queries : int
        The number of rounds.
    angle : float, default=1e-3
        The angle per round, in radians.
    documents, features, grades, margin, radius, random_state : as in separable_stream
        See :func:`separable_stream`.

    Returns
    -------
    stream : Stream
        The stream.
    """
    return _make(n_queries, documents, features, grades, margin, radius, random_state, angle=angle)


def _make(
    n_queries: int, documents: Any, features: int, grades: int, margin: float, radius: float, state: Any, **more: Any
) -> Stream:
    """A stream, with its seed drawn from a generator if that is what was given."""
    shape: dict[str, Any] = {"documents": as_range(documents, "documents"), "features": features, "grades": grades}
    return Stream(n_queries=n_queries, **shape, margin=margin, radius=radius, seed=seed_of(state), **more)


def seed_of(random_state: int | np.random.Generator) -> int:
    """The seed itself, or one that is drawn from the generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 63))
    return as_whole(random_state, "random_state")


def _dots(A: Vector, B: Vector) -> Vector:
    """Products row by row, with the same bits for any number of threads, which BLAS does not guarantee."""
    return np.asarray(np.einsum("ij,ij->i", A, np.broadcast_to(B, A.shape)))
