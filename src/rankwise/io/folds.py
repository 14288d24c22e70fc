"""Folds of LETOR files: folders Fold1, Fold2 ... or files S1.txt ... S5.txt."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankwise._files import path_of
from rankwise._parameters import validated
from rankwise.errors import FileFormatError
from rankwise.io.letor.read import read_letor
from rankwise.queries.concat import concat
from rankwise.queries.folds import Fold
from rankwise.queries.grouping import as_ids
from rankwise.queries.queries import Queries

_PARTS = 5
_FILES = ("train", "vali", "test")


@validated
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
        raise FileFormatError(f"{root} must be a folder that holds folds")
    numbered = {int(match[1]): path for path in root.iterdir() if (match := re.fullmatch(r"Fold(\d+)", path.name))}
    if numbered:
        files = [[_file(numbered[number], name) for name in _FILES] for number in sorted(numbered)]
        return (Fold(*_read_alike(three, options)) for three in files)
    if not any(root.glob("S[1-5].txt*")):
        raise FileFormatError(f"{root} must hold Fold1 ... Fold{_PARTS} or S1.txt ... S{_PARTS}.txt")
    return _rotate([_file(root, f"S{number}") for number in range(1, _PARTS + 1)], rename, options)


def _rotate(files: Sequence[Path], rename: bool, options: dict[str, Any]) -> Iterator[Fold]:
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
    raise FileFormatError(f"{folder} must hold {name}.txt or {name}.txt.gz")


def _read_alike(files: Sequence[Path], options: dict[str, Any]) -> list[Queries]:
    """Texts that belong together, all with as many features as the widest."""
    if options.get("zero_based", "auto") == "auto":
        options = {**options, "zero_based": False}
    parts = [read_letor(path, **options) for path in files]
    width = max(part.n_features for part in parts)
    return [
        part if part.n_features == width else part.map_features(lambda X: np.pad(X, ((0, 0), (0, width - X.shape[1]))))
        for part in parts
    ]
