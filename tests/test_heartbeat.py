"""``run.py test`` is never silent for long."""

from types import SimpleNamespace

import pytest

from tests.costs import ORDINARY
from tests.heartbeat import BELIEVED, SILENCE, Heartbeat


def session_of(tests):
    return SimpleNamespace(items=[SimpleNamespace(nodeid=one) for one in tests])


def test_it_says_what_is_done_and_how_much_is_left():
    now = [100.0]
    beat = Heartbeat(lambda: now[0])
    now[0] += 65
    assert beat.status() == "collecting tests for 1:05"
    beat.pytest_collection_finish(session_of(f"tests/a.py::{number}" for number in range(2000)))
    assert beat.status() == "0 of 2,000 tests done in 1:05, about 1:00 left"
    beat.pytest_runtest_logstart("tests/a.py::test_a[with [brackets]]")
    now[0] += 10
    assert beat.status().endswith(" left; running tests/a.py::test_a")
    beat.pytest_runtest_logfinish("tests/a.py::test_a[with [brackets]]")
    assert beat.status().startswith("1 of 2,000 tests done in 1:15, about 1:10 left")


def test_what_is_left_follows_the_pace_of_the_tests_that_have_ended():
    """A third took twice as long as expected; with as much belief in the expected pace, the rest takes half more."""
    now = [0.0]
    beat, tests = Heartbeat(lambda: now[0]), [f"tests/a.py::{number}" for number in range(6000)]
    beat.pytest_collection_finish(session_of(tests))
    beat.pytest_runtest_logstart(tests[0])
    now[0] += 2 * BELIEVED
    for one in tests[: len(tests) // 3]:
        beat.pytest_runtest_logfinish(one)
    assert len(tests) * ORDINARY == pytest.approx(3 * BELIEVED)
    assert beat.seconds_left() == pytest.approx(2 * BELIEVED * 3 / 2)


def test_with_several_processes_one_of_them_tells_how_many_tests_there_are():
    beat = Heartbeat(lambda: 0.0)
    beat.pytest_xdist_node_collection_finished(ids=["a", "b"])
    beat.pytest_xdist_node_collection_finished(ids=["a", "b"])
    beat.pytest_collection_finish(session_of([]))
    assert beat.total == 2
    assert beat.seconds_left() == pytest.approx(2 * ORDINARY / 2)


def test_it_speaks_only_after_a_silence():
    now = [0.0]
    beat = Heartbeat(lambda: now[0])
    assert not beat.is_due()
    now[0] += SILENCE + 1
    assert beat.is_due()
    assert not beat.is_due()  # it has just spoken
    now[0] += SILENCE + 1
    beat.pytest_runtest_logfinish("tests/a.py::test_a")
    assert not beat.is_due()  # pytest has printed a letter
