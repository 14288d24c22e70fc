"""Digests of states: JSON values and arrays, as files hold them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def canonical_json(value: Any) -> str:
    """The JSON text of a value, with sorted keys; what JSON cannot hold enters by its ``repr``."""
    return json.dumps(value, sort_keys=True, default=repr)


def digest_state(facts: Any, arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of JSON values and of arrays by name, with their types and shapes.

    Parameters
    ----------
    facts : object
        The JSON values.
    arrays : mapping of str to ndarray
        The arrays.

    Returns
    -------
    str
        64 hexadecimal digits, which do not depend on the order of the keys.
    """
    digest = hashlib.sha256(canonical_json(facts).encode())
    for name, array in sorted(arrays.items()):
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{name} {contiguous.dtype.str} {contiguous.shape}".encode())
        digest.update(contiguous.tobytes())
    return digest.hexdigest()


def digest_bytes(*parts: bytes) -> str:
    """BLAKE2b of some bytes, as 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        # the length keeps ("ab", "c") and ("a", "bc") apart
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
