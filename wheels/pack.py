"""Build the pack of compiled kernels for this Python, numba and platform, into the source tree.

``python3 run.py pack`` runs the declared workloads (:mod:`rankwise._workloads`) in processes of their own, in which
numba compiles for a level of processors in place of this one:

1. Processes, one per core, share the workloads and leave what they compile in a cache.
2. Another process runs all of them again and finds everything there. What it loads is what Python calls; what was only
   compiled as a part of something else is not needed. These kernels, without numba's type annotations, are the pack.

The cache is kept, so that a second build compiles only what was edited since.

numba takes a compiled form whose types can be converted to, so that the order of calls decides for which types a kernel
is compiled. Here every kernel is compiled for exactly the types of every call: whatever a user calls first is found.
"""

import argparse
import itertools
import os
import pickle
import platform
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from rankwise._kernels.machine.level import LEVELS, Level

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "pack-cache"

PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"))


class PackBuildError(Exception):
    """Why there is no pack for this platform."""


def level() -> Level:
    """The level of processors that packs for this platform are made for."""
    here = (sys.platform, platform.machine())
    if here not in PLATFORMS:
        known = ", ".join(" ".join(one) for one in PLATFORMS)
        raise PackBuildError(
            f"there are no packs for {' '.join(here)}, only for {known}: kernels are compiled at first use"
        )
    return LEVELS[here[1]]


def target_environment(cache: Path) -> dict[str, str]:
    """The variables under which numba compiles for the level, into a cache of its own, and uses no pack."""
    meant = level()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "RANKWISE_"))}
    return {
        **inherited,
        "NUMBA_CPU_NAME": meant.name,
        "NUMBA_CPU_FEATURES": meant.text,
        "RANKWISE_CACHE_DIR": str(cache),
        "RANKWISE_PACK": "0",
    }


def build(out: Path, cache: Path = CACHE, names: list[str] | None = None, processes: int | None = None) -> None:
    """Build a pack.

    Parameters
    ----------
    out : Path
        The file to write.
    cache : Path, default=CACHE
        The folder in which compiled kernels are kept for the next build.
    names : list of str, default=None
        The workloads to cover; None takes all.
    processes : int, default=None
        How many processes compile; None takes one per core.

    Raises
    ------
    PackBuildError
        If there are no packs for this platform, or a workload failed.
    """
    environment = target_environment(cache)
    count = processes or len(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "wheels.pack"]
    chosen = names or []
    compiling = [
        subprocess.Popen([*command, "--compile", f"{part}/{count}", *chosen], env=environment, cwd=ROOT)
        for part in range(count)
    ]
    codes = [process.wait() for process in compiling]  # all of them, before anything is said
    if any(codes):
        raise PackBuildError("a workload failed, so that nothing was written")
    part = out.with_name(f"{out.name}.{secrets.token_hex(4)}.part")
    try:
        done = subprocess.run([*command, "--collect", str(part), *chosen], env=environment, cwd=ROOT, check=False)
        if done.returncode:
            raise PackBuildError("a workload failed, so that nothing was written")
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)


def build_wheels(folder: Path) -> None:
    """Build the wheel of this platform, which carries the packs in the source tree, and the pure one.

    Parameters
    ----------
    folder : Path
        Where they are written.

    Raises
    ------
    PackBuildError
        If the build backend fails.
    """
    level()
    for carries in ("packs", "nothing"):
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        environment = {**os.environ, "RANKWISE_WHEEL": carries}
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise PackBuildError("the wheel was not built")


# ------------------------------------------------------------------------------------------------- inside the processes


