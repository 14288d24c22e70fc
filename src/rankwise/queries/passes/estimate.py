"""What a fit on parts will cost: passes, bytes, and seconds at the speed at which one chunk was just computed."""

import time
from dataclasses import dataclass
from typing import Any

from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.work import Kept
from rankwise.queries.source import Job

# Below this many seconds of work per worker and pass, sending work to others costs more than it saves.
WORTH_SENDING = 0.1


@dataclass(frozen=True)
class Estimate:
    """The expected cost of a fit.

    Attributes
    ----------
    passes, most : int
        The usual number of passes over the data set, and the largest that the parameters allow.
    documents : int
        Documents per pass.
    bytes : int
        Bytes per pass.
    seconds : float
        Seconds per pass of one worker, by the time of one chunk in memory.
    workers : int
        The number of workers.
    executor : str
        The executor.
    unit : str, default="pass"
        What is counted, where passes come in groups.
    passes_of_unit : int, default=1
        The number of passes in a group.
    """

    passes: int
    most: int
    documents: int
    bytes: int
    seconds: float
    workers: int
    executor: str
    unit: str = "pass"
    passes_of_unit: int = 1

    @classmethod
    def of(cls, queries: ChunkedQueries, job: Job, arguments: tuple[Any, ...], passes: int, most: int) -> "Estimate":
        """Time one chunk, after it was computed once.

        Parameters
        ----------
        queries : ChunkedQueries
            The data set.
        job : Job
            What a pass computes.
        arguments : tuple
            What differs from pass to pass.
        passes, most : int
            The usual and the largest number of passes.

        Returns
        -------
        Estimate
            The cost.
        """
        work, kept = queries.work(job), Kept()
        number = len(queries.chunks) // 2
        first, last = queries.chunks[number]
        documents = int(queries.start[last] - queries.start[first])
        work.result(number, arguments, kept, "estimate")
        began = time.perf_counter()
        work.result(number, arguments, kept, "estimate")
        seconds = (time.perf_counter() - began) * queries.n_documents / max(1, documents)
        workers = queries.executor.workers(None)
        return cls(
            passes, max(passes, most), queries.n_documents, queries.bytes, seconds, workers, queries.executor.name
        )

    @property
    def seconds_a_unit(self) -> float:
        """Seconds per pass, or group of passes, on all workers, if they share it evenly."""
        return self.seconds / self.workers

    @property
    def seconds_a_pass(self) -> float:
        """Seconds per pass on all workers."""
        return self.seconds_a_unit / self.passes_of_unit

    @property
    def advice(self) -> str:
        """Who would compute fastest."""
        if self.seconds_a_pass < WORTH_SENDING:
            if self.executor == "threads":
                return "threads are fastest: a pass is too short to be sent to other processes"
            return f"threads would be faster: {self.seconds_a_pass:.3f} s per worker and pass are too short to be sent"
        if self.executor == "dask":
            return "the cluster is worth it: a pass takes longer than it costs to send"
        if self.seconds_a_pass > 100 * WORTH_SENDING:
            return "a cluster would be faster: on k machines like this one a pass takes about 1/k of the time"
        return f"{self.executor} are fastest on one machine; two machines would halve the time of a pass"

    def __str__(self) -> str:
        usual = self.passes * self.seconds_a_unit
        several = "passes" if self.unit == "pass" else f"{self.unit}s"
        each = "each" if self.passes_of_unit == 1 else f"in {self.passes_of_unit} passes each"
        who = f"{self.workers} {self.executor}{' workers' if self.executor == 'dask' else ''}"
        return (
            f"about {self.passes:,} {several} (at most {self.most:,}) over {self.documents:,} documents, "
            f"{self.bytes / 1e9:,.2f} GB {each}: {self.seconds_a_unit:,.2f} s per {self.unit} on {who}, about "
            f"{_duration(usual)} in all if the data stay in memory; {self.advice}"
        )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
