"""Bearer tokens with scopes: a file of hashes, compared in constant time.

A line of the file is ``name scopes hash``: a name for the logs, scopes separated by commas, and the SHA-256 of the
token. A token is 32 random bytes, which nobody can guess, so a plain hash is enough.
"""

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rankwise.errors import FileFormatError, RankwiseError

SCOPES = ("rank", "feedback", "read", "admin")


@dataclass(frozen=True)
class Caller:
    """Who sent a request, and what they may do."""

    name: str
    scopes: frozenset[str]


ANYBODY = Caller("anybody", frozenset(SCOPES))


class Tokens:
    """The tokens of a file.

    Parameters
    ----------
    path : str or path
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._known: list[tuple[bytes, Caller]] = []
        self.reload()

    def reload(self) -> None:
        """Read the file again; a malformed one raises an error and leaves the tokens unchanged."""
        known = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = line.split()
            scopes = parts[1].split(",") if len(parts) == 3 else []
            if not scopes or set(scopes) - set(SCOPES) or not re.fullmatch("[0-9a-f]{64}", parts[2]):
                raise FileFormatError(
                    f"{self.path}, line {number}: a line must be 'name scopes sha256', with scopes among "
                    f"{', '.join(SCOPES)}, separated by commas"
                )
            known.append((bytes.fromhex(parts[2]), Caller(parts[0], frozenset(scopes))))
        if not known:
            raise FileFormatError(
                f"{self.path} has no token: add one with `rankwise serve --tokens FILE --new-token NAME:SCOPES`"
            )
        self._known = known

    def caller(self, token: bytes) -> Caller | None:
        """Return the caller of a token, or None; takes the same time whichever token it is."""
        sent, match = hashlib.sha256(token).digest(), None
        for digest, caller in self._known:
            if hmac.compare_digest(sent, digest):
                match = caller
        return match


def add_token(path: str | os.PathLike[str], name: str, scopes: list[str]) -> str:
    """Make a token and append its hash to a file, which only its owner can read.

    Parameters
    ----------
    path : str or path
        The file; it is made if it is not there.
    name : str
        A name for the logs.
    scopes : list of str
        What the token allows.

    Returns
    -------
    str
        The token, which is kept nowhere.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) or not scopes or set(scopes) - set(SCOPES):
        raise RankwiseError(
            f"a token must be NAME:SCOPES with scopes among {', '.join(SCOPES)}, got {name!r}, {scopes}"
        )
    token = secrets.token_urlsafe(32)
    line = f"{name} {','.join(scopes)} {hashlib.sha256(token.encode()).hexdigest()}\n"
    with open(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b") as file:
        # an editor may have left the last line without an end
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        file.write(b"\n" * (file.read(1) not in (b"", b"\n")) + line.encode())
    return token


@lru_cache(64)  # of every request without tokens
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
