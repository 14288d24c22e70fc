"""What every test may rely on: the folder of real data, how hard hypothesis tries, and which tests are run when."""

import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Several processes share the cores here. By default a thread of OpenMP (LightGBM, XGBoost, scikit-learn) that waits
# for the others spins, on the core that they need: fits of LightGBM then take many times their processor time. How a
# thread waits changes no bit, and how many there are stays as it is. The libraries read this when they are loaded, so
# it stands before every import of them; children inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Gates remember hold-outs in the folder of the user: not those of tests, which are the same in every run.
os.environ["RANKWISE_STATE_DIR"] = ""

# A normal run tries the same examples every time, so that a failure is the change's own. A thorough run looks for
# new ones and prints how to see a failure again. Compilation makes first calls slow: no deadlines.
SLOW_FIRST_CALL = [HealthCheck.too_slow]
settings.register_profile(
    "default", deadline=None, max_examples=40, derandomize=True, suppress_health_check=SLOW_FIRST_CALL
)
settings.register_profile(
    "thorough", deadline=None, max_examples=2_000, print_blob=True, suppress_health_check=SLOW_FIRST_CALL
)
settings.register_profile(
    "quick", deadline=None, max_examples=5, derandomize=True, suppress_health_check=SLOW_FIRST_CALL
)
settings.load_profile("default")

# ------------------------------------------------------------------------------------------------ which tests, in order

# The files that take longest are begun first, so that no core waits for one of them at the end.
LONGEST = ["rankers/test_threads.py", "rankers/test_every_ranker.py", "losses/test_every_fact.py", "cli/test_warm.py"]
# A quick run tries one example of a test, so many tests of a file, and no file that starts interpreters.
QUICK_TESTS_OF_A_FILE = 4
STARTS_INTERPRETERS = re.compile(r"\b(subprocess|multiprocessing|distributed|os\.fork|forked|RANKWISE_CACHE_DIR)\b")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one example of every test, a few tests of every file")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that start interpreters, in a quick run."""
    if config.getoption("quick") and collection_path.name.startswith("test_"):
        return STARTS_INTERPRETERS.search(collection_path.read_text(encoding="utf-8")) is not None or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Put the longest files first, then those with the most tests; the order within a file stays."""
    if config.getoption("quick"):
        leave_quick_ones(items, config)
    sizes = Counter(item.path for item in items)
    places = {config.rootpath / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path, len(places)), -sizes[item.path]))


def leave_quick_ones(items: list[pytest.Item], config: pytest.Config) -> None:
    """The first example of every test, and of these every so many in a file that has more than a few."""
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if first[item.nodeid.partition("[")[0]] is item:
            by_file.setdefault(item.path, []).append(item)
    kept = set()
    for own in by_file.values():
        kept.update(own[:: -(-len(own) // QUICK_TESTS_OF_A_FILE)])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


# ------------------------------------------------------------------------------------------------------------- progress


class Progress:
    """Say which tests are running after ten seconds without a letter: compiling kernels takes long in silence."""

    def __init__(self, config: pytest.Config) -> None:
        self.running: dict[str, None] = {}
        self.done, self.heard, self.config = 0, time.monotonic(), config
        threading.Thread(target=self.speak, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid.partition("[")[0]] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(nodeid.partition("[")[0], None)
        self.done, self.heard = self.done + 1, time.monotonic()

    def speak(self) -> None:
        while True:
            time.sleep(1)
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            if reporter and self.running and time.monotonic() - self.heard > 10:
                self.heard = time.monotonic()
                reporter.write_line(f"\n{self.done:,} tests are done; running {', '.join(list(self.running))}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and config.getoption("verbose") >= 0:
        config.pluginmanager.register(Progress(config))
    if config.getoption("quick"):
        settings.load_profile("quick")


# ------------------------------------------------------------------------------------------------------------- fixtures


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
