"""What the losses look like as one document moves: ``python3 run.py python -m experiments.loss_shapes``.

Writes docs/figures/losses_shapes.png. Four documents, three of them in the right order with scores 1, 0 and -1; the
fourth is the best one, and everything is drawn as a function of its score x. Above 1 the whole order is right.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.pages import DOCS
from rankwise._figures import COLORS, INK, PAPER, house_style, new_figure, save_png
from rankwise.losses import (
    SLAM,
    ListNet,
    MaxPair,
    NDCGHinge,
    PairHinge,
    SmoothAP,
    SmoothDCG1,
    SmoothNDCG,
    SoftRank,
    SoftRankNDCG,
    SVMMapHinge,
)
from rankwise.measures import AP, NDCG

FIGURE = DOCS / "figures" / "losses_shapes.png"
LABELS = (3, 1, 0, 0)
OTHERS = (1.0, 0.0, -1.0)  # the scores of all but the first
SHADE = "#dcd9d0"
GRID = np.linspace(-2.5, 3.5, 601)


@dataclass(frozen=True)
class Curve:
    """A loss, its name in the figure, and the place of the name: at which x, how many points off the curve."""

    loss: Any
    name: str
    x: float
    off: tuple[float, float] = (4, 2)
    align: str = "left"


@dataclass(frozen=True)
class Panel:
    """A measure and losses that have to do with it, up to the loss ``top``."""

    title: str
    measure: Any
    top: float
    curves: tuple[Curve, ...]


PANELS = (
    Panel(
        "Convex bounds of 1 - NDCG",
        NDCG(),
        2.5,
        (
            Curve(MaxPair(), "MaxPair", 0.3),
            Curve(SLAM(weights="ndcg_003"), "SLAM, ndcg_003", -0.5, (-5, -4), "right"),
            Curve(SLAM(), "SLAM", -0.9),
            Curve(NDCGHinge(normalized=True), "NDCGHinge", 3.4, (0, 4), "right"),
        ),
    ),
    Panel(
        "SmoothNDCG: 1 - NDCG, softer and softer",
        NDCG(),
        0.6,
        (
            Curve(SmoothNDCG(sigma=2.0**-6), "sigma = 1/64", -1.0, (3, 4)),
            Curve(SmoothNDCG(sigma=0.25), "1/4", 1.5),
            Curve(SmoothNDCG(), "1", 1.75),
            Curve(SmoothNDCG(sigma=4.0), "sigma = 4", 2.4),
        ),
    ),
    Panel(
        "1 - AP: two convex bounds, one smoothed",
        AP(),
        1.5,
        (
            Curve(SVMMapHinge(), "SVMMapHinge", -1.35),
            Curve(SLAM(weights="ap_sym"), "SLAM, ap_sym", 0.3),
            Curve(SmoothAP(sigma=0.25), "SmoothAP(sigma=1/4)", -2.4, (0, 4)),
        ),
    ),
    Panel(
        "Other aims: none bounds 1 - NDCG",
        NDCG(),
        1.5,
        (
            Curve(ListNet(), "ListNet", -0.4),
            Curve(PairHinge(), "PairHinge", -1.35, (-5, -3), "right"),
            Curve(SmoothDCG1(sigma=0.5), "SmoothDCG1(sigma=1/2)", 0.98),
            Curve(SoftRankNDCG(sigma=0.5), "SoftRankNDCG(sigma=1/2)", -2.4, (0, 4)),
            Curve(SoftRank(sigma=0.5), "SoftRank(sigma=1/2)", 0.2, (-4, -11), "right"),
        ),
    ),
)


def along(value: Callable[[list[float], tuple[int, ...]], float]) -> NDArray[np.float64]:
    """``value(scores, labels)`` for every x."""
    return np.array([value([x, *OTHERS], LABELS) for x in GRID])


def draw_panel(axes: Any, panel: Panel) -> None:
    from matplotlib.patheffects import withStroke

    missed = along(lambda s, y: 1 - panel.measure(s, y, ties="pessimistic"))
    axes.fill_between(GRID, missed, color=SHADE, linewidth=0)
    axes.plot(GRID, missed, color=INK, linewidth=1.0)
    for curve, color in zip(panel.curves, COLORS, strict=False):
        values = along(lambda s, y, loss=curve.loss: loss(s, y)[0])  # type: ignore[misc]
        axes.plot(GRID, values, color=color)
        place = {"xytext": curve.off, "textcoords": "offset points", "ha": curve.align, "in_layout": False}
        halo = [withStroke(linewidth=2.5, foreground=PAPER)]
        axes.annotate(curve.name, (curve.x, np.interp(curve.x, GRID, values)), color=color, path_effects=halo, **place)
    axes.set(title=panel.title, xlim=(GRID[0], GRID[-1]), ylim=(-0.03 * panel.top, panel.top))


def draw() -> Any:
    with house_style():
        figure = new_figure(8.0, 6.2)
        every = figure.subplots(2, 2, sharex=True)
        for axes, panel in zip(every.flat, PANELS, strict=True):
            draw_panel(axes, panel)
        for axes in every[-1]:
            axes.set_xlabel("score x of the best document; the others have 1, 0, -1")
        for axes in every[:, 0]:
            axes.set_ylabel("loss (gray: that of the measure)")
    return figure


def main() -> int:
    save_png(draw(), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
