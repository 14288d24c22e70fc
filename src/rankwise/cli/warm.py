"""``rankwise warm``: compile everything beforehand, for images, caches of CI jobs and machines without a network."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from rankwise.cli import reading
from rankwise.cli.options import argument, option
from rankwise.errors import RankwiseError

if TYPE_CHECKING:
    from rankwise.cli.compiling import Call


def warm(
    names: list[str] | None = argument(None, "What will be used: rankers, evaluate, read_letor ... (default: all)."),
    jobs: int | None = option(None, "Processes (default: one per core, at most 4).", "-j", min=1),
    check: bool = option(False, "Compile nothing; exit code 1 if something would have to be compiled."),
    as_json: reading.JsonOption = False,
) -> None:
    """Compile everything that rankwise may need; no later process has to.

    Machine code goes to the cache folder, which RANKWISE_CACHE_DIR moves. What a pack in the wheel or the cache holds
    is not compiled again. Ctrl-C keeps what is ready.

    Example: rankwise warm

    Example: rankwise warm RidgeRanker evaluate --jobs 2
    """
    from rankwise._kernels.machine.cache import cache_folder
    from rankwise._progress import in_lines
    from rankwise.cli.compiling import compile_in_processes, processes

    calls = _calls(names)
    began = time.monotonic()
    with in_lines():
        what = "checking kernels" if check else "compiling kernels"
        done = compile_in_processes(calls, processes(jobs, calls), what, check)
    seconds, folder = time.monotonic() - began, cache_folder()
    numbers = {source: done.count(source) for source in ("pack", "cache", "compiler")}
    if as_json:
        lacking = {"lacking": done.lacking} if check else {}
        document = {"workloads": [call.name for call in calls], **numbers, **lacking}
        print(json.dumps({**document, "folder": folder, "seconds": round(seconds, 1)}))
    else:
        for name, kernel in done.lacking.items():
            print(f"{name} would compile {kernel}, and what comes after it")
        compiled = "" if check else f", {numbers['compiler']} compiled in {seconds:.0f} s"
        print(f"{numbers['pack']} kernels from the pack, {numbers['cache']} from the cache{compiled}")
        print(f"compiled code is kept in {folder}" if folder else "compiled code is not kept: no folder can be used")
    if done.lacking:
        raise typer.Exit(1)


def _calls(names: Sequence[str] | None) -> "list[Call]":
    """The calls of the named workloads, or of all."""
    from rankwise._kernels.machine.compile_progress import count_needed
    from rankwise._workloads import workloads
    from rankwise.cli.compiling import Call

    known = {name.lower(): name for name in workloads()}
    unknown = [name for name in names or () if name.lower() not in known]
    if unknown:
        raise RankwiseError(f"warm knows no {unknown[0]!r}: choose among {', '.join(known.values())}")
    chosen = dict.fromkeys(known[name.lower()] for name in names or known)
    return [Call(name, "rankwise.cli.warm:run_workload", (name,), count_needed("workloads", [name])) for name in chosen]


def run_workload(name: str) -> None:
    """Make the small calls that compile one workload.

    Parameters
    ----------
    name : str
        The workload.
    """
    from rankwise._workloads import workloads

    workloads()[name]()
