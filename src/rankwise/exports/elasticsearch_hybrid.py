"""An Elasticsearch search request with a `linear` or `rrf` retriever."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import FusionFormula
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.checks import Floats

Single = NDArray[np.float32]
_EPSILON = np.float32(1e-6)
_NAMES = {"min_max": "minmax", "l2": "l2_norm", "none": "none"}


@dataclass(frozen=True, kw_only=True)
class ElasticsearchHybrid(Target):
    """``NAME.retriever.json``, the body of a search, with a place for each sub-query.

    Parameters
    ----------
    window : int, default=100
        Documents that each sub-query returns (``rank_window_size``).
    """

    name = "elasticsearch-hybrid"
    title = "Elasticsearch hybrid search"
    arithmetic = "float32, retriever after retriever (linear and rrf retrievers)"
    takes = (FusionFormula,)

    window: int = 100

    def write(self, formula: FusionFormula, called: str) -> Written:
        """Write the body of the search."""
        self._refuse_unless_known(formula.fusion, "elasticsearch")
        checks.as_whole(self.window, "window", 1, 10_000)
        rule = formula.fusion
        parts = []
        for name, weight in zip(formula.names, formula.weight.tolist(), strict=True):
            part = {"retriever": {"standard": {"query": f"<the query of {name}>"}}, "weight": weight}
            if rule.normalizer != "rrf":
                part["normalizer"] = _NAMES[rule.normalizer]
            parts.append(part)
        kind = "rrf" if rule.normalizer == "rrf" else "linear"
        body = {"retrievers": parts, "rank_window_size": self.window}
        if kind == "rrf":
            body["rank_constant"] = rule.rank_constant
        notes = [
            f"replace each <the query of ...> by the query, or its retriever by a knn one: {', '.join(formula.names)}",
            "normalization sees the documents that each retriever returns: rank_window_size is what the run had",
        ]
        if kind == "rrf":
            notes.append(
                "weights of the rrf retriever need Elasticsearch 9.2; ranks of equal scores are Elasticsearch's"
            )
        elif rule.normalizer == "min_max":
            notes.append(
                "where all scores of a retriever are the same, Elasticsearch returns 1, as here; versions before its "
                "pull request 128689 (June 2025) return the raw score"
            )
        return Written({f"{called}.retriever.json": json_text({"retriever": {kind: body}})}, tuple(notes))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score the documents of one query as Elasticsearch does."""
        (text,) = files.values()
        ((kind, body),) = json.loads(text)["retriever"].items()
        raw = np.asarray(X, dtype=np.float32)
        total = np.zeros(len(raw), dtype=np.float32)
        for column, part in enumerate(body["retrievers"]):
            x, weight = raw[:, column], np.float32(part["weight"])
            value = _reciprocal(x, body["rank_constant"]) if kind == "rrf" else _normalize(x, part["normalizer"])
            # a retriever that did not return the document adds nothing
            total += np.where(np.isnan(x), np.float32(0), weight * value)
        return total.astype(np.float64)


def _normalize(x: Single, normalizer: str) -> Single:
    """The scores of one retriever after its normalizer."""
    here = x[~np.isnan(x)]
    if not len(here) or normalizer == "none":
        return x
    if normalizer == "minmax":
        low, high = here.min(), here.max()
        return np.ones_like(x) if abs(low - high) < _EPSILON else (x - low) / (high - low)
    norm = np.sqrt((here * here).astype(np.float64).sum())
    return x if norm < _EPSILON else (x.astype(np.float64) / norm).astype(np.float32)


def _reciprocal(x: Single, constant: int) -> Single:
    """1 / (constant + rank)."""
    found = np.full_like(x, np.nan)
    order = np.argsort(-np.where(np.isnan(x), -np.inf, x), kind="stable")
    found[order] = np.float32(1) / (np.float32(constant) + np.arange(1, len(x) + 1, dtype=np.float32))
    return found
