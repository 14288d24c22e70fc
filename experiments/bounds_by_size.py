"""Each bound against the number of queries n and the length m of the lists: the figure docs/figures/bounds_by_size.png.

:func:`draw_bounds_by_size` takes other constants, too.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankwise._figures import COLORS, FAINT, house_style, new_figure
from rankwise.guarantees._bound import refuse_unless, refuse_unless_chance
from rankwise.guarantees.bounds.batch import ogd_average, rerm_best
from rankwise.guarantees.bounds.uniform import l1_ball, l2_ball, linf_ball, smooth_ball
from rankwise.guarantees.holdout.intervals import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gaps_by_size(
    *, G: float, H1: float, W: float, radius: float, b: float, d: int, risk: float, delta: float
) -> dict[str, Callable[[int, int], float]]:
    """How far above the sample's own number each bound is, as a function of n and m."""
    refuse_unless("gaps_by_size", above=0, G=G, H1=H1, W=W, radius=radius, b=b)
    refuse_unless_chance("gaps_by_size", delta=delta)
    known = {"risk": risk, "b": b, "delta": delta}
    return {
        "hold-out of n queries (Hoeffding)": lambda n, m: _hoeffding(n, delta),
        "averaged descent, on average": lambda n, m: ogd_average(G=G, W=W, radius=radius, n=n).value,
        "regularized, on average": lambda n, m: rerm_best(G=G, W=W, radius=radius, n=n).value,
        "uniform, l2-Lipschitz": lambda n, m: (
            l2_ball(L2=G / math.sqrt(2), W=W, radius=radius, m=m, n=n, **known).value - risk
        ),
        "uniform, largest score": lambda n, m: linf_ball(G=G, W=W, radius=radius, m=m, n=n, **known).value - risk,
        "uniform, sparse weights": lambda n, m: l1_ball(G=G, W1=W, entry=radius, d=d, m=m, n=n, **known).value - risk,
        "uniform, smooth (unverified)": lambda n, m: (
            smooth_ball(risk=risk, H1=H1, W=W, radius=radius, m=m, n=n, B=b, delta=delta).value - risk
        ),
    }


def draw_bounds_by_size(
    *,
    G: float = 2.0,
    H1: float = 1.0,
    W: float = 1.0,
    radius: float = 1.0,
    b: float = 3.0,
    d: int = 45,
    risk: float = 0.2,
    delta: float = 0.05,
    queries: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    at: tuple[int, int] = (10_000, 100),
) -> "Figure":
    """The gap of each bound against n, and against m; needs the extra ``plot``.

    Parameters
    ----------
    G, H1 : float
        Lipschitz constant and smoothness of the loss.
    W, radius : float
        Norm of the weights, radius of the rows.
    b : float
        Losses are between 0 and b.
    d : int
        Number of features, for sparse weights.
    risk : float
        The sample's mean loss.
    delta : float
        Probability that a bound may fail.
    queries, lengths : sequence of int, default=None
        The n and m that are drawn; None: 10 to 10^8, and 2 to 10^4.
    at : tuple of int
        The (n, m) that is kept while the other one varies.

    Returns
    -------
    Figure
        A matplotlib figure.
    """
    ns = np.unique(np.geomspace(10, 1e8, 71).astype(int)).tolist() if queries is None else list(queries)
    ms = np.unique(np.geomspace(2, 1e4, 41).astype(int)).tolist() if lengths is None else list(lengths)
    bounds = gaps_by_size(G=G, H1=H1, W=W, radius=radius, b=b, d=d, risk=risk, delta=delta)
    with house_style():
        figure = new_figure(8.6, 3.9)
        left, right = figure.subplots(1, 2, sharey=True)
        for color, (name, gap) in zip(COLORS, bounds.items(), strict=False):
            style = "--" if "unverified" in name else ":" if "on average" in name else "-"
            left.plot(ns, [gap(n, at[1]) for n in ns], color=color, linestyle=style, label=name)
            right.plot(ms, [gap(at[0], m) for m in ms], color=color, linestyle=style)
        for panel in (left, right):
            panel.axhline(b - risk, color=FAINT, linewidth=0.8)
            panel.set(xscale="log", yscale="log", ylim=(1e-4, 30 * b))
        right.text(ms[0], 1.6 * (b - risk), "above this line a bound is vacuous", color=FAINT, fontsize=6)
        left.set(title=f"lists of {at[1]:,} documents", xlabel="queries n", ylabel="gap to the sample's own number")
        right.set(title=f"{at[0]:,} queries", xlabel="documents m of the longest list")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def _hoeffding(n: int, delta: float) -> float:
    """Of a measure in [0, 1]: the upper end less the mean, which no value of the mean changes."""
    small = mean_interval([0.0], delta, method="hoeffding", ends="high").terms["reach"]
    return small / math.sqrt(n)
