"""Every ranker through every export: read back and computed as the engine does, it ranks as the ranker does."""

import json
import math
import shutil
import subprocess
from ctypes import CDLL, POINTER, c_char_p, c_double, c_int

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports import Export, Target, export, targets
from rankwise.exports.formula import StepSum, WeightedSum
from rankwise.exports.solr import SLACK, before_slack, power_of_two
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers.linear.linear_model import LinearModel
from tests.exports.models import KINDS, NAMES, NETWORKS, OF_ROWS, fitted, of_steps, of_weights, sample

EXACT = ("c", "python", "sql", "vespa")  # float64 all the way
TREES_ALONE = ("ranklib", "solr", "elasticsearch", "opensearch")
SINGLE = ("solr", "elasticsearch", "opensearch", "onnx")

over_all_targets = pytest.mark.parametrize("target", OF_ROWS)


@over_all_targets
@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_ranker_orders_as_the_ranker_does(kind, target):
    model, lists = fitted(kind), sample()
    if hasattr(model, "network_") and target not in NETWORKS:
        with pytest.raises(RankwiseError, match=r"and NeuralRanker is a network: export to c, onnx, python"):
            export(model, target, sample=lists)
        return
    if kind == "AutoRanker" and target in TREES_ALONE:
        with pytest.raises(RankwiseError, match=r"members=\('trees',\)"):
            export(model, target, sample=lists)
        return
    done = export(model, target, sample=lists)
    parity = done.parity
    assert parity.inverted_beyond_float32 == 0
    assert parity.pairs > 100 or not np.ptp(model.predict(lists))
    assert parity.documents == lists.n_documents
    bound = 1e-13 if target in EXACT else 1e-5
    assert parity.largest_difference <= bound * max(1.0, parity.largest_score)
    if target in EXACT:
        assert parity.inverted == parity.tied == 0
    assert parity.ranker == model.score(lists)
    assert done.notes
    assert json.loads(json.dumps(done.to_dict()))["target"] == target


@pytest.mark.parametrize("kind", KINDS)
def test_the_function_of_python_runs_in_an_empty_namespace(kind):
    model, lists = fitted(kind), sample()
    namespace = {}
    exec(export(model, "python", called="score").text, namespace)
    assert namespace["FEATURES"] == NAMES
    scores = [namespace["score"](row) for row in lists.X.tolist()]
    np.testing.assert_allclose(scores, model.predict(lists), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="expected 5 features, found 2"):
        namespace["score"]([1.0, 2.0])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile the text of an export to C: the function, and its names of features."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("c")

    def build(text, name="rankwise"):
        number = len(list(folder.iterdir()))
        source, library = folder / f"{number}.c", folder / f"{number}.so"
        source.write_text(text)
        flags = ["-std=c89", "-pedantic-errors", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True, capture_output=True)
        loaded = CDLL(str(library))
        function = getattr(loaded, name)
        function.restype, function.argtypes = c_double, [POINTER(c_double)]
        width = c_int.in_dll(loaded, f"{name}_width").value
        names = [one.decode() for one in (c_char_p * width).in_dll(loaded, f"{name}_features")]

        def score(X):
            rows = np.ascontiguousarray(X, dtype=np.float64)
            return np.array([function(row.ctypes.data_as(POINTER(c_double))) for row in rows])

        return score, names

    return build


@pytest.mark.parametrize("kind", KINDS)
def test_the_function_of_c_gives_the_bits_that_parity_saw(kind, compiled):
    model, lists = fitted(kind), sample()
    done = export(model, "c")
    score, names = compiled(done.text)
    assert tuple(names) == NAMES
    seen = targets()["c"]().score(done.files, lists.X, NAMES)
    np.testing.assert_array_equal(score(lists.X), seen)
    np.testing.assert_allclose(seen, model.predict(lists), rtol=1e-12, atol=1e-12)


def test_missing_values_are_zero_in_python_and_c_where_the_ranker_has_it_so(compiled):
    X = np.array([[1.0, np.nan], [np.inf, 2.0], [0.5, 0.25]])
    model = LinearModel.of([2.0, 3.0], missing="zero")
    namespace = {}
    exec(export(model, "python").text, namespace)
    expected = model.predict(X)
    np.testing.assert_array_equal([namespace["rankwise"](row) for row in X.tolist()], expected)
    np.testing.assert_array_equal(compiled(export(model, "c").text)[0](X), expected)
    sql = targets()["sql"]()
    for name in ("sql", "vespa"):
        found = targets()[name]().score(export(model, name).files, np.where(np.isfinite(X), X, np.nan), ("f1", "f2"))
        np.testing.assert_array_equal(found, expected)
    strict = export(LinearModel.of([2.0, 3.0]), "sql")
    assert np.isnan(sql.score(strict.files, X[:1], ("f1", "f2"))).all()


