"""Other tools' models become rankers that score as the tool does, and anything else is refused in a sentence."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.exports import export, read_model
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers.auto.auto_ranker import AutoRanker
from rankwise.rankers.linear.linear_model import LinearModel
from rankwise.rankers.neural.neural_ranker import NeuralRanker
from tests.exports.models import KINDS, NAMES, fitted, sample

SVM = """SVM-light Version V6.20
0 # kernel type
3 # kernel parameter -d
1 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
4 # highest feature index
100 # number of training documents
3 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
2 1:0.5 3:-1.5 #
-0.5 qid:3 1:1 4:2 # a comment
"""
LIBLINEAR = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel {labels}\nnr_feature 3\nbias {bias}\nw\n0.5\n-1.5\n0.25\n"
X = np.random.default_rng(0).normal(size=(20, 4))


def read(tmp_path, text, **options):
    (tmp_path / "model.txt").write_text(text)
    return read_model(tmp_path / "model.txt", **options)


def test_a_model_of_svm_rank_is_the_sum_of_its_support_vectors(tmp_path):
    model = read(tmp_path, SVM)
    expected = 2 * (0.5 * X[:, 0] - 1.5 * X[:, 2]) - 0.5 * (X[:, 0] + 2 * X[:, 3]) - 0.25
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)
    assert model.n_features_in_ == 4
    with pytest.raises(FileFormatError, match="kernel type '2': expected 0, a linear kernel"):
        read(tmp_path, SVM.replace("0 # kernel type", "2 # kernel type"))


@pytest.mark.parametrize(("labels", "sign"), [("1 -1", 1), ("2 0", 1), ("-1 1", -1)])
def test_a_model_of_liblinear_prefers_the_higher_label(tmp_path, labels, sign):
    model = read(tmp_path, LIBLINEAR.format(labels=labels, bias="-1"))
    np.testing.assert_allclose(model.coef_, sign * np.array([0.5, -1.5, 0.25]))
    biased = read(tmp_path, LIBLINEAR.format(labels=labels, bias="2") + "0.125\n")
    assert biased.intercept_ == sign * 0.25
    regression = read(tmp_path, LIBLINEAR.replace("label {labels}\n", "").format(bias=-1))
    np.testing.assert_array_equal(regression.coef_, [0.5, -1.5, 0.25])


def test_models_of_ranklib(tmp_path):
    plain = read(tmp_path, "## Coordinate Ascent\n## Restart = 5\n1:0.5 2:-0.25 3:0.125")
    assert (plain.coef_.tolist(), plain.intercept_) == ([0.5, -0.25, 0.125], 0.0)
    regression = read(tmp_path, "## Linear Regression\n## Lambda = 1.0E-10\n0:0.75 1:0.5 3:0.125\n")
    assert (regression.coef_.tolist(), regression.intercept_) == ([0.5, 0.0, 0.125], 0.75)
    ada = read(tmp_path, "## AdaRank\n## Iteration = 500\n2:0.5 1:-0.25 2:0.125\n", features=4)
    assert ada.coef_.tolist() == [-0.25, 0.625, 0.0, 0.0]
    boost = read(
        tmp_path, "## RankBoost\n## Iteration = 300\n1:0.4:0.5 3:1.5:0.25 1:0.4:1\n", feature_names=list("abc")
    )
    rows = np.array([[0.4, 0, 2], [0.5, 0, 1.5], [0, 9, 9]])
    assert boost.predict(rows).tolist() == [0.25, 1.5, 0.25]
    assert tuple(boost.feature_names_in_) == ("a", "b", "c")


# RankLib holds neither a network nor a stack
@pytest.mark.parametrize("kind", [k for k in KINDS if not issubclass(registered()[k], (NeuralRanker, AutoRanker))])
def test_what_is_exported_to_ranklib_comes_back(kind, tmp_path):
    model = fitted(kind)
    linear = isinstance(model._scoring_model(), LinearRanker)  # a committee of linear rankers is one
    export(model, "ranklib", tmp_path / "model.txt", **({"form": "linear regression"} if linear else {}))
    if not linear and hasattr(model, "ensemble_"):
        with pytest.raises(FileFormatError, match="not a weighted sum of features or steps"):
            read_model(tmp_path / "model.txt", feature_names=NAMES)
        return
    back = read_model(tmp_path / "model.txt", feature_names=NAMES)
    np.testing.assert_array_equal(back.predict(sample()), model.predict(sample()))


def test_an_imported_model_is_saved_evaluated_certified_and_exported(tmp_path):
    model = read(tmp_path, SVM, features=5, feature_names=NAMES, measure="AP")
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.predict(sample()), model.predict(sample()))
    assert loaded.score(sample()) == rw.evaluate(sample(), model, ["AP"]).mean["AP"]
    certificate = loaded.certificate(holdout=sample())
    assert certificate.rows
    assert any("cannot be checked" in note for note in certificate.notes), "nobody knows what it was learned from"
    assert export(loaded, "solr", sample=sample()).parity.inverted_beyond_float32 == 0


def test_gzip_and_more_features_than_a_file_uses(tmp_path):
    (tmp_path / "model.gz").write_bytes(gzip.compress(SVM.encode()))
    assert read_model(tmp_path / "model.gz", features=9).n_features_in_ == 9
    with pytest.raises(RankwiseError, match="uses feature 4, but there are only 2"):
        read_model(tmp_path / "model.gz", features=2)
    with pytest.raises(RankwiseError, match="there is no such file"):
        read_model(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "or RankLib's"),
        ("1 qid:1 1:0.5", "or RankLib's"),
        ("## LambdaMART\n<ensemble></ensemble>", "RankLib's 'lambdamart'"),
        ("## Coordinate Ascent\n", "expected one line of weights"),
        ("## Coordinate Ascent\n1:2\n3:4\n", "expected one line of weights"),
        ("## Coordinate Ascent\n1:0.5:2\n", "expected feature:weight"),
        ("## Coordinate Ascent\n0:0.5\n", "expected a feature number of at least 1"),
        ("## Coordinate Ascent\n1:nan\n", "expected a number"),
        ("## Coordinate Ascent\n999999999:1\n", "expected a feature number"),
        ("## RankBoost\n1:0.5\n", "expected feature:threshold:alpha"),
        ("SVM-light Version V6.20\n0 # kernel type\n", "cut short"),
        (SVM.replace("2 1:0.5", "two 1:0.5"), "line 12: expected a number, got 'two'"),
        (SVM.replace("1:0.5", "1=0.5"), "expected feature:value"),
        ("solver_type MCSVM_CS\nnr_class 3\nnr_feature 1\nbias -1\nw\n1 2 3\n", "expected 2, or a regression"),
        ("solver_type X\nnr_class 2\nnr_feature 2\nbias -1\nw\n1\n", "expected 2 weights after w, got 1"),
        ("solver_type X\nnr_class 2\n", "cut short"),
    ],
)
def test_what_is_no_such_model_is_refused_in_a_sentence(tmp_path, text, found):
    with pytest.raises(FileFormatError, match=found) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("after", ["", ": each following line is a SV", ", each following line", " each", "\t"])
def test_r7_the_threshold_is_known_whatever_follows_its_name(tmp_path, after):
    changed = SVM.replace("threshold b, each following line is a SV (starting with alpha*y)", f"threshold b{after}")
    assert changed != SVM or after.startswith(",")
    found, expected = read(tmp_path, changed), read(tmp_path, SVM)
    assert found.coef_.tolist() == expected.coef_.tolist()
    assert found.intercept_ == expected.intercept_ == -0.25


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"], ids=ascii)
@pytest.mark.parametrize(
    "text", [SVM, "## AdaRank\n## rounds = 5 # a comment\n1:2 3:4\n"], ids=["SVM-light", "RankLib"]
)
def test_r7_no_weight_comes_out_of_a_comment(tmp_path, separator, text):
    hidden = text.replace("# a comment", f"# a comment{separator}5 2:7{separator}2:7")
    assert hidden != text
    assert read(tmp_path, hidden).coef_.tolist() == read(tmp_path, text).coef_.tolist()


@pytest.mark.parametrize("number", ["1_0", "\u0661", "\uff11", "1e999", "nan", "infinity", "0x10"], ids=ascii)
def test_r7_numbers_that_only_python_reads_are_refused(tmp_path, number):
    for text in (f"## Coordinate Ascent\n1:{number}\n", SVM.replace("0.25 # threshold", f"{number} # threshold")):
        with pytest.raises(FileFormatError, match="expected a number, got"):
            read(tmp_path, text)


def test_r7_old_line_ends_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(FileFormatError, match="line 1: a carriage return inside a line"):
        read(tmp_path, SVM.replace("\n", "\r"))
    assert read(tmp_path, SVM.replace("\n", "\r\n")).intercept_ == -0.25


@given(st.sampled_from([SVM, LIBLINEAR.format(labels="1 -1", bias=1) + "2\n", "## AdaRank\n1:2 3:4\n"]), st.data())
@settings(max_examples=150)
def test_damaged_texts_give_a_model_or_a_sentence(tmp_path_factory, text, data):
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 4))
    new = data.draw(st.text(max_size=4))
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_text(text[:place] + new + text[place + length :])
    try:
        model = read_model(path)
    except RankwiseError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.predict(np.zeros((1, model.n_features_in_)))).all()


# ------------------------------------------------------------------------------------------- weights by hand


def test_weights_by_hand_are_a_ranker():
    model = LinearModel.of([0.5, -1.0], intercept=2.0, feature_names=["bm25", "age"], measure="AP")
    np.testing.assert_array_equal(model.predict([[2.0, 1.0], [0.0, 3.0]]), [2.0, -1.0])
    lists = rw.Queries.from_arrays(np.eye(2), [0, 1], group=[2], feature_names=["bm25", "age"])
    assert LinearModel("AP", coef=[0.5, -1.0]).fit(lists).score(lists) == model.score(lists) == 0.5
    assert LinearModel().fit(lists).coef_.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"coef": [1.0, np.nan]}, "one finite weight per feature"),
        ({"coef": "weights"}, "one finite weight per feature"),
        ({"coef": [[1.0], [2.0]]}, "one finite weight per feature"),
        ({"coef": [1.0]}, "one weight per feature, 2, got 1"),
        ({"intercept": "big"}, "'intercept' parameter of LinearModel must be a float"),
        ({"intercept": np.inf}, "'intercept' parameter of LinearModel must be a float"),
    ],
)
def test_weights_that_are_none_are_refused(given, found):
    lists = rw.Queries.from_arrays(np.eye(2), [0, 1], group=[2])
    with pytest.raises(RankwiseError, match=found):
        LinearModel(**given).fit(lists)
    with pytest.raises(RankwiseError, match="feature_names"):
        LinearModel.of([1.0], feature_names=["a", "b"])