def compile_for_exact_types() -> None:
    """Make numba compile every kernel for exactly the types of every call; to be called before kernels are imported."""
    from numba.core import dispatcher

    from rankwise._kernels.machine import jit

    original, compiled = dispatcher._DispatcherBase.__init__, jit.compiled
    exact = True

    def begin(self: Any, *given: Any, exact_match_required: bool = False) -> None:
        original(self, *given, exact_match_required=exact)

    def compiled_for_one_signature(function: Any, signature: Any) -> Any:
        nonlocal exact
        exact = False  # the driver has this signature alone, and converts what it is given
        try:
            driver = jit.kernel(function.py_func, **function._cache._options)
        finally:
            exact = True
        return compiled(driver, signature)

    dispatcher._DispatcherBase.__init__ = begin
    jit.compiled = compiled_for_one_signature


def number_functions_apart() -> None:
    """Let numba's numbers of functions, which are parts of symbols, begin where no other process begins."""
    from numba.core.bytecode import FunctionIdentity

    # a user's process begins at 1; code of several builds may meet in one pack
    FunctionIdentity._unique_ids = itertools.count(10**12 + secrets.randbelow(10**9) * 10**6)


def run_workloads(names: list[str], part: int, count: int) -> None:
    """Run every ``count``-th of the named workloads, or of all."""
    from rankwise._workloads import workloads

    chosen = {name: work for name, work in workloads().items() if not names or name in names}
    for number, (name, work) in enumerate(chosen.items()):
        if number % count == part:
            work()
            print(f"pack: {name}", file=sys.stderr, flush=True)  # minutes pass


def collect(names: list[str], out: Path) -> None:
    """Run the workloads, and write what they load from the cache as a pack."""
    from numba.core.serialize import dumps

    import rankwise
    from rankwise._kernels.machine import compile_log
    from rankwise._kernels.machine.cache import KernelCache, cache_folder
    from rankwise._kernels.machine.jit import KernelLoader
    from rankwise._kernels.machine.pack import conditions, pack_bytes

    found: dict[str, bytes] = {}
    original = KernelLoader._from_cache

    def from_cache(self: Any, entry: Any, target_context: Any) -> Any:
        code, reason = original(self, entry, target_context)
        if code is not None and self._digest.exact:
            key = (*entry, target_context.codegen().magic_tuple())
            content = Path(KernelCache(cache_folder()).path(key)).read_bytes()
            reduced = list(pickle.loads(content[32:])[1])
            reduced[6] = ""  # type annotations, a text that only inspect_types() prints
            found["|".join(entry)] = dumps(("|".join(entry), tuple(reduced)))
        return code, reason

    KernelLoader._from_cache = from_cache
    run_workloads(names, 0, 1)
    compiled = sorted({one.kernel for one in compile_log.record if one.source == "compiler"})
    if compiled:
        raise PackBuildError(
            f"these kernels cannot be kept, or are not compiled alike every time: {', '.join(compiled)}"
        )
    header = {"rankwise": rankwise.__version__, "conditions": conditions(), "features": list(level().features)}
    out.write_bytes(pack_bytes(header, found))
    print(f"{len(found)} kernels, {out.stat().st_size / 1e6:.1f} MB")


def main(arguments: list[str]) -> int:
    """Build the pack into the source tree; the options are for the processes that it starts."""
    parser = argparse.ArgumentParser(prog="run.py pack", description=build.__doc__.splitlines()[0])
    parser.add_argument("--compile", help=argparse.SUPPRESS)
    parser.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--wheel", action="store_true", help="then build wheels with and without packs into dist/")
    parser.add_argument("names", nargs="*", help="workloads to cover, for a try; all of them by default")
    given = parser.parse_args(arguments)
    try:
        if given.compile or given.collect:
            number_functions_apart()
            compile_for_exact_types()
        if given.compile:
            run_workloads(given.names, *map(int, given.compile.split("/")))
        elif given.collect:
            collect(given.names, given.collect)
        else:
            from rankwise._kernels.machine.pack import FOLDER, pack_name

            FOLDER.mkdir(exist_ok=True)
            build(FOLDER / pack_name(), names=given.names)
            print(FOLDER / pack_name())
            if given.wheel:
                build_wheels(ROOT / "dist")
    except PackBuildError as reason:
        print(f"pack: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
