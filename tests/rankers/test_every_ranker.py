"""What holds for every ranker, over whatever the registry finds: a new file comes under all of it.

Saving is tried in ``test_saved.py``, streams in ``test_streams.py``.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import estimator_checks

import rankwise as rw
from rankwise.errors import DataError, NothingLearnedWarning, RankwiseError
from rankwise.queries.folds import Unsliced
from rankwise.queries.queries import Queries
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers.online.learner import OnlineLearner
from tests.strategies import THOROUGH

RANKERS = [ranker for kind in registered().values() for ranker in kind.examples()]
KINDS = list(registered().values())
ONLINE = [ranker for ranker in RANKERS if isinstance(ranker, OnlineLearner)]


def one_line(ranker):
    return " ".join(repr(ranker).split())


# Every variant learns the same bits whatever the form of its data. What does not depend on how a ranker learns is tried
# on the first variant of every kind in a normal run, on all of them in a thorough one.
over_all_rankers = pytest.mark.parametrize("ranker", RANKERS, ids=one_line)
FIRST = RANKERS if THOROUGH else [kind.examples()[0] for kind in KINDS]
over_every_kind_of_ranker = pytest.mark.parametrize("ranker", FIRST, ids=one_line)
over_all_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def lists(count=12, features=4, seed=0, dtype=np.float64, names=None):
    """Judged lists with a linear signal, grouped, some of one document or of one label."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    X = rng.normal(size=(sizes.sum(), features)).astype(dtype)
    y = np.clip(np.rint(X @ np.linspace(1, -1, features) + rng.normal(size=len(X))), 0, 3)
    return Queries.from_arrays(X, y, group=sizes, feature_names=names)


def fitted(ranker, *data, **grouping):
    return clone(ranker).fit(*data, **grouping)


def learned(ranker, features=4):
    """What a ranker learned, to the bit: scores of some rows, and the weights of a linear one."""
    rows = np.random.default_rng(99).normal(size=(50, features))
    scores = ranker.predict(Queries.from_arrays(rows, group=[50])).tobytes()
    return scores, ranker.coef_.tobytes() if isinstance(ranker, LinearRanker) else b""


def asked(ranker, rows):
    """What ``predict`` takes for rows: an array, or queries where a score depends on the query."""
    if not ranker.scores_by_query:
        return rows
    sizes = lists().sizes if len(rows) == lists().n_documents else [len(rows)]
    return Queries.from_arrays(rows, group=sizes)


def assert_one_sentence(error):
    text = str(error.value)
    assert "\n" not in text
    assert 20 < len(text) < 300


# ------------------------------------------------------------------------------------------- scikit-learn's contract


@over_all_kinds
@pytest.mark.parametrize(
    "check",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_estimators_unfitted",
    ],
)
def test_the_checks_of_scikit_learn_that_need_no_lists(kind, check):
    function = getattr(estimator_checks, check, None)
    if function is None:
        pytest.skip("not in this version of scikit-learn")
    function(kind.name, kind())


@over_every_kind_of_ranker
def test_a_clone_has_the_parameters_and_nothing_that_was_learned(ranker):
    model = fitted(ranker, lists())
    copy = clone(model)
    assert repr(copy) == repr(ranker)
    assert str(copy.get_params()) == str(ranker.get_params())
    assert [name for name in vars(copy) if name.endswith("_")] == []
    assert type(copy)(**copy.get_params()).get_params() == copy.get_params()


@over_all_rankers
def test_fitting_leaves_the_parameters_alone_and_returns_the_ranker(ranker):
    model = clone(ranker)
    before = {name: repr(value) for name, value in model.get_params().items()}
    assert model.fit(lists()) is model
    assert {name: repr(value) for name, value in model.get_params().items()} == before
    added = [name for name in vars(model) if name not in before]
    assert all(name.endswith("_") for name in added), "what is learned has a name that ends in _"


