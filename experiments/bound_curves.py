"""Curves for the pages on bounds: ``python3 run.py python -m experiments.bound_curves``.

- docs/figures/printed_lambdas.png: what regularized minimization may cost with the lambdas that the papers print;
- docs/figures/training_bounds.png: AdaRank's certificate in two forms, and the error of smoothing against sigma;
- docs/figures/confidence_sequence.png: intervals that hold at all times, over one stream.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.pages import DOCS
from experiments.printed_bounds import printed_lambda_2014, printed_lambda_2015
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png
from rankwise.guarantees.bounds.batch import best_lambda, rerm_best, rerm_in_ball, rerm_in_ball_lambda
from rankwise.guarantees.bounds.training import smoothing_error
from rankwise.guarantees.holdout.intervals import NAMES, mean_interval
from rankwise.guarantees.holdout.sequences import confidence_sequence
from rankwise.losses.smooth_ndcg import SmoothNDCG
from rankwise.measures._base import parse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = DOCS / "figures"
CHANCES = np.geomspace(1e-5, 1, 4_001)
# the list of five documents that the tests of every loss use, without its tie
SCORES, LABELS = (0.3, 0.1, 0.9, 0.5, -0.2), (2.0, 0.0, 1.0, 0.0, 3.0)
STREAM = 1_000


def worst_excess(lambda_: float, W: float) -> float:
    """The largest expected excess over coins: the loss is -z w, z is 1 with chance p, and w is p/lambda on average."""
    return float((CHANCES * (W - CHANCES / lambda_)).max())


def draw_lambdas() -> None:
    """The excess that coins reach against n, beside what the theorem promises, for two sizes of the ball."""
    sizes = np.unique(np.geomspace(5, 1e6, 61).astype(int)).tolist()
    with house_style():
        figure = new_figure(8.0, 3.6)
        for panel, W in zip(figure.subplots(1, 2), (1.0, 100.0), strict=True):
            known = [{"G": 1.0, "W": W, "radius": 1.0, "n": n} for n in sizes]
            promised = [rerm_in_ball(**one).value for one in known]
            lambdas = {
                "lambda printed in 2015": [printed_lambda_2015(**one) for one in known],
                "lambda printed in 2014": [printed_lambda_2014(G=1.0, radius=1.0, n=n) for n in sizes],
                "lambda of the proof": [rerm_in_ball_lambda(**one) for one in known],
                "best lambda": [best_lambda(**one) for one in known],
            }
            panel.plot(sizes, promised, color=INK, linestyle="--", label="printed bound")
            panel.plot(sizes, [rerm_best(**one).value for one in known], color=FAINT, linestyle="--", label="our bound")
            for color, (name, each) in zip(COLORS[1:], lambdas.items(), strict=False):
                style = ":" if name == "best lambda" else "-"  # for the first ball it is that of 2014
                panel.plot(sizes, [worst_excess(one, W) for one in each], color=color, linestyle=style, label=name)
            panel.set(xscale="log", yscale="log", xlabel="queries n", title=f"ball of radius {W:g}")
            panel.set_ylim(3e-4 * W, 3 * W)
        figure.axes[0].set_ylabel("excess risk")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save_png(figure, FIGURES / "printed_lambdas.png")


def draw_training() -> None:
    """What AdaRank's rounds certify, and how far smooth NDCG is from NDCG."""
    with house_style():
        figure = new_figure(8.0, 3.2)
        left, right = figure.subplots(1, 2)
        _adarank(left, np.linspace(0, 1, 101))
        _smoothing(right, np.geomspace(1e-3, 10, 81).tolist())
        save_png(figure, FIGURES / "training_bounds.png")


def _adarank(panel: "Axes", reached: np.ndarray) -> None:
    panel.plot(reached, reached, color=COLORS[0], label="-log Pi (here)")
    panel.plot(reached, 1 - np.exp(-reached), color=COLORS[1], label="1 - Pi (as printed)")
    panel.axhline(1 - np.exp(-1), color=FAINT, linewidth=0.8)
    panel.text(0.02, 1 - np.exp(-1) + 0.02, "0.632: the printed form never certifies more", color=FAINT, fontsize=6)
    panel.set(title="AdaRank's certificate", xlabel="-log Pi of the rounds", ylabel="certified mean measure")
    panel.legend(loc="lower right")


def _smoothing(panel: "Axes", sigmas: Sequence[float]) -> None:
    gains = 2.0 ** np.array(LABELS) - 1
    exact = parse("nDCG")(SCORES, LABELS)
    bounds = [smoothing_error(SCORES, gains, sigma=sigma) for sigma in sigmas]
    off = [abs(SmoothNDCG(sigma=sigma).measure_value(SCORES, LABELS) - exact) for sigma in sigmas]
    panel.plot(sigmas, [bound.value for bound in bounds], color=COLORS[0], label="bound")
    panel.plot(sigmas, off, color=COLORS[2], label="smooth NDCG - NDCG, actual")
    panel.axvline(bounds[0].terms["mu"], color=FAINT, linewidth=0.8)
    panel.text(
        bounds[0].terms["mu"] * 1.1, 4e-5, "the smallest squared gap\nbetween two scores", color=FAINT, fontsize=6
    )
    panel.set(
        xscale="log", yscale="log", ylim=(1e-6, 5), title="Smoothing on one query", xlabel="sigma", ylabel="difference"
    )
    panel.legend(loc="lower right")


def draw_sequence() -> None:
    """Both ends at all times by three methods, and the interval for a number of queries that was fixed in advance."""
    values = np.random.default_rng(0).beta(4, 3, STREAM)
    place = np.arange(1, STREAM + 1)
    methods = {"hoeffding": COLORS[1], "empirical bernstein": COLORS[2], "betting": COLORS[0]}
    with house_style():
        figure = new_figure(8.0, 3.4)
        panel = figure.subplots()
        for method, color in methods.items():
            low, high = confidence_sequence(values, method=method)
            panel.plot(place, low, color=color, label=f"{NAMES[method]}, at all times")
            panel.plot(place, high, color=color)
        for n in (10, 20, 50, 100, 200, 500, 1_000):
            once = mean_interval(values[:n])
            label = "Betting, for one n fixed in advance" if n == 10 else None
            panel.plot([n, n], [once.low, once.high], color=INK, linewidth=2.5, alpha=0.6, label=label)
        panel.axhline(4 / 7, color=FAINT, linewidth=0.8)
        panel.set(xscale="log", xlim=(1, STREAM * 1.1), ylim=(0, 1), xlabel="queries so far", ylabel="mean measure")
        panel.legend(loc="lower right", ncols=2)
        save_png(figure, FIGURES / "confidence_sequence.png")


def main() -> int:
    draw_lambdas()
    draw_training()
    draw_sequence()
    return 0


if __name__ == "__main__":
    sys.exit(main())
