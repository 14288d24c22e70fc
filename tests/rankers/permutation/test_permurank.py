"""PermuRank: its bound against what the measure misses, choices against plain loops, Ctrl-C, files, sentences."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import Interrupted, RankwiseError
from rankwise.io.folds import read_folds
from rankwise.losses.permutation import TypeTwo
from rankwise.measures._base import parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.queries import Queries
from rankwise.rankers.permutation import permurank as _permutation_rounds
from rankwise.rankers.permutation.list_orders import ListOrders
from rankwise.rankers.permutation.permurank import PermuRank


def lists(seed=0, count=12, features=3, labels=2, weighted=False, dtype=np.float64):
    """Judged lists with a linear signal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    X = rng.uniform(-1, 1, size=(sizes.sum(), features)).astype(dtype)
    y = np.clip(np.rint(X @ np.linspace(2, -1, features) + 0.5 * rng.normal(size=len(X))), 0, labels)
    return Queries.from_arrays(X, y, group=sizes, weight=rng.uniform(0.1, 2, count) if weighted else None)


# ------------------------------------------------------------------------------------------- rounds and their bound


def pessimistic_regret(queries, model, measure):
    """The mean of E* - E over the lists that the measure says something about, and for each."""
    measure = parse(measure)
    rows = None if queries.is_grouped else queries.rows
    found = []
    for scores, ties in ((measure.row_values(queries.y), "stable"), (model.predict(queries), "pessimistic")):
        found.append(measure_lists([measure], ScoredLists(scores, queries.y, queries.start, rows), ties=ties)[0])
    regret = found[0] - found[1]
    weight = np.ones(len(queries)) if queries.weight is None else queries.weight
    known = ~np.isnan(regret)
    return (weight[known] @ regret[known]) / weight[known].sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("hinge", ["sum", "max"])
@pytest.mark.parametrize(
    ("measure", "map"),
    [("AP", "relevant"), ("AP", "pairs"), ("nDCG@3", "pairs"), ("P@2", "pairs"), ("RR", "pairs"), ("ERR@2", "pairs")],
)
def test_when_no_set_changes_the_loss_bounds_what_the_measure_misses(measure, map, hinge, weighted):
    queries = lists(5, weighted=weighted)
    model = PermuRank(measure, map=map, hinge=hinge, alpha=0.05, rounds=300, stop="last").fit(queries)
    assert model.converged_
    assert model.history_["added"][-1] == 0
    assert model.history_["bound"][-1]
    assert not model.history_["bound"][0]
    assert model.history_["loss"][-1] >= pessimistic_regret(queries, model, measure) - 1e-9
    assert model.round_ == len(model.history_)


@pytest.mark.parametrize("map", ["pairs", "relevant"])
def test_the_largest_hinge_of_the_sets_lies_between_the_regret_and_the_type_two_loss_of_all_orders(map):
    queries = lists(19, labels=1)
    model = PermuRank("AP", map=map, hinge="max", alpha=0.1, rounds=300, stop="last", scale="none").fit(queries)
    assert model.converged_
    exact = TypeTwo("AP", form="hinge", map=map)
    able = [query for query in queries if query.y.max() > 0]
    type_two = np.mean([exact(query.X @ model.coef_, query.y) for query in able])
    assert pessimistic_regret(queries, model, "AP") - 1e-9 <= model.history_["loss"][-1] <= type_two + 1e-9


def test_wherever_the_history_says_bound_it_is_one_and_elsewhere_it_need_not_be():
    checked = broken = 0
    for seed in range(6):
        queries = lists(seed, labels=1)
        whole = PermuRank("AP", map="relevant", alpha=0.01, rounds=30, stop="last").fit(queries)
        for number, bound in enumerate(whole.history_["bound"], 1):
            if bound or number <= 2:
                model = PermuRank("AP", map="relevant", alpha=0.01, rounds=number, stop="last").fit(queries)
                holds = model.history_["loss"][-1] >= pessimistic_regret(queries, model, "AP") - 1e-9
                assert holds or not bound
                checked += bool(bound)
                broken += not holds
    assert checked > 3
    assert broken > 0


def test_the_sizes_of_sets_add_up():
    queries = lists(2, labels=1)
    history = PermuRank("AP", alpha=0.1, rounds=20, stop="last").fit(queries).history_
    able = sum(len(set(query.y)) == 2 for query in queries)
    held = able * (history["perfect"] + history["imperfect"])
    assert held[0] == pytest.approx(2 * able)
    np.testing.assert_allclose(np.diff(held), history["added"][:-1])
    assert (history["largest"] <= history["round"]).all()
    assert (history["objective"] >= history["loss"]).all()
    assert (history["gap"] >= 0).all()


