"""What is handed to ``fit`` and ``predict`` and cannot be meant: one sentence, or one warning at the caller's line."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import DataError, DataWarning, NothingLearnedWarning, RankwiseError
from rankwise.rankers._base import registered

LISTS = rw.make_lists(12, documents=(3, 6), features=3, random_state=1)
OTHERS = rw.make_lists(12, documents=(3, 6), features=3, random_state=2)
EVERY = {f"{name}-{number}": one for name, kind in registered().items() for number, one in enumerate(kind.examples())}
FIRST = {name: ranker for name, ranker in EVERY.items() if name.endswith("-0")}
over_all_rankers = pytest.mark.parametrize("ranker", EVERY.values(), ids=EVERY)
over_all_kinds = pytest.mark.parametrize("ranker", FIRST.values(), ids=FIRST)


def refusal(call, *arguments, **named):
    with pytest.raises(RankwiseError) as error:
        call(*arguments, **named)
    assert "\n" not in str(error.value)
    return str(error.value)


def told(call, *arguments, **named):
    """The warnings of a call, each as (kind, sentence); all of them are about a line of this file."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call(*arguments, **named)
    assert {one.filename for one in seen} <= {__file__}
    return [(one.category, str(one.message)) for one in seen]


# ------------------------------------------------------------------------------------------- weights


@over_all_rankers
@pytest.mark.parametrize("weight", [1e308, 1e-320], ids=["huge", "tiny"])
def test_r8_weights_whose_sums_or_squares_leave_float64_are_refused(ranker, weight):
    weights = np.ones(12)
    weights[3] = weight
    assert "query weights must be 0 or between 1e-100 and 1e+100" in refusal(
        lambda: clone(ranker).fit(LISTS.with_weight(weights))
    )


@over_all_rankers
@pytest.mark.parametrize("weight", [1e100, 1e-100])
def test_r8_the_extremes_of_weights_that_are_taken_are_learned_from(ranker, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = clone(ranker).fit(LISTS.with_weight(np.full(12, weight)))
        except RankwiseError:  # steps that grow with the weight of a query leave float64
            assert hasattr(ranker, "partial_fit")
            return
    assert np.isfinite(model.predict(LISTS)).all()


@over_all_kinds
def test_r8_weights_of_documents_are_used_or_refused_with_a_way_out(ranker):
    ones = np.ones(LISTS.n_documents)
    if ranker.takes_document_weights:
        clone(ranker).fit(LISTS, sample_weight=ones)
        assert "document_weight must hold one number per row" in refusal(
            clone(ranker).fit, LISTS, sample_weight=ones[1:]
        )
    else:
        for given in ((LISTS, ones), (LISTS.with_document_weight(ones), None)):
            sentence = refusal(clone(ranker).fit, given[0], sample_weight=given[1])
            assert f"{ranker.name} takes no document weights: " in sentence
            assert "weight=" in sentence
    if hasattr(ranker, "partial_fit"):
        assert "sample_weight" in refusal(clone(ranker).partial_fit, LISTS, sample_weight=np.ones(12))
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'grup'"):
        clone(ranker).fit(LISTS, grup=[3])


# ------------------------------------------------------------------------------------------- nothing to learn from


@over_all_kinds
def test_r8_no_documents_are_refused(ranker):
    assert "fit needs judged documents, got 0 queries" in refusal(clone(ranker).fit, LISTS[:0])
    empty = rw.Queries(np.empty((0, 3)), [], [0, 0, 0])
    assert "fit needs judged documents, got 2 queries" in refusal(clone(ranker).fit, empty)


@over_all_rankers
def test_n8_labels_that_are_all_alike_are_a_warning(ranker):
    constant = LISTS.with_labels(np.ones(LISTS.n_documents))
    expected = [NothingLearnedWarning] if ranker.learns else []
    found = told(clone(ranker).fit, constant)
    assert [kind for kind, _ in found] == expected
    assert all("no query holds documents with different labels" in sentence for _, sentence in found)


def test_n8_only_queries_that_count_can_be_learned_from():
    y = np.zeros(LISTS.n_documents)
    y[LISTS.rows_of(4)] = np.arange(LISTS.sizes[4])
    one = LISTS.with_labels(y)
    ranker = rw.RidgeRanker(alpha=1.0)
    assert told(ranker.fit, one) == []
    weight = np.ones(12)
    weight[4] = 0.0
    ((kind, sentence),) = told(ranker.fit, one.with_weight(weight))
    assert kind is NothingLearnedWarning
    assert "with different labels and a weight above 0" in sentence
    scattered = rw.Queries.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], qid=["a", "b", "a", "b"])
    assert [kind for kind, _ in told(ranker.fit, scattered)] == [NothingLearnedWarning]


