"""Join sets of queries without merging two queries into one.

Parts with the same feature names in another order are aligned by name. What only some of the parts carry (labels, ids,
feature names) raises an error that names the part.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.queries.grouping import StringColumn
from rankwise.queries.queries import Queries, as_queries


def concat(parts: Sequence[Queries], *, rename: bool = False) -> Queries:
    """All queries of the parts, in order; see :meth:`Queries.concat`."""
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Iterable):
        raise DataError(f"concat takes a list of Queries, got {type(parts).__name__}")
    parts = [as_queries(part, "concat") for part in parts]
    if not parts:
        raise DataError("concat needs at least one part, got none")
    parts = _same_features(parts)
    documents = [part.n_documents for part in parts]
    bounds = np.cumsum([0, *documents])
    grouped = all(part.is_grouped for part in parts)
    start = [parts[0].start[:1]] + [part.start[1:] + bound for part, bound in zip(parts, bounds, strict=False)]
    labels = _of_all(parts, "y", "carries no labels and others do: label all parts or none")
    docids = _of_all(parts, "docid", "has no document ids and others do")
    weighted = any(part.weight is not None for part in parts)
    return Queries._trusted(
        np.concatenate([part.X for part in parts]),
        None if labels is None else np.concatenate(labels),
        np.concatenate(start),
        None if grouped else np.concatenate([part.rows + bound for part, bound in zip(parts, bounds, strict=False)]),
        weight=np.concatenate([part.query_weight for part in parts]) if weighted else None,
        qid=_ids(parts, rename),
        docid=None if docids is None else StringColumn.concat(docids),
        feature_names=parts[0].feature_names,
        document_weight=join_or_ones([part.document_weight for part in parts], documents),
        judged=join_or_ones([part.judged for part in parts], documents, bool),
        scaling=parts[0].scaling if all(part.scaling == parts[0].scaling for part in parts) else None,
        built_by=common_builder(parts),
    )


def join_or_ones(columns: Sequence[Any], lengths: Iterable[int], dtype: Any = np.float64) -> Any:
    """Columns one behind the other, ones in place of those that are None; None if all of them are."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, lengths, strict=True)
    return np.concatenate([np.ones(length, dtype) if column is None else column for column, length in pairs])


def common_builder(parts: Sequence[Queries]) -> Any:
    """The builder that made the features of all parts, or None."""
    digests = {getattr(part.built_by, "digest_", None) for part in parts}
    return parts[0].built_by if len(digests) == 1 else None


def _same_features(parts: Sequence[Queries]) -> list[Queries]:
    """The parts with their features in the order of the first part."""
    first = parts[0]
    aligned = []
    for number, part in enumerate(parts):
        if part.n_features != first.n_features:
            raise DataError(f"part 0 has {first.n_features} features, part {number} has {part.n_features}")
        if (part.feature_names is None) != (first.feature_names is None):
            raise DataError(f"of part 0 and part {number}, only one names its features: name both or none")
        aligned.append(part if first.feature_names is None else part.select_features(first.feature_names))
    return aligned


def _ids(parts: Sequence[Queries], rename: bool) -> NDArray[Any] | None:
    """The query ids of all parts; an id in two parts raises an error unless ids are renamed."""
    if rename:
        texts = [f"{number}/{name}" for number, part in enumerate(parts) for name in part.names()]
        return np.array(texts, dtype=str)
    ids = _of_all(parts, "qid", "has no query ids and others do: pass rename=True")
    if ids is None:
        return None
    owner: dict[Any, int] = {}
    for number, part in enumerate(parts):
        for name in part.names():
            if owner.setdefault(name, number) != number:
                raise DataError(
                    f"query {name!r} is in part {owner[name]} and in part {number}: if they are different queries, "
                    "pass rename=True"
                )
    if len({part.dtype.kind for part in ids}) == 1:
        return np.concatenate(ids)
    return np.concatenate([part.astype(object) for part in ids])


def _of_all(parts: Sequence[Queries], field: str, lack: str) -> list[Any] | None:
    """The field of every part, None where no part has it; an error where only some have."""
    values = [getattr(part, field) for part in parts]
    if all(value is None for value in values):
        return None
    nameless = next((number for number, value in enumerate(values) if value is None), None)
    if nameless is not None:
        raise DataError(f"part {nameless} {lack}")
    return values
