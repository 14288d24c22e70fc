"""Join sets of queries without merging two queries into one.

Parts with the same feature names in another order are aligned by name. What only some of the parts carry (labels, ids,
feature names) raises an error that names the part.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise.data.queries import Queries, as_queries
from rankwise.data.string_column import StringColumn


def concat(parts: Sequence[Queries], *, rename: bool = False) -> Queries:
    """All queries of the parts, in order; see :meth:`Queries.concat`."""
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Iterable):
        raise DataError(f"concat takes a list of Queries: found {type(parts).__name__}")
    parts = [as_queries(part, "concat") for part in parts]
    if not parts:
        raise DataError("concat needs at least one part: found none")
    parts = _same_features(parts)
    bounds = np.cumsum([0, *(part.n_documents for part in parts)])
    grouped = all(part.is_grouped for part in parts)
    start = [parts[0].start[:1]] + [part.start[1:] + bound for part, bound in zip(parts, bounds, strict=False)]
    weighted = any(part.weight is not None for part in parts)
    return Queries._trusted(
        np.concatenate([part.X for part in parts]),
        _labels(parts),
        np.concatenate(start),
        None if grouped else np.concatenate([part.rows + bound for part, bound in zip(parts, bounds, strict=False)]),
        weight=np.concatenate([part.query_weight for part in parts]) if weighted else None,
        qid=_ids(parts, rename),
        docid=_docids(parts),
        feature_names=parts[0].feature_names,
        scaling=parts[0].scaling if all(part.scaling == parts[0].scaling for part in parts) else None,
    )


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


def _labels(parts: Sequence[Queries]) -> NDArray[np.float64] | None:
    """The labels of all parts, or None where no part has any."""
    labels = [part.y for part in parts if part.y is not None]
    if labels and len(labels) != len(parts):
        unlabelled = next(number for number, part in enumerate(parts) if part.y is None)
        raise DataError(f"part {unlabelled} carries no labels and others do: label all parts or none")
    return np.concatenate(labels) if labels else None


def _ids(parts: Sequence[Queries], rename: bool) -> NDArray[Any] | None:
    """The query ids of all parts; an id in two parts raises an error unless ids are renamed."""
    if rename:
        texts = [f"{number}/{name}" for number, part in enumerate(parts) for name in part.names()]
        return np.array(texts, dtype=str)
    ids = [part.qid for part in parts if part.qid is not None]
    if not ids:
        return None
    if len(ids) != len(parts):
        nameless = next(number for number, part in enumerate(parts) if part.qid is None)
        raise DataError(f"part {nameless} has no query ids and others do: give rename=True")
    owner: dict[Any, int] = {}
    for number, part in enumerate(parts):
        for name in part.names():
            if owner.setdefault(name, number) != number:
                raise DataError(
                    f"query {name!r} is in part {owner[name]} and in part {number}: if they are different queries, "
                    "give rename=True"
                )
    if len({part.dtype.kind for part in ids}) == 1:
        return np.concatenate(ids)
    return np.concatenate([part.astype(object) for part in ids])


def _docids(parts: Sequence[Queries]) -> StringColumn | None:
    """The document ids of all parts, or None where no part has any."""
    docids = [part.docid for part in parts if part.docid is not None]
    if docids and len(docids) != len(parts):
        nameless = next(number for number, part in enumerate(parts) if part.docid is None)
        raise DataError(f"part {nameless} has no document ids and others do")
    return StringColumn.concat(docids) if docids else None
