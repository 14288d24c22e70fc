"""AdaRank and PermuRank for MAP, round by round: ``python3 run.py python -m experiments.boosting_rounds``.

Figure 11 of the paper on direct optimization, on the first official fold of OHSUMED, features as they come. AdaRank
stands twice: as it is by default here (every round a new feature), and as printed (a feature may be taken again), each
with what Theorem 4 says that its training MAP is at least. PermuRank runs 100 rounds of its printed form (all pairs,
sum of hinges) and of the form that is a bound (relevant against irrelevant, largest hinge), both with the alpha that
the validation part chooses in 50 rounds.

Reads the folder that RANKWISE_DATA names; writes docs/boosting_rounds.json and docs/figures/reproduction_rounds.png;
``--redraw`` draws what is there. About two minutes, nearly all of them PermuRank's.
"""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.one_figure import measure_and_draw
from experiments.pages import DOCS
from rankwise._figures import COLORS, house_style, new_figure
from rankwise._progress import track

NUMBERS, FIGURE = DOCS / "boosting_rounds.json", DOCS / "figures" / "reproduction_rounds.png"
ROUNDS = 100
FEW = 10  # rounds that are drawn with a mark each
DASHED = (0, (4, 1.4))
RAW: dict[str, Any] = {"scale": "none"}
ADARANK: dict[str, dict[str, Any]] = {
    "AdaRank": {},
    "AdaRank, as printed": {"repeats": True},
}
PERMURANK: dict[str, dict[str, Any]] = {
    "PermuRank": {},
    "PermuRank, relevant pairs, max": {"map": "relevant", "hinge": "max"},
}


def adarank(fold: rw.io.Fold, settings: dict[str, Any]) -> dict[str, Any]:
    """Training and validation MAP, Theorem 4's lower bounds and the number of features used, round by round."""
    model = rw.AdaRank("AP", rounds=ROUNDS, **settings, **RAW).fit(fold.train, validation=fold.validation)
    history = model.history_
    taken = history["feature"].tolist()
    return {
        "train": history["train"].tolist(),
        "validation": history["validation"].tolist(),
        "printed": history["printed"].tolist(),
        "certificate": history["certificate"].tolist(),
        "features": [len(set(taken[: place + 1])) for place in range(len(taken))],
    }


def permurank(fold: rw.io.Fold, settings: dict[str, Any]) -> dict[str, Any]:
    """The same MAPs, mean and largest size of the working sets, and whether the loss is a bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an alpha at which nothing is learned warns
        chosen = rw.PermuRank("AP", **settings, **RAW).fit(fold.train, validation=fold.validation)
    model = rw.PermuRank("AP", alpha=chosen.alpha_, rounds=ROUNDS, stop="last", **settings, **RAW)
    history = model.fit(fold.train, validation=fold.validation).history_
    return {
        "alpha": chosen.alpha_,
        "train": history["train"].tolist(),
        "validation": history["validation"].tolist(),
        "imperfect": history["imperfect"].tolist(),
        "largest": history["largest"].tolist(),
        "loss": history["loss"].tolist(),
        "bound": history["bound"].tolist(),
        "converged": bool(model.converged_),
    }


def collect(folder: Path) -> dict[str, Any]:
    fold = next(rw.io.read_folds(folder))
    work = [(adarank, *each) for each in ADARANK.items()] + [(permurank, *each) for each in PERMURANK.items()]
    return {name: learn(fold, settings) for learn, name, settings in track(work, "rankers")}


def draw(numbers: dict[str, Any]) -> Any:
    """AdaRank on both parts, rounds on a logarithmic axis; PermuRank, which swings, on the training part alone."""
    with house_style():
        figure = new_figure(8.0, 3.2)
        left, right = figure.subplots(1, 2)
        for axes, names in ((left, ADARANK), (right, PERMURANK)):
            for name, color in zip(names, COLORS, strict=False):
                found = numbers[name]
                rounds = np.arange(1, len(found["train"]) + 1)
                look: dict[str, Any] = {"color": color, "marker": "o" if len(rounds) < FEW else ""}
                axes.plot(rounds, found["train"], linewidth=1.4 if axes is left else 1.0, label=name, **look)
                if axes is left:
                    axes.plot(rounds, found["validation"], linestyle=DASHED, **look)
        left.plot([], [], color=COLORS[-1], label="training part")
        left.plot([], [], color=COLORS[-1], linestyle=DASHED, label="validation part")
        left.set(title="AdaRank, MAP", xlabel="round", xscale="log", ylim=(0.43, 0.51))
        left.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        left.minorticks_off()
        right.set(title="PermuRank, MAP of the training part", xlabel="round", ylim=(0.24, 0.58))
        left.legend(loc="upper left", ncols=2)
        right.legend(loc="upper left")
    return figure


def main(arguments: Sequence[str]) -> int:
    return measure_and_draw(arguments, collect, draw, NUMBERS, FIGURE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
