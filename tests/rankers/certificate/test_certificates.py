"""Certificates of every ranker, over whatever the registry finds: true rows, unseen hold-outs, fitted norms."""

import json
import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from experiments import certificates
from experiments.pages import read_block
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Precondition
from rankwise.guarantees.certificate import Certificate, certificate_of
from rankwise.guarantees.holdout.betting import Readings
from rankwise.io.folds import read_folds
from rankwise.losses import registered as known_losses
from rankwise.losses.slam import SLAM
from rankwise.queries import fingerprints as fingerprint_module
from rankwise.queries.fingerprints import TrainingRecord, fingerprints
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers.boosting.adarank import AdaRank
from rankwise.rankers.certificate.claims import Constants, LossOnSample, Population, uniform_claims
from rankwise.rankers.linear.listnet import ListNet
from rankwise.rankers.linear.presets import RankSVM, SLAMRanker, SVMMap
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.online.online_ranker import OnlineRanker
from rankwise.rankers.online.perceptron import SLAMPerceptron
from rankwise.rankers.permutation.two_stage import TwoStage
from rankwise.rankers.smooth.smoothrank import SmoothRank
from tests.guarantees import coin_lists
from tests.rankers.test_saved import rewritten
from tests.strategies import THOROUGH, at_length

RANKERS = [ranker for kind in registered().values() for ranker in kind.examples()]


def over(rankers):
    return pytest.mark.parametrize("ranker", rankers, ids=lambda ranker: " ".join(repr(ranker).split()))


over_all_rankers = over(RANKERS)
over_every_kind_of_ranker = over(RANKERS if THOROUGH else [kind.examples()[0] for kind in registered().values()])


def lists(count=24, features=4, seed=0, names="q"):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 8, count)
    X = random.random((sizes.sum(), features))
    y = np.clip(np.rint(3 * X @ np.linspace(1, -1, features) + random.normal(size=len(X))), 0, 3)
    return Queries.from_arrays(X, y, qid=np.repeat([f"{names}{number}" for number in range(count)], sizes))


TRAIN, HELD, UNSEEN = lists(), lists(10, seed=1, names="v"), lists(12, seed=2, names="u")
KNOWN = {"row_radius": 1.0, "longest": 10}


FITTED = {}


def fitted(ranker, **data):
    """The ranker fitted on TRAIN, once for all that is asked of it."""
    key = repr(ranker), *data
    if key not in FITTED:
        FITTED[key] = learned(ranker, **data)
    return FITTED[key]


