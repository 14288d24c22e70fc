"""``called=``: a name that an engine or a language uses otherwise is refused, and every other one works."""

import builtins
import keyword
import shutil
import sqlite3
import subprocess
import sys
from ctypes import CDLL, POINTER, c_double

import numpy as np
import pytest

from rankwise.errors import RankwiseError
from rankwise.exports import export
from rankwise.exports.source import list_taken_names, reason_against
from rankwise.rankers.linear.linear_model import LinearModel
from tests.exports.models import fitted

MODELS = {
    "weights": LinearModel.of([0.5, -2.0], intercept=0.25),
    "no missing": LinearModel.of([1.0, 3.0], missing="zero"),
}
X = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])
# what the texts are made of, and what nothing speaks against
OWN = [
    "x",
    "s",
    "i",
    "v",
    "w",
    "f",
    "t",
    "a",
    "weight",
    "weights",
    "feature",
    "features",
    "threshold",
    "alpha",
    "width",
]
PLAIN = ["rankwise", "score", "Rank2", "y_width", "y_features", "match", "type_", "lens", "zipped", "logs", "class_"]
OTHER = ["_WEIGHTS", "_STEPS", "FEATURES", "__builtins__", "__name__", "__debug__", "_x", "__x", "_Bool", "asm", "main"]
OF_THE_LANGUAGE = {name for name, reason in list_taken_names().items() if "library" not in reason}
NAMES = sorted(
    {*OWN, *PLAIN, *OTHER, *keyword.kwlist, *OF_THE_LANGUAGE, "log", "exp", "free", "read", "strlen", "sqrtf"}
)


def written(model, target, name):
    """The text of an export, or None where its name is refused."""
    try:
        return export(model, target, called=name).text
    except RankwiseError as error:
        if repr(name) not in str(error):
            raise
        return None


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_r10_every_name_of_a_python_function_works_or_is_refused(model):
    works = []
    for name in sorted({*NAMES, *dir(builtins)}):
        text = written(model, "python", name)
        if text is None:
            continue
        space = {"__name__": name}
        exec(compile(text, f"{name}.py", "exec"), space)
        assert [space[name](row) for row in X.tolist()] == model.predict(X).tolist(), name
        with pytest.raises(ValueError, match="expected 2 features, found 3"):
            space[name]([1.0, 2.0, 3.0])
        works.append(name)
    assert {*OWN, *PLAIN} <= {*works}
    assert not {"len", "zip", "ValueError", "FEATURES", "_WEIGHTS", "_STEPS", "None", "__builtins__"} & {*works}


@pytest.mark.parametrize("name", ["f", "t", "a", "s", "v", "x", "threshold"])
def test_r10_the_steps_of_a_python_function_do_not_mind_its_name(name):
    model = fitted("RankBoost")
    rows = np.random.default_rng(0).normal(size=(5, 5))
    space = {}
    exec(export(model, "python", called=name).text, space)
    np.testing.assert_allclose([space[name](row) for row in rows.tolist()], model.predict(rows), rtol=1e-12)


@pytest.fixture(scope="module")
def compiler():
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler")
    return found


STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-ffp-contract=off"]


@pytest.mark.parametrize("standard", ["c89", "gnu17"])
@pytest.mark.parametrize("kind", ["weights", "RankBoost"])
def test_r10_every_name_of_a_c_function_that_is_not_refused_compiles_and_scores(tmp_path, compiler, standard, kind):
    """All in one library: no table of one function gets in the way of another's."""
    model = MODELS[kind] if kind in MODELS else fitted(kind)
    rows = np.random.default_rng(0).normal(size=(4, model.n_features_in_))
    works = []
    for name in NAMES:
        text = written(model, "c", name)
        if text is not None:
            (tmp_path / f"{name}.c").write_text(text)
            works.append(name)
    assert {*OWN, *PLAIN} <= {*works}
    sources = [str(tmp_path / f"{name}.c") for name in works]
    library = tmp_path / "all.so"
    subprocess.run([compiler, f"-std={standard}", *STRICT, "-shared", "-fPIC", "-o", library, *sources], check=True)
    loaded = CDLL(str(library))
    for name in works:
        function = getattr(loaded, name)
        function.restype, function.argtypes = c_double, [POINTER(c_double)]
        found = [function(row.ctypes.data_as(POINTER(c_double))) for row in np.ascontiguousarray(rows)]
        np.testing.assert_allclose(found, model.predict(rows), rtol=1e-12, err_msg=name)


def test_r10_the_compiler_knows_nothing_under_a_name_that_is_not_refused(tmp_path, compiler):
    """gcc warns of a name that is built in and has another type: all of those are refused."""
    candidates = [name for name in sorted({*NAMES, *list_taken_names()}) if reason_against(name) is None]
    (tmp_path / "all.c").write_text("".join(f"double {name}(const double *y);\n" for name in candidates))
    subprocess.run([compiler, *STRICT, "-fsyntax-only", tmp_path / "all.c"], check=True)
    (tmp_path / "log.c").write_text("double log(const double *y);\n")
    done = subprocess.run([compiler, *STRICT, "-fsyntax-only", tmp_path / "log.c"], capture_output=True, check=False)
    assert done.returncode, "gcc no longer warns, so this test shows nothing"


def test_r10_names_of_the_c_library_that_python_knows_of_are_refused():
    """Functions of C's math library are those of Python's, by and large."""
    import math

    own = {"fabs", "floor", "ceil", "exp", "log", "log2", "log10", "pow", "sqrt", "sin", "cos", "tan", "erf", "lgamma"}
    assert own <= set(dir(math))
    assert all(reason_against(name) for name in own)


def test_r10_a_score_in_sql_is_not_called_as_a_feature():
    model = LinearModel.of([1.0, -1.0], feature_names=["BM25", "age"])
    for name in ("BM25", "bm25", "AGE"):
        with pytest.raises(RankwiseError, match=r"cannot be the name of the score: a column .* is a feature"):
            export(model, "sql", called=name)
    text = export(model, "sql", called="score").text
    base = sqlite3.connect(":memory:")
    base.execute('CREATE TABLE documents ("BM25" REAL, "age" REAL)')
    base.executemany("INSERT INTO documents VALUES (?, ?)", [(1.0, 5.0), (2.0, 0.0), (3.0, 9.0)])
    assert [row[0] for row in base.execute(text + "ORDER BY score DESC")] == [2.0, 1.0, 3.0]
    base.close()


@pytest.mark.parametrize("name", ["default", "unranked"])
def test_r10_vespas_own_profiles_are_not_written_over(name):
    with pytest.raises(RankwiseError, match="Vespa has one of that name"):
        export(MODELS["weights"], "vespa", called=name, feature_names=["a", "b"])


@pytest.mark.parametrize(
    "target", ["ranklib", "solr", "elasticsearch", "opensearch", "vespa", "onnx", "sql", "python", "c"]
)
@pytest.mark.parametrize("name", ["", " ", "a\nb", "\ud800", "a\0b", None, 5], ids=repr)
def test_r10_a_name_is_a_printable_text_everywhere(target, name):
    with pytest.raises(
        RankwiseError,
        match=r"called must be a printable string, the name of|'called' parameter of export must be a str",
    ):
        export(MODELS["weights"], target, called=name)


def test_a_module_that_was_written_runs_by_itself(tmp_path):
    export(MODELS["weights"], "python", tmp_path / "score.py", called="score")
    code = "import score; print(score.score([1.0, 2.0]))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) == MODELS["weights"].predict(X)[0]
