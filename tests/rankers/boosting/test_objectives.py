"""Losses and measures of the package inside LightGBM, XGBoost and CatBoost themselves."""

import copy
import math
import warnings
from dataclasses import dataclass

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

import rankwise as rw
from rankwise import losses
from rankwise._kernels.machine.jit import kernel
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import Loss, registered
from rankwise.rankers._model_selection import mean_measure
from rankwise.rankers.boosting.objectives import Derivatives, typical_slope

LOSSES = [kind.examples()[0] for kind in registered().values()]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
QUIET = {"verbosity": -1, "num_threads": 1, "deterministic": True, "metric": "none"}


@kernel
def pair_exponential(score, label, value, grad, table, params):
    loss = 0.0
    for i in range(len(score)):
        for j in range(len(score)):
            if label[i] > label[j]:
                pull = math.exp(min(score[j] - score[i], 50.0))
                loss += pull
                grad[j] += pull
                grad[i] -= pull
    return loss


@dataclass(frozen=True, kw_only=True, repr=False)
class MyExponential(Loss):
    """A loss in a file of the user's own, without a curvature."""

    name = "MyExponential"
    convex = True
    kernel = pair_exponential


def queries(count=60, seed=0, scattered=False, weighted=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 15, count)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.rint(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X)) + 0.5), 0, 3)
    qid = np.repeat(np.arange(count), sizes)
    order = rng.permutation(len(X)) if scattered else np.arange(len(X))
    weight = rng.integers(1, 4, count).astype(float) if weighted else None
    return rw.Queries.from_arrays(X[order], y[order], qid=qid[order], weight=weight)


def total(loss, lists, scores, weight=None):
    """sum_q weight_q loss_q, one query at a time."""
    own = lists.query_weight if weight is None else weight
    return sum(
        own[number] * loss(scores[lists.rows_of(number)], lists.y[lists.rows_of(number)])[0]
        for number in range(len(lists))
    )


# ------------------------------------------------------------------------------------------------------ derivatives


@pytest.mark.parametrize("scattered", [False, True])
@over_all_losses
def test_rows_that_are_left_out_have_derivatives_of_0_and_change_no_others(loss, scattered):
    lists = queries(12, scattered=scattered, weighted=True)
    scores = np.random.default_rng(1).normal(size=lists.n_documents)
    whole = Derivatives.of(loss, lists)
    out = np.flatnonzero(np.isin(lists.query_of_row, [0, 5, 11]))
    for every, rest in zip(whole.at(scores, 0), whole.without(out).at(scores, 0), strict=True):
        every[out] = 0.0
        np.testing.assert_array_equal(rest, every)


@pytest.mark.parametrize("loss", [one for one in LOSSES if one.smooth or one.convex], ids=repr)
def test_the_gradient_is_that_of_the_weighted_sum_of_losses(loss):
    lists = queries(12, scattered=True, weighted=True)
    assert not lists.is_grouped
    scores = np.random.default_rng(1).normal(size=lists.n_documents)
    gradient, second = rw.boosting.objective(loss, lists, rescale=False).derivatives(scores)
    assert (second >= 0).all()
    step = 1e-5
    for row in range(0, lists.n_documents, 7):
        ahead, behind = scores.copy(), scores.copy()
        ahead[row] += step
        behind[row] -= step
        between = [(total(loss, lists, ahead) - total(loss, lists, scores)) / step]
        between.append((total(loss, lists, scores) - total(loss, lists, behind)) / step)
        assert min(between) - 2e-4 <= gradient[row] <= max(between) + 2e-4


def test_draws_held_fixed_give_the_gradient_of_a_function():
    lists = queries(12, scattered=True, weighted=True)
    made = rw.boosting.objective(losses.StochasticNDCG(), lists, rescale=False)
    scores, step = np.random.default_rng(1).normal(size=lists.n_documents), 1e-5
    gradient, second = made.derivatives(scores, iteration=3)
    for row in range(0, lists.n_documents, 7):
        ahead, behind = scores.copy(), scores.copy()
        ahead[row] += step
        behind[row] -= step
        slope = (made.derivatives(ahead, 3)[0][row] - made.derivatives(behind, 3)[0][row]) / (2 * step)
        assert second[row] == pytest.approx(slope, abs=1e-6)
    np.testing.assert_array_equal(gradient, made.derivatives(scores, 3)[0])
    assert (gradient != made.derivatives(scores, 4)[0]).any()


