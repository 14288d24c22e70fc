"""What a certificate knows of its own: facts that losses declare are met, and only what nobody can know is assumed."""

import numpy as np
import pytest

from rankwise.guarantees.bounds.batch import CONVEX, INDEPENDENT
from rankwise.guarantees.bounds.uniform import FIRST_BALL, ROWS, SPAN, STEEP_L2
from rankwise.rankers.boosting.adarank import AdaRank
from rankwise.rankers.linear.listnet import ListNet
from rankwise.rankers.linear.presets import RankSVM
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.smooth.smoothrank import SmoothRank
from tests.rankers.certificate.test_certificates import KNOWN, TRAIN, UNSEEN, fitted, named


def settled(row):
    return {one.sentence: one.met for one in row.preconditions}


def test_what_the_package_knows_of_a_bound_is_not_left_to_be_assumed():
    """Slopes and ranges are declared by the losses, and W_0 by the radius; that rows to come are so short is not."""
    (row,) = named(fitted(RidgeRanker(alpha=1.0)).certificate(TRAIN, **KNOWN), "Uniform, l2-Lipschitz")
    known = settled(row)
    assert known[STEEP_L2.sentence] is known[SPAN.sentence] is known[FIRST_BALL.sentence] is True
    assert known[ROWS.sentence] is known[INDEPENDENT.sentence] is None
    for options in ({"first_ball": 1.0}, {}):  # chosen by the user, or by the largest row of the sample
        (row,) = named(fitted(RidgeRanker(alpha=1.0)).certificate(TRAIN, **options), "Uniform, l2-Lipschitz")
        assert settled(row)[FIRST_BALL.sentence] is None
    (row,) = named(fitted(RankSVM(alpha=0.1)).certificate(TRAIN, **KNOWN), "Regularized minimization")
    assert settled(row)[CONVEX.sentence] is True


def test_a_range_that_depends_on_labels_says_which_labels():
    """The KL form of ListNet can be as large as the spread of the labels, which no sample knows of future queries."""
    model = ListNet(solver="lbfgs", alpha=0.1)
    row = next(row for row in named(fitted(model).certificate(TRAIN, **KNOWN), "Uniform, l2") if "ListNet" in row.name)
    assert settled(row)[f"no future label is above 3, so that {SPAN.sentence}"] is None
    assert SPAN.sentence not in settled(row)


def test_the_rounds_of_adarank_and_the_error_of_smoothing_rest_on_nothing_unknown():
    (row,) = named(fitted(AdaRank(rounds=3)).certificate(TRAIN), "AdaRank certificate")
    assert row.applies is True
    smooth = SmoothRank("nDCG@5", alpha=1.0, sigmas=(1e-3,), steps=5, protocol="paper")
    (row,) = named(fitted(smooth).certificate(TRAIN), "Smoothing")
    assert row.applies is True


def test_lists_count_as_they_do_in_the_mean_that_is_bounded():
    """Lists that a measure says nothing about are neither in its mean nor in n; the objective has all of them."""
    judged = np.add.reduceat((TRAIN.labels() > 0).astype(int), TRAIN.start[:-1]) > 0
    assert 0 < judged.sum() < len(TRAIN)
    found = fitted(RankSVM(alpha=0.1)).certificate(TRAIN, **KNOWN)
    assert {row.terms["n"] for row in named(found, "Uniform")} == {judged.sum()}
    assert {row.terms["n"] for row in named(found, "Regularized")} == {len(TRAIN)}
    held = np.add.reduceat((UNSEEN.labels() > 0).astype(int), UNSEEN.start[:-1]) > 0
    (row,) = named(fitted(RankSVM(alpha=0.1)).certificate(None, UNSEEN), "Hoeffding")
    assert row.terms["n"] == held.sum()


def test_the_headline_says_what_was_measured_beside_what_is_certain():
    model = fitted(RidgeRanker(alpha=1.0))
    found = model.certificate(None, UNSEEN)
    mean, n = found.headline.terms["mean"], found.headline.terms["n"]
    assert f"({mean:.3f} on {n:.0f} of {len(UNSEEN)} hold-out queries)" in found.summary()
    assert mean == pytest.approx(1 - model.score(UNSEEN))
    assert "nothing certified: pass judged queries that were not used" in model.certificate(TRAIN).summary()
