"""Whatever a scalar argument is given, the answer is an answer or one sentence: no foreign error reaches the caller."""

import dataclasses
import io
import warnings

import numpy as np
import pytest

import rankwise as rw
from experiments.bound_angles import two_clouds
from rankwise.errors import RankwiseError
from rankwise.losses._base import registered as losses
from rankwise.measures._base import registered as measures

ODD = [
    None, "x", "", "2", b"x", "a\0b", -1, 0, 1, 2, 0.5, 1.5, True, np.int8(3), 1j, (), [], [1], {}, object(),
    2**70, -(2**70), 1e308, float("nan"), float("inf"), -float("inf"),
]  # fmt: skip
LISTS = rw.make_lists(9, documents=(2, 4), features=2, random_state=1)
TEXT = b"1 qid:1 1:1\n0 qid:1 1:2\n"
SCORES = LISTS.X[:, 0]
RESULT = rw.evaluate(LISTS, SCORES, ["nDCG@10", "AP"])
OTHER = rw.evaluate(LISTS, -SCORES, ["nDCG@10", "AP"])
MODEL = rw.RidgeRanker(alpha=1.0).fit(LISTS)
STATE = rw.Scaler().fit(LISTS).to_state()


def stream(**given):
    return next(rw.synthetic.noisy_stream(**{"n_queries": 3, "margin": 0.1, **given}).blocks())


def reading(**given):
    return rw.read_letor(io.BytesIO(TEXT), **given)


def streaming(**given):
    return list(rw.iter_letor(io.BytesIO(TEXT), **given))


def arrays(**given):
    grouped = {} if given.keys() & {"qid", "group"} else {"group": LISTS.sizes}
    return rw.Queries.from_arrays(**{"X": LISTS.X, "y": LISTS.y, **grouped, **given})


def scaler(**given):
    return rw.Scaler.from_state({**STATE[0], **given}, STATE[1])


def scaler_of_arrays(**given):
    return rw.Scaler.from_state(STATE[0], {**STATE[1], **given})


def evaluated(**given):
    return rw.evaluate(**{"queries": LISTS, "scores": SCORES, "measures": ["nDCG@10", "AP"], **given})


def compared(**given):
    return rw.evaluation.paired_test(**{"first": RESULT["AP"], "second": OTHER["AP"], "resamples": 50, **given})


def fitted(**given):
    return rw.RidgeRanker(alpha=1.0).fit(**{"X": LISTS, **given})


def ridge(**given):
    return rw.RidgeRanker(**{"alpha": (1.0, 2.0), "folds": 2, **given}).fit(LISTS)


def ranked(**given):
    return rw.RankSVM(**{"alpha": (1.0, 0.1), "folds": 2, **given}).fit(LISTS)


