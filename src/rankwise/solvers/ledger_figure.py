"""The account of an online run as a picture."""

from typing import TYPE_CHECKING, Any

from rankwise._figures import COLOURS, FAINT, house_style, new_figure
from rankwise.guarantees._bound import Bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(ledger: Any, bounds: list[Bound]) -> "Figure":
    """Left the time-averaged measure, right mistakes and cumulative loss on logarithmic scales, bounds as lines."""
    curve = ledger.curve
    figure = new_figure(7.6, 3.0)
    with house_style():
        left, right = figure.subplots(1, 2)
        left.plot(curve.rounds, curve.mean, color=COLOURS[0])
        left.set(xlabel="round", title=f"time-averaged {ledger.rules.measure.title}", ylim=(None, 1.02))
        left.set_xscale("log")
        right.plot(curve.rounds, curve.mistakes, color=COLOURS[1], label="mistakes")
        right.plot(curve.rounds, curve.loss, color=COLOURS[0], label="cumulative loss")
        for bound, style in zip(bounds, ("--", ":", "-.", (0, (5, 1))) * len(bounds), strict=False):
            if bound.applies is not False and bound.bounds != "mean risk of the iterates":
                right.axhline(bound.value, color=FAINT, linestyle=style, label=f"{bound.bounds}: {bound.name}")
        right.set(xlabel="round", title="mistakes and loss so far", xscale="log", yscale="log")
        right.legend(loc="best")
    return figure
