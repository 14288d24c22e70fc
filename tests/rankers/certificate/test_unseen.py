"""Hold-outs that repeat training queries, or themselves: bounds hold under every reading, as often as they say."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataWarning
from rankwise.guarantees.holdout.betting import Readings
from rankwise.queries.fingerprints import Seen, fingerprints
from rankwise.queries.queries import Queries
from rankwise.rankers._inputs import warn_of_shared_queries
from rankwise.rankers.linear.ridge import RidgeRanker


def population(count, seed):
    return rw.make_lists(count, documents=(2, 8), features=4, random_state=seed)


def relevant(queries):
    """The queries with a relevant document."""
    return queries[np.flatnonzero(np.maximum.reduceat(queries.y, queries.start[:-1]) > 0)]


WHOLE = relevant(population(120, 1))[:80]
TRAIN, HELD = WHOLE[:50], WHOLE[50:]
MODEL = RidgeRanker("nDCG@5", alpha=1.0).fit(TRAIN)


def unseen_of(certificate):
    """Whether the hold-out rows know that these queries were not seen."""
    met = {row.preconditions[0].met for row in certificate.rows if row.kind == "hold-out"}
    assert len(met) == 1
    return met.pop()


def test_the_whole_file_certifies_for_every_reading():
    """The seen queries are the training rows, or further draws of them: no bound is below that of either reading."""
    whole, alone = MODEL.certificate(None, WHOLE), MODEL.certificate(None, HELD)
    assert unseen_of(whole) is unseen_of(alone) is True
    losses = 1 - rw.evaluate(WHOLE, MODEL.predict(WHOLE), ["nDCG@5"]).values[0]
    readings = Readings.of(losses, None, np.arange(80) < 50)
    for row in whole.rows:
        if row.name == "Hoeffding":
            assert row.value == readings.hoeffding(0.05)
            assert row.value >= next(one.value for one in alone.rows if one.name == "Hoeffding") - 1e-12
        if row.name == "Betting":
            assert row.value == readings.betting(0.05)
    assert whole.headline.value >= alone.headline.value
    assert whole.about == "RidgeRanker, nDCG@5, 80 hold-out queries"
    assert whole.notes[0].startswith("50 of the 80 hold-out queries (")
    assert "the features and labels of training queries: they are copies, or further draws" in whole.notes[0]


def test_validation_queries_were_seen_too():
    model = RidgeRanker("nDCG@5", refit="train").fit(TRAIN[:30], validation=TRAIN[30:])
    found = model.certificate(None, WHOLE)
    assert found.headline.terms["sure"] == 30
    assert found.headline.terms["optional"] == 50
    assert found.notes[0].startswith("30 of the 80 hold-out queries")
    assert "of training queries" in found.notes[0]
    assert found.notes[1].startswith("20 of the 80 hold-out queries")
    assert "of validation queries" in found.notes[1]


def test_w12_a_hold_out_of_training_queries_certifies_nothing_and_says_what_to_do():
    found = MODEL.certificate(None, TRAIN)
    assert found.headline is None
    assert found.summary() == (
        "nothing certified: all 50 hold-out queries were used in training; pass queries the model has not seen"
    )
    assert MODEL.certificate().summary() == (
        "nothing certified: pass judged queries that were not used in training as holdout="
    )


def test_which_queries_are_sure_to_count_depends_on_no_score_and_on_no_label_of_the_others():
    """Given the training queries the choice is the same whatever the unseen labels are: the draws stay independent."""
    random = np.random.default_rng(0)
    y = WHOLE.y.copy()
    for query in range(50, 80):
        y[WHOLE.rows_of(query)] = random.permutation(y[WHOLE.rows_of(query)])
    other = RidgeRanker("nDCG@5", alpha=1e6).fit(TRAIN)  # other scores, the same training queries
    for model in (MODEL, other):
        for queries in (WHOLE, WHOLE.with_labels(y)):
            assert model.certificate(None, queries).headline.terms["sure"] == 30


def test_a_changed_copy_leaves_nothing_that_is_known_to_be_unseen():
    """Not every changed copy can be recognized, so the rest may be copies as well."""
    rounded = Queries.concat([TRAIN.map_features(lambda X: X * (1 + 1e-12)), HELD])
    found = MODEL.certificate(None, rounded)
    assert found.headline is None
    assert any("changed copies" in note for note in found.notes)
    assert found.summary().startswith("nothing certified: the hold-out has changed copies of queries")


def test_copies_that_identify_nothing_are_no_draws_for_certain():
    """Queries of one document coincide by chance: whether they were used cannot be told, and bounds hold either way."""
    single = Queries.from_arrays(np.arange(1.0, 41).reshape(-1, 1), np.ones(40), group=[1] * 40)
    pairs = Queries.from_arrays(np.arange(50.0, 90).reshape(-1, 1), np.tile([0, 1], 20), group=[2] * 20)
    unseen = Queries.from_arrays(100 + np.arange(40.0).reshape(-1, 1), np.tile([1, 0], 20), group=[2] * 20)
    model = RidgeRanker("nDCG@5", alpha=1.0).fit(Queries.concat([single, pairs]))
    found = model.certificate(None, Queries.concat([single, pairs, unseen]))
    assert (found.headline.terms["sure"], found.headline.terms["optional"]) == (20, 60)
    assert any("it cannot be told whether they were used" in note for note in found.notes)
    assert model.certificate(None, single).headline is None


# ------------------------------------------------------------------------------------------- T1: frequent queries

HEAD = np.array([[0.2, 0.1], [0.4, 0.9], [0.6, 0.3], [0.8, 0.7], [0.9, 0.2]]), np.array([2.0, 1, 0, 0, 0])


def traffic(random, count, head=0.5):
    """Independent draws from traffic of which one query is this share."""
    X = random.random((count, 5, 2))
    noisy = X[:, :, 0] + 0.05 * random.standard_normal((count, 5))
    y = noisy.argsort(axis=1).argsort(axis=1).clip(2) - 2.0
    frequent = random.random(count) < head
    X[frequent], y[frequent] = HEAD
    return Queries.from_arrays(X.reshape(-1, 2), y.ravel(), group=[5] * count)


# of the queries that are not frequent, what is known of the whole population
RARE = traffic(np.random.default_rng(999), 3_000, head=0.0)
FREQUENT = traffic(np.random.default_rng(999), 1, head=1.0)


def t1_sample(world, seed):
    """Whether the headline is false, of one sample of a world."""
    random = np.random.default_rng(seed)
    if world == "honest draws":
        train, holdout = traffic(random, 60), traffic(random, 300)
    else:
        train = traffic(random, 300)
        holdout = Queries.concat([traffic(random, 200), train], rename=True)
    model = rw.RankSVM("nDCG@10", alpha=0.1, n_jobs=1).fit(train)
    truth = 1 - (model.score(RARE) + model.score(FREQUENT)) / 2
    return model.certificate(holdout=holdout).headline.value < truth


T1_SAMPLES = [50, pytest.param(1_000, marks=pytest.mark.thorough)]


@pytest.mark.parametrize("samples", T1_SAMPLES)
@pytest.mark.parametrize("world", ["honest draws", "training rows added"])
def test_t1_the_headline_is_about_future_queries_however_frequent(world, samples):
    """Of 60 samples of honest draws, 20 had been false, because draws of the frequent query had been dropped."""
    wrong = sum(t1_sample(world, seed) for seed in range(samples))
    assert wrong <= 0.05 * samples


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_bound_on_a_file_with_seen_queries_fails_as_rarely_as_it_may(share):
    """60 samples at delta = 0.2: the mean over a population of 2,000 queries is above the bound 12 times at most."""
    future = relevant(population(4_000, 999))[:2_000]
    failures = 0
    for seed in range(60):
        file = population(60, 1_000 + seed)
        model = RidgeRanker("nDCG@5", alpha=1.0, n_jobs=1).fit(file[: int(share * 60)])
        bound = model.certificate(None, file, delta=0.2).headline.value
        failures += 1 - model.score(future) > bound
    assert failures <= 12


# ------------------------------------------------------------------------------------------- T5, T6, T7


def memorizer(train):
    """A ranker that knows the labels of its training queries by heart."""
    return RidgeRanker("nDCG@10", alpha=1e-6, balanced=False).fit(train)


def of_size(m, X, y):
    return Queries.from_arrays(np.reshape(X, (-1, np.shape(X)[-1])), np.ravel(y), group=[m] * (np.size(y) // m))


def t5_cases():
    """Name -> (training, hold-out): labels are coins, so the truth is near .23 for every ranker."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 8, 600)), random.integers(0, 2, (60, 8)).astype(float)
    other, third = (np.where(random.random((60, 8)) < 0.1, 1 - y, y) for _ in range(2))
    narrow = random.standard_normal((60, 8, 12))
    return {
        "every query twice, one document dropped": (of_size(8, [X, X], [y, y]), of_size(7, X[:, 1:], y[:, 1:])),
        "two cuts of every query": (of_size(8, X, y), of_size(7, [X[:, 1:], X[:, :-1]], [y[:, 1:], y[:, :-1]])),
        "labels of a third assessor": (of_size(8, [X, X], [y, other]), of_size(8, X, third)),
        "second halves": (of_size(8, X, y), of_size(4, X[:, 4:], y[:, 4:])),
        "12 features at 4 decimals": (of_size(8, narrow, y), of_size(8, narrow.round(4), y)),
        "12 features in float16": (of_size(8, narrow, y), of_size(8, narrow.astype(np.float16).astype(float), y)),
        "600 features at 3 decimals": (of_size(8, X, y), of_size(8, X.round(3), y)),
    }


