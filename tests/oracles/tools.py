"""Other tools measuring one list, called as their users call them.

Each function returns the tool's number for (scores, labels), or raises ImportError where the tool is not installed.
"""

import warnings
from collections.abc import Callable

import numpy as np

Tool = Callable[[np.ndarray, np.ndarray], float]


def scikit_learn(name: str, k: int | None = None) -> Tool:
    from sklearn import metrics

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a list without a relevant document
            if name == "AP":
                return metrics.average_precision_score(labels >= 1, scores)
            return {"nDCG": metrics.ndcg_score, "DCG": metrics.dcg_score}[name]([labels], [scores], k=k)

    return measure


def trec_eval(metric: str) -> Tool:
    import pytrec_eval

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        # ids that run against the order of the input: the descending order of trec_eval is then the input's
        names = [f"d{len(labels) - place:04d}" for place in range(len(labels))]
        qrels = {"q": {name: int(label) for name, label in zip(names, labels, strict=True)}}
        run = {"q": {name: float(score) for name, score in zip(names, scores, strict=True)}}
        return next(iter(pytrec_eval.RelevanceEvaluator(qrels, {metric}).evaluate(run)["q"].values()))

    return measure


def lightgbm(metric: str, k: int) -> Tool:
    """Zero trees: the scores come in as ``init_score``."""
    import lightgbm

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        return lightgbm_mean(lightgbm, metric, k, scores, labels, [len(labels)], None)

    return measure


def lightgbm_mean(module, metric, k, scores, labels, group, weight) -> float:
    data = module.Dataset(
        np.zeros((len(labels), 1)),
        label=labels,
        group=group,
        weight=weight,
        init_score=scores,
        params={"verbose": -1, "feature_pre_filter": False},
    )
    settings = {"objective": "lambdarank", "metric": metric, "eval_at": [k], "verbose": -1}
    return module.Booster(settings, data).eval_train()[0][2]


def xgboost(metric: str) -> Tool:
    """Zero trees: the scores come in as ``base_margin``."""
    import xgboost

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        data = xgboost.DMatrix(np.zeros((len(labels), 1)), label=labels, group=[len(labels)], base_margin=scores)
        settings = {"objective": "rank:pairwise", "eval_metric": metric, "base_score": 0}
        found = xgboost.train(settings, data, num_boost_round=0).eval(data)
        return float(found.rsplit(":", 1)[1])

    return measure


def catboost(metric: str) -> Tool:
    from catboost.utils import eval_metric

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        group = [0] * len(labels)
        return eval_metric([float(y) for y in labels], [float(s) for s in scores], metric, group_id=group)[0]

    return measure


def ranx(metric: str) -> Tool:
    import ranx

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        qrels = ranx.Qrels({"q": {f"d{place}": int(label) for place, label in enumerate(labels)}})
        run = ranx.Run({"q": {f"d{place}": float(score) for place, score in enumerate(scores)}})
        return float(ranx.evaluate(qrels, run, metric))

    return measure
