"""Keys of finished cells: digests of everything that a cell depends on.

Two cells with the same key are the same computation. A key covers the content of the data, class and parameters of the
ranker, seed, versions and code. A value that cannot be described exactly raises an error, so a changed input never
finds the result of an old run.
"""

import hashlib
import inspect
import json
import math
import pickle
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from rankwise._store import digest_bytes
from rankwise._version import __version__
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker

# Parameters of our rankers that change no bit of what is learned.
_HARMLESS = ("n_jobs", "verbose")
_HASHED = 1 << 24  # bytes of a matrix that are hashed together


def key_of(facts: Mapping[str, Any]) -> str:
    """The digest of plain facts, whatever their order."""
    return digest_bytes(json.dumps(facts, sort_keys=True).encode())


def fingerprint(queries: Queries | None) -> str | None:
    """The digest of everything in judged queries that a ranker or a measure could look at."""
    if queries is None:
        return None
    digest = hashlib.blake2b(f"{queries.X.dtype} {queries.X.shape}".encode(), digest_size=16)
    # in blocks, because X may be mapped from a file larger than memory
    step = max(1, _HASHED // max(1, queries.X.itemsize * queries.n_features))
    for first in range(0, queries.n_documents, step):
        digest.update(np.ascontiguousarray(queries.X[first : first + step]).data.cast("B") if queries.X.size else b"")
    # without document weights and judged marks the digest is that of earlier versions
    optional = (array for array in (queries.document_weight, queries.judged) if array is not None)
    for array in (queries.y, queries.start, queries.scattered_rows, queries.weight, *optional):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    names = (queries.names(), queries.feature_names, None if queries.docid is None else list(queries.docid))
    digest.update(repr(names).encode())
    return digest.hexdigest()


def describe(ranker: Any) -> dict[str, Any]:
    """The class of a ranker and its parameters as plain values.

    Parameters
    ----------
    ranker : object
        The ranker.

    Returns
    -------
    dict
        ``class`` and ``parameters``, without those that change no bit of the result.
    """
    kind = type(ranker)
    parameters = ranker.get_params(deep=False) if hasattr(ranker, "get_params") else vars(ranker)
    # other packages may well compute other bits with other threads
    left_out = _HARMLESS if isinstance(ranker, Ranker) else ()
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "parameters": {name: plain(value, name) for name, value in sorted(parameters.items()) if name not in left_out},
    }


def code_of(ranker: Any) -> str:
    """The version of the package that the class of a ranker comes from, or a digest of its source."""
    kind = type(ranker)
    package = kind.__module__.partition(".")[0]
    if package == "rankwise":
        return f"{__version__} {_own_sources()}"
    try:
        return version(package)
    except PackageNotFoundError:
        pass
    stated = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(stated, str):
        return stated
    try:
        return digest_bytes(Path(inspect.getfile(kind)).read_bytes())
    except (TypeError, OSError):  # typed in at a prompt
        methods = sorted((name, value) for name, value in vars(kind).items() if hasattr(value, "__code__"))
        return digest_bytes(*(name.encode() + _code(value) for name, value in methods))


@cache
def versions() -> Mapping[str, str]:
    """The versions of all packages whose change could change a bit of the result."""
    installed = {"rankwise": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    for package in ("numpy", "scipy", "numba", "piqp", "scikit-learn", "lightgbm"):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def plain(value: Any, name: str) -> Any:
    """Describe a parameter as JSON that no other value has.

    Parameters
    ----------
    value : object
        The value.
    name : str
        The name of the parameter, for messages.

    Returns
    -------
    object
        Plain values.

    Raises
    ------
    RankwiseError
        If the value cannot be described exactly.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}  # JSON has no word for it
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(item, name) for item in value]
    if isinstance(value, (Measure, Loss)):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": [str(value.dtype), list(value.shape), digest_bytes(np.ascontiguousarray(value).tobytes())]}
    if isinstance(value, Mapping):
        return {"pairs": [[plain(key, name), plain(item, name)] for key, item in value.items()]}
    if inspect.isfunction(value):
        return {"function": f"{value.__module__}.{value.__qualname__}", "code": digest_bytes(_code(value))}
    if hasattr(value, "get_params") and not isinstance(value, type) and not _looks_fitted(value):
        return {**describe(value), "code": code_of(value)}
    try:
        return {"object": type(value).__qualname__, "content": digest_bytes(pickle.dumps(value))}
    except Exception as error:  # pickle raises errors of any class
        raise RankwiseError(
            f"the parameter {name}={value!r:.60} cannot be described exactly, so the run could not be "
            "resumed: remove resume="
        ) from error


def _looks_fitted(value: Any) -> bool:
    """Whether an object has attributes that end in an underscore."""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(value))


def _code(function: Any) -> bytes:
    """The bytes that decide what a function does."""
    code = function.__code__
    # nested code objects have addresses in their repr; plain constants do not
    constants = [constant for constant in code.co_consts if isinstance(constant, (str, int, float, tuple, type(None)))]
    return bytes(code.co_code) + repr((constants, code.co_names, getattr(function, "__defaults__", None))).encode()


@cache
def _own_sources() -> str:
    """The digest of rankwise's own sources: an edited copy is another version, whatever its number."""
    package = Path(__file__).parents[2]
    # sorted, because file systems list files in any order
    files = sorted(package.rglob("*.py"))
    contents = ((str(file.relative_to(package)).encode(), file.read_bytes()) for file in files)
    return digest_bytes(*(part for content in contents for part in content))
