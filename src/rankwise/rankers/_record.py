"""What a fit keeps about itself, apart from what it learned: :class:`FitRecord`.

``set_params`` may change the parameters of a fitted ranker at any time, and anyone can write into ``coef_``, but a
certificate is about the fit. The record therefore holds a copy of the parameters and a digest of what was learned, and
fingerprints of the queries that the fit saw.

Parameters are kept as JSON values. Numbers, strings and None stand for themselves. Everything else is an object whose
first key names the kind: a measure, a loss, a ranker, a transformer, a list or a mapping.

The file of a fitted ranker (:func:`save_ranker`, :func:`read_ranker`) holds the name of the class, the parameters and
what was learned as arrays. It holds no code, and reading it runs none, for it may be a stranger's: only registered
classes are made.
"""

import copy
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._arrays import Array
from rankwise._store import Store, StoreWriter, canonical_json, digest_state
from rankwise._version import __version__
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.features.codec import Packed, unpack
from rankwise.features.state import append_builder, read_builder
from rankwise.losses._base import Loss
from rankwise.losses._base import registered as known_losses
from rankwise.measures._base import Measure, parse
from rankwise.queries.fingerprints import (
    MOST,
    SKETCHED,
    Fingerprints,
    Seen,
    TrainingRecord,
    fingerprints,
    pack_marks,
    weights_to_record,
)
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.queries.source import QuerySource
from rankwise.queries.stored import append_scaler, read_scaler

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.rankers._base import Ranker


