"""RidgeCommittee: against six regressions by hand, choices against plain loops, and the uses of a validation set."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers import _model_selection
from rankwise.rankers.linear.committee import JUDGED, MEMBERS, SELECTED_BY, TARGETS, RidgeCommittee, committee_targets
from rankwise.rankers.linear.ridge import RELATIVE_ALPHAS
from tests.rankers.linear.test_ridge import lists, sample_weights, within


def targets(queries):
    """The three targets, query by query."""
    ideal = np.zeros(len(queries))
    for number in range(len(queries)):
        best = np.sort(2.0 ** queries.y[queries.rows_of(number)] - 1)[::-1][:10]
        ideal[number] = best @ (1 / np.log2(np.arange(2, len(best) + 2)))
    gain = 2.0**queries.y - 1
    own = ideal[queries.query_of_row]
    return [gain, queries.y, np.divide(gain, own, out=np.zeros_like(gain), where=own > 0)]


def by_hand(queries, alphas):
    """Every member: least squares on centered rows of scaled features, then scores of deviation 1."""
    plain = sample_weights(queries, balanced=False)
    own = within(queries, queries.X, plain)
    scale = 1 / np.sqrt(np.average(own**2, axis=0, weights=plain))
    found = []
    for alpha, (balanced, number) in zip(alphas, MEMBERS, strict=True):
        weight = sample_weights(queries, balanced)
        X = within(queries, queries.X * scale, weight) * np.sqrt(weight)[:, None]
        g = within(queries, targets(queries)[number], weight) * np.sqrt(weight)
        A = X.T @ X
        w = np.linalg.solve(A + alpha * np.trace(A) / len(A) * np.eye(len(A)), X.T @ g) * scale
        found.append(w / np.sqrt(np.average((own @ w) ** 2, weights=plain)))
    return np.array(found)


def test_targets_are_gains_labels_and_gains_over_the_ideal():
    queries = lists(1)
    np.testing.assert_allclose(committee_targets(queries), targets(queries), rtol=1e-12)
    none = committee_targets(queries.with_labels(np.zeros(queries.n_documents)))
    assert not none.any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_members_are_six_regressions_and_the_weights_their_mean(weighted, alpha):
    queries = lists(2, weighted=weighted)
    model = RidgeCommittee(alpha=alpha).fit(queries)
    np.testing.assert_allclose(model.members_, by_hand(queries, [alpha] * 6), rtol=1e-8)
    np.testing.assert_allclose(model.coef_, model.members_.mean(axis=0), rtol=1e-12)
    assert list(model.alphas_["target"]) == [TARGETS[number] for _, number in MEMBERS]
    np.testing.assert_array_equal(model.alphas_["balanced"], [True] * 3 + [False] * 3)
    np.testing.assert_array_equal(model.alphas_["alpha"], [alpha] * 6)


def test_every_member_takes_the_penalty_that_is_best_in_a_plain_loop_over_folds():
    queries, grid = lists(3, count=30), (1e-4, 1.0, 100.0)
    plain = RidgeCommittee(alpha=grid, folds=3, random_state=4, scale="none")
    # labels of one class alone are not balanced, so that a fit on other queries has the same weights
    queries = queries.with_labels(queries.y + 1)
    model = plain.fit(queries)
    parts = [np.sort(part) for part in np.array_split(np.random.default_rng(4).permutation(30), 3)]
    for member in range(6):
        judged = []
        for alpha in grid:
            values = []
            for part in parts:
                one = RidgeCommittee(alpha=alpha, scale="none").fit(queries[np.setdiff1d(range(30), part)])
                held = queries[part]
                found = rw.evaluate(held, held.X @ one.members_[member], SELECTED_BY).per_query
                values.append([found[measure] for measure in SELECTED_BY])
            judged.append(np.nanmean(np.concatenate(values, axis=1), axis=1).mean())
        own = model.path_["member"] == member
        np.testing.assert_allclose(model.path_[JUDGED][own], judged, rtol=1e-12)
        assert model.alphas_["alpha"][member] == grid[int(np.argmax(judged))]


def test_the_usual_grid_and_many_queries(monkeypatch):
    queries = lists(4, count=40)
    model = RidgeCommittee().fit(queries)
    np.testing.assert_array_equal(model.path_["alpha"], np.tile(RELATIVE_ALPHAS, 6))
    monkeypatch.setattr(_model_selection, "MANY", 8)
    calls, prepared = [], _model_selection.Trial.prepare
    monkeypatch.setattr(_model_selection.Trial, "prepare", lambda self, *a: calls.append(self) or prepared(self, *a))
    RidgeCommittee().fit(queries)
    assert [len(trial.held) for trial in calls] == [8]


def test_a_validation_set_is_learned_from_or_kept_for_choosing():
    train, other = lists(5), lists(6, count=15)
    both = Queries.from_arrays(
        np.vstack([train.X, other.X]), np.append(train.y, other.y), group=[*train.sizes, *other.sizes]
    )
    pooled = RidgeCommittee().fit(train, validation=other)
    np.testing.assert_allclose(pooled.coef_, RidgeCommittee().fit(both).coef_, rtol=1e-9)
    assert (pooled.record_.seen.training.length, pooled.record_.seen.validation.length) == (35, 0)
    assert pooled.certificate(holdout=other).missing.startswith("all 15 hold-out queries were used in training")
    grid = (1e-3, 10.0)
    kept = RidgeCommittee(alpha=grid, refit="train").fit(train, validation=other)
    alone = {alpha: RidgeCommittee(alpha=alpha).fit(train).members_ for alpha in grid}
    expected = [alone[alpha][number] for number, alpha in enumerate(kept.alphas_["alpha"])]
    np.testing.assert_allclose(kept.members_, expected, rtol=1e-9)
    assert (kept.record_.seen.training.length, kept.record_.seen.validation.length) == (20, 15)
    values = rw.evaluate(other, other.X @ alone[10.0][2], SELECTED_BY).mean
    judged = kept.path_[JUDGED][5]
    assert judged == pytest.approx(np.mean([values[one] for one in SELECTED_BY]), rel=1e-12)


@pytest.mark.parametrize("scale", ["auto", "none"])
def test_threads_float32_and_the_order_of_rows_change_nothing(scale):
    queries = lists(7, count=40)
    exact = Queries.from_arrays(np.float64(np.float32(queries.X)), queries.y, group=queries.sizes)
    one = RidgeCommittee(scale=scale, n_jobs=1).fit(exact)
    np.testing.assert_array_equal(RidgeCommittee(scale=scale, n_jobs=3).fit(exact).coef_, one.coef_)
    single = RidgeCommittee(scale=scale).fit(np.float32(queries.X), queries.y, group=queries.sizes)
    np.testing.assert_array_equal(single.coef_, one.coef_)


def test_more_features_than_documents():
    queries = lists(8, count=6, features=300)
    model = RidgeCommittee(alpha=0.1).fit(queries)
    np.testing.assert_allclose(model.members_, by_hand(queries, [0.1] * 6), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("X", "y", "sizes"),
    [
        ([[1.0, 2.0]], [1], [1]),
        ([[1.0, 2.0], [3.0, 4.0]], [2, 2], [2]),
        ([[1.0, 2.0], [3.0, 4.0]], [0, 0], [2]),
        ([[5.0, 7.0], [5.0, 7.0], [2.0, 2.0]], [1, 0, 0], [2, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_queries_with_nothing_to_learn_give_weights_of_zero(X, y, sizes):
    assert not RidgeCommittee().fit(np.array(X), y, group=sizes).coef_.any()


def test_continuous_labels_are_ranked_clearly_better_than_by_a_random_order():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(1000, 2))
    y = X.sum(axis=1) / 3 + rng.normal(size=1000)
    y -= y.min()
    model = RidgeCommittee("Pairs").fit(X[:500], y[:500], group=[10] * 50)
    assert model.score(X[500:], y[500:], group=[10] * 50) > 0.58


def test_a_saved_model_has_the_same_bits_and_tables(tmp_path):
    model = RidgeCommittee("AP", alpha=(0.1, 1.0)).fit(lists(10), validation=lists(11))
    model.save(tmp_path / "committee.rankwise")
    copy = rw.load(tmp_path / "committee.rankwise")
    for name in ("coef_", "members_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
    assert copy.alphas_ == model.alphas_
    assert copy.path_ == model.path_
    assert copy.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"refit": "both"}, "'refit' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
        ({"folds": 1}, "'folds' parameter of"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        RidgeCommittee(**wrong).fit(lists())
