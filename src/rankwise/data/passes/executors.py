"""Which executor users mean: by name, as a client of Dask, or as an executor of their own."""

import re
from typing import Any

from rankwise._errors import RankwiseError
from rankwise.data.passes.processes import Processes
from rankwise.data.passes.threads import Threads
from rankwise.data.passes.work import Executor

# Bytes of prepared state if nothing was said.
USUAL_LIMIT = 1 << 30

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def executor_of(
    given: Any, workers: int | None = None, memory_limit: int | str | None = None, strict: bool = True
) -> Executor:
    """The executor that was meant; the parameters are those of :meth:`rankwise.Parts.on`."""
    limit = USUAL_LIMIT if memory_limit is None else as_bytes(memory_limit)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise RankwiseError(f"workers is a whole number from 1: found {workers!r:.60}")
    if given == "threads":
        return Threads(workers, limit)
    if given == "processes":
        return Processes(workers, limit)
    if hasattr(given, "submit") and hasattr(given, "scheduler_info"):
        from rankwise.data.passes.dask import Cluster

        return Cluster(given, limit, strict)
    if hasattr(given, "results") and hasattr(given, "workers"):
        return given  # type: ignore[no-any-return]
    raise RankwiseError(f"passes are computed by 'threads', 'processes' or a Dask client: found {given!r:.60}")


def as_bytes(given: int | str) -> int:
    """A number of bytes from a number or a text such as "1.5 GB".

    Parameters
    ----------
    given : int or str
        What the user gave.

    Returns
    -------
    int
        The bytes.

    Raises
    ------
    RankwiseError
        If it is neither, or not above 0.
    """
    if isinstance(given, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([kmgt]?)i?b?\s*", given.lower())
        if found is not None and float(found[1]) > 0:
            return int(float(found[1]) * _UNITS[found[2]])
    elif isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    raise RankwiseError(f"a memory limit is a number of bytes or a text such as '2GB': found {given!r:.60}")
