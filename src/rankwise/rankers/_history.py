"""The rounds of a fit as a table that draws itself, and how the table goes into the file of a ranker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rankwise._arrays import Array
from rankwise._figures import COLORS, PlottedTable
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import RankwiseError


class History(PlottedTable):
    """One row per round; the first column numbers the rounds.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns.
    drawn : sequence of str
        The columns that :meth:`plot` draws against the first.
    title : str
        The title of the drawing.
    """

    __slots__ = ("drawn",)

    def __init__(self, columns: Mapping[str, Any], drawn: Sequence[str], title: str) -> None:
        super().__init__(columns, title)
        self.drawn = tuple(drawn)

    def _draw(self, axes: Any) -> None:
        across = self.columns[0]
        for name, color in zip(self.drawn, COLORS, strict=False):
            if np.isfinite(self[name]).any():
                axes.plot(self[across], self[name], color=color, label=name)
        axes.set(xlabel=across)
        axes.legend()


def typed_columns(rows: Iterable[Sequence[Any]], kinds: Mapping[str, type[np.generic]]) -> dict[str, Array]:
    """The columns of these rounds, by name and type."""
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return {name: np.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}


def history_arrays(history: Table) -> dict[str, Array]:
    """The columns, which are numeric, as arrays for the file of a ranker."""
    return {f"history.{name}": history[name] for name in history.columns}


def read_history(store: Store, columns: Mapping[str, type[np.generic]]) -> dict[str, Array]:
    """The columns that :func:`history_arrays` wrote, by name and type, all of one length."""
    found = {name: store.array(f"history.{name}", kind, (None,)) for name, kind in columns.items()}
    if len({len(column) for column in found.values()}) > 1:
        raise RankwiseError("its table of rounds has columns of different lengths")
    return found