def learned(ranker, **data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(ranker).fit(TRAIN, **data)


def kinds(certificate):
    return {row.kind for row in certificate.rows}


def named(certificate, text):
    """The rows of this name; not those that count undefined queries as 0."""
    return [row for row in certificate.rows if text in row.name and "counted as 0" not in row.bounds]


# ------------------------------------------------------------------------------------------- every ranker


@over_all_rankers
def test_every_ranker_has_a_certificate_that_comes_back_from_json_and_from_a_file(ranker, tmp_path):
    model = fitted(ranker)
    found = model.certificate(TRAIN, UNSEEN, **KNOWN)
    assert Certificate.from_json(found.to_json()) == found
    assert len(named(found, "Hoeffding")) == len(named(found, "Betting")) == 1
    assert found.headline.bounds.startswith(f"1 - {model._measure().title}")
    assert " on future queries" in found.headline.bounds
    assert found.headline.terms["compared"] >= 3
    usable = [row for row in found.rows if row.bounds == found.headline.bounds and row.applies is not False]
    assert found.headline.value >= min(row.value for row in usable), "the headline pays for the choice"
    assert str(found)
    model.save(tmp_path / "model.rankwise")
    assert rw.load(tmp_path / "model.rankwise").certificate(TRAIN, UNSEEN, **KNOWN).to_dict() == found.to_dict()


@over_all_rankers
def test_bounds_on_the_training_lists_are_true_of_them(ranker):
    model = fitted(ranker)
    for row in model.certificate(TRAIN).rows:
        assert row.kind in ("training", "generalization", "online", "optimality gap")
        title = f"1 - {model._measure().title} on the training queries"
        if row.bounds == title and row.applies is not False:
            assert 1 - model.score(TRAIN) <= row.value + 1e-12
        if row.kind == "optimality gap":
            assert row.value >= 0
        if row.bounds == "cumulative loss" and row.applies is not False:
            assert model.ledger_.loss <= row.value * (1 + 1e-9)


@over_all_rankers
def test_what_a_hold_out_shares_with_the_training_queries_is_named_and_no_draw_for_certain(ranker):
    model = fitted(ranker)
    mixed = Queries.concat([UNSEEN, TRAIN[3:5]])
    found, alone = model.certificate(TRAIN, mixed, **KNOWN), model.certificate(TRAIN, UNSEEN, **KNOWN)
    (own,), (other,) = (
        [row for row in one.rows if row.name == "Hoeffding" and "counted as 0" not in row.bounds]
        for one in (found, alone)
    )
    assert (
        own.terms.get("sure", own.terms["n"]) == other.terms["n"]
    )  # two queries of which the measure may be undefined
    assert own.terms.get("optional", 0) == own.terms["n"] - other.terms["n"] <= 2
    assert own.value >= other.value - 1e-12
    assert "hold-out" not in kinds(model.certificate(TRAIN, TRAIN[3:5], **KNOWN))
    (note,) = [note for note in found.notes if "hold-out" in note]
    assert "2 of the" in note
    assert "q3" in note
    assert "q4" in note
    assert "the features and labels of training queries" in note
    assert "u0" not in note


@over([ranker for ranker in RANKERS if ranker.takes_validation])
def test_a_hold_out_that_was_chosen_by_is_named_and_gives_no_row(ranker):
    found = fitted(ranker, validation=HELD).certificate(None, HELD[4:6])
    assert "hold-out" not in kinds(found)
    as_what = "of training queries" if ranker.learns_from_validation else "of validation queries"
    assert any(as_what in note and "v5" in note for note in found.notes)


@over([ranker for ranker in RANKERS if isinstance(ranker, LinearRanker)])
def test_the_ball_of_a_fitted_norm_is_the_first_that_holds_the_weights(ranker):
    model = fitted(ranker)
    rows = named(model.certificate(TRAIN, **KNOWN, first_ball=0.01), "Uniform, l2-Lipschitz")
    assert rows
    for row in rows:
        norm, W, j = np.linalg.norm(model.coef_), row.terms["W"], row.terms["j"]
        assert row.terms["norm"] == norm
        assert row.terms["W"] == 0.01 * 2**j
        assert norm <= W
        assert j == 0 or norm > W / 2
        each = 0.05 / row.terms.get("losses", 1)  # where the data chose one of several losses
        assert row.terms["delta_j"] == pytest.approx(each / ((j + 1) * (j + 2)))


@over_all_rankers
def test_without_declared_constants_a_bound_through_the_training_lists_is_no_headline(ranker):
    model = fitted(ranker)
    found = model.certificate(TRAIN)
    assert found.headline is None
    for row in named(found, "Uniform"):
        known = ranker.name in ("MappedRanker", "KernelPerceptron")  # Fourier features have norm 1
        assert ("assumes length" if known else "assumes radius and length") in row.name
        radius = row.terms["radius" if "radius" in row.terms else "entry"]
        assert radius == (1.0 if known else row.terms["measured_radius"])


@over_all_rankers
def test_a_ranker_that_is_not_fitted_has_no_certificate(ranker):
    with pytest.raises(RankwiseError, match="not fitted"):
        clone(ranker).certificate(TRAIN)


# ------------------------------------------------------------------------------------------- what was seen


@over_all_rankers
def test_a_file_of_an_older_version_loads_and_says_that_overlap_could_not_be_checked(ranker, tmp_path):
    path = tmp_path / "model.rankwise"
    fitted(ranker).save(path)
    path.write_bytes(rewritten(path.read_bytes(), lambda facts, header: facts.pop("seen_queries")))
    found = rw.load(path).certificate(holdout=TRAIN)
    assert any("overlap with its training queries cannot be checked" in note for note in found.notes)
    (betting,) = named(found, "Betting")
    assert betting.applies is None
    given = rw.load(path).certificate(TRAIN, TRAIN)
    assert "hold-out queries were used in training" in given.missing
    assert named(given, "Betting") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, _: facts.update(seen_queries=3),
        lambda facts, _: facts.update(seen_queries={"training": 0}),
        lambda facts, _: facts["seen_queries"].update(training=-1),
        lambda facts, _: facts["seen_queries"].update(validation="0"),
        lambda facts, _: facts.update(digest=3),
        lambda _, header: header.update(other=header.pop("seen_queries.training.hash")),
        lambda _, header: header.update(other=header.pop("seen_queries.training.documents")),
    ],
)
def test_fingerprints_that_nobody_wrote_are_refused(change, tmp_path):
    path = tmp_path / "model.rankwise"
    fitted(RidgeRanker(alpha=1.0)).save(path)
    path.write_bytes(rewritten(path.read_bytes(), change))
    with pytest.raises(RankwiseError, match="damaged"):
        rw.load(path)


