"""Which executor users mean: by name, as a client of Dask, or as an executor of their own."""

from typing import Any

from rankwise._errors import RankwiseError
from rankwise.data.passes.processes import Processes
from rankwise.data.passes.threads import Threads
from rankwise.data.passes.work import Executor

# Bytes of prepared state if nothing was said.
USUAL_LIMIT = 1 << 30


def executor_of(
    given: Any, workers: int | None = None, memory_limit: int | str | None = None, strict: bool = True
) -> Executor:
    """The executor that was meant; the parameters are those of :meth:`rankwise.Parts.on`."""
    limit = USUAL_LIMIT
    if memory_limit is not None:
        from rankwise.data.parts.convert import as_bytes  # which imports this module

        limit = as_bytes(memory_limit, "memory_limit", 1)
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
