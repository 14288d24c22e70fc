"""``rankwise doctor``: what this installation consists of, and where its compiled code comes from."""

import json
import platform
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


def doctor(
    workloads: bool = option(
        False, "Also run every workload, compiling what is missing, and count where code came from."
    ),
    only: list[str] | None = option(None, "With --workloads: run only this one; may be repeated."),
    as_json: reading.JsonOption = False,
) -> None:
    """Show versions, extras, the cache folder, and whether the pack of compiled kernels is used; if not, why.

    Compiled code comes from the pack of the installation, from the cache folder of the user, or from the compiler, in
    this order. Without options nothing is compiled.

    Example: rankwise doctor

    Example: rankwise doctor --json
    """
    found: dict[str, Any] = {"versions": _versions(), "extras": _extras(), "cache": _cache(), "pack": _pack()}
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
    cache, pack = found["cache"], found["pack"]
    lines = [f"{name:<13}{text}" for name, text in found["versions"].items()]
    installed = [extra for extra, state in found["extras"].items() if state == "installed"]
    others = {extra: state for extra, state in found["extras"].items() if state != "installed"}
    lines += ["", f"extras       {', '.join(installed) or 'none'}"]
    lines += [f"             not installed: {extra}; run {command}" for extra, command in others.items()]
    lines += ["", f"cache        {cache['folder'] or 'none: ' + cache['reason']}"]
    if cache["folder"]:
        lines.append(f"             {cache['kernels']} compiled kernels")
    lines.append(f"pack         {pack['file'] if pack['used'] else 'not used: ' + pack['reason']}")
    if pack["used"]:
        lines.append(
            f"             {pack['kernels']} compiled kernels, for processors with {', '.join(pack['features'])}"
        )
    if "kernels" in found:
        kernels = found["kernels"]
        lines += ["", "kernels      " + ", ".join(f"{kernels[key]} {text}" for key, text in _SOURCES.items())]
        for one in kernels["outside_pack"]:
            seconds = f", {one['seconds']:.1f} s" if one["seconds"] else ""
            lines.append(f"  {one['kernel']}{one['signature']}: {_SOURCES[one['source']]}{seconds}; {one['reason']}")
    return lines