T5 = t5_cases()


@pytest.mark.parametrize("case", T5)
def test_t5_changed_copies_of_training_queries_certify_nothing(case):
    train, holdout = T5[case]
    found = memorizer(train).certificate(holdout=holdout)
    assert not [row for row in found.rows if row.kind == "hold-out"]
    assert found.headline is None
    assert "changed copies" in found.summary()


def test_t6_queries_that_coincide_by_chance_are_not_called_seen():
    """Two 0/1 features, six documents, 200 + 200 independent queries: 128 had been "seen in fit"."""
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, (2, 200, 6, 2)).astype(float), random.integers(0, 2, (2, 200, 6)).astype(float)
    train, holdout = (of_size(6, *both) for both in zip(X, y, strict=True))
    model = RidgeRanker("nDCG@5").fit(train)
    found = model.certificate(holdout=holdout)
    assert unseen_of(found) is None  # it could not be checked
    assert any("could not be checked" in note for note in found.notes)
    assert not any("changed copies of" in note or "are copies" in note for note in found.notes)
    # queries of the same content may be copies; bounds are no smaller than those of all 200
    values = rw.evaluate(holdout, model.predict(holdout), ["nDCG@5"]).values[0]
    plain = rw.guarantees.mean_interval(1 - values, method="hoeffding", ends="high").high
    assert next(row.value for row in found.rows if row.name == "Hoeffding") >= plain