def test_a_stream_remembers_all_its_lists_also_across_a_file(tmp_path):
    model = SLAMPerceptron().partial_fit(TRAIN[:5]).partial_fit(iter(TRAIN[5:9]))
    model.save(tmp_path / "run.rankwise")
    model = rw.load(tmp_path / "run.rankwise")
    for query in TRAIN[9:]:
        model.partial_fit(query)
    np.testing.assert_array_equal(model.record_.seen.training.marks, fingerprints(TRAIN))
    assert model.record_.seen.record == model.ledger_.record == TrainingRecord.of(TRAIN)
    assert "hold-out" not in kinds(model.certificate(None, TRAIN[20:]))
    assert "hold-out" in kinds(model.certificate(None, UNSEEN))


def test_of_a_longer_stream_than_can_be_remembered_the_certificate_says_so(monkeypatch):
    monkeypatch.setattr(fingerprint_module, "MOST", 10)
    found = SLAMPerceptron().partial_fit(TRAIN).certificate(TRAIN, UNSEEN)
    assert any("14 queries of the stream left no fingerprint" in note for note in found.notes)
    assert all(row.applies is None for row in found.rows if row.kind == "hold-out")


def test_what_a_ranker_began_with_it_has_seen():
    first = RidgeRanker(alpha=1.0).fit(HELD)
    for ranker in (
        RankSVM(alpha=0.1, prior_coef=first),
        SmoothRank(alpha=1.0, start=[first], sigmas=(1.0,), steps=1, protocol="paper"),
        SmoothRank(alpha=1.0, start=first, sigmas=(1.0,), steps=1),
    ):
        assert "hold-out" not in kinds(ranker.fit(TRAIN).certificate(None, HELD))
    warm = SmoothRank("nDCG@5", alpha=1.0, sigmas=(1.0,), steps=1, warm_start=True).fit(HELD).fit(TRAIN)
    assert "hold-out" not in kinds(warm.certificate(None, HELD))
    assert "hold-out" in kinds(warm.set_params(warm_start=False).fit(TRAIN).certificate(None, HELD))


def test_a_fit_that_fails_leaves_the_fingerprints_as_they_were():
    model = RidgeRanker(alpha=1.0).fit(TRAIN)
    before = model.record_.seen
    with pytest.raises(RankwiseError):
        model.set_params(alpha=-1.0).fit(HELD)
    assert model.record_.seen is before


def test_other_lists_than_those_of_the_fit_are_noticed():
    model = fitted(AdaRank(rounds=3))
    assert any("are not those of the fit" in note for note in model.certificate(UNSEEN).notes)
    (row,) = named(fitted(RankSVM(alpha=0.1)).certificate(UNSEEN), "Regularized")
    assert row.applies is False


