"""The picture of the architecture page: one query on its way from a file to a certificate.

``python3 run.py python -m experiments.architecture`` draws it into the documentation.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.pages import DOCS
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = DOCS / "figures" / "architecture.png"
WIDTH, HEIGHT = 2.5, 0.86


class Box(NamedTuple):
    """A step: its place, what happens there, the files to open, and the number of its color."""

    x: float
    y: float
    what: str
    where: str
    color: int


BOXES = {
    "file": Box(0.0, 4, "train.txt", "a LETOR file", 7),
    "read": Box(3.1, 4, "read_letor: text to arrays", "io/letor/, _kernels/text/", 0),
    "queries": Box(6.2, 4, "Queries: X, y, start, rows", "queries/queries.py", 0),
    "fit": Box(6.2, 2.6, "fit: checks, fingerprints", "rankers/_base.py, _inputs.py", 1),
    "rounds": Box(3.1, 2.6, "rounds (or a batch solver)", "rankers/online/, solvers/online/", 1),
    "loss": Box(0.0, 2.6, "loss and measure, one query", "losses/, measures/, _kernels/", 2),
    "model": Box(3.1, 1.2, "fitted ranker: coef_, ledger_", "rankers/_record.py freezes it", 1),
    "bounds": Box(0.0, -0.2, "bounds: numbers in, Bound out", "guarantees/bounds/, holdout/", 3),
    "claims": Box(3.1, -0.2, "claims about this fit", "rankers/certificate/", 3),
    "certificate": Box(6.2, -0.2, "Certificate: rows, headline", "guarantees/certificate.py", 3),
    "predict": Box(6.2, 1.2, "predict, rank, evaluate, export", "_kernels/, evaluation/, exports/", 4),
}
ARROWS = [
    ("file", "read"),
    ("read", "queries"),
    ("queries", "fit"),
    ("fit", "rounds"),
    ("rounds", "loss"),
    ("loss", "rounds"),
    ("rounds", "model"),
    ("model", "predict"),
    ("model", "claims"),
    ("bounds", "claims"),
    ("claims", "certificate"),
]


def draw() -> "Figure":
    """Boxes and arrows."""
    figure = new_figure(9.2, 5.0)
    with house_style():
        axes = figure.subplots()
        axes.set(xlim=(-0.15, 6.35 + WIDTH), ylim=(-0.45, 5.05), aspect="auto")
        axes.axis("off")
        for box in BOXES.values():
            _place(axes, box)
        for source, target in ARROWS:
            _point(axes, BOXES[source], BOXES[target])
    return figure


def _place(axes: Any, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch(
        (box.x, box.y),
        WIDTH,
        HEIGHT,
        boxstyle="round,pad=0.02,rounding_size=0.06",
        facecolor="white",
        edgecolor=COLORS[box.color],
        linewidth=1.4,
    )
    axes.add_patch(shape)
    axes.text(box.x + WIDTH / 2, box.y + 0.58, box.what, ha="center", va="center", color=INK, fontsize=9)
    axes.text(
        box.x + WIDTH / 2, box.y + 0.24, box.where, ha="center", va="center", color=COLORS[box.color], fontsize=7.5
    )


def _point(axes: Any, source: Box, target: Box) -> None:
    """An arrow between two boxes that stand beside or above each other; two ways between the same boxes keep apart."""
    if source.y == target.y:
        right = target.x > source.x
        level = source.y + HEIGHT / 2 + (0.16 if right else -0.16 if (source.what, target.what) in _BOTH else 0.0)
        begin = (source.x + (WIDTH + 0.04 if right else -0.04), level)
        end = (target.x + (-0.04 if right else WIDTH + 0.04), level)
    else:
        begin, end = (source.x + WIDTH / 2, source.y - 0.04), (target.x + WIDTH / 2, target.y + HEIGHT + 0.04)
    axes.annotate("", xy=end, xytext=begin, arrowprops={"arrowstyle": "-|>", "color": FAINT, "linewidth": 1.4})


_BOTH = {(BOXES["rounds"].what, BOXES["loss"].what)}


if __name__ == "__main__":
    save_png(draw(), FIGURE)
