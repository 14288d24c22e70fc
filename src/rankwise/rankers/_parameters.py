"""The parameters of a ranker as plain JSON, and those of its fit, frozen: what a certificate rests on.

``set_params`` may change a fitted ranker's parameters at any time, and whoever likes may write into ``coef_``. A
certificate is about the fit. So ``fit`` keeps a copy of its parameters and a digest of what it learned, both are saved
with the ranker, and a certificate is made of these.
"""

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.losses import registered as known_losses
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.measures.parse import parse
from rankwise.rankers._base import Ranker

# How fast and how loud a fit was, and what is done about gaps in later data: nothing that was learned rests on these.
IDLE = ("n_jobs", "verbose", "missing")


class Opaque(NamedTuple):
    """A parameter that JSON cannot hold, such as a random generator; nothing that is guaranteed reads one."""

    value: Any


@dataclass(frozen=True)
class Frozen:
    """What a fit rested on and left behind.

    Attributes
    ----------
    parameters : mapping of str to Any
        Copies of the parameters, as :func:`plain` writes them where it can.
    digest : str
        Of what was learned.
    """

    parameters: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, ranker: Ranker, parameters: Mapping[str, Any] | None = None) -> "Frozen":
        """The ranker as it is; ``parameters``: those of an earlier fit that it went on with."""
        return cls(_copies(ranker) if parameters is None else parameters, digest_of(ranker))

    def changed(self, ranker: Ranker) -> dict[str, tuple[Any, Any]]:
        """The parameters that are others today: (at the fit, today) by name."""
        today = _copies(ranker)
        pairs = {name: (self.parameters.get(name), value) for name, value in today.items()}
        return {
            name: (meant(then), meant(now))
            for name, (then, now) in pairs.items()
            if name not in IDLE and _text(then) != _text(now)
        }

    def restored(self, ranker: Ranker) -> Ranker:
        """A twin of the ranker with the parameters of the fit; what was learned is shared."""
        twin = copy.copy(ranker)
        twin.__dict__.update(meant_all(self.parameters))
        return twin

    def written(self, today: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for a file: those of the fit, but for what no result rests on and what JSON cannot hold."""
        return {
            name: today[name] if name in IDLE or isinstance(value, Opaque) else value
            for name, value in self.parameters.items()
        }


def digest_of(ranker: Ranker) -> str:
    """A digest of what a ranker has learned."""
    facts, arrays = ranker._frozen_state()
    if hasattr(ranker, "coef_"):  # online rankers work it out from their state, and predict with this
        arrays = {**arrays, "coef": ranker.coef_}
    found = hashlib.sha256(_text(facts).encode())
    for name, array in sorted(arrays.items()):
        plain_array = np.ascontiguousarray(array)
        found.update(f"{name} {plain_array.dtype.str} {plain_array.shape}".encode())
        found.update(plain_array.tobytes())
    return found.hexdigest()


def _copies(ranker: Ranker) -> dict[str, Any]:
    found = {}
    for name, value in ranker.get_params(deep=False).items():
        try:
            found[name] = plain(value, name)
        except RankwiseError:
            found[name] = Opaque(value)
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


# ----------------------------------------------------------------------------------------------- parameters as JSON


def plain(value: Any, name: str) -> Any:
    """A parameter as JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Measure):
        return {"measure": repr(value)}
    if isinstance(value, Loss):
        given = {field.name: plain(getattr(value, field.name), name) for field in fields(value)}
        return {"loss": value.name, "parameters": given}
    if isinstance(value, (tuple, list, np.ndarray)):
        return {"list": [plain(item, name) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"pairs": [[plain(key, name), plain(item, name)] for key, item in value.items()]}
    if isinstance(value, Ranker) and hasattr(value, "coef_"):  # a start: its weights are all that is needed of it
        return plain(value.coef_, name)
    raise RankwiseError(
        f"the parameter {name}={value!r:.60} cannot be saved: a file holds numbers, texts, measures and losses"
    )


def meant(value: Any) -> Any:
    """The parameter that :func:`plain` wrote."""
    if isinstance(value, Opaque):
        return value.value
    if not isinstance(value, dict):
        return value
    if "measure" in value:
        return parse(value["measure"])
    if "loss" in value:
        kind = known_losses().get(value["loss"])
        if kind is None:
            raise RankwiseError(f"it needs a loss {value['loss']!r:.40}, which is not installed here")
        return kind(**{key: meant(item) for key, item in value["parameters"].items()})
    if "list" in value:
        items = [meant(item) for item in value["list"]]
        return tuple(items) if value["tuple"] else items
    return {meant(key): meant(item) for key, item in value["pairs"]}


def meant_all(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All of them, by name."""
    return {name: meant(value) for name, value in parameters.items()}
