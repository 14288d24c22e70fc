"""LightGBM's trees in the folder of finished cells: the text that LightGBM itself writes, beside our parameters."""

import os
from typing import Any

import numpy as np

from rankwise._errors import FileFormatError
from rankwise._extras import require
from rankwise._store import Store, StoreWriter
from rankwise.evaluation.compare_keys import plain
from rankwise.evaluation.lambdarank import LambdaRank

KIND = "lambdarank trees"


def save_trees(model: LambdaRank, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the trees that early stopping left out are left out."""
    text = model.model_.model_to_string(num_iteration=model.trees_)
    parameters = {name: plain(value, name) for name, value in model.get_params(deep=False).items()}
    with StoreWriter(path, KIND) as file:
        file.metadata.update({"parameters": parameters, "trees": model.trees_})
        file.append("text", np.frombuffer(text.encode(), dtype=np.uint8))


def read_trees(store: Store) -> LambdaRank:
    """The model of a file that this run's folder holds; the caller has checked that nothing in it was changed."""
    if store.kind != KIND:
        raise FileFormatError(f"{store.path} holds {store.kind}, and no trees")
    parameters: dict[str, Any] = store.fact("parameters", dict)
    model = LambdaRank(**parameters)
    text = store.array("text", np.uint8, (None,)).tobytes().decode()
    model.model_ = require("lightgbm").Booster(model_str=text)
    model.trees_ = store.fact("trees", int)
    return model
