"""Compiled kernels that come with the package: one file per version of Python, version of numba and platform.

A pack holds machine code for a level of processors that nearly all have, made by ``python3 run.py pack`` from the
declared workloads. It saves the first use of an installation the time of the compiler. numba loads such code by the way
on which it loads its own cache.

::

    "rankwise pack 1\\n"   the digest of the header   the length of the header   header (JSON)   blob   blob   ...

The header says under which conditions the code is right (:func:`conditions`), which features the processor must have,
and for every kernel and signature where its blob lies, with its digest. A pack is used only if all conditions hold. A
kernel is used only if its name, which includes the digest of everything that it is compiled from
(:mod:`.keys`), and its types are found, and the digest of the blob is right. Otherwise the kernel is
looked for in the user's cache, or compiled: no pack can change a result or break a call.

Blobs are read by ``pickle``, which executes what they contain. A pack is therefore read from the folder of the
installed package alone, which is as trusted as the code in it, and never from a place that a user or the environment
names. ``RANKWISE_PACK=0`` turns packs off.
"""

import hashlib
import json
import os
import pickle
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core.compiler import CompileResult

from rankwise._kernels.machine.cache import python_tag, settings, versions
from rankwise._kernels.machine.level import host_features

FOLDER = Path(__file__).parent / "packs"
MAGIC = b"rankwise pack 1\n"
_DIGEST = hashlib.sha256().digest_size
_START = len(MAGIC) + _DIGEST + 8
_MOST_HEADER = 1 << 26


class PackError(Exception):
    """A pack that cannot be used; the message says why."""


def pack_name() -> str:
    """The name of the pack for this Python, numba and platform."""
    return f"{python_tag()}-numba-{numba.__version__}-{sysconfig.get_platform()}.pack"


def conditions() -> dict[str, Any]:
    """What has to be equal where a pack is made and where it is used."""
    major, minor, patch = llvmlite.binding.llvm_version_info
    return {
        **versions(),
        "llvm": f"{major}.{minor}.{patch}",
        "triple": llvmlite.binding.get_process_triple(),
        **{f"numba.config.{name}": value for name, value in settings().items()},
    }


class Pack:
    """A pack whose header was read.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    header : dict
        The header.
    entries : dict of str to list
        Offset, length and digest of the blob of each kernel and signature.

    Raises
    ------
    PackError
        If it is no pack, or the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                start = file.read(_START)
                length = int.from_bytes(start[-8:], "little")
                if len(start) < _START or start[: len(MAGIC)] != MAGIC or length > _MOST_HEADER:
                    raise PackError("it is not a pack of this version")
                written = file.read(length)
        except OSError as error:
            raise PackError(f"it cannot be read: {error.strerror}") from error
        if hashlib.sha256(written).digest() != start[len(MAGIC) : -8]:
            raise PackError("its header is damaged")
        self._begin = _START + length
        self.header: dict[str, Any] = json.loads(written)
        self.entries: dict[str, list[Any]] = self.header["entries"]

    def refuse_unless_fit(self) -> None:
        """Raise an error that names the first condition that does not hold in this process.

        Raises
        ------
        PackError
            If a version or a setting differs, or the processor lacks a feature.
        """
        for name, here in conditions().items():
            found = self.header["conditions"].get(name)
            if found != here:
                raise PackError(f"it was made for {name} {found}, and this is {here}")
        for name in ("CPU_NAME", "CPU_FEATURES"):
            if getattr(numba.config, name) is not None:
                raise PackError(f"NUMBA_{name} is set")
        lacking = sorted(set(self.header["features"]) - host_features())
        if lacking:
            raise PackError(f"this processor lacks {', '.join(lacking)}")

    def blob(self, name: str) -> bytes | None:
        """The blob of one kernel and signature.

        Parameters
        ----------
        name : str
            The name of the entry.

        Returns
        -------
        blob : bytes or None
            None if there is none.

        Raises
        ------
        PackError
            If the file is damaged there.
        OSError
            If the file cannot be read.
        """
        if name not in self.entries:
            return None
        offset, length, digest = self.entries[name]
        with open(self.path, "rb") as file:  # not mapped: a file that is truncated meanwhile would end the process
            file.seek(self._begin + offset)
            content = file.read(length)
        if hashlib.sha256(content).hexdigest() != digest:
            raise PackError("the pack is damaged there")
        return content

    def load(self, name: str, args: tuple[Any, ...], returns: Any, target_context: Any) -> Any:
        """Link a kernel in.

        Parameters
        ----------
        name : str
            The name of its entry.
        args : tuple of numba types
            The types of its arguments.
        returns : numba type or None
            The type of its result, if the caller knows it.
        target_context : numba target context
            Where the code is linked in.

        Returns
        -------
        result : numba CompileResult or None
            None if the pack does not hold it.

        Raises
        ------
        PackError
            If what is found there is something else.
        """
        content = self.blob(name)
        if content is None:
            return None
        found, reduced = pickle.loads(content)
        signature = reduced[3]
        if found != name or tuple(signature.args) != args or returns not in (None, signature.return_type):
            raise PackError("the pack holds something else there")
        return CompileResult._rebuild(target_context, *reduced)


@cache
def open_installed() -> Pack | str:
    """The pack of this installation if it can be used here, or the reason why there is none."""
    if os.environ.get("RANKWISE_PACK") == "0":
        return "RANKWISE_PACK=0 turns packs off"
    path = FOLDER / pack_name()
    if not path.exists():
        return f"this installation has no pack for {path.stem}"
    try:
        pack = Pack(path)
        pack.refuse_unless_fit()
    except Exception as error:  # whatever is wrong with it, kernels can be compiled
        return f"the pack {path.name} is not used: {error}"
    return pack


def pack_bytes(header: dict[str, Any], blobs: dict[str, bytes]) -> bytes:
    """A pack of these blobs.

    Parameters
    ----------
    header : dict
        ``conditions`` and ``features``, and what else should be noted.
    blobs : dict of str to bytes
        The pickled pair of name and numba's reduced compile result, by name.

    Returns
    -------
    pack : bytes
        The content of the file.
    """
    entries, at = {}, 0
    for name, blob in sorted(blobs.items()):
        entries[name] = [at, len(blob), hashlib.sha256(blob).hexdigest()]
        at += len(blob)
    written = json.dumps({**header, "entries": entries}).encode()
    start = MAGIC + hashlib.sha256(written).digest() + len(written).to_bytes(8, "little")
    return start + written + b"".join(blob for _, blob in sorted(blobs.items()))
