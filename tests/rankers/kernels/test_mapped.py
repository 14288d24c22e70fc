"""MappedRanker: the dual solution as an oracle, row by row whatever the block, files, memory and certificates."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer, StandardScaler

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers import mapped
from rankwise.rankers.linear.ridge import balance_of, row_weight
from tests.rankers.test_every_ranker import lists

KERNELS = {
    "rbf": lambda X, Z: np.exp(-0.3 * ((X[:, None] - Z) ** 2).sum(axis=-1)),
    "linear": lambda X, Z: X @ Z.T,
    "poly": lambda X, Z: (0.3 * X @ Z.T + 0.7) ** 2,
}
MAPS = {
    "Nystroem": Nystroem(n_components=9, gamma=0.2, random_state=0),
    "RBFSampler": RBFSampler(gamma=0.2, n_components=20, random_state=0),
    "PolynomialCountSketch": PolynomialCountSketch(n_components=16, random_state=0),
    "SplineTransformer": SplineTransformer(n_knots=4, degree=2),
    "KBinsDiscretizer": KBinsDiscretizer(3, strategy="uniform"),
    "a pipeline": make_pipeline(StandardScaler(), rw.features.FourierFeatures(0.2, 16)),
    "FourierFeatures": rw.features.FourierFeatures(0.2, 16),
    "KernelPCAMap": rw.features.KernelPCAMap("poly", degree=2),
}
over_maps = pytest.mark.parametrize("name", MAPS)


def dual_ridge(kernel, queries, X, alpha, weight):
    """Kernel ridge regression with one intercept per query, solved in the dual: K is centered within queries."""
    rows, target = queries.X, 2.0 ** queries.labels() - 1
    owner = queries.query_of_row
    same = (owner[:, None] == owner).astype(float)
    mean = same * weight / (same * weight).sum(axis=1, keepdims=True)
    center, root = np.eye(len(rows)) - mean, np.sqrt(weight)
    K = root[:, None] * (center @ kernel(rows, rows) @ center.T) * root
    dual = root * np.linalg.solve(K + alpha * np.eye(len(rows)), root * (center @ target))
    return kernel(X, rows) @ (center.T @ dual)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_pca_map_under_a_ridge_is_the_dual_kernel_ridge(kernel, balanced):
    queries, other = lists(20), lists(8, seed=3).X
    weight = row_weight(queries, balance_of([queries])) if balanced else np.ones(queries.n_documents)
    expected = dual_ridge(KERNELS[kernel], queries, other, 0.4, weight)
    ridge = rw.RidgeRanker(alpha=0.4, scale="none", balanced=balanced)
    exact = rw.MappedRanker(rw.features.KernelPCAMap(kernel, 0.3, 2, 0.7), ridge).fit(queries)
    np.testing.assert_allclose(exact.predict(other), expected, rtol=0, atol=1e-8)
    landmarks = Nystroem(kernel=kernel, n_components=queries.n_documents, random_state=0)
    landmarks.set_params(**({} if kernel == "linear" else {"gamma": 0.3}))
    landmarks.set_params(**({"degree": 2, "coef0": 0.7} if kernel == "poly" else {}))
    all_points = rw.MappedRanker(landmarks, ridge).fit(queries)
    np.testing.assert_allclose(all_points.predict(other), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_products_of_mapped_documents_are_kernels(kernel):
    X, map_ = lists().X, rw.features.KernelPCAMap(kernel, 0.3, 2, 0.7)
    z = map_.fit_transform(X)
    np.testing.assert_allclose(z @ z.T, KERNELS[kernel](X, X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(map_.transform(X[:3]), z[:3], rtol=0, atol=1e-12)


def test_fourier_features_have_norm_one_and_products_near_the_kernel():
    X = lists(features=5).X
    z = rw.features.FourierFeatures(0.3, 8192, random_state=1).fit_transform(X)
    np.testing.assert_allclose((z * z).sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(z @ z.T, KERNELS["rbf"](X, X), rtol=0, atol=6 / np.sqrt(8192))
    small = rw.features.FourierFeatures(0.3, 32, random_state=1).fit(X)
    np.testing.assert_array_equal(small.transform(X)[4:5], small.transform(X[4:5]))
    np.testing.assert_array_equal(small.transform(X.astype("f4").astype("f8")), small.transform(X.astype("f4")))
    assert len(small.get_feature_names_out()) == 32


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (
            lambda: rw.features.FourierFeatures(n_features=7),
            "n_features must be even, for pairs of a cosine and a sine, got 7",
        ),
        (lambda: rw.features.FourierFeatures(gamma=0.0), r"'gamma' .* a float in \(0, inf\) or None. Got 0\.0"),
        (lambda: rw.features.FourierFeatures(gamma=float("nan")), "'gamma' parameter .* Got nan"),
        (lambda: rw.features.KernelPCAMap("sigmoid"), "must be 'rbf', 'linear' or 'poly'. Got 'sigmoid'"),
        (lambda: rw.features.KernelPCAMap("poly", coef0=-1.0), r"'coef0' .* a float in \[0, inf\). Got -1\.0"),
        (lambda: rw.features.KernelPCAMap("poly", degree=0), r"'degree' .* an int in \[1, 20\]. Got 0"),
    ],
)
def test_maps_that_cannot_be_are_refused(made, found):
    with pytest.raises(RankwiseError, match=found):
        made().fit(np.eye(3))


def test_maps_refuse_what_they_cannot_map(monkeypatch):
    map_ = rw.features.KernelPCAMap().fit(np.eye(3))
    with pytest.raises(DataError, match="fitted on 3 features, got 2"):
        map_.transform(np.eye(2))
    with pytest.raises(DataError, match="row 1, feature 0"):
        map_.transform([[0.0, 0, 0], [np.nan, 0, 0]])
    with pytest.raises(RankwiseError, match="not fitted yet"):
        rw.features.FourierFeatures().transform(np.eye(3))
    with pytest.raises(DataError, match="overflows at row 0"):
        rw.features.KernelPCAMap("poly").fit(np.full((2, 2), 1e200))
    monkeypatch.setattr("rankwise.features.kernel_maps._MOST_DOCUMENTS", 2)
    with pytest.raises(RankwiseError, match="Nystroem"):
        map_.fit(np.eye(3))


# ------------------------------------------------------------------------------------------- blocks


@over_maps
def test_a_mapped_row_has_the_same_bits_wherever_it_stands(name, tmp_path):
    queries = lists(60)
    model = rw.MappedRanker(MAPS[name], rw.RidgeRanker(alpha=1.0)).fit(queries)
    scores = model.predict(queries)
    assert np.ptp(scores) > 0
    for rows in (slice(0, 1), slice(7, 19), slice(None, None, -1), slice(100, 229)):
        np.testing.assert_array_equal(model.predict(queries.X[rows]), scores[rows])
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.predict(queries), scores)
    assert repr(loaded) == repr(model)
    assert (
        loaded.certificate(holdout=lists(9, seed=5)).to_json() == model.certificate(holdout=lists(9, seed=5)).to_json()
    )
    again = rw.MappedRanker(loaded.transformer, loaded.ranker).fit(queries)
    np.testing.assert_array_equal(again.predict(queries), scores)


def test_above_the_limit_the_mapped_features_are_in_a_file(monkeypatch):
    monkeypatch.setattr("rankwise.queries.checks.BLOCK_VALUES", 512)
    queries, seen = lists(60), []
    original = mapped.RowMap.queries
    monkeypatch.setattr(mapped.RowMap, "queries", lambda *given: seen.append(original(*given)) or seen[-1])
    plain = rw.MappedRanker(rw.features.FourierFeatures(n_features=16)).fit(queries)
    filed = rw.MappedRanker(rw.features.FourierFeatures(n_features=16), memory_limit=1000).fit(queries)
    assert [isinstance(one.X.base, np.memmap) or isinstance(one.X, np.memmap) for one in seen] == [False, True]
    np.testing.assert_array_equal(plain.predict(queries), filed.predict(queries))
    np.testing.assert_array_equal(seen[0].X, seen[1].X)


class MinusTheMean(TransformerMixin, BaseEstimator):
    """A transformer that looks at all rows of a call."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X * np.arange(len(X))[:, None]


