"""Other tools' conventions, exactly: what their short names mean, how they break ties, what empty queries count.

Each entry is proven in the tests against the tool itself where it installs, against worked examples otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from rankwise._errors import MeasureError, RankwiseError
from rankwise.measures._base import Empty, Measure, Vector
from rankwise.measures.parse import parse


@dataclass(frozen=True)
class Convention:
    """How one tool measures.

    Attributes
    ----------
    name : what ``like=`` calls it
    measures : the measures that the tool has, with the parameters that its short names mean
    ties : how equal scores are ordered; "docid" is by document id, descending, as trec_eval does
    empty : the value of a query on which the measure is 0/0, by measure name; others count 0
    single : whether scores are compared in single precision
    labels : labels that the tool refuses or would silently change raise an error
    unweighted_empty : whether a query weight is ignored where an empty query adds its value (LightGBM)
    """

    name: str
    measures: Mapping[str, Mapping[str, Any]]
    ties: Literal["expected", "pessimistic", "stable", "docid"] = "stable"
    empty: Mapping[str, Empty] = field(default_factory=dict)
    single: bool = False
    labels: Callable[[Measure, Vector], str | None] = lambda measure, labels: None
    unweighted_empty: bool = False

    def parse(self, spelling: Any, rel: float | None) -> Measure:
        """The measure that ``spelling`` means in this tool; a measure that the tool lacks is refused by name."""
        if isinstance(spelling, str):
            measure = parse(spelling, defaults=self.measures, rel=rel)
        else:
            measure = self._adapt(parse(spelling))
        if measure.name not in self.measures:
            raise MeasureError(
                f"{self.name} has no {measure.name}; like={self.name!r} knows: {', '.join(self.measures)}"
            )
        return measure

    def _adapt(self, measure: Measure) -> Measure:
        """A measure object keeps its own gain, discount and relevance, and takes the tool's rules for short lists."""
        own = {field.name for field in fields(measure)}
        rules = self.measures.get(measure.name, {})
        return replace(
            measure, **{name: rules[name] for name in ("norm", "short", "blocks") if name in own & set(rules)}
        )

    def title(self, measure: Measure) -> str:
        """The shortest spelling that this convention reads as ``measure``."""
        usual = (
            self.parse(measure.name, None)
            if measure.cutoff is None
            else self.parse(measure.name, None) @ measure.cutoff
        )
        if measure == usual:
            return measure._print({})
        return repr(measure)

    def empty_value(self, measure: Measure) -> Empty:
        """What an empty query counts in this tool."""
        return self.empty.get(measure.name, "zero")


def _whole(measure: Measure, labels: Vector) -> str | None:
    strange = labels[labels != np.floor(labels)]
    return f"labels are whole numbers, found {strange[0]:g}" if len(strange) else None


def _grades_to(highest: int) -> Callable[[Measure, Vector], str | None]:
    def check(measure: Measure, labels: Vector) -> str | None:
        if labels.max(initial=0) > highest and getattr(measure, "gain", None) == "exp2":
            return f"labels go up to {highest}, found {labels.max():g}"
        return _whole(measure, labels)

    return check


def _xgboost_labels(measure: Measure, labels: Vector) -> str | None:
    if measure.name in ("AP", "P"):
        strange = labels[(labels != 0) & (labels != 1)]
        return f"{measure.name} takes labels 0 and 1 only, found {strange[0]:g}" if len(strange) else None
    return _grades_to(31)(measure, labels)


_EXP, _LINEAR = {"dcg": "exp-log2"}, {"dcg": "log2"}

CONVENTIONS: Mapping[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention(
            "letor",
            {"nDCG": {"dcg": "exp-letor", "short": "zero"}, "MeanNDCG": {"dcg": "exp-letor"}, "P": {}, "AP": {}},
        ),
        Convention(
            "trec_eval",
            {"nDCG": _LINEAR, "AP": {}, "P": {}, "R": {}, "RR": {}, "Success": {}},
            ties="docid",
            single=True,
            labels=_whole,
        ),
        Convention("sklearn", {"nDCG": _LINEAR, "DCG": _LINEAR, "AP": {"blocks": True}}, ties="expected"),
        Convention(
            "lightgbm",
            {"nDCG": _EXP, "AP": {"norm": "cutoff"}},
            empty={"nDCG": "one", "AP": "one"},
            labels=_grades_to(30),
            unweighted_empty=True,
        ),
        Convention(
            "xgboost",
            {"nDCG": _EXP, "AP": {"norm": "cutoff"}, "P": {"short": "list"}},
            empty={"nDCG": "one", "AP": "one"},
            single=True,
            labels=_xgboost_labels,
        ),
        Convention(
            "catboost",
            {
                "nDCG": _LINEAR,
                "DCG": _LINEAR,
                # CatBoost's border: a label above 0.5 is relevant
                "AP": {"norm": "cutoff", "rel": float(np.nextafter(0.5, 1))},
                "P": {"short": "list", "rel": float(np.nextafter(0.5, 1))},
                "R": {"rel": float(np.nextafter(0.5, 1))},
                "RR": {"rel": float(np.nextafter(0.5, 1))},
            },
            ties="pessimistic",
            empty={"nDCG": "one", "R": "one"},
        ),
        Convention(
            "ranklib",
            {"nDCG": _EXP, "DCG": _EXP, "AP": {}, "P": {"short": "list"}, "RR": {}, "ERR": {"max_grade": 4}},
            labels=_whole,
        ),
        Convention(
            "ranx",
            {"nDCG": _LINEAR, "DCG": _LINEAR, "AP": {}, "P": {}, "R": {}, "RR": {}, "Success": {}},
            labels=_whole,
        ),
    )
}


def convention(like: str) -> Convention:
    """The convention called ``like``, or the sentence that lists them."""
    found = CONVENTIONS.get(like) if isinstance(like, str) else None
    if found is None:
        raise MeasureError(f"like is one of {', '.join(map(repr, CONVENTIONS))}: found {like!r}")
    return found


def settle(
    measures: str | Measure | Sequence[str | Measure], like: str | None = None, rel: float | None = None
) -> tuple[Convention | None, list[Measure], list[str]]:
    """The convention that ``like`` names, what the measures mean under it, and the titles of their columns."""
    wanted = (
        [measures] if isinstance(measures, (str, Measure)) or not isinstance(measures, Sequence) else list(measures)
    )
    if not wanted:
        raise RankwiseError("measures names at least one measure: found none")
    tool = None if like is None else convention(like)
    parsed = [parse(spelling, rel=rel) if tool is None else tool.parse(spelling, rel) for spelling in wanted]
    titles = [measure.title if tool is None else tool.title(measure) for measure in parsed]
    if len(set(titles)) != len(titles):
        raise RankwiseError(f"every measure is named once: found {', '.join(titles)}")
    return tool, parsed, titles
