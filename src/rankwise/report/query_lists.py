"""Queries and their documents as plain values: which changed most against the baseline, and how each is ranked.

A report includes only a limited number of queries, those that changed most, and of each only the documents that some
ranker has near the top; the number of those left out is counted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.analysis.importance import weights_of
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.queries.checks import names_or_columns
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.report.compact import name_of, numbers
from rankwise.report.descriptions import Descriptions

Places = NDArray[np.int64]


@dataclass(frozen=True)
class ReportLimits:
    """How much of the queries is included in a report.

    Attributes
    ----------
    queries : int
        The largest number of queries, those that changed most.
    documents : int
        For each query, how many documents from the top of every ranker's list.
    features : int
        The largest number of feature values, all documents together; the top of lists comes first.
    """

    queries: int = 200
    documents: int = 50
    features: int = 300_000

    def halve(self) -> "ReportLimits":
        """Half of everything, for a report that would be too large."""
        return ReportLimits(self.queries // 2, max(1, self.documents // 2), self.features // 2)


# Trees times documents whose contributions take a few seconds.
_TERMS = 1 << 20


def changes(comparison: Comparison, points: int = 300) -> dict[str, dict[str, Any]]:
    """For each measure and ranker: queries won, lost and tied, and the sorted differences to the baseline.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    points : int, default=300
        Of more queries than this, so many differences at equal distances in the sorted order are kept.

    Returns
    -------
    dict of str to dict
        The changes by measure and ranker.
    """
    base = comparison.results[comparison.baseline]
    found: dict[str, dict[str, Any]] = {}
    for title in comparison.titles:
        found[title] = {}
        for name in comparison.rankers:
            if name == comparison.baseline:
                continue
            gained = comparison.results[name][title] - base[title]
            gained = np.sort(gained[np.isfinite(gained)])
            counts = {"won": int((gained > 0).sum()), "lost": int((gained < 0).sum()), "tied": int((gained == 0).sum())}
            if len(gained) > points:
                gained = gained[np.linspace(0, len(gained) - 1, points).astype(np.int64)]
            found[title][name] = {**counts, "values": numbers(gained)}
    return found


def query_lists(
    comparison: Comparison,
    limits: ReportLimits,
    documents: Descriptions | None = None,
    queries: Descriptions | None = None,
    title: int | None = None,
) -> dict[str, Any]:
    """The queries that changed most, with their documents as every ranker has them.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    limits : ReportLimits
        How much is included.
    documents : Descriptions, default=None
        Texts about documents.
    queries : Descriptions, default=None
        Texts about queries.
    title : int, default=None
        The column of ``documents`` that is shown in place of an id.

    Returns
    -------
    dict
        Queries, features and weights.
    """
    # a reader looks for queries where rankers differ
    change = _largest_change(comparison)
    chosen = np.argsort(-change, kind="stable")[: limits.queries]
    ranks = {name: _ranks(comparison.queries, scores) for name, scores in comparison.scores.items()}
    shown = [_near_the_top(comparison.queries, query, ranks, limits.documents) for query in chosen]
    weights = _weights(comparison)
    parts = _additive(comparison, weights, chosen)
    every = [w != 0 for folds in weights.values() for w in folds]
    moved = [np.any([one.any(axis=0) for one in each.values()], axis=0) for each in parts.values() if each]
    # features without a weight in any ranker explain nothing
    used = np.flatnonzero(np.any([*every, *moved], axis=0)) if every or moved else np.zeros(0, dtype=np.int64)
    # rows of features that fit into the limit: weights and means of queries come first, then documents, of which each
    # has its values and the contributions of every ranker that is additive and not linear
    rows = limits.features // len(used) - len(every) if len(used) else 0
    buffer = (rows - len(chosen)) // (1 + len(parts))
    explained = _depth(comparison.queries, chosen, ranks, limits.documents, buffer)
    used = used if explained else used[:0]
    names = names_or_columns(comparison.queries)
    documents, queries = documents or Descriptions((), {}), queries or Descriptions((), {})
    return {
        "document_columns": list(documents.columns),
        "query_columns": list(queries.columns),
        "title": title,
        "total": len(change),
        "same": int(((change == 0) & _counts(comparison)).sum()),
        "documents": limits.documents,
        "explained": explained,
        "features": [names[place] for place in used],
        "weights": {name: [numbers(w[used]) for w in folds] for name, folds in weights.items() if len(used)},
        "queries": [
            _query(comparison, int(query), rows, ranks, used, explained, parts)
            | _describe(comparison.queries, int(query), rows, documents, queries)
            for query, rows in zip(chosen, shown, strict=True)
        ],
    }


def no_lists(limits: ReportLimits) -> dict[str, Any]:
    """What :func:`query_lists` returns where it could not be made: no query."""
    empty: dict[str, Any] = {name: [] for name in ("document_columns", "query_columns", "features", "queries")}
    return empty | {"title": None, "total": 0, "same": 0, "documents": limits.documents, "explained": 0, "weights": {}}


def _query(
    comparison: Comparison,
    query: int,
    rows: Places,
    ranks: dict[str, Places],
    used: Places,
    explained: int,
    parts: dict[str, dict[int, NDArray[np.float64]]],
) -> dict[str, Any]:
    """One query with its documents as plain values; for each ranker of ``parts``, the contributions of features."""
    queries = comparison.queries
    every = np.arange(queries.n_documents)[queries.rows_of(query)]
    labels, docid = queries.labels(), queries.docid
    place = np.searchsorted(every, rows)
    # features are shown only near the top: they are most of the bytes
    near = np.min([ranks[name][rows] for name in ranks], axis=0) <= explained

    def show_near(values: NDArray[Any]) -> list[Any]:
        return [numbers(row) if shown else None for row, shown in zip(values, near, strict=True)]

    return {
        "qid": name_of(queries.names()[query]),
        "fold": int(comparison.fold_of_query[query]),
        "size": len(every),
        "left_out": len(every) - len(rows),
        "values": [numbers(result.values[:, query]) for result in comparison.results.values()],
        "docid": [f"document {at + 1}" for at in place] if docid is None else [str(docid[int(row)]) for row in rows],
        "label": numbers(labels[rows]),
        "score": [numbers(scores[rows]) for scores in comparison.scores.values()],
        "rank": [ranks[name][rows].tolist() for name in ranks],
        "mean": numbers(queries.X[every][:, used].mean(axis=0)),
        "x": show_near(queries.X[rows][:, used]),
        "parts": {name: show_near(each[query][place][:, used]) for name, each in parts.items() if len(used)},
    }


def _describe(
    queries: Queries, query: int, rows: Places, documents: Descriptions, texts: Descriptions
) -> dict[str, Any]:
    """What is known about a query and about its documents."""
    docid = queries.docid
    return {
        "about": texts.texts(queries.names()[query]) or [None] * len(texts.columns),
        "texts": [None if docid is None else documents.texts(docid[int(row)]) for row in rows],
    }


def _additive(
    comparison: Comparison, linear: dict[str, Any], chosen: Places
) -> dict[str, dict[int, NDArray[np.float64]]]:
    """For each ranker that is a sum over features and not linear: by query, the contributions over their mean.

    Sums of so many trees that a reader would wait for them are left out; :func:`rankwise.explain` has them by query.
    """
    found: dict[str, dict[int, NDArray[np.float64]]] = {}
    documents = int(comparison.queries.sizes[chosen].sum())
    for name, models in comparison.models.items():
        if name in linear or not models or not all(isinstance(model, Ranker) for model in models):
            continue
        if max(map(_count_trees, models)) * documents > _TERMS:
            continue
        each = {}
        for query in map(int, chosen):
            model = models[int(comparison.fold_of_query[query]) - 1]
            one = comparison.queries[[query]]
            if model._names() not in (None, one.feature_names) or model.n_features_in_ != one.n_features:
                break
            parts = model._contributions(np.asarray(one.X))
            if parts is None:
                break
            each[query] = parts[0] - parts[0].mean(axis=0)
        else:
            found[name] = each
    return found


def _count_trees(model: Any) -> int:
    """The number of trees of a fitted ranker."""
    trees = vars(model).get("ensemble_")
    return 0 if trees is None else int(trees.n_trees)


def _largest_change(comparison: Comparison) -> NDArray[np.float64]:
    """For each query the largest difference to the baseline, of any ranker in any measure; 0 where nothing is known."""
    base = comparison.results[comparison.baseline].values
    others = [result.values for name, result in comparison.results.items() if name != comparison.baseline]
    if not others:
        return np.zeros(len(comparison.queries))
    return np.asarray(np.nan_to_num(np.max([np.nan_to_num(np.abs(each - base)) for each in others], axis=(0, 1))))


def _counts(comparison: Comparison) -> NDArray[np.bool_]:
    """Which queries have a value in some measure."""
    return np.asarray(np.isfinite(comparison.results[comparison.baseline].values).any(axis=0))


def _ranks(queries: Queries, scores: NDArray[np.float64]) -> Places:
    """The rank of every row in its query, from 1; equal scores in the order of the input."""
    owner = queries.query_of_row
    order = np.lexsort((np.arange(len(scores)), -scores, owner))
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[order] = np.arange(len(scores)) - np.repeat(queries.start[:-1], queries.sizes) + 1
    return ranks


def _near_the_top(queries: Queries, query: int, ranks: dict[str, Places], most: int) -> Places:
    """The rows of a query that some ranker has among its first ``most``, best rank first."""
    rows = np.arange(queries.n_documents)[queries.rows_of(query)]
    best = np.min([each[rows] for each in ranks.values()], axis=0)
    order = np.argsort(best, kind="stable")
    return np.asarray(rows[order][best[order] <= most])


def _depth(queries: Queries, chosen: Places, ranks: dict[str, Places], most: int, buffer: int) -> int:
    """The largest depth, up to ``most``, to which the documents of all queries fit into ``buffer``."""
    if buffer <= 0 or not len(chosen):
        return 0
    best = np.min(list(ranks.values()), axis=0)
    near = np.sort(np.concatenate([best[queries.rows_of(query)] for query in chosen]))
    return most if len(near) <= buffer else min(most, int(near[buffer]) - 1)


def _weights(comparison: Comparison) -> dict[str, list[NDArray[np.float64]]]:
    """For each linear ranker its weights in every fold."""
    found = {}
    for name, models in comparison.models.items():
        each = [weights_of(model, comparison.queries) for model in models]
        if all(w is not None for w in each):
            found[name] = [w for w in each if w is not None]
    return found
