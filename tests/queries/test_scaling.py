"""Features come to a common scale without leaking from the test set and without overflowing anywhere."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from rankwise import Queries, Scaler, read_letor
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks, chunks, scaling

HOW = ["standard", "minmax", "log"]


def lists(X, qid=None, **more):
    return Queries.from_arrays(np.asarray(X), qid=np.zeros(len(X), dtype=int) if qid is None else qid, **more)


def spread(exponents, dtype, rows=6):
    """Features of the given decimal exponents."""
    rng = np.random.default_rng(0)
    return (rng.uniform(-1, 1, (rows, len(exponents))) * 10.0 ** np.array(exponents)).astype(dtype)


ordinary = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
matrices = st.integers(1, 12).flatmap(lambda rows: arrays(np.float64, (rows, 3), elements=ordinary))


# ------------------------------------------------------------------------------------------- what it computes


@given(matrices)
def test_standard_and_minmax_are_scikit_learns(X):
    queries = lists(X)
    np.testing.assert_allclose(Scaler("minmax").fit_transform(queries).X, MinMaxScaler().fit_transform(X), atol=1e-9)
    varying = X.min(axis=0) < X.max(axis=0)
    ours, theirs = Scaler("standard").fit_transform(queries).X, StandardScaler().fit_transform(X)
    np.testing.assert_allclose(ours[:, varying], theirs[:, varying], atol=1e-6)
    assert not ours[:, ~varying].any()


def test_log_is_the_signed_logarithm_made_standard():
    X = np.array([[-7.0], [0.0], [0.5], [1e6]])
    logs = np.sign(X) * np.log1p(np.abs(X))
    np.testing.assert_allclose(Scaler("log").fit_transform(lists(X)).X, (logs - logs.mean()) / logs.std())


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30))
def test_the_moments_are_right_to_the_last_digits(values):
    assume(len(set(values)) > 1)
    scaler = Scaler().fit(lists(np.array(values, dtype=float).reshape(-1, 1)))
    mean = Fraction(sum(values), len(values))
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    assert scaler.center_[0] == pytest.approx(float(mean), rel=1e-13, abs=1e-9)
    assert scaler.scale_[0] == pytest.approx(float(variance) ** 0.5, rel=1e-12)


def test_a_small_spread_far_from_zero_is_not_lost():
    X = (1e9 + np.arange(1000) % 2).reshape(-1, 1)
    scaled = Scaler().fit_transform(lists(X)).X
    assert set(scaled[:, 0]) == {-1.0, 1.0}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_change_nothing_but_the_last_digits(monkeypatch, how, dtype):
    X = np.random.default_rng(1).normal(3, 5, (101, 4)).astype(dtype)
    whole = Scaler(how).fit(lists(X))
    monkeypatch.setattr(checks, "BLOCK_VALUES", 4 * 7)
    parts = Scaler(how).fit(lists(X))
    np.testing.assert_allclose(parts.center_, whole.center_, rtol=1e-13)
    np.testing.assert_allclose(parts.scale_, whole.scale_, rtol=1e-13)
    assert parts.transform(lists(X)).X.dtype == dtype
    # with the same center and scale, a row's features do not depend on the rows around it
    np.testing.assert_array_equal(whole.transform(lists(X[3:5])).X, whole.transform(lists(X)).X[3:5])


def test_no_block_is_a_copy_of_all_features(monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_VALUES", 1000)
    sizes = []
    transform = chunks.transform_values
    for place in (chunks, scaling):
        monkeypatch.setattr(place, "transform_values", lambda X, how: sizes.append(X.size) or transform(X, how))
    Scaler().fit_transform(lists(np.ones((500, 10), dtype=np.float32)))
    assert sum(sizes) == 2 * 5000  # moments and result; the extremes need no copy
    assert max(sizes) == 1000


# ------------------------------------------------------------------------------------------- within a query


@pytest.mark.parametrize("how", HOW)
def test_per_query_is_each_query_scaled_alone(how):
    rng = np.random.default_rng(2)
    X, qid = rng.normal(size=(40, 3)), rng.integers(0, 6, 40)
    queries = lists(X, qid)
    together = Scaler(how, per="query").fit_transform(queries)
    alone = [Scaler(how).fit_transform(queries[[number]]).X for number in range(len(queries))]
    for number, expected in enumerate(alone):
        np.testing.assert_array_equal(together[number].X, expected)
    np.testing.assert_array_equal(together.rows, queries.rows)


def test_per_query_learns_nothing_from_the_set():
    scaler = Scaler("minmax", per="query").fit(lists([[1.0], [2.0]]))
    assert scaler.center_ is scaler.scale_ is None
    assert scaler.transform(lists([[10.0], [20.0], [15.0]])).X[:, 0].tolist() == [0, 1, 0.5]


def test_queries_without_documents_and_with_one_are_scaled():
    queries = Queries([[5.0], [1.0], [3.0]], None, [0, 0, 1, 1, 3])
    assert Scaler("minmax", per="query").fit_transform(queries).X[:, 0].tolist() == [0, 0, 1]


def test_minmax_per_query_is_how_letor_was_normalized(data_folder):
    raw = read_letor(data_folder / "ohsumed-raw" / "S1.txt.gz")
    published = read_letor(data_folder / "ohsumed" / "S1.txt.gz")
    scaled = Scaler("minmax", per="query").fit_transform(raw)
    assert scaled.names() == published.names()
    assert np.abs(scaled.X - published.X).max() < 1e-6


# ------------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("per", ["set", "query"])
@pytest.mark.parametrize(
    ("dtype", "exponents"), [(np.float64, [-300, -160, 0, 160, 300, 307.5]), (np.float32, [-37, 0, 38])]
)
def test_huge_and_tiny_features_come_out_alike(how, per, dtype, exponents):
    with np.errstate(all="raise", under="ignore"):
        X = Scaler(how, per=per).fit_transform(lists(spread(exponents, dtype))).X
    assert X.dtype == dtype
    assert np.isfinite(X).all()
    if how == "minmax":
        assert (X.min(axis=0) == 0).all()
        np.testing.assert_allclose(X.max(axis=0), 1, rtol=1e-6)
    elif how == "standard":
        np.testing.assert_allclose(X.std(axis=0, dtype=np.float64), 1, rtol=1e-5)
        np.testing.assert_allclose(X.mean(axis=0, dtype=np.float64), 0, atol=1e-6)


@pytest.mark.parametrize("per", ["set", "query"])
@pytest.mark.parametrize("how", HOW)
@given(value=st.floats(allow_nan=False, allow_infinity=False), rows=st.integers(1, 9))
def test_a_constant_feature_becomes_zero(how, per, value, rows):
    scaler = Scaler(how, per=per).fit(lists(np.full((rows, 1), value)))
    assert not scaler.transform(lists(np.full((rows, 1), value))).X.any()
    if per == "set":
        assert scaler.scale_[0] == 0
        assert not scaler.transform(lists([[123.0], [0.0]])).X.any()  # and stays so where it does vary


@given(arrays(np.float64, (5, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_every_finite_feature_is_scaled_or_refused(X):
    for how in HOW:
        try:
            scaled = Scaler(how).fit_transform(lists(X))
        except DataError as error:
            assert "does not fit into float64" in str(error)  # noqa: PT017 - refused is one of two right answers
        else:
            assert np.isfinite(scaled.X).all()


def test_a_spread_that_no_number_holds_is_refused():
    with pytest.raises(DataError, match=r"feature 1 reaches from -1.7e\+308 to 1.7e\+308"):
        Scaler().fit(lists([[0.0, -1.7e308], [1.0, 1.7e308]]))


def test_a_value_far_beyond_what_was_learned_is_refused_by_row():
    scaler = Scaler("minmax").fit(lists([[0.0], [1e-30]]))
    with pytest.raises(DataError, match="X is 1e\\+300 at row 1, feature 0: scaled, that is too large for float64"):
        scaler.transform(lists([[0.0], [1e300]]))
    single = Scaler("minmax").fit(lists(np.array([[0.0], [1e-30]], dtype=np.float32)))
    with pytest.raises(DataError, match="too large for float32"):
        single.transform(lists(np.array([[1e30]], dtype=np.float32)))


# ------------------------------------------------------------------------------------------- the training part alone


def test_the_test_set_is_scaled_by_what_training_taught():
    train, test = lists([[0.0], [10.0]]), lists([[5.0], [20.0]])
    scaler = Scaler("minmax").fit(train)
    assert scaler.transform(test).X[:, 0].tolist() == [0.5, 2.0]
    assert scaler.center_.tolist() == [0]
    assert scaler.scale_.tolist() == [10]


def test_the_result_remembers_its_scaling_and_keeps_the_rest():
    queries = lists([[1.0], [2.0], [4.0]], ["a", "b", "a"], docid=["x", "y", "z"], weight=[1, 2], feature_names=["f"])
    scaler = Scaler().fit(queries)
    scaled = scaler.transform(queries)
    assert scaled.scaling == scaler
    assert queries.scaling is None
    assert (scaled.names(), list(scaled.docid), scaled.weight.tolist()) == (["a", "b"], ["x", "y", "z"], [1, 2])
    assert scaled[1:].scaling == scaler
    assert Queries.concat([scaled[:1], scaled[1:]]).scaling == scaler
    scaler.fit(lists([[7.0], [9.0]], feature_names=["f"]))
    assert scaled.scaling != scaler  # what happened to these queries cannot be rewritten


def test_features_are_matched_by_name():
    scaler = Scaler("minmax").fit(lists([[0.0, 10.0], [1.0, 20.0]], feature_names=["a", "b"]))
    other = lists([[15.0, 0.5]], feature_names=["b", "a"])
    scaled = scaler.transform(other)
    assert scaled.feature_names == ("a", "b")
    assert scaled.X.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("queries", "sentence"),
    [
        (lists([[1.0]], feature_names=["a"]), "fitted on 2 features"),
        (lists([[1.0, 2.0]], feature_names=["a", "c"]), "feature 'b' is not among"),
        (lists([[1.0, 2.0]]), "features of the scaler have names .* name both or none"),
        (Scaler().fit_transform(lists([[1.0, 2.0]], feature_names=["a", "b"])), "scaled already by Scaler"),
    ],
)
def test_other_features_are_refused(queries, sentence):
    scaler = Scaler().fit(lists([[0.0, 10.0], [1.0, 20.0]], feature_names=["a", "b"]))
    with pytest.raises(DataError, match=sentence):
        scaler.transform(queries)


@pytest.mark.parametrize(("how", "per"), [("zscore", "set"), ("standard", "list")])
def test_unknown_ways_are_refused_by_the_known_ones(how, per):
    with pytest.raises(
        RankwiseError, match=r"The '(how|per)' parameter of Scaler must be '.*'. Got '(zscore|list)' instead"
    ):
        Scaler(how, per).fit(lists([[1.0]]))


def test_a_scaler_must_be_fitted_and_on_documents():
    with pytest.raises(RankwiseError, match="not fitted yet"):
        Scaler().transform(lists([[1.0]]))
    with pytest.raises(DataError, match="needs documents, got none"):
        Scaler().fit(lists(np.zeros((0, 2))))


# ------------------------------------------------------------------------------------------- folding into weights


@pytest.mark.parametrize("how", ["standard", "minmax"])
def test_folded_weights_rank_raw_features_alike(how):
    rng = np.random.default_rng(3)
    X = rng.normal(4, 2, (50, 6)) * 10.0 ** np.arange(-3, 3)
    X[:, 2] = 7.0
    scaler = Scaler(how).fit(lists(X))
    coef = rng.normal(size=6)
    scaled, raw = scaler.transform(lists(X)).X @ coef, X @ scaler.fold(coef)
    shift = raw - scaled
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    assert scaler.fold(coef)[2] == 0


@pytest.mark.parametrize("scaler", [Scaler("log"), Scaler("standard", per="query")], ids=repr)
def test_what_is_not_linear_cannot_be_folded(scaler):
    with pytest.raises(RankwiseError, match="is not linear in the raw features"):
        scaler.fit(lists([[1.0], [2.0]])).fold([1.0])


def test_weights_that_do_not_fit_are_refused():
    scaler = Scaler("minmax").fit(lists([[0.0, 0.0], [1.0, 1e-300]]))
    with pytest.raises(DataError, match=r"coef has shape \(3,\): expected one weight for each of 2 features"):
        scaler.fold([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="the weight of feature 1 does not fit"):
        scaler.fold([1.0, 1e10])


# ------------------------------------------------------------------------------------------- as a value


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("per", ["set", "query"])
def test_a_scaler_is_a_value(how, per):
    queries = lists(np.random.default_rng(4).normal(size=(9, 2)), feature_names=["a", "b"])
    fitted = Scaler(how, per).fit(queries)
    assert fitted == Scaler(how, per).fit(queries)
    assert fitted != Scaler(how, per)
    assert fitted != Scaler(how, per).fit(queries.map_features(lambda X: X[:, ::-1], feature_names=["b", "a"]))
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    assert Scaler.from_state(*fitted.to_state()) == fitted
    assert eval(repr(fitted)) == Scaler(how, per)
    assert clone(fitted) == Scaler(how, per)


def test_parameters_are_read_and_set_by_name():
    scaler = Scaler().set_params(how="log", per="query")
    assert scaler.get_params() == {"how": "log", "per": "query"}
    with pytest.raises(RankwiseError, match="parameters how and per, got 'with_mean'"):
        scaler.set_params(with_mean=True)
