"""The conventions of other tools: what their short names mean, how they break ties, what empty queries count.

Each entry of :data:`CONVENTIONS` reproduces one tool exactly. The tests compare it with the tool itself where that can
be installed, and with worked examples otherwise. :func:`rankwise.measures._base.settle` turns ``measures=`` and
``like=`` into measures, titles and the convention to follow.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from rankwise.errors import MeasureError, did_you_mean
from rankwise.measures._base import Empty, Measure, Vector, parse


@dataclass(frozen=True)
class Convention:
    """How one tool measures.

    Attributes
    ----------
    name : str
        The value of ``like=``.
    measures : mapping of str to mapping
        The measures that the tool has, with the parameters that its short names stand for.
    ties : {"expected", "pessimistic", "stable", "docid"}
        How equal scores are ordered; "docid" is by document id in descending order, as in trec_eval.
    empty : mapping of str to str
        The value of a query on which the measure is 0/0, by measure name; other measures count 0.
    single : bool
        Whether scores are compared in single precision.
    labels : callable
        (measure, labels) -> the problem with labels that the tool rejects or would silently change, or None.
    unweighted_empty : bool
        Whether a query weight is ignored where an empty query adds its value (LightGBM).
    cut : mapping of str to bool
        The measures that the tool has only with a cut-off (True) or only on whole lists (False).
    """

    name: str
    measures: Mapping[str, Mapping[str, Any]]
    ties: Literal["expected", "pessimistic", "stable", "docid"] = "stable"
    empty: Mapping[str, Empty] = field(default_factory=dict)
    single: bool = False
    labels: Callable[[Measure, Vector], str | None] = lambda measure, labels: None
    unweighted_empty: bool = False
    cut: Mapping[str, bool] = field(default_factory=dict)

    def parse(self, spelling: Any, rel: float | None) -> Measure:
        """Read a measure as this tool means it.

        Parameters
        ----------
        spelling : str or Measure
            A text in ir-measures' grammar, or a measure.
        rel : float or None
            The smallest relevant label for binary measures that do not state their own.

        Returns
        -------
        Measure
            The measure with the tool's parameters.

        Raises
        ------
        MeasureError
            If the tool does not have the measure, or not with or without a cut-off.
        """
        measure = self._read(spelling, rel)
        if self.cut.get(measure.name, measure.cutoff is not None) != (measure.cutoff is not None):
            form = "only with a cut-off" if self.cut[measure.name] else "only without a cut-off"
            raise MeasureError(f"{self.name} computes {measure.name} {form}, got {spelling}")
        return measure

    def _read(self, spelling: Any, rel: float | None) -> Measure:
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
        """Keep the gain, discount and relevance of a measure object, and take the tool's rules for short lists."""
        own = {field.name for field in fields(measure)}
        rules = self.measures.get(measure.name, {})
        return replace(
            measure, **{name: rules[name] for name in ("norm", "short", "blocks") if name in own & set(rules)}
        )

    def title(self, measure: Measure) -> str:
        """The shortest spelling that this convention parses as ``measure``."""
        usual = replace(self._read(measure.name, None), cutoff=measure.cutoff)
        return measure._print({}) if measure == usual else repr(measure)

    def empty_value(self, measure: Measure) -> Empty:
        """The value of a query on which the measure is 0/0, in this tool."""
        return self.empty.get(measure.name, "zero")


def _whole(measure: Measure, labels: Vector) -> str | None:
    strange = labels[labels != np.floor(labels)]
    return f"labels must be integers, got {strange[0]:g}" if len(strange) else None


def _grades_to(highest: int) -> Callable[[Measure, Vector], str | None]:
    def check(measure: Measure, labels: Vector) -> str | None:
        if labels.max(initial=0) > highest and getattr(measure, "gain", None) == "exp2":
            return f"labels must be at most {highest}, got {labels.max():g}"
        return _whole(measure, labels)

    return check


def _xgboost_labels(measure: Measure, labels: Vector) -> str | None:
    if measure.name in ("AP", "P"):
        strange = labels[(labels != 0) & (labels != 1)]
        return f"{measure.name} takes labels 0 and 1 only, got {strange[0]:g}" if len(strange) else None
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
            {"nDCG": _LINEAR, "AP": {}, "P": {}, "R": {}, "Rprec": {}, "RR": {}, "Success": {}, "Bpref": {}},
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
            # "MAP" ignores its cut-off; "RR" without one is 0 in some releases
            cut={"AP": False, "RR": True},
        ),
        Convention(
            "ranx",
            {"nDCG": _LINEAR, "DCG": _LINEAR, "AP": {}, "P": {}, "R": {}, "RR": {}, "Success": {}},
            labels=_whole,
        ),
    )
}


def convention(like: str) -> Convention:
    """Look up a convention.

    Parameters
    ----------
    like : str
        The name of a tool.

    Returns
    -------
    Convention
        The convention.

    Raises
    ------
    MeasureError
        If there is none of this name; the message lists them.
    """
    found = CONVENTIONS.get(like) if isinstance(like, str) else None
    if found is None:
        question = did_you_mean(str(like), CONVENTIONS)
        raise MeasureError(f"like must be one of {', '.join(map(repr, CONVENTIONS))}, got {like!r}{question}")
    return found
