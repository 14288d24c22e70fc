"""What a first call imports: nothing heavy that it does not need. Lists of modules, never a clock."""

import ast
import json
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import pytest

import rankwise

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
    "streams": (f"{RW}rw.synthetic.separable_stream(20, documents=5, features=3)", {"numpy"}),
    "paired_test": (f"{RW}rw.evaluation.paired_test([0.1, 0.2, 0.3], [0.2, 0.1, 0.4])", {"numpy"}),
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


# ------------------------------------------------------------------------------------------------- imports in threads

FIRST_IMPORT = """
    import sys, threading, traceback
    import numpy
    sys.setswitchinterval(1e-5)
    errors = []

    def imported(name, after):
        while after and after not in sys.modules:
            pass
        try:
            __import__(name)
        except ImportError:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=imported, args=one) for one in (("numba", ""), ({module!r}, "numba.core"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert "core" in vars(sys.modules["numba"])
"""


def modules_that_import_numba():
    package = Path(rankwise.__file__).parent
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            name
            for node in ast.iter_child_nodes(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""])
            if name.partition(".")[0] == "numba"
        ]
        if names:
            yield ".".join(("rankwise", *path.relative_to(package).with_suffix("").parts)), names[0]


NUMBA_FIRST = dict(modules_that_import_numba())


def test_modules_import_the_whole_of_numba_before_its_parts():
    """A thread that begins with a part does not wait for another one that imports the whole: both imports break."""
    assert len(NUMBA_FIRST) > 10
    assert {module: name for module, name in NUMBA_FIRST.items() if name != "numba"} == {}


@pytest.mark.parametrize("module", ["rankwise._kernels.bits", "rankwise._kernels.text.words"])
def test_a_module_may_be_imported_while_another_thread_imports_numba(module, tmp_path):
    assert "numba" in loaded_after(FIRST_IMPORT.format(module=module), tmp_path)
