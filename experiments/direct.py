"""Every batch ranker on OHSUMED and MQ2008, five official folds: ``python3 run.py python -m experiments.direct``.

The protocol, fixed before its result: features as they come (``scale="none"``), each ranker with its defaults for the
measure that stands beside its name, all choices (alphas, rounds) made on the validation part by that measure, the
test part of every fold scored once, all test queries together, by the conventions of the official LETOR evaluator.
Reads the folder that RANKWISE_DATA names; writes docs/direct_results.json and the tables of docs/direct.md. Names of
rankers after the module choose some of them; the others keep their lines.
"""

import gzip
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise.evaluation.comparison.selection import select
from rankwise.evaluation.statistics.multiple_testing import significance
from rankwise.rankers.smooth.smoothrank import RIDGE_ALPHAS

PAGE, RESULTS = DOCS / "direct.md", DOCS / "direct_results.json"
MEASURES = {"ohsumed": ["nDCG@10", "AP"], "mq2008": ["nDCG@5", "AP"]}
BASELINE = "RidgeRanker"

# as published, (NDCG@10, MAP) on OHSUMED and (NDCG@5, MAP) on MQ2008; None where nobody says
PUBLISHED: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "ohsumed": {
        "RankSVM": (0.4504, 0.4446),
        "RankSVM, squared": (0.4504, 0.4446),
        "AdaRank": (0.4496, 0.4498),
        "AdaRank, AP": (0.4429, 0.4487),
        "ListNet": (0.4410, 0.4457),
        "RidgeRanker": (0.4436, 0.4439),
        "FRank": (0.4433, 0.4439),
        "SVMMap": (0.4319, 0.4453),
        "RankBoost": (0.4302, 0.4411),
        "SmoothRank": (0.4568, 0.4468),
        "PermuRank": (None, 0.4495),
    },
    "mq2008": {
        "RankSVM": (0.4695, 0.4696),
        "AdaRank": (0.4821, 0.4824),
        "AdaRank, AP": (0.4794, 0.4764),
        "ListNet": (0.4747, 0.4775),
        "RidgeRanker": (0.4773, None),
        "RankBoost": (0.4666, 0.4775),
    },
}


def rankers() -> dict[str, Any]:
    """Each with its defaults or by its paper, features as they come."""
    raw: dict[str, Any] = {"scale": "none"}
    return {
        "RidgeRanker": rw.RidgeRanker("nDCG@10", alpha=RIDGE_ALPHAS, intercept="global", refit="train", **raw),
        "RankSVM": rw.RankSVM("nDCG@10", per_pair=False, **raw),
        "RankSVM, squared": rw.RankSVM("nDCG@10", loss="squared", per_pair=False, **raw),
        "RankSVM, mean over pairs": rw.RankSVM("nDCG@10", **raw),
        "ListNet": rw.ListNet("nDCG@10", solver="lbfgs", **raw),
        "RankBoost": rw.RankBoost("nDCG@10"),
        "FRank": rw.FRank("nDCG@10"),
        "AdaRank": rw.AdaRank("nDCG@10", **raw),
        "AdaRank, AP": rw.AdaRank("AP", **raw),
        "AdaRank, AP, as printed": rw.AdaRank("AP", repeats=True, **raw),
        "SVMMap": rw.SVMMap("AP", **raw),
        "PermuRank": rw.PermuRank("AP", **raw),
        "PermuRank, one round": rw.PermuRank("AP", rounds=1, **raw),
        "StructuredNDCG": rw.StructuredNDCG("nDCG@10", **raw),
        "SLAMRanker": rw.SLAMRanker("nDCG@10", **raw),
        "MaxPairRanker": rw.MaxPairRanker("nDCG@10", **raw),
        "TwoStage": rw.TwoStage("AP", **raw),
        "SmoothRank": rw.SmoothRank("nDCG@10", protocol="paper", **raw),
    }


