"""``rankwise doctor``: what this installation consists of, and where its compiled code comes from."""

import json
import os
import platform
import sys
import warnings
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankwise._extras import EXTRAS, install_command, missing_from
from rankwise.cli import reading
from rankwise.cli.options import option
from rankwise.errors import RankwiseError

_PACKAGES = ("rankwise", "numba", "llvmlite", "numpy", "scipy", "scikit-learn")
_SOURCES = {"pack": "from the pack", "cache": "from the cache", "compiler": "by the compiler"}
# What each extra adds.
_ADDS = {
    "catboost": "boosted trees grown by CatBoost",
    "dask": "fits on a cluster",
    "frames": "Parquet and Arrow files",
    "lightgbm": "boosted trees grown by LightGBM",
    "onnx": "export to ONNX",
    "plot": "figures",
    "report": "HTML reports",
    "serve": "the service",
    "torch": "losses for PyTorch",
}


def doctor(
    workloads: bool = option(
        False, "Also run every part of the package, compiling what is missing, and count where code came from."
    ),
    only: list[str] | None = option(None, "With --workloads: run only this part; may be repeated."),
    as_json: reading.JsonOption = False,
) -> None:
    """Show versions, optional packages, threads, and where compiled code comes from.

    Numeric code runs as machine code. It comes from the installation if that has a pack of compiled code for this
    machine, else from a folder of the user, which keeps what was compiled before, else from the compiler. Without
    options nothing is compiled.

    Example: rankwise doctor

    Example: rankwise doctor --json
    """
    found: dict[str, Any] = {"versions": _versions(), "extras": _extras(), "threads": _threads()}
    found |= {"cache": _cache(), "pack": _pack()}
    if workloads or only:
        found["kernels"] = _run(only)
    if as_json:
        print(json.dumps(found))
        return
    print("\n".join(_lines(found)))


def _versions() -> dict[str, str]:
    """The versions of Python and of what compiles and runs kernels."""
    found = {"python": f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a source tree on the path
            found[name] = "not installed"
    return found


def _extras() -> dict[str, str]:
    """For each extra "installed", or the command that installs it."""
    return {
        extra: install_command(extra) if missing_from(extra) else "installed" for extra in sorted({*EXTRAS.values()})
    }


def _threads() -> dict[str, Any]:
    """How many threads are used unless told otherwise, and the cores of the machine."""
    from rankwise._kernels.parallel import cores

    return {"used": cores(), "cores": os.cpu_count()}


def _cache() -> dict[str, Any]:
    """The cache folder, how many kernels it holds, and why it is not used."""
    from rankwise._kernels.machine.cache import cache_path, private_folder

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            path = cache_path()
            folder = private_folder(path)
        except RuntimeError as error:
            return {"folder": None, "kernels": 0, "reason": str(error)}
    if folder is None:
        reason = str(said[0].message) if said else f"{path} cannot be made or written to"
        return {"folder": None, "kernels": 0, "reason": reason}
    return {"folder": folder, "kernels": sum(1 for _ in Path(folder).glob("*.kernel")), "reason": ""}


def _pack() -> dict[str, Any]:
    """The pack that would be used, and why it is not."""
    from rankwise._kernels.machine import pack

    path, opened = pack.FOLDER / pack.pack_name(), pack.open_installed()
    found = {"file": str(path), "found": path.exists(), "used": not isinstance(opened, str)}
    if isinstance(opened, str):
        return {**found, "kernels": 0, "features": [], "reason": opened}
    return {**found, "kernels": len(opened.entries), "features": opened.header["features"], "reason": ""}


def _run(only: list[str] | None) -> dict[str, Any]:
    """Run workloads, and count where code came from: by source, and each kernel that was not in the pack."""
    from rankwise._kernels.machine import compile_log
    from rankwise._progress import track
    from rankwise._workloads import workloads

    every = workloads()
    for name in only or ():
        if name not in every:
            raise RankwiseError(f"--only must be one of {', '.join(every)}, got {name!r:.60}")
    for name in track(only or list(every), "workloads"):
        every[name]()
    counts = Counter(one.source for one in compile_log.record)
    others = [one._asdict() for one in compile_log.record if one.source != "pack"]
    return {**{source: counts[source] for source in _SOURCES}, "outside_pack": others}


def _lines(found: dict[str, Any]) -> list[str]:
    """What people read."""
    versions, threads = found["versions"], found["threads"]
    lines = [f"rankwise      {versions['rankwise']}, in {Path(__file__).parents[1]}"]
    lines.append(f"Python        {versions['python']}: {sys.executable}")
    lines += [f"{name:<14}{text}" for name, text in versions.items() if name not in ("rankwise", "python")]
    lines += ["", "Optional packages (extras)"]
    for extra, state in found["extras"].items():
        installed = state == "installed"
        lines.append(f"  {extra:<12}{'yes' if installed else 'no':<5}{_ADDS[extra]}")
        lines += [] if installed else [f"{'':<19}to install it: {state}"]
    less = f", of {threads['cores']} cores of this machine" if threads["used"] != threads["cores"] else ""
    lines += ["", f"Threads       {threads['used']}{less}; results do not depend on it (--jobs, n_jobs=)"]
    lines += ["", *_about_code(found["cache"], found["pack"])]
    if "kernels" in found:
        kernels = found["kernels"]
        lines += ["", "kernels      " + ", ".join(f"{kernels[key]} {text}" for key, text in _SOURCES.items())]
        for one in kernels["outside_pack"]:
            seconds = f", {one['seconds']:.1f} s" if one["seconds"] else ""
            lines.append(f"  {one['kernel']}{one['signature']}: {_SOURCES[one['source']]}{seconds}; {one['reason']}")
    return lines


def _about_code(cache: dict[str, Any], pack: dict[str, Any]) -> list[str]:
    """Where compiled code comes from, and what to expect of the next call."""
    lines = ["Compiled code (where there is none, the first use of a part of the package takes seconds)"]
    if pack["used"]:
        processors = ", ".join(pack["features"])
        lines.append(f"  pack   {pack['kernels']} functions came with the installation: {pack['file']}")
        lines.append(f"         for processors with {processors}")
    else:
        lines.append(f"  pack   none came with the installation: {pack['reason']}")
    if cache["folder"]:
        lines.append(f"  cache  {cache['kernels']} functions were compiled before, and are kept in {cache['folder']}")
    else:
        lines.append(f"  cache  nothing is kept: {cache['reason']}")
    if not pack["used"]:
        lines.append(
            "  rankwise warm compiles everything now, for all later runs"
            if cache["folder"]
            else "  set RANKWISE_CACHE_DIR to a folder that you can write to: without one, every process compiles again"
        )
    return lines
