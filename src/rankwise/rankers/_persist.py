"""The file of a fitted ranker.

A file (:func:`save_ranker`, :func:`read_ranker`) holds the name of the class, the parameters as JSON and what was
learned as arrays. It holds no code, and reading it runs none: the class is looked up by name among the installed
rankers.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._codec import RENAMED, decode_parameters, encode_parameters
from rankwise._store import Store, StoreWriter
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker, registered
from rankwise.rankers._record import FitRecord

KIND = "ranker"
_LAYOUT = 1
_MOST_PROBED = 1_000_000  # features; rows of more would take memory for a number that may be a lie
_NESTED = "member.{}."  # begins the names of the arrays of a ranker inside of another one
_RENAMED = {"strength": "alpha", "center": "prior_coef", "ball": "max_norm", **RENAMED}


def save_ranker(ranker: Ranker, path: str | os.PathLike[str] | BytesIO) -> None:
    """Write the file of a fitted ranker atomically, or into memory."""
    metadata, arrays = state_of(ranker)
    with StoreWriter(path, KIND) as file:
        file.metadata.update(metadata)
        for name, array in arrays.items():
            file.append(name, array)
        ranker.record_.append_to(file)


def state_of(ranker: Ranker) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(facts, arrays) of a fitted ranker: its class, its parameters and what it learned.

    :func:`read_ranker` makes the ranker again. A ranker that consists of others keeps theirs among its own
    (:func:`nested_state`, :func:`read_nested`).
    """
    facts, arrays = ranker._state()
    names = ranker._names()
    metadata = {
        "ranker": ranker.name,
        "layout": _LAYOUT,
        "parameters": ranker.record_.parameters_for_file(ranker),
        "n_features": ranker.n_features_in_,
        "feature_names": None if names is None else list(names),
        "learned": facts,
    }
    if ranker.record_.document_weights:
        metadata["document_weights"] = True
    if ranker.record_.digest is not None:
        metadata["digest"] = ranker.record_.digest
    return metadata, arrays


def nested_state(rankers: Sequence[Ranker]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """(facts, arrays) of the rankers inside of another one; the queries that they saw are among those of the other."""
    parts = [state_of(ranker) for ranker in rankers]
    arrays = {
        f"{_NESTED.format(place)}{name}": array for place, (_, own) in enumerate(parts) for name, array in own.items()
    }
    return [metadata for metadata, _ in parts], arrays


def read_nested(store: Store, facts: Any, width: int) -> list[Ranker]:
    """The rankers that :func:`nested_state` wrote, all of them on ``width`` features."""
    if not isinstance(facts, list) or not all(isinstance(one, dict) for one in facts):
        raise RankwiseError("it holds no list of rankers where one belongs")
    if any(one.get("n_features") != width for one in facts):  # before any of them takes memory for its features
        raise RankwiseError(f"one of its rankers was not fitted on its {width} features")
    return [read_ranker(store.part(_NESTED.format(place), one)) for place, one in enumerate(facts)]


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
        parameters = _with_names_of_today(store.fact("parameters", dict), kind)
        ranker = kind(**decode_parameters(parameters))
        # parameters that are newer than the file keep what older versions did
        parameters = encode_parameters(ranker) | parameters
        ranker._check_parameters()
        ranker.n_features_in_ = width
        if names is not None:
            if len(names) != width or len(set(names)) < width or not all(isinstance(one, str) for one in names):
                raise RankwiseError(f"it names {len(names)} features of {width}")
            ranker.feature_names_in_ = np.array(names, dtype=object)
        ranker.record_ = FitRecord.read(store, parameters, width, names)
        with np.errstate(invalid="raise"):  # NaN where a whole number belongs
            learned = store.fact("learned", dict)
            ranker._restore({_RENAMED.get(name, name): value for name, value in learned.items()}, store)
        _refuse_unless_it_scores(ranker, width)
    except FileFormatError:
        raise
    except Exception as error:  # a hostile file may provoke any error
        about = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{store.path} is damaged: {about:.200}") from error
    return ranker


def _with_names_of_today(parameters: Mapping[str, Any], kind: type[Ranker]) -> dict[str, Any]:
    """Parameters by the names that they have now, and those that version 0.1 did not know as it worked."""
    known = kind._get_param_names()
    old = {name: parameters[name] for name in _RENAMED if name in parameters and name not in known}
    found = {name: value for name, value in parameters.items() if name not in old}
    found |= {_RENAMED[name]: value for name, value in old.items()}
    found = {**kind.before, **found}
    if old.get("ball") is not None and "penalty" in known:  # a ball of a batch ranker was one in the l1 norm
        found["penalty"] = "l1"
    return found


def _refuse_unless_it_scores(ranker: Ranker, width: int) -> None:
    """Raise an error if what was restored gives no finite scores for harmless rows: each number may be valid alone."""
    if width > _MOST_PROBED:
        return
    rows = np.zeros((3, width))
    rows[1], rows[2, ::2] = 1e6, 1e6  # as large as features are, and not negative: some engines' scores never are
    probe = Queries._trusted(rows, None, np.array([0, 3]))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = ranker.predict(probe)
    if not np.isfinite(scores).all():
        raise RankwiseError("what it learned is beyond what float64 can compute with: scores are not finite")
