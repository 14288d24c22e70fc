"""What single features add to the score of an additive model, as a table that plots itself."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise._figures import COLORS, PlottedTable
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble


class ShapeFunctions(PlottedTable):
    """What each feature adds to the score, by its value: one row per interval between thresholds.

    Columns: feature, above (the threshold before, -inf for the first), to (the threshold that ends the interval,
    included), adds.

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
            columns["feature"] += [str(number) if names is None else names[number]] * len(shape.values)
            columns["above"] += [-math.inf, *shape.thresholds.tolist()]
            columns["to"] += [*shape.thresholds.tolist(), math.inf]
            columns["adds"] += shape.values.tolist()
        return cls(columns, "what each feature adds to the score")

    def _draw(self, axes: Any) -> None:
        feature = np.array(self["feature"])
        for name, color in zip(dict.fromkeys(feature.tolist()), COLORS, strict=False):
            own = feature == name
            inner = np.array(self["to"])[own][:-1]
            adds = np.array(self["adds"])[own]
            width = (inner[-1] - inner[0]) or 1.0
            edges = [inner[0] - 0.1 * width, *inner, inner[-1] + 0.1 * width]
            axes.stairs(adds, edges, baseline=None, color=color, label=name)
        axes.set(xlabel="value of the feature", ylabel="adds")
        axes.legend()
