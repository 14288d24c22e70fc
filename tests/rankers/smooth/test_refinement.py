"""SmoothRank from the committee: what it minimizes, how held-out queries choose the penalty, and any smoothed loss."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import Interrupted, RankwiseError
from rankwise.losses import (
    PairLogistic,
    SmoothAP,
    SmoothDCG1,
    SmoothNDCG,
    SmoothPrecision,
    SmoothRR,
    SoftRank,
    SoftRankNDCG,
)
from rankwise.losses._base import smoothed
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers._model_selection import Pool, PooledSelection
from rankwise.rankers.linear.committee import CommitteeProblems, RidgeCommittee
from rankwise.rankers.smooth import refinement
from rankwise.rankers.smooth.refinement import Choice, Refinement, lists_of, whitening
from rankwise.rankers.smooth.smoothrank import REFINEMENT_ALPHAS, REFINEMENT_SIGMAS, SmoothRank
from tests.rankers.make_fixtures import FOLDER
from tests.rankers.smooth.test_smoothrank import MEASURES, lists, same

DESCENT = {"solver": "lbfgs", "steps": 50, "tolerance": 1e-9}
QUICK = {"sigmas": (1.0, 0.25), "steps": 10}


def problems(queries, validation=None):
    return CommitteeProblems.of(PooledSelection.of(queries, validation, "all", 5, 0), "auto", None)


def deviation(queries, coef):
    """The standard deviation of scores within queries."""
    scores = queries.X @ coef
    means = np.bincount(queries.query_of_row, scores) / np.maximum(queries.sizes, 1)
    return np.sqrt(np.mean((scores - means[queries.query_of_row]) ** 2))


def crooked(seed=0, count=60):
    """Queries on which a regression misleads: in every third one a document of no relevance has an outlying value."""
    rng = np.random.default_rng(10 + seed)
    X = rng.normal(size=(count, 10, 3))
    y = np.clip(np.rint(2 * X[:, :, 0] + X[:, :, 1] + 0.3 * rng.normal(size=(count, 10))) - 1, 0, 2)
    X[::3, 0, 0], y[::3, 0] = 8.0, 0.0
    y[:, 1] = 2.0
    return Queries.from_arrays(X.reshape(-1, 3), y.ravel(), group=[10] * count)


# ------------------------------------------------------------------------------------------- what it minimizes


@pytest.mark.parametrize("measure", ["nDCG@5", "DCG@5", "AP"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_finite_differences_and_the_value_that_of_the_definition(measure, weighted):
    train, other = lists(1, weighted=weighted), lists(2)
    pool, rng = Pool((train, other)), np.random.default_rng(3)
    loss = smoothed(parse(measure))
    without = np.array([0, 3, 16])
    sums, total = lists_of(loss, parse(measure), pool, without)
    start, basis = rng.normal(size=4), rng.normal(size=(4, 3))
    whole = Refinement(lists=sums, total=total, start=start, basis=basis, sigmas=(1.0,), descent=DESCENT, n_jobs=None)
    u, step = rng.normal(size=3), 1e-6
    function = whole.objective(0.7, 0.2)
    value, slope = function(u)
    numbers = [(function(u + step * e)[0] - function(u - step * e)[0]) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(slope, numbers, rtol=1e-5, atol=1e-8)
    learned = [train[np.setdiff1d(range(15), [0, 3])], other[np.setdiff1d(range(15), [1])]]
    parts = [lists_of(loss.at_sigma(0.7), parse(measure), Pool((one,))) for one in learned]
    expected = sum(one[0](start + basis @ u)[0] for one, _ in parts) / sum(weight for _, weight in parts)
    assert value == pytest.approx(expected + 0.2 * u @ u, rel=1e-12)


@pytest.mark.parametrize("features", [4, 200])
def test_whitened_directions_change_scores_by_the_same_amount(features, monkeypatch):
    monkeypatch.setattr(refinement, "_FLOOR", 0.0)
    queries = lists(4, features=features)
    found = problems(queries)
    basis = whitening(found.plain(), found.scale)
    u = np.random.default_rng(0).normal(size=basis.shape[1])
    assert deviation(queries, basis @ u) == pytest.approx(np.linalg.norm(u), rel=1e-6)


def test_a_path_goes_from_strong_to_weak_and_each_penalty_leads_further():
    queries = crooked()
    found = problems(queries)
    start = np.array([1.0, 0.5, -0.5])
    sums, total = lists_of(smoothed(parse("nDCG@10")), parse("nDCG@10"), Pool((queries,)))
    basis = whitening(found.plain(), found.scale)
    whole = Refinement(
        lists=sums, total=total, start=start, basis=basis, sigmas=(1.0, 0.25), descent=DESCENT, n_jobs=None
    )
    path = whole.path([0.01, 1.0, 0.1])
    assert [one.alpha for one in path] == [0.01, 1.0, 0.1]
    moved = [np.linalg.norm(np.linalg.lstsq(basis, one.coef - start, rcond=None)[0]) for one in path]
    assert moved[0] > moved[2] > moved[1] > 0
    assert path[0].stages[-1].loss < path[2].stages[-1].loss < path[1].stages[-1].loss
    assert whole.path([1.0])[0].coef.tobytes() == path[1].coef.tobytes()
    (still,) = whole.path([1e12])
    np.testing.assert_allclose(still.coef, start, rtol=1e-9)


# ------------------------------------------------------------------------------------------- what is kept


def test_the_gain_is_a_weighted_mean_of_differences_with_its_standard_error():
    values = np.array([[0.5, 0.2, np.nan, 0.4], [0.6, 0.1, np.nan, 0.9], [0.5, 0.2, np.nan, 0.5]])
    plain = Choice.of(values, np.ones(4))
    differences = np.array([[0.1, -0.1, 0.5], [0.0, 0.0, 0.1]])
    np.testing.assert_allclose(plain.gains, differences.mean(axis=1))
    np.testing.assert_allclose(plain.errors, differences.std(axis=1, ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(plain.means, np.nanmean(values, axis=1))
    assert plain.best == 0, "0.167 with an error of 0.176: the best is taken, and the table says how certain it is"
    weighted = Choice.of(values, np.array([1.0, 1.0, 1.0, 3.0]))
    np.testing.assert_allclose(weighted.gains, np.average(differences, axis=1, weights=[1, 1, 3]))
    assert Choice.of(values + np.array([[0], [1], [0.9]]), np.ones(4)).best == 0
    assert Choice.of(np.full((3, 4), np.nan), np.ones(4)).best is None
    assert Choice.of(values[:, :1], np.ones(1)).best is None, "one query judges nothing"


@pytest.mark.parametrize("measure", MEASURES)
def test_the_weights_are_always_annealed_ones_of_the_best_penalty(measure):
    """Even for labels that no feature tells anything about, where no refinement of the start is confirmed."""
    queries = lists(7, count=40)
    noise = queries.with_labels(np.random.default_rng(8).permutation(queries.y))
    for data in (queries, noise):
        model = SmoothRank(measure, **QUICK).fit(data)
        committee = RidgeCommittee().fit(data)
        np.testing.assert_allclose(model.start_, committee.coef_ / deviation(data, committee.coef_), rtol=1e-9)
        best = int(np.nanargmax(model.path_["gain"]))
        assert model.alpha_ == model.path_["alpha"][best]
        assert len(model.history_) == 2
        np.testing.assert_array_equal(model.coef_, model.history_.coefs[-1])
        assert not np.array_equal(model.coef_, model.start_)


def test_where_a_regression_misleads_the_refinement_is_kept_and_ranks_better():
    train, test = crooked(1), crooked(2)
    model = SmoothRank("nDCG@10").fit(train)
    assert model.score(test) > RidgeCommittee().fit(train).score(test) + 0.02
    np.testing.assert_array_equal(model.history_["sigma"], REFINEMENT_SIGMAS)
    np.testing.assert_array_equal(model.path_["alpha"][1:], REFINEMENT_ALPHAS)
    np.testing.assert_array_equal(model.history_.coefs[-1], model.coef_)
    assert model.history_["train"][-1] == pytest.approx(model.score(train), rel=1e-12)
    sigma = float(model.history_["sigma"][-1])
    loss = LossOverLists.of(smoothed(parse("nDCG@10")).at_sigma(sigma), train)(model.coef_)[0]
    assert model.history_["smoothed"][-1] == pytest.approx(1 - loss / len(train), rel=1e-9)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP"])
def test_penalties_are_judged_as_in_a_plain_loop_over_folds(measure):
    queries, start, alphas = crooked(3, 20), np.array([1.0, 0.5, -0.5]), (0.3, 0.01)
    given = {"start": start, "alpha": alphas, "scale": "none", **QUICK}
    model = SmoothRank(measure, folds=3, random_state=5, **given).fit(queries)
    means, differences = [], []
    for part in np.array_split(np.random.default_rng(5).permutation(20), 3):
        others, held = queries[np.setdiff1d(range(20), part)], queries[np.sort(part)]
        apart = SmoothRank(measure, refit="train", **given).fit(others, validation=held)
        means.append(apart.path_[measure] * len(held))
        differences.append(apart.path_["gain"][1:] * len(held))
    np.testing.assert_allclose(model.path_[measure], np.sum(means, axis=0) / 20, rtol=1e-9)
    np.testing.assert_allclose(model.path_["gain"][1:], np.sum(differences, axis=0) / 20, atol=1e-9)


# ------------------------------------------------------------------------------------------- starts and validation


def test_a_given_start_is_refined():
    queries = crooked(4)
    given = RidgeCommittee().fit(queries)
    for start in (given, given.coef_, list(given.coef_)):
        model = SmoothRank("nDCG@10", start=start).fit(queries)
        np.testing.assert_allclose(model.start_, given.coef_ / deviation(queries, given.coef_), rtol=1e-9)
        assert not np.array_equal(model.coef_, model.start_)
    warm = SmoothRank("nDCG@10", warm_start=True, **QUICK).fit(queries)
    first = warm.coef_
    np.testing.assert_allclose(warm.fit(queries).start_, first / deviation(queries, first), rtol=1e-9)


def test_a_validation_set_is_learned_from_or_kept_for_choosing():
    train, other = crooked(5), crooked(6, 20)
    pooled = SmoothRank("nDCG@10", **QUICK).fit(train, validation=other)
    together = SmoothRank("nDCG@10", **QUICK).fit(Queries.concat([train, other], rename=True))
    np.testing.assert_allclose(pooled.coef_, together.coef_, rtol=1e-5)
    seen = pooled.record_.seen
    assert (seen.training.length, seen.validation.length, seen.record.count) == (80, 0, 80)
    certificate = pooled.certificate(train, other)
    assert certificate.missing.startswith("all 20 hold-out queries were used in training")
    assert any("are not those of the fit, which saw 80" in note for note in certificate.notes)
    kept = SmoothRank("nDCG@10", refit="train", **QUICK).fit(train, validation=other)
    assert (kept.record_.seen.training.length, kept.record_.seen.validation.length) == (60, 20)
    assert kept.path_["nDCG@10"][1:].max() == pytest.approx(kept.score(other), rel=1e-12)


def test_a_certificate_names_the_smoothed_loss_that_was_minimized():
    refined = SmoothRank("nDCG@10").fit(crooked(7))
    objective = refined._training_objective()
    assert objective.loss.sigma == REFINEMENT_SIGMAS[-1]
    assert objective.loss_fixed is True
    assert SmoothRank("nDCG@10", sigmas=(1.0, 0.0625)).fit(crooked(7))._training_objective().loss_fixed is None
    soft = SmoothRank("nDCG@10", loss=SoftRankNDCG()).fit(crooked(7))._training_objective()
    assert soft.loss == SoftRankNDCG(sigma=0.25)
    assert SmoothRank("DCG@10", **QUICK).fit(crooked(7))._training_objective() is None
    assert SmoothRank("DCG@10", loss="SmoothNDCG", **QUICK).fit(crooked(7))._training_objective() is not None
    assert refined.certificate(crooked(7), crooked(8)).headline is not None


# ------------------------------------------------------------------------------------------- robust


@pytest.mark.parametrize("with_validation", [False, True])
def test_the_number_of_threads_changes_no_bit(with_validation, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (64,))
    train, other = crooked(9), crooked(10, 20) if with_validation else None
    one, three = (SmoothRank("nDCG@10", n_jobs=jobs).fit(train, validation=other) for jobs in (1, 3))
    assert same(one, three)


@pytest.mark.parametrize("loss", [None, "SoftRank", SmoothAP(form="indicator", rel=2)])
def test_a_saved_model_has_the_same_bits_and_tables(loss, tmp_path):
    model = SmoothRank("nDCG@10", alpha=0.03, loss=loss, **QUICK).fit(crooked(11))
    model.save(tmp_path / "smooth.rankwise")
    copy = rw.load(tmp_path / "smooth.rankwise")
    assert same(copy, model)
    assert copy.loss == loss
    assert copy.alpha_ == model.alpha_ == 0.03
    assert copy.certificate(holdout=crooked(12)).headline == model.certificate(holdout=crooked(12)).headline


def test_a_file_in_which_the_start_stands_is_read_as_it_was_written():
    """Earlier versions left the start alone unless held-out queries confirmed a refinement."""
    model = rw.load(FOLDER / "format_1_SmoothRank_stands.rankwise")
    assert np.isnan(model.alpha_)
    assert len(model.history_) == 0
    np.testing.assert_array_equal(model.coef_, model.start_)
    assert model._training_objective() is None


def test_ctrl_c_leaves_the_committee(monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    model = SmoothRank("nDCG@10", n_jobs=1)
    monkeypatch.setattr(LossOverLists, "__call__", stopped)
    queries = crooked(13)
    with pytest.raises(Interrupted):
        model.fit(queries)
    assert np.isnan(model.alpha_)
    committee = RidgeCommittee().fit(queries)
    np.testing.assert_allclose(model.coef_, committee.coef_ / deviation(queries, committee.coef_), rtol=1e-9)


@pytest.mark.parametrize(
    ("X", "y", "sizes", "alpha"),
    [
        ([[1.0, 2.0]], [1], [1], np.nan),
        ([[1.0, 2.0], [3.0, 4.0]], [1, 0], [2], 1.0),
        ([[5.0, 7.0], [5.0, 7.0]], [1, 0], [2], np.nan),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_single_query_takes_the_largest_penalty_if_there_is_something_to_learn(X, y, sizes, alpha):
    model = SmoothRank().fit(np.array(X), y, group=sizes)
    np.testing.assert_equal(model.alpha_, alpha)
    assert np.isnan(model.path_["nDCG@50"]).all()
    assert np.isfinite(model.coef_).all()
    if np.isnan(alpha):
        np.testing.assert_array_equal(model.coef_, model.start_)


# ------------------------------------------------------------------------------------------- any smoothed loss


SMOOTHED = [
    SoftRankNDCG(),
    SoftRankNDCG(noise="gaussian"),
    SoftRank(k=5),
    SmoothDCG1(),
    SmoothNDCG(k=5),
    SmoothAP(rel=2),
    SmoothAP(form="indicator", rel=2),
    SmoothPrecision(k=3, rel=2),
    SmoothRR(rel=2),
]


@pytest.mark.parametrize("protocol", ["committee", "paper"])
@pytest.mark.parametrize("loss", SMOOTHED, ids=repr)
def test_every_smoothed_loss_is_annealed_and_falls_in_its_last_stage(loss, protocol):
    queries = crooked(14, 30)
    model = SmoothRank("nDCG@10", loss=loss, alpha=0.01, protocol=protocol, **QUICK).fit(queries)
    sigma = float(model.history_["sigma"][-1])
    assert sigma == (0.5 if protocol == "committee" and not loss.squared_width else 0.25)
    lists = LossOverLists.of(loss.at_sigma(sigma), queries)
    assert lists(model.coef_)[0] < lists(model.start_)[0]
    assert model.history_["smoothed"][-1] == pytest.approx(1 - lists(model.coef_)[0] / len(queries), rel=1e-9)


def test_the_loss_of_a_measure_by_its_name_gives_the_same_bits_as_the_measure():
    queries = crooked(15, 30)
    for protocol in ("committee", "paper"):
        options = {"protocol": protocol, "alpha": 0.1, **QUICK}
        usual = SmoothRank("nDCG@50", **options).fit(queries)
        assert same(SmoothRank("nDCG@50", loss=SmoothNDCG(k=50), **options).fit(queries), usual)
    assert same(SmoothRank("AP", loss="SmoothAP", **QUICK).fit(queries), SmoothRank("AP", **QUICK).fit(queries))
    other = SmoothRank("AP", loss=SmoothAP(rel=2), **QUICK).fit(queries)
    assert not same(other, SmoothRank("AP", **QUICK).fit(queries))


def test_the_paper_anneals_other_losses_in_their_own_units():
    queries = crooked(16, 30)
    soft = SmoothRank(loss="SoftRankNDCG", alpha=1.0, protocol="paper", steps=3).fit(queries)
    np.testing.assert_allclose(soft.history_["sigma"], 2.0 ** np.arange(3, -3.5, -0.5))
    hard = SmoothRank(loss="SmoothNDCG", alpha=1.0, protocol="paper", steps=3).fit(queries)
    np.testing.assert_allclose(hard.history_["sigma"], 2.0 ** np.arange(6, -7, -1))


def test_any_measure_selects_where_a_loss_is_given():
    model = SmoothRank("ERR@10", loss="SoftRank", **QUICK).fit(crooked(17, 20))
    assert "ERR@10" in model.path_.columns


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"protocol": "book"}, "'protocol' parameter of"),
        ({"stop": "best"}, "'stop' parameter of"),
        ({"sign": {0: 1}}, "'sign' parameter of"),
        ({"start": "ridge"}, "'start' parameter of"),
        ({"start": ["ridge", np.ones(4)]}, "'start' parameter of"),
        ({"start": np.zeros(4)}, "must not be 0 everywhere"),
        ({"start": np.ones(3)}, "start must have one weight per feature, 4, got 3 weights"),
        ({"refit": "both"}, "'refit' parameter of"),
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"sigmas": (1.0, 2.0)}, "'sigmas' parameter of"),
        ({"solver": "newton"}, "'solver' parameter of"),
        ({"measure": "ERR@10"}, "can be smoothed"),
        ({"loss": "SLAM"}, "'loss' parameter of"),
        ({"loss": "SmoothPrecision"}, "'loss' parameter of"),
        ({"loss": PairLogistic()}, "'loss' parameter of"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        SmoothRank(**wrong).fit(lists())
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250
