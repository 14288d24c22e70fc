"""Data sets that are larger than memory."""

from collections.abc import Iterator
from typing import Any

import rankwise as rw
from experiments.growth import billions_of, rows_of, workers_of
from rankwise._kernels.parallel import CHUNK
from rankwise.queries.passes.estimate import WORTH_SENDING
from rankwise.queries.passes.executors import USUAL_LIMIT
from rankwise.rankers._model_selection import MANY
from rankwise.rankers.linear import listnet, loss_ranker
from rankwise.rankers.smooth import smoothrank
from tests.prose.claims import claims, stated
from tests.prose.pages import stored

stated("scale.md", "the versions of the run", "PySpark 4.3.0 on Java 17")


@claims("scale.md")
def chunks() -> Iterator[str]:
    yield f"of about {CHUNK:,} documents"


@claims("scale.md")
def the_conversion_of_an_unsorted_table() -> Iterator[str]:
    found = stored("convert_parts")
    size, memory = (found[name] / 1e9 for name in ("source_bytes", "peak_anonymous_bytes"))
    yield (
        f"An unsorted CSV of {found['rows']:,} rows and {found['columns']} columns ({size:.1f} GB) with interleaved "
        f"ids of {found['queries']:,} queries becomes parts with at most {memory:.2f} GB of anonymous memory and "
        f"{found['cpu_seconds']:.0f} seconds of CPU time; counts, labels and sums equal those of the source"
    )


stated("scale.md", "examples", "Dask with 1, 2", "and 4 workers", "cut in three ways")
stated("scale.md", "what the tests try", "at 20 random bytes", "(20 times in the thorough")
stated("scale.md", "the size of a number", "8 bytes per feature for a gradient, and 8 bytes per pair of features")


@claims("scale.md")
def what_is_kept_between_passes() -> Iterator[str]:
    assert USUAL_LIMIT == 1 << 30
    yield "`memory_limit=` (1 GB"


@claims("scale.md")
def what_estimates_assume() -> Iterator[str]:
    queries = rw.make_lists(MANY + 1, documents=2, features=3).with_labels(None)

    def passes(ranker: Any) -> tuple[int, int]:
        return tuple(ranker._expected_passes(queries)[2:])

    assert passes(rw.RidgeRanker()) == (3, 5)
    assert passes(rw.RidgeCommittee()) == (4, 6)
    yield "| RidgeRanker, RidgeCommittee | 3 to 6,"
    yield f"| about {listnet._USUAL_STEPS} per penalty and fold |"
    yield f"| about {loss_ranker._USUAL_CALLS} per penalty and fold |"
    yield (
        f"| about {smoothrank._USUAL_STEPS} per stage: about {passes(rw.SmoothRank())[0]} for the usual grid and more "
        f"than {MANY:,} queries |"
    )
    yield f"Below about {1000 * WORTH_SENDING:.0f} ms of work per worker and pass"


stated("scale.md", "a size", "10^9 documents of 136 float32 features", "a machine of two cores")
stated("scale.md", "a unit", "at a gigabyte per second")


@claims("scale.md")
def growth() -> Iterator[str]:
    found = stored("growth")
    yield " ".join(rows_of(found))
    yield " ".join(workers_of(found))
    yield " ".join(billions_of(found))
    yield f"| processes | pass over {found['workers'][0]['documents']:,} documents, s |"
    per_value = [one["pass"] / one["features"] for one in found["features"]]
    assert per_value == sorted(per_value, reverse=True)
    yield "Per value it falls with the number of features"
    one, two = found["documents"][0], found["documents"][-1]
    assert 0.7 < (two["pass"] / two["documents"]) / (one["pass"] / one["documents"]) < 1.4
    yield "The cost of a pass is proportional to documents"
    assert 9 <= found["documents"][-1]["bytes"] / found["documents"][-1]["documents"] * 1e9 / 1e9 / 60 < 10
    yield "nine minutes of reading on one machine"
    usual = rw.SmoothRank()._expected_passes(rw.make_lists(MANY + 1, documents=2, features=3))[2]
    single = rw.SmoothRank(alpha=0.1)._expected_passes(rw.make_lists(MANY + 1, documents=2, features=3))[2]
    assert usual / single > 4


@claims("scale.md")
def twenty_million_documents() -> Iterator[str]:
    found = stored("out_of_core")
    one, committee = found["pass"], found["committee"]
    assert one["wall"] <= 1.3 * max(found["read cold"], one["in memory, wall"])
    assert max(one["peak"], committee["peak"]) < 2e9
    yield out_of_core_sentence(found)


def out_of_core_sentence(found: Any) -> str:
    one, committee = found["pass"], found["committee"]
    return (
        f"On {found['documents']:,} documents of {found['features']} features ({found['bytes'] / 1e9:.1f} GB), a fit "
        f"of RidgeCommittee took {committee['cpu']:.0f} CPU seconds and at most {committee['peak'] / 1e6:.0f} MB of "
        f"anonymous memory, and a pass of SmoothRank {one['cpu']:.1f} CPU seconds, {one['cpu'] / one['in memory']:.2f} "
        f"times the cost of the same rows in memory, and at most {one['peak'] / 1e6:.0f} MB "
        "(`python3 run.py python -m benchmarks.out_of_core`)."
    )
