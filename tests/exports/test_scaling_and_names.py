"""Scaling that an engine must do too, names that it must take, constants and scores below 0."""

import json
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.exports import export
from rankwise.exports.formula import StepSum
from rankwise.exports.raw_thresholds import last_not_above
from rankwise.rankers.linear.linear_model import LinearModel
from tests.exports.models import NAMES, OF_ROWS, fitted, raw_lists, sample

over_all_targets = pytest.mark.parametrize("target", OF_ROWS)


# ------------------------------------------------------------------------------------------- scaling


@over_all_targets
@pytest.mark.parametrize("how", ["standard", "minmax"])
@pytest.mark.parametrize("steps", [False, True])
def test_an_engine_that_sees_raw_features_ranks_as_the_ranker_does_on_scaled_ones(target, how, steps):
    raw, unseen = raw_lists(), raw_lists(seed=1)
    scaler = rw.Scaler(how).fit(raw)
    model = (rw.RankBoost(rounds=6) if steps else rw.RidgeRanker(alpha=1.0)).fit(scaler.transform(raw))
    done = export(model, target, scaling=scaler, sample=unseen)
    parity = done.parity
    own = model.predict(scaler.transform(unseen))
    assert parity.ranker == rw.evaluate(unseen, own, [model.measure]).mean["nDCG@10"]
    assert parity.inverted == 0
    # in float32 a center is known to 6e-8 of itself, and that divided by the scale is added to every score
    single = target in ("solr", "elasticsearch", "opensearch", "onnx")
    assert parity.largest_difference <= (1e-3 if single and not steps else 1e-6 if single else 1e-9)


def test_solr_and_elasticsearch_scale_by_their_own_normalizers():
    raw = raw_lists()
    scaler = rw.Scaler("standard").fit(raw)
    model = rw.RidgeRanker(alpha=1.0).fit(scaler.transform(raw))
    solr = json.loads(export(model, "solr", scaling=scaler).text)
    params = next(one for one in solr["features"] if one["name"] == "clicks")["norm"]["params"]
    assert float(params["avg"]) == scaler.center_[2]
    assert float(params["std"]) == scaler.scale_[2]
    assert solr["params"]["weights"]["clicks"] == model.coef_[2]
    assert "edits" not in solr["params"]["weights"], "what did not vary counts nothing"
    elastic = json.loads(export(model, "elasticsearch", scaling=scaler).text)["model"]["model"]
    assert elastic["feature_normalizers"]["clicks"]["standard"]["mean"] == scaler.center_[2]
    assert isinstance(elastic["definition"], str)


@over_all_targets
def test_what_was_scaled_within_each_query_is_refused_with_what_to_do(target):
    scaler = rw.Scaler("minmax", per="query").fit(raw_lists())
    model = rw.RidgeRanker(alpha=1.0).fit(scaler.transform(raw_lists()))
    expected = r"scaled within each query.*Scaler\(per='set'\) or raw features, or pass scaling='none'"
    with pytest.raises(RankwiseError, match=expected):
        export(model, target, scaling=scaler)
    scaled = scaler.transform(raw_lists(1))
    with pytest.raises(RankwiseError, match=expected):
        export(model, target, sample=scaled)
    assert export(model, target, scaling="none", sample=scaled).parity.inverted_beyond_float32 == 0


def test_a_sample_that_is_scaled_already_is_not_scaled_again():
    scaler = rw.Scaler().fit(raw_lists())
    model = rw.RidgeRanker(alpha=1.0).fit(scaler.transform(raw_lists()))
    with pytest.raises(DataError, match="pass the raw queries"):
        export(model, "c", sample=scaler.transform(raw_lists(1)))
    assert export(model, "c", sample=scaler.transform(raw_lists(1)), scaling="none").parity.inverted == 0


def test_logarithms_fit_into_steps_and_not_into_weights():
    raw, unseen = raw_lists(), raw_lists(seed=1)
    scaler = rw.Scaler("log").fit(raw)
    with pytest.raises(RankwiseError, match="takes logarithms"):
        export(rw.RidgeRanker(alpha=1.0).fit(scaler.transform(raw)), "solr", scaling=scaler)
    boost = rw.RankBoost(rounds=6).fit(scaler.transform(raw))
    assert export(boost, "sql", scaling=scaler, sample=unseen).parity.largest_difference == 0


