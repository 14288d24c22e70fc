"""What a gate needs to know of a model: a digest of what it computes, what it has seen, and its values on queries."""

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._arrays import Mask
from rankwise._store import canonical_json, digest_bytes, digest_state
from rankwise.errors import DataError
from rankwise.evaluation.evaluation import evaluate, predict_scores
from rankwise.features.table import RawTable
from rankwise.measures._base import Measure
from rankwise.queries.fingerprints import Seen, TrainingRecord
from rankwise.queries.overlap import overlap
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._inputs import align, apply_builder
from rankwise.rankers._record import IDLE, Opaque, digest_of, encode_parameters, record_of
from rankwise.rankers.certificate.claims import Population, population_of

Holdout = Queries | RawTable


@dataclass(frozen=True, eq=False)
class Asked:
    """A model on the queries of a gate.

    Attributes
    ----------
    queries : Queries
        The queries, with the features that the model takes.
    values : ndarray, shape (n_measures, n_queries)
        The measures; NaN where they are undefined.
    same : ndarray of bool, shape (n_queries,)
        Whether the content of each query was seen by the model.
    changed : bool
        Whether some are changed copies of queries that the model has seen.
    """

    queries: Queries
    values: NDArray[np.float64]
    same: NDArray[np.bool_]
    changed: bool


def identify(model: Any) -> str:
    """A digest of what a model computes, so that the same model is known again.

    Parameters
    ----------
    model : object
        A ranker of this package, by its class, its parameters and what it has learned; an array of scores, by these;
        any other model, by the bytes that pickle makes of it.

    Returns
    -------
    str
        The digest. Two different models never have the same; the same model may have two, which costs an attempt.
    """
    if isinstance(model, Ranker):
        model._check_fitted()
        parameters = {name: one for name, one in encode_parameters(model).items() if name not in IDLE}
        plain = {name: repr(one.value) if isinstance(one, Opaque) else one for name, one in parameters.items()}
        builder, scaler = record_of(model).builder, record_of(model).scaler
        made = (
            None if builder is None else builder.digest_,
            None if scaler is None else digest_state(*scaler.to_state()),
        )
        facts = [type(model).__qualname__, plain, digest_of(model), made]
        return digest_bytes(canonical_json(facts).encode())
    if not hasattr(model, "predict"):
        scores = np.ascontiguousarray(model, dtype=np.float64)
        return digest_bytes(b"scores", scores.tobytes())
    try:
        # a copy: what was fitted here and what was read from a file differ in bytes that mean nothing
        return digest_bytes(b"pickle", pickle.dumps(pickle.loads(pickle.dumps(model))))
    except Exception as error:  # pickle raises errors of any class
        raise DataError(
            f"a gate knows a {type(model).__name__} again by what pickle makes of it, which fails: pass its scores"
        ) from error


def digest_of_holdout(holdout: Holdout) -> dict[str, Any]:
    """What identifies a hold-out: the number of its queries, and a digest of content, labels and weights.

    Parameters
    ----------
    holdout : Queries or RawTable
        The hold-out. Queries are the same in any order; a table is the same if all of its columns are, row by row.

    Returns
    -------
    dict
        ``queries`` (rows of a table) and ``digest``.
    """
    if isinstance(holdout, Queries):
        record = TrainingRecord.of(holdout)
        return {"queries": record.count, "digest": digest_bytes(f"{record.content} {record.weighted}".encode())}
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(holdout.names):
        column = holdout.column(name)
        values = column.values.astype(np.float64).tobytes() if column.stored != "text" else repr(column.values.tolist())
        digest.update(repr((name, column.stored)).encode())
        digest.update(values if isinstance(values, bytes) else values.encode("utf-8", "surrogateescape"))
    return {"queries": holdout.n_rows, "digest": digest.hexdigest()}


def ask_model(model: Any, queries: Holdout, measures: list[Measure], conventions: Mapping[str, Any]) -> Asked:
    """Score and measure queries with a model, and compare them with those that it has seen.

    Parameters
    ----------
    model : object
        A fitted ranker, any object with ``predict``, or one score per document.
    queries : Queries or RawTable
        Judged queries.
    measures : list of Measure
        The measures.
    conventions : mapping
        ``ties``, ``empty`` and ``rel`` of :func:`rankwise.evaluate`.

    Returns
    -------
    Asked
        The values, and what was seen.
    """
    if isinstance(queries, RawTable):
        if record_of(model).builder is None:
            raise DataError(
                "a hold-out that is a table with texts, dates or gaps needs rankers that have a FeatureBuilder"
            )
        judged: Queries = apply_builder(model, queries, grouped=True, judged=True)
    else:
        judged = queries
    aligned = align(model, judged) if isinstance(model, Ranker) else judged
    # scores, not the model: evaluate warns of queries that a model has seen, and a warning is an answer, too
    scores = predict_scores(model, judged) if hasattr(model, "predict") else model
    values = evaluate(judged, scores, measures, **conventions).values
    same: Mask = np.zeros(len(judged), bool)
    changed = False
    seen = record_of(model).seen or Seen()
    for part in (seen.training, seen.validation):
        found = overlap(aligned, part)
        same |= found.same
        changed = changed or bool(found.changed.any())
    return Asked(aligned, values, same, changed)


def describe(queries: Queries, measures: list[Measure], conventions: Mapping[str, Any]) -> tuple[int, str]:
    """How many queries count, and which future queries the means are about; labels decide both, and no model.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    measures : list of Measure
        The measures.
    conventions : mapping
        ``ties``, ``empty`` and ``rel`` of :func:`rankwise.evaluate`.

    Returns
    -------
    count : int
        The number of queries for which all measures are defined.
    about : str
        The population in words.
    """
    values = evaluate(queries, np.zeros(queries.n_documents), measures, **conventions).values
    counted = ~np.isnan(values).any(axis=0) & (queries.query_weight > 0)
    found = Population()
    for row in values:
        found |= population_of(queries, row)
    return int(counted.sum()), str(found)
