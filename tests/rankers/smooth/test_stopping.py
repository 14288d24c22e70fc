"""Stopping the annealing by a bound: which stage is kept, what its bound is, and what a certificate says of it."""

import math

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.guarantees.holdout.betting import Readings
from rankwise.losses._base import smoothed
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.certificate.claims import Constants, Declared, LossOnSample, Population, uniform_claims
from rankwise.rankers.smooth.smoothrank import SmoothRank
from rankwise.rankers.smooth.stopping import StageBound
from tests.rankers.smooth.test_refinement import SMOOTHED, crooked
from tests.rankers.smooth.test_smoothrank import same

QUICK = {"sigmas": (4.0, 1.0, 0.25, 0.0625), "steps": 10, "stop": "bound"}
BOTH = pytest.mark.parametrize("protocol", ["committee", "paper"])


def coins(count, seed=0):
    """Two documents at the ends of one of two directions; a biased coin says which of them is relevant."""
    rng = np.random.default_rng(seed)
    which, heads = rng.integers(0, 2, count), rng.random(count) < 0.9
    X = np.eye(2)[which][:, None, :] * np.array([[1.0], [-1.0]])
    y = np.column_stack([heads, ~heads]).astype(float)
    return Queries.from_arrays(X.reshape(-1, 2), y.ravel(), group=[2] * count)


def kept_stage(model):
    return int((model.history_.coefs == model.coef_).all(axis=1).argmax())


# ------------------------------------------------------------------------------------------- the bound


def plain_l2_bound(queries, loss, coef, stages, R, m, n):
    """Mean loss + complexity + tail from the text of the theorem, of three kinds of bounds and all stages at once."""
    j = max(0, math.ceil(math.log2(np.linalg.norm(coef) * R)))  # the first ball R^-1 2^j that holds the weights
    W, level = 2**j / R, 0.05 / stages / 3 / ((j + 1) * (j + 2))
    low, high = loss.range(W * R, m, (0.0, 1.0))
    mean = LossOverLists.of(loss, queries)(coef)[0] / n
    complexity = math.sqrt(2 * math.pi) * loss.lipschitz_l1(m) / math.sqrt(2) * W * R * math.sqrt(m / n)
    return mean + complexity + (high - low) * math.sqrt(math.log(1 / level) / (2 * n))


@BOTH
def test_the_bound_of_a_stage_is_mean_loss_plus_complexity_plus_tail(protocol):
    queries = coins(8_000)
    model = SmoothRank("nDCG@10", alpha=0.1, protocol=protocol, **QUICK).fit(queries)
    history, loss = model.history_, smoothed(parse("nDCG@10"))
    expected = [
        min(1.0, plain_l2_bound(queries, loss.at_sigma(sigma), coef, 4, 1.0, 2, 8_000))
        for sigma, coef in zip(history["sigma"], history.coefs, strict=True)
    ]
    assert min(expected) < 0.5, "nothing is shown by bounds that are vacuous"
    np.testing.assert_allclose(history["bound"], expected, rtol=1e-9)


@BOTH
def test_the_stage_with_the_smallest_bound_is_kept(protocol):
    queries = coins(8_000)
    model = SmoothRank("nDCG@10", alpha=0.1, protocol=protocol, **QUICK).fit(queries)
    place = int(np.argmin(model.history_["bound"]))
    assert model.history_["bound"][place] < min(np.delete(model.history_["bound"], place))
    np.testing.assert_array_equal(model.coef_, model.history_.coefs[place])
    last = SmoothRank("nDCG@10", alpha=0.1, protocol=protocol, **(QUICK | {"stop": "last"})).fit(queries)
    np.testing.assert_array_equal(last.history_.coefs, model.history_.coefs)
    assert "bound" not in last.history_.columns