# ------------------------------------------------------------------------------------------- lambda


@pytest.mark.parametrize(
    ("ranker", "applies"),
    [
        (RankSVM(alpha=0.1), None),
        (RankSVM(alpha=(0.1, 1.0), folds=2), False),
        (RankSVM(folds=2), False),
        (RankSVM(alpha="theory", row_radius=1.0, norm=1.0, scale="none"), None),
        (SLAMRanker(alpha=0.1), False),  # its center is a ridge regression on the same lists
        (SLAMRanker(alpha=0.1, prior_coef=None), None),
        (TwoStage("AP", first="ridge", alpha=0.1), False),
        (ListNet(solver="lbfgs", alpha=0.1), None),
        (ListNet(solver="lbfgs", alpha=(0.1, 1.0), folds=2), False),
    ],
    ids=lambda value: " ".join(repr(value).split()),
)
def test_a_chosen_lambda_or_center_makes_the_bound_one_whose_precondition_is_not_met(ranker, applies):
    (row,) = named(fitted(ranker).certificate(TRAIN, **KNOWN), "Regularized minimization")
    assert row.applies is applies
    if "theory" in repr(ranker):
        assert all(one.met for one in row.preconditions if "lambda was fixed" in one.sentence)
        assert row.value == pytest.approx(2 * 2.0 / math.sqrt(len(TRAIN)) + row.terms["unsolved"])


def test_features_that_were_scaled_by_the_lists_make_it_not_met():
    wide = TRAIN.map_features(lambda X: 100 * X)
    (row,) = named(RankSVM(alpha=0.1).fit(wide).certificate(wide), "Regularized minimization")
    assert row.applies is False
    assert any(
        "not scaled by statistics of these queries" in one.sentence and one.met is False for one in row.preconditions
    )


def test_the_lambda_that_is_not_declared_for_a_norm_is_the_best_for_its_own():
    (row,) = named(fitted(RankSVM(alpha=0.1)).certificate(TRAIN, **KNOWN), "Regularized minimization")
    assert row.terms["regularization"] == pytest.approx(row.terms["stability"])


# ------------------------------------------------------------------------------------------- declared constants


def test_a_declared_constant_that_the_lists_contradict_is_refused():
    model = fitted(RidgeRanker(alpha=1.0))
    with pytest.raises(RankwiseError, match=r"row_radius=0\.1 must hold for every query"):
        model.certificate(TRAIN, row_radius=0.1)
    wider = UNSEEN._replace(X=30 * UNSEEN.X)
    radius = 1.5 * float(np.linalg.norm(TRAIN.X, axis=1).max())
    assert model.certificate(TRAIN, row_radius=radius).rows
    with pytest.raises(RankwiseError, match=r"row_radius=.* must hold for every query, got a query of radius"):
        model.certificate(TRAIN, holdout=wider, row_radius=radius)  # a hold-out query refutes it, too
    with pytest.raises(RankwiseError, match="longest=3 must hold for every query"):
        model.certificate(TRAIN, longest=3)
    with pytest.raises(RankwiseError, match="row_radius must be finite and above 0"):
        model.certificate(TRAIN, row_radius=-1.0)


def test_lists_scaled_to_the_unit_interval_within_each_have_a_radius_of_their_own():
    train = Scaler("minmax", per="query").fit_transform(TRAIN)
    model = RidgeRanker(alpha=1.0).fit(train)
    (row,) = named(model.certificate(train, longest=10), "Uniform, l2-Lipschitz")
    assert row.terms["radius"] == pytest.approx(math.sqrt(4) / 2)
    assert "assumes" not in row.name
    by_set = Scaler("minmax").fit_transform(TRAIN)
    (row,) = named(RidgeRanker(alpha=1.0).fit(by_set).certificate(by_set, longest=10), "Uniform, l2-Lipschitz")
    assert row.name.endswith("assumes radius"), "a set's own range says nothing about future queries"


