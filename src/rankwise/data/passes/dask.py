"""The workers of a Dask cluster, which open the folder themselves and keep what they prepare for their chunks.

Dask moves and repeats the chunks of workers that are lost, and workers may come and go. None of this changes a bit:
results are those of single chunks, and are folded by the caller. What could change bits is other arithmetic: another
processor, or another version of a compiler. Every result therefore carries a digest of what its worker makes of a
probe, and the first chunk of every worker is computed by this process, too. A worker whose versions, digest or result
differ is refused by name, unless ``strict=False``.
"""

import hashlib
import platform
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._extras import require
from rankwise._kernels.drive import one_blas_thread
from rankwise.data.passes.journal import digest_of
from rankwise.data.passes.work import WINDOW, Kept, Work, in_order

# Works up to this size travel with every chunk; larger ones are sent to the workers once.
_SMALL = 1 << 12
# A chunk whose worker is lost so often is given up.
_LIVES = 5


class Cluster:
    """Compute chunks on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        The client.
    memory_limit : int, default=None
        The largest number of bytes of prepared state per worker.
    strict : bool, default=True
        Whether workers whose arithmetic differs raise an error.
    """

    name = "dask"

    def __init__(self, client: Any, memory_limit: int | None = None, strict: bool = True) -> None:
        require("distributed")
        if getattr(client, "asynchronous", False):
            raise RankwiseError("passes need a client that waits: found one with asynchronous=True")
        self.client, self._limit, self._strict = client, memory_limit, strict
        self._sent: dict[str, Any] = {}
        self._known: set[str] = set()
        self._lock = threading.RLock()

    def workers(self, n_jobs: int | None) -> int:
        """The number of worker processes, at least 1."""
        return max(1, len(self._addresses()))

    def _addresses(self) -> list[str]:
        return sorted(self.client.nthreads())

    def results(
        self, work: Work, numbers: Sequence[int], arguments: Sequence[Any], n_jobs: int | None
    ) -> Iterator[Any]:
        """The results of these chunks, in their order."""
        addresses = self._addresses()
        window = WINDOW * max(1, sum(self.client.nthreads().values()))
        given = self.client.scatter([tuple(arguments)], broadcast=True)[0] if _large(arguments) else tuple(arguments)

        def submit(number: int) -> _Repeated:
            return _Repeated(self, work, number, given, addresses, tuple(arguments))

        return in_order(submit, numbers, window)

    def submit(self, work: Work, number: int, arguments: Any, addresses: Sequence[str]) -> Any:
        """Start a chunk, on the worker that had it in the pass before if it is still there."""
        where: dict[str, Any] = {}
        if addresses:
            where = {"workers": [addresses[number % len(addresses)]], "allow_other_workers": True}
        return self.client.submit(
            _chunk, work.key, self._payload(work), number, arguments, self._limit, pure=False, retries=_LIVES, **where
        )

    def _payload(self, work: Work) -> Any:
        if len(work.pickled) <= _SMALL:
            return work.pickled
        with self._lock:
            if work.key not in self._sent:
                self._sent[work.key] = self.client.scatter(work.pickled, broadcast=True, hash=False)
            return self._sent[work.key]

    def send_again(self, work: Work) -> None:
        """Forget that a work was sent: all workers that held it are lost."""
        with self._lock:
            self._sent.pop(work.key, None)

    def check(self, worker: "WorkerFacts", found: Any, work: Work, number: int, arguments: tuple[Any, ...]) -> None:
        """Refuse a worker whose arithmetic is not that of this process: its first chunk is computed here, too."""
        if not self._strict or worker.address in self._known:
            return
        own = arithmetic()
        differs = [
            f"{name} {worker.facts.get(name)} there and {here} here"
            for name, here in own.facts.items()
            if worker.facts.get(name) != here
        ]
        # another processor is fine if its bits are those of this one: kernels are compiled for one level
        if not [one for one in differs if not one.startswith("processor")] and worker.digest == own.digest:
            here = work.result(number, arguments, Kept(0), work.key)
            if digest_of(here) == digest_of(found):
                self._known.add(worker.address)
                return
        raise RankwiseError(
            f"the worker {worker.address} computes other bits than this process "
            f"({'; '.join(differs) or 'with the same versions'}): use machines of one kind with one set of versions, "
            "or give strict=False"
        )

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop the work; workers drop what they prepared when they need the room."""
        with self._lock:
            self._sent.pop(spent.get("key", ""), None)

    def close(self) -> None:
        """The client is its user's."""