@over_every_kind_of_ranker
def test_scikit_learn_searches_and_validates_over_whole_queries(ranker):
    queries = lists(18)
    scores = cross_val_score(ranker, queries, cv=3)
    for (train, test), found in zip(KFold(3).split(queries), scores, strict=True):
        assert found == fitted(ranker, queries[train]).score(queries[test])
    grid = {"measure": ["nDCG", "AP"]} if ranker.get_params().get("weights") is None else {"measure": ["nDCG"]}
    search = GridSearchCV(ranker, grid, cv=3).fit(queries)
    assert np.isfinite(search.best_score_)
    best = clone(ranker).set_params(**search.best_params_)
    assert learned(search.best_estimator_) == learned(fitted(best, queries))
    np.testing.assert_array_equal(search.predict(queries), search.best_estimator_.predict(queries))


@over_every_kind_of_ranker
def test_a_ranker_that_is_not_fitted_says_so(ranker, tmp_path):
    for ask in (lambda: ranker.predict(lists()), lambda: ranker.rank(lists()), lambda: ranker.score(lists())):
        with pytest.raises(NotFittedError, match=f"this {ranker.name} is not fitted yet") as error:
            ask()
        assert isinstance(error.value, RankwiseError)
    with pytest.raises(RankwiseError, match="not fitted yet"):
        ranker.save(tmp_path / "empty.rankwise")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------- two doors


@over_all_rankers
def test_both_doors_lead_to_the_same_bits(ranker):
    queries = lists()
    one = learned(fitted(ranker, queries))
    owner = queries.query_of_row
    qid = [f"q{number}" for number in owner]
    assert learned(fitted(ranker, queries.X, queries.y, group=queries.sizes)) == one
    assert learned(fitted(ranker, queries.X, queries.y, qid=qid)) == one
    assert learned(fitted(ranker, queries.X.tolist(), list(queries.y), qid=owner)) == one
    assert learned(fitted(ranker, np.asfortranarray(queries.X), queries.y[:, None], group=queries.sizes)) == one
    assert learned(fitted(ranker, queries.with_labels(None), queries.y)) == one


@over_every_kind_of_ranker
def test_rows_may_be_scattered_while_the_lists_stay_in_their_order(ranker):
    """Queries in order of first appearance, documents of a list in theirs: everything else is free."""
    queries = lists()
    owner, rng = queries.query_of_row, np.random.default_rng(1)
    first = queries.start[:-1]
    rest = np.setdiff1d(np.arange(len(owner)), first)
    place = np.empty(len(owner))
    place[first] = np.arange(len(first))
    place[rest] = len(first) + rng.permutation(len(rest))
    for number in range(len(queries)):  # documents of a list keep their order
        rows = np.flatnonzero(owner == number)
        place[rows] = np.sort(place[rows])
    order = np.argsort(place)
    assert not np.array_equal(order, np.arange(len(order)))
    X, y, qid = queries.X[order], queries.y[order], owner[order]
    model = fitted(ranker, X, y, qid=qid)
    assert not Queries.from_arrays(X, y, qid=qid).is_grouped
    np.testing.assert_array_equal(model.predict(Queries.from_arrays(X, qid=qid)), model.predict(queries)[order])
    grouped = fitted(ranker, queries)
    if isinstance(ranker, OnlineLearner):
        assert learned(model) == learned(grouped)
    else:  # sums over all rows may be taken in the order of the rows
        np.testing.assert_allclose(model.predict(queries), grouped.predict(queries), rtol=1e-6, atol=1e-9)


@over_every_kind_of_ranker
@pytest.mark.parametrize(
    ("arguments", "grouping", "found"),
    [
        (lambda q: (q.X, q.y), {}, "needs the grouping of rows"),
        (lambda q: (q,), {"group": [3]}, "leave out group= and qid="),
        (lambda q: (q.with_labels(None),), {}, "no labels"),
        (lambda q: (q.X,), {"group": lists().sizes}, "no labels"),
        (lambda q: (q.X, q.y[1:]), {"group": lists().sizes}, "one number per row"),
        (lambda q: (q.X, q.y), {"group": [1, 2]}, "add up to 3"),
        (lambda q: (q.X, q.y - 5), {"group": lists().sizes}, "labels must be 0 or more"),
        (lambda q: (q.X[:, 0], q.y), {"group": lists().sizes}, "X.reshape"),
    ],
)
def test_what_is_no_set_of_judged_lists_is_refused_in_a_sentence(ranker, arguments, grouping, found):
    model = clone(ranker)
    with pytest.raises(DataError, match=found) as error:
        model.fit(*arguments(lists()), **grouping)
    assert_one_sentence(error)
    assert [name for name in vars(model) if name.endswith("_")] == []


