"""An hour of service, compressed: memory stays flat, nothing fails, and the log is as long as predicted.

``python3 run.py python -m experiments.serve_soak [RANKINGS [EVENTS [MINUTES]]]``, 1,000,000, 200,000 and 60 unless told
otherwise. The server is a process of its own on the loopback address; sixteen connections with four requests in flight
each rank 20 x 20 features as JSON, and tell what became of every fifth ranking. The first tenth is warming up: the
memory after it is compared with that after every later tenth, and its log predicts the length of the whole log.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pipelined import Pipeline, pipelined
from benchmarks.serve import cpu, models, request, server
from rankwise.serve.statefile import open_to_read

SLICES = 50
ALLOWED = 0.10  # of growth after the first tenth, and between the log and its prediction
_RANKING = re.compile(rb'"ranking":"([^"]+)"')


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


def size(folder: Path) -> int:
    """Bytes of the state, with what has been committed and waits in the write-ahead log."""
    db = open_to_read(folder / "state.db")
    pages, page = (db.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    db.close()
    return int(pages * page)


class Load:
    """Rankings, and an event for every so many of them; ``look`` is called after every slice of the rankings."""

    def __init__(self, rankings: int, events: int, seconds: float, look: Callable[[int], None]) -> None:
        random = np.random.default_rng(0)
        ids = [f"document-{number}" for number in range(20)]
        self._bodies = []
        for x in random.integers(-1000, 1000, (64, 20, 20)) / 256:  # exact in float32, as it is stored
            told = {"model": "wide20", "ids": ids, "x": x.tolist()}
            self._bodies.append(request("/v1/rank", json.dumps(told).encode()))
        self._grades = [json.dumps(row) for row in random.integers(0, 3, (64, 20)).tolist()]
        self.rankings, self.every, self._look = rankings, max(1, rankings // events), look
        self.sent = self.ranked = self.told = 0
        self.refused: list[bytes] = []
        self._deadline = time.monotonic() + seconds

    def feed(self, connection: Pipeline) -> tuple[str, bytes] | None:
        """Events of rankings that were answered, and else the next ranking, as long as there is time."""
        if time.monotonic() > self._deadline:
            return None
        if connection.due:
            return connection.due.popleft()
        if self.sent == self.rankings:
            return None
        self.sent += 1
        return "rank", self._bodies[self.sent % 64]

    def take(self, connection: Pipeline, kind: str, head: bytes, body: bytes) -> None:
        """Count an answer; of every so many rankings something is told."""
        if not head.startswith(b"HTTP/1.1 200"):
            self.refused.append(body)
        if kind == "event":
            self.told += b'"new":true' in body
            return
        self.ranked += 1
        ranking = _RANKING.search(body)
        if ranking is not None and self.ranked % self.every == 0:
            grades = self._grades[self.ranked % 64]
            told = f'{{"id":"{self.ranked}","ranking":"{ranking[1].decode()}","grades":{grades}}}'
            connection.due.append(("event", request("/v1/feedback", told.encode())))
        if self.ranked % (self.rankings // SLICES) == 0:
            self._look(self.ranked)


def main(rankings: int = 1_000_000, events: int = 200_000, minutes: int = 60) -> int:
    began, found = time.monotonic(), list[tuple[int, int]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(folder, *models(folder)) as (url, pid):

            def look(ranked: int) -> None:
                found.append((memory(pid), size(folder)))
                if len(found) % (SLICES // 10) == 0:
                    print(
                        f"{ranked:>10,} rankings, {load.told:>8,} events, {found[-1][0] / 2**20:.0f} MiB, "
                        f"log {found[-1][1] / 2**20:,.0f} MiB, {len(load.refused)} refused, "
                        f"{cpu(pid):.0f} s of CPU, {time.monotonic() - began:.0f} s",
                        flush=True,
                    )

            load = Load(rankings, events, 60.0 * minutes, look)
            asyncio.run(pipelined(url, load.feed, load.take))
    return verdict(load, found, events)


def verdict(load: Load, found: list[tuple[int, int]], events: int) -> int:
    """Say what was found; 0 if all of it is as promised."""
    for body in load.refused[:3]:
        print(body.decode(errors="replace"))
    print(f"{load.ranked:,} rankings and {load.told:,} events were answered, {len(load.refused):,} refused")
    if len(found) < SLICES:
        print("the time was over before the end")
        return 1
    tenth = SLICES // 10
    grown = [one / found[tenth - 1][0] - 1 for one, _ in found[2 * tenth - 1 :: tenth]]
    # the log grows by the same amount in every slice; the first slice also holds the models
    expected = found[tenth - 1][1] + (found[tenth - 1][1] - found[0][1]) / (tenth - 1) * (SLICES - tenth)
    off = found[-1][1] / expected - 1
    print(
        f"memory after the first tenth: {100 * min(grown):+.1f}% to {100 * max(grown):+.1f}%; log "
        f"{found[-1][1]:,} bytes, predicted {expected:,.0f} ({100 * off:+.1f}%)"
    )
    done: list[Any] = [not load.refused, load.told == events, max(grown) <= ALLOWED, abs(off) <= ALLOWED]
    return int(not all(done))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
