"""The file in which a gate counts: what was asked, of which hold-out, and every attempt with its answer.

The file is read and written under a lock, and replaced as a whole: an attempt is on the disk before its answer leaves
the gate, and a process that is killed leaves the file as it was before or after. A second, short record is kept in the
folder of the user, under the digest of the hold-out: how many attempts there were, and a digest of them. A state that
is behind its record, or tells of other attempts, was rolled back or copied, and raises an error; so does a second gate
on the same hold-out. What cannot be noticed: a state that was rolled back together with the record, or on a machine
that has none.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rankwise._files import path_of, refusing, take_lock, writing
from rankwise._store import canonical_json, digest_bytes
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.checks import plural

LAYOUT = 1
# Seconds to wait for another process, which holds the lock for as long as a test takes.
_PATIENCE, _PAUSE = 60.0, 0.02


@dataclass(frozen=True)
class Attempt:
    """One attempt and its answer.

    Attributes
    ----------
    model : str
        The digest of the model.
    against : str or None
        The digest of the model that it was compared with.
    level : float
        The level of its test.
    passed : bool
        The answer.
    queries : int
        The number of queries of the hold-out that count, or that have counted so far.
    about : str
        Which future queries the answer is about.
    note : str
        What only the keeper of the hold-out may know.
    tests : list of dict
        The running tests of queries that arrive; empty for a hold-out.
    hashes : list of int
        The content of the queries that have arrived.
    """

    model: str
    against: str | None
    level: float
    passed: bool
    queries: int
    about: str
    note: str = ""
    tests: list[dict[str, Any]] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Content:
    """What the file holds."""

    id: str
    question: dict[str, Any]
    holdout: dict[str, Any] | None
    attempts: list[Attempt]

    def history(self, count: int) -> str:
        """A digest of the first attempts, as far as they never change."""
        return digest_bytes(
            canonical_json([[one.model, one.against, one.level] for one in self.attempts[:count]]).encode()
        )

    def document(self) -> dict[str, Any]:
        """The content as JSON values, with a digest of all others."""
        found = {"gate": LAYOUT, **asdict(self)}
        return {**found, "check": digest_bytes(canonical_json(found).encode())}


class GateState:
    """The attempts of a gate, in a file or in memory.

    Parameters
    ----------
    path : str, path-like or None
        The file; None keeps everything in memory, until the process ends.
    question : dict
        What is asked, as JSON values; a file that asks something else raises an error.
    holdout : dict or None
        What identifies the hold-out; a file of another hold-out raises an error. None if queries arrive.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, question: dict[str, Any], holdout: dict[str, Any] | None
    ) -> None:
        self.path = None if path is None else Path(os.path.abspath(path_of(path)))
        self._content = _Content(secrets.token_hex(16), question, holdout, [])
        with self.locked():  # a file that cannot be used is an error at once
            pass

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts at the last look."""
        return list(self._content.attempts)

    @contextmanager
    def locked(self) -> Iterator[list[Attempt]]:
        """The attempts as they are on the disk, for as long as nobody else can write them."""
        if self.path is None:
            yield self.attempts
            return
        with _lock(self.path):
            self._read(self.path)
            yield self.attempts

    def write(self, attempts: list[Attempt]) -> None:
        """Keep these attempts; to be called inside of :meth:`locked`, before an answer is shown."""
        self._content = replace(self._content, attempts=list(attempts))
        if self.path is None:
            return
        with writing(self.path) as part:
            part.write_text(json.dumps(self._content.document(), indent=1) + "\n", encoding="utf-8")
        self._write_record(self.path)

    # ------------------------------------------------------------------------------------------- the file

    def _read(self, path: Path) -> None:
        """Read the file, or make it; raises an error if it is not the state of this gate."""
        asked = self._content
        if not path.exists():
            self._check_record(path, None)
            self.write(asked.attempts)
            return
        found = _parse(path)
        if found.holdout != asked.holdout:
            raise RankwiseError(
                f"{path} counts attempts on other queries: its hold-out was {_in_words(found.holdout)}, got "
                f"{_in_words(asked.holdout)}; a changed hold-out needs a gate of its own, and the queries of the old "
                "one may not be in it"
            )
        if found.question != asked.question:
            changed = [name for name in asked.question if found.question.get(name) != asked.question[name]]
            was, now = ({name: one.get(name) for name in changed} for one in (found.question, asked.question))
            raise RankwiseError(f"{path} asks another question, which is fixed: it asks {was}, got {now}")
        self._check_record(path, found)
        self._content = found

    # ------------------------------------------------------------------------------------------- the second record

    def _record_path(self) -> Path | None:
        """Where the second record is; None where this user has no folder."""
        folder, content = user_state(), self._content
        key = content.id if content.holdout is None else digest_bytes(canonical_json(content.holdout).encode())
        return None if folder is None else folder / "gates" / f"{key}.json"

    def _check_record(self, path: Path, found: _Content | None) -> None:
        """Compare the second record with the file, or with its absence."""
        if found is not None and found.holdout is None:
            self._content = replace(self._content, id=found.id)
        place = self._record_path()
        try:
            record = json.loads(place.read_text(encoding="utf-8")) if place is not None else None
            known, attempts = (record["id"], record["attempts"]) if record else (None, 0)
            history, values, kept = (record[name] for name in ("history", "values", "state")) if record else ("", 0, "")
        except (OSError, ValueError, LookupError, TypeError):  # no record, or one that nobody can read
            return
        if known is None or not (attempts or values):  # nothing was asked, so nothing is known of the hold-out
            return
        if found is None or found.id != known:
            raise RankwiseError(
                f"these queries are the hold-out of a gate whose state is {kept}, with {plural(attempts, 'attempt')}: "
                "ask that gate, because the answers of two gates on the same queries are not covered by either "
                f"({place} remembers it)"
            )
        behind = len(found.attempts) < attempts or _values(found.attempts) < values
        if behind or found.history(attempts) != history:
            raise RankwiseError(
                f"{path} is an older or a changed copy: it has {plural(len(found.attempts), 'attempt')}, and {place} "
                f"remembers {attempts:,} of {kept}; restore the newest state"
            )

    def _write_record(self, path: Path) -> None:
        """Remember the attempts a second time, where this user has a folder that can be written."""
        place, content = self._record_path(), self._content
        if place is None:
            return
        record = {
            "id": content.id,
            "state": str(path),
            "attempts": len(content.attempts),
            "values": _values(content.attempts),
            "history": content.history(len(content.attempts)),
        }
        with suppress(OSError, RankwiseError):  # without it, a state that was rolled back is not noticed
            place.parent.mkdir(parents=True, exist_ok=True)
            with writing(place) as part:
                part.write_text(json.dumps(record) + "\n", encoding="utf-8")


def user_state() -> Path | None:
    """The folder of this platform for what has to be kept; ``RANKWISE_STATE_DIR`` moves it, and "" is none."""
    moved = os.environ.get("RANKWISE_STATE_DIR")
    if moved is not None:
        return Path(moved) if moved else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home) / "rankwise" / "state"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "rankwise"
    return Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "rankwise"


def _parse(path: Path) -> _Content:
    """The content of a file; raises an error if no gate wrote it as it is."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["gate"] > LAYOUT:
            raise FileFormatError(f"{path} requires a newer version of rankwise: layout {document['gate']!r}")
        attempts = [Attempt(**one) for one in document["attempts"]]
        found = _Content(document["id"], document["question"], document["holdout"], attempts)
        intact = document["check"] == found.document()["check"]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path} is not the state of a gate: {type(error).__name__}: {error!s:.80}") from error
    if not intact:
        raise FileFormatError(f"{path} is damaged: its content is not what was written; restore the newest state")
    return found


def _values(attempts: list[Attempt]) -> int:
    """How many queries have arrived."""
    return sum(len(one.hashes) for one in attempts)


def _in_words(holdout: dict[str, Any] | None) -> str:
    """A hold-out in a message."""
    return "none" if holdout is None else f"{holdout['queries']:,} queries with the digest {holdout['digest'][:8]}"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """A lock beside the file, for as long as the body runs; nothing is locked where the system has no locks."""
    if not path.parent.is_dir():
        raise RankwiseError(f"{path} cannot be written: the folder {path.parent} does not exist")
    with refusing(path):
        held = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = time.monotonic() + _PATIENCE
        while take_lock(held) is None:
            if time.monotonic() > deadline:
                raise RankwiseError(f"{path} is in use by another process: ask again when that is done")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(held)
