"""What the shell offers after a tab: names of rankers and measures, without starting what makes them run."""

import os
from pathlib import Path

_MEASURES = ("nDCG@10", "nDCG", "AP", "RR", "P@10", "ERR@20", "RBP", "WTA")


def rankers(incomplete: str) -> list[str]:
    """Names of rankers that begin so; read from the files of the package, since importing them takes a second."""
    folder = Path(__file__).parents[1] / "rankers"
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and not name.startswith("_"):
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
            found += [line.split('"')[1] for line in lines if line.startswith('    name = "')]
    return [name for name in sorted(found) if name.lower().startswith(incomplete.lower())]


def measures(incomplete: str) -> list[str]:
    """The usual measures that begin so."""
    return [name for name in _MEASURES if name.lower().startswith(incomplete.lower())]
