"""What experiments claim: the unit of a split is the user, every first ranking counts, and a read-out says so."""

import json
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from experiments.serve_guarantees import ROUNDS, ever_false, most, radii, split, worlds
from rankwise.clicks.preferences import differences
from rankwise.guarantees.holdout.sequences import ConfidenceSequence
from rankwise.serve.experiments import Experiment, SplitAccount
from rankwise.serve.replay import Replay
from rankwise.serve.statefile import open_to_read
from rankwise.serve.structs import ExperimentRequest, Feedback, RankRequest
from tests.serve.running import IDS, Service, saved
from tests.serve.test_state import second, settled, told


def begun(tmp_path, kind="split", **more):
    """A service with an experiment between two fixed models that order the documents in opposite ways."""
    weights = np.array([1.0, 0.0, 0.0])
    service = Service(tmp_path / "state.db", saved(tmp_path, "news", rw.LinearModel.of(weights)), **more)
    second(service, tmp_path, -weights)
    service.experiment(ExperimentRequest("test", kind, "news", "fixed")).result(10)
    settled(service)
    return service


X = np.float32(np.arange(18).reshape(6, 3))


# --------------------------------------------------------------------------------------------------- T3


@pytest.mark.parametrize(("users", "runs"), [(30, 200), (300, 40)])
def test_t3_equal_models_are_not_told_apart_because_some_users_ask_often(users, runs):
    decided = sum(split(users, 0.0, False, seed, rankings=2_000) is not None for seed in range(runs))
    assert decided / runs <= most(runs)


@pytest.mark.thorough
def test_t3_a_lift_is_found_among_many_users_and_equal_models_are_left_open():
    assert sum(split(10_000, 0.08, False, seed) == "b" for seed in range(200)) >= 0.7 * 200
    assert sum(split(10_000, 0.0, False, seed) is not None for seed in range(200)) / 200 <= most(200)


def test_t3_only_the_first_ranking_of_a_user_counts_also_after_a_restart(tmp_path):
    service = begun(tmp_path)
    for number in range(60):
        shown = service.rank(RankRequest(ids=IDS, user=f"user {number % 7}"), X)
        service.feedback(Feedback(f"event {number}", shown.ranking, grades=[1.0, 0, 0, 0, 0, 0])).result(10)
    settled(service)
    assert service.experiments()[0].difference.n == 7
    live = service.log.replay.experiments["test"].to_dict()
    service.close()
    service = Service(tmp_path / "state.db")
    assert service.log.replay.experiments["test"].to_dict() == live
    shown = service.rank(RankRequest(ids=IDS, user="user 3"), X)
    service.feedback(Feedback("again", shown.ranking, grades=[1.0, 0, 0, 0, 0, 0])).result(10)
    without = service.rank(RankRequest(ids=IDS), X)  # nobody is named: the ranking is the unit
    service.feedback(Feedback("nobody", without.ranking, grades=[1.0, 0, 0, 0, 0, 0])).result(10)
    assert settled(service).experiments["test"].account.sequence.n == 8
    service.close()


def test_t3_rankings_without_a_click_count_as_0(tmp_path):
    """A model clicked in 30 %, always at rank 1, is not better than one that is always clicked at rank 2."""
    service, random = begun(tmp_path), np.random.default_rng(5)
    events, clicked = [], {"news": 0, "fixed": 0}
    for number in range(400):
        shown = service.rank(RankRequest(ids=IDS, user=f"user {number % 300}"), X)
        rare = shown.model == "fixed"
        if rare and random.random() > 0.3:
            continue
        clicked[shown.model] += 1
        events.append(Feedback(f"event {number}", shown.ranking, clicks=[shown.items[0 if rare else 1].id]))
    for done in [service.feedback(one) for one in events]:
        done.result(10)
    service.close()
    service = Service(tmp_path / "state.db", window=0)  # all windows have ended
    settled(service)
    (found,) = service.experiments()
    assert found.difference.n == 300
    assert found.difference.mean < -0.2
    assert found.decided == "news"
    assert settled(service).models["fixed"].clicked == sum(clicked.values())  # both learn from all of them
    service.close()
    with closing(open_to_read(tmp_path / "state.db")) as db:
        again = Replay.at(db, from_nothing=True).experiments["test"]
    assert again.answer().difference == found.difference


