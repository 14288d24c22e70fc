"""One style and one protocol for all figures of the package.

Whatever draws itself has a method ``plot()`` that returns a matplotlib ``Figure`` in the package's style: light paper
that is legible on dark pages, too. Tables get it from :class:`PlottedTable` and say only how their numbers are drawn on
a pair of axes; other results make a figure by :func:`new_figure` and draw inside :func:`house_style`.

A figure is made and saved without pyplot: no window, no backend and no list of open figures is involved, and the
caller's settings and figures stay as they are. The same data give the same bytes: the settings are matplotlib's own
defaults with those below, and no date and no version is written into the file.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._extras import require
from rankwise._files import writing
from rankwise._tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper is not white, so that a figure has an edge on a white page and does not glare on a dark one.
PAPER, INK, FAINT = "#fbfaf7", "#2b2b2b", "#9a9a98"

# Colors of Okabe and Ito, which color-blind readers can tell apart; the yellow is darker, to be visible on paper.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5195", "#b8860b", "#56b4e9", "#2b2b2b")

# Only what differs from matplotlib's defaults; every figure starts from those, not from the caller's settings.
STYLE: dict[str, Any] = {
    "figure.facecolor": PAPER,
    "figure.dpi": 150,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 8,
    "text.color": INK,
    "axes.facecolor": PAPER,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e4e2dc",
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.4,
    "lines.markersize": 3,
    "legend.frameon": True,
    "legend.framealpha": 0.85,
    "legend.facecolor": PAPER,
    "legend.edgecolor": "none",
    "legend.fontsize": 7,
}

_one_at_a_time = RLock()  # matplotlib keeps its settings in one place for all threads


@contextmanager
def house_style() -> Iterator[None]:
    """Context manager: everything drawn inside has the package's style; the caller's settings are kept."""
    matplotlib = require("matplotlib")
    with _one_at_a_time, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> "Figure":
    """Make an empty figure, to be filled inside :func:`house_style`; its parts do not overlap.

    Parameters
    ----------
    width : float
        Width in inches.
    height : float
        Height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which belongs to no window.
    """
    with house_style():
        figure: Figure = require("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return figure


def save_png(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, atomically.

    A palette of 256 colors is more than lines and letters need, and reduces the size to a third.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or path-like
        The file; either the whole file is there at the end or none of it.
    """
    # the Agg canvas renders without a display and, unlike savefig, writes no metadata
    canvas = require("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    with house_style(), writing(path) as part:
        canvas.draw()
        picture = require("PIL.Image").fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
        picture.quantize(256, dither=0).save(part, format="PNG", optimize=True)


class PlottedTable(Table, ABC):
    """A table that draws itself; a subclass says how in ``_draw(axes)``.

    Parameters
    ----------
    columns : dict of str to array-like
        The columns, as for :class:`~rankwise._tables.Table`.
    title : str
        The title of the figure.
    """

    __slots__ = ()

    def plot(self) -> "Figure":
        """Draw the table; needs the extra ``plot``.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure = new_figure(*self._inches())
        with house_style():
            axes = figure.subplots()
            self._draw(axes)
            axes.set_title(self.title)
        return figure

    def _inches(self) -> tuple[float, float]:
        """Width and height of the figure in inches."""
        return 5.2, 3.2

    @abstractmethod
    def _draw(self, axes: Any) -> None:
        """Draw the numbers on one pair of axes; called inside :func:`house_style`."""
