"""Say what pytest is doing where it would be silent: ``run.py test`` loads this as ``-p tests.heartbeat``.

Starting processes, collecting thousands of tests in each of them and compiling kernels take long, and pytest prints
nothing meanwhile. A line is printed after ten seconds without one: how many tests are done, about how long the rest
takes, and which ones are running. The file is imported before pytest redirects standard error, of which it keeps a
copy.
"""

import os
import threading
import time
from collections.abc import Callable

import pytest

from tests.costs import expected_seconds

SILENCE = 9.0
# Seconds at the expected pace that the estimate begins with: the first tests alone say little about the others.
BELIEVED = 60.0
_OUT = os.dup(2)


class Heartbeat:
    """What is known about the run.

    Parameters
    ----------
    clock : callable, default=time.monotonic
        The time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = self.heard = clock()
        self.first: float | None = None  # when the first test was begun
        self.total = self.done = self.processes = 0
        self.expected = 0.0  # seconds of one core for all tests
        self.left: dict[str, float] = {}  # those of the tests that have not ended
        self.running: dict[str, None] = {}

    def status(self) -> str:
        """One line."""
        now = self.clock()
        if not self.total:
            return f"collecting tests for {_minutes(now - self.began)}"
        line = f"{self.done:,} of {self.total:,} tests done in {_minutes(now - self.began)}"
        line += f", about {_minutes(self.seconds_left())} left"
        running = dict.fromkeys(one.partition("[")[0] for one in list(self.running))  # tests end meanwhile
        return line + (f"; running {', '.join(running)}" if running else "")

    def seconds_left(self) -> float:
        """The seconds that the other tests are expected to take, at the pace of those that have ended."""
        processes, left = max(self.processes, 1), sum(list(self.left.values()))
        passed = 0.0 if self.first is None else self.clock() - self.first
        return left / processes * (passed + BELIEVED) / ((self.expected - left) / processes + BELIEVED)

    def know(self, tests: list[str]) -> None:
        """Take these for all tests."""
        self.total, self.left = len(tests), expected_seconds(tests)
        self.expected = sum(self.left.values())

    def is_due(self) -> bool:
        """Whether nothing was heard for long; counts as heard from then on."""
        due = self.clock() - self.heard > SILENCE
        if due:
            self.heard = self.clock()
        return due

    # pytest's hooks; with several processes they are called in the one that the others report to

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All tests are known."""
        if not self.total:
            self.know([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """All tests are known to one process."""
        self.processes += 1
        self.know(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.first = self.clock() if self.first is None else self.first
        self.running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended: pytest prints a letter."""
        self.running.pop(nodeid, None)
        self.left.pop(nodeid, None)
        self.done += 1
        self.heard = self.clock()


def _minutes(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def pytest_configure(config: pytest.Config) -> None:
    """Start to speak, in the process that a person looks at."""
    if hasattr(config, "workerinput"):
        return
    heartbeat = Heartbeat()
    config.pluginmanager.register(heartbeat)
    ended = threading.Event()
    config.add_cleanup(ended.set)

    def speak() -> None:
        while not ended.wait(1):
            if heartbeat.is_due():
                os.write(_OUT, f"\nrun.py: {heartbeat.status()}\n".encode())

    threading.Thread(target=speak, name="heartbeat", daemon=True).start()
