"""PyTerrier calls every ranker as it calls LightGBM: the same arguments, made of the same data frames."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from rankwise.errors import DataError
from rankwise.queries.queries import Queries
from tests.rankers.test_every_ranker import learned, over_all_kinds

X = np.random.default_rng(0).normal(size=(120, 4))


def results(first, count):
    """What a pipeline retrieves: one row a document, its features an array in a column, queries in no order."""
    rng = np.random.default_rng(first)
    rows = [
        {"qid": f"q{query}", "docno": f"d{number}", "features": X[(first + 7 * query + number) % len(X)]}
        for query in rng.permutation(np.arange(first, first + count))
        for number in range(2 + query % 5)
    ]
    return pd.DataFrame(rows)


def judgments(retrieved):
    """Labels of most of them: what nobody judged is filled in by PyTerrier, which makes all labels floats."""
    judged = retrieved.iloc[::2][["qid", "docno"]].copy()
    judged["label"] = [int(features[0] > 0) + int(features[1] > 0.5) for features in retrieved.iloc[::2]["features"]]
    return judged


class LTRTransformer:
    """The calls of ``pyterrier.ltr.LTRTransformer`` on its learner, argument by argument."""

    def __init__(self, learner):
        self.learner = learner

    def fit(self, retrieved, qrels, retrieved_valid, qrels_valid):
        (X_train, y_train, sizes), (X_valid, y_valid, sizes_valid) = (
            self._arrays(one, labels) for one, labels in ((retrieved, qrels), (retrieved_valid, qrels_valid))
        )
        self.learner.fit(X_train, y_train, group=sizes, eval_set=[(X_valid, y_valid)], eval_group=[sizes_valid])

    @staticmethod
    def _arrays(retrieved, qrels):
        merged = retrieved.merge(qrels, on=["qid", "docno"], how="left").fillna(0).sort_values("qid")
        sizes = merged.groupby(["qid"], sort=False)["docno"].count().to_numpy()
        return np.stack(merged["features"].values), merged["label"].values, sizes

    def transform(self, retrieved):
        return retrieved.assign(score=self.learner.predict(np.stack(retrieved["features"].values)))


@over_all_kinds
def test_a_ranker_is_a_learner_of_pyterrier(kind):
    ranker = kind.examples()[0]
    train, valid, test = results(0, 12), results(50, 8), results(80, 3)
    learner = clone(ranker)
    transformer = LTRTransformer(learner)
    arrays = LTRTransformer._arrays(train, judgments(train))
    assert arrays[1].dtype == np.float64
    unused = pytest.warns(UserWarning, match="eval_set is not used")
    with nullcontext() if ranker.takes_validation else unused:
        transformer.fit(train, judgments(train), valid, judgments(valid))
    if ranker.scores_by_query:
        with pytest.raises(DataError, match="within each query"):  # a transformer passes rows without their queries
            transformer.transform(test)
    else:
        scored = transformer.transform(test)
        assert np.isfinite(scored["score"]).all()
    held = LTRTransformer._arrays(valid, judgments(valid))
    known = {"validation": Queries.from_arrays(held[0], held[1], group=held[2])} if ranker.takes_validation else {}
    same = clone(ranker).fit(Queries.from_arrays(arrays[0], arrays[1], group=arrays[2]), **known)
    assert learned(learner) == learned(same)
    with pytest.raises(DataError, match="was fitted on 4 features"):
        learner.predict(np.zeros((2, 3)))
