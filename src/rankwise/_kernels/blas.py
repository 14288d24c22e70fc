"""BLAS and LAPACK on one thread: their own threads would change how sums are rounded.

OpenBLAS and MKL divide a product or a factorization among their own threads, and the division decides how sums are
rounded. The package therefore calls them inside :func:`one_blas_thread`. ``threadpoolctl.threadpool_limits`` alone is
not enough: its scopes do not share one limit across Python threads.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet


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
    yet. The lock of :class:`_Limit` orders the threads of this package, so that right is taken away before and given up
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
