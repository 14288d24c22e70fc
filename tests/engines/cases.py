"""Queries and rankers that the engines are tried with."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw

CODES = 12  # of the category
TREES = 60
QUICK = {"folds": 2, "max_trees": 60}


@dataclass(frozen=True)
class Case:
    """A ranker, the queries that it ranks, and what is said of both."""

    data: str
    name: str
    ranker: Any
    test: rw.Queries
    gaps: str = ""  # what missing values count as, where there are some: "zero", "median" or "learned"

    def scores(self):
        """The scores of the ranker."""
        return self.ranker.predict(filled(self.test) if self.gaps == "zero" else self.test)


def simulated(count, seed):
    """Normal features that interact."""
    return rw.make_lists(count, documents=(10, 60), interactions=1.0, random_state=seed)


def decimals(count, seed):
    """Counts, prices of two decimals, shares of six, and features of large and tiny units: with many equal values."""
    lists = rw.make_lists(count, documents=(10, 60), interactions=0.5, random_state=seed)

    def change(X):
        X = X.copy()
        kinds = [lambda x: np.floor(x * x), lambda x: np.round(x * np.abs(x), 2), lambda x: np.round(x, 6)]
        kinds += [lambda x: x * 1e-5, lambda x: x * 1e5 + 2e5, np.round]
        for place in range(X.shape[1]):
            X[:, place] = kinds[place % len(kinds)](X[:, place])
        return X

    return lists.map_features(change)


def gaps(count, seed):
    """Heavy tails; every tenth value is missing, and the last feature is a category."""
    lists = rw.make_lists(count, documents=(10, 60), interactions=0.5, random_state=seed)
    rng = np.random.default_rng(seed)

    def change(X):
        X = X * np.abs(X)
        X[:, -1] = np.clip(np.round(3 * np.arcsinh(X[:, -1]) + rng.normal(size=len(X))) % CODES, 0, CODES - 1)
        X[rng.random(X.shape) < 0.1] = np.nan
        return X

    X = change(lists.X)
    return rw.Queries.from_arrays(
        X, lists.labels(), group=lists.sizes, feature_names=lists.feature_names, missing="keep"
    )


def filled(queries):
    """0 in place of what is missing, as engines see it."""
    return queries.map_features(lambda X: np.where(np.isnan(X), 0.0, X))


def real():
    """OHSUMED and MQ2008, where they are."""
    folder = os.environ.get("RANKWISE_DATA")
    for title, name in (("OHSUMED, fold 1", "ohsumed"), ("MQ2008, fold 1", "mq2008")):
        if folder and Path(folder, name).is_dir():
            fold = next(iter(rw.io.read_folds(Path(folder, name))))
            names = tuple(f"f{number}" for number in range(1, fold.train.n_features + 1))
            yield title, *(one._replace(feature_names=names) for one in (fold.train, fold.test))


def lightgbm_trees(train, with_categories=False):
    import lightgbm

    given = {"objective": "lambdarank", "num_leaves": 31, "learning_rate": 0.1, "min_data_in_leaf": 5}
    given |= {"deterministic": True, "num_threads": 1, "verbose": -1, "seed": 1}
    categories = [train.n_features - 1] if with_categories else "auto"
    data = lightgbm.Dataset(train.X, train.labels(), group=train.sizes, categorical_feature=categories)
    names = list(train.feature_names)
    return rw.TreeRanker.from_lightgbm(lightgbm.train(given, data, TREES), feature_names=names)


def xgboost_trees(train):
    import xgboost

    qid = np.repeat(np.arange(len(train)), train.sizes)
    data = xgboost.DMatrix(train.X, train.labels(), qid=qid)
    given = {"objective": "rank:ndcg", "max_depth": 5, "eta": 0.1, "nthread": 1, "seed": 1}
    model = xgboost.train(given, data, TREES)
    return rw.TreeRanker.from_xgboost(model, feature_names=list(train.feature_names))


def catboost_trees(train):
    import catboost

    qid = np.repeat(np.arange(len(train)), train.sizes)
    given = {"loss_function": "QueryRMSE", "depth": 5, "iterations": TREES, "learning_rate": 0.1, "thread_count": 1}
    model = catboost.CatBoostRanker(**given, random_seed=1, verbose=False, allow_writing_files=False)
    model.fit(train.X, train.labels(), group_id=qid)
    return rw.TreeRanker.from_catboost(model, feature_names=list(train.feature_names))


def complete_cases(data, train, test):
    """Rankers of data without gaps."""
    yield Case(data, "RidgeRanker", rw.RidgeRanker("nDCG@10").fit(train), test)
    yield Case(data, "RankBoost", rw.RankBoost("nDCG@10", rounds=60).fit(train), test)
    yield Case(data, "BoostedRanker", rw.BoostedRanker("nDCG@10", trees=2 * TREES, folds=2, seeds=1).fit(train), test)
    yield Case(data, "AutoRanker", rw.AutoRanker("nDCG@10", compact=True, **QUICK).fit(train), test)
    yield Case(data, "LightGBM", lightgbm_trees(train), test)
    yield Case(data, "XGBoost", xgboost_trees(train), test)
    yield Case(data, "CatBoost", catboost_trees(train), test)
    yield Case(data, "MappedRanker, bins", rw.MappedRanker("KBinsDiscretizer", measure="nDCG@10").fit(train), test)


def incomplete_cases(data, train, test):
    """Rankers of data with gaps and a category."""
    yield Case(
        data, "RidgeRanker, 0 for gaps", rw.RidgeRanker("nDCG@10", missing="zero").fit(filled(train)), test, "zero"
    )
    ridge = rw.AutoRanker("nDCG@10", members=("ridge",), missing="keep").fit(train)
    yield Case(data, "AutoRanker, ridge, medians for gaps", ridge, test, "median")
    auto = rw.AutoRanker("nDCG@10", missing="keep", compact=True, **QUICK).fit(train)
    yield Case(data, "AutoRanker", auto, test, "learned")
    yield Case(data, "LightGBM, 0 for gaps", lightgbm_trees(filled(train)), test, "zero")
    yield Case(data, "LightGBM", lightgbm_trees(train), test, "learned")
    yield Case(data, "LightGBM, categories", lightgbm_trees(train, with_categories=True), test, "learned")
    yield Case(data, "XGBoost", xgboost_trees(train), test, "learned")
    yield Case(data, "CatBoost", catboost_trees(train), test, "learned")


def generated(train=100, test=60):
    """(title, training queries, test queries) of the generated sets."""
    yield "interactions", simulated(train, 1), simulated(test, 2)
    yield "decimals", decimals(train, 3), decimals(test, 4)
    yield "gaps and categories", gaps(train, 5), gaps(test, 6)


def cases():
    """Every case: three generated sets, and the real ones that are there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, train, test in [*generated(), *real()]:
            make = incomplete_cases if np.isnan(train.X).any() else complete_cases
            yield from make(title, train, test)
