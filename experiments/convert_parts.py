"""Convert an unsorted CSV with interleaved query ids into parts, and compare counts, labels and sums with the source.

``python3 run.py python -m experiments.convert_parts --rows 10000000`` writes a CSV of 20 columns into a temporary
folder, converts it in another process whose anonymous memory is watched, checks the result, removes everything and
prints a line; ``--save`` also writes docs/convert_parts.json.

Values are multiples of 1/8, so sums of the source are exact whole numbers of eighths while it is written, by other
means than those of the package.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rankwise import Parts
from rankwise._extras import require

FEATURES = 18  # beside the query id and the label
BLOCK = 500_000
TARGET = Path(__file__).parents[1] / "docs" / "convert_parts.json"
MEMORY = 1.5e9  # bytes of anonymous memory that must be enough

_CONVERT = """
import os, resource, sys, time
from rankwise.io import write_parts
begin = time.process_time()
parts = write_parts(sys.argv[1], sys.argv[2], part_bytes="256MB", dtype="float32")
print(time.process_time() - begin)
"""


def write_source(path: Path, rows: int, seed: int = 0) -> dict[str, Any]:
    """Write the CSV; returns its counts and its exact sums in eighths."""
    arrow, csv = require("pyarrow"), require("pyarrow.csv")
    random, queries = np.random.default_rng(seed), max(1, rows // 100)
    names = ["qid", "label", *(f"f{number}" for number in range(FEATURES))]
    labels, sums, sizes = np.zeros(5, np.int64), np.zeros(FEATURES, np.int64), np.zeros(queries, np.int64)
    with open(path, "wb") as file:
        for first in range(0, rows, BLOCK):
            count = min(BLOCK, rows - first)
            qid, label = random.integers(0, queries, count), random.integers(0, 5, count)
            eighths = random.integers(-8000, 8000, (FEATURES, count))
            labels += np.bincount(label, minlength=5)
            sizes += np.bincount(qid, minlength=queries)
            sums += eighths.sum(axis=1)
            table = arrow.table(dict(zip(names, [qid, label, *(eighths / 8)], strict=True)))
            csv.write_csv(table, file, csv.WriteOptions(include_header=first == 0))
    return {"labels": labels, "sums": sums, "sizes": sizes}


def convert(source: Path, target: Path) -> tuple[float, float, int]:
    """(seconds, seconds of CPU, peak of anonymous memory in bytes) of the conversion in another process."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", _CONVERT, source, target], stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous_memory(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0
    assert process.stdout is not None
    return time.perf_counter() - begin, float(process.stdout.read()), peak


def anonymous_memory(pid: int) -> int:
    """Bytes that a process has in memory and that are not pages of files; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0


def check(parts: Parts, source: dict[str, Any]) -> None:
    """Compare the data set with what was written into the source."""
    labels, sums = np.zeros(5, np.int64), np.zeros(FEATURES, np.int64)
    for block in parts.blocks():
        labels += np.bincount(block.labels().astype(np.int64), minlength=5)
        sums += (block.X.astype(np.float64) * 8).astype(np.int64).sum(axis=0)
        assert (block.sizes == source["sizes"][block.qid]).all()
    assert len(parts) == int((source["sizes"] > 0).sum())
    assert parts.n_documents == int(source["sizes"].sum())
    assert (labels == source["labels"]).all()
    assert (sums == source["sums"]).all()
    assert [count for _, count in parts.manifest.facts["labels"]] == source["labels"].tolist()
    parts.verify()


def main(rows: int) -> dict[str, Any]:
    """Measure once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "unsorted.csv"
        source = write_source(path, rows)
        size = path.stat().st_size
        seconds, cpu, peak = convert(path, Path(folder) / "lists")
        parts = Parts(Path(folder) / "lists")
        check(parts, source)
        assert not [one for one in Path(folder).iterdir() if one.name.startswith(".")]
    return {
        "rows": rows,
        "columns": FEATURES + 2,
        "queries": len(parts),
        "source_bytes": size,
        "parts_bytes": parts.manifest.bytes,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_anonymous_bytes": peak,
    }


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--save", action="store_true")
    given = options.parse_args()
    found = main(given.rows)
    assert found["peak_anonymous_bytes"] < MEMORY, found
    print(json.dumps(found))
    if given.save:
        TARGET.write_text(json.dumps(found, indent=1) + "\n")
