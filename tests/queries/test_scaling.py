"""Features come to a common scale without leaking from the test set and without overflowing anywhere."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from rankwise import MappedRanker, Queries, RidgeCommittee, Scaler, SLAMPerceptron, load, make_lists, read_letor
from rankwise._kernels import parallel
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks, chunks, scaling

HOW = ["standard", "minmax", "log"]  # normal scores have a section of their own


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


# ------------------------------------------------------------------------------------------- normal scores


def middle_ranks(x):
    """The normal quantile of (mean rank - 1/2) / n of every value, by counting."""
    return norm.ppf([(np.mean(x < value) + np.mean(x <= value)) / 2 for value in x])


def normal_scores(x, other=None, dtype=np.float64):
    """One feature after learning from x: x itself, or other values."""
    scaler = Scaler("normal").fit(lists(np.array(x, dtype=dtype).reshape(-1, 1)))
    return scaler.transform(lists(np.array(x if other is None else other, dtype=dtype).reshape(-1, 1))).X[:, 0]


few_values = st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1e308, 1e308, 1.7976931348623157e308, 0.1])
any_values = st.lists(st.one_of(few_values, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=40)


@given(any_values)
def test_every_training_value_gets_the_normal_score_of_its_mean_rank(values):
    x = np.array(values)
    found = normal_scores(x)
    np.testing.assert_allclose(found, middle_ranks(x), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found, normal_scores(x[::-1])[::-1])  # whatever the order


@given(any_values, st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_scores_rise_with_the_value_and_end_with_the_extremes(values, others):
    x = np.array(values)
    beside = [math.nextafter(value, end) for value in values for end in (-1e308, 1e308)]
    every = np.sort(np.concatenate([others, x, beside]))
    found, own = normal_scores(x, every), middle_ranks(x)
    assert (np.diff(found) >= 0).all()
    assert (found[every <= x.min()] == found[0]).all()
    assert found.min() >= own.min() - 1e-12
    assert found.max() <= own.max() + 1e-12


def test_values_between_two_knots_are_on_a_line():
    assert normal_scores([0.0, 4.0], [-9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 9.0]) == pytest.approx(
        norm.ppf(0.75) * np.array([-1, -1, -0.5, 0, 0.5, 1, 1])
    )
    widest = np.finfo(np.float64).max
    np.testing.assert_allclose(
        normal_scores([-widest, widest], [-widest / 2, 0.0]), norm.ppf(0.75) * np.array([-0.5, 0])
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: np.exp(4 * rng.normal(size=n)),
        lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),  # mostly 0
        lambda rng, n: np.where(rng.random(n) < 0.3, 0.5, rng.random(n)),  # a jump in the middle
        lambda rng, n: rng.integers(0, 400, n) ** 2.0,
    ],
)
@pytest.mark.parametrize("size", [300, 20_000])
def test_at_most_255_knots_are_within_the_stated_distance_of_all(draw, size):
    x = draw(np.random.default_rng(size), size)
    knots, scores = scaling.knots_of(x)
    full_knots, full_scores = scaling.knots_of(x, most=size)
    np.testing.assert_allclose(full_scores[np.searchsorted(full_knots, x)][:200], [
        norm.ppf((np.mean(x < value) + np.mean(x <= value)) / 2) for value in x[:200]
    ], rtol=1e-12)  # fmt: skip
    assert (knots[0], knots[-1]) == (x.min(), x.max())
    assert min(127, len(full_knots)) <= len(knots) <= 255
    error = np.abs(np.interp(full_knots, knots, scores) - full_scores)
    assert error.max() <= 2 * np.ptp(full_scores) / 254 + 1e-12
    assert set(zip(knots, scores, strict=True)) <= set(zip(full_knots, full_scores, strict=True))
    scaler = Scaler("normal").fit(x[:, None])
    np.testing.assert_array_equal(scaler.transform(knots[:, None])[:, 0], scores)
    np.testing.assert_allclose(scaler.transform(x[:, None])[:, 0], np.interp(x, knots, scores), rtol=1e-12, atol=1e-12)


def test_of_255_distinct_values_each_is_a_knot_and_of_256_not_all_are():
    rng = np.random.default_rng(0)
    for count, whole in ((254, True), (255, True), (256, False)):
        x = rng.permutation(np.repeat(np.arange(count) ** 3.0, 3))
        assert (len(scaling.knots_of(x)[0]) == count) is whole


@pytest.mark.parametrize("value", [0.0, -0.0, 1e308, -5e-324])
def test_a_feature_that_does_not_vary_scores_0_everywhere(value):
    np.testing.assert_array_equal(normal_scores([value], [value, -1e300, 1e300]), 0.0)
    np.testing.assert_array_equal(normal_scores([value] * 5, [value, 3.0]), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_scores_keep_the_type_and_do_not_depend_on_blocks_or_threads(monkeypatch, dtype):
    X = np.random.default_rng(1).lognormal(size=(3_000, 5)).astype(dtype)
    one = Scaler("normal").fit(lists(X))
    whole = one.transform(lists(X)).X
    assert whole.dtype == dtype
    np.testing.assert_allclose(whole[:, 2], normal_scores(X[:, 2], dtype=dtype))
    monkeypatch.setattr(scaling, "_SORTED", 4_000)  # one feature at a time
    monkeypatch.setattr(parallel, "CHUNK", 64)
    again = Scaler("normal").fit(lists(X, np.arange(3_000) % 7))
    assert again == one
    np.testing.assert_array_equal(again.transform(lists(X)).X, whole)
    np.testing.assert_array_equal(one.transform(lists(X[5:6])).X, whole[5:6])


def test_normal_scores_are_a_value_that_files_keep(tmp_path):
    queries = lists(np.random.default_rng(4).normal(size=(400, 2)), feature_names=["a", "b"])
    fitted = Scaler("normal").fit(queries)
    assert fitted.center_ is fitted.scale_ is None
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    assert Scaler.from_state(*fitted.to_state()) == fitted
    assert eval(repr(fitted)) == clone(fitted) == Scaler("normal")
    scaled = fitted.transform(queries)
    scaled.save(tmp_path / "scaled.rw")
    assert load(tmp_path / "scaled.rw").scaling == fitted
    facts, learned = fitted.to_state()
    for name, wrong in (
        ("knots", learned["knots"][::-1].copy()),
        ("scores", learned["scores"][:-1]),
        ("knot_start", learned["knot_start"][:-1]),
        ("knot_start", learned["knot_start"].astype(np.float64)),
        ("scores", np.full_like(learned["scores"], np.nan)),
        ("center", np.zeros(2)),
    ):
        with pytest.raises(DataError, match="the state of a scaler has"):
            Scaler.from_state(facts, {**learned, name: wrong})


def test_a_ranker_on_normal_scores_learns_saves_and_ranks(tmp_path):
    queries = make_lists(60, documents=12, features=4, random_state=1)
    scaler = Scaler("normal").fit(queries)
    model = RidgeCommittee().fit(scaler.transform(queries))
    model.save(tmp_path / "model.rw")
    again = load(tmp_path / "model.rw")
    assert again.record_.scaler == scaler
    np.testing.assert_array_equal(again.predict(scaler.transform(queries)), model.predict(scaler.transform(queries)))
    held = scaler.transform(make_lists(80, documents=12, features=4, random_state=2))
    assert model.certificate(holdout=held).headline is not None


def test_a_ranker_on_the_map_is_one_on_scaled_queries(tmp_path):
    queries, others = (make_lists(60, documents=12, features=4, random_state=seed) for seed in (1, 2))
    scaler = Scaler("normal").fit(queries)
    model = MappedRanker(Scaler("normal"), RidgeCommittee()).fit(queries)
    own = RidgeCommittee().fit(scaler.transform(queries)).predict(scaler.transform(others))
    np.testing.assert_allclose(model.predict(others), own, rtol=1e-12, atol=1e-12)
    model.save(tmp_path / "model.rw")
    again = load(tmp_path / "model.rw")
    assert again.transformer_.to_state()[1].keys() == {"knot_start", "knots", "scores"}
    np.testing.assert_array_equal(again.predict(others), model.predict(others))
    assert model.certificate(holdout=others).headline is not None
    with pytest.raises(RankwiseError, match="an array has no queries: pass Queries, or per='set'"):
        MappedRanker(Scaler(per="query"), RidgeCommittee()).fit(queries)


@pytest.mark.parametrize("how", [*HOW, "normal"])
def test_arrays_are_scaled_as_queries_are(how):
    X = np.random.default_rng(0).lognormal(size=(40, 3))
    scaler = Scaler(how).fit(X)
    assert scaler == Scaler(how).fit(lists(X))
    np.testing.assert_array_equal(scaler.transform(X), scaler.transform(lists(X)).X)
    with pytest.raises(DataError, match="fitted on 3 features, got 2"):
        scaler.transform(X[:, :2])


@pytest.mark.parametrize("ranker", [RidgeCommittee(), SLAMPerceptron(epochs=2)], ids=repr)
def test_no_bound_takes_learned_normal_scores_for_features_that_were_fixed(ranker):
    raw = make_lists(60, documents=12, features=4, random_state=1)
    named = []
    for how in ("standard", "normal"):
        train = Scaler(how).fit_transform(raw)
        found = clone(ranker).fit(train).certificate(train, row_radius=100.0, longest=12)
        named.append({row.name for row in found.rows})
    assert any(name.startswith("Uniform") for name in named[0])
    assert not any(name.startswith(("Uniform", "Online to batch")) for name in named[1])
    assert "normal scores of the features were learned" in " ".join(found.notes)


def test_normal_scores_are_of_a_whole_set_without_missing_values_and_not_linear():
    with pytest.raises(RankwiseError, match="per must be 'set' for how='normal'"):
        Scaler("normal", per="query").fit(lists([[1.0]]))
    with pytest.raises(RankwiseError, match="is not linear in the raw features"):
        Scaler("normal").fit(lists([[1.0], [2.0]])).fold([1.0])
    kept = Queries.from_arrays([[1.0], [np.nan]], [0, 1], qid=[1, 1], missing="keep")
    for refused in (Scaler("normal").fit, Scaler("normal").fit(lists([[1.0], [2.0]])).transform):
        with pytest.raises(DataError, match="a Scaler gives no meaning to missing values"):
            refused(kept)
    with pytest.raises(DataError, match="needs documents, got none"):
        Scaler("normal").fit(lists(np.zeros((0, 2))))


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
