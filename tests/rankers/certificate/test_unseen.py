"""A hold-out file that holds seen queries too: the others certify, and the bound holds as often as it says."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.data.queries import Queries
from rankwise.rankers.linear.ridge import RidgeRanker


def population(count, seed):
    return rw.make_lists(count, documents=(2, 8), features=4, random_state=seed)


WHOLE = population(80, 1)
TRAIN, HELD = WHOLE[:50], WHOLE[50:]
MODEL = RidgeRanker("nDCG@5", alpha=1.0).fit(TRAIN)


def test_the_whole_file_certifies_as_its_unseen_part_does():
    whole, alone = MODEL.certificate(None, WHOLE), MODEL.certificate(None, HELD)
    assert whole.headline == alone.headline
    assert whole.rows == alone.rows
    assert all(row.applies == alone.rows[0].applies for row in whole.rows)
    assert "50 of these queries were seen in fit, as training" in whole.notes[0]


def test_validation_queries_are_left_out_too():
    model = RidgeRanker("nDCG@5", refit="train").fit(TRAIN[:30], validation=TRAIN[30:])
    found = model.certificate(None, WHOLE)
    assert found.headline == model.certificate(None, HELD).headline
    assert "30 of these queries were seen in fit, as training" in found.notes[0]
    assert "20 of these queries were seen in fit, as validation" in found.notes[1]
    assert "hold-out bounds use the 30 others" in found.notes[1]


def test_which_queries_are_left_out_depends_on_no_score_and_on_no_label_of_the_others():
    """Given the training queries the choice is the same whatever the unseen labels are: the draws stay independent."""
    random = np.random.default_rng(0)
    y = WHOLE.y.copy()
    unseen = WHOLE.query_of_row >= 50
    y[unseen] = random.permutation(y[unseen])
    other = RidgeRanker("nDCG@5", alpha=1e6).fit(TRAIN)  # other scores, the same training queries
    names = [
        model.certificate(None, queries).about for model in (MODEL, other) for queries in (WHOLE, WHOLE.with_labels(y))
    ]
    assert set(names) == {"RidgeRanker, nDCG@5, 30 of 80 hold-out queries"}


def test_a_changed_copy_leaves_nothing_that_is_known_to_be_unseen():
    """Not every changed copy can be recognised, so that the rest may be copies as well."""
    rounded = Queries.concat([TRAIN.map_features(lambda X: X * (1 + 1e-12)), HELD])
    found = MODEL.certificate(None, rounded)
    assert found.headline is None
    assert any("changed copies" in note for note in found.notes)


def test_copies_that_identify_nothing_do_not_pass_as_unseen():
    """Queries of one document coincide by chance. In a file that holds other training queries they are copies."""
    single = Queries.from_arrays(np.arange(40.0).reshape(-1, 1), np.ones(40), group=[1] * 40)
    pairs = Queries.from_arrays(np.arange(40.0).reshape(-1, 1), np.tile([0, 1], 20), group=[2] * 20)
    unseen = Queries.from_arrays(100 + np.arange(40.0).reshape(-1, 1), np.tile([1, 0], 20), group=[2] * 20)
    model = RidgeRanker("nDCG@5", alpha=1.0).fit(Queries.concat([single, pairs]))
    whole = Queries.concat([single, pairs, unseen])
    assert model.certificate(None, whole).headline == model.certificate(None, unseen).headline
    # alone they may be new
    assert "40 hold-out queries" in model.certificate(None, single).about


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_bound_on_a_file_with_seen_queries_fails_as_rarely_as_it_may(share):
    """60 samples at delta = 0.2: the mean over a population of 4,000 queries is above the bound 12 times at most."""
    future = population(4_000, 999)
    failures = 0
    for seed in range(60):
        file = population(60, 1_000 + seed)
        model = RidgeRanker("nDCG@5", alpha=1.0, n_jobs=1).fit(file[: int(share * 60)])
        bound = model.certificate(None, file, delta=0.2).headline.value
        failures += 1 - model.score(future) > bound
    assert failures <= 12