# ------------------------------------------------------------------------------------------- validation


@over_all_rankers
def test_n8_choices_by_the_training_queries_are_a_warning(ranker):
    if not ranker.takes_validation:
        return
    try:
        apart = told(clone(ranker).fit, LISTS, validation=OTHERS)
    except DataError as error:
        assert "omit the validation set" in str(error)  # noqa: PT017
        return
    assert DataWarning not in [kind for kind, _ in apart]
    ((kind, sentence),) = [one for one in told(clone(ranker).fit, LISTS, validation=LISTS) if one not in apart]
    assert kind is DataWarning
    assert "12 of 12 validation queries are among the training queries" in sentence
    mixed = rw.Queries.concat([OTHERS[:5], LISTS[2:4]], rename=True)
    found = told(clone(ranker).fit, LISTS, validation=mixed)
    assert any("2 of 7 validation queries" in sentence for _, sentence in found)


def test_n8_choices_that_another_ranker_made_are_no_reason_to_warn():
    first = rw.RidgeRanker(alpha=(1.0, 2.0)).fit(LISTS, validation=OTHERS)
    assert told(rw.RankSVM(prior_coef=first, alpha=0.1).fit, OTHERS) == []


# ------------------------------------------------------------------------------------------- labels that are no grades


def test_n8_labels_beyond_every_graded_scale_are_a_warning_where_gains_grow_exponentially():
    y = np.where(np.arange(LISTS.n_documents) % 7 == 0, 90.0, LISTS.y)
    steep = LISTS.with_labels(y)
    for call in (
        lambda: rw.evaluate(steep, LISTS.X[:, 0], ["nDCG@10"]),
        lambda: rw.SLAMRanker(alpha=0.1).fit(steep),
        lambda: rw.measures.NDCG()([1, 2], [0, 31]),
    ):
        found = told(call)
        assert {kind for kind, _ in found} == {DataWarning}
        assert any("the gain 2^label - 1 is" in sentence and "linear gain" in sentence for _, sentence in found)
    assert told(rw.evaluate, steep, LISTS.X[:, 0], ["nDCG(dcg='log2')@10", "AP"]) == []
    assert told(lambda: rw.measures.NDCG()([1, 2], [0, 30])) == []


# ------------------------------------------------------------------------------------------- arrays


def test_n9_one_document_is_one_row():
    model = rw.RidgeRanker(alpha=1.0).fit(LISTS)
    sentence = refusal(model.predict, LISTS.X[0])
    assert "one document is X.reshape(1, -1)" in sentence
    assert "reshape(-1, 1)" not in sentence
    assert "a single feature X.reshape(-1, 1)" in refusal(model.predict, LISTS.X[:, 0])


@pytest.mark.parametrize("path", ["judged.csv", b"judged.csv"])
def test_n9_a_path_is_read_before_it_is_learned_from(path):
    model = rw.RidgeRanker(alpha=1.0)
    for call in (model.fit, lambda X: model.fit(X, [0, 1], group=[2]), lambda X: rw.Queries.from_arrays(X, group=[2])):
        sentence = refusal(call, path)
        assert "got the path 'judged.csv'" in sentence
        assert "read_table(" in sentence
        assert "read_letor(" in sentence
    assert "read_letor" in refusal(model.fit(LISTS).predict, path)
