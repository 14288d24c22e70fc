"""Scores of trees from other tools against the tools' own: ``python3 run.py python -m experiments.foreign_trees``.

Some 400 small models of LightGBM, XGBoost and CatBoost are trained, one for every setting that changes how a document
finds its leaf or how leaves are added. Each is read as a fitted object and from its files, and scores the documents
that it was trained on, documents at and next to its thresholds, and documents with values that it has not seen, in
float64 and float32. Kept is the largest difference from the booster's own scores before they are transformed. XGBoost
adds leaves in float32; there the leaves are also added in this way, which has to give XGBoost's bits.

Writes docs/foreign_trees.json and the table of docs/migrate.md.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise._progress import track
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

RESULTS, PAGE = DOCS / "foreign_trees.json", DOCS / "migrate.md"
QUERIES, LONG, FEATURES = 40, 10, 6
CATEGORIES = FEATURES - 1  # the place of the categorical feature
_FEW_THRESHOLDS = 300
Rows = NDArray[Any]


# ----------------------------------------------------------------------------------------------------------- the grid


@dataclass(frozen=True)
class Cell:
    """A model of the grid.

    Attributes
    ----------
    booster : {"LightGBM", "XGBoost", "CatBoost"}
        What grows the trees.
    about : str
        The row of the table that it belongs to.
    params : mapping of str to object
        Parameters of the booster.
    trees : int
        The number of boosting rounds.
    gaps : str
        Where NaN is: "none", "some", "many", "later" (in documents to score alone), or "column" (a whole feature).
    categories : int
        The number of categories of the last feature; 0 where it is a number.
    more : mapping of str to object
        What a cell needs beside that: "stop" (early stopping), "estimator" (the wrapper for scikit-learn), "missing",
        "rounds", "flat" (labels that are all the same), "scale".
    """

    booster: str
    about: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trees: int = 20
    gaps: str = "some"
    categories: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)


def cells() -> list[Cell]:
    """Every model of the grid."""
    found: list[Cell] = []
    for booster, depth in (("LightGBM", "max_depth"), ("XGBoost", "max_depth"), ("CatBoost", "depth")):
        add = partial(_add, found, booster)
        for levels in range(1, 13):
            add("depth 1 to 12", {depth: levels}, _trees_of(booster, levels))
            add("depth 1 to 12", {depth: levels, **_regression(booster)}, 5, gaps="none")
        for trees in (1, 2, 3, 10, 50, 200, 500, 1_000, 2_000):
            add("1 to 2,000 trees", {depth: 3}, trees, gaps="none")
            add("1 to 2,000 trees", {depth: 2}, trees)
        for gaps in ("none", "some", "many", "later", "column"):
            for levels in (1, 3, 6):
                add("NaN", {depth: levels}, 20, gaps=gaps)
                for extra in _missing(booster):
                    add("NaN", {depth: levels, **extra}, 20, gaps=gaps)
        for count in (2, 5, 12, 40):
            for gaps in ("none", "some", "later") if booster != "CatBoost" else ("none",):
                for extra in _categorical(booster):
                    add("categories", {depth: 4, **extra}, 20, gaps=gaps, categories=count)
        for extra in _sampling(booster):
            for trees in (1, 7, 60):
                add(str(extra["about"]), {depth: 4, **extra["params"]}, trees)
        for mode in _monotone(booster):
            for levels in (2, 4, 7):
                add("monotone constraints", {depth: levels, **mode}, 30)
        for stop in (1, 5):
            for estimator in (False, True):
                for gaps in ("none", "some"):
                    add("early stopping", {depth: 4}, 300, gaps=gaps, stop=stop, estimator=estimator)
        for rounds in (1, 3, 10):
            add("the first rounds", {depth: 3}, 20, rounds=rounds)
        for extra in _base(booster):
            add("base score, objectives", {depth: 3, **extra}, 15, scale=extra.get("scale"))
        for trees in (1, 20):
            add("one leaf", {depth: 3, **_one_leaf(booster)}, trees)
            if booster != "CatBoost":  # which refuses labels that are all the same
                add("one leaf", {depth: 3, **_regression(booster)}, trees, gaps="none", flat=True)
    if any(one.more.get("missing") == 0 for one in found):
        raise RuntimeError("the grid names missing=0 twice")
    found += [Cell("XGBoost", "NaN", {"max_depth": levels}, 20, "some", 0, {"estimator": True, "missing": 0.0})
              for levels in (1, 3, 6)]  # fmt: skip
    return found


def _add(
    found: list[Cell], booster: str, about: str, params: Mapping[str, Any], trees: int, /, gaps: str = "some",
    categories: int = 0, **more: Any,
) -> None:  # fmt: skip
    kept = {name: value for name, value in more.items() if value is not None}
    own = {name: value for name, value in params.items() if name != "scale"}
    found.append(Cell(booster, about, own, trees, gaps, categories, kept))


def _trees_of(booster: str, levels: int) -> int:
    """Symmetric trees of twelve levels have 4,096 leaves each."""
    return 3 if booster == "CatBoost" and levels > 8 else 20


def _regression(booster: str) -> dict[str, Any]:
    return {
        "LightGBM": {"objective": "regression"},
        "XGBoost": {"objective": "reg:squarederror"},
        "CatBoost": {"loss_function": "RMSE"},
    }[booster]


def _missing(booster: str) -> list[dict[str, Any]]:
    return {
        "LightGBM": [{"zero_as_missing": True}, {"use_missing": False}],
        "XGBoost": [{"tree_method": "exact"}],
        "CatBoost": [{"nan_mode": "Min"}, {"nan_mode": "Max"}, {"grow_policy": "Depthwise", "nan_mode": "Max"}],
    }[booster]


def _categorical(booster: str) -> list[dict[str, Any]]:
    return {
        "LightGBM": [{}, {"max_cat_to_onehot": 1, "cat_smooth": 1, "min_data_per_group": 1}],
        "XGBoost": [{"max_cat_to_onehot": 1}, {"max_cat_to_onehot": 100}],
        "CatBoost": [{}, {"grow_policy": "Depthwise"}, {"grow_policy": "Lossguide"}],
    }[booster]


def _sampling(booster: str) -> list[dict[str, Any]]:
    bagged = {"bagging_freq": 1, "bagging_fraction": 0.7}
    return {
        "LightGBM": [
            *({"about": "dart", "params": {"boosting": "dart", "drop_rate": rate}} for rate in (0.1, 0.5)),
            {"about": "dart", "params": {"boosting": "dart", "drop_rate": 0.5, "xgboost_dart_mode": True}},
            {"about": "random forests", "params": {"boosting": "rf", **bagged}},
            {"about": "random forests", "params": {"boosting": "rf", **bagged, **_regression("LightGBM")}},
            {"about": "sampling, growth", "params": {"data_sample_strategy": "goss"}},
            {"about": "sampling, growth", "params": {"extra_trees": True, "num_leaves": 7}},
        ],
        "XGBoost": [
            *({"about": "dart", "params": {"booster": "dart", "rate_drop": one, "one_drop": 1}} for one in (0.1, 0.5)),
            {"about": "dart", "params": {"booster": "dart", "rate_drop": 0.5, "normalize_type": "forest"}},
            {"about": "random forests", "params": {"num_parallel_tree": 4, "subsample": 0.7, "learning_rate": 1.0}},
            {"about": "sampling, growth", "params": {"subsample": 0.5, "colsample_bytree": 0.5}},
            {"about": "sampling, growth", "params": {"grow_policy": "lossguide", "max_leaves": 7}},
            {"about": "sampling, growth", "params": {"tree_method": "approx"}},
        ],
        "CatBoost": [
            {"about": "sampling, growth", "params": {"grow_policy": "Depthwise"}},
            {"about": "sampling, growth", "params": {"grow_policy": "Lossguide", "max_leaves": 9}},
            {"about": "sampling, growth", "params": {"bootstrap_type": "Bernoulli", "subsample": 0.5}},
            {"about": "sampling, growth", "params": {"boosting_type": "Ordered", **_regression("CatBoost")}},
        ],
    }[booster]  # fmt: skip


def _monotone(booster: str) -> list[dict[str, Any]]:
    signs = [1, -1, 0, 0, 1, 0]
    if booster == "LightGBM":
        modes = ("basic", "intermediate", "advanced")
        return [{"monotone_constraints": signs, "monotone_constraints_method": mode} for mode in modes]
    if booster == "XGBoost":
        return [{"monotone_constraints": str(tuple(signs)), "tree_method": method} for method in ("hist", "exact")]
    return [{"monotone_constraints": signs, **_regression("CatBoost")}]


def _base(booster: str) -> list[dict[str, Any]]:
    if booster == "LightGBM":
        plain = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "rank_xendcg", "lambdarank")
        turned = ("binary", "poisson", "tweedie", "gamma", "cross_entropy", "cross_entropy_lambda")
        return [
            *({"objective": one} for one in (*plain, *turned)),
            {"objective": "regression", "boost_from_average": False},
            {"objective": "regression", "reg_sqrt": True},
            {"objective": "regression", "linear_tree": False, "path_smooth": 1.0},
        ]
    if booster == "XGBoost":
        plain = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "rank:pairwise", "rank:ndcg")
        turned = (
            "binary:logistic",
            "binary:logitraw",
            "binary:hinge",
            "reg:logistic",
            "count:poisson",
            "reg:tweedie",
            "reg:gamma",
            "survival:cox",
        )
        return [
            *({"objective": one} for one in (*plain, *turned, "reg:squaredlogerror")),
            {"objective": "reg:quantileerror", "quantile_alpha": 0.3},
            *({"objective": "reg:squarederror", "base_score": base} for base in (0.0, 0.5, 10.0, -3.7)),
            *({"objective": "rank:ndcg", "base_score": base} for base in (0.5, 123.456)),
            *({"objective": "binary:logistic", "base_score": base} for base in (0.1, 0.5, 0.9)),
            *({"objective": "count:poisson", "base_score": base} for base in (0.1, 2.0)),
        ]
    plain = ("RMSE", "MAE", "Quantile:alpha=0.3", "YetiRank", "QueryRMSE", "PairLogit", "Logloss", "Poisson")
    return [
        *({"loss_function": one} for one in plain),
        {"loss_function": "RMSE", "boost_from_average": False},
        *({"loss_function": "RMSE", "scale": scale} for scale in ((2.0, 1.0), (0.37, -5.0))),
    ]


def _one_leaf(booster: str) -> dict[str, Any]:
    return {
        "LightGBM": {"min_data_in_leaf": 10_000},
        "XGBoost": {"gamma": 1e9},
        "CatBoost": {"grow_policy": "Lossguide", "min_data_in_leaf": 10_000},
    }[booster]


# ----------------------------------------------------------------------------------------------------------- the data


def data_of(cell: Cell, seed: int) -> tuple[Rows, NDArray[np.float64], Rows]:
    """Features and labels to learn from, and the features of documents to score."""
    random = np.random.default_rng(seed)
    rows = 2 * QUERIES * LONG
    X = random.normal(size=(rows, FEATURES))
    X[:, 1] = np.rint(X[:, 1])  # 0 and ties
    X[random.random(rows) < 0.5, 2] = 0.0
    signal = X[:, 0] + np.abs(X[:, 1]) + (X[:, 2] == 0) + random.normal(size=rows)
    if cell.categories:
        X[:, CATEGORIES] = random.integers(0, cell.categories, rows)
        signal += 2 * np.sin(3.0 * X[:, CATEGORIES])
    y = np.clip(np.rint(signal), 0, 4)
    if str(cell.params.get("objective", "")) in ("binary", "cross_entropy", "cross_entropy_lambda") or "binary" in str(
        cell.params.get("objective", "")
    ) or cell.params.get("objective") == "reg:logistic" or cell.params.get("loss_function") == "Logloss":  # fmt: skip
        y = (y > 1).astype(float)
    if cell.params.get("objective") in ("reg:gamma", "survival:cox", "gamma"):
        y += 1.0
    if cell.more.get("flat"):
        y[:] = 2.0
    holes = {"none": 0.0, "some": 0.1, "many": 0.6, "later": 0.3, "column": 0.1}[cell.gaps]
    gap = random.random(X.shape) < holes
    if cell.gaps == "later":
        gap[: rows // 2] = False
    if cell.booster == "CatBoost" and cell.categories:
        gap[:, CATEGORIES] = False
    X[gap] = np.nan
    if cell.gaps == "column":
        X[:, 3] = np.nan
    return X[: rows // 2], y[: rows // 2], X[rows // 2 :]


def documents(cell: Cell, trees: TreeEnsemble, X: Rows, other: Rows, dtype: Any) -> Rows:
    """The documents to score: those of both halves, at and next to thresholds, and with values that are new."""
    random = np.random.default_rng(1)
    places = np.flatnonzero(~trees.categorical)
    if len(places) > _FEW_THRESHOLDS:
        places = random.choice(places, _FEW_THRESHOLDS, replace=False)
    near = []
    for at in places.tolist():
        cut = trees.threshold[at]
        if abs(cut) > 1e30:
            continue
        for value in (cut, np.nextafter(cut, np.inf), np.nextafter(np.float32(cut), np.float32(np.inf)),
                      np.nextafter(np.float32(cut), np.float32(-np.inf)), np.float32(cut)):  # fmt: skip
            if cell.booster == "LightGBM" or abs(value) > 1e-35 or value == 0:
                row = X[at % len(X)].copy()
                row[trees.feature[at]] = value
                near.append(row)
    strange = np.tile(X[:12], (1, 1)).copy()
    numbers = [0.0, -0.0, 1e-34, -1e-34, 1e30, -1e30, 3e38, 1.0, -1.0, 0.5, 2.0, 100.0]
    strange[np.arange(12), random.integers(0, CATEGORIES, 12)] = numbers
    if cell.booster == "LightGBM":
        strange[0, 0], strange[1, 0] = 1e-36, -1e-38
    if cell.categories:
        strange[:, CATEGORIES] = [0, 1, 2, 31, 32, 33, 63, 64, 100, 1_000, 30_000, 5]
    found = np.concatenate([X, other, strange, *([np.array(near)] if near else [])])
    if cell.gaps == "none" and cell.booster != "CatBoost":  # what a model without gaps does with NaN
        found[:20, 0] = np.nan
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(found, dtype=dtype)


# --------------------------------------------------------------------------------------------------------- the models


@dataclass(frozen=True)
class Trained:
    """A model of a booster.

    Attributes
    ----------
    model : object
        The fitted object.
    raw : callable
        Its own scores of some features, before they are transformed.
    files : tuple of str
        The endings of the files that it can be saved to.
    save : callable
        Saves it to a file of that name.
    """

    model: Any
    raw: Callable[[Rows], NDArray[np.float64]]
    files: tuple[str, ...]
    save: Callable[[str], None]


def train(cell: Cell, X: Rows, y: NDArray[np.float64], other: Rows) -> Trained:
    """The model of a cell."""
    return {"LightGBM": _lightgbm, "XGBoost": _xgboost, "CatBoost": _catboost}[cell.booster](cell, X, y, other)


def _lightgbm(cell: Cell, X: Rows, y: NDArray[np.float64], other: Rows) -> Trained:
    import lightgbm as lgb

    params = {
        "objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 64,
        "seed": 0, **cell.params,
    }  # fmt: skip
    group = np.full(QUERIES, LONG) if params["objective"] in ("lambdarank", "rank_xendcg") else None
    codes = [CATEGORIES] if cell.categories else "auto"
    rounds, stop = cell.more.get("rounds"), cell.more.get("stop")
    half = len(X) // 2
    sides = (slice(None, half), slice(half, None)) if stop else (slice(None), slice(0))
    parts = [None if group is None else group[: len(group) // 2] if stop else group, group if group is None else
             group[len(group) // 2 :]]  # fmt: skip
    callbacks = [lgb.early_stopping(stop, verbose=False)] if stop else []
    if cell.more.get("estimator"):
        model: Any = lgb.LGBMRanker(n_estimators=cell.trees, importance_type="gain", **params)
        held = {"eval_set": [(X[sides[1]], y[sides[1]])], "eval_group": [parts[1]]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[sides[0]], y[sides[0]], group=parts[0], callbacks=callbacks, **held)
        return Trained(model, lambda rows: model.predict(rows, raw_score=True), (".txt",), model.booster_.save_model)
    data = lgb.Dataset(X[sides[0]], y[sides[0]], group=parts[0], categorical_feature=codes, params=params)
    held = {"valid_sets": [data.create_valid(X[sides[1]], y[sides[1]], group=parts[1])]} if stop else {}
    booster = lgb.train(params, data, cell.trees, callbacks=callbacks, **held)
    # a forest is averaged by predict alone, which transforms no scores of rankers and regressions
    is_forest = params.get("boosting") == "rf"
    raw = partial(booster.predict, raw_score=not is_forest, num_iteration=rounds, num_threads=1)
    return Trained(booster, raw, (".txt",), booster.save_model)


def _xgboost(cell: Cell, X: Rows, y: NDArray[np.float64], other: Rows) -> Trained:
    import xgboost as xgb

    params = {"objective": "rank:ndcg", "max_depth": 4, "min_child_weight": 0, "nthread": 1, "seed": 0, **cell.params}
    ranks = str(params["objective"]).startswith("rank:")
    rounds, stop = cell.more.get("rounds"), cell.more.get("stop")
    kinds: dict[str, Any] = {"missing": cell.more.get("missing", np.nan)}
    if cell.categories:
        kinds |= {"feature_types": ["q"] * CATEGORIES + ["c"], "enable_categorical": True}
    qid = np.repeat(np.arange(QUERIES), LONG)
    half = len(X) // 2
    sides = (slice(None, half), slice(half, None)) if stop else (slice(None), slice(0))

    def matrix(rows: Rows, place: slice | None = None) -> Any:
        about = {} if place is None else {"label": y[place], **({"qid": qid[place]} if ranks else {})}
        return xgb.DMatrix(rows, **about, **kinds, nthread=1)

    if cell.more.get("estimator"):
        params.pop("nthread")
        ranker = xgb.XGBRanker(
            n_estimators=cell.trees, early_stopping_rounds=stop, n_jobs=1, missing=kinds["missing"], **params
        )
        held = {"eval_set": [(X[sides[1]], y[sides[1]])], "eval_qid": [qid[sides[1]]]} if stop else {}
        ranker.fit(X[sides[0]], y[sides[0]], qid=qid[sides[0]], verbose=False, **held)
        files = () if "missing" in cell.more else (".json", ".ubj")
        return Trained(ranker, lambda rows: ranker.predict(rows, output_margin=True), files, ranker.save_model)
    held = {"evals": [(matrix(X[sides[1]], sides[1]), "held")], "early_stopping_rounds": stop} if stop else {}
    booster = xgb.train(params, matrix(X[sides[0]], sides[0]), cell.trees, verbose_eval=False, **held)
    limit = (0, rounds or 0)
    return Trained(
        booster, lambda rows: booster.predict(matrix(rows), output_margin=True, iteration_range=limit),
        (".json", ".ubj"), booster.save_model,
    )  # fmt: skip


def _catboost(cell: Cell, X: Rows, y: NDArray[np.float64], other: Rows) -> Trained:
    import catboost
    import pandas as pd

    params = {
        "loss_function": "YetiRank", "iterations": cell.trees, "thread_count": 1, "random_seed": 0, "verbose": False,
        "allow_writing_files": False, "one_hot_max_size": 255, **cell.params,
    }  # fmt: skip
    ranks = params["loss_function"] in ("YetiRank", "QueryRMSE", "PairLogit")
    if params.get("grow_policy", "SymmetricTree") != "SymmetricTree" and ranks:
        params["loss_function"], ranks = "RMSE", False
    rounds, stop = cell.more.get("rounds"), cell.more.get("stop")
    qid = np.repeat(np.arange(QUERIES), LONG)
    half = len(X) // 2
    sides = (slice(None, half), slice(half, None)) if stop else (slice(None), slice(0))

    def pool(rows: Rows, place: slice | None = None) -> Any:
        about = {} if place is None else {"label": y[place], **({"group_id": qid[place]} if ranks else {})}
        if not cell.categories:
            return catboost.Pool(rows, **about)
        frame = pd.DataFrame(rows)
        frame[CATEGORIES] = frame[CATEGORIES].astype(int)
        return catboost.Pool(frame, cat_features=[CATEGORIES], **about)

    kind = catboost.CatBoostRanker if cell.more.get("estimator") else catboost.CatBoost
    if cell.more.get("estimator"):
        model = kind(early_stopping_rounds=stop, **params)
    else:
        model = kind({"early_stopping_rounds": stop, **params} if stop else params)
    held = {"eval_set": pool(X[sides[1]], sides[1])} if stop else {}
    model.fit(pool(X[sides[0]], sides[0]), **held)
    if "scale" in cell.more:
        model.set_scale_and_bias(*cell.more["scale"])

    def raw(rows: Rows) -> NDArray[np.float64]:
        # the ranker's own predict has no such option
        return catboost.CatBoost.predict(
            model, pool(rows), prediction_type="RawFormulaVal", ntree_end=rounds or 0, thread_count=1
        )

    return Trained(model, raw, (".json", ".cbm"), lambda path: model.save_model(path, format=path.rpartition(".")[2]))


# ------------------------------------------------------------------------------------------------------ the comparison


def compare(cell: Cell, seed: int = 0) -> dict[str, Any]:
    """Scores of a model by its booster and here: the largest differences, and whether XGBoost's sums are the same.

    Parameters
    ----------
    cell : Cell
        The model.
    seed : int, default=0
        Seed of the data.

    Returns
    -------
    dict
        ``difference``, its largest ratio to what rounding allows (``allowed``), ``equal`` (the share of scores with the
        same bits), ``in_float32`` (the largest difference after float32 sums, for XGBoost), ``documents``, ``trees``,
        and ``forms`` (how many forms of the model were read).
    """
    X, y, other = data_of(cell, seed)
    done = train(cell, X, y, other)
    read: Callable[..., rw.TreeRanker] = {
        "LightGBM": rw.TreeRanker.from_lightgbm,
        "XGBoost": rw.TreeRanker.from_xgboost,
        "CatBoost": rw.TreeRanker.from_catboost,
    }[cell.booster]
    rounds = cell.more.get("rounds")
    model = read(done.model, rounds=rounds)
    found: dict[str, Any] = {"difference": 0.0, "allowed": 0.0, "in_float32": 0.0, "documents": 0, "equal": 0}
    with tempfile.TemporaryDirectory() as folder:
        forms = [Path(folder, f"model{ending}") for ending in done.files]
        for path in forms:
            done.save(str(path))
        again = [read(path, rounds=rounds) for path in forms]
        if rounds is None:
            again += [rw.read_model(path) for path in forms]
    for dtype in (np.float64, np.float32):
        rows = documents(cell, model.ensemble_, X, other, dtype)
        ours, theirs = model.predict(rows), np.asarray(done.raw(rows))
        for one in again:
            if not np.array_equal(one.predict(rows), ours):
                raise RuntimeError(f"{cell}: a file of the model scores differently from the object")
        difference = np.abs(ours - theirs)
        found["difference"] = max(found["difference"], float(difference.max()))
        found["equal"] += int((ours == theirs).sum())
        found["documents"] += len(rows)
        if cell.booster == "XGBoost":
            sums = in_float32(model.ensemble_, rows)
            found["in_float32"] = max(found["in_float32"], float(np.abs(sums - theirs).max()))
            found["allowed"] = max(found["allowed"], float(difference.max() / rounding(model.ensemble_, 2.0**-24)))
        elif difference.any():
            found["allowed"] = max(found["allowed"], float(difference.max() / rounding(model.ensemble_, 2.0**-52)))
    found["forms"] = 1 + len(forms)
    found["trees"] = model.ensemble_.n_trees
    return found


def in_float32(trees: TreeEnsemble, rows: Rows) -> NDArray[np.float32]:
    """The base score and the leaves of all trees, added one after the other in float32."""
    total = np.full(len(rows), np.float32(trees.offset))
    for tree in range(trees.n_trees):
        total += trees._taking(np.arange(trees.n_trees) == tree).predict(rows, 1).astype(np.float32)
    return total


def rounding(trees: TreeEnsemble, unit: float) -> float:
    """What sums of so many numbers may be off by: (trees + 1) u (largest leaf of every tree + |offset|)."""
    first = trees.start[:-1] + np.arange(trees.n_trees)
    largest = float(np.maximum.reduceat(np.abs(trees.value), first).sum()) if trees.n_trees else 0.0
    return (trees.n_trees + 1) * unit * (largest + abs(trees.offset)) or 1.0


# ------------------------------------------------------------------------------------------------------------ the page


def table(stored: Mapping[str, Any]) -> str:
    """One row per setting, one column per booster: models, and the largest difference from the booster's scores."""
    rows: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for one in stored["cells"]:
        rows.setdefault(one["about"], {}).setdefault(one["booster"], []).append(one)
    boosters = ("LightGBM", "XGBoost", "CatBoost")
    titles = ("setting", *boosters, "XGBoost's own sums")
    return markdown_table(titles, _lines(rows, boosters))


