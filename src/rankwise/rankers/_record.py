"""What a fit keeps about itself, apart from what it learned: :class:`FitRecord`.

``set_params`` may change the parameters of a fitted ranker at any time, and anyone can write into ``coef_``, but a
certificate is about the fit. The record therefore holds a copy of the parameters and a digest of what was learned, and
fingerprints of the queries that the fit saw.
"""

import copy
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._codec import Opaque, decode_parameters, encode_parameters, from_json_value, to_json_value
from rankwise._digest import canonical_json, digest_state
from rankwise._store import Store, StoreWriter
from rankwise.errors import RankwiseError
from rankwise.features.state import append_builder, read_builder
from rankwise.losses._base import Loss
from rankwise.queries.fingerprints import (
    MOST,
    SKETCHED,
    Fingerprints,
    Seen,
    TrainingRecord,
    fingerprints,
    packed,
    recorded_weights,
)
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler

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

    # ------------------------------------------------------------------------------------------- during a fit

    def with_validation(self, ranker: "Ranker", validation: Queries) -> "FitRecord":
        """The same with validation queries, which count as training queries if the ranker learns from them."""
        if self.seen is None:
            return self
        marks = fingerprints(validation, n_jobs=ranker.n_jobs)
        if not ranker.learns_from_validation or self.seen.record is None:
            return replace(self, seen=self.seen.with_validation(marks))
        record = self.seen.record.added(marks, recorded_weights(validation))
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
        if self.scaler is not None:
            file.metadata["scaling"], learned = self.scaler.to_state()
            for name, array in learned.items():
                file.append(f"scaling.{name}", array)
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
    seen = Seen(record=TrainingRecord().added(marks, recorded_weights(train))).with_training(marks)
    for source in _warm_start_sources(ranker):
        seen |= source.record_.seen or Seen()
    return seen


def _warm_start_sources(ranker: "Ranker") -> "list[Ranker]":
    """The rankers among the parameters, which a ranker may start from, and the ranker itself with a warm start."""
    sources: list[Any] = []
    for value in ranker.get_params(deep=False).values():
        sources += value if isinstance(value, (list, tuple)) else [value]
    if getattr(ranker, "warm_start", False) and hasattr(ranker, "coef_"):
        sources.append(ranker)
    return [source for source in sources if isinstance(getattr(source, "record_", None), FitRecord)]


def digest_of(ranker: "Ranker") -> str:
    """SHA-256 of what a ranker has learned."""
    facts, arrays = ranker._frozen_state()
    if hasattr(ranker, "coef_"):  # online rankers derive it from their state, and predict with it
        arrays = {**arrays, "coef": ranker.coef_}
    return digest_state(facts, arrays)


def _read_seen(store: Store) -> Seen:
    """Fingerprints of the queries that the ranker saw."""
    forgotten, parts = store.fact("seen_queries", dict), {}
    for part in _SEEN:
        hashes, lost = store.array(f"seen_queries.{part}.hash", np.uint64, (None,)), forgotten.get(part)
        if not isinstance(lost, int) or isinstance(lost, bool) or lost < 0 or len(hashes) > MOST:
            raise RankwiseError(f"it remembers {len(hashes):,} queries, and {lost!r:.40} more that it forgot")
        sketches = store.array(f"seen_queries.{part}.documents", np.uint32, (len(hashes), SKETCHED))
        parts[part] = Fingerprints.of(packed(hashes, sketches), lost)
    record = "seen_queries.record"
    known = TrainingRecord(*store.array(record, np.uint64, (4,)).tolist()) if record in store else None
    return Seen(parts["training"], parts["validation"], known)


def _read_scaler(store: Store, width: int) -> Scaler:
    """The scaler that made the features which the ranker learned from."""
    learned = ("center", "scale")
    arrays = {name: store.array(f"scaling.{name}", np.float64) for name in learned if f"scaling.{name}" in store}
    scaler = Scaler.from_state(store.fact("scaling", dict), arrays)
    if scaler.n_features_in_ != width:
        raise RankwiseError(f"it scales {scaler.n_features_in_!s:.20} features of {width}")
    return scaler
