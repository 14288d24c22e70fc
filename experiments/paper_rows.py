"""Methods of the papers that no table of theirs has: ``python3 run.py python -m experiments.paper_rows``.

The protocol, fixed before its result. OHSUMED and MQ2008, the five official folds, features as they come. All settings
are chosen on the validation part, the test part of every fold is scored once, all test queries together, by the
conventions of the official LETOR evaluator. 95% intervals are bootstrapped over queries; differences to SmoothRank in
NDCG@10 are tested by Fisher's randomization over queries, corrected by Holm for the other rows of the set.

- SmoothRank, equation (5) and DCG@1 have the protocol of experiments/smoothrank.py: trained and chosen at NDCG@50 (what
  equation (5) and DCG@1 smooth has no cutoff but their own), start at a regression, ten lambdas from 10^-3 to 1,
  thirteen widths. Widths in units of scores are the square roots of the usual ones.
- SoftRank is SoftRank(k=50) with every second of these widths and lambdas of 10^-3, 10^-2, 10^-1 and 1, because a
  step takes far longer.
- ListMLE, the ball, RankSVM and AdaRank choose at NDCG@10 (AdaRank, AP at AP): alphas 10^3 to 10^-6 by LossRanker,
  norms 0.3 to 100 for ListNet's loss over the l2 ball, AdaRank with features that may be selected again, as printed.
- AdaRank on ridge rankers trains each of 30 of them on queries that are resampled by their weights (the best of four
  kinds of rankers on the validation part of OHSUMED's first fold); RankSVM with top weights is IR-SVM's.
- RankCosine is not convex: OnlineRanker, averaged weights, shuffled queries, eta from 1/16 to 16 and 1 or 10 epochs.

Reads the folder that RANKWISE_DATA names; writes docs/paper_rows.json, of which experiments/reproduction.py makes a
table. Names of rows after the module run these alone, and the others keep their lines: a new row is one entry of
:func:`rankers`. About ten minutes of one core.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments import direct, smoothrank
from experiments.pages import DOCS, markdown_table
from rankwise import losses
from rankwise._files import writing
from rankwise.evaluation.comparison.selection import select
from rankwise.evaluation.statistics.multiple_testing import significance

NUMBERS = DOCS / "paper_rows.json"
SETS = ("ohsumed", "mq2008")
MEASURES = ["nDCG@10", "AP"]
COMPARED, FIRST = "nDCG@10", "SmoothRank"
ANNEALED: dict[str, Any] = {"protocol": "paper", "scale": "none"}
EVERY_SECOND = tuple(2.0**power for power in range(3, -4, -1))  # in units of scores
GRIDS = {"RankCosine": {"eta": (1 / 16, 1 / 4, 1.0, 4.0, 16.0), "epochs": (1, 10)}}


def rankers() -> dict[str, Any]:
    """Every row; SmoothRank is the one that the others are compared with."""
    alphas, raw = smoothrank.ALPHAS, {"scale": "none"}
    coarse = {"alpha": (1e-3, 1e-2, 1e-1, 1.0), "sigmas": EVERY_SECOND}
    shuffled: dict[str, Any] = {"shuffle": True, **raw}
    return {
        "SmoothRank": smoothrank.rankers((50,))["SmoothRank k=50"],
        "Equation (5), linear": rw.SmoothRank("nDCG@50", loss="SoftRankNDCG", alpha=alphas, **ANNEALED),
        "SoftRank": rw.SmoothRank("nDCG@50", loss=losses.SoftRank(k=50), **coarse, **ANNEALED),
        "DCG@1, linear": rw.SmoothRank("nDCG@50", loss="SmoothDCG1", alpha=alphas, **ANNEALED),
        "ListMLE": rw.LossRanker(losses.ListMLE(), measure="nDCG@10", **raw),
        "RankCosine": rw.OnlineRanker(losses.RankCosine(), measure="nDCG@10", **shuffled),
        "ListNet's loss, l2 ball": rw.LossRanker(
            losses.ListNet(), measure="nDCG@10", max_norm=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0), **raw
        ),
        "AdaRank, as printed": rw.AdaRank("nDCG@10", repeats=True, **raw),
        "AdaRank, AP, as printed": rw.AdaRank("AP", repeats=True, **raw),
        "AdaRank on ridge rankers": rw.AdaRank(
            "nDCG@10", weak=rw.RidgeRanker("nDCG@10", refit="train"), resample=True, rounds=30, **raw
        ),
        "RankSVM": direct.rankers()["RankSVM"],
        "RankSVM, top weights": direct.rankers()["RankSVM"].set_params(pair_weights="top"),
    }


def measured(folder: Path, name: str, ranker: Any) -> dict[str, Any]:
    """One row on the test queries of all folds: means with 95% intervals, and the value of every query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a ranker that learns nothing at some alpha says so
        grids = {name: GRIDS[name]} if name in GRIDS else None
        found = select({name: ranker}, rw.io.read_folds(folder), grids=grids)
    result = found.evaluate(MEASURES, like="letor")[name]
    return {
        "mean": dict(result.mean),
        "interval": {title: list(ends) for title, ends in result.interval(0.95).items()},
        "values": result[COMPARED].round(6).tolist(),
        "validation": found.chosen["validation"].round(6).tolist(),
    }


def tests(lines: dict[str, Any]) -> dict[str, Any]:
    """Name -> difference to SmoothRank in NDCG@10, its interval and its p-values."""
    each = {name: {COMPARED: line["values"]} for name, line in lines.items()}
    if FIRST not in each or len(each) < 2:
        return {}
    kept = ("difference", "low", "high", "p", "p_corrected")
    return {line["ranker"]: {key: line[key] for key in kept} for line in significance(each, baseline=FIRST)}


def table(numbers: dict[str, Any]) -> str:
    """One row per ranker: both sets, with the test against SmoothRank."""
    rows = []
    for name in numbers[SETS[0]]["rankers"]:
        cells = [name]
        for one in SETS:
            line, test = numbers[one]["rankers"][name], numbers[one]["tests"].get(name)
            low, high = line["interval"][COMPARED]
            cells += [f"{line['mean'][COMPARED]:.4f} ({low:.3f} to {high:.3f})", f"{line['mean']['AP']:.4f}"]
            cells.append(f"{test['difference']:+.3f} (p = {test['p']:.2f}, {test['p_corrected']:.2f})" if test else "")
        rows.append(cells)
    titles = ["ranker"]
    for one in SETS:
        titles += [f"{one.upper()} NDCG@10 (95%)", "MAP", "minus SmoothRank's NDCG@10"]
    return markdown_table(titles, rows)


def main(arguments: Sequence[str]) -> int:
    known, data = rankers(), os.environ.get("RANKWISE_DATA")
    if not data or not set(arguments) <= set(known):
        names = ", ".join(map(repr, known))
        print(
            f"set RANKWISE_DATA to the folder with {' and '.join(SETS)}, and name some of {names}, or none",
            file=sys.stderr,
        )
        return 2
    kept = json.loads(NUMBERS.read_text(encoding="utf-8")) if arguments and NUMBERS.is_file() else {}
    lines: dict[str, dict[str, Any]] = {one: dict(kept.get(one, {}).get("rankers", {})) for one in SETS}
    for name in arguments or known:
        for one in SETS:
            lines[one][name] = measured(Path(data, one), name, known[name])
            print(one, name, flush=True)
    numbers = {}
    for one in SETS:
        ordered = {name: lines[one][name] for name in known if name in lines[one]}
        numbers[one] = {"rankers": ordered, "tests": tests(ordered)}
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
