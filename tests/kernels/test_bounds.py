"""Bounds checks: an index outside of an array is an error in ``run.py test --boundscheck``, wherever it is made."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The index is outside of the array and inside the memory that the array is part of: harmless without checks.
WRONG = """
import numpy as np
from rankwise._kernels.machine.jit import kernel

@kernel
def beyond(values):
    return values[len(values)]
"""

WRONG_FORMULA = """
import numpy as np
from numba import types
from rankwise._kernels.machine.jit import compiled, kernel, typed_function

FORMULA = types.float64(types.Array(types.float64, 1, "C"))

@kernel
def beyond(values):
    return values[int(values[0])]

@kernel
def loop(formula, values):
    return formula(values)

def run(values):
    loop_of_formulas = compiled(loop, types.float64(types.FunctionType(FORMULA), *FORMULA.args))
    return loop_of_formulas(typed_function(beyond, FORMULA), values)

def test_right():
    assert run(np.arange(2.0, 8.0)[:4]) == 4.0

def test_wrong():
    run(np.arange(5.0, 11.0)[:4])
"""


def load_run_py():
    spec = importlib.util.spec_from_file_location("run_py", ROOT / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def child(*arguments, checked, folder):
    """A fresh interpreter in ``folder``, with or without bounds checks, and a cache of its own."""
    variables = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    variables.update(RANKWISE_CACHE_DIR=str(folder / "cache"), **({"NUMBA_BOUNDSCHECK": "1"} if checked else {}))
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False)


def test_a_wrong_index_raises_even_where_unchecked_code_is_in_the_cache(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    code = "import numpy as np; from wrong import beyond; print(beyond(np.arange(6.0)[:3]))"
    unchecked = child("-c", code, checked=False, folder=tmp_path)
    assert unchecked.stdout.split() == ["3.0"], unchecked.stderr  # and now it is in the cache
    checked = child("-c", code, checked=True, folder=tmp_path)
    assert checked.returncode == 1
    assert "IndexError: index is out of bounds" in checked.stderr
    again = child("-c", code, checked=False, folder=tmp_path)
    assert again.stdout.split() == ["3.0"], again.stderr
    assert sorted(folder.name.endswith("-checked") for folder in (tmp_path / "cache").iterdir()) == [False, True]


def test_a_wrong_index_in_a_formula_that_a_compiled_loop_calls_fails_the_test(tmp_path):
    """An exception cannot pass through the loop; Python reports it as unraisable, and run.py's options make it fail."""
    (tmp_path / "test_formula.py").write_text(WRONG_FORMULA)
    options = [*load_run_py().CHECKED_OPTIONS, "-p", "no:cacheprovider", "-rA", "-q", "test_formula.py"]
    found = child("-m", "pytest", *options, checked=True, folder=tmp_path)
    assert found.returncode == 1, found.stdout
    assert "PASSED test_formula.py::test_right" in found.stdout
    assert "FAILED test_formula.py::test_wrong" in found.stdout
    assert "index is out of bounds" in found.stdout


# ------------------------------------------------------------------------------------------- the arguments of run.py


class Recorded:
    """An environment that runs nothing: the pytest arguments of every call, and whether indices are checked."""

    def __init__(self, code=0):
        self.calls, self.code = [], code

    def run(self, program, *arguments, settings=None, **options):
        assert (program, *arguments[:2]) == ("python", "-m", "pytest")
        self.calls.append((bool(settings and settings.get("NUMBA_BOUNDSCHECK") == "1"), list(map(str, arguments[2:]))))
        return self.code


def folders(arguments):
    return [Path(argument).name for argument in arguments if argument.startswith(str(ROOT / "tests"))]


def test_boundscheck_alone_runs_the_tests_of_kernels_on_every_core():
    environment = Recorded()
    run_py = load_run_py()
    assert run_py.test(environment, ["--boundscheck"]) == 0
    ((checked, arguments),) = environment.calls
    assert checked
    assert folders(arguments) == run_py.CHECKED_TESTS
    assert "--numprocesses=auto" in arguments


@pytest.mark.parametrize("named", ["tests/measures", "tests/kernels/test_exp.py::test_exp", str(ROOT / "tests/losses")])
def test_boundscheck_runs_the_files_that_are_named_and_no_others(named):
    environment = Recorded()
    load_run_py().test(environment, ["-q", "--boundscheck", named])
    ((checked, arguments),) = environment.calls
    assert checked
    assert arguments[-2:] == ["-q", named]
    assert folders(arguments[:-1]) == []


def test_boundscheck_with_options_alone_keeps_to_the_tests_of_kernels():
    environment = Recorded()
    run_py = load_run_py()
    run_py.test(environment, ["--boundscheck", "-k", "docs"])
    assert folders(environment.calls[0][1]) == run_py.CHECKED_TESTS


@pytest.mark.parametrize("code", [0, 1])
def test_a_thorough_run_ends_with_the_tests_under_bounds_checks(code):
    environment = Recorded(code)
    assert load_run_py().test(environment, ["--thorough"]) == code
    assert [checked for checked, _ in environment.calls] == [False, True]
    assert "--hypothesis-profile=thorough" in environment.calls[0][1]


def test_a_normal_run_checks_no_bounds():
    environment = Recorded()
    for arguments in ([], ["tests/kernels"], ["--thorough", "tests/kernels"]):
        load_run_py().test(environment, arguments)
    assert not any(checked for checked, _ in environment.calls)


def test_ctrl_c_ends_a_thorough_run_at_once():
    run_py = load_run_py()
    environment = Recorded(run_py.INTERRUPTED)
    assert run_py.test(environment, ["--thorough"]) == run_py.INTERRUPTED
    assert len(environment.calls) == 1
