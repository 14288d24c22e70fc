"""``rankwise rank`` on files: reading, scoring, ordering and writing against reading alone, in bounded memory.

Reading is what the command itself reads by: blocks of whole queries, `iter_letor` for text and row groups for parquet.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row
from benchmarks.online import interleaved

LISTS, DOCUMENTS, FEATURES = 1_000, 120, 136


def make_files(folder: Path) -> None:
    """Lists with ids as LETOR text and as parquet, and a ranker."""
    import rankwise as rw

    rng, size = np.random.default_rng(0), LISTS * DOCUMENTS
    X, y = rng.normal(size=(size, FEATURES)).round(6), rng.integers(0, 5, size)
    ids = [f"d{number}" for number in range(size)]
    queries = rw.Queries.from_arrays(X, y, qid=np.repeat(np.arange(LISTS), DOCUMENTS), docid=ids)
    rw.write_letor(queries, folder / "lists.txt")
    rw.io.write_table(queries, folder / "lists.parquet")
    rw.SLAMPerceptron().fit(queries[:20]).save(folder / "model.rankwise")


def rank(folder: Path, source: str, target: str) -> None:
    """The command, in this process."""
    import sys

    from rankwise.cli import main

    sys.argv = ["rankwise", "rank", *map(str, (folder / "model.rankwise", folder / source)), "-o", str(folder / target)]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main() == 0


def run() -> list[dict[str, Any]]:
    from rankwise.io.letor.stream import iter_letor
    from rankwise.io.tables.frames import iter_table
    from rankwise.io.tables.rows import Roles

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        works: dict[str, Callable[[], Any]] = {
            "text": lambda: sum(map(len, iter_letor(folder / "lists.txt", rows=1 << 14))),
            "parquet": lambda: sum(map(len, iter_table(folder / "lists.parquet", Roles(judged=False), rows=1 << 14))),
        }
        outputs = [("text", "lists.txt", ending) for ending in ("csv", "run", "scores")]
        outputs.append(("parquet", "lists.parquet", "csv"))
        for kind, source, ending in outputs:
            works[f"{kind} to {ending}"] = lambda source=source, ending=ending: rank(folder, source, f"ranked.{ending}")
        seconds = dict(zip(works, interleaved(9, list(works.values())), strict=True))
        size = (folder / "lists.txt").stat().st_size / 1e6
    work = f"rank {LISTS * DOCUMENTS:,} x {FEATURES} ({size:.0f} MB of text) from"
    return [
        row(f"{work} {kind}", "reading alone", seconds[kind], seconds[f"{kind} to {ending}"], f"to .{ending}", "0.67 x")
        for kind, _, ending in outputs
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