def test_a_pipeline_of_a_scaler_and_a_ranker_is_one_model():
    raw = raw_lists()
    pipeline = make_pipeline(rw.Scaler(), rw.RidgeRanker(alpha=1.0)).fit(raw)
    done = export(pipeline, "python", sample=raw_lists(1))
    assert done.parity.inverted == 0
    namespace = {}
    exec(done.text, namespace)
    np.testing.assert_allclose([namespace["rankwise"](row) for row in raw.X.tolist()], pipeline.predict(raw), atol=1e-9)
    with pytest.raises(RankwiseError, match="must consist of a Scaler and a ranker"):
        export(make_pipeline(rw.Scaler(), rw.Scaler(), rw.RidgeRanker()), "python")


def test_a_scaler_of_other_features_is_refused():
    scaler = rw.Scaler().fit(raw_lists().select_features(("age", "bm25")))
    with pytest.raises(DataError, match=r"the features of RidgeRanker \(5\), got 2"):
        export(fitted("RidgeRanker"), "c", scaling=scaler)
    with pytest.raises(RankwiseError, match="scaling must be a fitted Scaler or 'none'"):
        export(fitted("RidgeRanker"), "c", scaling="standard")


@given(
    st.sampled_from(["standard", "minmax", "log"]),
    st.lists(st.floats(-1e5, 1e5), min_size=4, max_size=4),
    st.floats(-3, 3),
)
@settings(max_examples=60)
def test_thresholds_on_raw_features_are_exact(how, values, threshold):
    """For every float64 next to it: z(x) > t if and only if x > t'."""
    lists = rw.Queries.from_arrays(np.array(values)[:, None], [0, 0, 1, 1], group=[4])
    scaler = rw.Scaler(how).fit(lists)
    steps = StepSum(("f1",), np.array([0]), np.array([threshold]), np.array([2.0])).scale_by(scaler)
    feature, cut, alpha, constant = steps.feature, steps.threshold, steps.alpha, steps.constant
    if not scaler.scale_[0]:
        assert not len(feature)
        assert constant == (2.0 if threshold < 0 else 0.0)
        return
    assert constant == 0
    near = [cut[0]]
    for toward in (-np.inf, np.inf):
        one = cut[0]
        for _ in range(3):
            one = np.nextafter(one, toward)
            near.append(one)
    near += values
    z = scaler.transform(rw.Queries.from_arrays(np.array(near)[:, None], None, group=[len(near)])).X[:, 0]
    assert np.array_equal(z > threshold, np.array(near) > cut[0])
    assert alpha.tolist() == [2.0]


def test_the_halving_ends_at_the_ends_of_all_numbers():
    most = np.finfo(np.float64).max
    bounds = np.array([-np.inf, -1.5, 0.0, 2.0, np.inf])
    np.testing.assert_array_equal(last_not_above(lambda x: x, bounds), [-most, -1.5, 0.0, 2.0, most])


# ------------------------------------------------------------------------------------------- constants


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "opensearch", "onnx", "c", "python", "sql", "vespa"])
@pytest.mark.parametrize("kind", ["RidgeRanker", "RankBoost"])
def test_a_shift_lifts_every_score_of_the_sample_above_zero(target, kind):
    lists = sample()
    plain = export(fitted(kind), target, sample=lists)
    assert plain.parity.negative > 0
    lifted = export(fitted(kind), target, sample=lists, shift="sample")
    least = -fitted(kind).predict(lists).min()
    assert lifted.parity.negative <= 1  # the lowest may be rounded to just below 0
    assert lifted.parity.inverted_beyond_float32 == 0
    assert lifted.parity.largest_difference < 1e-5 * (1 + least)
    higher = export(fitted(kind), target, sample=lists, shift=2 * least)
    assert higher.parity.negative == 0


def test_ranklib_holds_a_constant_only_as_a_linear_regression():
    model = LinearModel.of([1.0, -2.0], intercept=0.75)
    plain = export(model, "ranklib")
    assert plain.dropped == 0.75
    assert any("0.75 is left out" in note for note in plain.notes)
    kept = export(model, "ranklib", form="linear regression")
    assert kept.dropped == 0
    assert kept.text.splitlines()[-1] == "0:0.75 1:1.0 2:-2.0"
    with pytest.raises(RankwiseError, match="cannot hold a shift in this form"):
        export(model, "ranklib", shift=1.0)
    for form in ("rankboost", "trees"):
        with pytest.raises(RankwiseError, match="form must be"):
            export(model, "ranklib", form=form)
    with pytest.raises(
        RankwiseError, match="'form' parameter of RankLib must be 'coordinate ascent', 'linear regression'"
    ):
        export(model, "ranklib", form="listnet")


def test_a_constant_in_elasticsearch_is_part_of_a_normalizer():
    done = export(LinearModel.of([1.0, -4.0], intercept=2.0, feature_names=["a", "b"]), "elasticsearch")
    model = json.loads(done.text)["model"]["model"]
    assert model["feature_normalizers"] == {"b": {"standard": {"mean": 0.5, "standard_deviation": 1.0}}}
    assert any("knows no constant: 2 is part of the normalizer of 'b'" in note for note in done.notes)


