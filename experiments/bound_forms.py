"""Type one and type two bounds as functions of one number: ``python3 run.py python -m experiments.bound_forms``.

Figures 1 and 2 of the paper on direct optimization, made by the losses of this package on lists, not by formulas. Left:
one relevant document at position p of a list has E = AP = 1/p, and a type one bound looks at nothing else. Right: one
relevant document and one other, so that the imperfect order has E = 1/2, and 1 - E = 0.5 as in the paper; with scores
x/2 and 0 the perfect order is ahead by F(pi*) - F(pi) = x. Writes docs/bound_forms.json and
docs/figures/reproduction_bound_forms.png.
"""

import json
import sys
from typing import Any

import numpy as np

from experiments.pages import DOCS
from rankwise._figures import COLORS, INK, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise.losses import TypeOne, TypeTwo

NUMBERS, FIGURE = DOCS / "bound_forms.json", DOCS / "figures" / "reproduction_bound_forms.png"
POSITIONS = range(1, 21)
AHEAD = np.linspace(-2, 2, 161)  # 0, where the indicator jumps, is among them
TYPE_ONE = {"exp": "exponential", "logistic": "logistic"}
TYPE_TWO = {
    "exp": "exponential",
    "logistic": "logistic",
    "hinge": "hinge, times 1 - E",
    "additive": "hinge, 1 - E inside",
}


def collect() -> dict[str, Any]:
    """Both figures as plain numbers, the measure's own loss first."""
    scores = -np.arange(len(POSITIONS))
    lists = [np.arange(len(POSITIONS)) == p - 1 for p in POSITIONS]
    one = {form: [TypeOne("AP", form=form)(scores, labels.astype(float)) for labels in lists] for form in TYPE_ONE}
    two = {
        form: [TypeTwo("AP", form=form, map="relevant")([x / 2, 0.0], [1, 0]) for x in AHEAD]
        for form in ("indicator", *TYPE_TWO)
    }
    return {
        "type one": {"measure": [1 / p for p in POSITIONS], "loss": [1 - 1 / p for p in POSITIONS], **one},
        "type two": {"ahead": AHEAD.tolist(), **two},
    }


def draw(numbers: dict[str, Any]) -> Any:
    one, two = numbers["type one"], numbers["type two"]
    with house_style():
        figure = new_figure(8.0, 3.3)
        left, right = figure.subplots(1, 2)
        reached = np.linspace(0, 1, 101)
        curves = {"exp": np.exp(-reached), "logistic": np.log2(1 + np.exp(-reached))}
        left.plot(reached, 1 - reached, color=INK, linewidth=1.0, label="1 - E")
        left.plot(one["measure"], one["loss"], ".", color=INK)
        for (form, name), color in zip(TYPE_ONE.items(), COLORS, strict=False):
            left.plot(reached, curves[form], color=color, label=name)
            left.plot(one["measure"], one[form], "o", color=color)
        left.set(title="type one", xlabel="measure of the ranking, E", xlim=(0, 1.01), ylim=(0, 1.05))
        left.legend(loc="lower left")
        right.step(two["ahead"], two["indicator"], where="pre", color=INK, linewidth=1.0, label="the loss (6)")
        for (form, name), color in zip(TYPE_TWO.items(), COLORS, strict=False):
            right.plot(two["ahead"], two[form], color=color, label=name)
        right.set(title="type two, 1 - E = 0.5", xlabel="F(perfect) - F(imperfect)", ylim=(-0.03, 2.6), xlim=(-2, 2))
        right.legend(loc="upper right")
    return figure


def main() -> int:
    numbers = collect()
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    save_png(draw(numbers), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