def _lines(rows: Mapping[str, Mapping[str, list[Mapping[str, Any]]]], boosters: tuple[str, ...]) -> Iterator[list[str]]:
    for about, found in rows.items():
        sums = [one["in_float32"] for one in found.get("XGBoost", [])]
        yield [about, *(_shown(found.get(one, [])) for one in boosters), "" if not sums else f"{max(sums):.1g}"]


def _shown(cells_of: list[Mapping[str, Any]]) -> str:
    if not cells_of:
        return ""
    return f"{max(one['difference'] for one in cells_of):.1g} ({len(cells_of)} models)"


NUMBERS = ("models", "documents", "same", "others", "xgboost", "xgboost-same", "xgboost-difference")


def numbers(stored: Mapping[str, Any]) -> dict[str, str]:
    """What the sentences of the page quote, by :data:`NUMBERS`."""
    own = stored["cells"]
    xgboost = [one for one in own if one["booster"] == "XGBoost"]
    return {
        "models": f"{len(own):,}",
        "documents": f"{sum(one['documents'] for one in own):,}",
        "same": f"{sum(one['difference'] == 0 for one in own if one['booster'] != 'XGBoost'):,}",
        "others": f"{len(own) - len(xgboost):,}",
        "xgboost": f"{len(xgboost):,}",
        "xgboost-same": f"{sum(one['in_float32'] == 0 for one in xgboost):,}",
        "xgboost-difference": f"{max(one['difference'] for one in xgboost):.1g}",
    }


def main() -> int:
    warnings.simplefilter("ignore")
    found = [
        {"booster": cell.booster, "about": cell.about, **compare(cell, number)}
        for number, cell in enumerate(track(cells(), "comparing"))
    ]
    names = ("lightgbm", "xgboost", "catboost")
    stored = {"versions": {name: import_module(name).__version__ for name in names}, "cells": found}
    with writing(RESULTS) as part:
        lines = ",\n".join(json.dumps(one) for one in found)
        part.write_text(
            f'{{"versions": {json.dumps(stored["versions"])},\n"cells": [\n{lines}\n]}}\n', encoding="utf-8"
        )
    write_block(PAGE, "foreign trees", table(stored))
    print(table(stored))
    print(numbers(stored))
    return 0


if __name__ == "__main__":
    sys.exit(main())
