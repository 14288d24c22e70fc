"""A user who waits for the compiler is told, once, and one who does not wait is told nothing."""

import json
import logging
import os
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from rankwise._kernels import parallel
from rankwise._kernels.machine import compile_log, compile_progress
from tests.kernels.make_counts import parts
from tests.test_progress import LINE_ERASED, on_a_terminal

# What compiling a kernel for longer than the user's patience looks like from inside; numba's lock is held meanwhile.
COMPILING = textwrap.dedent("""
    import threading
    from numba.core.compiler_lock import global_compiler_lock
    from rankwise._kernels.parallel import announce_kernels
    from rankwise._kernels.machine import compile_log, compile_progress
    shown = threading.Event()
    show = compile_progress.CompileProgress._show

    def showing(self):
        show(self)
        shown.set()

    compile_progress.CompileProgress._show = showing
    compile_progress._PATIENCE, compile_progress._REDRAWN_EVERY = 0.0, 0.01
    announce_kernels("evaluate", "a ranker of another package")

    def compile_one(kernel, meanwhile=lambda: None):
        with global_compiler_lock:
            shown.clear()
            compile_log.compilation_begins(kernel, "(int64)", "")
            assert shown.wait(60)
            meanwhile()
            compile_log.compilation_ended(kernel, "(int64)")
""")


def while_compiling(code):
    return COMPILING + textwrap.dedent(code)


def test_a_terminal_shows_what_is_compiled_and_how_far_it_is():
    total = compile_progress.count_needed("first calls", ["evaluate"]).total()
    kernel = next(iter(compile_progress.count_needed("first calls", ["evaluate"])))
    sent = on_a_terminal(while_compiling(f"compile_one({kernel!r}); compile_one('another.package.formula')"))
    name = kernel.rpartition(".")[2].lstrip("_")
    assert f"rankwise: compiling kernels, 0 of about {total}: {name} (once on this machine)" in sent
    assert f"rankwise: compiling kernels, 1 of about {total}: formula (once on this machine)" in sent
    assert sent.endswith(LINE_ERASED)
    assert "\n" not in sent


def test_a_progress_bar_says_that_it_waits():
    sent = on_a_terminal(
        while_compiling("""
            from rankwise._progress import progress
            with progress("fitting", 3) as bar:
                compile_one("some.formula", bar._display._bar.refresh)
        """)
    )
    assert "fitting (compiling 0 of about" in sent
    assert "rankwise: compiling" not in sent


def test_an_interrupted_compilation_is_forgotten():
    sent = on_a_terminal(
        while_compiling("""
            import sys
            try:
                with global_compiler_lock:
                    shown.clear()
                    compile_log.compilation_begins("some.formula", "()", "")
                    assert shown.wait(60)
                    watch = compile_progress.display._watch
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
            watch.join()
            assert not compile_log.being_compiled()
            print("after", file=sys.stderr)
        """)
    )
    assert sent.endswith("after\r\n")
    assert sent.count("some.formula"[5:]) == 1


def run(code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_away_from_a_terminal_nothing_is_printed():
    done = run(while_compiling("compile_one('some.formula'); print(len(compile_log.record))"))
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_logging_has_one_line_per_process():
    done = run(
        while_compiling("""
            import logging
            logging.basicConfig(level="INFO", format="%(name)s %(levelname)s %(message)s")
            compile_one("some.formula")
            compile_one("other.formula")
        """)
    )
    total = compile_progress.count_needed("first calls", ["evaluate"]).total()
    assert done.stderr == (
        f"rankwise INFO compiling kernels (0 of about {total}), once on this machine; "
        "the command 'rankwise warm' does it beforehand\n"
    )


def test_a_warm_start_is_silent_on_a_terminal(tmp_path):
    code = """
        import rankwise as rw
        rw.evaluate([1, 0, 1], [0.5, 0.4, 0.3], "AP", group=[3])
    """
    run(code)
    assert on_a_terminal(code) == ""


def test_a_forked_child_listens_anew():
    run("""
        import os
        from rankwise._kernels.machine import compile_progress
        with compile_progress.display._lock:  # as a thread might hold it that the child does not have
            child = os.fork()
            if not child:
                free = compile_progress.display._lock.acquire(blocking=False)
                os._exit(0 if free else 1)
            assert os.waitpid(child, 0)[1] == 0
    """)


# ------------------------------------------------------------------------------------------------------- how far it is


def test_what_was_loaded_is_not_waited_for(monkeypatch):
    sources = {"a": "cache", "b": "compiler", "c": "compiler"}
    counts = {"first calls": {"fit": Counter(a=1, b=2, d=1)}, "workloads": {}}
    monkeypatch.setattr(compile_progress, "counts", lambda: counts)
    record = [compile_log.Origin(name, "()", source, "", 0.0) for name, source in sources.items()]
    monkeypatch.setattr(compile_log, "record", record)
    assert compile_progress.progress_of(["fit", "unknown"]) == (1, 3)  # b was compiled; another b and d are left
    assert compile_progress.progress_of(["unknown"]) == (2, 0)


def test_a_package_without_the_file_still_works(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_progress, "_COUNTS", tmp_path / "counts.json")
    assert compile_progress.counts.__wrapped__() == {"first calls": {}, "workloads": {}}


def stored():
    return json.loads(compile_progress._COUNTS.read_text())


WRITE = "write it anew: python3 run.py python -m tests.kernels.make_counts"


def test_the_file_has_every_call_and_workload():
    assert {part: sorted(calls) for part, calls in stored().items()} == {
        part: sorted(calls) for part, calls in parts().items()
    }, WRITE


NAMED = ["evaluate", "read_letor", "RidgeRanker", "demo"]
FORKING = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that hold modules and no compiled code")


def counted(part, names):
    """The kernels of each of these, in a new process, because earlier tests have loaded kernels into this one."""
    done = run(f"""
        import json
        from tests.kernels.make_counts import kernels_of, parts
        calls = parts()[{part!r}]
        print(json.dumps({{name: kernels_of(calls[name]) for name in {names!r}}}))
    """)
    return json.loads(done.stdout)


@FORKING
def test_the_file_is_up_to_date():
    calls = stored()["first calls"]
    assert counted("first calls", NAMED) == {name: calls[name] for name in NAMED}, WRITE


@pytest.mark.thorough
@FORKING
@pytest.mark.parametrize("part", stored())
def test_every_list_of_the_file_is_up_to_date(part):
    calls = stored()[part]
    assert counted(part, list(calls)) == calls, WRITE


def test_public_calls_say_what_they_are(monkeypatch):
    import rankwise as rw

    monkeypatch.setattr(parallel, "announced", {})
    lists = rw.make_lists(12, documents=(2, 5), features=2)
    rw.RidgeRanker(alpha=1.0).fit(lists)
    rw.evaluate(lists, lists.X[:, 0], "AP")
    assert list(parallel.announced) == ["RidgeRanker", "evaluate"]
    assert logging.getLogger("rankwise") is compile_progress.logger
