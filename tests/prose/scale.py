"""Data sets that are larger than memory."""

from collections.abc import Iterator

from rankwise._kernels.drive import CHUNK
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
