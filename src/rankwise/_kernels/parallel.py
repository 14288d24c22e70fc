"""How public calls run compiled code: announced, on threads that change no bit, with BLAS on one, stopped by Ctrl-C.

Kernels release the GIL and work on a range of queries. The chunks, and so the bits, do not depend on the number of
threads. Nothing is summed across threads here: each chunk writes its own part of the output, or its result is returned
in order.

OpenBLAS and MKL divide a product or a factorization among their own threads, and the division decides how sums are
rounded. The package therefore calls them inside :func:`one_blas_thread`. ``threadpoolctl.threadpool_limits`` alone is
not enough: its scopes do not share one limit across Python threads.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError

Result = TypeVar("Result")

# Documents per chunk: many enough that the 50 us of a call into compiled code do not matter, few enough to balance.
CHUNK = 1 << 16


def threads(n_jobs: int | None = None) -> int:
    """The number of threads that ``n_jobs`` means: None and -1 mean every core that this process may use.

    Parameters
    ----------
    n_jobs : int, default=None
        The number of threads.

    Returns
    -------
    int
        1 or more.

    Raises
    ------
    RankwiseError
        If it is neither None nor -1 nor a positive integer.
    """
    if n_jobs is None:
        return cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or (n_jobs < 1 and n_jobs != -1):
        raise RankwiseError(f"n_jobs must be a positive integer, or None or -1 for all cores, got {n_jobs!r:.60}")
    return cores() if n_jobs == -1 else int(n_jobs)


def cores() -> int:
    """The number of cores that this process may use: those of its affinity, and no more than its CPU quota allows."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        found = os.cpu_count() or 1
    quota = _quota()
    return found if quota is None else max(1, min(found, math.ceil(quota)))


