"""The picture of a comparison: means with their intervals, best on top, and the baseline's as a line through all."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankwise._figures import COLOURS, FAINT, PAPER, house_style, new_figure
from rankwise.evaluation.compare_result import BASE, EQUAL, Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_A_LINE, _INCHES_AROUND, _INCHES_A_PANEL, _MOST_INCHES = 0.24, 0.9, 3.4, 20.0


def league_figure(comparison: Comparison, titles: Sequence[str]) -> "Figure":
    """One panel a measure; a full dot differs from the baseline after correction, a hollow one was not shown to."""
    order = comparison._order(titles[0])[::-1]
    height = min(_MOST_INCHES, _INCHES_AROUND + _INCHES_A_LINE * len(order))
    figure = new_figure(min(_MOST_INCHES, 1.6 + _INCHES_A_PANEL * len(titles)), height)
    with house_style():
        panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
        for axes, title, colour in zip(panels, titles, COLOURS * len(titles), strict=False):
            base = comparison.means[comparison.baseline][title]
            axes.axvline(base, color=FAINT, linewidth=0.8, linestyle=(0, (3, 2)))
            for place, name in enumerate(order):
                mean, (low, high) = comparison.means[name][title], comparison.intervals[name][title]
                axes.plot([low, high], [place, place], color=colour, linewidth=1.2)
                full = comparison.mark(name, title) not in (EQUAL, BASE)
                axes.plot([mean], [place], "o", color=colour, markersize=5, markerfacecolor=colour if full else PAPER)
            axes.set_title(title)
            axes.set_xlabel(f"mean and {comparison.level:.0%} interval")
            axes.set_ylim(-0.6, len(order) - 0.4)
            axes.grid(visible=False, axis="y")
        panels[0].set_yticks(range(len(order)), order)
    return figure
