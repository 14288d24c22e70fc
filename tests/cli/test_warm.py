"""``rankwise warm``, and the processes that compile for it and for the demonstration."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

from rankwise._kernels.machine import compile_log
from rankwise.cli.compiling import Call, WouldCompileError, compile_in_processes, processes, without_compiler
from rankwise.errors import RankwiseError


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """The processes that are started find the tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def call(name, *arguments, kernels=()):
    return Call(f"{name} {arguments[1:2]}", f"tests.cli.calls:{name}", tuple(map(str, arguments)), Counter(kernels))


# ------------------------------------------------------------------------------------------------------- processes


def test_two_processes_do_not_compile_the_same_kernel(tmp_path):
    found = compile_in_processes([call("shared", tmp_path, "a", "b"), call("shared", tmp_path, "b", "a")], 2)
    assert (tmp_path / "log").read_text().count("\n") == 1
    assert {one.name for one in tmp_path.iterdir()} == {"a", "b", "kernel", "log"}  # the second call came to it
    assert found.kernels == {("shared", "()"): "compiler"}


def test_a_kernel_that_another_one_needs_is_compiled_with_it(tmp_path):
    assert compile_in_processes([call("nested", tmp_path)], 1).count("compiler") == 2


def test_what_a_call_prints_is_no_message(tmp_path):
    found = compile_in_processes([call("prints", tmp_path), call("nested", tmp_path)], 2)
    assert (found.count("pack"), found.count("cache"), found.count("compiler")) == (1, 0, 2)


@pytest.mark.parametrize(
    ("name", "why"), [("fails", "ValueError: of this kind"), ("dies", "the process that .* ended")]
)
def test_a_call_that_fails_is_named_after_the_others_are_made(tmp_path, name, why):
    with pytest.raises(RankwiseError, match=f"^{name} .*: {why}$"):
        compile_in_processes([call(name, tmp_path), call("shared", tmp_path, "a", "a")], 1)
    assert (tmp_path / "log").exists()


def test_a_check_stops_before_the_compiler(tmp_path):
    found = compile_in_processes([call("shared", tmp_path, "a", "a"), call("prints", tmp_path)], 1, check=True)
    assert list(found.lacking.values()) == ["shared"]
    assert found.count("pack") == 1
    assert not (tmp_path / "log").exists()


def test_ordinary_handlers_do_not_catch_what_would_compile():
    def work():
        try:
            compile_log.compilation_begins("some.kernel", "()", "")
        except Exception:
            return

    with pytest.raises(WouldCompileError, match=r"some\.kernel"), without_compiler():
        work()
    assert compile_log.being_compiled() == []
    with without_compiler():
        compile_log.record_load("some.kernel", "()", "cache")


@pytest.mark.parametrize(("jobs", "calls", "count"), [(3, 9, 3), (3, 2, 2), (None, 1, 1), (None, 99, None)])
def test_the_number_of_processes(jobs, calls, count):
    found = processes(jobs, range(calls))
    assert found == count if count is not None else 1 <= found <= 4


# ------------------------------------------------------------------------------------------------------ the command


def warm(tmp_path, *arguments):
    environment = os.environ | {"RANKWISE_CACHE_DIR": str(tmp_path / "cache"), "RANKWISE_PACK": "0"}
    command = [sys.executable, "-m", "rankwise", "warm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_what_was_warmed_is_found(tmp_path):
    before = warm(tmp_path, "Trees", "--check")
    assert before.returncode == 1
    assert before.stdout.startswith("trees would compile rankwise.")
    assert not list((tmp_path / "cache").rglob("*.kernel"))

    done = warm(tmp_path, "trees")
    assert done.returncode == 0
    first, place = done.stdout.splitlines()
    assert first.startswith("0 kernels from the pack, 0 from the cache, ")
    folder = place.removeprefix("compiled code is kept in ")
    assert len(list((tmp_path / "cache").glob("*/*.kernel"))) == len(os.listdir(folder)) > 1
    assert done.stderr.startswith("compiling kernels: ")

    again = warm(tmp_path, "trees", "--check", "--json", "--jobs", "2")
    told = json.loads(again.stdout)
    assert again.returncode == 0
    assert (told["workloads"], told["compiler"], told["lacking"]) == (["trees"], 0, {})
    assert told["cache"] >= 1
    assert told["folder"] == folder


def test_an_unknown_workload_is_refused(run):
    code, out, err = run("warm", "RigdeRanker")
    assert (code, out) == (2, "")
    assert err.startswith("rankwise: warm knows no 'RigdeRanker': choose among evaluate, ")


def test_ctrl_c_while_processes_are_started_is_no_other_error(monkeypatch):
    started, start = [], threading.Thread.start

    def start_one(thread):
        if started:
            raise KeyboardInterrupt
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(KeyboardInterrupt):
        compile_in_processes([Call(name, "math:sqrt", (2,)) for name in "ab"], jobs=2)
    started[0].join()


def test_ctrl_c_ends_every_process(tmp_path):
    environment = os.environ | {"RANKWISE_CACHE_DIR": str(tmp_path / "cache"), "RANKWISE_PACK": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "rankwise", "warm", "RidgeRanker", "evaluate", "--jobs", "2"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stderr.readline().startswith("compiling kernels")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.stderr.read()  # ends when nobody holds the pipe any more
    assert process.wait() == 130, said
    assert said.endswith("rankwise: stopped; no incomplete file was left\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