def test_t3_a_ranking_closed_without_feedback_is_not_learned_from(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    second(service, tmp_path)
    service.experiment(ExperimentRequest("test", "split", "news", "fixed", share=0.5)).result(10)
    settled(service)
    shown = service.rank(RankRequest(ids=IDS, user="a"), X)
    service.close_ranking(shown.ranking).result(10)
    replay = settled(service)
    assert (replay.models["news"].lists, replay.experiments["test"].account.sequence.n) == (0, 1)
    service.close()


def test_t3_both_sides_are_measured_by_the_measure_of_the_model(tmp_path):
    one, two = (rw.LinearModel.of(np.eye(3)[0], measure=measure) for measure in ("RR@10", "nDCG@10"))
    service = Service(tmp_path / "state.db", saved(tmp_path, "news", one) | saved(tmp_path, "fixed", two))
    service.experiment(ExperimentRequest("test", "split", "news", "fixed")).result(10)
    settled(service)
    for number in range(20):
        shown = service.rank(RankRequest(ids=IDS, user=f"{number}"), X)
        service.feedback(Feedback(f"{number}", shown.ranking, grades={shown.items[1].id: 1.0})).result(10)
    assert settled(service).experiments["test"].account.total == 10.0  # RR is 1/2 on both sides
    service.close()


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
    st.integers(1, 7),
)
def test_t3_the_order_in_which_rankings_are_closed_changes_nothing(units, random, cut):
    """Users count in the order of coming: a click that closes a ranking sooner must not choose who is next."""
    account = SplitAccount(0.5, 0.05)
    closed = [(number, side, value) for number, (side, value) in enumerate(units)]
    random.shuffle(closed)
    for first in range(0, len(closed), cut):
        account.add(closed[first : first + cut])
        account = SplitAccount.from_dict(0.5, json.loads(json.dumps(account.to_dict())))
    side, y = np.array(units).T
    expected = ConfidenceSequence(0.05, span=(-2.0, 2.0))
    expected.update(differences(y, side == 1, 0.5)[0])
    assert account.sequence.to_dict() == expected.to_dict()
    assert account.waiting == {}


def test_t3_the_terms_have_the_mean_of_the_difference_given_the_past():
    """By enumeration of all assignments of four users, given their outcomes on either side."""
    outcome, share = np.array([[0.2, 1.0], [0.0, 0.3], [1.0, 0.4], [0.6, 0.6]]), 0.3
    for past in range(8):
        before = np.array([past >> 0 & 1, past >> 1 & 1, past >> 2 & 1])
        mean = 0.0
        for last, chance in ((1, share), (0, 1 - share)):
            side = np.array([*before, last])
            x, _ = differences(outcome[np.arange(4), side], side == 1, share)
            mean += chance * x[3]
        assert mean == pytest.approx(outcome[3, 1] - outcome[3, 0])


@pytest.mark.parametrize("kind", ["split", "shadow", "interleave"])
def test_t3_a_read_out_says_what_it_is_about(tmp_path, kind):
    service = begun(tmp_path, kind)
    told(service, 5)
    settled(service)
    (found,) = service.experiments()
    assert set(found.scope) == {"population", "unit", "read", "choices"}
    assert all(found.scope.values())
    assert "any time" in found.scope["read"]
    assert found.scope["unit"].startswith("user" if kind == "split" else "ranking")
    assert found.preconditions
    assert all(one.endswith(("(met)", "(NOT met)", "(assumed)")) for one in found.preconditions)
    assert found.decided is None
    service.close()