@over_all_losses
def test_rescaling_is_a_common_factor_that_gives_curvatures_a_mean_of_one(loss):
    lists = queries(20)
    scores = np.random.default_rng(1).normal(size=lists.n_documents)
    plain = rw.boosting.objective(loss, lists, rescale=False).derivatives(scores)
    gradient, second = rw.boosting.objective(loss, lists).derivatives(scores)
    assert (second > 0).all()
    assert second[plain[1] > 0].mean() == pytest.approx(1.0, rel=1e-6)
    factor = np.count_nonzero(plain[1]) / plain[1].sum()
    np.testing.assert_allclose(gradient, plain[0] * factor, rtol=1e-12)


def test_the_same_scores_give_the_same_derivatives_and_others_other_draws():
    lists = queries(20)
    made = rw.boosting.objective(losses.StochasticNDCG(draws=1), lists)
    scores = np.random.default_rng(1).normal(size=lists.n_documents)
    np.testing.assert_array_equal(made.derivatives(scores)[0], made.derivatives(scores)[0])
    moved = np.nextafter(scores, np.inf)
    assert np.abs(made.derivatives(scores)[0] - made.derivatives(moved)[0]).max() > 1e-3
    assert copy.deepcopy(made) is made


@pytest.mark.parametrize("loss", [losses.PairLogistic(), losses.StochasticNDCG(), losses.MaxPair()], ids=repr)
def test_document_weights_are_those_of_the_loss_or_factors(loss):
    lists = queries(20)
    weight = np.random.default_rng(2).integers(1, 4, lists.n_documents) / 2
    weighted = lists.with_document_weight(weight)
    scores = np.random.default_rng(1).normal(size=lists.n_documents)
    gradient, second = rw.boosting.objective(loss, weighted, rescale=False).derivatives(scores, 0)
    plain = rw.boosting.objective(loss, lists, rescale=False).derivatives(scores, 0)
    if not loss.document_weights:
        np.testing.assert_allclose(gradient, plain[0] * weight)
        np.testing.assert_allclose(second, plain[1] * weight)
        return
    own = np.concatenate(
        [
            loss(scores[lists.rows_of(q)], lists.y[lists.rows_of(q)], weight[lists.rows_of(q)])[1]
            for q in range(len(lists))
        ]
    )
    np.testing.assert_allclose(gradient, own, rtol=1e-10, atol=1e-14)


def test_a_loss_without_curvature_has_a_constant_one_in_its_own_unit():
    lists = queries(20)
    derivatives = Derivatives.of(MyExponential(), lists)
    assert derivatives.constant == typical_slope(derivatives.lists) > 0
    assert Derivatives.of(losses.PairLogistic(), lists).constant == 1.0
    equal = lists.with_labels(np.ones(lists.n_documents))
    assert Derivatives.of(losses.MaxPair(), equal).constant == 1.0, "nothing to learn: no unit"


# ------------------------------------------------------------------------------------------------------ real engines


@pytest.mark.parametrize("loss", [*LOSSES, MyExponential()], ids=repr)
def test_every_loss_trains_lightgbm(loss):
    lists = queries(80)
    start = lists.X[:, 0].copy()  # a smoothed measure is stationary at equal scores
    data = lightgbm.Dataset(lists.X, lists.y, init_score=start)
    booster = lightgbm.train(
        {"objective": rw.boosting.objective(loss, lists), "learning_rate": 0.05, **QUIET}, data, 15
    )
    assert total(loss, lists, start + booster.predict(lists.X, raw_score=True)) < 0.99 * total(loss, lists, start)


