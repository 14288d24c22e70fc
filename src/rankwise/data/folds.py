"""Training, validation and test sets, and folds; a query is never divided.

:func:`split` divides queries once, :func:`kfold` rotates k parts, and :func:`read_folds` reads the folds that LETOR
data sets come with.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, FileFormatError
from rankwise._paths import path_of
from rankwise._tables import ShownAsFacts, facts_html, facts_of
from rankwise.data import checks
from rankwise.data.concat import concat
from rankwise.data.grouping import as_ids
from rankwise.data.parts.parts import Parts
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.queries import Queries, as_queries

QuerySet = TypeVar("QuerySet", Queries, Parts)
Seed = int | np.random.Generator | None

_PARTS = 5
_FILES = ("train", "vali", "test")


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


def split(
    queries: QuerySet, sizes: Sequence[float] = (0.6, 0.2, 0.2), *, random_state: Seed = 0
) -> tuple[QuerySet, ...]:
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
    queries = queries if isinstance(queries, Parts) else as_queries(queries, "split")
    shares = checks.as_floats(sizes, "sizes are shares above 0 that add up to 1")
    if shares.ndim != 1 or not len(shares) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise DataError(f"sizes are shares above 0 that add up to 1: found {sizes}")
    bounds = np.rint(np.cumsum(shares) * len(queries)).astype(np.int64)
    if np.diff(bounds, prepend=0).min() < 1:
        raise DataError(
            f"{len(queries):,} queries are too few for parts of sizes {shares.tolist()}: one would be empty"
        )
    order = checks.as_random(random_state).permutation(len(queries))
    return tuple(queries[np.sort(part)] for part in np.split(order, bounds[:-1]))


def kfold(queries: Queries | Parts, k: int = 5, *, random_state: Seed = 0) -> Iterator[Fold]:
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
    queries = queries if isinstance(queries, Parts) else as_queries(queries, "kfold")
    k = checks.as_whole(k, "k")
    if k < 3:
        raise DataError(
            f"k is {k}: a fold needs a part to train on, one to validate on and one to test on, so 3 or more"
        )
    if len(queries) < k:
        raise DataError(f"{len(queries):,} queries are too few for {k} folds: a fold needs at least one to test on")
    parts = np.array_split(checks.as_random(random_state).permutation(len(queries)), k)
    return (_fold(queries, parts, number) for number in range(k))


def _fold(queries: Queries | Parts, parts: Sequence[NDArray[np.int64]], number: int) -> Fold:
    """Fold ``number``: test on its part, validate on the next, train on the rest."""
    test, validation, *train = (parts[(number + step) % len(parts)] for step in range(len(parts)))
    return Fold(*(queries[np.sort(chosen)] for chosen in (np.concatenate(train), validation, test)))


def read_folds(folder: str | os.PathLike[str], *, rename: bool = False, **options: Any) -> Iterator[Fold]:
    """Read the folds of a folder as LETOR data sets have them: ``Fold1`` to ``Fold5``, or five parts ``S1`` to ``S5``.

    ``FoldN`` holds ``train.txt``, ``vali.txt`` and ``test.txt``. Five parts, each read once, are rotated as LETOR does:
    fold 1 trains on parts 1, 2 and 3, validates on 4 and tests on 5; fold 2 is 2, 3, 4 / 5 / 1, and so on. Every file
    may be gzipped (``.txt.gz``). Where sparse files end at different features, all are as wide as the widest. Feature
    ids begin at 1 unless ``zero_based=True`` is given: a guess for each file alone could shift the features of one file
    against those of another.

    Parameters
    ----------
    folder : path
        The folder of the folds or of the parts.
    rename : bool, default=False
        Whether query ``id`` of part 1 is called ``S1/id``, for parts in which the same id means different queries.
    **options : keyword arguments
        The options of :func:`read_letor`.

    Returns
    -------
    folds : iterator of Fold
        The folds, in the order of their numbers.
    """
    root = Path(path_of(folder))
    if not root.is_dir():
        raise FileFormatError(f"{root} is not a folder, expected one that holds folds")
    numbered = {int(match[1]): path for path in root.iterdir() if (match := re.fullmatch(r"Fold(\d+)", path.name))}
    if numbered:
        files = [[_file(numbered[number], name) for name in _FILES] for number in sorted(numbered)]
        return (Fold(*_read_alike(three, options)) for three in files)
    if not any(root.glob("S[1-5].txt*")):
        raise FileFormatError(f"{root} holds neither Fold1 ... Fold{_PARTS} nor S1.txt ... S{_PARTS}.txt")
    return _rotated([_file(root, f"S{number}") for number in range(1, _PARTS + 1)], rename, options)


def _rotated(files: Sequence[Path], rename: bool, options: dict[str, Any]) -> Iterator[Fold]:
    """The five folds of five parts."""
    parts = _read_alike(files, options)
    if rename:
        names = ([f"S{number}/{qid}" for qid in part.names()] for number, part in enumerate(parts, 1))
        parts = [part._replace(qid=as_ids(ids, "qid")) for part, ids in zip(parts, names, strict=True)]
    for number in range(_PARTS):
        *train, validation, test = (parts[(number + step) % _PARTS] for step in range(_PARTS))
        yield Fold(concat(train), validation, test)


def _file(folder: Path, name: str) -> Path:
    """The text of that name in the folder, plain or gzipped."""
    for path in (folder / f"{name}.txt", folder / f"{name}.txt.gz"):
        if path.is_file():
            return path
    raise FileFormatError(f"{folder} lacks {name}.txt (or {name}.txt.gz)")


def _read_alike(files: Sequence[Path], options: dict[str, Any]) -> list[Queries]:
    """Texts that belong together, all with as many features as the widest."""
    from rankwise.data.letor.read import read_letor

    if options.get("zero_based", "auto") == "auto":
        options = {**options, "zero_based": False}
    parts = [read_letor(path, **options) for path in files]
    width = max(part.n_features for part in parts)
    return [
        part if part.n_features == width else part.map_features(lambda X: np.pad(X, ((0, 0), (0, width - X.shape[1]))))
        for part in parts
    ]


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
        if isinstance(value, (Queries, ChunkedQueries, Parts)):
            return cast(Queries, value)
        raise DataError(f"a set of queries is Queries or Unsliced(queries): found {type(value).__name__}")

    def __repr__(self) -> str:
        return f"Unsliced({self.queries!r})"