class NotFinite(MinusTheMean):
    def transform(self, X):
        return np.full_like(X, np.inf)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((MinusTheMean(),), "does not work row by row"),
        ((NotFinite(),), "not finite"),
        (("Nystroom",), "the name of a transformer must be one of SimpleImputer, MissingIndicator,"),
        ((7,), "transformer must have fit and transform, or be the name of one, got 7"),
        (("StandardScaler", "nobody"), "'ranker' parameter of"),
        (("StandardScaler", 7), "'ranker' parameter of"),
        (("StandardScaler", "HybridRanker"), "'ranker' parameter of"),
    ],
)
def test_what_cannot_be_put_together_is_refused(given, found):
    with pytest.raises(RankwiseError, match=found) as error:
        rw.MappedRanker(*given).fit(lists())
    assert "\n" not in str(error.value)


class Squares(MinusTheMean):
    def transform(self, X):
        return X**2


def test_a_transformer_of_ones_own_learns_and_cannot_be_saved(tmp_path):
    model = rw.MappedRanker(Squares(), rw.RidgeRanker(alpha=1.0)).fit(lists())
    assert np.isfinite(model.predict(lists())).all()
    with pytest.raises(RankwiseError, match="cannot be saved: it holds a Squares"):
        model.save(tmp_path / "model.rankwise")


