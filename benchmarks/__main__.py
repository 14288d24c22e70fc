"""Run the benchmarks, print their table, and save it: ``python3 run.py bench [name ...]``.

A full run writes docs/benchmarks.json and docs/benchmarks.md; a run of some benchmarks replaces their rows alone.
"""

import importlib
import json
import os
import pkgutil
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import benchmarks
from rankwise._progress import track
from rankwise._tables import Table

DOCS = Path(__file__).parents[1] / "docs"
QUALITY = "quality"  # not of speed: it has a page of its own, and takes half an hour
PEERS = ("numpy", "numba", "scikit-learn", "xgboost-cpu", "pytrec-eval-terrier", "ir-measures")


def names() -> list[str]:
    """Benchmarks are the modules of this folder that have a ``run``."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if name not in ("__main__", "clock", QUALITY))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("rankwise", *PEERS)},
    }


def as_markdown(results: dict[str, list[dict[str, Any]]], where: dict[str, Any]) -> str:
    """The page of the documentation."""
    lines = [
        "# Benchmarks",
        "",
        "Each row compares rankwise with a peer on the same task, measured in one run on one machine. The ratio is "
        "that of the peer to rankwise: above 1, rankwise needs less. `python3 run.py bench` repeats the measurements "
        "and writes this page.",
        "",
        "Measured on: " + ", ".join(f"{name} {value}" for name, value in where.items()) + ".",
        "",
        "| task | rankwise | peer | peer needs | rankwise needs | ratio | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in results.values():
        for row in rows:
            lines.append(
                f"| {row['work']} | {row['how']} | {row['peer']} | {_amount(row, 'peer')} "
                f"| {_amount(row, 'rankwise')} | {row['ratio']:.1f} x | {row['target']} |"
            )
    return "\n".join(lines) + "\n"


def _amount(row: dict[str, Any], whose: str) -> str:
    """Seconds or memory, in the unit that fits."""
    if f"{whose}_mib" in row:
        return f"{row[f'{whose}_mib']:.0f} MiB"
    seconds = row[f"{whose}_seconds"]
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


def main(wanted: list[str]) -> int:
    if wanted[:1] == [QUALITY]:
        return int(importlib.import_module("benchmarks.quality").main(wanted[1:]))
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        print(f"no benchmark is called {unknown[0]!r}; there are: {', '.join([*names(), QUALITY])}", file=sys.stderr)
        return 2
    stored = DOCS / "benchmarks.json"
    results: dict[str, Any] = json.loads(stored.read_text())["results"] if stored.exists() and wanted else {}
    for name in track(wanted or names(), "measuring"):
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        columns = ("work", "how", "peer", "ratio", "target")
        print(Table({column: [row[column] for row in results[name]] for column in columns}))
    where = machine()
    results = {name: results[name] for name in names() if name in results}
    stored.write_text(json.dumps({"machine": where, "results": results}, indent=1) + "\n")
    (DOCS / "benchmarks.md").write_text(as_markdown(results, where))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
