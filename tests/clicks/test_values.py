"""Bounds from clicks: their terms are those of the definition, their means are below the truth, their range holds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from experiments import clicks_runs
from experiments.clicks import binomial_limit
from rankwise import clicks
from rankwise.clicks.accounts import ClickAccount
from rankwise.clicks.log import ClickLog
from rankwise.clicks.rankings import discounts, ranks_of
from rankwise.errors import DataError, DataWarning, RankwiseError

SHARES = st.floats(0.05, 1.0)


def pages(order, clicked, documents=None, **more):
    """A log of one query whose sessions show the same order, each with its own clicked places."""
    m = len(order)
    documents = m if documents is None else documents
    names = [f"d{number}" for number in range(documents)]
    queries = rw.Queries.from_arrays(np.zeros((documents, 1)), qid=["q"] * documents, docid=names)
    sessions = len(clicked)
    log = ClickLog.from_rows(
        session=np.repeat(np.arange(sessions), m),
        qid=["q"] * (sessions * m),
        docid=[f"d{d}" for d in order] * sessions,
        position=list(range(1, m + 1)) * sessions,
        click=[place in one for one in clicked for place in range(m)],
        **more,
    )
    return log.join(queries)


def account(log, scores, model, tau, k, over=None):
    """The account of a value (over None), a gain over the log ("logged"), or over other scores."""
    documents = log.documents
    old = None if over is None or isinstance(over, str) else ranks_of(documents, over)
    found = ClickAccount("test", model, (tau,), k, documents, ranks_of(documents, scores), old, isinstance(over, str))
    found.add(log)
    return found


ends = st.tuples(SHARES, SHARES, SHARES).map(sorted)


@given(
    st.lists(st.tuples(ends, st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=6),
    st.floats(0.02, 0.9),
    st.integers(1, 6),
    st.booleans(),
)
def test_the_mean_of_a_session_is_at_most_the_truth(rows, tau, k, all_shown):
    """By linearity the mean over clicks is that of sessions with one click each, weighted by theta a."""
    theta = clicks.Propensities(
        theta=[e[1] for e, *_ in rows], low=[e[0] for e, *_ in rows], high=[e[2] for e, *_ in rows]
    )
    m, k = len(rows), min(k, len(rows))
    a = np.array([one for _, one, _, _ in rows])
    new, other = np.array([s for *_, s, _ in rows]), np.array([s for *_, s in rows])
    shown = m if all_shown else m - 1  # one candidate may not be on the page
    log = pages(range(shown), [()] + [(place,) for place in range(shown)], documents=m)
    discount = discounts(k)
    d_new = discount[np.minimum(ranks_of(log.documents, new), k + 1)]
    d_other = discount[np.minimum(ranks_of(log.documents, other), k + 1)]
    d_logged = np.array([discount[min(place + 1, k + 1)] if place < shown else 0.0 for place in range(m)])
    chance = theta.theta[:shown] * a[:shown]
    for over, truth in ((None, a @ d_new), ("logged", a @ (d_new - d_logged)), (other, a @ (d_new - d_other))):
        terms = account(log, new, theta, tau, k, over).terms(0)
        mean = terms.values[0] + (terms.values[1:] - terms.values[0]) @ chance
        assert mean <= truth + 1e-9
        assert (terms.values >= -terms.loss - 1e-9).all()
        assert (terms.values <= terms.gain + 1e-9).all()


@given(st.lists(SHARES, min_size=2, max_size=4), st.floats(0.05, 0.9), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_range_is_attained_by_some_page_and_exceeded_by_none(shares, tau, random):
    """All orders and all clicks of a small page, with every candidate on it."""
    low = [share * random.uniform(0.5, 1.0) for share in shares]
    model = clicks.Propensities(theta=shares, low=low, high=[min(1.0, 1.2 * share) for share in shares])
    m = len(shares)
    log = pages(range(m), [one for n in range(m + 1) for one in itertools.combinations(range(m), n)])
    values, gains = [], []
    for order in itertools.permutations(range(m)):
        scores = -np.argsort(order).astype(float)
        values.append(account(log, scores, model, tau, m).terms(0))
        gains.append(account(log, scores, model, tau, m, "logged").terms(0))
    assert max(one.values.max() for one in values) == pytest.approx(values[0].gain)
    assert max(one.values.max() for one in gains) == pytest.approx(gains[0].gain)
    assert -min(one.values.min() for one in gains) == pytest.approx(gains[0].loss)


def test_a_session_is_worth_its_clicks_over_propensities():
    log = pages([2, 0, 1], [(0, 2)])
    model = clicks.given([1.0, 0.4, 0.1])
    new = np.array([3.0, 2.0, 1.0])  # d0, d1, d2
    d = discounts(3)
    value = account(log, new, model, 0.2, 3).terms(0).values[0]
    assert value == pytest.approx(d[3] / 1.0 + d[2] / 0.2)  # d2 is third, d1 second and clipped
    change = account(log, new, model, 0.2, 3, "logged").terms(0).values[0]
    assert change == pytest.approx((d[3] - d[1]) / 1.0 + (d[2] - d[3]) / 0.2)
    fall = account(log, np.array([3.0, 1.0, 2.0]), model, 0.2, 2, "logged").terms(0).values[0]
    assert fall == pytest.approx((discounts(2)[2] - 1.0) / 1.0)  # d1 stays beyond the cut-off


def test_trust_bias_that_is_known_is_subtracted():
    theta, beta, a = np.array([0.8, 0.5]), np.array([0.1, 0.05]), np.array([0.3, 0.6])
    log = pages([0, 1], [(), (0,), (1,)])
    model = clicks.given(theta, beta=beta)
    terms = account(log, np.array([0.0, 1.0]), model, 0.1, 2).terms(0)
    chance = theta * a + beta
    mean = terms.values[0] + (terms.values[1:] - terms.values[0]) @ chance
    assert mean == pytest.approx(a @ discounts(2)[[2, 1]])


def test_with_exploration_the_propensity_is_that_of_the_policy():
    """The mean over all shuffled pages and clicks of a pool of three, two shown, is the truth."""
    theta, a, share = np.array([1.0, 0.5]), np.array([0.2, 0.5, 0.9]), 0.3
    new = np.array([0.0, 1.0, 2.0])
    total = 0.0
    policy = [((0, 1), 1 - share)] + [(order, share / 6) for order in itertools.permutations(range(3), 2)]
    for order, chance in policy:
        rank = [{0: 1, 1: 2, 2: 0}[d] for d in order]  # the logged page is 0, 1
        log = pages(order, [(), (0,), (1,)], 3, exploration=[share] * 6, pool=[3] * 6, logged_rank=rank * 3)
        terms = account(log, new, clicks.given(theta), 1e-3, 2).terms(0)
        total += chance * float(terms.values[1:] @ (theta * a[list(order)]))
    assert total == pytest.approx(a @ discounts(2)[np.minimum(ranks_of(log.documents, new), 3)])


DOCUMENTS = st.tuples(st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1))


@given(st.lists(DOCUMENTS, min_size=3, max_size=5), st.data())
@settings(max_examples=40)
def test_t4_candidates_beyond_the_pool_are_charged_what_they_lose(rows, data):
    """T4: the mean over all pages and clicks is at most the truth, whichever candidates the pool holds."""
    m, shown = len(rows), 2
    pool = sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=shown, max_size=m)))
    share = data.draw(st.sampled_from([0.3, 1.0]))
    a, new, old = (np.array(column) for column in zip(*rows, strict=True))
    theta, tau = np.array([0.9, 0.5]), data.draw(st.sampled_from([1e-3, 0.4]))
    beta = np.array([0.0, 0.0]) if data.draw(st.booleans()) else np.array([0.1, 0.05])
    orders = list(itertools.permutations(pool, shown))
    policy = [(order, share / len(orders)) for order in orders] + [(tuple(pool[:shown]), 1 - share)]
    discount = discounts(shown)
    total = {"value": 0.0, "logged": 0.0, "other": 0.0}
    for order, chance in policy:
        rank = [pool.index(d) + 1 if d in pool[:shown] else 0 for d in order]
        log = pages(order, [(), (0,), (1,)], m, exploration=[share] * 6, pool=[len(pool)] * 6, logged_rank=rank * 3)
        for name, over in (("value", None), ("logged", "logged"), ("other", old)):
            terms = account(log, new, clicks.given(theta, beta=beta), tau, shown, over).terms(0)
            mean = terms.values[0] + (terms.values[1:] - terms.values[0]) @ (theta * a[list(order)] + beta)
            total[name] += chance * float(mean)
            assert (terms.values >= -terms.loss - 1e-9).all()
            assert (terms.values <= terms.gain + 1e-9).all()
    d_new, d_old = (discount[np.minimum(ranks_of(log.documents, one), shown + 1)] for one in (new, old))
    d_logged = np.array([discount[pool.index(d) + 1] if d in pool[:shown] else 0.0 for d in range(m)])
    assert total["value"] <= a @ d_new + 1e-9
    assert total["logged"] <= a @ (d_new - d_logged) + 1e-9
    assert total["other"] <= a @ (d_new - d_old) + 1e-9
    if len(pool) == m and tau == 1e-3:  # nothing is beyond the pool, and nothing is clipped
        assert total["other"] == pytest.approx(a @ (d_new - d_old))


@pytest.mark.parametrize("name", clicks_runs.POOLS)
def test_t4_no_bound_credits_what_was_never_explored(name):
    """T4: over 50 logs, a twentieth of the experiment."""
    found = clicks_runs.beyond_pool(clicks_runs.POOLS[name], logs=50, sessions=1_000)
    assert found["missed"] <= binomial_limit(50, found["delta"])
    assert found["truth"] < 0


def test_t4_the_world_of_the_report():
    log, new, old = clicks_runs.POOLS["all old ones beyond the pool, attractiveness 0.9"].log(4_000, 0)
    with pytest.warns(DataWarning, match="draw shuffled pages from all candidates"):
        found = clicks.gain(log, new, clicks.given(clicks_runs.POOL_THETA), over=old, tau=0.05)
    assert found.lower <= -1.793


def test_t4_a_policy_that_the_log_does_not_tell_is_refused():
    lists = rw.make_lists(10, documents=6, features=2, random_state=0)
    model = clicks.given([1.0, 0.5, 0.3, 0.2])
    log = clicks.simulate(lists, lists.X[:, 0], 50, shown=4, exploration=0.5)
    for function, settings_of in ((clicks.value, {}), (clicks.gain, {"over": lists.X[:, 0]}), (clicks.gain, {})):
        with pytest.raises(DataError, match="requires the column logged_rank"):
            function(replace(log, logged_rank=None), lists.X[:, 1], model, tau=0.1, **settings_of)
    always = clicks.simulate(lists, lists.X[:, 0], 50, shown=4, exploration=1.0)
    assert clicks.value(replace(always, logged_rank=None), lists.X[:, 1], model, tau=0.1).n == 50
    for function, ranker in ((clicks.gain, lists.X[:, 1]), (clicks.value, "logged")):
        with pytest.raises(DataError, match="requires the column logged_rank"):
            function(replace(always, logged_rank=None), ranker, model, tau=0.1)
    with pytest.raises(DataError, match="a pool of 9, but its query has 6 candidates"):
        clicks.value(replace(log, pool=np.full(50, 9)), lists.X[:, 1], model, tau=0.1)


@pytest.mark.parametrize("how", ["blocks", "sessions", "copies"])
def test_t12_sessions_that_are_given_again_are_refused(how):
    """T12: whoever reads sessions refuses those that it has read, block by block and within a block."""
    lists = rw.make_lists(30, documents=5, features=2, random_state=3)
    log = clicks.simulate(lists, {"a": lists.X[:, 0], "b": lists.X[:, 1]}, 400, shown=5, swaps=True)
    again = {
        "blocks": lambda: [log] * 20,
        "sessions": lambda: log[np.tile(np.arange(len(log)), 20)],
        "copies": lambda: (log[first : first + 200] for first in (0, 200, 100)),
    }[how]
    model = clicks.given(1 / np.arange(1, 6))
    readers = [
        lambda sessions: clicks.value(sessions, lists.X[:, 1], model, tau=0.1),
        lambda sessions: clicks.gain(sessions, lists.X[:, 1], model, tau=0.1),
        clicks.by_swaps,
        clicks.harvest,
    ]
    if how == "sessions":
        readers.append(clicks.ab_test)
    for read in readers:
        with pytest.raises(DataError, match="session ids must be unique, got"):
            read(again())


def test_values_say_what_they_are_about():
    log = pages([0, 1], [(0,), (1,)])
    for function in (clicks.value, clicks.gain):
        found = function(log, np.array([0.0, 1.0]), clicks.given([1.0, 0.5]), tau=0.1)
        assert found.scope.unit == "session"
        assert "this is the one look at a log whose end was fixed beforehand (assumed)" in found.summary()
        assert "read: once, at a log whose end was fixed beforehand" in found.summary()
        assert found.to_dict()["scope"]["population"] == found.scope.population


@given(st.floats(1.0, 3.0), st.integers(0, 50))
@settings(max_examples=15)
def test_larger_upper_ends_only_lower_the_bound(factor, seed):
    queries = rw.make_lists(20, documents=5, features=2, random_state=seed)
    log = clicks.simulate(queries, queries.X[:, 0], 300, shown=5, random_state=seed)
    theta = 1 / np.arange(1, 6)
    tight = clicks.value(log, queries.X[:, 1], clicks.given(theta), tau=0.2)
    wide = clicks.value(log, queries.X[:, 1], clicks.given(theta, high=factor * theta), tau=0.2)
    assert wide.lower <= tight.lower + 1e-3  # bets on another scale differ a little


def test_blocks_give_what_the_whole_log_gives():
    queries = rw.make_lists(30, documents=12, features=3, random_state=3)
    log = clicks.simulate(queries, queries.X[:, 0], 501, random_state=1)
    blocks = [log[:100], log[100:101], log[101:]]
    found = []
    for function in (clicks.value, clicks.gain):
        for one in (log, blocks):
            with pytest.warns(DataWarning, match="no session showed"):
                found.append(function(one, queries.X[:, 1], clicks.given(1 / np.arange(1, 11)), tau=0.1).to_dict())
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_the_bound_does_not_depend_on_the_thread_or_the_call():
    queries = rw.make_lists(30, documents=8, features=3, random_state=3)
    log = clicks.simulate(queries, queries.X[:, 0], 400, shown=8)
    one, other = (clicks.gain(log, queries.X[:, 1], clicks.given(1 / np.arange(1, 9)), tau=0.1) for _ in range(2))
    assert one == other


def test_several_tau_are_paid_for():
    queries = rw.make_lists(30, documents=8, features=3, random_state=3)
    log = clicks.simulate(queries, queries.X[:, 0], 400, shown=8)
    model = clicks.given(1 / np.arange(1, 9))
    each = [clicks.value(log, queries.X[:, 1], model, tau=tau, delta=0.05).lower for tau in (0.1, 0.4)]
    both = clicks.value(log, queries.X[:, 1], model, tau=(0.1, 0.4), delta=0.1)
    assert both.lower == max(each)
    assert both.alpha == 0.05


def test_ends_are_paid_for_and_sessions_are_kept_apart():
    queries = rw.make_lists(30, documents=4, features=3, random_state=3)
    log = clicks.simulate(queries, queries.X[:, 0], 4_000, shown=4, swaps=True)
    first, second = log.split((0.5, 0.5))
    model = clicks.by_swaps(first, delta=0.02)
    found = clicks.gain(second, queries.X[:, 1], model, tau=0.1, delta=0.05)
    assert found.paid == pytest.approx(0.02)
    assert found.alpha == pytest.approx(0.03)
    assert "times the examination of position 1" in found.of
    with pytest.raises(RankwiseError, match="2,000 of these 4,000 sessions were used to learn the propensities"):
        clicks.gain(log, queries.X[:, 1], model, tau=0.1)
    with pytest.raises(RankwiseError, match=r"delta must be above 0\.02, .* got 0\.01"):
        clicks.gain(second, queries.X[:, 1], model, tau=0.1, delta=0.01)
    ranker = rw.RidgeRanker(alpha=1.0, target="labels", balanced=False)
    ranker.fit(first.with_propensities(clicks.given(1 / np.arange(1, 5)), tau=0.1))
    assert clicks.gain(second, ranker, model, tau=0.1).preconditions[3].met is True
    with pytest.raises(RankwiseError, match="sessions were used to learn the ranker"):
        clicks.value(log, ranker, clicks.given(1 / np.arange(1, 5)), tau=0.1)


def test_a_position_that_is_not_known_from_below_allows_no_gain():
    log = pages([0, 1], [(0,), (1,)])
    model = clicks.given([1.0, 0.5], low=[1.0, 0.0], high=[1.0, 1.0])
    with pytest.warns(DataWarning, match="lower end of the propensity of position 2 is 0"):
        found = clicks.gain(log, np.array([0.0, 1.0]), model, tau=0.1)
    assert found.lower == -math.inf
    assert not found.certified
    assert found.to_dict()["lower"] is None
    assert clicks.value(log, np.array([0.0, 1.0]), model, tau=0.1).lower >= 0


def test_documents_that_were_never_shown_are_named_with_the_exploration_they_need():
    queries = rw.make_lists(20, documents=20, features=2, random_state=0)
    log = clicks.simulate(queries, queries.X[:, 0], 500)
    model = clicks.given(1 / np.arange(1, 11))
    with pytest.warns(DataWarning, match="requires exploration: shuffling the page in 34% of the sessions"):
        found = clicks.value(log, -queries.X[:, 0], model, tau=0.05)
    assert found.lower < 0.3
    with pytest.warns(DataWarning, match="even always shuffling gives"):
        clicks.value(log, -queries.X[:, 0], model, tau=0.5)
    explored = clicks.simulate(queries, queries.X[:, 0], 500, exploration=0.5)
    assert clicks.value(explored, -queries.X[:, 0], model, tau=0.05).warnings == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tau": 0.0}, "'tau' parameter of gain must be a float in"),
        ({"tau": ()}, "'tau' parameter of gain must be a float in .*it is empty"),
        ({"tau": 0.1, "delta": 1.5}, "'delta' parameter of gain must be a float in"),
        ({"tau": 0.1, "k": 0}, "'k' parameter of gain must be an int in"),
        ({"tau": 0.1, "k": 9}, "k must be at most 2"),
        ({"tau": 0.1, "over": "random"}, "over must be 'logged'"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    log = pages([0, 1], [(0,)])
    with pytest.raises(RankwiseError, match=words):
        clicks.gain(log, np.array([0.0, 1.0]), clicks.given([1.0, 0.5]), **arguments)


def test_what_cannot_be_valued_is_refused():
    log, model = pages([0, 1], [(0,)]), clicks.given([1.0, 0.5])
    bare = ClickLog.from_rows(session=[1], qid=[1], docid=[1], position=[1], click=[0])
    with pytest.raises(DataError, match=r"requires the candidates .* log\.join"):
        clicks.value(bare, [1.0], model, tau=0.1)
    with pytest.raises(DataError, match="one value for each of 2 candidates"):
        clicks.value(log, [1.0], model, tau=0.1)
    with pytest.raises(DataError, match="must cover all 2 positions of the log, got 1"):
        clicks.value(log, [1.0, 2.0], clicks.given([1.0]), tau=0.1)
    gap = ClickLog.from_rows(session=[1], qid=["q"], docid=["d0"], position=[2], click=[0]).join(log.documents)
    with pytest.raises(DataError, match="gain: session 1 has a gap between its positions"):
        clicks.gain(gap, [1.0, 2.0], model, tau=0.1)
    with pytest.warns(DataWarning, match="no session showed"):
        assert clicks.value(gap, [1.0, 2.0], model, tau=0.1).n == 1


def test_rankings_are_rankers_scores_or_lists_of_ids():
    log, model = pages([0, 1, 2], [(0,), (2,)]), clicks.given([1.0, 0.5, 0.3])
    by_scores = clicks.value(log, [1.0, 3.0, 2.0], model, tau=0.1)
    assert clicks.value(log, {"q": ["d1", "d2", "d0"]}, model, tau=0.1) == by_scores
    with pytest.raises(DataError, match="no query 'q'"):
        clicks.value(log, {"z": ["d1"]}, model, tau=0.1)
    assert clicks.value(log, "logged", model, tau=0.1).estimate > 0


# ----------------------------------------------------------------------------------------------------------- coverage

MET = [case for case in clicks_runs.CASES if case.met == "yes" and "harvest" not in case.name]


@pytest.fixture(scope="module")
def setting():
    return clicks_runs.Setting.make(queries=60)


@pytest.mark.parametrize("case", [case for case in MET if "swaps" not in case.name], ids=lambda case: case.name)
def test_few_bounds_miss_the_truth(setting, case):
    found = clicks_runs.coverage(setting, case, 40, 300)
    assert max(found["missed"].values()) <= binomial_limit(40, clicks_runs.DELTA)
    assert found["certified"]["worse"] <= binomial_limit(40, clicks_runs.DELTA)


@pytest.mark.thorough
@pytest.mark.parametrize("case", MET, ids=lambda case: case.name)
def test_bounds_miss_the_truth_with_probability_delta_at_most(setting, case):
    found = clicks_runs.coverage(setting, case, 300)
    assert max(found["missed"].values()) <= binomial_limit(300, clicks_runs.DELTA)
    assert found["certified"]["worse"] <= binomial_limit(300, clicks_runs.DELTA)


@pytest.mark.parametrize("name", ["propensities 37% too small", "cascade readers"])
def test_broken_preconditions_break_the_bound(setting, name):
    (case,) = (one for one in clicks_runs.CASES if one.name == name)
    assert clicks_runs.coverage(setting, case, 20)["missed"]["value"] >= 18


def test_two_experiments_at_once_are_refused():
    lists = rw.make_lists(10, documents=6, features=2, random_state=0)
    log = clicks.simulate(lists, lists.X[:, 0], 50, shown=4, swaps=True, exploration=0.5)
    with pytest.raises(DataError, match="mixes swaps and shuffled pages"):
        clicks.value(log, lists.X[:, 1], clicks.given([1.0, 0.5, 0.3, 0.2]), tau=0.1)


def test_mixed_sessions_bound_no_losses_against_another_ranking():
    lists = rw.make_lists(10, documents=6, features=2, random_state=0)
    model = clicks.given([1.0, 0.5, 0.3, 0.2])
    log = clicks.simulate(lists, lists.X[:, 0], 200, shown=4, exploration=0.5)
    whole = clicks.gain(log, lists.X[:, 1], model, over=lists.X[:, 0], tau=0.05)
    assert math.isfinite(whole.lower)
    as_logged = np.flatnonzero(np.bincount(log.session_of_row, weights=log.logged_rank != log.position) == 0)
    log.exploration[as_logged] = 0.0
    with pytest.warns(DataWarning, match="mixes sessions with and without shuffled pages"):
        assert clicks.gain(log, lists.X[:, 1], model, over=lists.X[:, 0], tau=0.05).lower == -math.inf
    log.exploration[:] = 0.0
    with pytest.raises(DataError, match="which its policy never shows"):
        clicks.value(log, lists.X[:, 1], model, tau=0.05)
