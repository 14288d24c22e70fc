"""Which column of a table is what: query ids, labels, document ids, weights, and the features."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from rankwise._errors import DataError

_SHOWN = 12  # names that a sentence can carry
# What others call it: offered where nothing is spelt alike.
_ALSO = {
    "qid": ("query", "query_id", "queryid", "q_id", "search_id", "session"),
    "label": ("grade", "relevance", "rel", "judgement", "judgment", "rating", "target"),
}


class Columns(NamedTuple):
    """The names of the columns that are read."""

    qid: str
    label: str | None
    docid: str | None
    weight: str | None
    features: list[str]


@dataclass(frozen=True)
class Roles:
    """What is said about the columns of a table before its header is known, as by the keywords of ``from_frame``.

    ``judged`` False: the labels are not read, and their column, if there is one, is still no feature. ``learned_by``:
    whose features these are.
    """

    qid: str = "qid"
    label: str | None = "label"
    docid: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    judged: bool = True
    learned_by: str | None = None

    def among(self, names: Sequence[str]) -> Columns:
        """Who plays which role among these names; one that is not there is refused with its neighbours."""
        docid = "docid" if self.docid is None and "docid" in names and "docid" not in self.ignore else self.docid
        label = self.label if self.judged or self.label in names else None
        given = {"qid": self.qid, "label": label, "docid": docid, "weight": self.weight}
        roles = {role: name for role, name in given.items() if name is not None}
        for role, name in roles.items():
            _require(name, names, role)
        for name in self.ignore:
            _require(name, names, "ignore")
        taken = {*roles.values(), *self.ignore}
        features = [name for name in names if name not in taken] if self.features is None else list(self.features)
        lacking = [name for name in features if name not in names]
        if lacking and self.learned_by is not None:
            raise DataError(f"there is no column {_listed(list(map(repr, lacking)))}, which {self.learned_by} needs")
        for name in self.features or ():
            _require(name, names, "features")
            if name == label:
                raise DataError(f"column {name!r} is the label and cannot be a feature too")
        return Columns(self.qid, label if self.judged else None, docid, self.weight, features)


def _require(name: str, names: Sequence[str], role: str) -> None:
    if name in names:
        return
    called = {str(known).lower(): known for known in names}
    near = [*get_close_matches(str(name).lower(), called, n=1, cutoff=0.5), *_ALSO.get(role, ())]
    meant = next((called[one] for one in near if one in called), None)
    question = "" if meant is None else f" (did you mean {meant!r}?)"
    hint = ", or label=None for data without labels" if role == "label" else ""
    wanted = f"{role}=['its name']" if role in ("features", "ignore") else f"{role}='its name'"
    raise DataError(f"there is no column {name!r}{question} among {_listed(names)}: give {wanted}{hint}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more


def text_as_feature(name: str, found: str) -> str:
    """The sentence about a column of texts that nobody gave another role."""
    return (
        f"column {name!r} holds {found}, and a feature is a number: leave the column out by ignore=[{name!r}], or "
        f"take it for the documents' ids by docid={name!r}"
    )