def test_documents_that_are_alike_cause_no_endless_rounds():
    base = lists(4, labels=1)
    twice = np.repeat(np.arange(base.n_documents), 2)
    X, y = base.X[twice], base.y[twice]
    model = PermuRank("AP", map="relevant", hinge="max", alpha=0.1, rounds=200, stop="last")
    assert model.fit(X, y, group=2 * base.sizes).converged_
    constant = PermuRank("nDCG", alpha=0.1, rounds=200, stop="last").fit(
        np.ones((6, 2)), [0, 1, 2, 0, 0, 1], group=[3, 3]
    )
    assert constant.converged_
    assert len(constant.history_) == 1
    np.testing.assert_array_equal(constant.coef_, 0)


@pytest.mark.parametrize("hinge", ["sum", "max"])
def test_a_weight_of_two_is_the_list_twice_and_of_zero_the_list_left_out(hinge):
    queries = lists(7, count=6)
    options = {"alpha": 0.3, "rounds": 3, "stop": "last", "tolerance": 1e-9, "scale": "none", "hinge": hinge}
    repeated = PermuRank("AP", **options).fit(queries[[0, 1, 1, 2, 4, 5]])
    weighted = PermuRank("AP", **options).fit(queries.with_weight([1, 2, 1, 0, 1, 1]))
    np.testing.assert_allclose(weighted.history_["objective"], repeated.history_["objective"], rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-3, atol=1e-4)


def test_it_learns_what_can_be_learned():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, size=(200, 3))
    y = (X @ [1.0, -1.0, 0.5] > 0.4).astype(float)
    model = PermuRank("AP", map="relevant", hinge="max", alpha=1e-3, stop="last").fit(X, y, group=[10] * 20)
    assert model.score(Queries.from_arrays(X, y, group=[10] * 20)) > 0.97


