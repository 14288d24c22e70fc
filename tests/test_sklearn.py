"""scikit-learn works on queries passed as X: it counts, splits and slices by query, and never cuts one."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline

from rankwise import Queries, Scaler, load
from rankwise.errors import DataError
from rankwise.sklearn import Unsliced


class Ridge(BaseEstimator):
    """Ridge regression on labels, which remembers what it was fitted on; its score is the share of pairs in order."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, queries, y=None, validation=None):
        X, labels = queries.X, queries.labels()
        self.coef_ = np.linalg.solve(X.T @ X + self.alpha * np.eye(X.shape[1]), X.T @ labels)
        self.fitted_on_ = queries.names()
        self.sizes_ = queries.sizes.tolist()
        self.validated_on_ = None if validation is None else Unsliced.open(validation).names()
        return self

    def predict(self, queries):
        return queries.X @ self.coef_

    def score(self, queries, y=None):
        right = total = 0
        for query in queries:
            scores = query.X @ self.coef_
            better = query.y[:, None] > query.y[None, :]
            right += ((scores[:, None] > scores[None, :]) & better).sum()
            total += better.sum()
        return right / total


def lists(count=24, seed=0, first=0):
    """Lists with a linear signal; the rows are scattered, and a row's first feature says which query it is of."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(count), rng.integers(2, 7, count)))
    X = np.column_stack([qid / count, rng.normal(size=(len(qid), 3))])
    y = np.clip(np.rint(X @ [0.0, 1.0, -1.0, 0.5] + rng.normal(size=len(qid))), 0, 3)
    return Queries.from_arrays(X, y, qid=[f"q{first + number}" for number in qid], weight=np.arange(1, count + 1))


@pytest.fixture
def queries():
    return lists()


def test_queries_are_samples(queries):
    train, test = train_test_split(queries, test_size=0.25, random_state=0)
    assert isinstance(train, Queries)
    assert (len(train), len(test)) == (18, 6)
    assert sorted(train.names() + test.names()) == sorted(queries.names())
    size = dict(zip(queries.names(), queries.sizes, strict=True))
    weight = dict(zip(queries.names(), queries.weight, strict=True))
    for part in (train, test):
        assert part.sizes.tolist() == [size[name] for name in part.names()]
        assert part.weight.tolist() == [weight[name] for name in part.names()]


def test_folds_keep_queries_whole(queries):
    names = queries.names()
    for train, test in KFold(5, shuffle=True, random_state=1).split(queries):
        assert sorted([*train, *test]) == list(range(len(queries)))
        for chosen in (train, test):
            part = queries[chosen]
            assert part.names() == [names[number] for number in chosen]
            assert part.sizes.tolist() == queries.sizes[chosen].tolist()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_cross_validation_fits_on_whole_queries(queries, n_jobs):
    found = cross_validate(Ridge(), queries, cv=KFold(4), n_jobs=n_jobs, return_estimator=True)
    expected = []
    for (train, test), fitted in zip(KFold(4).split(queries), found["estimator"], strict=True):
        alone = Ridge().fit(queries[train])
        assert fitted.fitted_on_ == queries[train].names()
        assert fitted.sizes_ == queries.sizes[train].tolist()
        np.testing.assert_array_equal(fitted.coef_, alone.coef_)
        expected.append(alone.score(queries[test]))
    np.testing.assert_array_equal(found["test_score"], expected)
    np.testing.assert_array_equal(cross_val_score(Ridge(), queries, cv=KFold(4), n_jobs=n_jobs), expected)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_grid_search_finds_what_a_loop_finds(queries, n_jobs):
    grid = [1e-3, 1.0, 1e3]
    search = GridSearchCV(Ridge(), {"alpha": grid}, cv=3, n_jobs=n_jobs).fit(queries)
    means = [
        np.mean([Ridge(alpha).fit(queries[train]).score(queries[test]) for train, test in KFold(3).split(queries)])
        for alpha in grid
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert search.best_params_ == {"alpha": grid[int(np.argmax(means))]}
    assert search.best_estimator_.fitted_on_ == queries.names()
    assert search.predict(queries).shape == (queries.n_documents,)


def test_a_random_search_and_other_splitters_work_too(queries):
    search = RandomizedSearchCV(
        Ridge(), {"alpha": [0.1, 1.0, 10.0]}, n_iter=2, cv=ShuffleSplit(2, random_state=0), random_state=0
    )
    assert search.fit(queries).best_score_ > 0.5


def test_mapped_queries_are_searched_in_other_processes(queries, tmp_path):
    queries.save(tmp_path / "q.rankwise")
    mapped = load(tmp_path / "q.rankwise")
    expected = cross_val_score(Ridge(), queries, cv=3)
    np.testing.assert_array_equal(cross_val_score(Ridge(), mapped, cv=3, n_jobs=2), expected)


# ------------------------------------------------------------------------------------------- a validation set


def test_a_validation_set_of_equal_length_passes_through_whole(queries):
    validation = lists(len(queries), seed=9, first=100)
    search = cross_validate(
        Ridge(), queries, cv=3, params={"validation": Unsliced(validation)}, return_estimator=True, n_jobs=2
    )
    for fitted in search["estimator"]:
        assert fitted.validated_on_ == validation.names()
    found = GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=3).fit(queries, validation=Unsliced(validation))
    assert found.best_estimator_.validated_on_ == validation.names()


def test_a_bare_validation_set_of_equal_length_is_sliced(queries):
    """Why there is a wrapper: scikit-learn takes anything as long as X for something to be cut like X."""
    validation = lists(len(queries), seed=9, first=100)
    search = cross_validate(Ridge(), queries, cv=3, params={"validation": validation}, return_estimator=True)
    for (train, _), fitted in zip(KFold(3).split(queries), search["estimator"], strict=True):
        assert fitted.validated_on_ == validation[train].names()
    shorter = validation[:-1]
    search = cross_validate(Ridge(), queries, cv=3, params={"validation": shorter}, return_estimator=True)
    assert all(fitted.validated_on_ == shorter.names() for fitted in search["estimator"])


def test_the_wrapper_has_nothing_that_could_be_sliced(queries):
    whole = Unsliced(queries)
    assert not any(hasattr(whole, name) for name in ("__len__", "shape", "__array__", "__getitem__", "__iter__"))
    assert Unsliced.open(whole) is Unsliced.open(queries) is queries
    assert repr(whole) == f"Unsliced({queries!r})"


def test_the_wrapper_carries_queries_only(queries):
    with pytest.raises(DataError, match="Unsliced takes Queries, got ndarray"):
        Unsliced(queries.X)
    with pytest.raises(DataError, match="Queries or Unsliced"):
        Unsliced.open(queries.X)


# ------------------------------------------------------------------------------------------- pipelines


def test_a_scaler_stands_in_a_pipeline(queries):
    pipeline = make_pipeline(Scaler("minmax"), Ridge())
    search = GridSearchCV(pipeline, {"scaler__how": ["standard", "minmax"], "ridge__alpha": [0.1, 1.0]}, cv=3).fit(
        queries
    )
    assert set(search.best_params_) == {"scaler__how", "ridge__alpha"}
    train, _ = next(KFold(3).split(queries))
    fitted = clone(pipeline).fit(queries[train])
    scaled = Scaler("minmax").fit_transform(queries[train])
    np.testing.assert_array_equal(fitted[-1].coef_, Ridge().fit(scaled).coef_)
    assert fitted.score(queries) == Ridge().fit(scaled).score(fitted[0].transform(queries))
