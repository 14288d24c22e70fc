"""The rounds of a fit as a table that draws itself, and how it goes into a model's file."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._store import Store
from rankwise._tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class History(Table):
    """One row a round; the first column numbers the rounds.

    Attributes
    ----------
    drawn : the columns that :meth:`plot` draws against the first
    title : what the drawing is called
    """

    __slots__ = ("drawn", "title")

    def __init__(self, columns: Mapping[str, Any], drawn: Sequence[str], title: str) -> None:
        super().__init__(columns)
        self.drawn = tuple(drawn)
        self.title = title

    def __reduce__(self) -> tuple[Any, ...]:
        return History, (self.to_dict(), self.drawn, self.title)

    def plot(self) -> "Figure":
        """The columns that matter against the rounds; needs the extra ``plot``."""
        from rankwise._figures import COLOURS, house_style, new_figure

        figure = new_figure(5.2, 3.2)
        with house_style():
            axes = figure.subplots()
            across = self.columns[0]
            for name, colour in zip(self.drawn, COLOURS, strict=False):
                if np.isfinite(self[name]).any():
                    axes.plot(self[across], self[name], color=colour, label=name)
            axes.set(xlabel=across, title=self.title)
            axes.legend()
        return figure


def history_arrays(history: Table) -> dict[str, NDArray[Any]]:
    """The columns, which are numbers, for a model's file."""
    return {f"history.{name}": history[name] for name in history.columns}


def read_history(store: Store, columns: Mapping[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    """The columns that :func:`history_arrays` wrote, by name and kind of number, all of one length."""
    return {name: store.array(f"history.{name}", kind, (None,)) for name, kind in columns.items()}