def _large(arguments: Sequence[Any]) -> bool:
    return sum(one.nbytes for one in arguments if isinstance(one, np.ndarray)) > _SMALL


class _Repeated:
    """The result of a chunk, sent out again if everything that it needs was lost."""

    def __init__(
        self, cluster: Cluster, work: Work, number: int, given: Any, addresses: Sequence[str], plain: tuple[Any, ...]
    ) -> None:
        self._cluster, self._work, self._number, self._plain = cluster, work, number, plain
        self._future = cluster.submit(work, number, given, addresses)

    def result(self) -> Any:
        lost = (require("distributed.scheduler").KilledWorker, require("concurrent.futures").CancelledError)
        for life in range(_LIVES):
            try:
                facts, found = self._future.result()
            except lost as error:
                if life + 1 == _LIVES:
                    raise RankwiseError(
                        f"{_LIVES} Dask workers were lost on the same chunk: there may be too little memory"
                    ) from error
                self._cluster.send_again(self._work)
                self._future = self._cluster.submit(self._work, self._number, self._plain, ())
                continue
            self._cluster.check(facts, found, self._work, self._number, self._plain)
            return found
        raise AssertionError("the loop returns or raises")

    def cancel(self) -> None:
        self._future.cancel()


# ------------------------------------------------------------------------------------------------------- on a worker

_works: dict[str, Work] = {}
_kept: dict[str, Kept] = {}
_lock = threading.Lock()


def _chunk(key: str, payload: bytes, number: int, arguments: tuple[Any, ...], limit: int | None) -> Any:
    """(what the worker is, result) of one chunk."""
    with _lock:
        kept = _kept.setdefault("all", Kept(limit))
        work = _works.get(key)
        if work is None:
            if len(_works) >= 64:  # the oldest is over, or comes again with its chunk
                oldest = next(iter(_works))
                del _works[oldest]
                kept.forget(oldest)
            work = _works[key] = Work.unpickled(payload)
    try:
        address = require("distributed").get_worker().address
    except ValueError:  # no worker: the same function in a test
        address = "here"
    own = arithmetic()
    return WorkerFacts(address, own.facts, own.digest), work.result(number, arguments, kept, key)


class WorkerFacts(NamedTuple):
    """What decides the bits of a worker: versions, the processor, and a digest of what they make of a probe."""

    address: str
    facts: Mapping[str, str]
    digest: str


_arithmetic: list[WorkerFacts] = []


def arithmetic() -> WorkerFacts:
    """The arithmetic of this process, found once: products and sums by the package's kernels, NumPy and BLAS."""
    if not _arithmetic:
        from llvmlite.binding import get_host_cpu_name

        from rankwise._kernels.rows import linear_scores

        facts = {name: version(name) for name in ("rankwise", "numpy", "scipy", "numba", "llvmlite")}
        facts |= {"processor": f"{platform.machine()} {get_host_cpu_name()}"}
        random = np.random.default_rng(20)
        X = random.normal(size=(500, 37)) * np.exp2(random.integers(-9, 9, size=37))
        found = hashlib.blake2b(digest_size=16)
        with one_blas_thread():
            for rows in (X, X.astype(np.float32)):
                scores = linear_scores(rows, random.normal(size=37), 1)
                for one in (scores, rows.T @ rows, rows.sum(axis=0), np.exp(-np.abs(scores) / 1e3)):
                    found.update(np.ascontiguousarray(one).tobytes())
            found.update(np.linalg.eigvalsh(X.T @ X).tobytes())
        _arithmetic.append(WorkerFacts("here", facts, found.hexdigest()))
    return _arithmetic[0]