def test_lists_that_count_differently_have_no_bound_for_independent_ones():
    weights = np.linspace(1, 2, len(TRAIN))
    train, held = TRAIN.with_weight(weights), UNSEEN.with_weight(np.linspace(1, 2, len(UNSEEN)))
    found = RidgeRanker(alpha=1.0).fit(train).certificate(train, held, **KNOWN)
    assert "hold-out" not in kinds(found)
    assert any("equal query weights" in note for note in found.notes)
    assert all(row.applies is False for row in named(found, "Uniform"))


def test_with_many_lists_a_uniform_bound_is_the_headline():
    """Two documents that one feature tells apart: 40,000 of these certify the SLAM loss of short weights.

    The other feature is noise: queries that repeat each other would be counted once.
    """
    count = 40_000
    noise = np.random.default_rng(0).uniform(-0.001, 0.001, 2 * count)
    X = np.column_stack([np.tile([0.499, -0.499], count), noise])
    queries = Queries.from_arrays(X, np.tile([1.0, 0.0], count), group=np.full(count, 2))
    model = SLAMRanker("nDCG", alpha=0.055, prior_coef=None).fit(queries)
    found = model.certificate(queries, row_radius=0.5, longest=2, first_ball=1.0)
    assert found.headline.kind == "generalization"
    assert not found.headline.vacuous
    assert 1 - model.score(queries) <= found.headline.value < 0.5


def test_bounds_of_averaged_descent_are_for_the_weights_whose_step_it_took():
    model = OnlineRanker(step="constant", eta=0.01).fit(TRAIN)
    (row,) = named(model.certificate(TRAIN), "Averaged gradient descent")
    assert row.terms["eta"] == pytest.approx(0.01)
    assert row.kind == "generalization"
    twice = OnlineRanker(step="constant", eta=0.01, epochs=2).fit(TRAIN)
    (row,) = named(twice.certificate(TRAIN), "Averaged gradient descent")
    assert row.applies is False


def test_a_measure_without_a_largest_value_has_no_hold_out_interval():
    model = RidgeRanker("DCG@5", alpha=1.0).fit(TRAIN)
    found = model.certificate(TRAIN, UNSEEN)
    assert "hold-out" not in kinds(found)
    assert any("no largest value" in note for note in found.notes)


def test_lists_that_say_nothing_give_notes_and_no_error():
    empty = Queries.from_arrays(np.random.default_rng(0).random((6, 4)), np.zeros(6), group=[3, 3])
    found = fitted(RidgeRanker(alpha=1.0)).certificate(empty, empty, **KNOWN)
    assert found.rows == ()
    assert len(found.notes) >= 2


def test_delta_is_checked_before_any_work():
    with pytest.raises(RankwiseError, match="delta must be between 0 and 1"):
        fitted(RidgeRanker(alpha=1.0)).certificate(TRAIN, delta=0.0)


@pytest.mark.parametrize("sigma", [1.0, 1e-3, 1e-7])
def test_the_smoothing_gap_is_above_what_it_bounds(sigma):
    model = SmoothRank("nDCG@5", alpha=1.0, sigmas=(sigma,), steps=5, protocol="paper")
    (row,) = named(fitted(model).certificate(TRAIN), "Smoothing")
    assert row.terms["measured"] <= row.value + 1e-12
    assert row.terms["sigma"] == sigma
    assert row.vacuous == (sigma == 1.0)


def test_bounds_that_could_say_nothing_whatever_the_sample_are_not_paid_for():
    found = fitted(RidgeRanker(alpha=1.0)).certificate(TRAIN, UNSEEN, **KNOWN)
    assert all(row.vacuous for row in named(found, "Uniform"))
    assert found.headline.terms["compared"] == 3
    without = fitted(RidgeRanker(alpha=1.0)).certificate(None, UNSEEN)
    assert without.headline.value == found.headline.value


# ------------------------------------------------------------------------------------------- how often it is wrong