# Parameters that do not change what is learned.
IDLE = ("n_jobs", "verbose", "missing")
_SEEN = ("training", "validation")


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What a fit keeps about its data and its parameters.

    Attributes
    ----------
    seen : Seen or None
        Fingerprints of all queries that the fit saw; None if they are not known, as in files of older versions.
    parameters : mapping of str to object, or None
        Copies of the parameters, encoded as in files if they can be; None if they are not known.
    digest : str or None
        SHA-256 of what was learned.
    document_weights : bool
        Whether the fit used document weights that differ from 1.
    click_sessions : ndarray of uint64, or None
        Hashes of the sessions of the click log that the fit learned from; they are not saved.
    builder : FeatureBuilder or None
        The builder that made the training queries of a table.
    scaler : Scaler or None
        The scaler that made the features of the training queries.
    """

    seen: Seen | None = None
    parameters: Mapping[str, Any] | None = None
    digest: str | None = None
    document_weights: bool = False
    click_sessions: NDArray[np.uint64] | None = None
    builder: "FeatureBuilder | None" = None
    scaler: Scaler | None = None

    @property
    def learned_features(self) -> str:
        """Why bounds that take the features as fixed do not hold, if a curve for each was learned; else empty."""
        learned = self.scaler is not None and self.scaler.how == "normal"
        return "the normal scores of the features were learned from documents, not fixed beforehand" if learned else ""

    # ------------------------------------------------------------------------------------------- during a fit

    def with_validation(self, ranker: "Ranker", validation: Queries) -> "FitRecord":
        """The same with validation queries, which count as training queries if the ranker learns from them."""
        if self.seen is None:
            return self
        marks = fingerprints(validation, n_jobs=ranker.n_jobs)
        if not ranker.learns_from_validation or self.seen.record is None:
            return replace(self, seen=self.seen.with_validation(marks))
        record = self.seen.record.add(marks, weights_to_record(validation))
        weighted = ranker.takes_document_weights and validation.has_document_weights
        return replace(
            self,
            seen=replace(self.seen.with_training(marks), record=record),
            document_weights=self.document_weights or weighted,
        )

    def with_result(self, ranker: "Ranker", *, continued: bool = False) -> "FitRecord":
        """The same with what the ranker has learned; a continued run keeps the parameters that it began with."""
        if continued and self.parameters is None:
            return self
        parameters = self.parameters if continued else encode_parameters(ranker)
        return replace(self, parameters=parameters, digest=digest_of(ranker))

    # ------------------------------------------------------------------------------------------- after a fit

    def changed_parameters(self, ranker: "Ranker") -> dict[str, tuple[Any, Any]]:
        """Parameters that differ from those of the fit: (at the fit, now) by name."""
        before = self.parameters or {}
        return {
            name: (from_json_value(before.get(name)), from_json_value(now))
            for name, now in encode_parameters(ranker).items()
            if name not in IDLE and canonical_json(before.get(name)) != canonical_json(now)
        }

    def as_fitted(self, ranker: "Ranker") -> "Ranker":
        """A copy of the ranker with the parameters of the fit; what was learned is shared."""
        twin = copy.copy(ranker)
        twin.__dict__.update(decode_parameters(self.parameters or {}))
        return twin

    # ------------------------------------------------------------------------------------------- files

    def parameters_for_file(self, ranker: "Ranker") -> dict[str, Any]:
        """The parameters for a file: those of the fit, except those in ``IDLE`` and those that JSON cannot hold."""
        now = {name: to_json_value(value, name) for name, value in ranker.get_params(deep=False).items()}
        if self.parameters is None:
            return now
        written = {}
        for name, value in self.parameters.items():
            if isinstance(value, Opaque) and isinstance(value.value, Loss):
                written[name] = to_json_value(value.value, name)
            else:
                written[name] = now[name] if name in IDLE or isinstance(value, Opaque) else value
        return written

    def append_to(self, file: StoreWriter) -> None:
        """Write fingerprints, scaler and builder into the file of a ranker."""
        if self.seen is not None:
            file.metadata["seen_queries"] = {part: getattr(self.seen, part).forgotten for part in _SEEN}
            for part in _SEEN:
                marks = getattr(self.seen, part).marks
                file.append(f"seen_queries.{part}.hash", marks["hash"])
                file.append(f"seen_queries.{part}.documents", marks["documents"])
            if self.seen.record is not None:
                file.append("seen_queries.record", np.array(astuple(self.seen.record), dtype=np.uint64))
        append_scaler(file, self.scaler)
        if self.builder is not None:
            append_builder(file, self.builder.to_state())

    @classmethod
    def read(cls, store: Store, parameters: Mapping[str, Any], width: int, names: list[str] | None) -> "FitRecord":
        """The record in the file of a ranker with so many features; the file is untrusted."""
        digest = store.fact("digest", str) if "digest" in store.metadata else None
        builder = read_builder(store) if "features" in store.metadata else None
        if builder is not None and list(builder.feature_names_out_) != names:
            raise RankwiseError("its features are not those of its FeatureBuilder")
        return cls(
            seen=_read_seen(store) if "seen_queries" in store.metadata else None,
            # files without a digest may hold parameters that were changed after the fit
            parameters=None if digest is None else parameters,
            digest=digest,
            document_weights="document_weights" in store.metadata and store.fact("document_weights", bool),
            builder=builder,
            scaler=_read_scaler(store, width) if "scaling" in store.metadata else None,
        )


def record_of(model: Any) -> FitRecord:
    """The record of a fitted ranker; an empty one for any other model."""
    record = getattr(model, "record_", None)
    return record if isinstance(record, FitRecord) else FitRecord()


def begin_record(ranker: "Ranker", train: Queries, click_sessions: Any = None) -> None:
    """Set the features of a ranker and its record, before it learns from these queries."""
    ranker.n_features_in_ = train.n_features
    ranker.__dict__.pop("feature_names_in_", None)
    if train.feature_names is not None:
        ranker.feature_names_in_ = np.array(train.feature_names, dtype=object)
    ranker.record_ = FitRecord(
        seen=Seen() if ranker._records_rounds else _training_seen(ranker, train),
        document_weights=train.has_document_weights,
        click_sessions=click_sessions,
        builder=train.built_by,
        scaler=train.scaling,
    )


def _training_seen(ranker: "Ranker", train: Queries) -> Seen:
    """Fingerprints of the training queries, and of those that rankers which this one starts from saw."""
    marks = fingerprints(train, n_jobs=ranker.n_jobs)
    seen = Seen(record=TrainingRecord().add(marks, weights_to_record(train))).with_training(marks)
    for source in _warm_start_sources(ranker):
        seen |= source.record_.seen or Seen()
    return seen


def _warm_start_sources(ranker: "Ranker") -> "list[Ranker]":
    """The rankers among the parameters, which a ranker may start from, and the ranker itself with a warm start."""
    sources: list[Any] = []
    for value in ranker.get_params(deep=False).values():
        sources += value if isinstance(value, (list, tuple)) else [value]
    if getattr(ranker, "warm_start", False):
        sources.append(ranker)
    return [source for source in sources if isinstance(getattr(source, "record_", None), FitRecord)]


@contextmanager
def record_passes(
    ranker: "Ranker", checkpoint: "str | os.PathLike[str]", train: QuerySource, held: QuerySource | None
) -> Iterator[None]:
    """Record the passes of a fit, and take those that an earlier run recorded.

    Parameters
    ----------
    ranker : Ranker
        The ranker.
    checkpoint : path
        The folder.
    train : QuerySource
        What is learned from.
    held : QuerySource or None
        What is used for model selection.

    Yields
    ------
    None
        Nothing.
    """
    from rankwise.queries.passes.journal import Journal

    given = {
        name: type(value.value).__name__ if isinstance(value, Opaque) else value
        for name, value in encode_parameters(ranker).items()
        if name not in IDLE
    }
    about = {
        "ranker": ranker.name,
        "parameters": canonical_json(given),
        "data": train.identity,
        "validation": "none" if held is None else held.identity,
        # other versions may have other bits
        "versions": f"rankwise {__version__}, numpy {version('numpy')}, numba {version('numba')}",
    }
    journal = Journal(checkpoint, about)
    recorded = [one for one in (train, held) if one is not None]
    for one in recorded:
        one.record_in(journal)
    try:
        yield
    finally:
        for one in recorded:
            one.record_in(None)
        journal.close()


def digest_of(ranker: "Ranker") -> str:
    """SHA-256 of what a ranker has learned."""
    facts, arrays = ranker._frozen_state()
    if hasattr(ranker, "coef_"):  # online rankers derive it from their state, and predict with it
        arrays = {**arrays, "coef": ranker.coef_}
    return digest_state(facts, arrays)


def digest_of_scores(ranker: "Ranker") -> str:
    """SHA-256 of everything that the scores of a ranker depend on, apart from the documents.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.

    Returns
    -------
    str
        64 hexadecimal digits. Beside what was learned they depend on the scaler of the training queries, and on the
        FeatureBuilder that made their features.
    """
    record = ranker.record_
    before = [None if one is None else one.digest_ for one in (record.scaler, record.builder)]
    return digest_state([ranker.name, digest_of(ranker), *before], {})


def _read_seen(store: Store) -> Seen:
    """Fingerprints of the queries that the ranker saw."""
    forgotten, parts = store.fact("seen_queries", dict), {}
    for part in _SEEN:
        hashes, lost = store.array(f"seen_queries.{part}.hash", np.uint64, (None,)), forgotten.get(part)
        if not isinstance(lost, int) or isinstance(lost, bool) or lost < 0 or len(hashes) > MOST:
            raise RankwiseError(f"it remembers {len(hashes):,} queries, and {lost!r:.40} more that it forgot")
        sketches = store.array(f"seen_queries.{part}.documents", np.uint32, (len(hashes), SKETCHED))
        parts[part] = Fingerprints.of(pack_marks(hashes, sketches), lost)
    record = "seen_queries.record"
    known = TrainingRecord(*store.array(record, np.uint64, (4,)).tolist()) if record in store else None
    return Seen(parts["training"], parts["validation"], known)


def _read_scaler(store: Store, width: int) -> Scaler:
    """The scaler that made the features which the ranker learned from."""
    scaler = read_scaler(store)
    if scaler is None:
        raise RankwiseError("its scaler is not one")
    if scaler.n_features_in_ != width:
        raise RankwiseError(f"it scales {scaler.n_features_in_!s:.20} features of {width}")
    return scaler


# --------------------------------------------------------------------------------------------------- parameters as JSON


# Parameters whose rankers are fitted with their own parameters; of rankers elsewhere only the weights matter.
_RANKERS = ("members", "ranker", "weak")
# Names of parameters in files of before.
RENAMED = {"normalised": "normalized"}


class Opaque(NamedTuple):
    """A parameter that cannot be made again from JSON: a random generator, or a loss that is not registered."""

    value: Any


class Elsewhere(NamedTuple):
    """A parameter whose value the file of a fitted ranker holds among what was learned, such as trees.

    Attributes
    ----------
    digest : str
        SHA-256 of the value.
    """

    digest: str


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
    digest = getattr(value, "digest", None)
    if isinstance(digest, str):  # the file of a fitted ranker holds it among what was learned
        return {"elsewhere": digest}
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
        from rankwise.rankers._base import registered

        return _make(value, "ranker", registered())
    if "transformer" in value:
        return unpack(value["transformer"], {})
    if "elsewhere" in value:
        return Elsewhere(str(value["elsewhere"]))
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
    if kind == "ranker":
        parameters = made._parameters_from_file(parameters)
    return made(**decode_parameters(parameters))


# ------------------------------------------------------------------------------------------------------------- the file


KIND = "ranker"
_LAYOUT = 1
_MOST_PROBED = 1_000_000  # features; rows of more would take memory for a number that may be a lie
_NESTED = "member.{}."  # begins the names of the arrays of a ranker inside of another one
_RENAMED = {"strength": "alpha", "center": "prior_coef", "ball": "max_norm", **RENAMED}


def save_ranker(ranker: "Ranker", path: str | os.PathLike[str] | BytesIO) -> None:
    """Write the file of a fitted ranker atomically, or into memory."""
    metadata, arrays = state_of(ranker)
    with StoreWriter(path, KIND) as file:
        file.metadata.update(metadata)
        for name, array in arrays.items():
            file.append(name, array)
        ranker.record_.append_to(file)


def state_of(ranker: "Ranker") -> tuple[dict[str, Any], dict[str, Array]]:
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


def nested_state(rankers: "Sequence[Ranker]") -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """(facts, arrays) of the rankers inside of another one; the queries that they saw are among those of the other."""
    parts = [state_of(ranker) for ranker in rankers]
    arrays = {
        f"{_NESTED.format(place)}{name}": array for place, (_, own) in enumerate(parts) for name, array in own.items()
    }
    return [metadata for metadata, _ in parts], arrays


def read_nested(store: Store, facts: Any, width: int) -> "list[Ranker]":
    """The rankers that :func:`nested_state` wrote, all of them on ``width`` features."""
    if not isinstance(facts, list) or not all(isinstance(one, dict) for one in facts):
        raise RankwiseError("it holds no list of rankers where one belongs")
    if any(one.get("n_features") != width for one in facts):  # before any of them takes memory for its features
        raise RankwiseError(f"one of its rankers was not fitted on its {width} features")
    return [read_ranker(store.part(_NESTED.format(place), one)) for place, one in enumerate(facts)]


def read_ranker(store: Store) -> "Ranker":
    """The ranker in an opened file; what could not be one is refused, for the file may be a stranger's."""
    from rankwise.rankers._base import registered

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


def _with_names_of_today(parameters: Mapping[str, Any], kind: "type[Ranker]") -> dict[str, Any]:
    """Parameters by the names that they have now, and those that version 0.1 did not know as it worked."""
    known = kind._get_param_names()
    old = {name: parameters[name] for name in _RENAMED if name in parameters and name not in known}
    found = {name: value for name, value in parameters.items() if name not in old}
    found |= {_RENAMED[name]: value for name, value in old.items()}
    found = {**kind.before, **found}
    if old.get("ball") is not None and "penalty" in known:  # a ball of a batch ranker was one in the l1 norm
        found["penalty"] = "l1"
    return kind._parameters_from_file(found)


def _refuse_unless_it_scores(ranker: "Ranker", width: int) -> None:
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
