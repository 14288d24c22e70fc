"""The level of processors that kernels are optimized for, so that their bits do not depend on the machine.

Kernels that may reassociate sums are vectorized, and the width of a vector decides in which order a sum is taken: code
that LLVM optimizes for a processor with AVX-512 has other last bits than code for one with AVX2. Kernels are therefore
optimized for one level, whatever the processor, and translated to the instructions of the processor afterwards. Scores
are then the same on every processor of the level, and so is code from a pack (:mod:`.pack`), which is
optimized for the same level. Code that users compile with numba keeps its target.

On a processor below the level, or on another architecture, kernels are optimized for that processor.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from numba.core.registry import cpu_target


class Level(NamedTuple):
    """A level of processors.

    Attributes
    ----------
    name : str
        LLVM's name of the processor.
    features : tuple of str
        The features that a processor must have, by LLVM's names.
    implied : tuple of str
        Features that every processor of the architecture has.
    """

    name: str
    features: tuple[str, ...]
    implied: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All features as LLVM reads them."""
        return ",".join(f"+{feature}" for feature in (*self.implied, *self.features))


_V3 = "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave"

# By the architecture of LLVM's triple. x86-64-v3: Intel since Haswell (2013), AMD since Excavator (2015). Below it
# there is no fused multiplication and addition, and sums have other last bits.
LEVELS = {
    "x86_64": Level("x86-64-v3", tuple(_V3.split()), ("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2")),
    "aarch64": Level("generic", ("fp-armv8", "neon")),
}


def host_features() -> set[str]:
    """The features of this processor, by LLVM's names."""
    return {name for name, present in llvmlite.binding.get_host_cpu_features().items() if present}


@cache
def level() -> Level | None:
    """The level of this architecture if this processor has it."""
    found = LEVELS.get(llvmlite.binding.get_process_triple().partition("-")[0])
    if found is None or not set(found.features) <= host_features() or not numba.config.ENABLE_AVX:  # type: ignore[attr-defined]
        return None
    return found


@cache
def _machine(codegen: Any) -> Any:
    """LLVM's description of the level, for the passes of the optimizer."""
    meant = level()
    if meant is None:
        return codegen._tm
    options: dict[str, Any] = {"opt": numba.config.OPT}  # type: ignore[attr-defined]
    codegen._customize_tm_options(options)
    options |= {"cpu": meant.name, "features": meant.text}
    target = llvmlite.binding.Target.from_triple(llvmlite.binding.get_process_triple())
    return target.create_target_machine(**options)


@contextmanager
def _optimizing_for_the_level() -> Iterator[None]:
    """While this is open, which is under numba's lock, the optimizer takes the level for the processor."""
    codegen = cpu_target.target_context.codegen()
    before = codegen._tm
    codegen._tm = _machine(codegen)
    try:
        yield
    finally:
        codegen._tm = before


def optimize_for_the_level(compiler: Any) -> None:
    """Let one function be optimized for the level.

    Parameters
    ----------
    compiler : numba function compiler
        That of a dispatcher or of a C function.
    """
    original: Callable[[Any, Any], Any] = compiler.compile

    def compile(args: Any, return_type: Any) -> Any:
        with _optimizing_for_the_level():
            return original(args, return_type)

    compiler.compile = compile
