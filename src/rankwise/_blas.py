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


class _Holder:
    """One scope that is open."""


class _Limit:
    """The thread counts of all BLAS libraries: 1 while there is a holder, and what they were before after the last one.

    A count is global to the process. Scopes that overlap in several Python threads must therefore share one limit:
    if each restored what it had found, the last one to leave would restore the 1 of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # weak, so that a scope that an interrupt broke off before it could leave does not hold the limit for ever
        self._holders: WeakSet[_Holder] = WeakSet()
        self._before: list[int] | None = None

    def enter(self, holder: _Holder) -> None:
        with self._lock:
            libraries = _libraries()
            if self._before is None:
                self._before = [library.num_threads for library in libraries]
            self._holders.add(holder)
            for library in libraries:  # always: where BLAS uses OpenMP, every Python thread has a count of its own
                library.set_num_threads(1)

    def leave(self, holder: _Holder) -> None:
        with self._lock:
            self._holders.discard(holder)
            if not self._holders and self._before is not None:
                before, self._before = self._before, None
                for library, count in zip(_libraries(), before, strict=True):
                    library.set_num_threads(count)

    def after_fork(self) -> None:
        """Only the thread that forked lives on in a child: what other threads held is released."""
        self._lock = threading.RLock()
        before, self._before = self._before, None
        self._holders = WeakSet()
        for library, count in zip(_libraries() if before else [], before or [], strict=True):
            library.set_num_threads(count)


@cache
def _libraries() -> list[Any]:
    """Controllers of the BLAS libraries in this process; to find them takes milliseconds, to use one a microsecond."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own, which cannot be found before it is there
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


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
    holder = _Holder()
    try:
        _limit.enter(holder)
        yield
    finally:
        _limit.leave(holder)
