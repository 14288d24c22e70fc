"""W13: one call certifies a model or scores of any source; W3: evaluating a model on queries that it has seen warns."""

import warnings

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, DataWarning, RankwiseError

QUERIES = rw.make_lists(120, documents=(3, 8), features=4, random_state=0)
TRAIN, HELD = QUERIES[:60], QUERIES[60:]
MODEL = rw.RidgeRanker("nDCG@5", alpha=1.0).fit(TRAIN)


class Foreign:
    """A model of another package."""

    def predict(self, queries):
        return MODEL.predict(queries)


def test_w13_a_ranker_is_certified_as_by_its_own_method():
    assert rw.certify(HELD, MODEL, "nDCG@5").to_dict() == MODEL.certificate(holdout=HELD).to_dict()
    trained = rw.certify(HELD, MODEL, "nDCG@5", train=TRAIN, delta=0.1)
    assert trained.to_dict() == MODEL.certificate(TRAIN, HELD, 0.1).to_dict()


def test_w13_another_measure_than_that_of_the_training():
    found = rw.certify(HELD, MODEL, "AP")
    assert "1 - AP" in found.headline.bounds
    values = rw.evaluate(HELD, MODEL.predict(HELD), ["AP"]).values[0]
    assert found.headline.terms["mean"] == pytest.approx(1 - np.nanmean(values))


@pytest.mark.parametrize("scores", [MODEL.predict(HELD), MODEL.predict(HELD).tolist(), Foreign()])
def test_w13_scores_of_any_source_have_the_same_hold_out_bounds(scores):
    found, own = rw.certify(HELD, scores, "nDCG@5"), MODEL.certificate(holdout=HELD)
    assert found.headline.value == own.headline.value
    assert found.headline.bounds == own.headline.bounds
    unseen = found.rows[0].preconditions[0]
    assert unseen.met is None  # nobody knows what they were learned from
    assert found.about.startswith("Foreign" if isinstance(scores, Foreign) else "scores")


def test_w13_training_queries_of_scores_are_recognized():
    found = rw.certify(QUERIES, MODEL.predict(QUERIES), "nDCG@5", train=TRAIN)
    alone = rw.certify(HELD, MODEL.predict(HELD), "nDCG@5", train=TRAIN)
    assert found.headline.terms["sure"] == alone.headline.terms["n"]
    assert any("the features and labels of training queries" in note for note in found.notes)
    assert rw.certify(TRAIN, MODEL.predict(TRAIN), train=TRAIN).summary() == (
        "nothing certified: all 60 hold-out queries were used in training; pass queries the model has not seen"
    )


def test_w13_files(tmp_path):
    HELD.save(tmp_path / "held.rankwise")
    (tmp_path / "held.scores").write_text("\n".join(map(repr, MODEL.predict(HELD).tolist())))
    found = rw.certify(tmp_path / "held.rankwise", tmp_path / "held.scores", "nDCG@5")
    assert found.headline.value == rw.certify(HELD, MODEL, "nDCG@5").headline.value


def test_w13_ties_and_empty_queries_of_scores_are_named():
    y = HELD.y.copy()
    y[HELD.query_of_row < 20] = 0
    found = rw.certify(HELD.with_labels(y), np.zeros(HELD.n_documents), "nDCG@5")
    assert found.headline.bounds == "1 - nDCG@5, ties averaged, on future queries with a relevant document"
    assert any(row.bounds.endswith("undefined counted as 0") for row in found.rows)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rw.certify(HELD, MODEL, delta=0.0), "delta"),
        (lambda: rw.certify(HELD, MODEL, "nDGC"), "nDGC"),
        (lambda: rw.certify(HELD, np.zeros(3)), "score"),
        (lambda: rw.certify(HELD, MODEL, train=[1, 2]), "train must be Queries, got list"),
        (lambda: rw.certify(HELD, rw.RidgeRanker()), "not fitted"),
    ],
)
def test_w13_mistakes_are_one_clear_sentence(call, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)
    assert isinstance(error.value, (RankwiseError, DataError))


def test_w3_training_queries_are_warned_of():
    with pytest.warns(
        DataWarning, match=r"the model has seen 60 of these 120 queries before \(60 as training queries\)"
    ):
        rw.evaluate(QUERIES, MODEL, ["nDCG@5"])
    chosen = rw.RidgeRanker(refit="train").fit(TRAIN[:40], validation=TRAIN[40:])
    with pytest.warns(DataWarning, match="20 as validation queries"):
        rw.evaluate(TRAIN[30:], chosen, ["nDCG@5"])


def test_w3_new_queries_scores_and_chance_are_not():
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, (2, 600, 2)).astype(float), random.integers(0, 2, (2, 600)).astype(float)
    one, two = (rw.Queries.from_arrays(*both, group=[6] * 100) for both in zip(X, y, strict=True))
    coarse = rw.RidgeRanker().fit(one)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        rw.evaluate(HELD, MODEL, ["nDCG@5"])
        rw.evaluate(TRAIN, MODEL.predict(TRAIN), ["nDCG@5"])
        rw.evaluate(two, coarse, ["nDCG@5"])