@pytest.mark.parametrize("shift", ["auto", None, True, float("nan"), float("inf")])
def test_a_shift_that_is_none_is_refused(shift):
    with pytest.raises(RankwiseError, match="'shift' parameter of export must be a float in"):
        export(fitted("RidgeRanker"), "solr", shift=shift)


def test_a_shift_by_the_sample_needs_one():
    with pytest.raises(RankwiseError, match="pass sample="):
        export(fitted("RidgeRanker"), "solr", shift="sample")


# ------------------------------------------------------------------------------------------- names

NASTY = ['a" FROM documents; DROP TABLE documents; --', "`b`", "c'c", "d/*x*/", "é ??/ \\ e"]


def test_names_of_columns_cannot_break_out_of_sql():
    model, lists = fitted("RidgeRanker"), sample()
    for dialect in ("standard", "mysql"):
        done = export(model, "sql", feature_names=NASTY, sample=lists, dialect=dialect, called='x"; DROP', table="t`t")
        assert done.parity.inverted == 0
    with sqlite3.connect(":memory:") as base:
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in NASTY)
        base.execute(f"CREATE TABLE documents ({columns})")
        base.execute("INSERT INTO documents VALUES (1, 2, 3, 4, 5)")
        (row,) = base.execute(export(model, "sql", feature_names=NASTY).text).fetchall()
        assert row[-1] == pytest.approx(model.predict([[1, 2, 3, 4, 5]])[0])
        assert base.execute("SELECT COUNT(*) FROM documents").fetchone() == (1,)
    base.close()


def test_columns_that_sqlite_takes_for_one_are_told():
    names = ["a", "A", "c", "d", "e"]
    assert '"A"' in export(fitted("RidgeRanker"), "sql", feature_names=names).text
    with pytest.raises(RankwiseError, match="SQLite cannot run the expression on the sample: duplicate column name"):
        export(fitted("RidgeRanker"), "sql", feature_names=names, sample=sample())


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "opensearch", "onnx", "ranklib", "python", "c", "sql"])
def test_names_are_data_and_never_part_of_a_program(target):
    done = export(fitted("RankBoost"), target, feature_names=NASTY, sample=sample())
    assert done.parity.inverted_beyond_float32 == 0
    if target == "ranklib":
        done.text.encode("ascii")  # what RankLib reads


def test_vespa_takes_attributes_and_rank_features():
    names = ["age", "bm25(title)", "fieldMatch(title).completeness", "query(w)", "nativeRank"]
    text = export(fitted("AdaRank"), "vespa", feature_names=names).text
    assert "attribute(age)" in text
    assert " bm25(title)" in text
    for name in NASTY[:4]:
        with pytest.raises(DataError, match=r"is not valid in Vespa.*pass feature_names="):
            export(fitted("AdaRank"), "vespa", feature_names=[name, "b", "c", "d", "e"])


@over_all_targets
@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x00b"])
def test_names_that_nobody_can_print_are_refused(target, name):
    with pytest.raises(RankwiseError, match="cannot be exported: names are printable"):
        export(fitted("RidgeRanker"), target, feature_names=[name, "b", "c", "d", "e"])


@pytest.mark.parametrize(
    ("target", "called"),
    [("c", "int"), ("c", "a b"), ("c", "__x"), ("python", "class"), ("python", "x()"), ("python", "FEATURES")],
)
def test_functions_have_names_that_their_language_knows(target, called):
    with pytest.raises(RankwiseError, match="name"):
        export(fitted("RidgeRanker"), target, called=called)
    with pytest.raises(RankwiseError, match="name of a rank profile"):
        export(fitted("RidgeRanker"), "vespa", called="a b")


def test_a_ranker_without_names_gets_plain_ones_and_a_note():
    model = LinearModel.of([1.0, 2.0])
    done = export(model, "elasticsearch")
    assert json.loads(json.loads(done.text)["model"]["model"]["definition"]) == {"f1": 1.0, "f2": 2.0}
    assert any("called f1 to f2; give feature_names=" in note for note in done.notes)
    assert not any("give feature_names=" in note for note in export(fitted("AdaRank"), "solr").notes)
    with pytest.raises(DataError, match="got 3 names for 2 features"):
        export(model, "solr", feature_names=["a", "b", "c"])


def test_a_sample_finds_its_features_by_name():
    lists = sample()
    turned = lists.select_features(NAMES[::-1])
    one, other = (export(fitted("RidgeRanker"), "solr", sample=some).parity for some in (lists, turned))
    assert one == other
