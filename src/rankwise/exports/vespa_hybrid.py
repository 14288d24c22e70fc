"""A Vespa rank profile whose global phase normalises rank features and adds them with weights."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.checks import Floats
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.formula import FusionFormula
from rankwise.exports.vespa import profile_name, rank_feature
from rankwise.measures._base import Vector

_TERM = re.compile(r"^(\S+) \* (?:(normalize_linear|reciprocal_rank)\((.+?)(?:, (\d+))?\)|(.+))$")


@dataclass(frozen=True, kw_only=True)
class VespaHybrid(Target):
    """``NAME.profile``, to be put beside the schema.

    A column called ``bm25(title)`` or ``closeness(field,embedding)`` is that rank feature; one called ``age`` is
    ``attribute(age)``.

    Parameters
    ----------
    rerank : int, default=100
        How many documents the global phase normalises and scores.
    """

    name = "vespa-hybrid"
    title = "Vespa hybrid search"
    arithmetic = "float64, term after term (Vespa's global phase)"
    takes = (FusionFormula,)

    rerank: int = 100

    def write(self, formula: FusionFormula, called: str) -> Written:
        """Write the rank profile."""
        self._refuse_unless_known(formula.fusion, "vespa")
        profile_name(called)
        checks.as_whole(self.rerank, "rerank", 1, 10_000)
        features = [rank_feature(name) for name in formula.names]
        rule = formula.fusion
        wrapped = {
            "min_max": "normalize_linear({})",
            "rrf": f"reciprocal_rank({{}}, {rule.rank_constant})",
            "none": "{}",
        }[rule.normalizer]
        terms = [
            f"{weight!r} * {wrapped.format(feature)}"
            for weight, feature in zip(formula.weight.tolist(), features, strict=True)
        ]
        text = "\n".join(
            [
                f"rank-profile {called} inherits default {{",
                "    global-phase {",
                f"        rerank-count: {self.rerank}",
                "        expression {",
                *(f"            {'+ ' if number else ''}{term}" for number, term in enumerate(terms)),
                "        }",
                "    }",
                "    match-features {",
                *(f"        {feature}" for feature in features),
                "    }",
                "}",
            ]
        )
        notes = (
            "a rank feature of a document that its operator did not match is 0, and takes part in the normalisation",
            f"the global phase sees the {self.rerank} best documents of the phases before: give the profile a first "
            "phase that keeps the documents of every operator",
        )
        return Written({f"{called}.profile": text + "\n"}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score the documents of one query as Vespa does."""
        (text,) = files.values()
        body = str(text).split("expression {\n")[1].split("\n        }")[0]
        column_of = {rank_feature(name): place for place, name in enumerate(names)}
        raw = np.nan_to_num(np.asarray(X, dtype=np.float64))
        total = np.zeros(len(raw))
        for line in body.splitlines():
            found = _TERM.match(line.strip().removeprefix("+ "))
            if found is None:
                raise RankwiseError(f"the rank profile holds a term that no export wrote: {line.strip()!r:.60}")
            weight, function, inner, constant, plain = found.groups()
            x = raw[:, column_of[inner or plain]]
            if function == "normalize_linear":
                x = _linear(x)
            elif function == "reciprocal_rank":
                order = np.argsort(-x, kind="stable")
                ranked = np.empty(len(x))
                ranked[order] = 1.0 / (float(constant) + 1.0 + np.arange(len(x)))
                x = ranked
            total += float(weight) * x
        return total


def _linear(x: Vector) -> Vector:
    """0.5 + (x - middle) / (max - min), and 0.5 where all are the same."""
    if not len(x):
        return x
    low, high = x.min(), x.max()
    scale, middle = (1.0 / (high - low), (low + high) * 0.5) if high > low else (0.0, 0.0)
    return np.asarray(0.5 + scale * (x - middle))
