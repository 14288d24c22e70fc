"""Time two ways of doing the same work in the same run, and say the ratio."""

import time
from collections.abc import Callable
from typing import Any


def best_of(times: int, work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of ``times`` runs: what the work takes when nothing else disturbs it.

    With ``time.process_time`` as the clock, work on one thread may be disturbed.
    """
    fastest = float("inf")
    for _ in range(times):
        begin = clock()
        work()
        fastest = min(fastest, clock() - begin)
    return fastest


def row(work: str, peer: str, peer_seconds: float, seconds: float, how: str, target: str) -> dict[str, Any]:
    """One line of the table: how many times faster than the peer, and what was aimed at."""
    return {
        "work": work,
        "how": how,
        "peer": peer,
        "peer_seconds": peer_seconds,
        "rankwise_seconds": seconds,
        "ratio": peer_seconds / seconds,
        "target": target,
    }