def test_t3_preconditions_that_are_known_to_fail_are_not_met(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))  # it learns, so the difference changes
    second(service, tmp_path)
    service.experiment(ExperimentRequest("test", "split", "news", "fixed")).result(10)
    settled(service)
    assert any("the same for all users" in one and "(NOT met)" in one for one in service.experiments()[0].preconditions)
    service.change("freeze", "news", {}).result(10)
    settled(service)
    assert not any("(NOT met)" in one for one in service.experiments()[0].preconditions)
    service.close()
    crossed = Experiment(ExperimentRequest("test", "split", "a", "b"), 1)
    crossed.account.add((number, number % 2, float(number % 2 == (number > 800))) for number in range(8_000))
    found = crossed.answer()
    assert found.difference.low > found.difference.high
    assert found.decided is None
    assert any("(NOT met)" in one for one in found.preconditions)


@pytest.mark.parametrize("kind", ["shadow", "interleave"])
def test_t3_labels_from_clicks_are_named_where_they_matter(tmp_path, kind):
    service = begun(tmp_path, kind)
    shown = service.rank(RankRequest(ids=IDS), X)
    service.feedback(Feedback("a", shown.ranking, clicks=[shown.items[0].id])).result(10)
    service.close_ranking(shown.ranking).result(10)
    settled(service)
    unmet = [one for one in service.experiments()[0].preconditions if "(NOT met)" in one]
    assert len(unmet) == (kind == "shadow")
    service.close()


def test_t3_interleaving_is_fair_whoever_returns():
    """Coins are those of the ranking: one reader who always clicks the same place favors neither side."""
    from rankwise.serve.experiments import interleave

    runs, decided = 40, 0
    for run in range(runs):
        of = Experiment(ExperimentRequest("test", "interleave", "a", "b"), run)
        for number in range(100):
            order, team = interleave(np.arange(4), np.arange(4), of.seed(f"ranking {number}"))
            of.account.update(1.0 - 2.0 * team[order[1]])
        decided += of.answer().decided is not None
    assert decided / runs <= most(runs)


# --------------------------------------------------------------------------------------------------- T11


def test_t11_the_risk_bound_may_be_polled():
    runs, rounds = 100, 5_000
    radius = radii(rounds, anytime=True)
    for risk in worlds(rounds).values():
        assert sum(ever_false(risk, radius, seed) for seed in range(runs)) / runs <= most(runs)
    fixed = radii(rounds, anytime=False)  # the check can fail: the bound for one n is ever false more often
    assert sum(ever_false(worlds(rounds)["risk 0.3"], fixed, seed) for seed in range(runs)) / runs > most(runs) / 2


@pytest.mark.thorough
@pytest.mark.parametrize("world", worlds(1))
def test_t11_the_risk_bound_holds_for_fifty_thousand_rounds(world):
    radius = radii(ROUNDS, anytime=True)
    assert sum(ever_false(worlds(ROUNDS)[world], radius, seed) for seed in range(1_000)) / 1_000 <= most(1_000)


def test_t11_ledger_and_certificate_hold_at_all_times_and_say_where_labels_came_from(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    told(service, 20)
    settled(service)
    ledger, certificate = service.ledger("news"), service.certificate("news")
    (bound,) = ledger.bounds
    assert bound.name.endswith("at all times")
    assert bound.applies is None
    assert certificate.bounds == ledger.bounds
    loss, counted = ledger.curve[-1][2:4]
    assert ledger.curve[-1][5] == bound.value > loss / counted
    assert "judged so far" in certificate.statement
    assert certificate.scope["read"].startswith("at any time")
    assert not any("NOT met" in one for one in certificate.preconditions)
    shown = service.rank(RankRequest(ids=IDS), X)
    service.feedback(Feedback("click", shown.ranking, clicks=[shown.items[0].id])).result(10)
    service.close_ranking(shown.ranking).result(10)
    settled(service)
    (bound,) = service.ledger("news").bounds
    assert bound.applies is False
    assert any("independent draws" in one and "(NOT met)" in one for one in bound.preconditions)
    assert any("labeled by clicks" in one and "(NOT met)" in one for one in service.certificate("news").preconditions)
    assert np.isnan(service.ledger("news").curve[-1][5])
    service.close()
    service = Service(tmp_path / "state.db")
    assert service.ledger("news").bounds[0].applies is False  # a restart does not forget it
    service.close()
