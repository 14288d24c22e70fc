"""A simulation as a picture: the time-averaged measure with the floor that theory puts under it, and the losses."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._figures import COLOURS, FAINT, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = ("-", "-", (0, (4, 1.2)))
_FLOOR = (0, (1, 1.4))


def draw_simulation(found: Mapping[str, Any]) -> "Figure":
    """Left the time-averaged measure and its floors, right the cumulative losses under their bounds.

    ``found`` is what :func:`rankwise.evaluation.simulation.simulate` returns.
    """
    figure = new_figure(7.6, 3.3)
    rounds = np.asarray(found["rounds"])
    with house_style():
        left, right = figure.subplots(1, 2)
        highest = 0.0
        for (name, run), colour, style in zip(found["rankers"].items(), COLOURS, _STYLES, strict=False):
            left.plot(rounds, np.asarray(run["mean"], dtype=float), color=colour, linestyle=style, label=name)
            right.plot(rounds, run["loss"], color=colour, linestyle=style)
            if run["floor"] is None:
                continue
            said = np.asarray(run["floor"]) > 0  # before that the bound says nothing
            left.plot(rounds[said], np.asarray(run["floor"])[said], color=colour, linestyle=_FLOOR, linewidth=1.2)
            most = min(bound["value"] for bound in run["bounds"])
            right.axhline(most, color=colour, linestyle=_FLOOR, linewidth=1.2)
            highest = max(highest, most)
        left.set(xscale="log", xlabel="round", ylim=(0.0, 1.03), title=f"time-averaged {found['measure']}")
        right.set(xscale="log", yscale="log", xlabel="round", title=f"cumulative loss 1 - {found['measure']}")
        if highest:
            left.plot([], [], color=FAINT, linestyle=_FLOOR, linewidth=1.2, label="guaranteed: 1 - bound / round")
            right.plot([], [], color=FAINT, linestyle=_FLOOR, linewidth=1.2, label="bound for the margin of the stream")
            right.set_ylim(top=3 * highest)
            right.legend(loc="upper left", bbox_to_anchor=(0.0, 0.82))
        left.legend(loc="lower left", bbox_to_anchor=(0.0, 0.03))
        figure.suptitle(_about(found), x=0.01, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _about(found: Mapping[str, Any]) -> str:
    """What was simulated, in a line."""
    world, tuning = found["world"], found["tuning"]
    fewest, most = world["documents"]
    parts = [
        f"{fewest if fewest == most else f'{fewest} to {most}'} documents",
        f"{world['features']} features",
        f"{world['grades']} grades",
        f"margin {world['margin']:g}",
        *([f"noise {world['noise']:g}"] if world["noise"] else []),
        *([f"drift {world['angle']:g}"] if world["angle"] else []),
        f"seed {world['seed']}",
        f"ListNet's step {tuning['eta']:g} from a stream of its own",
    ]
    return ", ".join(parts)
