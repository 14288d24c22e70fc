"""Training, validation and test sets, and folds; a query is never divided.

:func:`split` divides queries once and :func:`kfold` rotates k parts.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import NumberRange, PositiveFloat, Seed, as_random, validated
from rankwise._tables import ShownAsFacts, facts_html, facts_of
from rankwise.errors import DataError
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySet, as_source

Divided = TypeVar("Divided", Queries, Parts)


class Fold(NamedTuple):
    """One division of the queries.

    Attributes
    ----------
    train : Queries or Parts
        For learning.
    validation : Queries or Parts
        For model selection.
    test : Queries or Parts
        For reporting.
    """

    train: Any
    validation: Any
    test: Any

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return facts_html(self, facts_of(self))


@validated
def split(
    queries: Divided, sizes: Sequence[PositiveFloat] = (0.6, 0.2, 0.2), *, random_state: Seed = 0
) -> tuple[Divided, ...]:
    """Divide the queries at random; every query is in exactly one part and keeps its order.

    Parameters
    ----------
    queries : Queries or Parts
        The queries to divide; `Parts` are divided without reading them, into the same queries.
    sizes : sequence of float, default=(0.6, 0.2, 0.2)
        The share of each part. Shares add up to 1, and every part gets at least one query.
    random_state : int or numpy.random.Generator, default=0
        The seed or generator.

    Returns
    -------
    parts : tuple of Queries or Parts
        One set per share, of the kind that was given.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((10, 1)), np.zeros(10), qid=range(10))
    >>> [len(part) for part in split(queries)]
    [6, 2, 2]
    """
    as_source(queries, "split")
    shares = np.asarray(sizes, dtype=np.float64)
    if abs(shares.sum() - 1) > 1e-9:
        raise DataError(f"sizes must add up to 1, got {sizes}")
    bounds = np.rint(np.cumsum(shares) * len(queries)).astype(np.int64)
    if np.diff(bounds, prepend=0).min() < 1:
        raise DataError(
            f"{len(queries):,} queries are too few for parts of sizes {shares.tolist()}: one would be empty"
        )
    order = as_random(random_state).permutation(len(queries))
    return tuple(queries[np.sort(part)] for part in np.split(order, bounds[:-1]))


@validated
def kfold(queries: Queries | Parts, k: Annotated[int, NumberRange(3)] = 5, *, random_state: Seed = 0) -> Iterator[Fold]:
    """Make k folds: every query is in exactly one test set and in exactly one validation set.

    The queries are divided at random into k parts whose sizes differ by at most one. Each fold tests on one part,
    validates on the next one (which is the test set of the next fold) and trains on the others.

    Parameters
    ----------
    queries : Queries or Parts
        The queries to divide, at least k.
    k : int, default=5
        The number of folds, 3 or more.
    random_state : int or numpy.random.Generator, default=0
        The seed or generator.

    Returns
    -------
    folds : iterator of Fold
        The k folds.
    """
    as_source(queries, "kfold")
    if len(queries) < k:
        raise DataError(f"{len(queries):,} queries are too few for {k} folds: a fold needs at least one to test on")
    parts = np.array_split(as_random(random_state).permutation(len(queries)), k)
    return (_fold(queries, parts, number) for number in range(k))


def _fold(queries: Queries | Parts, parts: Sequence[NDArray[np.int64]], number: int) -> Fold:
    """Fold ``number``: test on its part, validate on the next, train on the rest."""
    test, validation, *train = (parts[(number + step) % len(parts)] for step in range(len(parts)))
    return Fold(*(queries[np.sort(chosen)] for chosen in (np.concatenate(train), validation, test)))


# ------------------------------------------------------------------------------------ validation sets in scikit-learn


class Unsliced(ShownAsFacts):
    """A set of queries that scikit-learn does not slice.

    ``GridSearchCV`` and similar tools slice every argument of ``fit`` that has as many samples as X. A validation set
    with as many queries as the training set would silently lose some of them. This wrapper has no length and no shape,
    so scikit-learn passes it on as it is.

    Parameters
    ----------
    queries : Queries
        The validation set.

    Examples
    --------
    >>> validation = Queries.from_arrays([[0.1], [0.9]], [0, 1], qid=[1, 1])
    >>> Unsliced(validation)
    Unsliced(Queries(1 query, 2 documents, 1 feature, labels 0 to 1))
    >>> Unsliced.open(Unsliced(validation)) is validation
    True
    """

    __slots__ = ("queries",)

    def __init__(self, queries: Queries) -> None:
        if not isinstance(queries, Queries):
            raise DataError(f"Unsliced takes Queries, got {type(queries).__name__}")
        self.queries = queries

    @staticmethod
    def open(value: Any) -> Any:
        """The queries inside a wrapper.

        Parameters
        ----------
        value : Unsliced or Queries
            A wrapper, or queries that were not wrapped.

        Returns
        -------
        queries : Queries
            The queries themselves.
        """
        if isinstance(value, Unsliced):
            return value.queries
        if not isinstance(value, QuerySet):
            raise DataError(f"a set of queries must be Queries or Unsliced(queries), got {type(value).__name__}")
        return value

    def __repr__(self) -> str:
        return f"Unsliced({self.queries!r})"
