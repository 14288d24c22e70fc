"""How many files and functions of the package one call passes through: the walks that a new reader has to follow.

``python3 run.py python -m experiments.walk`` prints a table. A file counts when a function of it is called (imports do
not count), a kernel by the Python function that it is compiled from. A change of folder is a call from a function in
one folder to a function in another one; the deepest call is counted from the public function, which is 0. A bounce is a
call A -> B -> A: file A called file B, which now calls A. Calls are the events that a profiler sees: a generator counts
each time it goes on.
"""

import asyncio
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import rankwise as rw
from rankwise._tables import Table

# Names that may move: here and nowhere else.
to_frame = getattr(rw, "to_frame", None) or rw.io.to_frame

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
    calls : int
        Calls of Python functions.
    jumps : int
        Calls from one folder of the package into another.
    bounces : int
        Calls of a file by a file that it called itself.
    depth : int
        The largest number of calls inside each other below the first one.
    """

    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    jumps: int = 0
    bounces: int = 0
    depth: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        here = _in_package(frame.f_code.co_filename)
        if here is None or frame.f_code.co_name == "<module>":
            return
        self.calls += 1
        self.functions.add((here, frame.f_code.co_qualname))
        callers = []
        above = frame.f_back
        while above is not None:
            if (
                place := _in_package(above.f_code.co_filename)
            ) is not None and above.f_code.co_name not in _COMPREHENSIONS:
                callers.append(place)
            above = above.f_back
        self.depth = max(self.depth, len(callers))
        if callers and Path(callers[0]).parent != Path(here).parent:
            self.jumps += 1
        if callers and callers[0] != here:
            self.bounces += next((file for file in callers if file != callers[0]), None) == here

    @property
    def files(self) -> list[str]:
        """The files, by name."""
        return sorted({file for file, _ in self.functions})


@cache
def _in_package(name: str) -> str | None:
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


def whole_walks() -> dict[str, Walk]:
    """The walks of whole tasks, which are counted by ``experiments.structure``; only the calling thread is traced."""
    from rankwise.serve import Service, make_app  # needs an extra

    queries, holdout = (rw.make_lists(60, documents=8, features=5, random_state=seed) for seed in (0, 1))
    log = "session,qid,docid,position,click\n" + "".join(
        f"{i},{one.qid},{docid},{place},{int((7 * i + 5 * place) % 11 == 0)}\n"
        for i, one in enumerate(queries)
        for place, docid in enumerate(one.docid, 1)
    )
    positions = rw.clicks.given([1 / place for place in range(1, 9)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rw.write_letor(queries, folder / "train.txt")
        for part, one in (("train", queries), ("holdout", holdout)):
            to_frame(one).to_csv(folder / f"{part}.csv", index=False)
        (folder / "log.csv").write_text(log, encoding="utf-8")
        model = rw.SLAMPerceptron(scale="standard").fit(queries)
        model.save(folder / "news.rankwise")
        app = make_app(service := Service(folder / "state.db", {"news": folder / "news.rankwise"}))

        def ridge() -> None:
            train = rw.read_letor(folder / "train.txt")
            rw.evaluate(train, rw.RidgeRanker(n_jobs=1).fit(train).predict(train), ["nDCG@10"])

        def certified() -> None:
            _command("train", folder / "train.csv", "-r", "RidgeRanker", "-o", folder / "model.rankwise", "-j", 1)
            _command("certify", folder / "model.rankwise", "--holdout", folder / "holdout.csv")

        def valued() -> None:
            log = rw.clicks.ClickLog.from_csv(folder / "log.csv").join(queries)
            rw.clicks.value(log, model, positions, tau=0.1)

        try:
            return {
                "read_letor, RidgeRanker.fit, evaluate": walk(ridge),
                "read_letor, AutoRanker.fit (linear part)": walk(
                    lambda: rw.AutoRanker(members=("ridge",), n_jobs=1).fit(rw.read_letor(folder / "train.txt"))
                ),
                "CSV, rankwise train, rankwise certify": walk(certified),
                "click log, clicks.value": walk(valued),
                "POST /v1/rank": walk(lambda: asyncio.run(_post_rank(app))),
            }
        finally:
            service.close()


def _command(*arguments: Any) -> None:
    """Run a command of the shell in this process."""
    from rankwise.cli import main

    with (
        mock.patch.object(sys, "argv", ["rankwise", *map(str, arguments)]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as complaint,
    ):
        code = main()
    if code:
        raise RuntimeError(f"rankwise {arguments[0]} ended with code {code}: {complaint.getvalue()}")


async def _post_rank(app: Any) -> None:
    """Send one request to the application."""
    body = json.dumps({"model": "news", "ids": ["a", "b"], "x": [[1, 0, 2, 0, 1], [0, 1, 1, 0, 0]]}).encode()
    headers = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    scope = {"type": "http", "method": "POST", "path": "/v1/rank", "query_string": b"", "root_path": ""}
    answers: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    await app(scope | {"headers": [(k.encode(), v.encode()) for k, v in headers.items()]}, receive, send)
    if answers[0]["status"] != 200:
        raise RuntimeError(f"POST /v1/rank was answered with {answers}")


def table(found: dict[str, Walk]) -> Table:
    """One row per walk."""
    rows = list(found.values())
    return Table(
        {
            "call": list(found),
            "files": [len(one.files) for one in rows],
            "above kernels": [sum(not name.startswith("_kernels") for name in one.files) for one in rows],
            "functions": [len(one.functions) for one in rows],
            "calls": [one.calls for one in rows],
            "deepest": [one.depth for one in rows],
            "changes of folder": [one.jumps for one in rows],
            "bounces": [one.bounces for one in rows],
        }
    )


if __name__ == "__main__":
    found = walks() | whole_walks()
    print(table(found))
    if "--files" in sys.argv:
        for call, one in found.items():
            print(f"\n{call}\n  " + "\n  ".join(one.files))
