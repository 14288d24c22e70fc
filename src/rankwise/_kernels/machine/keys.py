"""What the machine code of a kernel depends on, as one digest.

The compiled form of a function is decided by its bytecode, its constants and default arguments, and by the globals that
it names: numbers and arrays are compiled in, other kernels are compiled with it, and so on through everything that they
name. :func:`kernel_digest` hashes exactly that. Docstrings, comments, line numbers and the rest of the file do not
enter: only an edit that can change the code discards it, wherever the edit is.

Globals are taken as constants, as numba takes them. Objects that are not understood are represented by the file of the
function that names them: any edit of that file then counts.
"""

import dis
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

# What these hold depends on their versions alone; those that matter to machine code are part of every other key.
_FOREIGN = {"llvmlite", "numba", "numpy", "scipy", *sys.stdlib_module_names}
_HAS_DOCSTRING = 0x4000000  # the flag of Python 3.14
_READS_CONSTANT = frozenset(dis.hasconst)


class KernelDigest(NamedTuple):
    """The digest of a kernel with everything that it names.

    Attributes
    ----------
    hex : str
        The digest.
    exact : bool
        Whether everything was understood; otherwise whole files were hashed in place of objects.
    """

    hex: str
    exact: bool


class _Own(NamedTuple):
    """One function without those that it names.

    Attributes
    ----------
    digest : bytes
        Of its code, its constants and the values that it names.
    named : list of (function, bytes)
        The functions that it names, with their options.
    exact : bool
        Whether everything was understood.
    """

    digest: bytes
    named: list[tuple[Any, bytes]]
    exact: bool


def kernel_digest(function: Callable[..., Any], options: Mapping[str, Any]) -> KernelDigest:
    """Hash everything that the machine code of a function depends on, apart from types, versions and processor.

    Parameters
    ----------
    function : callable
        The plain function.
    options : mapping
        The options with which it is compiled.

    Returns
    -------
    digest : KernelDigest
        The same for functions that compile to the same code.

    Raises
    ------
    OSError
        If something is not understood, and there is no file that could be hashed in its place.
    """
    names = _Names(function)
    digest = hashlib.sha256(_concat(_encode(dict(options), names)))
    exact = names.exact
    numbers = {id(function): 0}  # of functions by identity, in the order in which they are met
    waiting = [function]
    while waiting:
        own = _own(waiting.pop())
        digest.update(own.digest)
        exact = exact and own.exact
        for named, compiled_with in own.named:
            if id(named) not in numbers:
                numbers[id(named)] = len(numbers)
                waiting.append(named)
            digest.update(b"%d " % numbers[id(named)] + compiled_with)
    return KernelDigest(digest.hexdigest(), exact)


