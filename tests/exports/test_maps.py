"""Linear weights on maps in ONNX, Python and C: every map, beyond the training range, constants, ties, refusals."""

import ctypes
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import export, targets
from tests.exports.models import raw_lists

pytestmark = pytest.mark.filterwarnings("ignore:Feature . is constant", "ignore:Bins whose width are too small")
TARGETS = ("c", "onnx", "python")
CURVES = ("sql", "vespa")
# without scaling: maps of kernels have features that are rounding errors, and a scaler would lift them
RIDGE = rw.RidgeRanker(alpha=1.0, scale="none")
CLOSE = {"onnx": 2e-5, "python": 1e-9, "c": 1e-9}


def lists(seed=0, count=25, wide=1.0):
    """Five features: one continuous, one of few values, one constant, one binary, one tiny; float32 holds them all."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 8, count)
    n = sizes.sum()
    X = np.column_stack(
        [
            rng.normal(size=n) * wide,
            rng.integers(0, 4, n),
            np.full(n, 3.0),
            rng.integers(0, 2, n),
            1e-3 * rng.normal(size=n) * wide,
        ]
    )
    X = X.astype(np.float32).astype(np.float64)
    y = np.clip(np.rint(np.abs(X[:, 0]) + X[:, 1] * X[:, 3] + rng.normal(size=n)), 0, 3)
    return rw.Queries.from_arrays(X, y, group=sizes)


def beyond(seed=1):
    """Other lists: documents far outside of the training range, other values of the constant feature, and ties."""
    queries = lists(seed, wide=3.0)
    X = queries.X.copy()
    X[::5, 2] = 4.5
    X[1::7, 1] = -2.0
    X[2::7] = X[1]  # documents that are tied
    return queries._replace(X=X)


def splines(**settings):
    return SplineTransformer(**{"n_knots": 4, **settings})


MAPS = {
    "fourier": rw.features.FourierFeatures(0.3, 32),
    "sampler": RBFSampler(gamma=0.3, n_components=20, random_state=0),
    "rbf landmarks": Nystroem(gamma=0.2, n_components=15, random_state=0),
    "poly landmarks": Nystroem(kernel="poly", degree=2, gamma=0.1, n_components=15, random_state=0),
    "sigmoid landmarks": Nystroem(kernel="sigmoid", gamma=0.05, n_components=10, random_state=0),
    "linear landmarks": Nystroem(kernel="linear", n_components=4, random_state=0),
    "kernel PCA": rw.features.KernelPCAMap(gamma=0.2),
    "kernel PCA, poly": rw.features.KernelPCAMap("poly", gamma=0.1, degree=2),
    "kernel PCA, linear": rw.features.KernelPCAMap("linear"),
    "polynomials": PolynomialFeatures(2),
    "products": PolynomialFeatures(3, interaction_only=True, include_bias=False),
    "sketch": PolynomialCountSketch(degree=2, gamma=0.5, n_components=16, random_state=0),
    "sketch, constant": PolynomialCountSketch(degree=3, coef0=0.7, n_components=16, random_state=0),
    "splines": splines(),
    "splines, no bias": splines(include_bias=False, degree=2),
    "splines, sparse": splines(sparse_output=True),
    "splines, linear": splines(extrapolation="linear"),
    "splines, degree 1, continue": splines(extrapolation="continue", degree=1),
    "splines, continue": splines(extrapolation="continue"),
    "splines, periodic": splines(extrapolation="periodic"),
    "splines, quantiles": splines(knots="quantile"),
    "splines, quantiles, linear": splines(knots="quantile", extrapolation="linear", degree=2),
    "bins": KBinsDiscretizer(4, strategy="uniform"),
    "bins, quantiles": KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf"),
    "bins, ordinal": KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
    "standard": StandardScaler(),
}
SCALERS = {
    "raw": None,
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "maxabs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "two": make_pipeline(StandardScaler(), RobustScaler(with_centering=False)),
}


def over_maps(test):
    return pytest.mark.parametrize("name", MAPS)(test)


@cache
def train():
    return lists()


@cache
def others():
    return beyond()


def fitted(map_, ranker=RIDGE):
    return rw.MappedRanker(clone(map_), ranker, n_jobs=1).fit(train())


@cache
def model_of(name, scaler="raw"):
    """A ranker on a map, after a scaler, fitted once."""
    return fitted(MAPS[name] if SCALERS[scaler] is None else make_pipeline(SCALERS[scaler], MAPS[name]))


def error_of(done, target, X, expected):
    """The largest difference of the written file's scores to the model's, as a share of the largest score."""
    found = targets()[target]().score(done.files, X, ("f1", "f2", "f3", "f4", "f5"))
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


@over_maps
@pytest.mark.parametrize("target", TARGETS)
def test_a_map_has_the_scores_of_the_model_also_beyond_the_training_range(name, target):
    model = model_of(name)
    for queries in (train(), others()):
        done = export(model, target, sample=queries)
        assert done.parity.inverted_beyond_float32 == 0
        assert error_of(done, target, queries.X, model.predict(queries.X)) < CLOSE[target]


BEFORE = ("fourier", "rbf landmarks", "sketch", "splines", "splines, quantiles", "bins, quantiles")


@pytest.mark.parametrize("scaler", list(SCALERS)[1:])
@pytest.mark.parametrize("name", BEFORE)
def test_scalers_before_a_map_are_part_of_the_formula(name, scaler):
    model = model_of(name, scaler)
    for target in TARGETS:
        done = export(model, target, sample=others(), shift=1.5)
        assert done.parity.inverted_beyond_float32 == 0
        assert error_of(done, target, others().X, model.predict(others().X) + 1.5) < CLOSE[target]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["fourier", "rbf landmarks", "polynomials", "splines", "splines, periodic", "bins"])
@pytest.mark.parametrize("scaler", [rw.Scaler(), rw.Scaler("minmax")], ids=repr)
def test_the_scaler_of_the_queries_is_part_of_the_formula(scaler, name, target):
    raw, other = raw_lists(), raw_lists(seed=1)
    own = clone(scaler).fit(raw)
    model = rw.MappedRanker(clone(MAPS[name]), RIDGE).fit(own.transform(raw))
    parity = export(model, target, sample=other, scaling=own).parity
    assert parity.inverted_beyond_float32 == 0 or target == "onnx"
    # float32 rounds features that are far from 0 before they are scaled
    assert parity.largest_difference <= (1e-3 if target == "onnx" else 1e-9) * max(1.0, parity.largest_score)


@pytest.mark.parametrize("name", ["splines", "splines, quantiles", "bins", "bins, quantiles"])
@pytest.mark.parametrize("scaler", SCALERS)
def test_documents_at_the_very_ends_of_pieces_and_beside_them(name, scaler):
    model, seen = model_of(name, scaler), train().X
    rows = []
    for feature in range(seen.shape[1]):
        for value in np.unique(seen[:, feature])[::5]:
            for near in (np.nextafter(value, -np.inf), value, np.nextafter(value, np.inf)):
                rows.append(seen[0].copy())
                rows[-1][feature] = near
    X = np.array(rows)
    done = export(model, "python")
    assert error_of(done, "python", X, model.predict(X)) < 1e-9
    assert error_of(export(model, "c"), "c", X, model.predict(X)) < 1e-9


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("target", TARGETS)
def test_perceptrons_with_a_budget_are_sums_of_kernels(kernel, target):
    model = rw.KernelPerceptron(kernel=kernel, gamma=0.2, degree=2, budget=20).fit(lists())
    done = export(model, target, sample=others())
    assert done.parity.inverted_beyond_float32 == 0
    assert error_of(done, target, others().X, model.predict(others().X)) < CLOSE[target]


@pytest.mark.parametrize("target", TARGETS)
def test_a_perceptron_that_stored_nothing_scores_zero(target):
    one_label = lists()._replace(y=np.zeros(lists().n_documents))
    with pytest.warns(UserWarning, match="nothing to learn"):
        model = rw.KernelPerceptron(budget=5).fit(one_label)
    found = targets()[target]().score(export(model, target).files, lists().X, ("f1", "f2", "f3", "f4", "f5"))
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize(
    "ranker", [rw.RidgeCommittee(), rw.SmoothRank(), rw.LinearModel(coef=np.arange(15.0))], ids=repr
)
def test_any_linear_ranker_may_stand_on_the_map(ranker):
    model = fitted(MAPS["rbf landmarks"], ranker)
    parity = export(model, "python", sample=others()).parity
    assert parity.inverted_beyond_float32 == 0


def test_a_scaler_lifts_the_features_of_a_sketch_that_are_rounding_errors():
    """Why the page of kernels says scale="none": they are small beside the other features, not beside themselves."""
    scaled = fitted(MAPS["sketch"], rw.RidgeRanker(alpha=1.0))
    features = scaled.mapped(train()).X
    size, deviation = np.abs(features).max(axis=0), features.std(axis=0)
    noise = (size > 0) & (size < 8 * np.finfo(float).eps * size.max())
    assert noise.any()
    assert (deviation[noise] > 1e-6 * size[noise]).all()
    assert export(scaled, "python", sample=train()).parity.inverted_beyond_float32 > 0


@pytest.mark.parametrize("target", ["c", "python"])
@pytest.mark.parametrize("name", ["fourier", "rbf landmarks", "polynomials", "splines", "bins"])
def test_missing_values_are_zero_where_the_ranker_has_it_so(name, target):
    model = rw.MappedRanker(clone(MAPS[name]), RIDGE, missing="zero").fit(lists())
    X = lists().X.copy()
    X[::3, 1], X[1::3, 0] = np.nan, np.inf
    assert error_of(export(model, target), target, X, model.predict(X)) < CLOSE[target]


@pytest.mark.parametrize(
    "name", ["fourier", "rbf landmarks", "poly landmarks", "sketch", "splines, linear", "splines, periodic", "bins"]
)
def test_the_function_in_c_is_compiled_and_has_the_scores(name, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    model, X = model_of(name, "robust"), others().X
    export(model, "c", tmp_path / "rank.c", called="rank_it")
    strict = ["-std=c89", "-pedantic-errors", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    source = next(iter(tmp_path.rglob("*.c")))
    subprocess.run([compiler, *strict, str(source), "-o", str(tmp_path / "rank.so"), "-lm"], check=True)
    function = ctypes.CDLL(str(tmp_path / "rank.so")).rank_it
    function.restype, function.argtypes = ctypes.c_double, [ctypes.POINTER(ctypes.c_double)]
    found = [function((ctypes.c_double * len(row))(*row)) for row in X.tolist()]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("map_", "ranker", "message"),
    [
        (QuantileTransformer(n_quantiles=10), RIDGE, "with QuantileTransformer: files hold linear weights on one of"),
        (make_pipeline(splines(), PolynomialFeatures(1)), RIDGE, "with SplineTransformer: files hold"),
        (make_pipeline(MinMaxScaler(clip=True), splines()), RIDGE, r"MinMaxScaler\(clip=True\)"),
        (splines(extrapolation="error"), RIDGE, "raise an error beyond their knots, which a file cannot"),
        (splines(degree=1, extrapolation="linear"), RIDGE, "leaves out outer knots from the second feature on"),
        (splines(degree=0, extrapolation="continue"), RIDGE, "degree 0 are steps"),
        (splines(knots="quantile", extrapolation="continue"), RIDGE, "the knots of 'f4' coincide at an end"),
        (Nystroem(kernel="laplacian", n_components=5), RIDGE, "the kernel 'laplacian' cannot be exported"),
        (PolynomialFeatures(12), RIDGE, "6,188 products|products of features, and a file holds"),
        (PolynomialCountSketch(degree=9, n_components=8), RIDGE, "1,953,125 products of features, and a file holds"),
        (StandardScaler(), rw.RankBoost(rounds=3), "with RankBoost on its map: files hold linear weights on a map"),
        (KBinsDiscretizer(3, strategy="uniform", dtype=np.float32), RIDGE, "bins of float32 cannot be exported"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_cannot_be_written_is_refused_in_one_sentence(map_, ranker, message, monkeypatch):
    monkeypatch.setattr("rankwise.exports.maps._MOST_PRODUCTS", 1_000)
    model = fitted(map_, ranker)
    for target in TARGETS:
        with pytest.raises(RankwiseError, match=message) as error:
            export(model, target)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("target", ["solr", "sql", "ranklib", "vespa", "elasticsearch"])
@pytest.mark.parametrize(
    ("name", "about"),
    [("splines", "curves of features"), ("rbf landmarks", "a sum of kernels"), ("polynomials", "products of features")],
)
def test_engines_without_maps_say_where_to_export(name, about, target):
    if name == "splines" and target in CURVES:
        return
    with pytest.raises(RankwiseError, match=f"{about}: export to c, onnx, python"):
        export(model_of(name), target)


@pytest.mark.parametrize("target", CURVES)
@pytest.mark.parametrize("name", [name for name in MAPS if name.startswith(("splines", "bins"))])
@pytest.mark.parametrize("scaler", ["raw", "robust"])
def test_sql_and_vespa_hold_curves_that_do_not_repeat(name, scaler, target):
    model = model_of(name, scaler)
    if "periodic" in name:
        with pytest.raises(RankwiseError, match="cannot hold splines that repeat: export to c, onnx, python"):
            export(model, target)
        return
    done = export(model, target, sample=others(), shift=1.5)
    assert error_of(done, target, others().X, model.predict(others().X) + 1.5) < 1e-9


@pytest.mark.parametrize("target", ["ranklib", "sql"])
def test_a_linear_kernel_is_a_weighted_sum_for_every_engine(target):
    model = model_of("linear landmarks")
    assert export(model, target, sample=others()).parity.inverted_beyond_float32 == 0


def test_the_tables_of_a_map_are_no_names_for_its_function():
    model = model_of("splines")
    for name in ("_CURVES", "exp", "_LANDMARKS"):
        with pytest.raises(RankwiseError, match="cannot be the name of a function"):
            export(model, "python", called=name)
