"""Curves and features of a comparison as plain values: cut-offs, rounds of each fit, weights and importance."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.drive import one_blas_thread
from rankwise._tables import Table
from rankwise.data.diagnose.features import feature_names
from rankwise.data.queries import Queries
from rankwise.evaluation.analysis.importance import FeatureImportance, losses_by_query, weights_of
from rankwise.evaluation.compare.result import Comparison
from rankwise.evaluation.compare.store import is_kept
from rankwise.evaluation.evaluate import evaluate
from rankwise.measures._base import Vector
from rankwise.report.compact import numbers

CUTOFFS = tuple(range(1, 21))
_FAMILIES = ("nDCG", "P")
_POINTS = 150  # of a curve; more would not be seen
_MEASURED = ("train", "validation")


def cutoffs(comparison: Comparison) -> list[dict[str, Any]]:
    """nDCG@k and P@k for k = 1..20."""
    found: list[dict[str, Any]] = []
    conventions = comparison.about["conventions"]
    for family in _FAMILIES:
        measures = [f"{family}@{k}" for k in CUTOFFS]
        try:
            lines = {
                name: numbers(evaluate(comparison.queries, scores, measures, **conventions).mean.values())
                for name, scores in comparison.scores.items()
            }
        except RankwiseError as error:
            found.append({"family": family, "k": list(CUTOFFS), "lines": {}, "note": str(error)})
        else:
            found.append({"family": family, "k": list(CUTOFFS), "lines": lines, "note": None})
    return found


def histories(comparison: Comparison) -> list[dict[str, Any]]:
    """The training history of each ranker that keeps one, in every fold."""
    found = []
    for name, models in comparison.models.items():
        accounts = [(fold, _account(model)) for fold, model in enumerate(models, start=1)]
        known = [(fold, account) for fold, account in accounts if account is not None]
        if not known:
            continue
        _, (across, table, about) = known[0]
        folds = [
            {
                "fold": fold,
                "across": numbers(_thinned(columns[across])),
                "lines": {line: numbers(_thinned(columns[line])) for line in columns.columns[1:]},
            }
            for fold, (_, columns, _) in known
        ]
        found.append(
            {
                "ranker": name,
                "across": across,
                "logarithmic": _is_wide(table[across]),
                "about": about,
                "lines": list(table.columns[1:]),
                "folds": folds,
            }
        )
    return found


Account = tuple[str, Table, str]


def _account(model: Any) -> Account | None:
    """(name of the x-axis, table of it and the lines, explanation): of rounds, of alphas, or of a stream."""
    history = getattr(model, "history_", None)
    if isinstance(history, Table) and len(history):
        drawn = [name for name in _MEASURED if name in history] or list(getattr(history, "drawn", ()))
        return _kept(history, history.columns[0], drawn, "")
    ledger = getattr(model, "ledger_", None)
    if ledger is not None and len(ledger.curve.points):
        table = Table({"round": ledger.curve.rounds, "so far": ledger.curve.mean})
        return _kept(
            table, "round", ["so far"], "mean over the rounds so far, each query ranked before it was learned from"
        )
    path = getattr(model, "path_", None)
    if isinstance(path, Table) and len(path) > 1:
        return _kept(path, path.columns[0], list(path.columns[1:2]), "validation measure of each alpha")
    return None


def _kept(table: Table, across: str, lines: list[str], about: str) -> Account | None:
    """The account, reduced to lines that hold a number; None where none does."""
    known = [name for name in lines if np.isfinite(table[name].astype(np.float64)).any()]
    if not known:
        return None
    return across, Table({name: table[name].astype(np.float64) for name in (across, *known)}), about


def _is_wide(column: NDArray[Any]) -> bool:
    """Whether the steps are factors, as those of alphas and of an annealing are."""
    return bool((column > 0).all() and column.max() > 100 * column.min() and column[0] != 1)


def _thinned(column: NDArray[Any]) -> NDArray[Any]:
    """At most so many points as are visible, the first and the last among them."""
    if len(column) <= _POINTS:
        return column
    return column[np.unique(np.linspace(0, len(column) - 1, _POINTS).astype(np.int64))]


# ----------------------------------------------------------------------------------------------------------- features


SHUFFLES = 3
_WEIGHTS_SHOWN, _LOSSES_SHOWN = 30, 12
_MOST_QUERIES, _MOST_DOCUMENTS = 400, 40_000  # that features are shuffled in: some seconds a ranker


@one_blas_thread()
def weights(comparison: Comparison) -> dict[str, Any]:
    r"""The weights of linear rankers, made comparable: :math:`w_f s_f / \lVert w s \rVert_2`.

    :math:`s_f` is the standard deviation of feature f within queries. The mean, smallest and largest value over folds
    are given for the features with the largest weight in any ranker.
    """
    # weights on features of different scales cannot be compared; within queries, because only that ranks
    spread = _spread_within(_sample(comparison)[0])
    found = {}
    for name, models in comparison.models.items():
        raw = [weights_of(model, comparison.queries) for model in models]
        scaled = [spread * w / (np.linalg.norm(spread * w) or 1.0) for w in raw if w is not None]
        if scaled:
            found[name] = np.array(scaled)
    names = feature_names(comparison.queries)
    largest = np.max([np.abs(each.mean(axis=0)) for each in found.values()], axis=0) if found else np.zeros(len(names))
    shown = np.argsort(-largest, kind="stable")[:_WEIGHTS_SHOWN]
    shown = shown[largest[shown] > 0]
    return {
        "features": [names[place] for place in shown],
        "left_out": len(names) - len(shown),
        "rankers": {
            name: {
                "mean": numbers(each.mean(axis=0)[shown]),
                "low": numbers(each.min(axis=0)[shown]),
                "high": numbers(each.max(axis=0)[shown]),
            }
            for name, each in found.items()
        },
    }


def importance(comparison: Comparison) -> dict[str, Any]:
    """The loss of the first measure when a feature is shuffled within queries, each fold with its own model."""
    sample, chosen = _sample(comparison)
    measure = comparison.results[comparison.baseline].measures[0]
    conventions = comparison.about["conventions"]
    names, seed = feature_names(sample), comparison.about["random_state"]
    fold_of = comparison.fold_of_query[chosen]
    found = {}
    for name, models in comparison.models.items():
        # models that were not kept cannot score the shuffled features
        if not all(is_kept(model) or comparison.about["rankers"][name]["kind"] == "fitted" for model in models):
            continue
        parts = [
            losses_by_query(model, part, measure, repeats=SHUFFLES, random_state=seed, **conventions)
            for model, part in _by_fold(models, sample, fold_of)
        ]
        table = FeatureImportance.of(names, np.hstack(parts), sample.weight, comparison.level, random_state=seed)
        shown = slice(0, _LOSSES_SHOWN)
        found[name] = {"features": table["feature"][shown].tolist()} | {
            column: numbers(table[column][shown]) for column in ("loss", "low", "high")
        }
    return {
        "measure": comparison.titles[0],
        "queries": len(sample),
        "of": len(comparison.queries),
        "features": len(names),
        "shuffles": SHUFFLES,
        "rankers": found,
    }


def _by_fold(models: list[Any], sample: Queries, fold_of: NDArray[np.int64]) -> Iterator[tuple[Any, Queries]]:
    """The model of each fold with the queries of the sample that this fold tested."""
    for fold, model in enumerate(models, start=1):
        if (fold_of == fold).any():
            yield model, sample[np.flatnonzero(fold_of == fold)]


def _sample(comparison: Comparison) -> tuple[Queries, NDArray[np.int64]]:
    """A random sample of test queries that is small enough to be scored often, and their indices."""
    queries = comparison.queries
    # shuffling scores every feature several times: a sample keeps a report within seconds
    order = np.random.default_rng(comparison.about["random_state"]).permutation(len(queries))
    fits = np.cumsum(queries.sizes[order]) <= _MOST_DOCUMENTS
    chosen = np.sort(order[: max(1, min(_MOST_QUERIES, int(fits.sum())))])
    return (queries, chosen) if len(chosen) == len(queries) else (queries[chosen], chosen)


def _spread_within(queries: Queries) -> Vector:
    """The standard deviation of every feature around the means of its queries."""
    total = np.zeros(queries.n_features)
    for query in queries:
        if len(query):
            X = np.asarray(query.X, dtype=np.float64)
            total += ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    return np.sqrt(total / max(queries.n_documents, 1))
