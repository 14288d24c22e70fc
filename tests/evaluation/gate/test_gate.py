"""What a gate answers: passed or not, at the level of the attempt, and nothing else that depends on the hold-out."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from experiments import gate as experiment
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.gate.asked import identify
from rankwise.evaluation.gate.gate import CHANGED
from rankwise.guarantees.holdout.intervals import mean_interval
from rankwise.guarantees.holdout.testing import level_of_attempt
from tests.strategies import few

LISTS = rw.make_lists(300, documents=8, features=4, random_state=3)
TRAIN, HOLDOUT = LISTS[:100], LISTS[100:]
GOOD, BAD = rw.RidgeRanker().fit(TRAIN), rw.RidgeRanker().fit(TRAIN[:1])
NOISE = np.random.default_rng(0).random((30, HOLDOUT.n_documents))


def gate(holdout=HOLDOUT, **given):
    return rw.Gate(
        holdout, **{"state": None, "at_least": 0.5, **given} if "better_than" not in given else {"state": None, **given}
    )


def kept(asked):
    """The attempts as they are stored."""
    return asked._state.attempts


# ------------------------------------------------------------------------------------------------------- the answer


def test_an_answer_is_that_of_the_bound_at_the_level_of_the_attempt():
    values = rw.evaluate(HOLDOUT, GOOD, "nDCG@10")["nDCG@10"]
    for passes in (0, 1):
        asked = gate(at_least=0.45)
        for noise in NOISE[:3]:
            asked.ask(noise)
        assert asked.passed == sum(one.passed for one in kept(asked))
        level = level_of_attempt(0.05, 4, asked.passed)
        low = mean_interval(values, level, ends="low").low
        threshold = low - 1e-6 if passes else low + 1e-6
        fixed = gate(at_least=threshold)
        for noise in -NOISE[:3]:
            assert not fixed.ask(np.where(HOLDOUT.y > 0, -10.0, noise))  # never passes
        answer = fixed.ask(GOOD)
        assert answer.level == level_of_attempt(0.05, 4, 0)
        if asked.passed == 0:
            assert answer.passed == bool(passes)


@few
@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=8))
def test_levels_follow_from_the_history_of_answers(history):
    asked = gate(at_least=0.6)
    best, worst = HOLDOUT.y * 1.0, -HOLDOUT.y * 1.0
    for attempt, good in enumerate(history, start=1):
        decision = asked.ask((best if good else worst) + attempt * 1e-3)
        assert decision.passed == bool(good)
        assert decision.attempt == attempt
        assert decision.level == level_of_attempt(0.05, attempt, sum(history[: attempt - 1]))
    assert (asked.attempts, asked.passed) == (len(history), sum(history))
    assert asked.next_level == level_of_attempt(0.05, len(history) + 1, sum(history))


def test_the_same_model_gets_the_stored_answer_and_spends_nothing(tmp_path):
    asked = gate()
    first = asked.ask(GOOD)
    GOOD.save(tmp_path / "good.rankwise")
    for again in (GOOD, rw.load(tmp_path / "good.rankwise"), pickle.loads(pickle.dumps(GOOD))):
        decision = asked.ask(again)
        assert decision.again
        assert vars(decision) == {**vars(first), "again": True}
    assert asked.attempts == 1
    asked.ask(rw.RidgeRanker(alpha=7.0).fit(TRAIN))
    assert asked.attempts == 2


def test_models_are_known_by_what_they_compute():
    from sklearn.linear_model import Ridge

    other = rw.RidgeRanker().fit(TRAIN)
    assert identify(other) == identify(GOOD) == identify(other.set_params(n_jobs=2))
    assert identify(GOOD) != identify(BAD)
    theirs = Ridge().fit(np.asarray(TRAIN.X), TRAIN.y)
    assert (
        identify(theirs)
        == identify(pickle.loads(pickle.dumps(theirs)))
        != identify(Ridge().fit(TRAIN.X[:90], TRAIN.y[:90]))
    )
    assert identify(NOISE[0]) == identify(list(NOISE[0])) != identify(NOISE[1])

    class Local:
        predict = staticmethod(lambda X: X[:, 0])

    with pytest.raises(DataError, match="pass its scores"):
        identify(Local())


def test_several_measures_are_one_answer_without_correction():
    both = gate(measure=["nDCG@10", "RR"], at_least=[0.5, 0.45])
    decision = both.ask(GOOD)
    alone = [gate(measure=name, at_least=least).ask(GOOD).passed for name, least in (("nDCG@10", 0.5), ("RR", 0.45))]
    assert decision.passed == all(alone)
    assert decision.level == level_of_attempt(0.05, 1, 0)
    assert not gate(measure=["nDCG@10", "RR"], at_least=[0.5, 0.99]).ask(GOOD)
    assert gate(measure=["nDCG@10", "RR"], at_least=0.3).ask(GOOD)


def test_old_against_new_is_about_differences_query_by_query():
    old, new = (rw.evaluate(HOLDOUT, model, "nDCG@10")["nDCG@10"] for model in (BAD, GOOD))
    low = mean_interval(new - old, level_of_attempt(0.05, 1, 0), ends="low", span=(-1.0, 1.0)).low
    assert gate(better_than=BAD, allow=-(low - 1e-6)).ask(GOOD)
    assert not gate(better_than=BAD, allow=-(low + 1e-6)).ask(GOOD)
    assert not gate(better_than=GOOD, allow=0.001).ask(GOOD)
    assert gate(better_than=GOOD, allow=0.2).ask(GOOD)  # a mean difference of 0 is above -0.2
    assert gate(better_than=BAD.predict(HOLDOUT), allow=-(low - 1e-6)).ask(GOOD.predict(HOLDOUT))


def test_the_model_in_use_may_change_between_attempts(tmp_path):
    state = tmp_path / "gate.json"
    first = gate(better_than=BAD, state=state).ask(GOOD)
    second = gate(better_than=GOOD, state=state).ask(BAD)
    again = gate(better_than=BAD, state=state).ask(GOOD)
    assert [first.attempt, second.attempt, again.attempt] == [1, 2, 1]
    assert again.again
    assert not second.again


# -------------------------------------------------------------------------------------------------- which queries count


def test_queries_that_are_empty_or_of_weight_0_do_not_count():
    half = len(HOLDOUT) // 2
    weight = np.repeat([1.0, 0.0], [half, len(HOLDOUT) - half])
    weighted = HOLDOUT._replace(weight=weight)
    decision = gate(weighted).ask(GOOD)
    defined = ~np.isnan(rw.evaluate(HOLDOUT, GOOD)["nDCG@10"])
    assert decision.queries == int(defined[:half].sum()) < half
    assert gate().ask(GOOD).queries == int(defined.sum()) < len(HOLDOUT)
    assert gate(empty="zero").ask(GOOD).queries == len(HOLDOUT)
    assert "with a relevant document" in gate().ask(GOOD).claim
    assert "with a relevant document" not in gate(empty="zero").ask(GOOD).claim
    with pytest.raises(RankwiseError, match="equal query weights"):
        gate(HOLDOUT._replace(weight=np.arange(1.0, len(HOLDOUT) + 1)))


def test_repeated_queries_and_ties_are_taken_at_their_worst():
    low = mean_interval(rw.evaluate(HOLDOUT, GOOD)["nDCG@10"], level_of_attempt(0.05, 1, 0), ends="low").low
    assert gate(at_least=low - 0.02).ask(GOOD)
    three = rw.Queries.concat([HOLDOUT] * 3, rename=True)
    single = mean_interval(np.tile(rw.evaluate(HOLDOUT, GOOD)["nDCG@10"], 3), 0.025, ends="low").low
    assert not gate(three, at_least=single - 1e-3).ask(GOOD)  # three copies are no three draws
    constant = np.zeros(HOLDOUT.n_documents)
    expected, worst = (
        rw.evaluate(HOLDOUT, constant, ties=ties).mean["nDCG@10"] for ties in ("expected", "pessimistic")
    )
    assert worst + 0.1 < expected
    assert gate(at_least=(expected + worst) / 2 - 0.05).ask(constant)
    assert not gate(at_least=(expected + worst) / 2 - 0.05, ties="pessimistic").ask(constant)


def test_queries_that_the_model_has_seen_do_not_help():
    memory = rw.RidgeRanker().fit(rw.Queries.concat([TRAIN, HOLDOUT]))
    asked = gate(at_least=0.1)
    decision = asked.ask(memory)
    assert not decision.passed
    assert kept(asked)[0].note == "no query of the hold-out is sure to be new to the model"
    rounded = HOLDOUT._replace(X=np.round(np.asarray(HOLDOUT.X), 5))
    copied = gate(at_least=0.1)
    assert not copied.ask(rw.RidgeRanker().fit(rw.Queries.concat([TRAIN, rounded[:50]])))
    assert kept(copied)[0].note == CHANGED
    assert gate(at_least=0.1).ask(GOOD)


def test_nothing_but_the_answer_depends_on_the_hold_out_values():
    """Two hold-outs that differ in labels alone, and two models: equal answers print equal text."""
    swapped = HOLDOUT.with_labels(HOLDOUT.y[::-1].copy())
    texts, levels = [], []
    for holdout in (HOLDOUT, swapped):
        asked = gate(holdout, at_least=0.999, empty="zero")
        decisions = [asked.ask(model) for model in (GOOD, BAD, NOISE[0])]
        texts.append([(repr(one), one.to_markdown(0.0005, 0.2), json.dumps(one.to_dict())) for one in decisions])
        levels.append(asked.next_level)
    assert texts[0] == texts[1]
    assert levels[0] == levels[1]


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at_least": None}, "got neither"),
        ({"better_than": BAD, "at_least": 0.5}, "got both"),
        ({"at_least": 1.0}, "at_least must be above 0 and below 1, got 1"),
        ({"at_least": [0.1, 0.2]}, "one for each of 1 measures, got 2"),
        ({"better_than": BAD, "allow": 1.5}, "allow must be above -1 and below 1, got 1.5"),
        ({"measure": "DCG@10"}, "between 0 and 1, got DCG@10"),
        ({"delta": 0}, "delta must be between 0 and 1, got 0"),
        ({"ties": "stable"}, "ties must be 'expected', 'pessimistic' or 'optimistic', got 'stable'"),
    ],
)
def test_questions_that_are_none(given, said):
    with pytest.raises(RankwiseError, match=said):
        gate(**given)


def test_what_cannot_be_asked_spends_nothing():
    asked = gate()
    for model in (
        NOISE[0][:-1],
        np.full(HOLDOUT.n_documents, np.nan),
        rw.RidgeRanker().fit(rw.make_lists(9, features=7)),
    ):
        with pytest.raises(RankwiseError):
            asked.ask(model)
    with pytest.raises(RankwiseError, match="not fitted"):
        asked.ask(rw.RidgeRanker())
    with pytest.raises(RankwiseError, match="this gate has a hold-out"):
        asked.ask(GOOD, HOLDOUT)
    assert asked.attempts == 0
    with pytest.raises(DataError, match="Gate takes Queries, got list"):
        gate([[1.0]])
    with pytest.raises(DataError):
        gate(HOLDOUT.without_labels() if hasattr(HOLDOUT, "without_labels") else HOLDOUT._replace(y=None))


# ------------------------------------------------------------------------------------------------------------- planning


def test_a_plan_is_a_function_of_level_and_declared_numbers():
    decision = gate(measure=["nDCG@10", "RR"], at_least=[0.5, 0.8]).ask(GOOD)
    plan = decision.queries_for(0.05, sd=0.3)
    assert plan.terms["level"] == decision.level
    assert plan.queries == max(
        rw.guarantees.queries_to_show(0.05, sd=0.3, threshold=one, level=decision.level).queries for one in (0.5, 0.8)
    )
    assert f"{plan.queries:,}" in decision.to_markdown(0.05, 0.3)


# ----------------------------------------------------------------------------------------------------- queries arriving


def test_queries_that_arrive_add_up_and_an_answer_stays(tmp_path):
    state = tmp_path / "gate.json"
    answers = [
        rw.Gate(None, at_least=0.7, state=state).ask(GOOD, HOLDOUT[first : first + 20]) for first in range(0, 200, 20)
    ]
    passed = [one.passed for one in answers]
    assert passed == sorted(passed)
    assert passed[-1]
    assert not passed[0]
    assert {one.attempt for one in answers} == {1}
    assert {one.level for one in answers} == {0.025}
    asked = rw.Gate(None, at_least=0.7, state=state)
    assert asked.ask(GOOD).again
    other = asked.ask(BAD, HOLDOUT[:20])
    assert (other.attempt, other.level) == (2, 0.05 / 6)
    whole = rw.Gate(None, at_least=0.7, state=None)
    at_once = whole.ask(GOOD, HOLDOUT)
    assert at_once.passed  # how queries are divided into calls changes nothing


def test_a_repeated_query_that_arrives_counts_only_where_it_shows_less():
    asked = rw.Gate(None, at_least=0.7, state=None)
    best = [asked.ask(GOOD, HOLDOUT[:10]).passed for _ in range(60)]
    assert not any(best)
    with pytest.raises(DataError, match="changed copies"):
        asked.ask(GOOD, TRAIN._replace(X=np.round(np.asarray(TRAIN.X), 5))[:30])
    with pytest.raises(RankwiseError, match="requires a model"):
        asked.ask(NOISE[0], HOLDOUT)
    with pytest.raises(RankwiseError, match="none have arrived"):
        asked.ask(BAD)


# --------------------------------------------------------------------------------------------------------- simulations


@pytest.mark.parametrize("maker", ["climb", "descend"])
def test_makers_who_climb_the_answers_pass_rarely(maker):
    """A small version of experiments/gate.py; 4 of 10 have a probability of 0.001 if 5% of histories are false."""
    found = [experiment.history(experiment.WORLDS[0], maker, number, seed=1, attempts=12) for number in range(10)]
    assert sum(first > 0 for first, _ in found) < 4
    if maker == "descend":
        assert all(good > 0 for _, good in found)  # the gate is no wall


def test_printed_bounds_that_are_climbed_are_false():
    assert experiment.printed(0, seed=1, looks=60)[-1]