def run(data: Path, name: str, ranker: Any) -> dict[str, Any]:
    """One ranker on all folds of one set: means, per-query values for the paired tests, and seconds a fold."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a ranker that learns nothing at some alpha says so; the table shows it
        found = select({name: ranker}, rw.io.read_folds(data))
    result = found.evaluate(MEASURES[data.name], like="letor")[name]
    standard = found.evaluate(["nDCG@10", "AP"], empty="zero")[name]
    return {
        "mean": dict(result.mean),
        "standard": dict(standard.mean),
        "interval": {title: list(ends) for title, ends in result.interval(0.95).items()},
        "values": {title: result[title].round(6).tolist() for title in result.titles},
        "validation": found.chosen["validation"].tolist(),
        "seconds": (time.perf_counter() - began) / 5,
    }


def svm_rank(data: Path) -> dict[str, Any]:
    """RankSVM with an alpha of the default grid beside SVM-rank's own scores of the test parts, fold by fold.

    SVM-rank's C is not told, so the alpha is that of the nearest scores: this asks whether the two are the same
    ranker, and no figure of the other tables comes from it.
    """
    folds, alphas, ours, theirs = [], [], [], []
    for number, fold in enumerate(rw.io.read_folds(data / "ohsumed"), start=1):
        with gzip.open(data / "letor-evaluator" / f"ohsumed-Fold{number}-test.scores.gz", "rt") as file:
            stored = np.loadtxt(file)
        tried = {}
        for alpha in (1.0, 10.0, 100.0, 1000.0):
            model = rw.RankSVM(per_pair=False, alpha=alpha, tolerance=1e-4, scale="none").fit(fold.train)
            tried[alpha] = model.predict(fold.test)
        near = {alpha: float(np.corrcoef(scores, stored)[0, 1]) for alpha, scores in tried.items()}
        best = max(near, key=near.__getitem__)
        folds.append(fold.test)
        alphas.append({"alpha": best, "correlation": near[best]})
        ours.append(tried[best])
        theirs.append(stored)
    test = rw.Queries.concat(folds)
    means = {
        name: dict(rw.evaluate(test, np.concatenate(scores), MEASURES["ohsumed"], like="letor").mean)
        for name, scores in (("rankwise", ours), ("SVM-rank", theirs))
    }
    return {"folds": alphas, "mean": means}


def svm_rank_table(found: dict[str, Any]) -> str:
    """Alphas and correlations of the folds, then both means."""
    rows = [
        [f"fold {number}", f"{one['alpha']:g}", f"{one['correlation']:.4f}", "", ""]
        for number, one in enumerate(found["folds"], start=1)
    ]
    for name, mean in found["mean"].items():
        rows.append([f"all, {name}", "", "", f"{mean['nDCG@10']:.4f}", f"{mean['AP']:.4f}"])
    return markdown_table(["test part", "lambda", "correlation of the scores", "NDCG@10", "MAP"], rows)


def table(found: dict[str, Any], data: str) -> str:
    """Ours beside the published, and the paired test against ridge regression."""
    first, second = MEASURES[data]
    rows = []
    for name, line in found.items():
        published = PUBLISHED[data].get(name, (None, None))
        cells = [name]
        for title, other in zip((first, second), published, strict=True):
            own = line["mean"][title]
            cells += [f"{own:.4f}", "" if other is None else f"{other:.4f} ({own - other:+.3f})"]
        low, high = line["interval"][first]
        seconds = f"{line['seconds']:.1f}" if line["seconds"] < 10 else f"{line['seconds']:.0f}"
        cells += [f"{low:.3f} to {high:.3f}", line["test"], seconds]
        rows.append(cells)
    shown = first.replace("nDCG", "NDCG")
    head = [data.upper(), shown, "published", "MAP", "published", f"95% of {shown}", "against ridge", "seconds"]
    return markdown_table(head, rows)


def against_ridge(found: dict[str, Any], title: str) -> None:
    """The difference of each to ridge regression, with p of the randomization test (no correction)."""
    for name, line in found.items():
        if name == BASELINE:
            line["test"] = ""
            continue
        pair = {one: {title: found[one]["values"][title]} for one in (BASELINE, name)}
        (test,) = significance(pair, baseline=BASELINE)
        line["test"] = f"{test['difference']:+.3f} (p = {test['p']:.2f})"


def main(wanted: list[str]) -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    known = rankers()
    empty: dict[str, Any] = {folder: {} for folder in MEASURES}
    results = json.loads(RESULTS.read_text("utf-8")) if wanted and RESULTS.exists() else empty
    for name in wanted or known:
        for folder in MEASURES:
            results[folder][name] = run(Path(data, folder), name, known[name])
            line = results[folder][name]
            print(folder, name, line["mean"], f"{line['seconds']:.1f} s a fold", flush=True)
    for folder, (title, _) in MEASURES.items():
        results[folder] = {name: results[folder][name] for name in known if name in results[folder]}
        against_ridge(results[folder], title)
        write_block(PAGE, folder, table(results[folder], folder))
    if not wanted or "RankSVM" in wanted:
        results["svm_rank"] = svm_rank(Path(data))
        write_block(PAGE, "svm_rank", svm_rank_table(results["svm_rank"]))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(results) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
