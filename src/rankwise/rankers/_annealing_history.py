"""The stages of an annealed fit as a table that draws itself."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure
from rankwise.measures.parse import parse
from rankwise.rankers._choosing import linear_scores, mean_measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("sigma", "objective", "smoothed", "train", "validation", "steps", "evaluations")


class AnnealingHistory(Table):
    """One row a stage: sigma, objective, mean smoothed measure, train and validation measure, steps, evaluations.

    Attributes
    ----------
    measure : what train and validation columns show
    coefs : the weights on raw features at the end of every stage
    """

    __slots__ = ("coefs", "measure")

    def __init__(self, columns: Any, measure: Measure, coefs: NDArray[np.float64]) -> None:
        super().__init__(columns)
        self.measure = measure
        self.coefs = coefs

    def __reduce__(self) -> tuple[Any, ...]:
        return AnnealingHistory, (self.to_dict(), self.measure, self.coefs)

    def plot(self, test: Queries | None = None) -> "Figure":
        """Smoothed, train and validation measure against sigma, and that on ``test``; needs the extra ``plot``."""
        from rankwise._figures import COLOURS, house_style, new_figure

        figure = new_figure(5.2, 3.2)
        with house_style():
            axes = figure.subplots()
            sigma = self["sigma"]
            axes.plot(sigma, self["smoothed"], color=COLOURS[7], linestyle=":", label="train, smoothed")
            axes.plot(sigma, self["train"], color=COLOURS[0], marker="o", label="train")
            if np.isfinite(self["validation"]).any():
                axes.plot(sigma, self["validation"], color=COLOURS[1], marker="o", label="validation")
            if test is not None:
                values = [mean_measure(test, linear_scores(test.X, w, None), parse(self.measure)) for w in self.coefs]
                axes.plot(sigma, values, color=COLOURS[2], marker="o", label="test")
            axes.set_xscale("log", base=2)
            axes.invert_xaxis()
            axes.set(xlabel="sigma, from coarse to fine", title=f"{self.measure.title} along the annealing")
            axes.legend()
        return figure
