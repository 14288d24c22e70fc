"""Guarantees are put to the test where the truth is known: the page's counts, and a harness that finds lies out."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import rankwise as rw
from experiments import coverage_worlds as worlds
from experiments.coverage import collect, split, with_case
from experiments.coverage_cases import CASES, FOURIER
from experiments.coverage_certificates import HEADLINE, Cell, run_cell, settle_averages
from experiments.coverage_counts import (
    CONTROL,
    Average,
    Count,
    Trial,
    check,
    clopper_pearson,
    fewest_flagged,
    is_false,
    level_of_one,
    power,
    verdict,
)
from experiments.coverage_intervals import TRIALS, exact_failures, run_trial
from experiments.coverage_page import (
    RESULTS,
    allowed,
    draw,
    false_ones,
    missed_controls,
    rows_of,
    tables,
    verdicts,
    worlds_of,
)
from experiments.coverage_populations import POPULATIONS, Mean, coins, mixed_kinds
from experiments.coverage_rows import Truths, smallest_risk
from rankwise.guarantees import Bound
from rankwise.rankers._base import registered

DELTA = 0.1


@pytest.fixture(scope="module")
def stored():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------- the page


def test_no_guarantee_is_false(stored):
    assert false_ones(stored) == []


def test_the_counts_are_of_every_ranker_on_every_population(stored):
    known = {(one["case"].partition(",")[0], one["population"]) for one in stored["cells"]}
    for ranker in registered().keys() - {"TreeRanker"}:  # learned elsewhere; its rows are those of BoostedRanker
        for population in POPULATIONS:
            assert (ranker, population) in known or population == "coins"


def test_t15_every_control_is_found_out(stored):
    controls = [name for name in verdicts(stored) if CONTROL in name]
    assert {name.partition(": ")[0] for name in controls} >= {
        *worlds.HOLDOUTS,
        *worlds.SUBSETS,
        *worlds.STREAMS,
        *worlds.USERS,
    }
    assert missed_controls(stored) == []


def test_t15_the_counts_are_of_every_world(stored):
    assert {(part, values, n) for part, values, n, *_ in stored["intervals"]} == set(TRIALS)


def test_the_text_of_the_figure_is_true_of_the_stored_counts(stored):
    for label, cells in rows_of(stored).items():
        whole = Count.total(cells.values())
        if whole.checked > whole.vacuous:
            assert whole.rate <= allowed(label, stored) / 2, label
    for (world, what, may_fail), counts in worlds_of(stored).items():
        if may_fail is not None:
            rate = Count.total(count for _, count in counts).rate
            assert (rate > DELTA) is what.startswith(CONTROL), (world, what)


def test_t15_every_verdict_that_is_not_vacuous_would_find_a_rate_of_25_per_cent(stored):
    counts = {}
    for part, values, _, what, may_fail, count in stored["intervals"]:
        if may_fail is not None:
            key = (values if part in worlds.PARTS else part, what, may_fail)
            counts.setdefault(key, Count()).add(Count(*count))
    counts |= {(label, "", DELTA): Count.total(rows_of(stored)[label].values()) for label in (HEADLINE, "Betting")}
    weak = [key for key, count in counts.items() if power(count, key[2], 0.25) < 0.9]
    # a power of 80 % that is missed in 25 % of all samples is hardly missed; empirical Bernstein is vacuous at small n
    assert [key for key in weak if "finds a difference" not in key[1] and "Bernstein" not in key[1]] == []


# ------------------------------------------------------------------------------------------- binomial intervals


def upper_tail(failed, checked, chance):
    """The probability of so many failures or more, in exact rationals."""
    p = Fraction(chance)
    return sum(math.comb(checked, k) * p**k * (1 - p) ** (checked - k) for k in range(failed, checked + 1))


@pytest.mark.parametrize(("failed", "checked"), [(0, 7), (1, 7), (3, 20), (20, 20), (12, 60)])
def test_the_ends_of_an_interval_are_where_the_binomial_tails_are_half_of_one_per_cent(failed, checked):
    low, high = clopper_pearson(failed, checked, 0.99)
    if failed:
        assert float(upper_tail(failed, checked, low)) == pytest.approx(0.005, rel=1e-6)
    else:
        assert low == 0
    if failed < checked:
        assert 1 - float(upper_tail(failed + 1, checked, high)) == pytest.approx(0.005, rel=1e-6)
    else:
        assert high == 1


def test_one_bad_cell_is_not_hidden_by_many_good_ones():
    good = [Count.of(failed=0, checked=100)] * 50
    assert verdict(good, DELTA) == "kept"
    assert verdict([*good, Count.of(failed=40, checked=100)], DELTA) == "FALSE"


def test_the_worst_of_many_cells_is_allowed_its_luck():
    """100 cells that fail with probability delta: the worst alone looks false, and is not."""
    random = np.random.default_rng(0)
    cells = [Count.of(failed=int(random.binomial(40, DELTA)), checked=40) for _ in range(100)]
    assert max(clopper_pearson(cell.failed, cell.checked)[0] for cell in cells) > 0.5 * DELTA
    assert verdict(cells, DELTA) == "kept"


@pytest.mark.parametrize(("checked", "allowed", "rate"), [(24, 0.1, 0.25), (40, 0.1, 0.2), (30, 0.0, 0.01)])
def test_t15_power_is_the_probability_of_the_failures_that_a_verdict_finds_false(checked, allowed, rate):
    chance = Fraction(rate)
    wanted = sum(
        math.comb(checked, failed) * chance**failed * (1 - chance) ** (checked - failed)
        for failed in range(checked + 1)
        if verdict([Count.of(failed=failed, checked=checked)], allowed) == "FALSE"
    )
    assert 0 < wanted < 1
    assert power(Count(checked), allowed, rate) == pytest.approx(float(wanted), rel=1e-9)


def test_t15_a_small_cell_of_many_has_no_power_and_a_group_of_cells_has():
    level = level_of_one(522)
    assert power(Count(24), DELTA, 0.25, level) < 0.03
    assert power(Count(400), DELTA, 0.25, level) > 0.99


def test_t15_checks_that_cannot_fail_have_no_power():
    assert power(Count(checked=100, vacuous=100), DELTA, 0.25) == 0
    assert power(Count(checked=100, vacuous=60), DELTA, 0.25) < power(Count(checked=40), DELTA, 0.25)
    assert fewest_flagged(2, 0.9) == 3  # two of two are not too many: no number of failures is


def test_t15_one_bad_ranker_is_found_by_its_cells_together():
    """No cell alone is far enough above delta, and neither are all cells together."""
    good, bad = [Count.of(failed=0, checked=24)] * 500, [Count.of(failed=6, checked=24)] * 10
    assert verdict([*good, *bad], DELTA) == "kept"
    assert verdict([*good, *bad], DELTA, [Count.total(bad)]) == "FALSE"


def test_t15_a_plan_counts_every_sample_and_promises_only_what_can_fail():
    found = run_trial(Trial("plan", "coin 0.05", 0), 0, 40, 0, DELTA)
    assert {count.checked for _, count in found.values()} == {40}
    allowed, reached = found["Empirical Bernstein plan, true sd: half-width reached"]
    assert math.isnan(allowed)
    assert 0 < reached.failed < 40
    assert found["Empirical Bernstein plan, true sd: mean within half-width"][0] == pytest.approx(2 * DELTA / 3)


def test_a_truth_that_is_not_known_exactly_is_no_failure_and_no_success_near_the_bound():
    bound = Bound(name="b", bounds="x", statement="", value=0.5, terms={})
    assert check(bound, Mean(0.51)).written() == [1, 1, 1, 1, 0, 0]
    assert check(bound, Mean(0.51, 0.01)).written() == [1, 1, 0, 1, 0, 0]
    assert check(bound, Mean(0.49, 0.01)).written() == [1, 0, 0, 1, 0, 0]
    assert check(replace(bound, side="at least"), Mean(0.49, 0.01)).written() == [1, 1, 0, 1, 0, 0]


# ------------------------------------------------------------------------------------------- lies are found out


def scaled(label, factor):
    """A certificate whose rows of one name, or whose headline, have another number."""

    def alter(certificate):
        if label == HEADLINE:
            return replace(
                certificate, headline=replace(certificate.headline, value=factor * certificate.headline.value)
            )
        rows = (
            replace(row, value=factor * row.value) if row.name.startswith(label) else row for row in certificate.rows
        )
        return replace(certificate, rows=tuple(rows))

    return alter


def failures(cell, repetitions, alter, label):
    found = run_cell(cell, 0, repetitions, 7, DELTA, alter)
    return [count for name, count in found.counts.items() if name.startswith(label)]


@pytest.mark.parametrize(
    ("case", "population", "n", "label", "factor"),
    [
        ("LinearModel", "finite", 30, "Betting", 0.5),
        ("LinearModel", "finite", 30, "Hoeffding", 0.3),
        ("LinearModel", "finite", 30, HEADLINE, 0.4),
        ("RankSVM", "coins", 4_000, "Uniform, l2-Lipschitz, fitted norm, PairHinge", 0.3),
        ("ListNet, online", "finite", 30, "Online to batch", 0.3),
        ("SLAMPerceptron", "finite", 30, "SLAM loss", 0.0),
        ("MaxPairPerceptron", "finite", 30, "Max-pair mistakes", 0.0),
        ("SLAMRanker", "finite", 30, "Surrogate above loss", 0.1),
        ("SLAMRanker", "finite", 30, "Gap to the minimum", 0.0),
        ("AdaRank", "finite", 30, "AdaRank certificate", 0.0),
        ("PermuRank", "finite", 30, "Working sets", 0.0),
        ("SmoothRank", "finite", 30, "Smoothing error", 0.0),
        pytest.param(
            "MappedRanker",
            "coins",
            4_000,
            "Uniform, l2-Lipschitz, fitted norm, PairHinge",
            0.3,
            marks=pytest.mark.thorough,
        ),
        pytest.param("MappedRanker", "finite", 30, "Gap to the minimum", 0.0, marks=pytest.mark.thorough),
        ("KernelPerceptron", "finite", 30, "SLAM loss", 0.0),
        pytest.param("KernelPerceptron, max-pair", "finite", 30, "Max-pair mistakes", 0.0, marks=pytest.mark.thorough),
        pytest.param("KernelPerceptron, budget never full", "finite", 30, "SLAM loss", 0.0, marks=pytest.mark.thorough),
        ("KernelPerceptron, budget with removals", "finite", 30, "Online to batch", 0.3),
    ],
)
def test_a_row_that_promises_too_much_is_found_out(case, population, n, label, factor):
    cell = Cell(case, population, n)
    start = label.removesuffix(", PairHinge")
    repetitions = 4  # enough where every one fails: 0.005^(1/4) is 0.27
    assert verdict(failures(cell, repetitions, lambda one: one, start), DELTA) == "kept"
    assert verdict(failures(cell, repetitions, scaled(label, factor), start), DELTA) == "FALSE"


def test_an_average_that_is_above_its_bound_is_found_out():
    cell = Cell("OnlineRanker", "finite", 10)
    honest = run_cell(cell, 0, 6, 0, DELTA).averages
    assert settle_averages(cell, honest)["Averaged gradient descent"].failed == 0
    lie = run_cell(cell, 0, 6, 0, DELTA, scaled("Averaged gradient descent", -1.0)).averages
    assert settle_averages(cell, lie)["Averaged gradient descent"].failed == 1


def test_an_average_is_compared_with_its_own_error():
    above = Average(count=100, total=1.0, squares=1.0)  # 0.01 on average, with a standard error of 0.01
    assert not is_false(above, Mean(0.0))
    assert is_false(above, Mean(-0.1))


# As many repetitions as it takes to find a control out.
FOUND_OUT = {
    Trial("hold-out", "Zipf queries", 100): 5,
    Trial("hold-out", "the whole training file", 300): 5,
    Trial("hold-out", "easy training rows and a frequent query", 100): 5,
    Trial("hold-out", "some training rows", 100): 15,
    Trial("subset", "empty queries", 100): 5,
    Trial("subset", "tied scores", 100): 5,
    Trial("subset", "weights of 0", 100): 5,
    Trial("polling", "fair coins", 20_000): 80,
    Trial("polling", "a ranker that learns", 20_000): 80,
    Trial("A/A", "300 users", 3_000): 20,
}


@pytest.mark.parametrize("trial", FOUND_OUT, ids=lambda trial: trial.values)
def test_t15_in_a_world_the_guarantee_is_kept_and_the_control_is_found_out(trial):
    assert trial in TRIALS
    found = run_trial(trial, 0, FOUND_OUT[trial], 0, DELTA)
    assert sum(what.startswith(CONTROL) for what in found) == 1
    for what, (may_fail, count) in found.items():
        assert count.checked == FOUND_OUT[trial], what
        assert verdict([count], may_fail) == ("FALSE" if what.startswith(CONTROL) else "kept"), what


@pytest.mark.thorough
@pytest.mark.parametrize("trial", worlds.TRIALS, ids=lambda trial: f"{trial.values}, {trial.n}")
def test_t15_guarantees_are_kept_in_every_world(trial):
    for what, (may_fail, count) in run_trial(trial, 0, 60, 1, DELTA).items():
        if not what.startswith(CONTROL) and not math.isnan(may_fail):
            assert verdict([count], may_fail) == "kept", what


# ------------------------------------------------------------------------------------------- truths


CATALOGS = [world.catalog for world in (*worlds.HOLDOUTS.values(), *worlds.SUBSETS.values())]


@pytest.mark.parametrize("catalog", dict.fromkeys(CATALOGS), ids=lambda catalog: catalog.__name__)
def test_t15_the_mean_of_a_world_is_that_of_many_draws(catalog):
    known, random = catalog(), np.random.default_rng(2)
    which = known.draw(20_000, random)
    model = worlds.first_feature(known.X.shape[2]).fit(known.queries(which[:5]))
    losses = known.losses(model)
    drawn = known.queries(which[:500])
    scores = np.asarray(model.predict(drawn))
    np.testing.assert_allclose(
        1 - rw.evaluate(drawn, scores, ["nDCG@10"], n_jobs=1).per_query["nDCG@10"], losses[which[:500]], atol=1e-12
    )
    sample = losses[which][~np.isnan(losses[which])]
    assert abs(sample.mean() - known.mean(losses)) < 4 * sample.std() / math.sqrt(len(sample))
    assert known.chance.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "case",
    [
        *("SLAMPerceptron", "MaxPairPerceptron", "ListNet, online", "OnlineRanker"),
        *("KernelPerceptron", "KernelPerceptron, max-pair", "KernelPerceptron, budget with removals"),
    ],
)
def test_a_run_query_by_query_has_the_losses_and_mistakes_of_the_ledger(case):
    train = POPULATIONS["finite"].draw(40, np.random.default_rng(3))
    model = CASES[case].make(train.n_features).fit(train)
    truths = Truths(CASES[case], "finite", model, train)
    assert truths.cumulative_loss(None).value == pytest.approx(model.ledger_.loss, rel=1e-9)
    assert truths.rounds_with_mistake(None).value == model.ledger_.mistakes


@pytest.mark.parametrize("case", ["MappedRanker", "MappedRanker, SLAMPerceptron", "KernelPerceptron"])
def test_rows_of_the_mapped_population_are_within_the_radius_that_the_ranker_names(case):
    population = POPULATIONS["noisy"]
    model = CASES[case].make(5).fit(population.draw(20, np.random.default_rng(3)))
    _, mapped, _ = model._linear_space(population.draw(500, np.random.default_rng(4)))
    assert model.row_radius == 1
    np.testing.assert_allclose(np.linalg.norm(mapped.X, axis=1), 1, rtol=1e-12)


def test_the_truth_behind_a_mapped_ranker_is_that_of_the_ranker_inside_on_mapped_queries():
    train = POPULATIONS["finite"].draw(40, np.random.default_rng(3))
    case = CASES["MappedRanker"]
    model = case.make(train.n_features).fit(train)
    truths = Truths.behind(case, "finite", model, train, None)
    weights, mapped = model.ranker_.coef_, model.mapped(truths.reference.queries)
    np.testing.assert_allclose(truths.scores, mapped.X @ weights, rtol=1e-12)
    assert truths.train.n_features == FOURIER.n_features
    # no weights of that norm do better than the best that were found in the mapped space
    best = smallest_risk(case.losses["PairHinge"], "finite", float(np.linalg.norm(weights)), FOURIER)
    risk = truths.reference.mean(truths.reference.losses(case.losses["PairHinge"], truths.scores))
    assert best.value <= risk.value + 1e-9


@pytest.mark.parametrize("kinds", [mixed_kinds, coins])
def test_the_mean_of_finitely_many_kinds_is_that_of_a_large_sample(kinds):
    reference = kinds().reference()
    sample = kinds().draw(20_000, np.random.default_rng(0))
    weights = np.linspace(1.0, -0.5, sample.n_features)
    exact = reference.mean(reference.one_minus("nDCG@10", reference.queries.X @ weights))
    drawn = type(reference)(sample)
    near = drawn.mean(drawn.one_minus("nDCG@10", sample.X @ weights))
    assert exact.error == 0
    assert abs(near.value - exact.value) < 4 * near.error


@pytest.mark.parametrize("name", [name for name in POPULATIONS if name != "coins"])
def test_radius_and_length_of_a_population_hold_for_its_queries(name):
    population = POPULATIONS[name]
    queries = population.draw(2_000, np.random.default_rng(1))
    middle = np.full(queries.n_features - 1, 0.5)  # the last feature is the same for all documents of a query
    assert np.linalg.norm(queries.X[:, :-1] - middle, axis=1).max() <= population.radius
    assert queries.sizes.max() == population.longest
    own = [set(queries[query].X[:, -1]) for query in range(50)]
    assert all(len(one) == 1 for one in own)
    assert len(set.union(*own)) == 50


# ------------------------------------------------------------------------------------------- the headline, exactly


@pytest.mark.parametrize("n", [2, 5, 7])
def test_over_all_samples_of_coins_the_headline_fails_with_probability_delta_at_most(n):
    chances = (0.02, 0.1, 0.3, 0.5, 0.64, 0.77, 0.9, 0.98)
    found = exact_failures(n, DELTA, chances)
    for name, each in found.items():
        if name != "smallest of three, each at delta":
            assert (each <= DELTA).all(), name
    assert found["Betting"].max() > 0.01  # the bounds are not so wide that they could not fail
    assert (found["smallest of three, each at delta/3"] <= found["smallest of three, each at delta"] + 1e-12).all()
    # the union bound: no smallest end fails more often than all together
    together = sum(found[name] for name in ("Hoeffding", "Empirical Bernstein", "Betting"))
    assert (found["smallest of three, each at delta"] <= together + 1e-12).all()


# ------------------------------------------------------------------------------------------- the run


@pytest.mark.parametrize("part", dict.fromkeys(trial.part for trial in TRIALS))
def test_a_trial_gives_the_same_counts_however_it_is_divided(part):
    trial = next(trial for trial in TRIALS if trial.part == part)
    whole = run_trial(trial, 0, 4, 5, DELTA)
    parts = [run_trial(trial, 0, 1, 5, DELTA), run_trial(trial, 1, 4, 5, DELTA)]
    for name, (_, count) in whole.items():
        assert Count.total(one[name][1] for one in parts).written() == count.written()


SOME = (Cell("LinearModel", "finite", 10), Cell("RankSVM", "finite", 10), Cell("SLAMPerceptron", "finite", 10))


def test_a_small_run_gives_tables_and_a_figure():
    trials = [Trial("mean", "coin 0.5", 10), Trial("approximate", "finite", 10), Trial("choice", "9 rankers", 100)]
    numbers = json.loads(json.dumps(collect(SOME, trials, repetitions=1, seed=3, exact=(2,))))
    assert numbers["cells"][0]["rows"][HEADLINE][0] == 1
    for name, table in tables(numbers).items():
        assert table, name
    assert "Headline" in tables(numbers)["rows"]
    assert len(draw(numbers).axes) == 3
    assert sum(task.last - task.first for task in split(SOME, trials, 12, 0)) == 3 * 12 + 2 * 12 * 32 + 12 * 8


def test_a_case_that_is_added_later_has_the_counts_of_a_full_run():
    whole = collect(SOME, (), repetitions=2, seed=3, exact=())
    part = collect([cell for cell in SOME if cell.case != "RankSVM"], (), repetitions=2, seed=3, exact=())
    assert with_case(part, "RankSVM", every=SOME) == whole


@pytest.mark.thorough
def test_the_number_of_processes_changes_no_digit():
    trials = [Trial("mean", "coin 0.5", 10)]
    assert collect(SOME, trials, repetitions=11, jobs=1, exact=()) == collect(
        SOME, trials, repetitions=11, jobs=2, exact=()
    )