@pytest.mark.parametrize("loss", [losses.StochasticNDCG(), losses.ListNet(), MyExponential()], ids=repr)
def test_losses_train_xgboost(loss):
    lists = queries(80, scattered=True)
    made = rw.boosting.objective(loss, lists, engine="xgboost")
    params = {"max_depth": 3, "nthread": 1, "disable_default_eval_metric": 1}
    booster = xgboost.train(params, xgboost.DMatrix(lists.X, lists.y), 15, obj=made)
    assert mean_measure(lists, booster.predict(xgboost.DMatrix(lists.X)).astype(float), rw.measures.parse("nDCG")) > 0.8


def test_the_classes_for_scikit_learn_take_the_same_callable():
    lists = queries(80)
    made = rw.boosting.objective(losses.PairLogistic(), lists)
    ranker = lightgbm.LGBMRanker(objective=made, n_estimators=10, n_jobs=1, verbosity=-1)
    scores = clone(ranker).fit(lists.X, lists.y, group=lists.sizes).predict(lists.X)
    again = clone(ranker).fit(lists.X, lists.y, group=lists.sizes).predict(lists.X)
    np.testing.assert_array_equal(scores, again)
    train = {"objective": made, **QUIET}
    booster = lightgbm.train(train, lightgbm.Dataset(lists.X, lists.y), 10)
    np.testing.assert_allclose(scores, booster.predict(lists.X), rtol=1e-12)
    xgb = xgboost.XGBRegressor(objective=made, n_estimators=5, n_jobs=1).fit(lists.X, lists.y)
    assert mean_measure(lists, xgb.predict(lists.X).astype(float), rw.measures.parse("nDCG")) > 0.8


def test_queries_are_never_lost_whatever_the_order_of_the_rows():
    grouped = queries(80, weighted=True)
    order = np.random.default_rng(3).permutation(grouped.n_documents)
    ids = grouped.query_of_row[order]
    weight = dict(enumerate(grouped.weight))
    seen = list(dict.fromkeys(ids.tolist()))
    scattered = rw.Queries.from_arrays(
        grouped.X[order], grouped.y[order], qid=ids, weight=[weight[number] for number in seen]
    )
    trained = []
    for lists in (grouped, scattered):
        params = {"objective": rw.boosting.objective(losses.PairLogistic(), lists), **QUIET}
        trained.append(lightgbm.train(params, lightgbm.Dataset(lists.X, lists.y), 10).predict(grouped.X))
    np.testing.assert_allclose(trained[0], trained[1], rtol=1e-6, atol=1e-9)


# ---------------------------------------------------------------------------------------------------- refused


def test_rows_that_are_not_those_of_the_queries_raise_an_error():
    lists, other = queries(30), queries(30, seed=1)
    made = rw.boosting.objective(losses.ListNet(), lists)
    params = {"objective": made, **QUIET}
    with pytest.raises(DataError, match=f"trains on {other.n_documents:,} rows: pass queries.X"):
        lightgbm.train(params, lightgbm.Dataset(other.X, other.y), 2)
    y = lists.y.copy()
    y[3] += 1
    with pytest.raises(DataError, match=f"label at row 3 is {y[3]:g} where the queries have {lists.y[3]:g}"):
        lightgbm.train(params, lightgbm.Dataset(lists.X, y), 2)
    with pytest.raises(DataError, match="cross-validation cuts rows out"):
        lightgbm.cv(params, lightgbm.Dataset(lists.X, lists.y), 2, nfold=3, stratified=False)
    with pytest.raises(DataError, match="without labels"):
        made(np.zeros(0), np.zeros(lists.n_documents))
    with pytest.raises(DataError, match="not finite, nan"):
        made(lists.y, np.full(lists.n_documents, np.nan))


