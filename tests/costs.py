"""About how many seconds of one core the longest test files take, with compiled kernels in the cache.

Files are begun in this order, so that no core waits for a long one at the end, and the time that is left is estimated
from it. The numbers need not be exact: the estimate learns the pace of the machine while it runs.
"""

from collections import Counter
from collections.abc import Iterable

SECONDS = {
    "rankers/test_threads.py": 60,
}
ORDINARY = 0.02  # a test of any other file


def file_of(test: str) -> str:
    """The file of a test by its id, relative to the folder of tests."""
    return test.partition("::")[0].removeprefix("tests/")


def expected_seconds(tests: Iterable[str]) -> dict[str, float]:
    """The seconds that each test is expected to take: an equal share of those of its file."""
    tests = list(tests)
    sizes = Counter(map(file_of, tests))
    return {test: SECONDS[name] / sizes[name] if (name := file_of(test)) in SECONDS else ORDINARY for test in tests}
