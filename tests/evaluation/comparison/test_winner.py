"""T2: the winner is chosen on validation queries, and certificates of a choice on test queries hold together."""

import json
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import rankwise as rw
from experiments.coverage_counts import Count, read_count, verdict
from experiments.coverage_winners import (
    MISTAKE,
    PROMISED,
    RESULTS,
    TOGETHER_ALL,
    WORLDS,
    World,
    compared,
    false_ones,
    run_winners,
)
from rankwise import compare
from rankwise.errors import RankwiseError
from rankwise.queries.overlap import overlap

MEASURES = ["nDCG@5", "AP"]


@pytest.fixture(scope="module")
def lists():
    return rw.make_lists(60, documents=8, features=4, random_state=1)


def rankers():
    return {
        "ridge": rw.RidgeRanker("AP"),
        "ada": rw.AdaRank("nDCG@5", rounds=5),
        "slam": rw.SLAMPerceptron("nDCG@5", epochs=1, scale="none", averaging="none", weights="ndcg_003"),
        "regression": LinearRegression(),
    }


@pytest.fixture(scope="module")
def found(lists):
    return compare(rankers(), lists, MEASURES, folds=3)


def test_t2_the_winner_is_the_best_on_validation_queries_that_no_candidate_learned_from(found):
    """RidgeRanker learns from its validation queries in the end: its validation value is of the fit before that."""
    judged = found.first.validation
    scores = {cell.ranker: cell.validation_scores for cell in found.cells if cell.fold == 1}
    apart = rw.RidgeRanker("AP", refit="train").fit(found.first.train, validation=judged).predict(judged)
    np.testing.assert_array_equal(scores["ridge"], apart)
    assert not np.array_equal(apart, found.models["ridge"][0].predict(judged))
    np.testing.assert_array_equal(scores["ada"], found.models["ada"][0].predict(judged))
    # by the first measure of the comparison, whatever the rankers were trained for
    means = {name: rw.evaluate(judged, own, "nDCG@5").mean["nDCG@5"] for name, own in scores.items()}
    assert found.choose() == max(means, key=means.__getitem__)
    assert found.to_dict()["winner"] == found.winner == found.choose()
    for name in found.rankers:
        assert found.choose([name]) == name


def test_t2_the_test_part_does_not_choose(lists):
    """The same training and validation queries have the same winner, whatever the test queries are."""
    train, validation, test = rw.split(lists, random_state=0)
    reversed_labels = test.with_labels(test.labels().max() - test.labels())
    winners = [compare(rankers(), [(train, validation, part)], MEASURES).choose() for part in (test, reversed_labels)]
    best = [compare(rankers(), [(train, validation, part)], "AP").table()["ranker"][0] for part in (reversed_labels,)]
    assert winners[0] == winners[1]
    assert best  # the table is sorted by the test queries, the winner is not


def test_t2_the_winner_has_the_whole_delta_and_all_together_a_part_each(found):
    winner, K = found.choose(), len(found.rankers)
    model, first = found.models["ridge"][0], found.first
    assert found.certificate(0.1).delta == 0.1
    own = partial(rw.certify, first.test, model, found.titles[0], train=first.train)  # of the comparison's measure
    assert found.certificate(among=["ridge"]).to_dict() == own().to_dict()
    every = found.certificates(0.1)
    assert list(every) == found.rankers
    assert {one.delta for one in every.values()} == {0.1 / K}
    assert every["ridge"].to_dict() == own(delta=0.1 / K).to_dict()
    assert found.certificate(0.1).headline.value <= every[winner].headline.value