@over_all_rankers
def test_a_validation_set_is_used_or_refused_but_never_ignored_in_silence(ranker):
    train, other = lists(), lists(seed=5)
    try:
        plain = learned(clone(ranker).fit(train, validation=other))
    except DataError as error:
        assert "omit the validation set" in str(error)  # noqa: PT017
        return
    assert learned(clone(ranker).fit(train, validation=Unsliced(other))) == plain
    second = clone(ranker).fit(train, eval_set=[(other.X, other.y)], eval_group=[other.sizes])
    assert learned(second) == plain


@over_every_kind_of_ranker
def test_two_names_for_a_validation_set_are_one_too_many(ranker):
    train = lists()
    with pytest.raises(DataError, match="have the same meaning"):
        clone(ranker).fit(train, validation=train, eval_set=[(train.X, train.y)], eval_group=[train.sizes])
    with pytest.raises(DataError, match="one of each"):
        clone(ranker).fit(train, eval_set=[(train.X, train.y)])


@over_all_rankers
def test_a_fit_that_fails_leaves_the_ranker_as_it_was(ranker):
    model = fitted(ranker, lists())
    before = learned(model)
    narrow = Queries.from_arrays(np.array([[1e308, 1e308], [-1e308, 1e308], [1e308, 0]]), [0, 1, 2], group=[3])
    with pytest.raises(RankwiseError):
        model.set_params(measure="no such measure").fit(narrow)
    model.set_params(measure=ranker.measure)
    assert model.n_features_in_ == 4
    assert learned(model) == before
    fresh = clone(ranker).set_params(measure="no such measure")
    with pytest.raises(RankwiseError):
        fresh.fit(lists())
    with pytest.raises(NotFittedError):
        fresh.predict(lists())


# ------------------------------------------------------------------------------------------- scores


@over_all_rankers
def test_a_documents_score_depends_on_its_row_and_the_model_alone(ranker):
    if ranker.scores_by_query:
        with pytest.raises(DataError, match="within each query") as error:
            fitted(ranker, lists()).predict(lists().X)
        assert_one_sentence(error)
        return
    for features, dtype in ((1, np.float64), (4, np.float32), (37, np.float64)):
        queries = lists(features=features, dtype=dtype)
        model = fitted(ranker, queries)
        scores = model.predict(queries)
        assert scores.shape == (queries.n_documents,)
        assert scores.dtype == np.float64
        np.testing.assert_array_equal(model.predict(queries.X), scores)
        np.testing.assert_array_equal(model.predict(queries.with_labels(None)), scores)
        alone = np.concatenate([model.predict(queries.X[row : row + 1]) for row in range(queries.n_documents)])
        np.testing.assert_array_equal(alone, scores)
        np.testing.assert_array_equal(np.concatenate([model.predict(query) for query in queries]), scores)
        np.testing.assert_array_equal(model.predict(queries.X[3:11]), scores[3:11])
        np.testing.assert_array_equal(model.predict(queries.X[::-1]), scores[::-1])
        np.testing.assert_array_equal(model.predict(queries[4:9]), scores[queries.start[4] : queries.start[9]])
        odd = np.zeros(queries.X.nbytes + dtype().itemsize, dtype=np.uint8)[dtype().itemsize :].view(dtype)
        odd = odd.reshape(queries.X.shape)  # another alignment in memory
        odd[:] = queries.X
        np.testing.assert_array_equal(model.predict(odd), scores)


@over_all_rankers
def test_linear_rankers_multiply_by_their_weights(ranker):
    queries = lists()
    model = fitted(ranker, queries)
    if not isinstance(model, LinearRanker):
        pytest.skip("not linear")
    assert model.coef_.shape == (4,)
    np.testing.assert_allclose(model.predict(queries), queries.X @ model.coef_, rtol=1e-12, atol=1e-12)


