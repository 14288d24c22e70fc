"""Compiled code on the disk: one sealed file for each function and signature.

numba's own cache raises what the disk raises (no room, no permission), trusts what it reads, and names its files by an
index that two processes can overwrite for each other. Here a failure to write means that nothing is kept. A file begins
with the digest of the rest, and the rest with what it was compiled from: a file that is cut short, damaged or another
function's is not used, and the function is compiled again.
"""

import hashlib
import inspect
import os
import pickle
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_DIGEST = hashlib.sha256().digest_size


class KernelCache(NullCache):
    """The compiled forms of one function, as numba's dispatchers ask for them.

    Parameters
    ----------
    function : the plain function
    folder : where files are kept, private to the user (:mod:`rankwise._kernels.cache_folder`)
    form : what it is compiled to, as a function for Python is not one for C
    """

    def __init__(self, function: Callable[..., Any], folder: str, form: str) -> None:
        self._function = function
        self._folder = folder
        self._form = form
        # A function of another package can change without a change of ours: its source is part of the key.
        with open(inspect.getfile(function), "rb") as file:
            self._source = hashlib.sha256(file.read()).hexdigest()

    @property
    def cache_path(self) -> str:
        """The folder."""
        return self._folder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for this signature, or None where it has to be compiled (again)."""
        target_context.refresh()
        try:
            key = self._key(sig, target_context.codegen())
            with open(self._path(key), "rb") as file:
                if hasattr(os, "geteuid") and os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                sealed = file.read()
            content = sealed[_DIGEST:]
            if hashlib.sha256(content).digest() != sealed[:_DIGEST]:
                return None
            found, reduced = pickle.loads(content)
            return CompileResult._rebuild(target_context, *reduced) if found == key else None
        except Exception:  # not there, unreadable, of another numba: whatever it is, compiling mends it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature, if the disk takes it."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, data._reduce()))
        path = self._path(key)
        part = f"{path}.{secrets.token_hex(6)}.part"
        try:
            with open(part, "xb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
        except OSError:  # no room, no permission, a quota: then there is no cache
            with suppress(OSError):
                os.unlink(part)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Everything that the machine code depends on, the versions in the folder's name apart."""
        code = self._function.__code__
        place = (self._function.__module__, self._function.__qualname__, code.co_firstlineno)
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        written = hashlib.sha256(code.co_code + (dumps(cells) if cells else b"")).hexdigest()
        return (*place, self._form, self._source, written, sig, codegen.magic_tuple())

    def _path(self, key: tuple[Any, ...]) -> str:
        """One name for one key; two keys that print alike share it, and the one that was written last has it."""
        digest = hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:20]
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in self._function.__name__)
        return os.path.join(self._folder, f"{plain[:60]}-{digest}.kernel")