def test_t2_without_validation_values_there_is_no_winner_and_the_sentence_says_why(lists, found):
    fitted = rw.RidgeRanker().fit(rw.make_lists(20, documents=8, features=4, random_state=9))
    for other in (fitted, lists.X[:, 0]):
        mixed = compare({"other": other, "ada": rw.AdaRank(rounds=2)}, lists, "AP", folds=3)
        with pytest.raises(RankwiseError, match="'other' was not trained here and has no value on it"):
            mixed.choose()
        assert mixed.choose(["ada"]) == "ada"
        assert mixed.to_dict()["winner"] is None
        with pytest.raises(RankwiseError, match="'other' was not trained here"):
            mixed.certificate()
        assert set(mixed.certificates()) == {"other", "ada"}
    train, validation, test = rw.split(lists, random_state=0)
    bare = compare({"ada": rw.AdaRank(rounds=2)}, [(train, test)], "AP")
    with pytest.raises(RankwiseError, match="the folds have no validation part"):
        bare.choose()
    nothing = validation.with_labels(np.zeros(validation.n_documents))
    with pytest.raises(RankwiseError, match="AP, which is undefined on every validation query"):
        compare({"one": LinearRegression()}, [(train, nothing, test)], "AP").choose()
    with pytest.raises(RankwiseError, match=r"among must name rankers of this comparison .*, got 'nobody'"):
        found.choose(["nobody"])
    with pytest.raises(RankwiseError, match="among must name at least one ranker"):
        found.choose([])
    for delta in (0, 1, "x"):
        with pytest.raises(RankwiseError, match="delta"):
            found.certificates(delta)


def test_t2_validation_queries_that_chose_a_ranker_do_not_certify_it(found):
    """A fit that takes no validation queries does not know that the comparison chose among rankers by them."""
    judged = found.first.validation
    for name in ("ridge", "slam"):
        model = found.models[name][0]
        seen = model.record_.seen
        assert (overlap(judged, seen.training).identified | overlap(judged, seen.validation).identified).all()
        assert model.certificate(holdout=judged).headline is None
    assert overlap(judged, found.models["slam"][0].record_.seen.validation).identified.all()


def test_t2_a_resumed_comparison_has_the_same_winner(lists, tmp_path):
    first, second = (compare(rankers(), lists, MEASURES, folds=3, resume=tmp_path) for _ in range(2))
    assert first.choose() == second.choose()
    for one, other in zip(first.cells, second.cells, strict=True):
        np.testing.assert_array_equal(one.validation_scores, other.validation_scores)
    assert first.certificate(among=["ada"]).to_dict() == second.certificate(among=["ada"]).to_dict()


def test_t2_queries_of_different_weight_give_no_bound_and_no_error(lists):
    weighted = lists.with_weight(np.linspace(1, 2, len(lists)))
    found = compare({"a": weighted.X[:, 0], "b": weighted.X[:, 1]}, weighted, "AP")
    for one in found.certificates().values():
        assert one.headline is None
        assert "no hold-out bound" in one.notes[0]


# ------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("rankers", [9, *(pytest.param(many, marks=pytest.mark.thorough) for many in (50, 300))])
def test_t2_certificates_of_a_choice_keep_delta(rankers):
    """A twentieth of experiments/coverage_winners.py, whose stored counts of 1,000 samples are checked below."""
    counts = run_winners(World(rankers, 49, 0.3), 0, 50, seed=1)
    assert {count.checked for count in counts.values()} == {50}
    for how, allowed in PROMISED.items():
        assert allowed is None or verdict([counts[how]], allowed) == "kept"
    # the choice on the test queries at the whole delta is the mistake that the others avoid
    assert counts[MISTAKE].failed >= counts[TOGETHER_ALL].failed


def test_t2_the_stored_counts_keep_their_promises_and_the_mistake_is_found_out():
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert (stored["repetitions"], len(stored["winners"])) == (1_000, 3 * len(WORLDS))
    assert false_ones(stored) == []
    mistaken = [read_count(count) for *_, how, count in stored["winners"] if how == MISTAKE]
    assert verdict(mistaken, stored["delta"]) == "FALSE"
    world = WORLDS[0]
    again = run_winners(world, 0, 3, stored["seed"])
    parts = [run_winners(world, place, place + 1, stored["seed"]) for place in range(3)]
    assert again == {how: Count.total(part[how] for part in parts) for how in PROMISED}


def test_t2_the_experiment_compares_as_compare_does():
    world, random = World(3, 30, 0.3), np.random.default_rng(0)
    made = compared(world, random)
    first = made.first
    real = compare(
        {f"ranker {k}": OneFeature(k) for k in range(3)}, [(first.train, first.validation, first.test)], ["nDCG@1"]
    )
    assert real.choose() == made.choose()
    assert {name: one.to_dict() for name, one in real.certificates().items()} == {
        name: one.to_dict() for name, one in made.certificates().items()
    }


class OneFeature(BaseEstimator):
    """Scores that are one feature."""

    def __init__(self, place):
        self.place = place

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, self.place]
