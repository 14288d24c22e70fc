"""A smoothed measure along a line through the weights of a SmoothRank: how smoothing turns steps into hills."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import as_random
from rankwise._tables import Table
from rankwise.losses._base import SmoothedMeasure, smoothed
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import Measure
from rankwise.queries.chunks import scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers._base import linear_scores
from rankwise.rankers._inputs import align
from rankwise.rankers._model_selection import mean_measure
from rankwise.rankers.smooth.annealing import at_sigma, largest_gain, list_weights, within_lists
from rankwise.rankers.smooth.smoothrank import SmoothRank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]


def landscape(
    model: SmoothRank,
    queries: Queries,
    *,
    sigmas: Sequence[float] | None = None,
    points: int = 201,
    random_state: Any = 0,
) -> "Landscape":
    """The smoothed measure along a random direction through ``model.coef_``, for several sigma, and the measure itself.

    ``sigmas``: None takes four of the fit from the first to the last, and a sixteenth of the last, where there are too
    many hills to climb. Costs ``points`` passes over the queries per sigma.
    """
    model._check_fitted()
    if sigmas is None:
        fitted = model.history_["sigma"]
        places = [0, len(fitted) // 2, 3 * len(fitted) // 4, -1]
        sigmas = [*dict.fromkeys(fitted[places].tolist()), float(fitted[-1]) / 16]
    measure, queries = model._measure(), align(model, queries)
    loss = smoothed(measure, model.smoothing)
    return Landscape.of(queries, model.coef_, measure, loss, list(sigmas), points, random_state, model.n_jobs)


class Landscape(Table):
    """Steps along a random direction, the measure there, and a column for every sigma: means over all lists.

    One step adds scores that vary within lists as much as those of the weights themselves.

    Attributes
    ----------
    one_list : the same for the longest list alone, whose measure is a staircase that a mean over many lists hides
    """

    __slots__ = ("one_list",)

    def __init__(self, columns: Any, one_list: Any) -> None:
        super().__init__(columns)
        self.one_list = Table(one_list)

    def __reduce__(self) -> tuple[Any, ...]:
        return Landscape, (self.to_dict(), self.one_list.to_dict())

    @classmethod
    def of(
        cls,
        queries: Queries,
        coef: Vector,
        measure: Measure,
        loss: SmoothedMeasure,
        sigmas: list[float],
        points: int,
        random_state: Any,
        n_jobs: int | None,
    ) -> Self:
        """Walk from -1 to 1 along a Gaussian direction, its components in units of the features' deviations."""
        direction = as_random(random_state).normal(size=len(coef)) * scale_factors(queries, "auto")[0]
        own, other = (_spread(queries, linear_scores(queries.X, w, n_jobs)) for w in (coef, direction))
        direction *= own / other if other else 0.0
        steps = np.linspace(-1.0, 1.0, points)
        walk = [coef + step * direction for step in steps]

        def columns(lists: Queries) -> dict[str, Any]:
            found: dict[str, Any] = {"step": steps}
            found[measure.title] = [mean_measure(lists, linear_scores(lists.X, w, n_jobs), measure) for w in walk]
            over = LossOverLists.of(loss, lists, list_weights(measure, lists))
            most, total = largest_gain(measure, over)
            for sigma in sigmas:
                at = at_sigma(over, sigma)
                losses = np.array([at(w, n_jobs=n_jobs)[0] for w in walk])
                found[f"sigma {sigma_text(sigma)}"] = (most - losses) / total if total else np.full(points, np.nan)
            return found

        longest = int(np.argmax(queries.sizes)) if len(queries) else 0
        return cls(columns(queries), columns(queries[longest : longest + 1]))

    def plot(self) -> "Figure":
        """One list beside the mean over all of them; needs the extra ``plot``."""
        from rankwise._figures import COLORS, FAINT, house_style, new_figure

        figure = new_figure(9.6, 3.4)
        with house_style():
            panels = figure.subplots(1, 2)
            for axes, table, title in zip(panels, (self.one_list, self), ("one list", "all lists"), strict=True):
                step, measure, *sigmas = table.columns
                axes.plot(table[step], table[measure], color=FAINT, drawstyle="steps-mid", label=measure)
                for color, name in zip(COLORS, sigmas, strict=False):
                    axes.plot(table[step], table[name], color=color, label=name)
                axes.set(xlabel="step along a random direction", title=title)
            panels[1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        return figure


def sigma_text(sigma: float) -> str:
    """A power of two as one, any other number in decimals."""
    power = math.log2(sigma)
    return f"{sigma:g}" if sigma >= 1 or power != round(power) else f"2^{power:.0f}"


def _spread(queries: Queries, scores: Vector) -> float:
    """The standard deviation of scores within their lists."""
    return float(np.sqrt(np.mean(within_lists(queries, scores) ** 2))) if len(scores) else 0.0
