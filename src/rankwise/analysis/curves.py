"""Learning curves: the measure after every round of a fit, on the training set and on others, for several rankers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, FAINT, PlottedTable
from rankwise._tables import Table
from rankwise.errors import DataError

_STYLES = ("-", (0, (4, 1.4)), (0, (1, 1.4)), (0, (5, 1, 1, 1)))
_FEW = 25  # rounds up to which each has its mark


def learning_curves(
    rankers: Mapping[str, Any], parts: Sequence[str] = ("train", "validation"), *, measure: str = "the measure"
) -> "LearningCurves":
    """The measure against the rounds, for one or several fitted rankers.

    Parameters
    ----------
    rankers : dict of str to ranker or Table
        Fitted rankers with ``history_``, or any tables of rounds. The rounds are the first column where this increases;
        otherwise (such as the sigma of an annealing) the rows are numbered from 1.
    parts : sequence of str, default=("train", "validation")
        The columns to compare; columns that a history lacks, or that hold no number, are left out.
    measure : str, default="the measure"
        What these columns hold.

    Returns
    -------
    LearningCurves
        A row for each ranker, part and round: ranker, part, round, value. ``plot()`` draws one color per ranker, one
        line style per part, and a dot at the best round of every part but the first.

    Raises
    ------
    DataError
        If a ranker has no history, or a history none of the parts.

    Examples
    --------
    >>> history = Table({"round": [1, 2], "train": [0.4, 0.5], "validation": [0.4, 0.3]})
    >>> learning_curves({"boosted": history}, ["validation"])
    ranker   part        round   value
    boosted  validation      1  0.4000
    boosted  validation      2  0.3000
    """
    if not rankers:
        raise DataError("rankers must be a dict from names to fitted rankers or tables of rounds, got an empty one")
    if isinstance(parts, str) or not parts:
        raise DataError(f"parts must name columns of the histories, such as ('train', 'validation'), got {parts!r}")
    rows: list[tuple[Any, ...]] = []
    for name, ranker in rankers.items():
        history = _history(name, ranker)
        rounds = _rounds(history)
        known = [part for part in parts if part in history and np.isfinite(history[part].astype(np.float64)).any()]
        if not known:
            raise DataError(
                f"the history of {name!r} has the columns {', '.join(history.columns)}: expected numbers in one of "
                f"{', '.join(parts)}"
            )
        for part in known:
            values = history[part].astype(np.float64).tolist()
            rows += [(name, part, *point) for point in zip(rounds.tolist(), values, strict=True)]
    columns = zip(("ranker", "part", "round", "value"), zip(*rows, strict=True), strict=True)
    return LearningCurves(dict(columns), f"{measure} against rounds")


class LearningCurves(PlottedTable):
    """Columns ranker, part, round, value; what :func:`learning_curves` returns."""

    __slots__ = ()

    def _inches(self) -> tuple[float, float]:
        return 6.8, 3.2  # the legend stands beside the curves

    def curve(self, ranker: str, part: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """One curve.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        part : str
            The name of the part.

        Returns
        -------
        rounds : ndarray
            The rounds; empty where there is no such curve.
        values : ndarray
            The values there.
        """
        chosen = (self["ranker"] == ranker) & (self["part"] == part)
        return self["round"][chosen], self["value"][chosen]

    def _draw(self, axes: Any) -> None:
        rankers, parts = list(dict.fromkeys(self["ranker"])), list(dict.fromkeys(self["part"]))
        for number, ranker in enumerate(rankers):
            color = COLORS[number % len(COLORS)]
            axes.plot([], [], color=color, label=ranker)
            for place, part in enumerate(parts):
                rounds, values = self.curve(ranker, part)
                if len(rounds) == 0:
                    continue
                mark = "." if len(rounds) <= _FEW else ""
                axes.plot(rounds, values, color=color, linestyle=_STYLES[place % len(_STYLES)], marker=mark)
                # the best round on the training part is no guide for new queries, so it has no dot
                if place > 0:
                    best = int(np.nanargmax(values))
                    axes.plot(rounds[best], values[best], "o", color=color, markersize=5)
        if len(parts) > 1:
            for place, part in enumerate(parts):
                text = part if place == 0 else f"{part} (dot: best)"
                axes.plot([], [], color=FAINT, linestyle=_STYLES[place % len(_STYLES)], label=text)
        axes.set_xlabel("round")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _history(name: str, ranker: Any) -> Table:
    """The history of a ranker, or the table itself."""
    history = ranker if isinstance(ranker, Table) else getattr(ranker, "history_", None)
    if not isinstance(history, Table) or not history.columns or len(history) == 0:
        raise DataError(
            f"{name!r} is {type(ranker).__name__}, without a history: expected a fitted ranker that has one"
        )
    return history


def _rounds(history: Table) -> NDArray[Any]:
    """The first column where it increases; otherwise 1, 2, ..."""
    # sigma falls along an annealing: its stages are then numbered
    first = history[history.columns[0]]
    if first.dtype.kind in "iuf" and bool((np.diff(first) > 0).all()):
        return first
    return np.arange(1, len(history) + 1)
