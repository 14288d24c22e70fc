"""What every test may rely on: the folder of real data, and how hard hypothesis tries."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import SECONDS, file_of

# Several processes share the cores here. By default a thread of OpenMP (LightGBM, XGBoost, scikit-learn) that waits
# for the others spins, on the core that they need: fits of LightGBM then take many times their processor time. How a
# thread waits changes no bit, and how many there are stays as it is. The libraries read this when they are loaded, so
# it stands before every import of them; children inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A normal run tries the same examples every time, so that a failure is the change's own. A thorough run looks for
# new ones and prints how to see a failure again. Compilation makes first calls slow: no deadlines.
SLOW_FIRST_CALL = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=SLOW_FIRST_CALL)
settings.register_profile(
    "thorough", deadline=None, max_examples=2_000, print_blob=True, suppress_health_check=SLOW_FIRST_CALL
)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, then those with the most tests; the order within a file stays."""
    sizes, longest = Counter(file_of(item.nodeid) for item in items), list(SECONDS)

    def place(item: pytest.Item) -> tuple[int, int]:
        name = file_of(item.nodeid)
        return longest.index(name) if name in SECONDS else len(longest), -sizes[name]

    items.sort(key=place)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real ranking data that RANKWISE_DATA names."""
    named = os.environ.get("RANKWISE_DATA")
    if not named:
        pytest.skip("needs real ranking data: RANKWISE_DATA does not name a folder")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"RANKWISE_DATA names {named}, which is not a folder", pytrace=False)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run ``rankwise ARGUMENTS`` on a terminal of 80 columns: (exit code, standard output, standard error)."""
    from rankwise import _progress
    from rankwise.cli import main

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(_progress, "_REPORT_AFTER", 1e6)  # what is printed must not depend on how fast the machine is

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["rankwise", *map(str, arguments)])
        code = main()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call