def test_elasticsearch_adds_in_float64_by_ranklibs_rules():
    done = export(fitted("RidgeRanker"), "elasticsearch", sample=sample(), form="ranklib")
    model = json.loads(done.text)["model"]["model"]
    assert model["type"] == "model/ranklib"
    assert model["definition"].startswith("## Coordinate Ascent")
    assert done.parity.inverted == 0
    assert "float64 sums" in done.parity.arithmetic
    assert export(fitted("FRank"), "opensearch", sample=sample()).parity.arithmetic.startswith("float32, tree")
    assert export(fitted("FRank"), "opensearch", sample=sample(), form="xgboost").parity.inverted == 0
    for kind, form in (("FRank", "linear"), ("RidgeRanker", "xgboost")):
        with pytest.raises(RankwiseError, match="form must be 'linear' for weights, 'xgboost' for steps and trees, or"):
            export(fitted(kind), "elasticsearch", form=form)


def test_real_lists_keep_their_measure_in_every_engine(data_folder):
    train, test = (rw.read_letor(data_folder / "ohsumed" / f"{part}.txt.gz") for part in ("S1", "S5"))
    for model in (rw.RidgeRanker(alpha=1.0), rw.RankBoost(rounds=20)):
        model.fit(train)
        for target in OF_ROWS:
            parity = export(model, target, sample=test).parity
            assert parity.pairs > 200_000
            # float32 sums of 45 features: scores nearer than this may change places
            assert parity.widest_inversion < 2e-6 * parity.largest_score
            assert parity.inverted <= 2
            assert parity.engine == pytest.approx(parity.ranker, abs=1e-4)


# ------------------------------------------------------------------------------------------- at the thresholds

edge = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda t: t == 0 or abs(t) > 1e-30)


@st.composite
def step_sums(draw):
    count = draw(st.integers(1, 8))
    features = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    cuts = draw(st.lists(edge, min_size=count, max_size=count))
    alphas = draw(st.lists(st.integers(-(2**20), 2**20), min_size=count, max_size=count))
    return StepSum(("a", "b", "c"), np.array(features), np.array(cuts), np.array(alphas) * 2.0**-18)


def around(threshold):
    """The float32 numbers next to a threshold, and itself where it is one."""
    near = np.float32(threshold)
    below, above = (np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))
    return [np.nextafter(below, np.float32(-np.inf)), below, near, above, np.nextafter(above, np.float32(np.inf))]


@given(step_sums())
@settings(max_examples=25)
def test_features_at_a_threshold_go_where_the_ranker_sends_them(formula):
    """x > t and x <= t, single and double: every float32 next to every threshold falls on the side that it should."""
    rows = []
    for feature, threshold in zip(formula.feature, formula.threshold, strict=True):
        for value in around(threshold):
            row = np.zeros(3, dtype=np.float32)
            row[feature] = value
            rows.append(row)
    X = np.array(rows)
    model = of_steps(formula)
    queries = Queries.from_arrays(X, None, group=[len(X)], feature_names=formula.names)
    expected = sum(
        alpha * (X[:, feature].astype(np.float64) > threshold)
        for feature, threshold, alpha in zip(formula.feature, formula.threshold, formula.alpha, strict=True)
    )
    np.testing.assert_array_equal(model.predict(queries), expected)
    for target in ("ranklib", "python", "c", "sql", "vespa", "elasticsearch", "onnx", "solr"):
        # alphas of 21 bits and few of them: every sum is exact in float32 too
        assert export(model, target, sample=queries).parity.largest_difference == 0, target
    trees = export(model, "ranklib", sample=queries, form="trees")
    assert trees.parity.largest_difference == 0


@given(st.lists(st.floats(-(2.0**66), 2.0**66, width=32, allow_subnormal=False), min_size=1, max_size=4))
@example([-1.0])  # no float32 becomes -1 by adding 1e-6: its neighbors below are too far apart
@example([1e-15, 0.5, 0.0])
def test_solrs_slack_is_taken_back(thresholds):
    thresholds = [0.0 if abs(one) < 2.0**-60 else float(np.float32(one)) for one in thresholds]
    power = power_of_two(thresholds)
    for threshold in thresholds:
        moved = math.ldexp(threshold, power)
        assert np.float32(moved) == moved
        assert before_slack(moved) + SLACK == np.float32(moved)


def test_a_threshold_that_solr_cannot_meet_is_told_and_keeps_its_own_value_on_its_side():
    cuts = np.array([2.0**-100, 2.0**100])
    formula = StepSum(("a",), np.array([0, 0]), cuts, np.array([1.0, 1.0]))
    X = cuts.astype(np.float32)[:, None]
    queries = Queries.from_arrays(X, None, group=[2], feature_names=("a",))
    done = export(of_steps(formula), "solr", sample=queries)
    assert any("1 thresholds, too near to 0 beside large ones" in note for note in done.notes)
    assert done.parity.largest_difference == 0


