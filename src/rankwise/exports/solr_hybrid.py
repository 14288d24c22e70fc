"""A Solr request that adds scaled scores of several queries by function queries, or fuses their ranks."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.checks import Floats
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import FusionFormula
from rankwise.measures._base import Vector

Single = NDArray[np.float32]
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TERM = re.compile(r"product\(([^,]+),(scale\()?query\(\$(\w+),0\)(?:,0,1\))?\)")


@dataclass(frozen=True, kw_only=True)
class SolrHybrid(Target):
    """``NAME.params.json``: the parameters of a request (a function query), or the body of a combined query."""

    name = "solr-hybrid"
    title = "Solr hybrid search"
    arithmetic = "float32, function after function (function queries)"
    takes = (FusionFormula,)

    def write(self, formula: FusionFormula, called: str) -> Written:
        """Write the request."""
        self._refuse_unless_known(formula.fusion, "solr")
        names = [_parameter(name) for name in formula.names]
        if formula.fusion.normalizer == "rrf":
            return self._ranks(formula, names, called)
        wrap = "scale(query(${},0),0,1)" if formula.fusion.normalizer == "min_max" else "query(${},0)"
        terms = [
            f"product({weight!r},{wrap.format(name)})"
            for weight, name in zip(formula.weight.tolist(), names, strict=True)
        ]
        any_of = " ".join(f"should=${name}" for name in names)
        params = {
            "q": f"{{!func}}sum({','.join(terms)})",
            "fq": f"{{!bool {any_of}}}",
            **{name: f"<the query of {name}>" for name in names},
        }
        notes = [
            f"replace each <the query of ...> by the query, such as {{!knn f=v topK=100}}[...]: {', '.join(names)}"
        ]
        if formula.fusion.normalizer == "min_max":
            notes.append(
                "scale() takes its minimum over the whole index, where a document that does not match has 0: it "
                "divides by the largest score; it visits every document of the index for every query"
            )
        return Written({f"{called}.params.json": json_text({"params": params})}, tuple(notes))

    def _ranks(self, formula: FusionFormula, names: list[str], called: str) -> Written:
        if np.ptp(formula.weight) > 1e-12:
            raise RankwiseError(
                "Solr's reciprocal rank fusion has no weights: fit with weights='equal', or with normalizer='min_max'"
            )
        body = {
            "queries": {name: f"<the query of {name}>" for name in names},
            "params": {
                "combiner": True,
                "combiner.query": names,
                "combiner.algorithm": "rrf",
                "combiner.rrf.k": formula.fusion.rank_constant,
            },
        }
        notes = (
            "a combined query needs Solr 9.11 or 10 and a handler of class solr.CombinedQuerySearchHandler",
            f"replace each <the query of ...> by the query: {', '.join(names)}",
        )
        return Written({f"{called}.params.json": json_text(body)}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score the documents of one query as Solr does."""
        (text,) = files.values()
        request: dict[str, Any] = json.loads(text)
        raw = np.asarray(X, dtype=np.float32)
        total = np.zeros(len(raw), dtype=np.float32)
        column_of = {_parameter(name): place for place, name in enumerate(names)}
        if "queries" in request:
            for name in request["params"]["combiner.query"]:
                total += _reciprocal(raw[:, column_of[name]], request["params"]["combiner.rrf.k"])
            return total.astype(np.float64)
        for weight, scaled, name in _TERM.findall(request["params"]["q"]):
            x = np.nan_to_num(raw[:, column_of[name]])
            if scaled:
                # the smallest value of the index is 0
                most = x.max(initial=np.float32(0))
                x = x * (np.float32(1) / most if most else np.float32(0))
            total += np.float32(float(weight)) * x
        return total.astype(np.float64)


def _parameter(name: str) -> str:
    """The name of a column as the name of a request parameter."""
    if not _PLAIN.fullmatch(name) or name in ("q", "fq"):
        raise RankwiseError(
            f"the column {name!r:.60} cannot be the name of a parameter of Solr: give feature_names= of letters, "
            "digits and _"
        )
    return name


def _reciprocal(x: Single, constant: int) -> Single:
    """1 / (constant + rank), and 0 for a document that the query did not return."""
    found = np.zeros_like(x)
    order = np.argsort(-np.where(np.isnan(x), -np.inf, x), kind="stable")
    found[order] = np.float32(1) / (np.float32(constant) + np.arange(1, len(x) + 1, dtype=np.float32))
    return np.where(np.isnan(x), np.float32(0), found)