@cache
def _quota() -> float | None:
    """The CPU quota of this process in cores, as containers have one; None without a quota."""
    try:
        return cgroup_quota(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup").read_text())
    except (OSError, UnicodeDecodeError):  # not on Linux
        return None


def cgroup_quota(root: Path, groups: str) -> float | None:
    """The CPU quota of a control group and of those above it, in cores.

    Parameters
    ----------
    root : Path
        Where control groups are mounted.
    groups : str
        The text of ``/proc/self/cgroup``: a line per hierarchy, with its controllers and the path of the group.

    Returns
    -------
    float or None
        The smallest quota; None where there is none.
    """
    found = []
    for folder in control_groups(root, groups, "cpu"):
        quota = _numbers(folder / "cpu.max") or [
            *_numbers(folder / "cpu.cfs_quota_us"),
            *_numbers(folder / "cpu.cfs_period_us"),
        ]
        if len(quota) == 2 and min(quota) > 0:
            found.append(quota[0] / quota[1])
    return min(found, default=None)


def control_groups(root: Path, groups: str, controller: str) -> Iterator[Path]:
    """The folders of a control group and of those above it, for one controller.

    Parameters
    ----------
    root : Path
        Where control groups are mounted.
    groups : str
        The text of ``/proc/self/cgroup``: a line per hierarchy, with its controllers and the path of the group.
    controller : str
        "cpu", "memory" ...

    Yields
    ------
    Path
        The folders, of which not all need exist.
    """
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controllers if controllers else root  # without controllers: version 2, where all share one tree
        own = PurePosixPath(path.lstrip("/"))
        # a container may see the paths of its host, where only the root is its own
        yield from dict.fromkeys(top / part for part in (own, *own.parents, PurePosixPath()))


def _numbers(path: Path) -> list[float]:
    """The numbers in a file; none where it cannot be read, or says ``max``."""
    try:
        return [float(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []


# Values (documents x features) up to which an engine with threads of its own runs on one: growing a tree takes less
# than 5 ms there, and on a busy machine its threads wait for each other far longer than that.
_FEW_VALUES = 1_000_000
_forked = False


def engine_threads(n_jobs: int | None, n_values: int) -> int:
    """The number of threads for LightGBM and CatBoost.

    Their threads do not survive a fork: a child process that uses more than one waits for ever.

    Parameters
    ----------
    n_jobs : int or None
        The number of threads that was asked for.
    n_values : int
        Documents times features.

    Returns
    -------
    int
        1 in a forked process, and 1 for few values unless a number was asked for.
    """
    wanted = threads(n_jobs)
    return 1 if _forked or (n_jobs is None and n_values <= _FEW_VALUES) else wanted


def _after_fork() -> None:
    """Remember that this process was forked."""
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def query_chunks(start: NDArray[np.int64], size: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of whole queries, the same on every machine.

    Parameters
    ----------
    start : ndarray of int64, shape (n_queries + 1,)
        The offsets of the queries.
    size : int, default=None
        About how many documents a chunk has; None is CHUNK.

    Yields
    ------
    first, last : int
        The chunk of queries first..last-1.
    """
    count, size = len(start) - 1, CHUNK if size is None else size
    first = 0
    while first < count:
        last = int(np.searchsorted(start, start[first] + size, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last


def map_chunks(
    task: Callable[..., Result], chunks: Sequence[tuple[int, ...]], n_jobs: int | None = None
) -> list[Result]:
    """Run a task on threads for every chunk.

    Parameters
    ----------
    task : callable
        Takes the numbers of a chunk.
    chunks : sequence of tuple
        The arguments of the calls.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    results : list
        ``[task(*chunk) for chunk in chunks]``. Ctrl-C cancels the chunks that have not begun.
    """
    workers = min(threads(n_jobs), len(chunks))
    if workers <= 1:
        return [task(*chunk) for chunk in chunks]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task, *chunk) for chunk in chunks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


# ----------------------------------------------------------------------------------------------------------- calls


announced: dict[str, None] = {}  # the public calls so far, in order


def announce_kernels(*calls: str) -> None:
    """Name the public calls that are about to run. The number of kernels is then known when they are compiled.

    Parameters
    ----------
    *calls : str
        Names of public functions and rankers; unknown ones are ignored.
    """
    announced.update(dict.fromkeys(calls))


class Driver:
    """A compiled kernel that takes typed functions, from which Ctrl-C comes as what it is.

    numba calls Python back for the address of every function that it is given. Where Ctrl-C is raised in there, numba
    goes on with an argument less, and a TypeError takes the place of KeyboardInterrupt.

    Parameters
    ----------
    function : numba dispatcher
        The kernel.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *given: Any) -> Any:
        """Call the kernel."""
        try:
            return self.function(*given)
        except TypeError as error:
            if str(error).startswith(_LOST):
                raise KeyboardInterrupt from None
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


_LOST = ("_get_jit_address() missing", "_get_wrapper_address() missing")


# -------------------------------------------------------------------------------------------------------- BLAS


class _Scope:
    """One open scope; ``before`` holds the counts of libraries that have one count per Python thread."""

    def __init__(self) -> None:
        self.before: list[int] | None = None


class _Limit:
    """The thread counts of BLAS libraries: 1 while a scope is open, the former counts after the last one.

    Most libraries have one count for the process. Scopes that overlap in several Python threads must therefore share
    one limit: if each restored what it had found, the last one to leave would restore the 1 of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # weak references: a scope that an interrupt ended before it could leave must not hold the limit for ever
        self._open: WeakSet[_Scope] = WeakSet()
        self._before: list[int] | None = None

    def enter(self, scope: _Scope) -> None:
        """Open a scope: remember the counts, and set them to 1."""
        with self._lock:
            shared, own = _libraries()
            scope.before = [library.num_threads for library in own]
            if self._before is None:
                self._before = [library.num_threads for library in shared]
            self._open.add(scope)
            for library in (*shared, *own):
                _set_threads(library, 1)

    def leave(self, scope: _Scope) -> None:
        """Close a scope: restore the counts if it is the last one."""
        with self._lock:
            shared, own = _libraries()
            _restore(own, scope.before)
            self._open.discard(scope)
            if not self._open:
                before, self._before = self._before, None
                _restore(shared, before)

    def after_fork(self) -> None:
        """Release what any thread held: only the thread that forked lives on in a child process."""
        before, self._before = self._before, None
        self._lock, self._open = threading.RLock(), WeakSet()
        if before is not None:
            _restore(_libraries()[0], before)


def _restore(libraries: list[Any], counts: list[int] | None) -> None:
    """Set the former counts."""
    for library, count in zip(libraries, counts or (), strict=counts is not None):
        _set_threads(library, count)


def _set_threads(library: Any, count: int) -> None:
    """Set the thread count of a library.

    From 3.8 on, threadpoolctl ignores all threads but the first one that has set a count and has not left its own scope
    yet. The lock of :class:`_Limit` orders the threads of this package, so right is taken away before and given up
    after.
    """
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)
    library.set_num_threads(count)
    if let_go is not None:
        let_go(force=True)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Controllers of the BLAS libraries with one count per process, and of those with one count per Python thread.

    Finding them takes milliseconds, using one a microsecond.
    """
    import scipy.linalg  # noqa: F401  # loads a BLAS of its own, which cannot be found before
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [one for one in found if one.internal_api == "openblas" and one.threading_layer == "openmp"]
    return [one for one in found if one not in own], own


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Compute BLAS and LAPACK on the calling thread alone, in this scope and in all that overlap with it.

    Scopes may be nested and may overlap in several Python threads. The former counts come back when the last scope is
    left. A library that threadpoolctl does not know (Apple's Accelerate) is not changed.

    Yields
    ------
    None
        Nothing; use it as a context manager or as a decorator.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     values = np.linalg.eigvalsh(np.eye(3))
    >>> values
    array([1., 1., 1.])
    """
    scope = _Scope()
    try:
        _limit.enter(scope)
        yield
    finally:
        _limit.leave(scope)
