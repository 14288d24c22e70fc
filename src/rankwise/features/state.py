"""The state of a fitted :class:`rankwise.FeatureBuilder` as JSON values and arrays, in the file of a model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._store import Store, StoreWriter, digest_state
from rankwise.errors import FileFormatError
from rankwise.features.codec import NotStorableError, Packed, unpack
from rankwise.features.columns import Decision, Kind
from rankwise.features.per_query import WITHIN
from rankwise.features.table import Column, RawTable
from rankwise.features.treatments import Treatment

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder

Arrays = Mapping[str, NDArray[Any]]
_KINDS = ("number", "boolean", "date", "amount", "category", "numbers", "texts")
_STEPS = {"fill", "scale", "encode", "own"}


def append_builder(file: StoreWriter, state: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> None:
    """Put the state of a builder into the facts and arrays of a file."""
    file.metadata["features"], arrays = state
    for name, array in arrays.items():
        file.append(name, array)


def read_builder(store: Store) -> "FeatureBuilder":
    """The builder in a file; what could not be one raises an error, for the file may be a stranger's."""
    from rankwise.features.builder import FeatureBuilder

    arrays = {name: store.array(name) for name in store.places if name.startswith("features.")}
    return FeatureBuilder.from_state(store.fact("features", dict), arrays)


def plain_state(builder: "FeatureBuilder") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(facts, arrays) of a fitted builder."""
    packed = Packed()
    facts = {
        "parameters": packed.pack(builder._parameters, "a FeatureBuilder"),
        "roles": builder.roles_,
        "width": builder.n_features_in_,
        "decisions": [{name: row[name] for name in ("column", "kind", "reason")} for row in builder.plan_],
        "treatments": [
            {
                "columns": list(one.columns),
                "kind": one.kind,
                "reading": packed.pack(one.reading, one.columns[0]),
                "features": list(one.features),
                "words": one.words,
                "log": one.log,
                "within": list(one.within),
                "steps": packed.pack(one.steps, f"the FeatureBuilder's column {one.columns[0]!r}"),
            }
            for one in builder._treated
        ],
    }
    return facts, packed.arrays


def digest_of(builder: "FeatureBuilder") -> str:
    """SHA-256 of what was learned; builders that cannot be saved are told apart by the hash of joblib."""
    try:
        facts, arrays = plain_state(builder)
    except NotStorableError:
        import joblib

        return f"joblib {joblib.hash([builder._parameters, builder._treated, builder.roles_])}"
    return digest_of_state(facts, arrays)


def digest_of_state(facts: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 of (facts, arrays), without the digest that the facts hold."""
    return digest_state({name: value for name, value in facts.items() if name != "digest"}, arrays)


def read_state(
    facts: Mapping[str, Any], arrays: Arrays
) -> tuple[list[Treatment], list[Decision], dict[str, str | None]]:
    """(treatments, decisions, roles) of a file; any error that is raised means that the file is damaged."""
    decisions = []
    for one in facts["decisions"]:
        if one["kind"] not in get_args(Kind) or not isinstance(one["column"], str):
            raise FileFormatError(f"a column is {one!r:.60}")
        decisions.append(Decision(one["column"], one["kind"], str(one["reason"])))
    roles = facts["roles"]
    texts = isinstance(roles, dict) and all(name is None or isinstance(name, str) for name in roles.values())
    if not texts or set(roles) != {"qid", "label", "docid", "weight"} or roles["qid"] is None:
        raise FileFormatError(f"its columns with a role are {roles!r:.60}")
    return [_read_treatment(one, arrays) for one in facts["treatments"]], decisions, dict(roles)


def _read_treatment(facts: Mapping[str, Any], arrays: Arrays) -> Treatment:
    columns, features, kind, words = (facts[name] for name in ("columns", "features", "kind", "words"))
    if not columns or not all(isinstance(text, str) for text in (*columns, *features, kind, words)):
        raise FileFormatError("a column has no name")
    if kind not in _KINDS or not set(facts["within"]) <= set(WITHIN) or not isinstance(facts["log"], bool):
        raise FileFormatError(f"the treatment of column {columns[0]!r:.40} is not known")
    reading, steps = unpack(facts["reading"], arrays), unpack(facts["steps"], arrays)
    known = isinstance(reading, dict) and isinstance(steps, dict) and set(steps) <= _STEPS
    if not known or not all(hasattr(step, "transform") for step in steps.values()):
        raise FileFormatError(f"the treatment of column {columns[0]!r:.40} has unknown steps")
    within = tuple(facts["within"])
    return Treatment(tuple(columns), kind, reading, tuple(features), words, facts["log"], within, steps)


def rehearse(treatments: Sequence[Treatment]) -> None:
    """Make features of one invented row, which shows numbers that do not fit together."""
    table = _InventedRow({name: None for one in treatments for name in one.columns})
    for one in treatments:
        if one.kind == "texts":
            if not hasattr(one.steps["own"], "categories_"):
                continue  # it need not know the empty text, and no other is known
            table.values.update(zip(one.columns, (levels[0] for levels in one.steps["own"].categories_), strict=True))
        if one.apply(table, (np.array([0, 1]), None)).shape != (1, len(one.features)):
            raise FileFormatError(f"column {one.columns[0]!r:.40} makes another number of features than it says")


class _InventedRow(RawTable):
    """One row of texts, most of them missing."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values, self.names, self.n_rows = values, tuple(values), 1

    def column(self, name: str) -> Column:
        """One column by name."""
        return Column(name, "text", np.array([self.values[name]], dtype=object))

    def identities(self, name: str) -> NDArray[Any]:
        """Not used: the row has no ids."""
        return np.zeros(1, dtype=np.int64)
