"""Training, validation and test sets, and folds: a query is never cut in two."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, FileFormatError
from rankwise._paths import path_of
from rankwise.data import checks
from rankwise.data.concat import concat
from rankwise.data.grouping import as_ids
from rankwise.data.queries import Queries, as_queries

Seed = int | np.random.Generator | None

_PARTS = 5
_FILES = ("train", "vali", "test")


class Fold(NamedTuple):
    """One way to divide the queries: learn on the first, choose on the second, report on the third."""

    train: Queries
    validation: Queries
    test: Queries


def split(queries: Queries, sizes: Sequence[float] = (0.6, 0.2, 0.2), *, random_state: Seed = 0) -> tuple[Queries, ...]:
    """Divide the queries by chance into parts; each query is in exactly one, and keeps its place among the others.

    Parameters
    ----------
    sizes : the share of each part; they add up to 1, and each part gets at least one query
    random_state : seed, or generator

    Examples
    --------
    >>> lists = Queries.from_arrays(np.zeros((10, 1)), np.zeros(10), qid=range(10))
    >>> [len(part) for part in split(lists)]
    [6, 2, 2]
    """
    queries = as_queries(queries, "split")
    try:
        shares = np.asarray(sizes, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"sizes are shares above 0 that add up to 1: found {sizes!r:.60}") from error
    if shares.ndim != 1 or not len(shares) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise DataError(f"sizes are shares above 0 that add up to 1: found {sizes}")
    bounds = np.rint(np.cumsum(shares) * len(queries)).astype(np.int64)
    if np.diff(bounds, prepend=0).min() < 1:
        raise DataError(
            f"{len(queries):,} queries are too few for parts of sizes {shares.tolist()}: one would be empty"
        )
    order = checks.as_random(random_state).permutation(len(queries))
    return tuple(queries[np.sort(part)] for part in np.split(order, bounds[:-1]))


def kfold(queries: Queries, k: int = 5, *, random_state: Seed = 0) -> Iterator[Fold]:
    """k folds: every query is in exactly one test set and in exactly one validation set.

    The queries are divided by chance into k parts of sizes that differ by at most one. Each fold tests on one part,
    validates on the next one (which is the next fold's test set) and trains on the others.
    """
    queries = as_queries(queries, "kfold")
    k = checks.as_whole(k, "k")
    if k < 3:
        raise DataError(
            f"k is {k}: a fold needs a part to train on, one to validate on and one to test on, so 3 or more"
        )
    if len(queries) < k:
        raise DataError(f"{len(queries):,} queries are too few for {k} folds: a fold needs at least one to test on")
    parts = np.array_split(checks.as_random(random_state).permutation(len(queries)), k)
    return (_fold(queries, parts, number) for number in range(k))


def _fold(queries: Queries, parts: Sequence[NDArray[np.int64]], number: int) -> Fold:
    test, validation, *train = (parts[(number + step) % len(parts)] for step in range(len(parts)))
    return Fold(*(queries[np.sort(chosen)] for chosen in (np.concatenate(train), validation, test)))


def read_folds(folder: str | os.PathLike[str], *, rename: bool = False, **options: Any) -> Iterator[Fold]:
    """The folds in a folder, as LETOR sets come: ``Fold1`` to ``Fold5``, or five parts ``S1`` to ``S5``.

    ``FoldN`` holds ``train.txt``, ``vali.txt`` and ``test.txt``. From five parts, each read once, LETOR's rotation
    is made: fold 1 trains on parts 1, 2 and 3, validates on 4 and tests on 5; fold 2 is 2, 3, 4 / 5 / 1, and so on.
    Any file may be gzipped (``.txt.gz``). Where sparse files reach to different features, all are as wide as the
    widest. Feature ids begin at 1 unless ``zero_based=True`` says otherwise: a guess made for each file alone could
    shift the features of one against those of another.

    Parameters
    ----------
    folder : where the folds or the parts are
    rename : call query ``id`` of part 1 ``S1/id``, for parts in which the same id means different queries
    options : those of :func:`read_letor`
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
    """Texts that belong together, all with as many features as the widest has."""
    from rankwise.data.letor.read import read_letor

    if options.get("zero_based", "auto") == "auto":
        options = {**options, "zero_based": False}
    parts = [read_letor(path, **options) for path in files]
    width = max(part.n_features for part in parts)
    return [
        part if part.n_features == width else part.map_features(lambda X: np.pad(X, ((0, 0), (0, width - X.shape[1]))))
        for part in parts
    ]
