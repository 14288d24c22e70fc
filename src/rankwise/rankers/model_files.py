"""Files of fitted rankers: those that ``save`` wrote, and trees that LightGBM, XGBoost or CatBoost saved."""

import os
from collections.abc import Sequence
from typing import Any

from rankwise._files import path_of
from rankwise._store import read_store
from rankwise.errors import DataError, FileFormatError
from rankwise.io.any_file import booster_of, is_store
from rankwise.rankers._base import Ranker
from rankwise.rankers._record import KIND, read_ranker

Path = str | os.PathLike[str]


def is_model(path: Path) -> bool:
    """Whether a path is a file of rankwise, or the model of a booster."""
    name = path_of(path)
    return os.path.isfile(name) and (is_store(name) or booster_of(name) is not None)


def open_ranker(path: Path) -> Ranker:
    """The fitted ranker in a file.

    Parameters
    ----------
    path : path
        What ``save`` wrote, or the model of a booster.

    Returns
    -------
    Ranker
        The ranker.

    Raises
    ------
    RankwiseError
        If the file holds something else, or is damaged.
    """
    booster = booster_of(path)
    if booster is not None:
        return read_trees(path, booster)
    with read_store(path) as store:
        if store.kind != KIND:
            raise DataError(f"{path} must be a saved ranker, got {store.kind}")
        return read_ranker(store)


def read_trees(path: Path, booster: str, names: Sequence[str] | None = None, measure: Any = "nDCG@10") -> Ranker:
    """The trees that a booster saved, as a fitted ranker; errors name the file."""
    from rankwise.rankers.boosting.tree_ranker import TreeRanker

    read = {
        "LightGBM": TreeRanker.from_lightgbm,
        "XGBoost": TreeRanker.from_xgboost,
        "CatBoost": TreeRanker.from_catboost,
    }[booster]
    try:
        return read(path, feature_names=names, measure=measure)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
