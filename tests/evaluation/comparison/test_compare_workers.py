"""Tasks side by side: their results in order, and all of them stopped by the first error or by Ctrl-C."""

import subprocess
import sys
import threading
import time

import pytest

from rankwise.evaluation.comparison.cells import resident
from rankwise.evaluation.comparison.run import share_out, side_by_side


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_results_stand_in_the_order_of_the_tasks(workers):
    done = []
    tasks = [lambda number=number: (time.sleep(0.002 * (5 - number)), number)[1] for number in range(5)]
    assert side_by_side(tasks, workers, lambda: done.append(threading.current_thread())) == list(range(5))
    assert done == [threading.main_thread()] * 5


def forever(begun, left):
    def task():
        begun.set()
        try:
            while True:
                time.sleep(0.001)
        finally:
            left.append(True)

    return task


def test_an_error_stops_the_others():
    begun, left = threading.Event(), []

    def fail():
        begun.wait()
        raise KeyError("here")

    with pytest.raises(KeyError):
        side_by_side([forever(begun, left), fail, forever(begun, left)], 2)
    assert left == [True]  # the one that had begun was left in good order, and the third never began


def test_ctrl_c_in_the_middle_stops_all():
    begun, left = [threading.Event(), threading.Event()], []
    tasks = [forever(one, left) for one in begun]
    finished = [lambda: None]

    def interrupt():
        for one in begun:
            one.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side([*finished, *tasks], 3, interrupt)
    assert left == [True, True]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rankwise-cell")]


def test_who_compiles_is_stopped_afterwards():
    begun, left, names = threading.Event(), [], {"__name__": "numba.core.compiler"}
    exec("def compile(steps):\n for step in steps: pass", names)

    def steps():
        begun.set()
        for _ in range(300):
            time.sleep(0.001)
            yield
        left.append("compiled")

    def task():
        names["compile"](steps())
        forever(begun, left)()

    def fail():
        begun.wait()
        raise KeyError("here")

    with pytest.raises(KeyError):
        side_by_side([task, fail], 2)
    assert left == ["compiled", True]


def test_cores_are_shared_out():
    assert share_out(2, 10, 1_000) == (2, 1)
    assert share_out(8, 3, 1_000) == (3, 2)
    assert share_out(1, 10, 1_000) == (1, 1)
    assert share_out(2, 10, 10_000_000) == (1, 2)  # one after the other, each on all cores


WATCHED = """
import time
from rankwise.evaluation.comparison.cells import MemoryWatch

with MemoryWatch() as watch:
    with watch.growth() as growth:
        block = bytearray(b"x") * (1 << 26)
        time.sleep(0.5)
        del block
    with watch.growth() as little:
        time.sleep(0.02)
print(growth.bytes, little.bytes)
"""


@pytest.mark.skipif(resident() is None, reason="the system does not say how large a process is")
def test_memory_that_was_there_in_between_is_seen():
    # In a process of its own: this one may give back, in the middle, what earlier tests left to be collected.
    told = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True).stdout
    growth, little = map(int, told.split())
    assert growth >= 1 << 25
    assert little < 1 << 25