def test_the_number_of_threads_changes_no_bit_of_many_orders(monkeypatch):
    monkeypatch.setattr("rankwise.solvers.batch.working_sets._CHUNK", 3)
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (8,))
    one, two = (PermuRank(alpha=0.1, rounds=8, stop="last", n_jobs=jobs).fit(lists(9)) for jobs in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.history_ == two.history_


# ------------------------------------------------------------------------------------------- choices


@pytest.mark.parametrize("stop", ["last", "best"])
def test_strength_and_round_are_the_best_of_a_plain_loop_over_the_validation_set(stop):
    train, other = lists(10), lists(11)
    alphas = (0.001, 0.1, 10.0)
    model = PermuRank("nDCG@3", alpha=alphas, rounds=4, stop=stop).fit(train, validation=other)
    judged = np.full((3, 4), -np.inf)
    for place, alpha in enumerate(alphas):
        for rounds in range(1, 5) if stop == "best" else [4]:
            one = PermuRank("nDCG@3", alpha=alpha, rounds=rounds, stop="last").fit(train)
            judged[place, rounds - 1] = one.score(other)
    best, last = np.unravel_index(judged.argmax(), judged.shape)
    assert model.alpha_ == alphas[best]
    np.testing.assert_allclose(model.path_["nDCG@3"], judged.max(axis=1))
    if stop == "best":
        assert model.round_ == last + 1
        again = PermuRank("nDCG@3", alpha=model.alpha_, rounds=model.round_, stop="last").fit(train)
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_without_a_validation_set_folds_choose():
    queries = lists(12)
    model = PermuRank("AP", alpha=(0.01, 1.0), rounds=3, stop="best", folds=3, scale="none", random_state=4)
    model.fit(queries)
    parts = np.array_split(np.random.default_rng(4).permutation(12), 3)
    judged = np.zeros((2, 3))
    for place, alpha in enumerate((0.01, 1.0)):
        for rounds in (1, 2, 3):
            one = PermuRank("AP", alpha=alpha, rounds=rounds, stop="last", scale="none")
            each = [one.fit(queries[np.setdiff1d(range(12), part)]).score(queries[part]) for part in parts]
            judged[place, rounds - 1] = np.nanmean(each)
    np.testing.assert_allclose(model.path_["AP"], judged.max(axis=1))
    best, place = np.unravel_index(judged.argmax(), judged.shape)
    assert (model.alpha_, model.round_) == ((0.01, 1.0)[best], place + 1)


# ------------------------------------------------------------------------------------------- Ctrl-C, files, sentences


@pytest.mark.parametrize("finished", [0, 1, 2, 3])
def test_ctrl_c_keeps_the_last_finished_round(finished, monkeypatch):
    queries, calls = lists(13), []
    original = _permutation_rounds.mean_measure

    def measured(*given):
        calls.append(1)
        if len(calls) > finished:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(_permutation_rounds, "mean_measure", measured)
    model = PermuRank("AP", alpha=0.1, rounds=6, stop="last")
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(queries)
    monkeypatch.undo()
    assert isinstance(stopped.value, Interrupted) == (finished > 0)
    assert hasattr(model, "coef_") == (finished > 0)
    if finished:
        shorter = PermuRank("AP", alpha=0.1, rounds=finished, stop="last").fit(queries)
        np.testing.assert_array_equal(model.coef_, shorter.coef_)
        assert model.history_ == shorter.history_
        assert model.path_["alpha"].tolist() == [0.1]


def test_ctrl_c_between_strengths_keeps_the_best_round_so_far(monkeypatch):
    train, other, calls = lists(14), lists(15), []
    original = ListOrders.extend

    def extend(self, sets, scores):
        calls.append(1)
        if len(calls) == 7:  # 4 calls per alpha: one before the first round, and one in each
            raise KeyboardInterrupt
        return original(self, sets, scores)

    monkeypatch.setattr(ListOrders, "extend", extend)
    model = PermuRank("AP", alpha=(0.01, 1.0, 100.0), rounds=3, stop="last")
    with pytest.raises(Interrupted, match="PermuRank was stopped"):
        model.fit(train, validation=other)
    monkeypatch.undo()
    first = PermuRank("AP", alpha=0.01, rounds=3, stop="last").fit(train, validation=other)
    second = PermuRank("AP", alpha=1.0, rounds=1, stop="last").fit(train, validation=other)
    best = max(first, second, key=lambda one: one.score(other))
    np.testing.assert_array_equal(model.coef_, best.coef_)
    assert model.path_["alpha"].tolist() == [0.01, 1.0]


def test_a_saved_model_has_the_same_history_and_path(tmp_path):
    model = PermuRank("AP", alpha=(0.1, 1.0), map="relevant", rounds=4).fit(lists(16), validation=lists(17))
    model.save(tmp_path / "model.rankwise")
    copy = rw.load(tmp_path / "model.rankwise")
    assert copy.history_ == model.history_
    assert copy.path_ == model.path_
    assert (copy.alpha_, copy.round_, copy.converged_) == (model.alpha_, model.round_, model.converged_)
    assert copy.history_.drawn == model.history_.drawn


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "DCG@5"}, "permutations can be compared by nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR,"),
        ({"measure": "Success@2"}, "permutations can be compared by nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR,"),
        ({"measure": "P"}, "P needs a cut-off"),
        ({"measure": "nDCG", "map": "relevant"}, "map='relevant' requires a measure of all positions and of binary"),
        ({"measure": "AP@5", "map": "relevant"}, "map='relevant' requires a measure of all positions and of binary"),
        ({"map": "all"}, "'map' parameter of"),
        ({"hinge": "mean"}, "'hinge' parameter of"),
        ({"stop": "first"}, "'stop' parameter of"),
        ({"rounds": 0}, "'rounds' parameter of"),
        ({"tolerance": 0.0}, "'tolerance' parameter of"),
        ({"alpha": 0.0}, "'alpha' parameter of"),
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
        ({"alpha": (0.1, 1.0), "folds": 1}, r"'folds' parameter of PermuRank must be an int in \[2, inf\). Got 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        PermuRank(**{"alpha": 1.0, "stop": "last", **wrong}).fit(lists(labels=3))
    assert "\n" not in str(error.value)


def test_two_grades_are_enough_for_the_map_of_classes_whatever_the_measure():
    queries = lists(18, labels=1)
    model = PermuRank("nDCG", map="relevant", hinge="max", alpha=0.1, rounds=100, stop="last").fit(queries)
    assert model.history_["loss"][-1] >= pessimistic_regret(queries, model, "nDCG") - 1e-9
    assert (model.history_["perfect"] == 1).all()  # perfect orders are all the same


def test_on_real_lists_a_few_rounds_are_enough_and_their_loss_is_a_bound(data_folder):
    fold = next(read_folds(data_folder / "ohsumed"))
    model = PermuRank("AP", map="relevant", hinge="max", alpha=0.1, scale="none", stop="last")
    model.fit(fold.train, validation=fold.validation)
    assert model.converged_
    assert model.history_["loss"][-1] >= pessimistic_regret(fold.train, model, "AP")
    assert model.score(fold.validation) > 0.4
