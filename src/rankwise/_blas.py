"""Linear algebra on one thread, so that its bits do not depend on how many threads BLAS may use.

OpenBLAS and MKL divide a product or a factorisation among their threads, and the division decides how sums are rounded.
What rankwise computes with them is therefore computed inside :func:`one_blas_thread`. Work that is worth several
threads is cut into fixed chunks by :mod:`rankwise._kernels.drive` instead.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet


class _Scope:
    """One scope that is open; ``before`` are the counts of libraries that have one for each Python thread."""

    def __init__(self) -> None:
        self.before: list[int] | None = None


class _Limit:
    """The thread counts of BLAS libraries: 1 while a scope is open, and what they were before after the last one.

    Most libraries have one count for the process. Scopes that overlap in several Python threads must therefore share
    one limit: if each restored what it had found, the last one to leave would restore the 1 of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # weak, so that a scope that an interrupt broke off before it could leave does not hold the limit for ever
        self._open: WeakSet[_Scope] = WeakSet()
        self._before: list[int] | None = None

    def enter(self, scope: _Scope) -> None:
        with self._lock:
            shared, own = _libraries()
            scope.before = [library.num_threads for library in own]
            if self._before is None:
                self._before = [library.num_threads for library in shared]
            self._open.add(scope)
            for library in (*shared, *own):
                _set_threads(library, 1)

    def leave(self, scope: _Scope) -> None:
        with self._lock:
            shared, own = _libraries()
            _restore(own, scope.before)
            self._open.discard(scope)
            if not self._open:
                before, self._before = self._before, None
                _restore(shared, before)

    def after_fork(self) -> None:
        """Only the thread that forked lives on in a child: what any thread held is released."""
        before, self._before = self._before, None
        self._lock, self._open = threading.RLock(), WeakSet()
        if before is not None:
            _restore(_libraries()[0], before)


def _restore(libraries: list[Any], counts: list[int] | None) -> None:
    for library, count in zip(libraries, counts or (), strict=counts is not None):
        _set_threads(library, count)


def _set_threads(library: Any, count: int) -> None:
    """Set the count of a library.

    From 3.8 on, threadpoolctl ignores all threads but the first one that has set a count and has not left its own scope
    yet. The lock above keeps order among our threads, so this right is taken from whoever has it, and left to nobody.
    """
    let_go = getattr(library, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)
    library.set_num_threads(count)
    if let_go is not None:
        let_go(force=True)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Controllers of the BLAS libraries with one count for the process, and of those with one for each Python thread.

    To find them takes milliseconds, to use one a microsecond.
    """
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own, which cannot be found before it is there
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [one for one in found if one.internal_api == "openblas" and one.threading_layer == "openmp"]
    return [one for one in found if one not in own], own


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have BLAS and LAPACK compute on the calling thread alone, in this scope and in all that overlap with it.

    Scopes may be nested and may overlap in several Python threads. The counts of before come back when the last scope
    is left. A library that threadpoolctl does not know (Apple's Accelerate) is left as it is.

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