# ------------------------------------------------------------------------------------------- certificates


def test_a_fixed_map_has_uniform_bounds_with_its_own_radius():
    train, held = lists(40), lists(30, seed=7)
    model = rw.MappedRanker(rw.features.FourierFeatures(0.2, 32), rw.RidgeRanker(alpha=1.0)).fit(train)
    found = model.certificate(train, held, longest=10)
    uniform = [row for row in found.rows if "measured_radius" in row.terms]
    assert uniform
    assert all(row.terms["radius"] == 1.0 for row in uniform if "radius" in row.terms)
    assert all(0 < row.terms["measured_radius"] <= 1 + 1e-12 for row in uniform)
    assert any("mapped features" in note for note in found.notes)
    inner = (
        rw.RidgeRanker(alpha=1.0).fit(model.mapped(train)).certificate(model.mapped(train), row_radius=1.0, longest=10)
    )
    values = {row.name: row.value for row in inner.rows}
    assert all(values[row.name] == row.value for row in uniform)


def test_a_map_that_was_fitted_on_the_training_queries_has_no_uniform_bound():
    train, held = lists(40), lists(30, seed=7)
    model = rw.MappedRanker("KernelPCAMap", rw.RidgeRanker(alpha=1.0)).fit(train)
    found = model.certificate(train, held, row_radius=1.0, longest=10)
    assert not [row for row in found.rows if "measured_radius" in row.terms]
    assert any("fitted on the training queries themselves" in note for note in found.notes)
    assert found.rows, "bounds on the hold-out remain"


def test_the_measure_of_the_ranker_holds_unless_another_one_is_given():
    assert rw.MappedRanker(ranker=rw.RidgeRanker("AP"))._measure() == rw.measures.parse("AP")
    model = rw.MappedRanker(ranker=rw.RidgeRanker("AP"), measure="nDCG@3").fit(lists())
    assert model.ranker_.measure == "nDCG@3"
    assert model.score(lists()) == rw.evaluate(lists(), model.predict(lists()), "nDCG@3").mean["nDCG@3"]


@pytest.mark.parametrize("target", ["python", "onnx", "c"])
@pytest.mark.parametrize(
    "model",
    [
        rw.MappedRanker(rw.features.FourierFeatures(0.3, 32), rw.RidgeRanker(alpha=1.0)),
        rw.KernelPerceptron(gamma=0.3, map=16),
    ],
    ids=lambda model: model.name,
)
def test_random_fourier_features_are_exported_with_the_same_order(model, target):
    queries = lists(30)
    done = rw.export(clone(model).fit(queries), target, sample=queries, called="waves")
    assert done.parity.same_order
    assert done.parity.largest_difference < (1e-5 if target == "onnx" else 1e-12)


@pytest.mark.parametrize("target", ["solr", "sql", "ranklib", "vespa", "opensearch-hybrid"])
def test_engines_without_cosines_refuse_them(target):
    model = rw.MappedRanker(ranker=rw.RidgeRanker(alpha=1.0)).fit(lists())
    with pytest.raises(
        RankwiseError, match=r"export to c, onnx, python|requires a HybridRanker, got MappedRanker"
    ) as error:
        rw.export(model, target)
    assert "\n" not in str(error.value)


def test_rankers_on_maps_are_not_explained_as_sums_of_features():
    model = rw.MappedRanker("KernelPCAMap", rw.RidgeRanker(alpha=1.0)).fit(lists())
    with pytest.raises(RankwiseError, match="sum"):
        rw.explain(model, lists()[2])