@pytest.mark.parametrize(("n", "delta"), [(2000, 0.05), (3000, 0.2)])
def test_the_headline_through_the_training_lists_is_wrong_no_more_often_than_delta(n, delta):
    """List k has the rows e_k and -e_k, and a fair coin says which is relevant: memory is all that can be learned.

    The length of w is chosen by the sample, which is 2,000 times another one.
    """
    K, repetitions, loss = 50, at_length(2000, 5), SLAM()
    v = loss([0.0, 0.0], [1.0, 0.0])[0]
    samples = coin_lists.draw(repetitions, n, np.full(K, 0.5), seed=n)
    lengths = [coin_lists.memorized(samples, length) for length in (0.1, 0.5, 2.0)]
    slack = [1 - 2 * samples.signs * np.take_along_axis(w, samples.lists, axis=1) for w in lengths]
    values = np.stack([v * np.maximum(0.0, one) for one in slack])
    taken = values.mean(axis=2).argmin(axis=0)
    risks = [v * (np.maximum(0, 1 - 2 * w) + np.maximum(0, 1 + 2 * w)).mean(axis=1) / 2 for w in lengths]
    known = Constants(radius=1.0, measured=1.0, m=2, first_ball=0.25, assumed="", conditions=())
    wrong, spoke, fooled = [], 0, 0
    for number, length in enumerate(taken):
        found = LossOnSample(
            loss=loss,
            fixed=True,
            readings=Readings.of(values[length, number]),
            labels=(0.0, 1.0),
            count_the_same=Precondition("all lists count the same", True),
            population=Population(),
        )
        claims = uniform_claims(found, lengths[length][number], known, loss.upper_bounds, delta)
        headline = certificate_of(claims, about="", delta=delta).headline
        true = risks[length][number]
        wrong.append(headline.value < true)
        spoke += not headline.vacuous
        fooled += values[length, number].mean() < true
    assert np.mean(wrong) <= delta + 3 * math.sqrt(delta * (1 - delta) / repetitions)
    assert spoke == repetitions
    assert fooled > 0.9 * repetitions, "the sample's own risk is too low nearly always: the bound has to make up for it"


def test_the_slope_of_a_loss_in_the_l2_norm_is_its_l1_norm_over_the_root_of_two():
    random = np.random.default_rng(0)
    for kind in known_losses().values():
        for loss in kind.examples():
            for m in (2, 3, 9):
                _, slope = loss(random.normal(size=m), random.integers(0, 4, m).astype(float))
                assert np.linalg.norm(slope) <= loss.lipschitz_l1(m) / math.sqrt(2) * (1 + 1e-9)


# ------------------------------------------------------------------------------------------- the page


def test_the_page_shows_the_stored_certificates_of_every_ranker():
    stored = json.loads(certificates.RESULTS.read_text(encoding="utf-8"))
    found = {name: Certificate.from_dict(one) for name, one in stored.items()}
    assert read_block(certificates.PAGE, "certificates") == certificates.table(found)
    assert read_block(certificates.PAGE, "fits") == certificates.table_of_fits(found)
    assert str(found["SVMMap"]) in read_block(certificates.PAGE, "one certificate")
    assert set(found) == set(registered()), "a ranker has no certificate on the page: run experiments.certificates"


def test_on_real_lists_a_certificate_is_the_stored_one(data_folder):
    """SVMmap on OHSUMED's first fold, as the page has it."""
    fold = next(iter(read_folds(data_folder / "ohsumed")))
    model = SVMMap().fit(fold.train, validation=fold.validation)
    found = model.certificate(fold.train, fold.test, **certificates.DECLARED)
    stored = Certificate.from_dict(json.loads(certificates.RESULTS.read_text(encoding="utf-8"))["SVMMap"])
    assert [row.name for row in found.rows] == [row.name for row in stored.rows]
    assert found.headline.value == pytest.approx(stored.headline.value, abs=1e-6)
    assert any("of validation queries" in note for note in model.certificate(None, fold.validation).notes)