@pytest.mark.parametrize("how", ["exact", "moved by 1e-7"])
def test_t7_copies_inside_the_hold_out_are_not_new_draws(how):
    """Five queries, two of them with one document, sixty times: 300 queries are no more than five draws for certain."""
    random, big = np.random.default_rng(0), rw.make_lists(400, random_state=5)
    few, model = big[200:205], RidgeRanker().fit(big[:150])
    copies = [few] * 60
    if how != "exact":
        copies = [few.map_features(lambda X: X * (1 + 1e-7 * random.standard_normal(X.shape))) for _ in range(60)]
    many, alone = (model.certificate(holdout=one) for one in (Queries.concat(copies, rename=True), few))
    assert many.headline.terms["sure"] <= 5
    for name in ("Hoeffding", "Betting"):
        bounds = [next(row.value for row in found.rows if row.name == name) for found in (many, alone)]
        assert bounds[0] >= bounds[1] - 0.05  # betting with fixed sizes is a little different
    assert many.headline.value >= 0.6
    assert any("they may be copies, or several draws" in note for note in many.notes)


# ------------------------------------------------------------------------------------------- T9: which future queries


def with_empty(count, empty, seed=0):
    """Queries of which the first ``empty`` have no relevant document."""
    queries = population(count, seed)
    y = queries.y.copy()
    y[queries.query_of_row < empty] = 0
    return queries.with_labels(y)


