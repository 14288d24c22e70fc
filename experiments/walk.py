"""How many files and functions of the package one call passes through: the walks that a new reader has to follow.

``python3 run.py python -m experiments.walk`` prints a table. A file counts when a function of it is called (imports do
not count), a kernel by the Python function that it is compiled from. A change of folder is a call from a function in
one folder to a function in another one; the deepest call is counted from the public function, which is 0.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import rankwise as rw
from rankwise._tables import Table

SOURCES = Path(rw.__file__).parent
# frames of Python 3.11 that are not calls of functions
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


@dataclass
class Walk:
    """What was called while it was traced.

    Attributes
    ----------
    functions : set of (file, function)
        Files are relative to the package.
    jumps : int
        Calls from one folder of the package into another.
    depth : int
        The largest number of calls inside each other below the first one.
    """

    functions: set[tuple[str, str]] = field(default_factory=set)
    jumps: int = 0
    depth: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        here = _in_package(frame)
        if here is None or frame.f_code.co_name == "<module>":
            return
        self.functions.add((here, frame.f_code.co_qualname))
        callers = []
        above = frame.f_back
        while above is not None:
            if (place := _in_package(above)) is not None and above.f_code.co_name not in _COMPREHENSIONS:
                callers.append(place)
            above = above.f_back
        self.depth = max(self.depth, len(callers))
        if callers and Path(callers[0]).parent != Path(here).parent:
            self.jumps += 1

    @property
    def files(self) -> list[str]:
        """The files, by name."""
        return sorted({file for file, _ in self.functions})


def _in_package(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return str(Path(name).relative_to(SOURCES)) if name.startswith(str(SOURCES)) else None


def walk(call: Callable[[], Any]) -> Walk:
    """The walk of one call, on one thread; everything was imported and compiled by an earlier call."""
    call()
    found = Walk()
    sys.setprofile(found)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def walks() -> dict[str, Walk]:
    """The walks whose lengths are promised."""
    queries = rw.make_lists(60, documents=8, features=5, random_state=0)
    one = queries[0]
    loss, measure = rw.losses.SLAM(), rw.measures.parse("nDCG@10")
    scores = one.X[:, 0].astype(float)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        rw.write_letor(queries, path)

        def certified() -> None:
            train = rw.read_letor(path)
            rw.SLAMPerceptron("nDCG@10", n_jobs=1).fit(train).certificate(train)

        # few candidates and parts, which pass through the same files as many
        few: dict[str, Any] = {"alpha": (0.1, 1.0), "folds": 2, "n_jobs": 1}
        return {
            "read_letor, SLAMPerceptron.fit, certificate": walk(certified),
            "SmoothRank.fit": walk(lambda: rw.SmoothRank("nDCG@10", protocol="paper", steps=3, **few).fit(queries)),
            "RankSVM.fit": walk(lambda: rw.RankSVM(**few).fit(queries)),
            "a loss of one query": walk(lambda: loss(scores, one.y)),
            "a measure of one query": walk(lambda: measure(scores, one.y)),
            "evaluate": walk(lambda: rw.evaluate(queries, queries.X[:, 0].astype(float), ["nDCG@10"])),
        }


def table(found: dict[str, Walk]) -> Table:
    """One row per walk."""
    rows = list(found.values())
    return Table(
        {
            "call": list(found),
            "files": [len(one.files) for one in rows],
            "above kernels": [sum(not name.startswith("_kernels") for name in one.files) for one in rows],
            "functions": [len(one.functions) for one in rows],
            "deepest": [one.depth for one in rows],
            "changes of folder": [one.jumps for one in rows],
        }
    )


if __name__ == "__main__":
    found = walks()
    print(table(found))
    if "--files" in sys.argv:
        for call, one in found.items():
            print(f"\n{call}\n  " + "\n  ".join(one.files))