def test_the_more_queries_the_finer_the_stage():
    """With the weights and the mean losses of one fit: the first stage for few queries, the last for very many."""
    queries = coins(2_000)
    history = SmoothRank("nDCG@10", alpha=0.1, **QUICK).fit(queries).history_
    bound = StageBound.of(smoothed(parse("nDCG@10")), [queries], len(history), None)
    stages = list(zip(history["sigma"], 1 - history["smoothed"], history.coefs, strict=True))
    values = np.array([[bound(*stage, 2**power) for stage in stages] for power in range(1, 60)])
    assert (np.diff(values, axis=0) <= 0).all(), "a bound never grows with the number of queries"
    kept = values.argmin(axis=1)
    assert (kept[0], kept[-1]) == (0, 3)
    assert (np.diff(kept) >= 0).all()
    assert values.max() == 1.0, "no loss exceeds 1"


@BOTH
@pytest.mark.parametrize("loss", SMOOTHED, ids=repr)
def test_where_every_bound_is_vacuous_the_first_stage_is_kept_whatever_the_loss(loss, protocol):
    queries = crooked(1, 20)
    model = SmoothRank("nDCG@10", loss=loss, alpha=0.1, protocol=protocol, **(QUICK | {"steps": 2})).fit(queries)
    assert (model.history_["bound"] == model.history_["bound"][0]).all()
    np.testing.assert_array_equal(model.coef_, model.history_.coefs[0])


@pytest.mark.parametrize(
    ("X", "y", "sizes"),
    [
        ([[1.0, 2.0]], [1], [1]),
        ([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0], [2.0, 0.0]], [1, 1, 0, 0], [2, 2]),
        ([[5.0, 7.0], [5.0, 7.0]], [1, 0], [2]),
    ],
    ids=["one document", "equal labels", "equal rows"],
)
@pytest.mark.filterwarnings("ignore")
def test_queries_that_tell_nothing_have_no_bound_below_the_largest_loss(X, y, sizes):
    model = SmoothRank(stop="bound", alpha=1.0).fit(np.array(X), y, group=sizes)
    assert np.isfinite(model.coef_).all()
    assert (model.history_["bound"] >= 1.0).all()


# ------------------------------------------------------------------------------------------- selection, bits, files


@BOTH
def test_alphas_are_judged_at_the_stage_that_the_bound_keeps(protocol):
    train, held, alphas = coins(3_000, 1), crooked(3, 20), (10.0, 0.1)
    held = Queries.from_arrays(held.X[:, :2], held.y, group=held.sizes)
    options = {"protocol": protocol, "refit": "train", **QUICK}
    model = SmoothRank("nDCG@10", alpha=alphas, **options).fit(train, validation=held)
    alone = [SmoothRank("nDCG@10", alpha=one, **options).fit(train, validation=held).score(held) for one in alphas]
    assert model.path_["nDCG@10"][-2:] == pytest.approx(alone, rel=1e-6)
    assert model.score(held) == pytest.approx(max(alone), rel=1e-6)


def test_the_paper_s_protocol_judges_the_same_stage_by_folds():
    queries = coins(300, 2)
    options = {"protocol": "paper", "folds": 3, "scale": "none", "start": np.array([1.0, 0.2])}
    model = SmoothRank("nDCG@10", alpha=(10.0, 0.1), **options, **QUICK).fit(queries)
    means = np.zeros(2)
    for part in np.array_split(np.random.default_rng(0).permutation(300), 3):
        others, held = queries[np.setdiff1d(range(300), part)], queries[np.sort(part)]
        for place, alpha in enumerate((10.0, 0.1)):
            own = SmoothRank("nDCG@10", alpha=alpha, **options, **QUICK).fit(others)
            means[place] += own.score(held) / 3
    np.testing.assert_allclose(model.path_["nDCG@10"], means, rtol=1e-9)


