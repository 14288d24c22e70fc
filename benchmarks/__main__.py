"""Run the benchmarks, print their tables, and save them: ``python3 run.py bench [name ...]``.

A full run writes docs/benchmarks.json and the pages made of it; a run of some benchmarks replaces their rows alone.
``--render`` writes the pages from the stored results and measures nothing. ``--save FILE`` measures for somebody else:
it writes a file to send, and leaves docs/ alone; ``--check`` and ``--add`` are for those who get it.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import page
from benchmarks.page import Results
from benchmarks.sent import FOLDER, Sent
from rankwise._files import writing
from rankwise._progress import track
from rankwise._tables import Table
from rankwise.errors import RankwiseError

QUALITY = "quality"  # not of speed: it has a page of its own, and takes half an hour
PEERS = (
    "numpy", "numba", "scikit-learn", "lightgbm", "xgboost-cpu", "catboost", "pytrec-eval-terrier", "ir-measures",
)  # fmt: skip


def names() -> list[str]:
    """Benchmarks are the modules of this folder that have a ``run``."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if "\ndef run()" in path.read_text("utf-8"))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = {}
    if hasattr(os, "sysconf"):  # Windows has none
        memory["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **memory,
        "python": platform.python_version(),
        **{name: version(name) for name in ("rankwise", *PEERS)},
    }


def measured(wanted: list[str]) -> Results:
    """Run benchmarks one after the other, and print the table of each."""
    results: Results = {}
    for name in track(wanted, "measuring"):
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        columns = ("work", "how", "peer", "ratio", "target")
        print(Table({column: [row[column] for row in results[name]] for column in columns}))
    return results


def main(arguments: list[str]) -> int:
    if arguments[:1] == [QUALITY]:
        return int(importlib.import_module("benchmarks.quality").main(arguments[1:]))
    options = argparse.ArgumentParser(prog="python3 run.py bench", description="Run the benchmarks.")
    options.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names())}, or {QUALITY} alone; else all")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--render", action="store_true", help="write the pages and the figure from stored results")
    what.add_argument("--save", type=Path, metavar="FILE", help="write the results into a file to send, and no page")
    what.add_argument("--check", type=Path, metavar="FILE", help="check a file that was saved")
    what.add_argument("--add", type=Path, metavar="FILE", help="check a saved file, and put it on the page")
    given = options.parse_args(arguments)
    unknown = [name for name in given.names if name not in names()]
    if unknown:
        there = ", ".join([*names(), QUALITY])
        print(f"no benchmark is called {unknown[0]!r}; there are: {there}", file=sys.stderr)
        return 2
    if given.save and not given.save.resolve().parent.is_dir():  # said before an hour of measuring
        print(f"{given.save}: there is no folder {given.save.resolve().parent}", file=sys.stderr)
        return 1
    try:
        if given.check or given.add:
            found = Sent.read(given.check or given.add, set(names()))
            print(f"{sum(map(len, found.results.values()))} rows of {len(found.results)} benchmarks: complete")
            if given.add:
                FOLDER.mkdir(exist_ok=True)
                found.write(FOLDER / found.name())
                page.write()
            return 0
    except (RankwiseError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if not given.render:
        results = measured(given.names or names())
        if given.save:
            some = {name: rows for name, rows in results.items() if rows}  # without its data a benchmark has none
            Sent(machine(), date.today().isoformat(), some).write(given.save)
            return 0
        known: Results = json.loads(page.STORED.read_text())["results"] if page.STORED.exists() and given.names else {}
        known |= results
        results = {name: known[name] for name in names() if name in known}
        with writing(page.STORED) as part:
            part.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n", encoding="utf-8")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
