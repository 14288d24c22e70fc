"""An OpenSearch search pipeline that normalizes and combines the sub-queries of a hybrid query."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import FusionFormula
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

Single = NDArray[np.float32]
_MOST = 5  # sub-queries of a hybrid query
_FLOOR = np.float32(0.001)


@dataclass(frozen=True, kw_only=True)
class OpenSearchHybrid(Target):
    """``NAME.pipeline.json`` for ``PUT /_search/pipeline/NAME``: a normalization or score-ranker processor."""

    name = "opensearch-hybrid"
    title = "OpenSearch hybrid search"
    arithmetic = "float32, sub-query after sub-query (normalization-processor)"
    takes = (FusionFormula,)

    def write(self, formula: FusionFormula, called: str) -> Written:
        """Write the search pipeline."""
        self._refuse_unless_known(formula.fusion, "opensearch")
        if not 2 <= len(formula.names) <= _MOST:
            raise RankwiseError(
                f"a hybrid query of OpenSearch must have 2 to {_MOST} sub-queries, got {len(formula.names)}"
            )
        rule = formula.fusion
        combination: dict[str, Any] = {
            "technique": rule.combination,
            "parameters": {"weights": formula.weight.tolist()},
        }
        if rule.normalizer == "rrf":
            combination |= {"technique": "rrf", "rank_constant": rule.rank_constant}
            processor: dict[str, Any] = {"score-ranker-processor": {"combination": combination}}
        else:
            normalization = {"technique": rule.normalizer}
            processor = {"normalization-processor": {"normalization": normalization, "combination": combination}}
        about = f"{called}: weights of {', '.join(formula.names)}, in this order"
        pipeline = {"description": about, "phase_results_processors": [processor]}
        notes: tuple[str, ...] = (
            f"the sub-queries of the hybrid query stand in this order: {', '.join(formula.names)}",
            f"install it by PUT /_search/pipeline/{called}, and search with ?search_pipeline={called}",
            "normalization sees the documents that each sub-query returns: search with the size that the run had",
        )
        if rule.normalizer == "rrf":
            notes += ("ranks of equal scores are in the order of OpenSearch's documents",)
        return Written({f"{called}.pipeline.json": json_text(pipeline)}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score the documents of one query as OpenSearch does."""
        (text,) = files.values()
        ((kind, settings),) = json.loads(text)["phase_results_processors"][0].items()
        combination = settings["combination"]
        weights = np.array(combination["parameters"]["weights"], dtype=np.float32)
        raw = np.asarray(X, dtype=np.float32)
        if kind == "score-ranker-processor":
            columns = [_reciprocal(raw[:, j], combination["rank_constant"]) for j in range(len(weights))]
        else:
            normalize = {"min_max": _min_max, "l2": _l2, "z_score": _z_score}[settings["normalization"]["technique"]]
            columns = [normalize(raw[:, j]) for j in range(len(weights))]
        # a sub-query that did not return the document has the score 0
        parts = [np.where(np.isnan(column), np.float32(0), column) for column in columns]
        return _combine(parts, weights, combination["technique"]).astype(np.float64)


def _min_max(x: Single) -> Single:
    """(score - min) / (max - min); 0 becomes 0.001, and 1 where all scores are the same."""
    here = x[~np.isnan(x)]
    if not len(here):
        return x
    low, high = here.min(), here.max()
    if low == high:
        return np.where(np.isnan(x), x, np.float32(1))
    found = (x - low) / (high - low)
    return np.where(found == 0, _FLOOR, found)


def _l2(x: Single) -> Single:
    """Score / sqrt(sum of squares); 0 where that is 0."""
    total = np.float32(0)
    for score in x[~np.isnan(x)]:
        total += score * score
    norm = np.float32(np.sqrt(np.float64(total)))
    return x / norm if norm else np.where(np.isnan(x), x, np.float32(0))


def _z_score(x: Single) -> Single:
    """(score - mean) / sd, at least 0.001; the largest score where a score is the mean."""
    here = x[~np.isnan(x)].astype(np.float64)
    if not len(here):
        return x
    mean = np.float32(here.mean())
    sd = np.float32(here.std(ddof=1)) if len(here) > 1 else np.float32(0)
    if sd == 0:
        found = np.full_like(x, here.min())
    else:
        z = (x - mean) / sd
        found = np.where(z <= 0, _FLOOR, z)
    return np.where(np.isnan(x), x, np.where(x == mean, np.float32(here.max()), found))


def _reciprocal(x: Single, constant: int) -> Single:
    """1 / (constant + rank), to ten decimals."""
    found = np.full_like(x, np.nan)
    order = np.argsort(-np.where(np.isnan(x), -np.inf, x), kind="stable")
    for rank, place in enumerate(order[: int((~np.isnan(x)).sum())], 1):
        exact = (Decimal(1) / (constant + rank)).quantize(Decimal("1e-10"), ROUND_HALF_UP)
        found[place] = np.float32(float(exact))
    return found


def _combine(parts: list[Single], weights: Single, technique: str) -> Single:
    """The weighted mean of the columns; reciprocal ranks are added."""
    total, divisor = np.zeros(len(parts[0]), dtype=np.float32), np.zeros(len(parts[0]), dtype=np.float32)
    for part, weight in zip(parts, weights, strict=True):
        if technique in ("arithmetic_mean", "rrf"):
            total += part * weight
            divisor += weight
            continue
        counts = part > 0
        value = np.where(counts, part, np.float32(1))
        if technique == "geometric_mean":
            step = weight * np.log(value.astype(np.float64))
            total = (total + np.where(counts, step, 0.0)).astype(np.float32)
        else:
            total += np.where(counts, weight / value, np.float32(0))
        divisor += np.where(counts, weight, np.float32(0))
    if technique == "rrf":
        return total
    safe = np.where(divisor == 0, np.float32(1), divisor)
    if technique == "arithmetic_mean":
        found = total / safe
    elif technique == "geometric_mean":
        found = np.exp((total / safe).astype(np.float64)).astype(np.float32)
    else:
        found = divisor / np.where(total > 0, total, np.float32(1))
    return np.where(divisor == 0, np.float32(0), found)