def row_of(found, name, about):
    return next(row for row in found.rows if row.name == name and row.bounds == about)


def test_t9_queries_without_a_relevant_document_are_named_and_counted_as_0_in_a_row():
    holdout = with_empty(200, 140)
    found = MODEL.certificate(holdout=holdout)
    defined = int((~np.isnan(rw.evaluate(holdout, MODEL.predict(holdout), ["nDCG@5"]).values[0])).sum())
    assert defined <= 60
    assert found.headline.bounds == "1 - nDCG@5 on future queries with a relevant document"
    assert f"on {defined} of 200 hold-out queries" in found.summary()
    assert found.about == f"RidgeRanker, nDCG@5, {defined} of 200 hold-out queries"
    zero = row_of(found, "Betting", "1 - nDCG@5 on future queries, undefined counted as 0")
    assert zero.terms["n"] == 200
    assert zero.value > 0.7 > found.headline.value
    values = rw.evaluate(holdout, MODEL.predict(holdout), ["nDCG@5"]).values[0]
    expected = rw.guarantees.mean_interval(1 - np.nan_to_num(values), ends="high").high
    assert zero.value == pytest.approx(expected, abs=1e-12)
    assert zero.terms.get("compared_value") is None


def test_t9_without_empty_queries_there_is_no_such_row():
    found = MODEL.certificate(holdout=relevant(population(60, 3)))
    assert found.headline.bounds == "1 - nDCG@5 on future queries"
    assert not any("undefined" in row.bounds for row in found.rows)


def test_t9_weights_of_0_are_named():
    """Weight 0 on the worst half: the bound is about the other half."""
    values = rw.evaluate(HELD, MODEL.predict(HELD), ["nDCG@5"]).values[0]
    weight = (np.nan_to_num(values) >= np.nanmedian(values)).astype(float)
    found = MODEL.certificate(holdout=HELD.with_weight(weight))
    assert "of weight above 0" in found.headline.bounds
    assert f"{int((~np.isnan(values) & (weight > 0)).sum())} of 30 hold-out queries" in found.about


def test_t9_tied_scores_are_named():
    flat = rw.LinearModel.of(np.zeros(4), measure="nDCG@5").certificate(holdout=HELD)
    assert "1 - nDCG@5, ties averaged, on future queries" in flat.headline.bounds
    assert "ties averaged" not in MODEL.certificate(holdout=HELD).headline.bounds


def test_t9_a_measure_that_is_never_defined_certifies_nothing():
    found = MODEL.certificate(holdout=with_empty(20, 20))
    assert found.summary() == "nothing certified: nDCG@5 is undefined for every query of the hold-out"


# ------------------------------------------------------------------------------------------- T10 and the warning of fit


def test_t10_weights_that_were_overwritten_leave_unseen_open():
    """Fingerprints are about the weights of the fit; of others nobody knows what they were learned from."""
    model = RidgeRanker("nDCG@5", alpha=1.0).fit(TRAIN)
    assert unseen_of(model.certificate(holdout=HELD)) is True
    model.coef_ = RidgeRanker("nDCG@5", alpha=1.0).fit(HELD).coef_
    found = model.certificate(holdout=HELD)
    assert unseen_of(found) is None
    assert any("it is not known what the present state was learned from" in note for note in found.notes)


def test_validation_queries_that_were_trained_on_are_warned_of():
    seen = Seen().with_training(fingerprints(TRAIN))
    with pytest.warns(DataWarning, match="10 of 20 validation queries"):
        warn_of_shared_queries("R", seen, WHOLE[40:60], None)


def test_validation_queries_that_coincide_by_chance_are_not_warned_of(recwarn):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, (2, 100, 6, 2)).astype(float), random.integers(0, 2, (2, 100, 6)).astype(float)
    train, validation = (of_size(6, *both) for both in zip(X, y, strict=True))
    warn_of_shared_queries("R", Seen().with_training(fingerprints(train)), validation, None)
    assert not [one for one in recwarn if one.category is DataWarning]
