"""Parameters of rankers as JSON values, as in the file of a ranker, and back.

Numbers, strings and None stand for themselves. Everything else is an object whose first key names the kind: a measure,
a loss, a ranker, a transformer, a list or a mapping. A file may be a stranger's: only registered classes are made.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from rankwise._registry import discover
from rankwise.errors import RankwiseError
from rankwise.features.codec import Packed, unpack
from rankwise.losses._base import Loss
from rankwise.losses._base import registered as known_losses
from rankwise.measures._base import Measure, parse

# Parameters whose rankers are fitted with their own parameters; of rankers elsewhere only the weights matter.
_RANKERS = ("members", "ranker")
# Names of parameters in files of before.
RENAMED = {"normalised": "normalized"}


class Opaque(NamedTuple):
    """A parameter that cannot be made again from JSON: a random generator, or a loss that is not registered."""

    value: Any


def to_json_value(value: Any, name: str) -> Any:
    """Encode a parameter as a JSON value.

    Parameters
    ----------
    value : object
        The parameter.
    name : str
        Its name, for messages.

    Returns
    -------
    object
        What :func:`from_json_value` decodes.

    Raises
    ------
    RankwiseError
        If a file cannot hold it.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Measure):
        return {"measure": repr(value)}
    if isinstance(value, Loss):
        parameters = {field.name: to_json_value(getattr(value, field.name), name) for field in fields(value)}
        return {"loss": value.name, "parameters": parameters}
    if isinstance(value, (tuple, list, np.ndarray)):
        return {"list": [to_json_value(item, name) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"pairs": [[to_json_value(key, name), to_json_value(item, name)] for key, item in value.items()]}
    if _is_ranker(value):
        if hasattr(value, "coef_") and name not in _RANKERS:
            return to_json_value(value.coef_, name)  # a start or a prior: only its weights matter
        parameters = {key: to_json_value(item, key) for key, item in value.get_params(deep=False).items()}
        return {"ranker": value.name, "parameters": parameters}
    if hasattr(value, "fit") and hasattr(value, "transform"):
        from sklearn.base import clone

        packed = Packed()
        transformer = packed.pack(clone(value), f"the parameter {name}")
        if packed.arrays:
            raise RankwiseError(f"the parameter {name}={value!r:.60} cannot be saved, because it holds an array")
        return {"transformer": transformer}
    raise RankwiseError(
        f"the parameter {name}={value!r:.60} cannot be saved: a file holds numbers, strings, measures, losses, "
        "rankers and transformers"
    )


def from_json_value(value: Any) -> Any:
    """Decode what :func:`to_json_value` encoded."""
    if isinstance(value, Opaque):
        return value.value
    if not isinstance(value, dict):
        return value
    if "measure" in value:
        return parse(value["measure"])
    if "loss" in value:
        return _make(value, "loss", known_losses())
    if "ranker" in value:
        from sklearn.base import BaseEstimator

        return _make(value, "ranker", discover("rankwise.rankers", BaseEstimator, "rankwise.rankers"))
    if "transformer" in value:
        return unpack(value["transformer"], {})
    if "list" in value:
        items = [from_json_value(item) for item in value["list"]]
        return tuple(items) if value["tuple"] else items
    return {from_json_value(key): from_json_value(item) for key, item in value["pairs"]}


def encode_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of a ranker by name, encoded; :class:`Opaque` where JSON cannot hold one."""
    encoded = {}
    for name, value in estimator.get_params(deep=False).items():
        try:
            # a loss of the user's own is immutable, but cannot be made again from its name
            foreign = isinstance(value, Loss) and known_losses().get(value.name) is not type(value)
            encoded[name] = Opaque(value) if foreign else to_json_value(value, name)
        except RankwiseError:
            encoded[name] = Opaque(value)
    return encoded


def decode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Decode parameters by name."""
    return {name: from_json_value(value) for name, value in parameters.items()}


def _is_ranker(value: Any) -> bool:
    from sklearn.base import BaseEstimator

    return isinstance(value, BaseEstimator) and isinstance(getattr(value, "name", None), str) and hasattr(value, "rank")


def _make(value: Mapping[str, Any], kind: str, known: Mapping[str, Any]) -> Any:
    """An instance of a registered class."""
    made = known.get(value[kind])
    if made is None:
        raise RankwiseError(f"it needs a {kind} {value[kind]!r:.40}, which is not installed here")
    parameters = {RENAMED.get(name, name): value for name, value in value["parameters"].items()}
    return made(**decode_parameters(parameters))
