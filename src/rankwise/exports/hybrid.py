"""Hybrid search: several sub-queries whose scores are normalized within the query and added, in each engine.

The scores of a sub-query are a column, NaN for a document that it did not return. :mod:`rankwise.rankers.fusion` has
the same rules in float64.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any

import numpy as np

from rankwise._parameters import NumberRange
from rankwise.errors import RankwiseError
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import FusionFormula
from rankwise.exports.single import Single, with_defaults
from rankwise.exports.vespa import rank_feature, read_terms, write_profile
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats
from rankwise.rankers.fusion.normalizers import RULES

_Results = Annotated[int, NumberRange(1, 10_000, closed="both")]


@dataclass(frozen=True, kw_only=True)
class HybridTarget(Target):
    """An engine that normalizes the scores of sub-queries within a query."""

    takes = (FusionFormula,)

    def write(self, formula: FusionFormula, called: str) -> Written:
        """Write the configuration; a normalizer or a mean that the engine does not have raises an error."""
        rule, engine = formula.fusion, self.name.removesuffix("-hybrid")
        if rule.normalizer not in RULES[engine]:
            raise RankwiseError(
                f"{self.title} has no normalizer {rule.normalizer!r}: fit with {' or '.join(map(repr, RULES[engine]))}"
            )
        if rule.combination != "arithmetic_mean" and engine != "opensearch":
            raise RankwiseError(f"{self.title} has no {rule.combination}: fit with combination='arithmetic_mean'")
        return self._write(formula, called)

    @abstractmethod
    def _write(self, formula: FusionFormula, called: str) -> Written:
        """The configuration."""


def reciprocal_ranks(x: Single, constant: int) -> Single:
    """1 / (constant + rank), and 0 for a document that the sub-query did not return."""
    found = np.zeros_like(x)
    order = np.argsort(-np.where(np.isnan(x), -np.inf, x), kind="stable")
    found[order] = np.float32(1) / (np.float32(constant) + np.arange(1, len(x) + 1, dtype=np.float32))
    return np.where(np.isnan(x), np.float32(0), found)


# ------------------------------------------------------------------------------------------------------ Elasticsearch

_EPSILON = np.float32(1e-6)
_TECHNIQUES = {"min_max": "minmax", "l2": "l2_norm", "none": "none"}


@dataclass(frozen=True, kw_only=True)
class ElasticsearchHybrid(HybridTarget):
    """``NAME.retriever.json``, the body of a search, with a place for each sub-query.

    Parameters
    ----------
    window : int, default=100
        Documents that each sub-query returns (``rank_window_size``).
    """

    name = "elasticsearch-hybrid"
    title = "Elasticsearch hybrid search"
    arithmetic = "float32, retriever after retriever (linear and rrf retrievers)"

    window: _Results = 100

    def _write(self, formula: FusionFormula, called: str) -> Written:
        """The body of the search."""
        rule = formula.fusion
        parts = []
        for name, weight in zip(formula.names, formula.weight.tolist(), strict=True):
            part = {"retriever": {"standard": {"query": f"<the query of {name}>"}}, "weight": weight}
            if rule.normalizer != "rrf":
                part["normalizer"] = _TECHNIQUES[rule.normalizer]
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
            value = reciprocal_ranks(x, body["rank_constant"]) if kind == "rrf" else _normalize(x, part["normalizer"])
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


# --------------------------------------------------------------------------------------------------------- OpenSearch

_MOST = 5  # sub-queries of a hybrid query
_FLOOR = np.float32(0.001)


@dataclass(frozen=True, kw_only=True)
class OpenSearchHybrid(HybridTarget):
    """``NAME.pipeline.json`` for ``PUT /_search/pipeline/NAME``: a normalization or score-ranker processor."""

    name = "opensearch-hybrid"
    title = "OpenSearch hybrid search"
    arithmetic = "float32, sub-query after sub-query (normalization-processor)"

    def _write(self, formula: FusionFormula, called: str) -> Written:
        """The search pipeline."""
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
            columns = [_decimal_ranks(x, combination["rank_constant"]) for x in raw.T]
        else:
            normalize = {"min_max": _min_max, "l2": _l2, "z_score": _z_score}[settings["normalization"]["technique"]]
            columns = [normalize(x) for x in raw.T]
        # a sub-query that did not return the document has the score 0
        parts = [with_defaults(column) for column in columns]
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


def _decimal_ranks(x: Single, constant: int) -> Single:
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


# --------------------------------------------------------------------------------------------------------------- Solr

_SOLR_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOLR_TERM = re.compile(r"product\(([^,]+),(scale\()?query\(\$(\w+),0\)(?:,0,1\))?\)")


@dataclass(frozen=True, kw_only=True)
class SolrHybrid(HybridTarget):
    """``NAME.params.json``: the parameters of a request (a function query), or the body of a combined query."""

    name = "solr-hybrid"
    title = "Solr hybrid search"
    arithmetic = "float32, function after function (function queries)"

    def _write(self, formula: FusionFormula, called: str) -> Written:
        """The request."""
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
                total += reciprocal_ranks(raw[:, column_of[name]], request["params"]["combiner.rrf.k"])
            return total.astype(np.float64)
        for weight, scaled, name in _SOLR_TERM.findall(request["params"]["q"]):
            x = np.nan_to_num(raw[:, column_of[name]])
            if scaled:
                # the smallest value of the index is 0
                most = x.max(initial=np.float32(0))
                x = x * (np.float32(1) / most if most else np.float32(0))
            total += np.float32(float(weight)) * x
        return total.astype(np.float64)


def _parameter(name: str) -> str:
    """The name of a column as the name of a request parameter."""
    if not _SOLR_PARAMETER.fullmatch(name) or name in ("q", "fq"):
        raise RankwiseError(
            f"the column {name!r:.60} cannot be the name of a Solr parameter: pass feature_names= of letters, "
            "digits and _"
        )
    return name


# -------------------------------------------------------------------------------------------------------------- Vespa

_FUSED_TERM = re.compile(r"^(\S+) \* (?:(normalize_linear|reciprocal_rank)\((.+?)(?:, (\d+))?\)|(.+))$")


@dataclass(frozen=True, kw_only=True)
class VespaHybrid(HybridTarget):
    """``NAME.profile``, to be put beside the schema.

    A column called ``bm25(title)`` or ``closeness(field,embedding)`` is that rank feature; one called ``age`` is
    ``attribute(age)``.

    Parameters
    ----------
    rerank : int, default=100
        How many documents the global phase normalizes and scores.
    """

    name = "vespa-hybrid"
    title = "Vespa hybrid search"
    arithmetic = "float64, term after term (Vespa's global phase)"

    rerank: _Results = 100

    def _write(self, formula: FusionFormula, called: str) -> Written:
        """The rank profile."""
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
        text = write_profile(called, "global", self.rerank, terms, features)
        notes = (
            "a rank feature of a document that its operator did not match is 0, and takes part in the normalization",
            f"the global phase sees the {self.rerank} best documents of the phases before: give the profile a first "
            "phase that keeps the documents of every operator",
        )
        return Written({f"{called}.profile": text}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score the documents of one query as Vespa does."""
        column_of = {rank_feature(name): place for place, name in enumerate(names)}
        raw = np.nan_to_num(np.asarray(X, dtype=np.float64))
        total = np.zeros(len(raw))
        for term in read_terms(files):
            found = _FUSED_TERM.fullmatch(term)
            if found is None:
                raise RankwiseError(f"the rank profile holds a term that no export wrote: {term!r:.60}")
            weight, function, inner, constant, plain = found.groups()
            x = raw[:, column_of[inner or plain]]
            if function == "normalize_linear":
                x = _normalize_linear(x)
            elif function == "reciprocal_rank":
                order = np.argsort(-x, kind="stable")
                ranked = np.empty(len(x))
                ranked[order] = 1.0 / (float(constant) + 1.0 + np.arange(len(x)))
                x = ranked
            total += float(weight) * x
        return total


def _normalize_linear(x: Vector) -> Vector:
    """0.5 + (x - middle) / (max - min), and 0.5 where all are the same."""
    if not len(x):
        return x
    low, high = x.min(), x.max()
    scale, middle = (1.0 / (high - low), (low + high) * 0.5) if high > low else (0.0, 0.0)
    return np.asarray(0.5 + scale * (x - middle))
