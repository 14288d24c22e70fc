"""A fitted ranker as one safe file: its class by name, its parameters as JSON, what it learned as arrays.

No code is stored and none is run: the name is looked up among the rankers that are installed.
"""

import os
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from rankwise._errors import FileFormatError, RankwiseError
from rankwise._store import Store, StoreWriter
from rankwise.data.checks import Missing
from rankwise.data.fingerprints import MOST, Fingerprints, Seen
from rankwise.data.scaling import Scaler
from rankwise.losses import registered as known_losses
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.measures.parse import parse
from rankwise.rankers._base import Ranker, registered

KIND = "ranker"
_LAYOUT = 1
_SEEN = ("training", "validation")


def save_ranker(ranker: Ranker, path: str | os.PathLike[str]) -> None:
    """Write beside ``path`` and rename: the whole file is there or none of it."""
    facts, arrays = ranker._state()
    parameters = {name: _plain(value, name) for name, value in ranker.get_params(deep=False).items()}
    names = ranker._names()
    with StoreWriter(path, KIND) as file:
        file.metadata.update(
            {
                "ranker": ranker.name,
                "layout": _LAYOUT,
                "parameters": parameters,
                "n_features": ranker.n_features_in_,
                "feature_names": None if names is None else list(names),
                "learned": facts,
            }
        )
        for name, array in arrays.items():
            file.append(name, array)
        seen = getattr(ranker, "seen_", None)
        if seen is not None:
            file.metadata["seen"] = {part: getattr(seen, part).forgotten for part in _SEEN}
            for part in _SEEN:
                file.append(f"seen.{part}", getattr(seen, part).words)
        scaling = getattr(ranker, "scaling_", None)
        if scaling is not None:
            file.metadata["scaling"], learned = scaling.to_state()
            for name, array in learned.items():
                file.append(f"scaling.{name}", array)


def read_ranker(store: Store) -> Ranker:
    """The ranker in an opened file; what could not be one is refused, for the file may be a stranger's."""
    name, layout = store.fact("ranker", str), store.fact("layout", int)
    if layout > _LAYOUT:
        raise FileFormatError(f"{store.path} was written by a newer rankwise (layout {layout!s:.20}): install that one")
    kind = registered().get(name)
    if kind is None:
        raise FileFormatError(f"{store.path} holds a ranker {name!r:.40}, which is not installed here")
    width, names = store.fact("n_features", int), store.fact("feature_names", (list, type(None)))
    try:
        parameters = {key: _meant(value) for key, value in store.fact("parameters", dict).items()}
        ranker = kind(**parameters)
        if ranker.missing not in get_args(Missing):
            raise RankwiseError(f"its policy for missing values is {ranker.missing!r:.20}")
        if not _is_count(getattr(ranker, "n_jobs", None)):
            raise RankwiseError(f"its number of threads is {ranker.n_jobs!r:.20}")
        ranker.n_features_in_ = width
        if names is not None:
            if len(names) != width or len(set(names)) < width or not all(isinstance(one, str) for one in names):
                raise RankwiseError(f"it names {len(names)} features of {width}")
            ranker.feature_names_in_ = np.array(names, dtype=object)
        with np.errstate(invalid="raise"):  # NaN where a whole number belongs
            ranker._restore(store.fact("learned", dict), store)
        if "seen" in store.metadata:  # files of older versions have no fingerprints
            ranker.seen_ = _read_seen(store)
        if "scaling" in store.metadata:  # only where the lists of the fit were scaled
            ranker.scaling_ = _read_scaling(store, width)
    except FileFormatError:
        raise
    except Exception as error:  # whatever a hostile file provokes
        about = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{store.path} is damaged: {about:.200}") from error
    return ranker


def _is_count(n_jobs: Any) -> bool:
    """Whether it can be a number of threads."""
    return n_jobs is None or (isinstance(n_jobs, int) and not isinstance(n_jobs, bool))


def _read_seen(store: Store) -> Seen:
    """The fingerprints of the lists that the ranker saw."""
    forgotten, parts = store.fact("seen", dict), []
    for part in _SEEN:
        words, lost = store.array(f"seen.{part}", np.uint64, (None,)), forgotten.get(part)
        if not isinstance(lost, int) or isinstance(lost, bool) or lost < 0 or len(words) > MOST:
            raise RankwiseError(f"it remembers {len(words):,} lists, and {lost!r:.40} more that it forgot")
        parts.append(Fingerprints.of(words, lost))
    return Seen(*parts)


def _read_scaling(store: Store, width: int) -> Scaler:
    """The scaler that made the features which the ranker learned from."""
    learned = ("center", "scale")
    arrays = {name: store.array(f"scaling.{name}", np.float64) for name in learned if f"scaling.{name}" in store}
    scaler = Scaler.from_state(store.fact("scaling", dict), arrays)
    if scaler.n_features_in_ != width:
        raise RankwiseError(f"it scales {scaler.n_features_in_!s:.20} features of {width}")
    return scaler


def _plain(value: Any, name: str) -> Any:
    """A parameter as JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Measure):
        return {"measure": repr(value)}
    if isinstance(value, Loss):
        given = {field.name: _plain(getattr(value, field.name), name) for field in fields(value)}
        return {"loss": value.name, "parameters": given}
    if isinstance(value, (tuple, list, np.ndarray)):
        return {"list": [_plain(item, name) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"pairs": [[_plain(key, name), _plain(item, name)] for key, item in value.items()]}
    if isinstance(value, Ranker) and hasattr(value, "coef_"):  # a start: its weights are all that is needed of it
        return _plain(value.coef_, name)
    raise RankwiseError(
        f"the parameter {name}={value!r:.60} cannot be saved: a file holds numbers, texts, measures and losses"
    )


def _meant(value: Any) -> Any:
    """The parameter that :func:`_plain` wrote."""
    if not isinstance(value, dict):
        return value
    if "measure" in value:
        return parse(value["measure"])
    if "loss" in value:
        kind = known_losses().get(value["loss"])
        if kind is None:
            raise RankwiseError(f"it needs a loss {value['loss']!r:.40}, which is not installed here")
        return kind(**{key: _meant(item) for key, item in value["parameters"].items()})
    if "list" in value:
        items = [_meant(item) for item in value["list"]]
        return tuple(items) if value["tuple"] else items
    return {_meant(key): _meant(item) for key, item in value["pairs"]}
