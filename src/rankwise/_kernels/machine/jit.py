"""Compile with numba, unless the machine code is there already: in the pack of the installation, or in the cache.

:func:`kernel` is the decorator of every compiled function, :func:`compiled` fixes the signature of a driver, and
:func:`typed_function` makes a kernel an argument of such a driver. :class:`KernelLoader` takes the place of numba's
cache in all of them. It looks into the pack (:mod:`~rankwise._kernels.machine.pack`), then into the cache of the user
(:mod:`~rankwise._kernels.machine.cache`). It reports to :mod:`~rankwise._kernels.machine.compile_log` where code came
from, and why something has to be compiled.
"""

import itertools
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from types import FrameType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.extending import typeof_impl

from rankwise._kernels.machine import compile_log, pack
from rankwise._kernels.machine import compile_progress as compile_progress  # it listens to compile_log
from rankwise._kernels.machine.cache import KernelCache, cache_folder
from rankwise._kernels.machine.keys import KernelDigest, kernel_digest, type_text
from rankwise._kernels.machine.level import optimize_for_the_level
from rankwise._kernels.parallel import Driver

_decorating = threading.Lock()

# The linker finds a function by its name, the types of its arguments and a number that numba counts from 1 in every
# process. Code that other processes compiled may hold the same closure with other contents under the same number, and
# the first that is loaded would be called for both. From a random start no two processes give the same number.
FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))

# Types of C-contiguous arrays in signatures; arrays of the caller may be read-only, and then only the _IN types fit.
FLOATS, FLOATS_IN = types.Array(types.float64, 1, "C"), types.Array(types.float64, 1, "C", readonly=True)
INTS, INTS_IN = types.Array(types.int64, 1, "C"), types.Array(types.int64, 1, "C", readonly=True)
MATRIX, MATRIX_IN = types.Array(types.float64, 2, "C"), types.Array(types.float64, 2, "C", readonly=True)


def features_in(dtype: "np.dtype[Any]") -> Any:
    """The type of a read-only feature matrix of float32 or float64 in a signature."""
    return types.Array(types.float32 if dtype == np.float32 else types.float64, 2, "C", readonly=True)


_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Hold Ctrl-C back until a block has ended.

    LLVM calls Python back while it links loaded code. An exception that is raised there is lost, and the code may be
    broken: the process would go on as if nothing had been said, or crash.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *received: came.append(received))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[0])


class KernelLoader(NullCache):
    """The compiled forms of one function, as numba's dispatchers request them.

    Parameters
    ----------
    function : callable
        The plain function.
    options : mapping
        The options with which it is compiled.
    form : {"Python", "C"}
        What it is compiled to: a function that Python calls, or one that C calls.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], form: str) -> None:
        self._function = function
        self._options = options
        self._form = form
        self._name = f"{function.__module__}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder of the user's cache."""
        return cache_folder()

    @interrupts_wait()
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for this signature, or None where it has to be compiled."""
        target_context.refresh()
        args, returns = sigutils.normalize_signature(sig)
        entry = self.entry(args, returns)
        found, missed = self._from_pack(entry, args, returns, target_context)
        if found is not None:
            compile_log.record_load(self._name, _type_names(args), "pack")
            return found
        found, reason = self._from_cache(entry, target_context)
        if found is not None:
            compile_log.record_load(self._name, _type_names(args), "cache", missed)
            return found
        compile_log.compilation_begins(self._name, _type_names(args), f"{missed}; {reason}")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature, if the disk allows it."""
        args, returns = sigutils.normalize_signature(sig)
        compile_log.compilation_ended(self._name, _type_names(args))
        entry, folder = self.entry(args, returns), cache_folder()
        if entry is not None and folder is not None:
            KernelCache(folder).save((*entry, data.codegen.magic_tuple()), data)

    def entry(self, args: Any, returns: Any) -> tuple[str, ...] | None:
        """What the code depends on, apart from versions, settings and processor; None if that cannot be found out."""
        if self._digest is None:
            return None
        signature = f"{'' if returns is None else type_text(returns)}({', '.join(map(type_text, args))})"
        return self._name, self._form, signature, self._digest.hex

    @cached_property
    def _digest(self) -> KernelDigest | None:
        try:
            return kernel_digest(self._function, self._options)
        except (OSError, TypeError):  # it uses what only its file could stand for, and was typed at a prompt
            return None

    def _from_pack(self, entry: Any, args: Any, returns: Any, target_context: Any) -> tuple[Any, str]:
        """The code in the pack, or None and why there is none."""
        opened = pack.open_installed()
        if isinstance(opened, str):
            return None, opened
        if entry is None or self._digest is None or not self._digest.exact:
            return None, "what it depends on is not known exactly enough for a pack"
        try:
            found = opened.load("|".join(entry), tuple(args), returns, target_context)
        except Exception as error:  # damaged, or of another numba: the function is compiled again
            return None, f"the pack's code was not used: {error}"
        return found, "" if found is not None else "the pack does not hold it for these types and this source"

    def _from_cache(self, entry: Any, target_context: Any) -> tuple[Any, str]:
        """The code in the cache of the user, or None and why there is none."""
        folder = cache_folder()
        if folder is None:
            return None, "there is no cache folder that could be used"
        if entry is None:
            return None, "what it depends on is not known"
        found = KernelCache(folder).load((*entry, target_context.codegen().magic_tuple()), target_context)
        return found, "" if found is not None else "the cache does not hold it"


