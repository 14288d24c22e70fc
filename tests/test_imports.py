"""What a first call imports: nothing heavy that it does not need. Lists of modules, never a clock."""

import json
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import pytest

# numba checks SciPy's version when it is imported, and looks for a BLAS in scipy.linalg before its first compilation or
# loading. Nothing below can avoid that, and nothing else of SciPy may come with it but what scipy.linalg imports.
NUMBA = {"numba", "llvmlite", "scipy"}
KERNEL = NUMBA | {"scipy.linalg"}
COMMAND = {"typer", "rich"}
WATCHED = {"joblib", "llvmlite", "lightgbm", "matplotlib", "narwhals", "numba", "numpy", "pandas", "piqp", "plotly"}
WATCHED |= {"jinja2", "polars", "pyarrow", "rich", "safetensors", "scipy", "sklearn", "threadpoolctl", "typer"}
# SciPy's own foundations come with any part of it.
FOUNDATIONS = {"scipy.__config__", "scipy._cyutility", "scipy._distributor_init", "scipy._external", "scipy._lib"}
FOUNDATIONS |= {"scipy.version"}

TEXT = "".join(f"{row * 7 % 3} qid:{row // 5} 1:{row % 7} 2:{row % 4}\n" for row in range(50))


def loaded_after(code, folder):
    """The watched packages, and the parts of SciPy, that a fresh process has imported after running the code."""
    (folder / "a.txt").write_text(TEXT)
    (folder / "a.scores").write_text("".join(f"{row % 7}\n" for row in range(50)))
    code = f"{textwrap.dedent(code)}\nimport json, sys\nprint()\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    modules = json.loads(done.stdout.splitlines()[-1])
    tops = {name.partition(".")[0] for name in modules}
    parts = {".".join(name.split(".")[:2]) for name in modules if name.startswith("scipy.")}
    return (tops & WATCHED) | (parts - FOUNDATIONS)


@cache
def parts_of_linalg():
    """What comes with scipy.linalg: nothing in new versions, scipy.sparse in old ones."""
    with tempfile.TemporaryDirectory() as folder:
        return loaded_after("import scipy.linalg", Path(folder))


def command(*arguments):
    return f"""
        import sys
        from rankwise.cli import main
        sys.argv = {["rankwise", *arguments]!r}
        assert main() == 0
    """


RW = "import rankwise as rw, numpy as np; "
LISTS = f"{RW}lists = rw.make_lists(10); "
CALLS = {
    # nothing is compiled
    "import": ("import rankwise", set()),
    "Queries": (f"{RW}rw.Queries.from_arrays(np.ones((4, 2)), [1, 0, 1, 0], qid=[1, 1, 2, 2])", {"numpy"}),
    "split": (f"{LISTS}rw.split(lists, (0.5, 0.5)); rw.kfold(lists, 3)", {"numpy"}),
    "Scaler": (f"{LISTS}rw.Scaler().fit(lists).transform(lists)", {"numpy"}),
    "save and load": (f"{LISTS}lists.save('a.rankwise'); rw.load('a.rankwise')", {"numpy", "safetensors"}),
    "streams": (f"{RW}rw.separable_stream(20, documents=5, features=3)", {"numpy"}),
    "paired_test": (f"{RW}rw.paired_test([0.1, 0.2, 0.3], [0.2, 0.1, 0.4])", {"numpy"}),
    # measures and losses hold their kernels, which are compiled only when they are called
    "measures.parse": (f"{RW}rw.measures.parse('nDCG@10')", {"numpy"} | NUMBA),
    "losses": (f"{RW}[getattr(rw.losses, name) for name in dir(rw.losses)]", {"numpy"} | NUMBA),
    "names": (f"{RW}rw.evaluate, rw.read_letor, rw.diagnose, rw.significance", {"numpy"} | NUMBA),
    # kernels run
    "read_letor": (f"{RW}rw.write_letor(rw.read_letor('a.txt'), 'b.txt')", {"numpy"} | KERNEL),
    "evaluate": (f"{LISTS}rw.evaluate(lists, lists.X[:, 0], ['AP', 'nDCG@10']).mean", {"numpy"} | KERNEL),
    "interval": (f"{LISTS}rw.evaluate(lists, lists.X[:, 0], 'AP').interval()", {"numpy", "scipy.special"} | KERNEL),
    "measure": (f"{RW}rw.measures.parse('AP')([0.1, 0.2], [1, 0])", {"numpy"} | KERNEL),
    "loss": (f"{RW}rw.losses.SLAM()([0.1, 0.2], [1, 0])", {"numpy"} | KERNEL),
    "diagnose": (f"{RW}rw.diagnose(rw.read_letor('a.txt'))", {"numpy", "threadpoolctl"} | KERNEL),
    # the command line
    "--help": (command("--help"), {"numpy"} | COMMAND),
    "rankwise inspect": (command("inspect", "a.txt"), {"numpy", "threadpoolctl"} | KERNEL | COMMAND),
    "rankwise convert": (command("convert", "a.txt", "a.rankwise"), {"numpy", "safetensors"} | KERNEL | COMMAND),
    "rankwise evaluate": (command("evaluate", "a.txt", "a.scores"), {"numpy", "scipy.special"} | KERNEL | COMMAND),
    "rankwise doctor": (command("doctor"), {"numpy"} | NUMBA | COMMAND),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_imports_what_it_needs(name, tmp_path):
    code, allowed = CALLS[name]
    if "scipy.linalg" in allowed:
        allowed = allowed | parts_of_linalg()
    assert loaded_after(code, tmp_path) <= allowed


def test_an_estimator_is_one_of_scikit_learn(tmp_path):
    """The list above can fail: an estimator needs scikit-learn, which brings most of SciPy."""
    found = loaded_after(f"{LISTS}rw.RidgeRanker(alpha=1.0).fit(lists)", tmp_path)
    assert {"sklearn", "scipy.stats", "scipy.optimize"} <= found
