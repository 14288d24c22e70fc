"""``run.py test`` is never silent for long."""

from types import SimpleNamespace

from tests.heartbeat import SILENCE, Heartbeat


def test_it_says_what_is_done_and_how_much_is_left():
    now = [100.0]
    beat = Heartbeat(lambda: now[0])
    now[0] += 65
    assert beat.status() == "collecting tests for 1:05"
    beat.pytest_collection_finish(SimpleNamespace(items=[1, 2, 3, 4]))
    assert beat.status() == "0 of 4 tests done in 1:05"
    beat.pytest_runtest_logstart("tests/a.py::test_a[with [brackets]]")
    now[0] += 10
    assert beat.status() == "0 of 4 tests done in 1:15; running tests/a.py::test_a"
    beat.pytest_runtest_logfinish("tests/a.py::test_a[with [brackets]]")
    assert beat.status() == "1 of 4 tests done in 1:15, about 0:30 left"


def test_with_several_processes_one_of_them_tells_how_many_tests_there_are():
    beat = Heartbeat(lambda: 0.0)
    beat.pytest_xdist_node_collection_finished(ids=["a", "b"])
    beat.pytest_collection_finish(SimpleNamespace(items=[]))
    assert beat.total == 2


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
