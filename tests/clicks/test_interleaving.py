"""Interleaving and A/B tests: fair drafts, credits, and sequences that may be looked at all the time."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from experiments import clicks_runs
from experiments.clicks import binomial_limit
from rankwise import clicks
from rankwise.clicks.checks import coin_refuted
from rankwise.clicks.preferences import outcomes
from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees import ConfidenceSequence


def by_definition(a, b, k, coins):
    """Team draft, pick by pick."""
    shown, team = [], []
    for number in range(min(k, len(a))):
        turn = coins[number // 2] if number % 2 == 0 else 1 - coins[number // 2]
        shown.append(next(one for one in (a, b)[turn] if one not in shown))
        team.append(int(turn))
    return shown, team


@given(st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 8), st.integers(0, 1000))
def test_a_draft_is_that_of_the_definition(a, b, k, seed):
    page = clicks.team_draft(a, b, k, np.random.default_rng(seed))
    coins = np.random.default_rng(seed).integers(0, 2, size=(1, -(-min(k, 6) // 2)))[0]
    assert (page.rows.tolist(), page.team.tolist()) == by_definition(list(a), list(b), k, coins)


@given(st.permutations(range(5)), st.permutations(range(5)), st.integers(0, 100))
def test_teams_are_balanced_and_pages_hold_the_best_of_both(a, b, seed):
    page = clicks.team_draft(a, b, 4, np.random.default_rng(seed))
    assert len(set(page.rows.tolist())) == 4
    assert page.team.sum() == 2
    assert a[0] in page.rows
    assert b[0] in page.rows


def test_many_pages_at_once_are_those_of_one_after_the_other():
    random = np.random.default_rng(0)
    a, b = (np.array([random.permutation(7) for _ in range(50)]) for _ in range(2))
    coins = np.random.default_rng(3).integers(0, 2, size=(50, 3))
    page = clicks.team_draft(a, b, 5, np.random.default_rng(3))
    for number in range(50):
        found = by_definition(a[number].tolist(), b[number].tolist(), 5, coins[number])
        assert (page.rows[number].tolist(), page.team[number].tolist()) == found


def test_readers_who_do_not_care_prefer_nobody():
    """Exact: over all coins the mean credit of one click at any fixed place is 0."""
    a, b = [0, 1, 2, 3], [2, 0, 3, 1]
    for place in range(4):
        credit = 0.0
        for coins in itertools.product((0, 1), repeat=2):
            _, team = by_definition(a, b, 4, coins)
            credit += clicks.credits(team, [number == place for number in range(4)])
        assert credit == 0


def test_credits():
    team, click = [[0, 1, 1], [0, 1, 0], [0, 1, 0]], [[1, 1, 1], [1, 0, 1], [0, 0, 0]]
    assert clicks.credits(team, click).tolist() == [-1, 1, 0]
    assert clicks.credits(team, click, how="share").tolist() == pytest.approx([-1 / 3, 1, 0])
    with pytest.raises(RankwiseError, match="'sign' or 'share'"):
        clicks.credits([0], [1], how="clicks")
    with pytest.raises(DataError, match="0 or 1"):
        clicks.credits([2], [1])


def test_orders_of_other_documents_are_refused():
    with pytest.raises(DataError, match="same documents"):
        clicks.team_draft([1, 2], [1, 3], 2, np.random.default_rng(0))


def test_a_page_can_be_made_again_from_its_impression():
    queries = rw.make_lists(5, documents=8, features=3, random_state=0)
    a, b = rw.LinearModel.of([1.0, 0.0, 0.0]), rw.LinearModel.of([0.0, 1.0, 0.0])
    draft = clicks.TeamDraft(a, b, k=4)
    first, again = (draft.page(queries[0], impression=7) for _ in range(2))
    assert first.rows.tolist() == again.rows.tolist()
    teams = {tuple(draft.page(queries[0], impression=number).team.tolist()) for number in range(30)}
    assert len(teams) == 4
    with pytest.raises(RankwiseError, match="without predict"):
        clicks.TeamDraft(a, [1, 2])


def test_a_clear_preference_is_decided_and_its_mirror_image_is_the_other():
    x = np.random.default_rng(0).choice([1.0, 0.0, -1.0], 2_000, p=[0.4, 0.4, 0.2])
    found, mirrored = clicks.preference(x), clicks.preference(-x)
    assert (found.decided, mirrored.decided) == ("a", "b")
    assert found.decided_at == mirrored.decided_at
    assert found.low <= 0.2 <= found.high
    assert clicks.preference(x[: found.decided_at - 1]).decided is None
    assert clicks.preference(x, grid=2).decided_at == found.decided_at
    assert "a is preferred" in repr(found)
    assert len(found.plot().axes) == 1


@pytest.mark.parametrize("credit", [[], [2.0], [np.nan], [[1.0]]])
def test_what_is_no_credit_is_refused(credit):
    with pytest.raises(DataError, match=r"numbers in \[-1, 1\]"):
        clicks.preference(credit)


def test_an_odd_grid_has_no_mean_of_0():
    with pytest.raises(RankwiseError, match="even number"):
        clicks.preference([1.0], grid=3)


def test_looking_all_the_time_decides_few_null_runs():
    found = clicks_runs.null_runs(clicks_runs.Setting.make(queries=40), 100, 300)
    assert found["decided"] <= binomial_limit(100, found["delta"])


@pytest.mark.thorough
def test_looking_all_the_time_decides_delta_of_the_null_runs_at_most():
    found = clicks_runs.null_runs(clicks_runs.Setting.make(queries=40), 2_000, 1_000)
    assert found["decided"] <= binomial_limit(2_000, found["delta"])


def decided_share(preference, ties, delta, power, runs):
    """The share of fresh runs that have decided at the planned number."""
    plan = clicks.impressions_needed(preference, ties=ties, delta=delta, power=power)
    random = np.random.default_rng(99)
    chances = [(1 - ties + preference) / 2, ties, (1 - ties - preference) / 2]
    draws = random.choice([1.0, 0.0, -1.0], (runs, plan.queries), p=chances)
    return np.mean([clicks.preference(x, delta=delta, grid=2).decided == "a" for x in draws])


@pytest.mark.thorough
@pytest.mark.parametrize(("preference", "ties"), [(0.2, 0.5), (0.1, 0.2), (0.3, 0.6), (0.15, 0.5)])
def test_a_plan_reaches_the_share_that_it_promises(preference, ties):
    found = decided_share(preference, ties, 0.05, 0.8, 4_000)
    assert 0.8 - 2 * np.sqrt(0.16 / 4_000) <= found <= 0.87


def test_a_plan_is_enough_in_as_many_runs_as_it_says():
    plan = clicks.impressions_needed(0.25, ties=0.4, delta=0.1, power=0.7)
    assert 0.7 - 2 * np.sqrt(0.21 / 600) <= decided_share(0.25, 0.4, 0.1, 0.7, 600) <= 0.82
    assert "impressions for a mean credit of 0.25" in str(plan)
    with pytest.raises(RankwiseError, match="at most 1 - ties"):
        clicks.impressions_needed(0.7, ties=0.5)


# ----------------------------------------------------------------------------------------------------------------- A/B


def ab_log(a, b, sessions, seed, share=0.5):
    """Sessions of one document, which is clicked with probability a or b."""
    random = np.random.default_rng(seed)
    first = random.random(sessions) < share
    click = random.random(sessions) < np.where(first, a, b)
    return clicks.ClickLog.from_rows(
        session=np.arange(sessions), qid=np.zeros(sessions, int), docid=np.zeros(sessions, int),
        position=np.ones(sessions, int), click=click, version=np.where(first, "new", "old"),
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_an_ab_test_finds_the_difference(share):
    found = clicks.ab_test(ab_log(0.5, 0.3, 6_000, 0, share), versions=("new", "old"), share=share)
    assert found.decided == "new"
    assert found.low <= 0.2 <= found.high
    assert found.mean == pytest.approx(0.2, abs=0.05)


def test_t13_a_share_that_the_log_refutes_has_no_interval():
    """T13: a 90/10 log read with share=0.5 had an interval that excluded the truth."""
    log = ab_log(0.4, 0.4, 2_000, 0, share=0.9)
    found = clicks.ab_test(log, versions=("new", "old"))
    assert found.applies is False
    assert (found.decided, found.decided_at, found.interval) == (None, None, None)
    assert np.isnan(found.low)
    assert "no interval after 2,000 sessions" in repr(found)
    assert "sessions were assigned to new with probability 0.5, independently (the log: 1,8" in repr(found)
    assert found.to_dict()["low"] is None
    right = clicks.ab_test(log, versions=("new", "old"), share=0.9)
    assert right.applies is None
    assert right.low <= 0 <= right.high


def test_t13_few_fair_coins_are_refuted_however_often_they_are_looked_at():
    heads = np.cumsum(np.random.default_rng(0).random((300, 400)) < 0.3, axis=1)
    ever = [any(coin_refuted(int(h), t, 0.3) for t, h in enumerate(run, start=1)) for run in heads]
    assert sum(ever) <= binomial_limit(300, 0.001)
    assert coin_refuted(560, 1_000, 0.5) is False
    assert coin_refuted(3_360, 6_000, 0.5) is True


def test_t14_bounds_that_have_crossed_name_no_winner():
    """T14: a first, then b: no constant mean agrees, so there is no winner."""
    found = clicks.preference(np.r_[np.ones(300), -np.ones(300)])
    assert found.lows[-1] > found.highs[-1]
    assert (found.decided, found.decided_at, found.interval, found.applies) == (None, None, None, False)
    assert "a precondition is refuted: each impression has the same mean credit" in repr(found)
    assert "is preferred" not in found.summary()
    coarse = clicks.preference(np.r_[np.ones(8), -np.ones(2_000)], grid=2)
    assert coarse.decided is None
    sequence = ConfidenceSequence()
    sequence.update(np.r_[np.ones(300), np.zeros(300)])
    assert [one.met for one in sequence.interval().preconditions][1] is False


def test_preferences_say_what_they_are_about():
    found = clicks.preference([1.0, -1.0] * 20)
    assert found.scope.unit == "impression"
    assert "read: at any time" in found.summary()
    assert found.to_dict()["scope"]["choices"].startswith("when to stop")
    assert clicks.ab_test(ab_log(0.4, 0.4, 100, 0)).scope.unit.startswith("session")


def test_an_ab_test_without_a_difference_is_decided_rarely():
    decided = [clicks.ab_test(ab_log(0.4, 0.4, 400, seed), delta=0.1, grid=2).decided for seed in range(100)]
    assert sum(one is not None for one in decided) <= binomial_limit(100, 0.1)


def test_outcomes():
    log = clicks.ClickLog.from_rows(
        session=[1, 1, 2, 2], qid=[0] * 4, docid=[0, 1, 0, 1], position=[1, 2, 1, 2], click=[0, 1, 0, 0]
    )
    assert outcomes(log, "clicked").tolist() == [1, 0]
    assert outcomes(log, "first").tolist() == [0.5, 0]
    with pytest.raises(DataError, match="requires the column version"):
        clicks.ab_test(log)