@over_all_rankers
def test_float32_is_learned_from_where_it_stands(ranker, monkeypatch):
    """The same numbers in float32 and float64 give the same bits, and nobody makes a wide copy."""
    narrow = lists(dtype=np.float32)
    wide = Queries.from_arrays(narrow.X.astype(np.float64), narrow.y, group=narrow.sizes)
    model = fitted(ranker, narrow)
    assert learned(model) == learned(fitted(ranker, wide))
    np.testing.assert_array_equal(model.predict(narrow), model.predict(wide))
    if ranker.scores_by_query:
        return
    seen = []
    original = type(model)._scores
    monkeypatch.setattr(type(model), "_scores", lambda self, X: (seen.append(X), original(self, X))[1])
    model.predict(narrow.X)
    assert seen[0].dtype == np.float32
    assert np.shares_memory(seen[0], narrow.X)


@over_every_kind_of_ranker
def test_read_only_and_mapped_features_are_as_good_as_any(ranker, tmp_path):
    queries = lists()
    one = learned(fitted(ranker, queries))
    np.save(tmp_path / "X.npy", queries.X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert learned(fitted(ranker, mapped, queries.y, group=queries.sizes)) == one
    queries.save(tmp_path / "lists.rankwise")
    stored = rw.load(tmp_path / "lists.rankwise")
    model = fitted(ranker, stored)
    assert learned(model) == one
    np.testing.assert_array_equal(model.predict(stored), model.predict(queries))
    np.testing.assert_array_equal(model.predict(asked(model, mapped)), model.predict(queries))
    own = queries.X.copy()
    own.flags.writeable = False
    before = own.tobytes()
    model.fit(own, queries.y, group=queries.sizes)
    assert own.tobytes() == before


@over_every_kind_of_ranker
def test_the_number_of_threads_changes_no_bit(ranker, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (8,))
    monkeypatch.setattr("rankwise.queries.checks.BLOCK_VALUES", 16)
    queries = lists(40)
    one, two = (clone(ranker).set_params(n_jobs=jobs).fit(queries) for jobs in (1, 2))
    assert learned(one) == learned(two)
    np.testing.assert_array_equal(one.predict(queries), two.predict(queries))
    assert one.score(queries) == two.score(queries)


@over_all_rankers
def test_the_same_seed_gives_the_same_bits_and_fitting_again_starts_afresh(ranker):
    queries = lists()
    model = fitted(ranker, queries)
    one = learned(model)
    assert learned(fitted(ranker, queries)) == one
    model.fit(lists(features=2, seed=3))
    assert model.n_features_in_ == 2
    assert learned(model.fit(queries)) == one


@over_all_rankers
def test_pickles_keep_everything(ranker):
    model = fitted(ranker, lists(names=["a", "b", "c", "d"]))
    copy = pickle.loads(pickle.dumps(model))
    assert learned(copy) == learned(model)
    assert repr(copy) == repr(model)
    np.testing.assert_array_equal(copy.feature_names_in_, model.feature_names_in_)


# ------------------------------------------------------------------------------------------- features


@over_every_kind_of_ranker
def test_features_are_known_by_their_names(ranker):
    names = ("age", "bm25", "clicks", "depth")
    queries = lists(names=names)
    model = fitted(ranker, queries)
    assert model.n_features_in_ == 4
    assert tuple(model.feature_names_in_) == names
    scores = model.predict(queries)
    other = queries.select_features(("depth", "age", "clicks", "bm25"))
    np.testing.assert_array_equal(model.predict(other), scores)
    np.testing.assert_array_equal(model.predict(other[3]), model.predict(queries[3]))
    assert model.score(other) == model.score(queries)
    for make in (pd.DataFrame, pl.DataFrame):
        columns = {name: queries.X[:, place] for place, name in enumerate(names)}
        table = {"unused": np.ones(len(scores))} | {name: columns[name] for name in reversed(names)}
        if not ranker.scores_by_query:
            np.testing.assert_array_equal(model.predict(make(table)), scores)
        again = fitted(ranker, make(columns), queries.y, group=queries.sizes)
        assert tuple(again.feature_names_in_) == names
        assert learned(again) == learned(model)
        del table["clicks"]
        with pytest.raises(DataError, match=r"'clicks'.*no such column") as error:
            model.predict(make(table))
        assert_one_sentence(error)
    with pytest.raises(DataError, match="feature 'age' is not among"):
        model.predict(lists(names=("a", "b", "c", "d")))
    assert not hasattr(model.fit(lists()), "feature_names_in_")


@over_every_kind_of_ranker
@pytest.mark.parametrize("features", [3, 5])
def test_another_number_of_features_is_refused(ranker, features):
    model, others = fitted(ranker, lists()), lists(features=features)
    for ask in (others, others.X, others[2]):
        with pytest.raises(DataError, match=f"was fitted on 4 features, got {features}") as error:
            model.predict(ask)
        assert_one_sentence(error)
    with pytest.raises(DataError, match="two dimensions"):
        model.predict(others.X[0])


@over_all_rankers
def test_missing_values_follow_the_policy_of_the_ranker(ranker):
    queries = lists()
    holes = queries.X.copy()
    holes[queries.start[3] : queries.start[3] + 2, 1] = np.nan
    holes[-1, 0] = np.inf
    if ranker.missing == "keep":
        with pytest.raises(DataError, match=r"infinite at row \d+, feature 0.*keeps NaN only"):
            clone(ranker).fit(holes, queries.y, group=queries.sizes)
        ranker = clone(ranker).set_params(missing="error")
    else:
        with pytest.raises(RankwiseError, match=r"gives no meaning to missing values|found 'keep'"):
            clone(ranker).set_params(missing="keep").fit(holes[:-1], queries.y[:-1], qid=queries.query_of_row[:-1])
    with pytest.raises(DataError, match=r"feature 1.*missing='zero'"):
        clone(ranker).fit(holes, queries.y, group=queries.sizes)
    if not ranker.scores_by_query:
        with pytest.raises(DataError, match=r"row \d+, feature 1"):
            fitted(ranker, queries).predict(holes)
    for policy in ("zero", "min"):
        filled = Queries.from_arrays(holes, queries.y, group=queries.sizes, missing=policy)
        model = clone(ranker).set_params(missing=policy).fit(holes, queries.y, group=queries.sizes)
        assert learned(model) == learned(fitted(ranker, filled))
        if ranker.scores_by_query:
            continue
        if policy == "zero":
            np.testing.assert_array_equal(model.predict(holes), model.predict(filled))
        else:
            with pytest.raises(DataError, match="pass Queries"):
                model.predict(holes)
            np.testing.assert_array_equal(model.predict(queries.X), model.predict(queries))


# ------------------------------------------------------------------------------------------- lists that are hardly any

DEGENERATE = {
    "one document a list": Queries.from_arrays(np.eye(4), [0, 1, 2, 0], group=[1, 1, 1, 1]),
    "all labels equal": Queries.from_arrays(np.eye(4), [2, 2, 1, 1], group=[2, 2]),
    "nothing relevant": Queries.from_arrays(np.eye(4), [0, 0, 0, 0], group=[2, 2]),
    "empty lists": Queries(np.eye(4), [0, 1, 2, 0], [0, 0, 2, 2, 4, 4]),
    "one query": Queries.from_arrays(np.eye(4), [0, 1, 2, 0], group=[4]),
    "constant features": Queries.from_arrays(np.full((4, 4), 0.3), [0, 1, 2, 0], group=[2, 2]),
    "features of zeros": Queries.from_arrays(np.zeros((4, 4)), [0, 1, 2, 0], group=[2, 2]),
    "one feature": Queries.from_arrays(np.arange(4.0)[:, None], [0, 1, 2, 0], group=[2, 2]),
    "the same document twice": Queries.from_arrays(np.ones((4, 2)), [0, 1, 2, 0], group=[4]),
    "labels between grades": Queries.from_arrays(np.eye(4), [0.25, 0.5, 0, 0.125], group=[2, 2]),
    "tiny features": Queries.from_arrays(1e-300 * np.eye(4), [0, 1, 2, 0], group=[2, 2]),
}
NOTHING_TO_LEARN = ("one document a list", "all labels equal", "nothing relevant")  # every order is as good as any


@over_every_kind_of_ranker
@pytest.mark.parametrize("case", DEGENERATE)
def test_lists_with_little_to_learn_are_learned_from_without_fuss(ranker, case):
    queries = DEGENERATE[case]
    if len(queries) > 1:  # often enough for a choice by folds
        queries = queries[np.tile(np.arange(len(queries)), 6)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = fitted(ranker, queries)
        except DataError as error:  # a choice between several values takes more than one list
            if len(queries) > 1 or "give validation=" not in str(error):
                raise
            return
        scores = model.predict(queries)
        table = model.rank(queries)
        model.score(queries)
    assert [one.category for one in told] == [NothingLearnedWarning] * (case in NOTHING_TO_LEARN and ranker.learns)
    assert np.isfinite(scores).all()
    assert len(table) == queries.n_documents
    if isinstance(model, LinearRanker):
        assert model.coef_.shape == (queries.n_features,)
        assert np.isfinite(model.coef_).all()


@over_every_kind_of_ranker
@pytest.mark.parametrize("scale", [1e100, 1e150, 1e300])
def test_huge_features_work_or_are_refused_in_a_sentence(ranker, scale, tmp_path):
    queries = lists()
    huge = Queries.from_arrays(queries.X * scale, queries.y, group=queries.sizes)
    for part in (huge, huge[:1], huge[2:3]):
        model = clone(ranker)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                model.fit(part)
            except RankwiseError as error:
                assert "\n" not in str(error)  # noqa: PT017
                assert [name for name in vars(model) if name.endswith("_")] == []
                continue
        assert np.isfinite(model.predict(queries)).all()
        model.save(tmp_path / "huge.rankwise")
        assert learned(rw.load(tmp_path / "huge.rankwise")) == learned(model)


@over_all_rankers
def test_weights_of_one_are_no_weights(ranker):
    queries = lists()
    assert learned(fitted(ranker, queries.with_weight(np.ones(12)))) == learned(fitted(ranker, queries))


# with a feedback depth the number of a round decides what it shows
NUMBERED = [one for one in ONLINE if getattr(one, "feedback_depth", None) is None]


@pytest.mark.parametrize("ranker", NUMBERED, ids=one_line)
def test_online_a_list_of_weight_zero_takes_a_round_and_teaches_nothing(ranker):
    """What a weight means in batch, where scaling and choices look at all lists, is for each ranker's own tests."""
    queries = lists()
    weight = np.ones(12)
    weight[[0, 5, 11]] = 0
    plain = {"averaging": "none", "scale": "none", "shuffle": False, "step": "constant"}
    ranker = clone(ranker)
    ranker.set_params(**{name: value for name, value in plain.items() if name in ranker.get_params()})
    some = fitted(ranker, queries.with_weight(weight))
    # scores alone: a projection in a round without weight may turn a weight of -0 into 0
    assert learned(some)[0] == learned(fitted(ranker, queries[weight > 0]))[0]
    assert some.ledger_.rounds == 12 * ranker.epochs


# ------------------------------------------------------------------------------------------- what is made of scores


@over_every_kind_of_ranker
@pytest.mark.parametrize("weighted", [False, True])
def test_score_is_the_mean_that_evaluate_finds(ranker, weighted):
    queries = lists(20)
    if weighted:
        queries = queries.with_weight(np.random.default_rng(0).uniform(0, 3, 20))
    model = fitted(ranker, queries)
    found = rw.evaluate(queries, model.predict(queries), [model._measure()]).mean
    assert model.score(queries) == next(iter(found.values()))
    assert model.score(queries.with_labels(None), queries.y) == model.score(queries)


@over_every_kind_of_ranker
@pytest.mark.parametrize("identities", ["none", "texts", "tuples"])
def test_ranks_are_a_plain_sort_of_scores(ranker, identities):
    base = lists()
    rng = np.random.default_rng(3)
    order = rng.permutation(base.n_documents)
    X = np.round(base.X[order])  # ties
    qid = base.query_of_row[order]
    names = {"none": qid, "texts": [f"q{one}" for one in qid], "tuples": [("q", int(one)) for one in qid]}[identities]
    docid = None if identities == "none" else [f"d{row}" for row in range(len(X))]
    queries = Queries.from_arrays(X, base.y[order], qid=names, docid=docid)
    model = fitted(ranker, queries)
    scores = model.predict(queries)
    expected = []
    for number, name in enumerate(queries.names()):
        rows = [row for row in range(len(X)) if queries.query_of_row[row] == number]
        for rank, row in enumerate(sorted(rows, key=lambda row: -scores[row]), 1):
            expected.append((name, row if docid is None else docid[row], rank, scores[row]))
    table = model.rank(queries)
    assert table.columns == ("qid", "docid", "rank", "score")
    assert [tuple(row.values()) for row in table] == expected
