"""NDCG along SmoothRank's annealing, mean of five folds: ``python3 run.py python -m experiments.annealing``.

Figure 2 of the paper on SmoothRank. The protocol is that of experiments/smoothrank.py at k = 50: features as they come,
lambda and the alpha of the start chosen on the validation part, sigma from 2^6 to 2^-6 by halves; here the weights
at the end of every stage are measured, on the training part and on the test part of each of the five official folds of
OHSUMED. The paper does not say which NDCG it draws: here nDCG@50, which is trained for. What the stages gain on
the 106 test queries over the regression that they start from comes with 95% intervals, paired by query. Beside it, the
same objective without annealing: from the same start at once with sigma = 2^-6, and as many steps as all stages have.

Reads the folder that RANKWISE_DATA names; writes docs/annealing.json and docs/figures/reproduction_annealing.png;
``--redraw`` draws what is there. About two minutes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import smoothrank
from experiments.one_figure import measure_and_draw
from experiments.pages import DOCS
from rankwise._figures import COLORS, INK, house_style, new_figure
from rankwise._progress import track
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.intervals import interval
from rankwise.io.folds import read_folds
from rankwise.queries.folds import Fold
from rankwise.rankers.smooth.smoothrank import SmoothRank

NUMBERS, FIGURE = DOCS / "annealing.json", DOCS / "figures" / "reproduction_annealing.png"
K = 50
MEASURE = f"nDCG@{K}"


def stages(fold: Fold) -> dict[str, Any]:
    """One fold: sigma, the measures of the training part, and the value of every test query; the start is the first
    of the weights, and the last are those without annealing.
    """
    model = smoothrank.rankers((K,))[f"SmoothRank k={K}"].fit(fold.train, validation=fold.validation)
    history = model.history_
    at_once = SmoothRank(
        MEASURE,
        alpha=model.alpha_,
        start=model.start_,
        sigmas=history["sigma"][-1:],
        steps=len(history) * model.steps,
        scale="none",
        protocol="paper",
    ).fit(fold.train)
    weights = [model.start_, *history.coefs, at_once.coef_]
    return {
        "sigma": history["sigma"].tolist(),
        "alpha": model.alpha_,
        "smoothed": history["smoothed"].tolist(),
        "objective": [float(fit.history_["objective"][-1]) for fit in (model, at_once)],
        "train": [evaluate(fold.train, fold.train.X @ w, MEASURE).mean[MEASURE] for w in weights],
        "test": [evaluate(fold.test, fold.test.X @ w, MEASURE, empty="zero")[MEASURE] for w in weights],
    }


def collect(folder: Path) -> dict[str, Any]:
    """Means over folds for the training parts, over all test queries for the test parts."""
    folds = [stages(fold) for fold in track(list(read_folds(folder)), "folds")]
    train = np.mean([fold["train"] for fold in folds], axis=0)
    test = np.concatenate([np.array(fold["test"]) for fold in folds], axis=1)
    gains = test - test[0]
    less = test[-1] - test[-2]
    return {
        "sigma": folds[0]["sigma"],
        "alpha": [fold["alpha"] for fold in folds],
        "queries": test.shape[1],
        "smoothed": np.mean([fold["smoothed"] for fold in folds], axis=0).tolist(),
        "train": train[:-1].tolist(),
        "test": test.mean(axis=1)[:-1].tolist(),
        "gain": gains.mean(axis=1)[1:-1].tolist(),
        "interval": [list(interval(gain, 0.95)) for gain in gains[1:-1]],
        "at once": {
            "train": float(train[-1]),
            "test": float(test[-1].mean()),
            "less annealed": float(less.mean()),
            "interval": list(interval(less, 0.95)),
            "objectives": [fold["objective"] for fold in folds],  # annealed, at once; smaller is better
        },
    }


def draw(numbers: dict[str, Any]) -> Any:
    sigma, (low, high) = numbers["sigma"], np.array(numbers["interval"]).T
    with house_style():
        figure = new_figure(8.0, 3.2)
        left, right = figure.subplots(1, 2)
        left.plot(sigma, numbers["smoothed"], color=INK, linestyle=":", label="train, smoothed")
        for part, color in (("train", COLORS[0]), ("test", COLORS[2])):
            left.plot(sigma, numbers[part][1:], color=color, marker="o", label=part)
            left.axhline(numbers[part][0], color=color, linewidth=0.8, linestyle=(0, (4, 3)))
            left.plot(sigma[-1], numbers["at once"][part], "x", color=color, markersize=6)
        left.plot([], [], color=INK, linewidth=0.8, linestyle=(0, (4, 3)), label="the start")
        left.plot([], [], "x", color=INK, markersize=6, linestyle="none", label="without annealing")
        left.set_title("NDCG@50, mean of five folds")
        left.legend(loc="lower right")
        right.fill_between(sigma, low, high, color=COLORS[2], alpha=0.18, linewidth=0)
        right.plot(sigma, numbers["gain"], color=COLORS[2], marker="o", label="gain, with 95% interval")
        right.axhline(0, color=INK, linewidth=0.8)
        right.set_title("test NDCG@50 less that of the start")
        right.legend(loc="upper left")
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.invert_xaxis()
            axes.set_xlabel("sigma, from coarse to fine")
    return figure


def main(arguments: Sequence[str]) -> int:
    return measure_and_draw(arguments, collect, draw, NUMBERS, FIGURE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
