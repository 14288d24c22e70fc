"""An hour of service, compressed: memory stays flat, nothing fails, and the log is as long as predicted.

``python3 run.py python -m experiments.serve_soak [RANKINGS] [EVENTS]``, 1,000,000 and 200,000 unless told otherwise.
The server is a process of its own on the loopback address. The first tenth is warming up: the memory after it is
compared with the memory at the end, and its log predicts the length of the whole log.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.serve import bodies, load, models, request, server

SLICES = 50


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


def size(folder: Path) -> int:
    """Bytes of the state on the disk, without the part that SQLite reuses."""
    return (folder / "state.db").stat().st_size


def main(rankings: int = 1_000_000, events: int = 200_000) -> int:
    began, told, failed = time.monotonic(), [], 0
    grades = np.random.default_rng(0).integers(0, 3, (64, 20)).tolist()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(folder, *models(folder)) as (url, pid):
            rank = bodies()["rank 20 x 20 JSON"]
            for number in range(SLICES):
                found = asyncio.run(load(url, rank, rankings // SLICES, seconds=1e4))
                shown = [json.loads(one)["ranking"] for one in found["answers"][: events // SLICES]]

                def make(event: int, number: int = number, shown: list[str] = shown) -> bytes:
                    body = {"id": f"{number} {event}", "ranking": shown[event], "grades": grades[event % 64]}
                    return request("/v1/feedback", json.dumps(body).encode())

                fed = asyncio.run(load(url, make, len(shown), seconds=1e4))
                failed += found["refused"] + fed["refused"]
                time.sleep(0.3)
                told.append((memory(pid), size(folder)))
                if number % 5 == 4:
                    print(
                        f"{(number + 1) * rankings // SLICES:>10,} rankings, "
                        f"{(number + 1) * events // SLICES:>8,} events, "
                        f"{told[-1][0] / 2**20:.0f} MiB, log {told[-1][1] / 2**20:.0f} MiB, {failed} refused, "
                        f"{time.monotonic() - began:.0f} s",
                        flush=True,
                    )
    tenth = SLICES // 10
    grown = told[-1][0] / told[tenth - 1][0] - 1
    # the log grows by the same amount in every slice; the first slice also holds the models
    expected = told[tenth - 1][1] + (told[tenth - 1][1] - told[0][1]) / (tenth - 1) * (SLICES - tenth)
    off = told[-1][1] / expected - 1
    print(f"memory after the first tenth: {100 * grown:+.1f} %, log against its prediction: {100 * off:+.1f} %")
    print(f"{failed} requests were refused")
    return int(failed > 0 or abs(grown) > 0.10 or abs(off) > 0.10)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
