"""What single features add to the score of an additive model, as a table that plots itself."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise._figures import COLORS, PlottedTable
from rankwise.rankers.boosting.tree_checks import MISSING_NONE
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble


class ShapeFunctions(PlottedTable):
    """What each feature adds to the score, by its value: one row per interval between thresholds.

    Columns: feature, above (the threshold before, -inf for the first), to (the threshold that ends the interval,
    included), adds. Where training had NaN, the last row of a feature is what NaN adds; its above and to are NaN. A
    drawing has the features whose values differ most, without NaN.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns.
    title : str
        The title of the drawing.
    """

    __slots__ = ()

    @classmethod
    def of(cls, ensemble: TreeEnsemble, names: Sequence[str] | None) -> "ShapeFunctions":
        """The functions of all features that an additive ensemble splits on."""
        columns: dict[str, list[Any]] = {"feature": [], "above": [], "to": [], "adds": []}
        for number in np.unique(ensemble.feature).tolist():
            shape = ensemble.shape_function(number)
            hole = [math.nan] * bool((ensemble.missing[ensemble.feature == number] != MISSING_NONE).any())
            columns["feature"] += [str(number) if names is None else names[number]] * (len(shape.values) + len(hole))
            columns["above"] += [-math.inf, *shape.thresholds.tolist(), *hole]
            columns["to"] += [*shape.thresholds.tolist(), math.inf, *hole]
            columns["adds"] += [*shape.values.tolist(), *(shape.missing for _ in hole)]
        return cls(columns, "what each feature adds to the score")

    def _draw(self, axes: Any) -> None:
        known = ~np.isnan(self["to"])
        feature, to, adds_of = (np.array(self[name])[known] for name in ("feature", "to", "adds"))
        names = [name for name in dict.fromkeys(feature.tolist()) if (feature == name).sum() > 1]
        names.sort(key=lambda name: -float(np.ptp(adds_of[feature == name])))
        for name, color in zip(names, COLORS, strict=False):
            inner, adds = to[feature == name][:-1], adds_of[feature == name]
            width = (inner[-1] - inner[0]) or 1.0
            edges = [inner[0] - 0.1 * width, *inner, inner[-1] + 0.1 * width]
            axes.stairs(adds, edges, baseline=None, color=color, label=name)
        axes.set(xlabel="value of the feature", ylabel="adds")
        axes.legend()