def named_functions(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The plain functions of the kernels, intrinsics and functions that a function names."""
    return [named for named, _ in _own(function).named]


_known: "WeakKeyDictionary[Any, _Own]" = WeakKeyDictionary()


def _own(function: Any) -> _Own:
    """Describe one function, once."""
    found = _known.get(function)
    if found is None:
        names = _Names(function)
        digest = hashlib.sha256(_concat(_function_parts(function, names))).digest()
        found = _known[function] = _Own(digest, names.functions, names.exact)
    return found


def _concat(parts: Iterator[bytes]) -> bytes:
    """The pieces in one, each behind its length."""
    return b"".join(b"%d:" % len(part) + part for part in parts)


class _Names:
    """What the encoding of one function collects: the functions that it names, and whether all was understood."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.functions: list[tuple[Any, bytes]] = []
        self.exact = True


def _function_parts(function: Any, names: _Names) -> Iterator[bytes]:
    """The pieces that describe a function: code, defaults, cells and globals."""
    yield from _code_parts(function.__code__, function.__globals__, names)
    yield from _encode((function.__defaults__, function.__kwdefaults__), names)
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # nothing was assigned to it
            continue
        yield from _encode(content, names)


def _code_parts(code: CodeType, names_of_module: dict[str, Any], names: _Names) -> Iterator[bytes]:
    """The pieces of a code object: what is executed, its constants but the docstring, and the globals that it names."""
    yield code.co_code + getattr(code, "co_exceptiontable", b"")
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_HAS_DOCSTRING)
    yield repr((counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in (None, *code.co_consts[1:]) if _has_docstring(code) else code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant, names_of_module, names)
        else:
            yield from _encode(constant, names)
    builtins = names_of_module.get("__builtins__", {})
    builtins = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    # names of attributes are among these: one that is also a global adds to the digest, which does no harm
    for name in code.co_names:
        if name in names_of_module:
            value = names_of_module[name]
            yield from _encode(value, names)
            if isinstance(value, ModuleType):
                yield from _attributes(value, code.co_names, names)
        elif name in builtins:
            yield b"builtin"


def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant is a docstring, and nothing else."""
    if not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.startswith("<"):
        return False
    if sys.version_info >= (3, 14) and not code.co_flags & _HAS_DOCSTRING:
        return False
    if not code.co_consts or not isinstance(code.co_consts[0], str):
        return False
    written = code.co_code
    return not any(at == 0 and op in _READS_CONSTANT for op, at in zip(written[::2], written[1::2], strict=True))


def _attributes(module: ModuleType, wanted: tuple[str, ...], names: _Names) -> Iterator[bytes]:
    """What code could read from a module by these names."""
    inside = vars(module)
    for name in wanted:
        if name in inside:
            yield name.encode()
            yield from _encode(inside[name], names)


def _encode(value: Any, names: _Names) -> Iterator[bytes]:
    """The pieces that describe a value; functions are noted, to be described on their own."""
    kind = type(value)
    if value is None or value is Ellipsis or kind in (bool, int, str, bytes):
        yield f"{kind.__name__} {value!r}".encode("utf-8", "backslashreplace")
    elif kind in (float, complex):
        yield kind.__name__.encode() + np.asarray(value).tobytes()
    elif isinstance(value, (np.ndarray, np.generic)) and not np.asarray(value).dtype.hasobject:
        array = np.asarray(value)
        yield f"{kind.__name__} {array.dtype.descr} {array.shape} {array.flags.c_contiguous}".encode()
        yield array.tobytes()
    elif isinstance(value, (tuple, list)):
        yield f"{kind.__module__}.{kind.__qualname__} {getattr(kind, '_fields', '')} {len(value)}".encode()
        for one in value:
            yield from _encode(one, names)
    elif isinstance(value, (set, frozenset)):
        yield f"{kind.__name__} {len(value)}".encode()
        yield from sorted(_concat(_encode(one, names)) for one in value)
    elif isinstance(value, Mapping):
        yield f"{kind.__name__} {len(value)}".encode()
        for key in sorted(value, key=repr):
            yield from _encode(key, names)
            yield from _encode(value[key], names)
    elif isinstance(value, Dispatcher):
        yield b"kernel"
        options = _concat(_encode((value.targetoptions, value.locals), names))
        names.functions.append((value.py_func, options))
    elif isinstance(value, _Intrinsic):
        yield b"intrinsic"
        names.functions.append((value._defn, b""))
    elif isinstance(value, FunctionType) and not _is_foreign(value):
        yield b"function"
        names.functions.append((value, b""))
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__}".encode()
    elif isinstance(value, (types.Type, np.dtype)):
        yield f"{kind.__name__} {value}".encode()
    elif isinstance(value, type) and (_is_foreign(value) or hasattr(value, "_fields")):
        yield f"class {value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}".encode()
        yield from _encode(getattr(value, "_field_defaults", None), names)
    elif isinstance(value, (BuiltinFunctionType, FunctionType, np.ufunc)) or _is_foreign(value):
        yield f"{kind.__name__} {getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}".encode()
    else:
        names.exact = False
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        with open(inspect.getfile(names.function.__code__), "rb") as file:
            yield hashlib.sha256(file.read()).digest()


def _is_foreign(value: Any) -> bool:
    """Whether an object belongs to a package whose version decides what it is."""
    home = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(home, str) and home.partition(".")[0] in _FOREIGN


def type_text(kind: Any) -> str:
    """A numba type in full; that of a named tuple prints without its fields, whose order code depends on.

    Parameters
    ----------
    kind : numba type
        The type.

    Returns
    -------
    text : str
        Different for types for which a function compiles differently.
    """
    if isinstance(kind, types.BaseTuple):
        home = getattr(kind, "instance_class", tuple)
        members: Any = kind
        inside = ", ".join(map(type_text, members))
        return f"{home.__module__}.{home.__qualname__}{getattr(home, '_fields', '')}({inside})"
    return str(kind)
