"""`DrawnTable`: the numbers of an analysis with their picture, so that a report can take either."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankwise._tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class DrawnTable(Table, ABC):
    """A table that draws itself, as the histories of rankers do; a kind of it says how, in ``_draw(axes)``.

    Attributes
    ----------
    title : what the picture is called
    """

    __slots__ = ("title",)

    def __init__(self, columns: Mapping[str, Any], title: str) -> None:
        super().__init__(columns)
        self.title = title

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ({name: self[name] for name in self.columns}, self.title)

    def plot(self) -> "Figure":
        """The picture of this table; needs the extra ``plot``."""
        from rankwise._figures import house_style, new_figure

        figure = new_figure(*self._inches())
        with house_style():
            axes = figure.subplots()
            self._draw(axes)
            axes.set_title(self.title)
        return figure

    def _inches(self) -> tuple[float, float]:
        """How large the picture is."""
        return 5.2, 3.2

    @abstractmethod
    def _draw(self, axes: Any) -> None:
        """The numbers on one pair of axes, in the house style."""


def in_order(names: Any) -> list[Any]:
    """Each of the names once, by first appearance."""
    return list(dict.fromkeys(names))
