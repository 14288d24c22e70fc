"""Rankers of other packages, each with at most 1,000 trees and early stopping by NDCG@10 on the validation part.

Each stands alone and bagged over five folds, as ``AutoRanker`` is, with the scores as the packages give them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.queries.queries import Queries

TREES, RATE, PATIENCE = 1_000, 0.05, 100
PARTS = 5  # fits of a bagged peer
Vector = NDArray[np.float64]
Scores = Callable[[Queries], Vector]
Fit = Callable[[Queries, Queries, int], Scores]


def lightgbm(objective: str) -> Fit:
    """LightGBM's objectives for ranking."""

    def fit(train: Queries, validation: Queries, seed: int) -> Scores:
        import lightgbm

        rules = {
            "objective": objective,
            "metric": "ndcg",
            "eval_at": [10],
            "learning_rate": RATE,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "seed": seed,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(*_arrays(train), group=train.sizes)
        watched = data.create_valid(*_arrays(validation), group=validation.sizes)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        model = lightgbm.train(rules, data, TREES, valid_sets=[watched], callbacks=[stop])
        return lambda queries: np.asarray(model.predict(queries.X, num_iteration=model.best_iteration))

    return fit


def xgboost(objective: str) -> Fit:
    """XGBoost's objectives for ranking."""

    def fit(train: Queries, validation: Queries, seed: int) -> Scores:
        import xgboost

        model = xgboost.XGBRanker(
            objective=objective,
            n_estimators=TREES,
            learning_rate=RATE,
            eval_metric="ndcg@10",
            early_stopping_rounds=PATIENCE,
            n_jobs=1,
            random_state=seed,
        )
        (X, y), (other, labels) = _arrays(train, objective), _arrays(validation, objective)
        watched = {"eval_set": [(other, labels)], "eval_qid": [_owners(validation)]}
        model.fit(X, y, qid=_owners(train), verbose=False, **watched)
        return lambda queries: np.asarray(model.predict(queries.X), dtype=np.float64)

    return fit


def catboost(train: Queries, validation: Queries, seed: int) -> Scores:
    """CatBoost's YetiRank."""
    import catboost

    model = catboost.CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Exp",
        iterations=TREES,
        learning_rate=RATE,
        early_stopping_rounds=PATIENCE,
        thread_count=1,
        random_seed=seed,
        allow_writing_files=False,
        verbose=False,
    )
    (X, y), (other, labels) = _arrays(train), _arrays(validation)
    watched = catboost.Pool(other, labels, group_id=_owners(validation))
    model.fit(catboost.Pool(X, y, group_id=_owners(train)), eval_set=watched)
    return lambda queries: np.asarray(model.predict(queries.X), dtype=np.float64)


def bagged(fit: Fit) -> Fit:
    """The mean score of five fits on training and validation queries, each stopped by another fifth of them."""

    def fit_all(train: Queries, validation: Queries, seed: int) -> Scores:
        known = Queries.concat([part._replace(qid=None, docid=None) for part in (train, validation)])
        everything = np.arange(len(known))
        parts = np.array_split(np.random.default_rng(seed).permutation(everything), PARTS)
        members = [fit(known[np.setdiff1d(everything, part)], known[np.sort(part)], seed) for part in parts]
        return lambda queries: np.mean([scores(queries) for scores in members], axis=0)

    return fit_all


def _arrays(queries: Queries, objective: str = "") -> tuple[Any, Vector]:
    """Features and labels, query after query; relevant or not for MAP, which takes nothing else."""
    X, y = queries.in_query_order(np.asarray(queries.X)), queries.in_query_order(queries.labels())
    return X, (y > 0).astype(np.float64) if objective == "rank:map" else y


def _owners(queries: Queries) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(queries)), queries.sizes)


PEERS: dict[str, Fit] = {
    "LightGBM lambdarank": lightgbm("lambdarank"),
    "LightGBM rank_xendcg": lightgbm("rank_xendcg"),
    "XGBoost rank:ndcg": xgboost("rank:ndcg"),
    "XGBoost rank:map": xgboost("rank:map"),
    "CatBoost YetiRank": catboost,
}
BAGGED: dict[str, Fit] = {f"{name}, bagged": bagged(fit) for name, fit in PEERS.items()}
