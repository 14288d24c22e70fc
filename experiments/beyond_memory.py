"""``rankwise train big.csv --memory`` on a file of three times that memory: does it end, certified, within the limit?

``python3 run.py python -m experiments.beyond_memory --rows 4500000 --memory 500MB`` writes a CSV of simulated queries
into a temporary folder, trains on it in another process, watches the anonymous memory of that process and of those that
it starts, removes everything, and prints the figures. With ``--words``, the table has categories, dates, amounts and
gaps, and features are built of it. ``--save`` writes docs/beyond_memory.json. RssAnon, which Linux counts, is memory
that no file backs: mapped parts and bins are not in it. Of it, an interpreter that has imported the package and loaded
its compiled code takes about as much as the first row says, whatever the data.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.convert_parts import anonymous_memory
from rankwise._extras import require
from rankwise._kernels.machine.cache import user_cache
from rankwise.queries.checks import as_bytes

TARGET = Path(__file__).parents[1] / "docs" / "beyond_memory.json"
BLOCK, PER_QUERY = 200_000, 40
BRANDS = np.array(["acme", "zeta", "north", "ovale", "quill", "rubin", "stern", "tally"])


def write_source(path: Path, rows: int, features: int, words: bool, seed: int = 0) -> None:
    """Write the CSV, a block of queries after the other."""
    arrow, csv = require("pyarrow"), require("pyarrow.csv")
    random = np.random.default_rng(seed)
    weight = random.normal(size=features) / np.sqrt(features)
    with open(path, "wb") as file:
        for first in range(0, rows, BLOCK):
            count = min(BLOCK, rows - first)
            X = np.round(random.normal(size=(count, features)), 4)
            score = X @ weight + 0.5 * X[:, 0] * X[:, 1]
            table: dict[str, Any] = {"qid": (np.arange(count) + first) // PER_QUERY}
            if words:
                brand = random.integers(0, len(BRANDS), count)
                days = random.integers(0, 2000, count)
                score += 0.4 * (brand % 3) - days / 1500
                table["brand"] = BRANDS[brand]
                table["listed"] = (np.datetime64("2019-01-01") + days).astype(str)
                table["price"] = [f"{value:.2f} EUR" for value in random.gamma(2.0, 30.0, count).tolist()]
            label = np.clip(np.rint(1 + score + 0.5 * random.normal(size=count)), 0, 4).astype(int)
            table = {"qid": table.pop("qid"), "label": label, **table}
            table |= {f"f{number}": X[:, number] for number in range(features)}
            if words:
                known = random.random(count) > 0.1
                table["f0"] = [value if there else None for value, there in zip(X[:, 0], known, strict=True)]
            csv.write_csv(arrow.table(table), file, csv.WriteOptions(include_header=first == 0, quoting_style="needed"))


def tree_of(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [one for child in task.read_text().split() for one in tree_of(int(child))]
        except OSError:  # it has ended
            continue
    return found


def watched(command: Sequence[str], environment: dict[str, str]) -> tuple[str, str, dict[str, float]]:
    """(output, errors, figures) of a command."""
    begin, peaks = time.perf_counter(), [0]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        trace = []
        while process.poll() is None:
            now = sum(map(anonymous_memory, tree_of(process.pid)))
            peaks.append(now)
            trace.append((round(time.perf_counter() - begin, 1), now >> 20))
            time.sleep(0.02)
        out.seek(0)
        err.seek(0)
        texts = out.read(), err.read()
    if os.environ.get("TRACE"):
        Path(os.environ["TRACE"]).write_text("\n".join(f"{a} {b}" for a, b in trace))
    if process.returncode:
        raise SystemExit(texts[1])
    return *texts, {"seconds": time.perf_counter() - begin, "peak": max(peaks)}


def main(rows: int, features: int, memory: str, words: bool, trees: int) -> dict[str, Any]:
    """Measure once."""
    python = [sys.executable, "-m", "rankwise", "train"]
    with tempfile.TemporaryDirectory(prefix="rankwise-beyond-") as folder:
        cache, source = Path(folder) / "cache", Path(folder) / "big.csv"
        for kernels in user_cache().glob("kernels-*"):  # compiling takes memory of its own, once
            shutil.copytree(kernels, cache / kernels.name)
        environment = {**os.environ, "RANKWISE_CACHE_DIR": str(cache)}
        small = Path(folder) / "small.csv"
        write_source(small, 2000, features, words)
        settings = ["--set", f"max_trees={trees}", "--out", str(Path(folder) / "model.rankwise"), "--json"]
        for _ in range(2):  # the first one may compile
            _, _, least = watched([*python, str(small), *settings], environment)
        write_source(source, rows, features, words)
        size = source.stat().st_size
        out, err, found = watched([*python, str(source), "--memory", memory, *settings], environment)
        said = next((line for line in err.splitlines() if "--memory" in line or "parts" in line), err[:300])
        result = json.loads(out.splitlines()[-1])
        headline = result["certificate"]["headline"]
        again = watched([*python, str(source), "--memory", memory, *settings], environment)
        assert again[0] == out, "the second run, on the parts of the first, has another model"
    return {
        "rows": rows,
        "columns": features + 2 + 3 * words,
        "words": words,
        "trees": trees,
        "bytes": size,
        "memory": as_bytes(memory, "memory", 1),
        "peak": found["peak"],
        "peak again": again[2]["peak"],
        "small": least["peak"],
        "seconds": round(found["seconds"], 1),
        "seconds again": round(again[2]["seconds"], 1),
        "measure": result["parts"]["test"]["mean"],
        "certified": 1 - headline["value"],
        "said": re.sub(r"/\S+/", ".../", said),
    }


def blocks(found: dict[str, Any]) -> dict[str, str]:
    """The block of docs/scale.md."""
    return {"beyond memory": "\n".join(map(sentence, found.values()))}


def sentence(one: dict[str, Any]) -> str:
    """The figures of one file."""
    what = " of numbers, categories, dates, amounts and gaps" if one["words"] else ""
    memory = f"--memory {one['memory'] / 1e6:.0f}MB"
    trees = f"--trees {one['trees']}"
    rows = f"--rows {one['rows']} --features {one['columns'] - 2 - 3 * one['words']}{' --words' * one['words']}"
    return (
        f"On a CSV of {one['rows']:,} rows and {one['columns']} columns{what} ({one['bytes'] / 1e6:,.0f} MB), "
        f"`rankwise train big.csv {memory}` ended with an nDCG@10 of {one['measure']:.4f}, certified "
        f"to be at least {one['certified']:.4f}, and at most {one['peak'] / 1e6:,.0f} MB of anonymous memory; "
        f"{one['peak again'] / 1e6:,.0f} MB in a second run on the same parts, and {one['small'] / 1e6:,.0f} MB on "
        f"2,000 rows (`python3 run.py python -m experiments.beyond_memory {rows} {memory} {trees}`)."
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=4_500_000)
    options.add_argument("--features", type=int, default=40)
    options.add_argument("--memory", default="500MB")
    options.add_argument("--trees", type=int, default=100)
    options.add_argument("--words", action="store_true")
    options.add_argument("--save", action="store_true")
    given = options.parse_args()
    figures = main(given.rows, given.features, given.memory, given.words, given.trees)
    print(json.dumps(figures, indent=1))
    if given.save:
        known = json.loads(TARGET.read_text()) if TARGET.exists() else {}
        known["words" if given.words else "numbers"] = figures
        TARGET.write_text(json.dumps(known, indent=1) + "\n")
