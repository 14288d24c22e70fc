"""The bounds of a loss as a picture: lists in the plane, and beside each what the angle of w does to its bounds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._figures import COLOURS, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankwise.evaluation.bound_angles import AngleBounds

_SHADE = "#dcd9d0"
_ONE, _PAIRS, _RELEVANT = COLOURS[7], COLOURS[1], COLOURS[0]
_LOWEST = 0.1  # a loss of 0 has no place on a logarithmic scale
_TICK = 45.0


def draw_bounds(found: Mapping[str, "AngleBounds"]) -> "Figure":
    """A row for each list, by title: its documents, and the loss with its bounds against the angle of w.

    Where the type two bound by relevant and irrelevant documents is the tighter one, its line is broad.
    """
    figure = new_figure(8.0, 0.5 + 2.5 * len(found))
    with house_style():
        rows = figure.subplots(len(found), 2, squeeze=False, width_ratios=(1, 2.3))
        for (plane, curves), (title, each) in zip(rows, found.items(), strict=True):
            _draw_list(plane, each)
            _draw_curves(curves, each)
            plane.set_title(title)
            curves.set_title(f"1 - {each.measure.title} and its bounds")
        rows[0, 0].legend(loc="upper left")
        rows[0, 1].legend(loc="upper center")
        rows[-1, 1].set_xlabel("angle of w in degrees")
        rows[-1, 0].set_xlabel("first feature")
        for plane in rows[:, 0]:
            plane.set_ylabel("second feature")
    return figure


def _draw_list(axes: Any, found: "AngleBounds") -> None:
    relevant = found.labels > 0
    axes.scatter(*found.X[relevant].T, s=14, color=_RELEVANT, label="relevant", zorder=2)
    axes.scatter(*found.X[~relevant].T, s=14, facecolor="none", edgecolor=_PAIRS, label="irrelevant", zorder=2)
    reach = 1.1 * float(np.abs(found.X).max(initial=1e-9))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def _draw_curves(axes: Any, found: "AngleBounds") -> None:
    degrees, by_relevant = found.degrees, found.type_two["relevant"]
    axes.plot(degrees, by_relevant, color=_RELEVANT, label="type two, relevant against irrelevant")
    axes.plot(degrees, found.type_two["pairs"], color=_PAIRS, label="type two, all pairs")
    best = {"linewidth": 0.9, "linestyle": (0, (3, 1.2)), "label": "type two, all pairs, best perfect order"}
    axes.plot(degrees, found.best_sorted, color=_PAIRS, **best)
    axes.plot(degrees, found.type_one, color=_ONE, linewidth=1.1, label="type one")
    axes.fill_between(degrees, np.maximum(found.loss, _LOWEST), _LOWEST, color=_SHADE, linewidth=0, label="the loss")
    tighter = np.where(by_relevant < found.type_one, by_relevant, np.nan)
    axes.plot(degrees, tighter, color=_RELEVANT, linewidth=3.6, solid_capstyle="butt", alpha=0.4)
    lowest = int(by_relevant.argmin())
    axes.plot(degrees[lowest], by_relevant[lowest], "o", color=_RELEVANT, markersize=4)
    axes.annotate(
        f"{by_relevant[lowest]:.2f} at {degrees[lowest]:.0f}°",
        (degrees[lowest], by_relevant[lowest]),
        xytext=(0, -5),
        textcoords="offset points",
        color=_RELEVANT,
        fontsize=7,
        ha="center",
        va="top",
    )
    axes.set(yscale="log", ylim=(_LOWEST, None), xlim=(degrees.min(), degrees.max()))
    if np.ptp(degrees) > 2 * _TICK:
        axes.set_xticks(np.arange(_TICK * np.ceil(degrees.min() / _TICK), degrees.max() + 0.5, _TICK))