def test_what_cannot_be_served_is_refused_by_name():
    lists = queries(5)
    with pytest.raises(RankwiseError, match="CatBoost passes blocks of rows"):
        rw.boosting.objective(losses.ListNet(), lists, engine="catboost")
    with pytest.raises(RankwiseError, match="engine must be 'lightgbm' or 'xgboost', got 'sklearn'"):
        rw.boosting.objective(losses.ListNet(), lists, engine="sklearn")
    with pytest.raises(RankwiseError, match=r"requires a loss of rankwise.losses, got 'lambdarank'"):
        rw.boosting.objective("lambdarank", lists)
    with pytest.raises(DataError, match="objective"):
        rw.boosting.objective(losses.ListNet(), lists.X)
    with pytest.raises(DataError, match="labels"):
        rw.boosting.objective(losses.ListNet(), lists.with_labels(None))
    with pytest.raises(DataError, match="labels"):
        rw.boosting.eval_metric("AP", lists.with_labels(None))
    with pytest.raises(RankwiseError, match="engine must be"):
        rw.boosting.eval_metric("AP", lists, engine="sklearn")


# ---------------------------------------------------------------------------------------------------- evaluation


def test_lightgbm_stops_by_a_measure_of_the_package():
    train, held = queries(60), queries(40, seed=1)
    data = lightgbm.Dataset(train.X, train.y)
    params = {"objective": rw.boosting.objective(losses.StochasticNDCG(), train), "learning_rate": 0.3, **QUIET}
    found: dict[str, dict[str, list[float]]] = {}
    booster = lightgbm.train(
        params,
        data,
        60,
        valid_sets=[data, data.create_valid(held.X, held.y)],
        valid_names=["train", "held"],
        feval=rw.boosting.eval_metric("AP", [train, held]),
        callbacks=[
            lightgbm.record_evaluation(found),
            lightgbm.early_stopping(5, first_metric_only=True, verbose=False),
        ],
    )
    values = found["held"]["AP"]
    assert booster.best_iteration == int(np.argmax(values)) + 1, "larger is better"
    scores = booster.predict(held.X, num_iteration=booster.best_iteration)
    assert max(values) == mean_measure(held, scores, rw.measures.parse("AP"))


def test_xgboost_minimizes_one_minus_the_measure_without_being_told():
    train, held = queries(60), queries(40, seed=1)
    found: dict[str, dict[str, list[float]]] = {}
    booster = xgboost.train(
        {"nthread": 1, "disable_default_eval_metric": 1},
        xgboost.DMatrix(train.X, train.y),
        40,
        obj=rw.boosting.objective(losses.ListNet(), train, engine="xgboost"),
        custom_metric=rw.boosting.eval_metric("nDCG@10", held, engine="xgboost"),
        evals=[(xgboost.DMatrix(held.X, held.y), "held")],
        evals_result=found,
        early_stopping_rounds=5,
        verbose_eval=False,
    )
    values = found["held"]["1-nDCG@10"]
    assert booster.best_iteration == int(np.argmin(values))
    scores = booster.predict(xgboost.DMatrix(held.X), iteration_range=(0, booster.best_iteration + 1))
    expected = 1 - mean_measure(held, scores.astype(float), rw.measures.parse("nDCG@10"))
    assert min(values) == pytest.approx(expected, abs=1e-5), "XGBoost prints six digits"


def test_catboost_maximizes_the_measure():
    train, held = queries(60), queries(40, seed=1)
    pools = [catboost.Pool(one.X, one.y, group_id=one.query_of_row) for one in (train, held)]
    params = {"loss_function": "YetiRank", "iterations": 15, "thread_count": 1, "verbose": False}
    model = catboost.CatBoost(
        {
            **params,
            "allow_writing_files": False,
            "eval_metric": rw.boosting.eval_metric("nDCG@10", [train, held], "catboost"),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CatBoost would rather compile the metric
        model.fit(pools[0], eval_set=pools[1])
    best = model.best_score_["validation"]["BoosterMetric"]
    assert best == mean_measure(held, model.predict(held.X), rw.measures.parse("nDCG@10"))
    assert best == max(model.evals_result_["validation"]["BoosterMetric"])


def test_a_set_that_the_metric_does_not_know_raises_an_error():
    metric = rw.boosting.eval_metric("AP", queries(20))
    other = queries(20, seed=1)
    with pytest.raises(DataError, match=r"AP was made for .* rows, and the booster evaluates"):
        metric(other.y, other.y)