CALLS = {
    "split": (lambda **given: rw.split(**{"queries": LISTS, **given}), ["queries", "sizes", "random_state"]),
    "kfold": (lambda **given: list(rw.kfold(**{"queries": LISTS, **given})), ["queries", "k", "random_state"]),
    "make_lists": (
        lambda **given: rw.make_lists(**{"queries": 3, "documents": 3, "features": 2, **given}),
        ["documents", "grades", "noise", "random_state", "dtype"],
    ),
    "world": (stream, ["documents", "features", "grades", "margin", "radius", "noise", "flip", "random_state"]),
    "read_letor": (reading, ["dtype", "missing", "unjudged", "zero_based", "feature_names", "n_jobs"]),
    "iter_letor": (streaming, ["rows", "dtype", "missing", "zero_based", "feature_names", "n_jobs", "returning"]),
    "from_arrays": (
        arrays,
        ["X", "y", "qid", "group", "weight", "docid", "feature_names", "missing", "document_weight"],
    ),
    "Scaler": (lambda **given: rw.Scaler(**given).fit(LISTS), ["how", "per"]),
    "Scaler.from_state": (scaler, ["how", "per", "n_features", "feature_names"]),
    "Scaler.from_state, arrays": (scaler_of_arrays, ["center", "scale"]),
    "Scaler.fold": (lambda **given: rw.Scaler().fit(LISTS).fold(**given), ["coef"]),
    "select_features": (LISTS.select_features, ["names"]),
    "rows_of": (LISTS.rows_of, ["query"]),
    "concat": (rw.Queries.concat, ["parts"]),
    "Texts.of": (rw.io.StringColumn.of, ["texts"]),
    "evaluate": (evaluated, ["scores", "measures", "like", "ties", "empty", "rel", "qid", "weight", "n_jobs"]),
    "interval": (RESULT.interval, ["level", "how"]),
    "paired_test": (compared, ["first", "second", "weight", "resamples", "random_state"]),
    "correct": (rw.evaluation.correct, ["p_values"]),
    "significance": (rw.significance, ["evaluations"]),
    "queries_by_size": (
        lambda **given: rw.analysis.queries_by_size(**{"queries": LISTS, **given}),
        ["queries", "width"],
    ),
    "label_pairs": (
        lambda **given: rw.analysis.label_pairs(**{"queries": LISTS, "scores": SCORES, **given}),
        ["queries"],
    ),
    "two_clouds": (two_clouds, ["relevant", "irrelevant", "variance", "random_state"]),
    "fit": (fitted, ["X", "y", "validation", "eval_set", "eval_group", "sample_weight"]),
    "predict": (MODEL.predict, ["X"]),
    "RidgeRanker": (ridge, ["folds", "random_state", "n_jobs"]),
    "RankSVM": (ranked, ["tolerance", "max_calls", "per_pair", "folds", "random_state", "n_jobs"]),
    "Scorer": (rw.Scorer, ["model"]),
    "OnlineRounds": (rw.OnlineRounds, ["model"]),
}


def refused_or_answered(call, **given):
    """Call, and look at the error: ours, in one line, or none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**given)
        except RankwiseError as error:
            return str(error)
    return ""


@pytest.mark.parametrize(("name", "argument"), [(name, one) for name, (_, every) in CALLS.items() for one in every])
def test_r8_no_argument_reaches_the_caller_as_a_foreign_error(name, argument):
    sentences = [refused_or_answered(CALLS[name][0], **{argument: odd}) for odd in ODD]
    assert not any("\n" in sentence for sentence in sentences)
    assert any(sentences)  # something among these is refused


@pytest.mark.parametrize("kind", measures().values(), ids=measures())
def test_r8_parameters_of_measures(kind):
    for field in dataclasses.fields(kind):
        cut = {"cutoff": 1} if kind.takes_cutoff else {}
        for odd in ODD:
            refused_or_answered(lambda given: kind(**given)([1.0, 2.0], [0, 1]), given={**cut, field.name: odd})
    for odd in ODD:
        measure = kind(cutoff=1) if kind.takes_cutoff else kind()
        refused_or_answered(measure, scores=odd, labels=[0, 1])
        refused_or_answered(measure, scores=[1.0, 2.0], labels=odd)


@pytest.mark.parametrize("kind", losses().values(), ids=losses())
def test_r8_parameters_of_losses(kind):
    loss = kind.examples()[0]
    for field in dataclasses.fields(kind):
        for odd in ODD:
            refused_or_answered(
                lambda given: dataclasses.replace(loss, **given)([1.0, 2.0], [0, 1]), given={field.name: odd}
            )
    for odd in ODD:
        refused_or_answered(loss, scores=odd, labels=[0, 1])
        refused_or_answered(loss, scores=[1.0, 2.0], labels=odd)


def test_r8_a_seed_that_is_none_is_refused_by_name():
    with pytest.raises(RankwiseError, match="'random_state' parameter of"):
        rw.split(LISTS, random_state="x")
    with pytest.raises(RankwiseError, match="'random_state' parameter of kfold"):
        list(rw.kfold(LISTS, random_state=-1))
