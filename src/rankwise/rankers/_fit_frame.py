"""What frames a fit: its data and parameters are checked before it, and its parameters are frozen after it.

``set_params`` may change the parameters of a fitted ranker at any time, and anyone can write into ``coef_``, but a
certificate is about the fit. ``fit`` therefore keeps :class:`Frozen`: a copy of its parameters and a digest of what it
learned. Parameters are kept as JSON values (:func:`plain`, :func:`meant`), as in the file of a ranker.
"""

import copy
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, NothingLearnedWarning, RankwiseError, warn
from rankwise.losses._base import Loss
from rankwise.losses._base import registered as known_losses
from rankwise.measures._base import Measure, parse
from rankwise.queries.fingerprints import Seen
from rankwise.queries.overlap import overlap
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker

Vector = NDArray[np.float64]

# Parameters that do not change what is learned.
IDLE = ("n_jobs", "verbose", "missing")

# Standard deviations that differ by more than this factor are uneven: a rare indicator beside a standardized number
# differs by 10. Deviations of few rows say nothing, and those of many rows are estimated from some.
_UNEVEN = 30.0
_FEW_ROWS, _LOOKED_AT = 100, 20_000

# Parameters whose rankers are fitted with their own parameters; of rankers elsewhere only the weights matter.
_RANKERS = ("members", "ranker")

# -------------------------------------------------------------------------------------------------- checks of the data


def is_outermost_fit() -> bool:
    """Whether the calling ``fit`` is not inside another one; rankers fitted inside another ranker do not warn.

    The call stack is inspected because a flag could stay set after Ctrl-C.
    """
    own = sys._getframe(1)
    frame = own.f_back
    while frame is not None and frame.f_code is not own.f_code:
        frame = frame.f_back
    return frame is None


def refuse_unknown(function: str, unknown: Mapping[str, Any]) -> None:
    """Raise an error for unknown arguments; for ``sample_weight`` it names the alternative."""
    if "sample_weight" in unknown:
        raise DataError(
            f"{function} takes no sample_weight: in rounds, queries are weighted and documents are not; give "
            "Queries.from_arrays(X, y, qid=..., weight=one number per query)"
        )
    for name in unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def refuse_without_documents(ranker: str, queries: Queries) -> None:
    """Raise an error if there are no documents, or no features."""
    if not queries.n_documents:
        raise DataError(f"{ranker}.fit needs judged documents: found {len(queries):,} queries with none")
    if not queries.n_features:
        raise DataError(
            f"{ranker}.fit needs features: found 0 feature(s) (shape={(queries.n_documents, 0)}) while a minimum of 1 "
            "is required."
        )


def warn_if_all_orders_are_alike(ranker: str, queries: Queries) -> None:
    """Warn if no query of non-zero weight holds two different labels."""
    if isinstance(queries, ChunkedQueries):
        differs = queries.survey.differs & (queries.query_weight > 0)
    else:
        labels, sizes = queries.labels(), queries.sizes
        in_order = queries.in_query_order(labels)
        first = np.repeat(in_order[np.minimum(queries.start[:-1], len(labels) - 1)], sizes)
        differs = in_order != first
        if queries.weight is not None:
            differs &= np.repeat(queries.weight > 0, sizes)
    if not differs.any():
        weighted = "" if queries.weight is None else " and a weight above 0"
        warn(
            f"{ranker} has nothing to learn: no query holds documents with different labels{weighted}, so that all "
            "orders of its documents are equally good",
            NothingLearnedWarning,
        )


def warn_of_shared_queries(ranker: str, seen: Seen, validation: Queries, n_jobs: int | None) -> None:
    """Warn if validation queries, by their content, are among the training queries.

    The training queries of rankers that this one starts from count; their validation queries do not.
    """
    shared = int(overlap(validation, seen.training, n_jobs=n_jobs).identified.sum())
    if shared:
        warn(
            f"{ranker}: {shared:,} of {len(validation):,} validation queries are among the training queries, so model "
            "selection favors overfitting: pass queries that are not used for training"
        )


