"""Mistakes of a first day: one sentence that says what to do."""

import warnings

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, MeasureError, RankwiseError

LISTS = rw.make_lists(12, documents=6, features=3, random_state=1)


def test_the_model_before_the_queries_is_named():
    model = rw.RidgeRanker().fit(LISTS)
    with pytest.raises(DataError, match=r"must be judged queries or their labels, got RidgeRanker.*evaluate\(queries"):
        rw.evaluate(model, LISTS)


@pytest.mark.parametrize(
    "make", [list, np.array, lambda words: np.array(words, dtype=object)], ids=["list", "str", "object"]
)
def test_words_as_labels_are_named(make):
    words = make(["good", "bad", "fair"] * (LISTS.n_documents // 3))
    for use in (
        lambda: rw.RidgeRanker().fit(LISTS.X, words, qid=LISTS.query_of_row),
        lambda: rw.Queries.from_arrays(LISTS.X, words, qid=LISTS.query_of_row),
        lambda: rw.evaluate(words, LISTS.X[:, 0], qid=LISTS.query_of_row),
    ):
        with pytest.raises(DataError, match=r"labels must be numbers, got the text 'good': give every word its grade"):
            use()


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [("ndgc@10", "nDCG@10"), ("nDCGG", "nDCG"), ("MPA", "AP"), ("Rprecc", "Rprec"), ("sucess@5", "Success@5")],
)
def test_a_misspelt_measure_is_asked_for_first(spelling, meant):
    with pytest.raises(MeasureError) as refused:
        rw.measures.parse(spelling)
    sentence = str(refused.value)
    assert f"(did you mean {meant!r}?)" in sentence
    assert sentence.index("did you mean") < sentence.index("known:")
    assert rw.measures.parse(meant)


def test_a_misspelt_ranker_is_asked_for_first(run, tmp_path, monkeypatch):
    with pytest.raises(RankwiseError) as refused:
        rw.compare(["RidgRanker"], LISTS)
    assert str(refused.value).startswith("no ranker is called 'RidgRanker' (did you mean 'RidgeRanker'?): ")
    monkeypatch.chdir(tmp_path)
    rw.write_letor(LISTS, "lists.txt")
    for command in (("train", "lists.txt"), ("compare", "lists.txt"), ("train", "lists.txt", "--online")):
        code, _, err = run(*command, "-r", "SLAMPercepton")
        assert code == 2
        assert err.startswith("rankwise: no ranker is called 'SLAMPercepton' (did you mean 'SLAMPerceptron'?): ")


def test_w15_categories_name_what_takes_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": [1, 1], "label": [0, 1], "a": [1.0, 2.0], "c": pandas.Categorical(["x", "y"])})
    with pytest.raises(DataError, match=r"feature columns must be numeric, got 'x' in column 'c'.*FeatureBuilder"):
        rw.from_frame(frame)
    for use in (
        lambda: rw.RidgeRanker().fit(frame[["a", "c"]], frame["label"], qid=frame["qid"]),
        lambda: rw.Queries.from_arrays(frame[["a", "c"]], frame["label"], qid=frame["qid"]),
    ):
        with pytest.raises(DataError, match=r"got the text 'x'; a FeatureBuilder.*categorical_features"):
            use()


def test_w15_models_of_other_packages_are_measured_by_their_scores():
    from sklearn.linear_model import Ridge

    model = Ridge().fit(LISTS.X, LISTS.y)
    models = [(model, model.predict(LISTS.X))]
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMRanker(n_estimators=3, min_child_samples=2, verbose=-1, n_jobs=1)
    trees.fit(LISTS.X, LISTS.y.astype(int), group=LISTS.sizes)
    models += [(trees, trees.predict(LISTS.X)), (trees.booster_, trees.predict(LISTS.X))]
    for one, scores in models:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # LightGBM once took the queries for a sparse matrix
            assert rw.evaluate(LISTS, one).mean == rw.evaluate(LISTS, scores).mean
    with pytest.raises(
        DataError, match=r"Ridge\.predict failed on the features, an array of shape \(72, 3\): This Ridge"
    ):
        rw.evaluate(LISTS, Ridge())