@BOTH
def test_a_saved_model_has_its_bounds_and_its_certificate(protocol, tmp_path):
    queries = coins(3_000)
    model = SmoothRank("nDCG@10", alpha=0.1, protocol=protocol, **QUICK).fit(queries)
    model.save(tmp_path / "bounded.rankwise")
    copy = rw.load(tmp_path / "bounded.rankwise")
    assert same(copy, model)
    np.testing.assert_array_equal(copy.history_["bound"], model.history_["bound"])
    assert str(copy.certificate(queries)) == str(model.certificate(queries))


def test_any_number_of_threads_gives_the_same_bits():
    options = {"alpha": (1.0, 0.1), "folds": 2, **QUICK}
    one, two = (SmoothRank("nDCG@10", n_jobs=jobs, **options).fit(coins(3_000)) for jobs in (1, 2))
    assert same(one, two)
    np.testing.assert_array_equal(one.history_["bound"], two.history_["bound"])


# ------------------------------------------------------------------------------------------- certificates


@BOTH
def test_a_certificate_counts_every_stage(protocol):
    queries = coins(2_000)
    model = SmoothRank("nDCG@10", alpha=0.1, protocol=protocol, **QUICK).fit(queries)
    objective = model._training_objective()
    assert (objective.loss.sigma, objective.loss_among) == (model.history_["sigma"][kept_stage(model)], 4)
    assert objective.loss_fixed is None, "only the user knows whether the widths were chosen beforehand"
    rows = [row for row in model.certificate(queries).rows if row.bounds.startswith("SmoothNDCG loss on future")]
    assert len(rows) == 3
    for row in rows:
        assert (row.terms["losses"], row.terms["delta_each"]) == (4, 0.05 / 4)
        sentences = [one.sentence for one in row.preconditions]
        assert "the 4 losses of which this one was chosen were fixed before the data were seen" in sentences
        assert any("with probability 0.95" in one and "all 4 losses at once" in one for one in sentences)


def test_the_usual_widths_of_the_committee_are_fixed_beforehand():
    model = SmoothRank("nDCG@10", alpha=0.1, stop="bound").fit(coins(500))
    assert (model._training_objective().loss_fixed, model._training_objective().loss_among) == (True, 4)
    plain = SmoothRank("nDCG@10", alpha=0.1).fit(coins(500))
    assert (plain._training_objective().loss_fixed, plain._training_objective().loss_among) == (True, 1)


def test_the_bound_of_one_of_several_losses_is_that_of_a_fixed_one_at_a_smaller_delta():
    queries, loss, coef = coins(400), smoothed(parse("nDCG@10")), np.array([1.0, 0.5])
    constants = Constants.of(queries, Declared(row_radius=1.0, longest=2, first_ball=0.1), None)

    def claims(among):
        values = LossOverLists.of(loss, queries)
        each = Readings.of(np.full(400, values(coef)[0] / 400), np.arange(400))
        count = rw.guarantees.Precondition("all queries have the same weight", True)
        sample = LossOnSample(
            loss=loss, fixed=True, readings=each, labels=(0.0, 1.0), count_the_same=count,
            population=Population(), among=among,
        )  # fmt: skip
        return uniform_claims(sample, coef, constants, parse("nDCG@10"), 0.1)

    for several, alone in zip(claims(5), claims(1), strict=True):
        assert several.make(0.1).value == alone.make(0.02).value > alone.make(0.1).value


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "DCG@5"}, "'stop' parameter of"),
        ({"measure": "DCG@5", "protocol": "paper"}, "'stop' parameter of"),
        ({"stop": "soon"}, "'stop' parameter of"),
    ],
)
def test_what_has_no_bound_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        SmoothRank(**({"stop": "bound"} | wrong)).fit(coins(20))
    assert "\n" not in str(error.value)


def test_a_loss_with_an_unnormalized_measure_for_selection_has_a_bound():
    model = SmoothRank("DCG@5", loss="SmoothNDCG", alpha=0.1, **QUICK).fit(coins(200))
    assert np.isfinite(model.history_["bound"]).all()