# ------------------------------------------------------------------------------------------- weights of any size


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
    st.floats(-100, 100),
    st.integers(0, 2**31),
)
@settings(max_examples=15)
def test_any_weights_and_constant_keep_their_order_in_float32(weights, constant, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    weight = np.array([0.0 if abs(one) < 1e-3 else one for one in weights])
    model = of_weights(WeightedSum(("a", "b", "c"), weight, constant))
    queries = Queries.from_arrays(X, rng.integers(0, 3, 30), group=[10, 20], feature_names=("a", "b", "c"))
    size = np.abs(weight).sum() * np.abs(X).max() + abs(constant)
    for target in OF_ROWS:
        parity = export(model, target, sample=queries).parity
        assert parity.largest_difference <= (1e-12 if target in EXACT else 2e-6) * max(size, 1e-9), target
        if target in EXACT:
            assert parity.inverted_beyond_float32 == 0


def test_numbers_that_single_precision_cannot_hold_are_refused_by_name():
    for weight in (1e300, 1e-300):
        model = of_weights(WeightedSum(("a", "b"), np.array([1.0, weight])))
        for target in SINGLE:
            with pytest.raises(RankwiseError, match=r"weight of feature 'b' is 1e.300.*float32.*scale the features"):
                export(model, target)
        for target in EXACT:
            export(model, target)
    steps = of_steps(StepSum(("a", "b"), np.array([1]), np.array([-1e300]), np.array([1.0])))
    with pytest.raises(RankwiseError, match="a threshold of feature 'b' is -1e"):
        export(steps, "onnx")


def test_models_without_weights_or_steps_are_still_models():
    nothing = of_weights(WeightedSum(("a", "b"), np.zeros(2)))
    empty = np.array([], dtype=np.float64)
    no_steps = of_steps(StepSum(("a", "b"), empty.astype(np.int64), empty, empty))
    queries = Queries.from_arrays(np.eye(2), [0, 1], group=[2], feature_names=("a", "b"))
    for model in (nothing, no_steps):
        for target in OF_ROWS:
            assert export(model, target, sample=queries).parity.largest_difference == 0


# ------------------------------------------------------------------------------------------- the door


def test_a_target_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(
        RankwiseError,
        match=r"to must be the name of an export target, got 'slor': there are c, .*; did you mean 'solr'\?",
    ):
        export(fitted("RidgeRanker"), "slor")
    with pytest.raises(RankwiseError, match=r"an export to solr has no option 'shop': it takes store"):
        export(fitted("RidgeRanker"), "solr", shop="a")
    with pytest.raises(RankwiseError, match="takes no options"):
        export(fitted("RidgeRanker"), "python", shop="a")
    with pytest.raises(RankwiseError, match="export requires a fitted ranker, got int"):
        export(5, "solr")


def test_a_target_can_be_given_with_its_options():
    solr = targets()["solr"](store="shop")
    assert json.loads(export(fitted("RidgeRanker"), solr).text)["store"] == "shop"
    again = export(fitted("RidgeRanker"), solr, store="other", called="v2")
    assert (json.loads(again.text)["store"], json.loads(again.text)["name"]) == ("other", "v2")
    assert issubclass(type(solr), Target)


def test_a_ranker_that_is_neither_weights_nor_steps_is_refused():
    class Odd(Ranker):
        name = "Odd"
        n_features_in_ = 2

        def _fit(self, queries, validation): ...
        def _scores(self, X): ...
        def _state(self): ...
        def _restore(self, facts, store): ...

    with pytest.raises(RankwiseError, match="Odd cannot be exported"):
        export(Odd(), "c")
    with pytest.raises(RankwiseError, match="not fitted yet"):
        export(LinearModel(), "c")


def test_one_file_goes_to_a_path_and_several_into_a_folder(tmp_path):
    model = fitted("RidgeRanker")
    assert export(model, "c", tmp_path / "score.c").text == (tmp_path / "score.c").read_text()
    assert export(model, "c").write(tmp_path) == [tmp_path / "rankwise.c"]
    done = export(model, "solr")
    assert [one.name for one in done.write(tmp_path / "solr")] == ["model.json", "features.json"]
    assert json.loads((tmp_path / "solr" / "features.json").read_text())[0]["name"] == "age"
    with pytest.raises(RankwiseError, match=r"is 2 files \(model.json, features.json\), which go into a folder"):
        done.write(tmp_path / "score.c")
    with pytest.raises(RankwiseError, match="cannot be written"):
        done.write(tmp_path / "nowhere" / "solr")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["rankwise.c", "score.c", "solr"]
    onnx = export(model, "onnx", tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == onnx.content
    with pytest.raises(RankwiseError, match="is not text"):
        _ = onnx.text
    assert isinstance(onnx, Export)
