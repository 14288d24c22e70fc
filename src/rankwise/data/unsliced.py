"""Pass a validation set through scikit-learn undivided."""

from typing import Any

from rankwise._errors import DataError
from rankwise.data.queries import Queries


class Unsliced:
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
            raise DataError(f"Unsliced carries Queries: found {type(queries).__name__}")
        self.queries = queries

    @staticmethod
    def open(value: Any) -> Queries:
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
        if isinstance(value, Queries):
            return value
        raise DataError(f"a set of queries is Queries or Unsliced(queries): found {type(value).__name__}")

    def __repr__(self) -> str:
        return f"Unsliced({self.queries!r})"