def warn_of_uneven_features(ranker: str, queries: Queries, instead: str) -> None:
    """Warn if features vary on very different scales, and the ranker moves all weights by steps of one size.

    Parameters
    ----------
    ranker : str
        The name of the ranker.
    queries : Queries
        The training queries; data sets in parts and queries that a Scaler made are not looked at.
    instead : str
        What to do.
    """
    if isinstance(queries, ChunkedQueries) or queries.scaling is not None or queries.n_documents < _FEW_ROWS:
        return
    some = np.asarray(queries.X[:: -(-queries.n_documents // _LOOKED_AT)], dtype=np.float64)
    with np.errstate(all="ignore"):  # huge features are an error elsewhere
        deviation = some.std(axis=0)
    varies = np.flatnonzero((deviation > 0) & np.isfinite(deviation))
    if not len(varies):
        return
    low, high = (int(varies[place(deviation[varies])]) for place in (np.argmin, np.argmax))
    ratio = deviation[high] / deviation[low]
    if ratio > _UNEVEN:
        names = queries.feature_names or [f"number {number}" for number in range(queries.n_features)]
        warn(
            f"{ranker} learns little from features on different scales: the standard deviation of feature "
            f"{names[high]!s:.40} is {ratio:,.0f} times that of feature {names[low]!s:.40}; {instead}"
        )


# ------------------------------------------------------------------------------------------- checks of the parameters


def as_grid(
    given: float | Sequence[float] | None, usual: Sequence[float], name: str, positive: bool = False
) -> tuple[float, ...]:
    """One alpha or several as a tuple.

    Parameters
    ----------
    given : float, sequence of float or None
        What the user gave.
    usual : sequence of float
        What None stands for.
    name : str
        The name of the parameter, for messages.
    positive : bool, default=False
        Whether 0 raises an error.

    Returns
    -------
    tuple of float
        The values, in the order given.

    Raises
    ------
    RankwiseError
        If there are none, or if one of them is negative or not finite.
    """
    values = tuple(usual) if given is None else as_numbers(given)
    if not values or not all(np.isfinite(value) and value >= 0 for value in values):
        raise RankwiseError(f"{name} is one number or several, finite and 0 or more: found {given!r:.60}")
    if positive and min(values) == 0:
        raise RankwiseError(f"{name} is above 0, because the objective may have no minimum without it: found 0")
    return values


def as_numbers(given: Any) -> tuple[float, ...]:
    """One number or a sequence of numbers as a tuple; empty for anything else."""
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        return ()
    return tuple(values.tolist()) if values.ndim == 1 else ()


def raw_weights(given: Any, features: int, what: str, choices: str) -> Vector:
    """Weights on raw features from a fitted linear ranker or a vector; errors name the parameter and its choices."""
    try:
        raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    except (TypeError, ValueError):
        raise RankwiseError(
            f"{what} is {choices}: found {type(given).__name__} without coef_ "
            "(scikit-learn's clone forgets what a ranker has learned: give its coef_)"
        ) from None
    if raw.shape != (features,):
        raise DataError(f"{what} has one weight per feature, {features}: found shape {raw.shape}")
    if not np.isfinite(raw).all():
        raise DataError(f"{what} has finite weights: found {raw[~np.isfinite(raw)][0]}")
    return raw


# ------------------------------------------------------------------------------------------------- what a fit freezes


class Opaque(NamedTuple):
    """A parameter that cannot be made again from JSON: a random generator, or a loss that is not registered."""

    value: Any


@dataclass(frozen=True)
class Frozen:
    """The parameters of a fit, and a digest of its result.

    Attributes
    ----------
    parameters : mapping of str to object
        Copies of the parameters, in the form of :func:`plain` if they have one.
    digest : str
        SHA-256 of what was learned.
    """

    parameters: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, ranker: "Ranker", parameters: Mapping[str, Any] | None = None) -> "Frozen":
        """The ranker as it is; ``parameters`` are those of an earlier fit that it continued."""
        return cls(plain_parameters(ranker) if parameters is None else parameters, digest_of(ranker))

    def changed(self, ranker: "Ranker") -> dict[str, tuple[Any, Any]]:
        """Parameters that differ from those of the fit: (at the fit, now) by name."""
        today = plain_parameters(ranker)
        pairs = {name: (self.parameters.get(name), value) for name, value in today.items()}
        return {
            name: (meant(then), meant(now))
            for name, (then, now) in pairs.items()
            if name not in IDLE and _text(then) != _text(now)
        }

    def restored(self, ranker: "Ranker") -> "Ranker":
        """A copy of the ranker with the parameters of the fit; what was learned is shared."""
        twin = copy.copy(ranker)
        twin.__dict__.update(meant_all(self.parameters))
        return twin

    def written(self, today: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for a file: those of the fit, except those in ``IDLE`` and those that JSON cannot hold."""
        found = {}
        for name, value in self.parameters.items():
            if isinstance(value, Opaque) and isinstance(value.value, Loss):
                found[name] = plain(value.value, name)
            else:
                found[name] = today[name] if name in IDLE or isinstance(value, Opaque) else value
        return found


def digest_of(ranker: "Ranker") -> str:
    """SHA-256 of what a ranker has learned."""
    facts, arrays = ranker._frozen_state()
    if hasattr(ranker, "coef_"):  # online rankers derive it from their state, and predict with it
        arrays = {**arrays, "coef": ranker.coef_}
    found = hashlib.sha256(_text(facts).encode())
    for name, array in sorted(arrays.items()):
        plain_array = np.ascontiguousarray(array)
        found.update(f"{name} {plain_array.dtype.str} {plain_array.shape}".encode())
        found.update(plain_array.tobytes())
    return found.hexdigest()


def plain_parameters(ranker: "Ranker") -> dict[str, Any]:
    """The parameters of a ranker by name, in the form of :func:`plain` if they have one."""
    found = {}
    for name, value in ranker.get_params(deep=False).items():
        try:
            # a loss of the user's own is immutable, but cannot be made again from its name
            foreign = isinstance(value, Loss) and known_losses().get(value.name) is not type(value)
            found[name] = Opaque(value) if foreign else plain(value, name)
        except RankwiseError:
            found[name] = Opaque(value)
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


# -------------------------------------------------------------------------------------------------- parameters as JSON


def plain(value: Any, name: str) -> Any:
    """A parameter as a JSON value."""
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
    from rankwise.rankers._base import Ranker  # which imports this module

    if isinstance(value, Ranker) and hasattr(value, "coef_") and name not in _RANKERS:
        return plain(value.coef_, name)  # a start or a prior: only its weights matter
    if isinstance(value, Ranker):
        given = value.get_params(deep=False)
        return {"ranker": value.name, "parameters": {key: plain(item, key) for key, item in given.items()}}
    if hasattr(value, "fit") and hasattr(value, "transform"):
        return {"transformer": _plain_transformer(value, name)}
    raise RankwiseError(
        f"the parameter {name}={value!r:.60} cannot be saved: a file holds numbers, strings, measures, losses and "
        "rankers"
    )


def _plain_transformer(value: Any, name: str) -> Any:
    """The parameters of a transformer as a JSON value."""
    from sklearn.base import clone

    from rankwise.features.stored import Packed

    packed = Packed()
    found = packed.pack(clone(value), f"the parameter {name}")
    if packed.arrays:
        raise RankwiseError(f"the parameter {name}={value!r:.60} cannot be saved: it holds an array")
    return found


def meant(value: Any) -> Any:
    """The parameter that :func:`plain` encoded."""
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
    if "ranker" in value:
        from rankwise.rankers._base import registered  # which imports this module

        found = registered().get(value["ranker"])
        if found is None:
            raise RankwiseError(f"it needs a ranker {value['ranker']!r:.40}, which is not installed here")
        return found(**{key: meant(item) for key, item in value["parameters"].items()})
    if "transformer" in value:
        from rankwise.features.stored import unpacked

        return unpacked(value["transformer"], {})
    if "list" in value:
        items = [meant(item) for item in value["list"]]
        return tuple(items) if value["tuple"] else items
    return {meant(key): meant(item) for key, item in value["pairs"]}


def meant_all(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, decoded by :func:`meant`."""
    return {name: meant(value) for name, value in parameters.items()}
