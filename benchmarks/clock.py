"""Time two ways of doing the same work in the same run, and say the ratio."""

import time
from collections.abc import Callable
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of ``times`` runs: what the work takes when nothing else disturbs it."""
    fastest = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - begin)
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