def _type_names(args: Any) -> str:
    """The types of arguments as the record has them."""
    return f"({', '.join(map(str, args))})"


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``numba.njit`` that releases the GIL and divides as NumPy does; code comes from the pack or the cache if it can.

    Nothing is compiled at import: a kernel is compiled (or loaded) at its first call, or by :func:`compiled`.

    Parameters
    ----------
    function : callable, default=None
        The plain function; None makes a decorator with options.
    **options : keyword arguments
        The options of ``numba.njit``, such as ``fastmath`` and ``inline``.

    Returns
    -------
    kernel : numba dispatcher
        The compiled function, or the decorator.
    """

    def decorate(plain: Callable[..., Any]) -> Any:
        given = {"nogil": True, **_OPTIONS, **options}
        dispatcher = numba.njit(**given)(plain)
        if hasattr(dispatcher, "_cache"):  # not where NUMBA_DISABLE_JIT leaves it a plain function
            dispatcher._cache = KernelLoader(plain, given, "Python")
            optimize_for_the_level(dispatcher._compiler)
        return dispatcher

    return decorate if function is None else decorate(function)


def compiled(function: Any, signature: Any) -> Any:
    """A kernel compiled for exactly one signature, so that it can take typed functions.

    Parameters
    ----------
    function : numba dispatcher
        The kernel.
    signature : numba signature
        The only signature that it is compiled for.

    Returns
    -------
    function : numba dispatcher or Driver
        The same kernel.
    """
    if not function.signatures:
        with _decorating:
            if not function.signatures:
                function.compile(signature)
                function.disable_compile()
    takes_functions = any(isinstance(one, types.FunctionType) for one in signature.args)
    return Driver(function) if takes_functions else function


class TypedCFunc(CFunc):
    """A C function whose type is looked up; numba would make it anew for every call that a plain one is given to."""

    __wrapper_address__: Callable[[], int]


# numba asks with the function and a purpose, for which the default of dict.get stands in: every function is there.
_TYPES: dict[Any, Any] = {}
typeof_impl.register(TypedCFunc, _TYPES.get)


@cache
def typed_function(function: Any, signature: Any) -> Any:
    """A kernel as an argument of another one that was :func:`compiled` to take functions of this signature.

    The argument is a C function. The type of the kernel itself would have to be inferred at every call.

    Parameters
    ----------
    function : numba dispatcher
        The kernel.
    signature : numba signature
        Its signature.

    Returns
    -------
    function : TypedCFunc
        The C function.
    """
    made: Any = TypedCFunc(function.py_func, sigutils.normalize_signature(signature), locals={}, options=dict(_OPTIONS))
    made._cache = KernelLoader(function.py_func, _OPTIONS, "C")  # numba.cfunc compiles before a cache can be put there
    optimize_for_the_level(made._compiler)
    made.compile()
    made.__wrapper_address__ = int(made.address).__int__
    _TYPES[made] = types.FunctionType(made._sig)
    return made
