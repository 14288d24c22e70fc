"""SmoothRank on OHSUMED and MQ2008, five official folds: ``python3 run.py python -m experiments.smoothrank``.

The protocol, fixed before its result: features as they are (``scale="none"``), training on nDCG@k (k = 50, and 1, 5, 10
for the paper's Table 3), start from balanced ridge regression on gains, ten lambdas from 10^-3 to 1 and the alpha of
the start chosen on the validation part by nDCG@k, sigma from 2^6 to 2^-6 by halves, conjugate gradients, at most 50
steps a stage; the test part of every fold is scored once. Reads the folder that RANKWISE_DATA names; writes
docs/smoothrank_results.json, the tables of docs/direct.md and its figures. ``... -m experiments.smoothrank grid``
repeats the experiment on halves of the validation parts of OHSUMED that narrowed the paper's grid of 10^-6 to 10^3, and
the protocol with that grid.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.landscape import landscape
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import save_png
from rankwise._files import writing
from rankwise.evaluation.comparison.selection import Selection, select
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.multiple_testing import significance
from rankwise.io.folds import read_folds
from rankwise.queries.folds import Fold
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.smooth.smoothrank import RIDGE_ALPHAS, SmoothRank

PAGE, RESULTS = DOCS / "direct.md", DOCS / "smoothrank_results.json"
CUTS = (1, 5, 10, 50)
ALPHAS = tuple(10.0 ** (step / 3) for step in range(-9, 1))
PAPER_POWERS = range(-6, 4)  # lambda of the paper's grid, as powers of 10
# NDCG@1 / @5 / @10 for each training cut-off, and NDCG@10 and MAP for k = 50, as the paper prints them
PAPER_TABLE_3 = {
    1: (0.5365, 0.4622, 0.4369),
    5: (0.5397, 0.4691, 0.4470),
    10: (0.5834, 0.4723, 0.4496),
    50: (0.5608, 0.4750, 0.4570),
}
# ridge regression as the paper's authors know it, on the training part alone
ORDINARY: dict[str, Any] = {"intercept": "global", "refit": "train", "scale": "none"}
PAPER = {"SmoothRank": (0.4568, 0.4468), "RidgeRanker": (0.4436, 0.4439)}


def rankers(cuts: tuple[int, ...]) -> dict[str, Any]:
    """The rankers of the protocol."""
    found: dict[str, Any] = {"RidgeRanker": RidgeRanker("nDCG@50", alpha=RIDGE_ALPHAS, **ORDINARY)}
    for k in cuts:
        found[f"SmoothRank k={k}"] = SmoothRank(f"nDCG@{k}", alpha=ALPHAS, protocol="paper", scale="none")
    return found


def run(folder: Path, cuts: tuple[int, ...]) -> tuple[Selection, float]:
    """All folds, and the seconds that they took."""
    began = time.perf_counter()
    found = select(rankers(cuts), read_folds(folder), verbose=True)
    return found, time.perf_counter() - began


def numbers(found: Selection, measures: list[str], **conventions: Any) -> dict[str, Any]:
    """Means with 95% intervals, and the paired test of SmoothRank at k = 50 against ridge regression."""
    results = found.evaluate(measures, **conventions)
    means = {name: {title: result.mean[title] for title in result.titles} for name, result in results.items()}
    intervals = {name: dict(result.interval(0.95)) for name, result in results.items()}
    pair = {name: results[name] for name in ("RidgeRanker", "SmoothRank k=50")}
    return {"mean": means, "interval": intervals, "test": list(significance(pair, baseline="RidgeRanker"))}


def collect(data: Path) -> dict[str, Any]:
    """Everything that the page shows, as plain numbers."""
    ohsumed, seconds = run(data / "ohsumed", CUTS)
    mq2008, _ = run(data / "mq2008", (50,))
    names = (name for name in ohsumed.scores if name != "RidgeRanker")
    return {
        "ohsumed": numbers(ohsumed, ["nDCG@1", "nDCG@5", "nDCG@10", "AP"], like="letor"),
        "mq2008": numbers(mq2008, ["nDCG@10", "AP"], empty="zero"),
        "chosen": [{**line, "settings": dict(line["settings"])} for line in ohsumed.chosen],
        "seconds": seconds,
        "rankers": list(names),
    }


def tables(found: dict[str, Any]) -> dict[str, str]:
    """The blocks of the page."""
    ours, tests = found["ohsumed"]["mean"], {line["measure"]: line for line in found["ohsumed"]["test"]}
    interval = found["ohsumed"]["interval"]["SmoothRank k=50"]
    rows = []
    for title, place in (("nDCG@10", 0), ("AP", 1)):
        low, high = interval[title]
        test, paper = tests[title], PAPER["SmoothRank"][place]
        rows.append(
            [
                "NDCG@10" if title == "nDCG@10" else "MAP",
                f"{ours['SmoothRank k=50'][title]:.4f}",
                f"{low:.3f} to {high:.3f}",
                f"{paper:.4f}, {'inside' if low <= paper <= high else 'outside'}",
                f"{ours['RidgeRanker'][title]:.4f}",
                f"{PAPER['RidgeRanker'][place]:.4f}",
                f"{test['difference']:+.4f} (p = {test['p']:.2f})",
            ]
        )
    head = ["OHSUMED", "SmoothRank", "95% interval", "the paper's", "RidgeRanker", "the paper's", "difference"]
    third = [
        [str(k)]
        + [f"{ours[f'SmoothRank k={k}'][title]:.4f}" for title in ("nDCG@1", "nDCG@5", "nDCG@10")]
        + [f"{value:.4f}" for value in PAPER_TABLE_3[k]]
        for k in CUTS
    ]
    head3 = ["trained at k", "NDCG@1", "NDCG@5", "NDCG@10", "paper @1", "paper @5", "paper @10"]
    mean = found["mq2008"]["mean"]
    fourth = [[name, f"{mean[name]['nDCG@10']:.4f}", f"{mean[name]['AP']:.4f}"] for name in mean]
    return {
        "smoothrank ohsumed": markdown_table(head, rows),
        "table3": markdown_table(head3, third),
        "smoothrank mq2008": markdown_table(["MQ2008", "NDCG@10", "MAP"], fourth),
    }


def figures(data: Path) -> None:
    """The annealing of the first fold, and the landscape of its objective."""
    fold = next(read_folds(data / "ohsumed"))
    model = rankers((50,))["SmoothRank k=50"].fit(fold.train, validation=fold.validation)
    save_png(model.history_.with_test(fold.test).plot(), DOCS / "figures" / "smoothrank_annealing.png")
    save_png(landscape(model, fold.train).plot(), DOCS / "figures" / "smoothrank_landscape.png")


def choices_on_halves(data: Path) -> dict[str, float]:
    """What a lambda chosen on one half of a validation part is worth on the other: all folds, six ways to halve them.

    Grids of lambda from the paper's to a single one. Only training and validation parts are read; but the validation
    parts of the five folds together hold every query, so that the grid is not quite innocent of the test parts.
    """
    grids = {"-6 to 3": PAPER_POWERS, "-4 to 2": range(-4, 3), "-3 to 0": range(-3, 1)} | {
        str(p): [p] for p in (-3, -1, 1)
    }
    worth: dict[str, list[float]] = {name: [] for name in ("ridge", *grids)}
    for fold in read_folds(data / "ohsumed"):
        values: dict[tuple[float, int | None], Any] = {}

        def value(alpha: float, power: int | None, fold: Fold = fold, values: dict[Any, Any] = values) -> Any:
            """nDCG@50 of every validation query."""
            if (alpha, power) not in values:
                start = RidgeRanker("nDCG@50", alpha=alpha, **ORDINARY).fit(fold.train)
                model = start
                if power is not None:
                    sigmas = [2.0**step for step in range(6, -7, -1)]
                    given: dict[str, Any] = {"start": start.coef_, "sigmas": sigmas, "scale": "none"}
                    model = SmoothRank(alpha=10.0**power, protocol="paper", **given).fit(fold.train)
                result = evaluate(fold.validation, model.predict(fold.validation), "nDCG@50")
                values[alpha, power] = result["nDCG@50"]
            return values[alpha, power]

        for seed in range(6):
            order = np.random.default_rng(seed).permutation(len(fold.validation))
            for chosen_by, judged_by in (order[::2], order[1::2]), (order[1::2], order[::2]):
                alpha = max(RIDGE_ALPHAS, key=lambda one: np.nanmean(value(one, None)[chosen_by]))
                worth["ridge"].append(float(np.nanmean(value(alpha, None)[judged_by])))
                for name, grid in grids.items():
                    best = max(grid, key=lambda power: np.nanmean(value(alpha, power)[chosen_by]))
                    worth[name].append(float(np.nanmean(value(alpha, best)[judged_by])))
    return {name: float(np.mean(found)) for name, found in worth.items()}


def grid_table(worth: dict[str, float]) -> str:
    """What each grid was worth."""
    rows = [[name, f"{mean:.4f}"] for name, mean in worth.items()]
    return markdown_table(["candidate powers of 10", "nDCG@50 on the other half"], rows)


def with_the_papers_grid(data: Path) -> dict[str, float]:
    """The means of the protocol's first version, which chose from the grid of the paper."""
    alphas = tuple(10.0**power for power in PAPER_POWERS)
    ranker = SmoothRank("nDCG@50", alpha=alphas, protocol="paper", scale="none")
    found = select({"SmoothRank": ranker}, read_folds(data / "ohsumed"), verbose=True)
    return dict(found.evaluate(["nDCG@10", "AP"], like="letor")["SmoothRank"].mean)


def main(wanted: list[str]) -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    kept = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if wanted == ["grid"]:
        halves = choices_on_halves(Path(data))
        found = kept | {"grid": {"halves": halves, "protocol with the paper's": with_the_papers_grid(Path(data))}}
    else:
        found = collect(Path(data)) | {"grid": kept.get("grid", {})}
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if wanted == ["grid"]:
        write_block(PAGE, "grid", grid_table(found["grid"]["halves"]))
        print(json.dumps(found["grid"], indent=1))
        return 0
    for name, body in tables(found).items():
        write_block(PAGE, name, body)
    figures(Path(data))
    print(json.dumps(found["ohsumed"]["mean"], indent=1), json.dumps(found["mq2008"]["mean"], indent=1))
    print(f"OHSUMED, {len(CUTS)} cut-offs: {found['seconds']:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
