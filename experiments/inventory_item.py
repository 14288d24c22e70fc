"""One line of the inventory of the papers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

Row = tuple[str, str, str, str] | tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Item:
    """A table, figure, algorithm, theorem, group of equations, or an experiment that a paper announces.

    Attributes
    ----------
    paper : its short name, as on the page of printed statements
    number : what the paper calls it: "Theorem 5", "Equations (3), (5) to (7)", "Section 8"
    shows : what it is
    where : public names, tests and pages
    close : one of VERDICTS, and details
    module : the module of ``experiments`` that reproduces it, with its arguments; empty if there is none
    """

    paper: str
    number: str
    shows: str
    where: str
    close: str
    module: str = ""

    @property
    def key(self) -> str:
        """The paper and the number in lower case, joined by hyphens."""
        return "-".join(re.findall(r"\w+", f"{self.paper} {self.number}".lower()))

    @property
    def reason(self) -> str:
        """Why nothing reproduces it."""
        return self.close.removeprefix("not reproduced: ")


def items(paper: str, rows: Iterable[Row]) -> tuple[Item, ...]:
    """The items of one paper."""
    return tuple(Item(paper, *row) for row in rows)
