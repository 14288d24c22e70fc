"""Position models: exact ends by betting, harvesting as Bradley and Terry, and the click rate refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from experiments.clicks import binomial_limit
from rankwise import clicks
from rankwise.clicks.propensities import NAIVE_ERROR, Propensities, ratio_upper_end
from rankwise.errors import DataError, FileFormatError, RankwiseError

THETA = 1 / np.arange(1, 6)


def queries():
    return rw.make_lists(40, documents=6, features=3, random_state=0)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60), st.floats(0.01, 0.4))
def test_the_upper_end_separates_refuted_ratios_from_others(pairs, alpha):
    one, other = np.array(pairs, dtype=float).T
    end = ratio_upper_end(one, other, alpha)

    def wealth(rho):
        """The largest capital, bet after bet."""
        capital = most = 1.0
        seen_one = seen_other = spread = 0.0
        for i, (x, y) in enumerate(zip(one, other, strict=True)):
            ratio = min(max((1 + seen_other) / (1 + seen_one), 1e-3), 1e3)
            bet = min(0.75, math.sqrt(2 * math.log(1 / alpha) / (len(one) * (0.25 + spread) / (i + 1))))
            capital *= 1 + bet * (rho * x - y)
            most = max(most, capital)
            seen_one, seen_other, spread = seen_one + x, seen_other + y, spread + (ratio * x - y) ** 2
        return most

    if math.isinf(end):
        assert wealth(1e6) < 1 / alpha
    else:
        assert wealth(end) >= (1 / alpha) * (1 - 1e-6)
        assert wealth(end * (1 - 1e-6)) < (1 / alpha) * (1 + 1e-6)


@pytest.mark.parametrize(("both", "only_one", "only_other"), [(0.1, 0.4, 0.2), (0.3, 0.3, 0.0), (0.0, 0.2, 0.6)])
@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_the_end_is_below_the_ratio_with_probability_alpha_at_most(both, only_one, only_other, alpha):
    """Exact, over all outcomes of five sessions."""
    kinds = {(1, 1): both, (1, 0): only_one, (0, 1): only_other, (0, 0): 1 - both - only_one - only_other}
    ratio = (both + only_other) / (both + only_one)
    missed = 0.0
    for outcome in itertools.product(kinds, repeat=5):
        chance = math.prod(kinds[one] for one in outcome)
        if chance and ratio_upper_end(*np.array(outcome, dtype=float).T, alpha) < ratio * (1 - 1e-9):
            missed += chance
    assert missed <= alpha + 1e-12


def test_swaps_find_the_propensities_with_ends_around_them():
    data = queries()
    log = clicks.simulate(data, data.X[:, 0], 20_000, shown=5, swaps=True, random_state=4)
    found = clicks.by_swaps(log)
    assert (found.low <= THETA + 1e-12).all()
    assert (found.high >= THETA - 1e-12).all()
    assert np.abs(found.theta / THETA - 1).max() < 0.2
    assert found.relative
    assert not found.asymptotic
    parts = [log[:7_000], log[7_000:]]
    assert clicks.by_swaps(parts).to_dict() == found.to_dict()


@pytest.mark.thorough
def test_no_end_by_swaps_is_wrong_more_often_than_delta():
    data = queries()
    wrong = 0
    for seed in range(400):
        found = clicks.by_swaps(
            clicks.simulate(data, data.X[:, 0], 1_000, shown=5, swaps=True, random_state=seed), delta=0.2
        )
        wrong += bool((found.low > THETA * (1 + 1e-9)).any() or (found.high < THETA * (1 - 1e-9)).any())
    assert wrong <= 400 * 0.2 + 3 * math.sqrt(400 * 0.2 * 0.8)


def biased_swaps(coin, sessions, seed):
    """Sessions of two positions whose documents x and y have attractiveness 0.9 and 0.1; theta is 1, 0.5."""
    random = np.random.default_rng(seed)
    swapped = random.random(sessions) < coin
    attractive = np.where(swapped[:, None], [0.1, 0.9], [0.9, 0.1])
    click = random.random((sessions, 2)) < attractive * [1.0, 0.5]
    names = np.where(swapped[:, None], ["y", "x"], ["x", "y"])
    return clicks.ClickLog.from_rows(
        session=np.repeat(np.arange(sessions), 2), qid=np.zeros(2 * sessions, int), docid=names.ravel(),
        position=np.tile([1, 2], sessions), click=click.ravel(), swap=np.full(2 * sessions, 2),
        swapped=np.repeat(swapped, 2),
    )  # fmt: skip


@pytest.mark.parametrize("coin", [0.56, 0.1])
def test_t13_ends_by_swaps_hold_for_every_coin(coin):
    """T13: with a coin of 0.56 the lower end was wrong in 86 % of the logs; pairs make the bias irrelevant."""
    wrong = 0
    for seed in range(60):
        found = clicks.by_swaps(biased_swaps(coin, 2_500, seed), delta=0.1)
        wrong += not found.low[1] <= 0.5 <= found.high[1]
    assert wrong <= binomial_limit(60, 0.1)


def test_models_say_what_they_are_about():
    swaps = clicks.by_swaps(biased_swaps(0.5, 200, 0))
    assert swaps.scope.unit == "session"
    assert "read: once" in swaps.summary()
    assert clicks.given(THETA).scope is None
    data = queries()
    log = clicks.simulate(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 5_000, shown=3, random_state=4)
    found = clicks.harvest(log, samples=10)
    assert found.scope.unit == "query"
    assert "asymptotic in queries" in repr(found)
    (ends,) = [
        one for one in clicks.value(
            clicks.simulate(data, data.X[:, 0], 50, shown=3, random_state=9), data.X[:, 0], found, tau=0.1
        ).preconditions if "bootstrap" in one.sentence
    ]  # fmt: skip
    assert "enough queries" in ends.sentence


def test_harvesting_finds_the_propensities_from_two_rankers():
    data = queries()
    log = clicks.simulate(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 30_000, shown=5, random_state=4)
    found = clicks.harvest(log, samples=50)
    assert np.abs(found.theta / THETA - 1).max() < 0.15
    assert found.asymptotic
    assert (found.low <= found.theta).all()
    assert (found.theta <= found.high).all()


def test_harvesting_two_positions_is_the_ratio_of_their_clicks():
    """Two documents that change places: Bradley and Terry's maximum is the ratio of the weighted click rates."""
    shown = 60
    rows = {"session": [], "qid": [], "docid": [], "position": [], "click": [], "version": []}
    rates = {("x", 1): 40, ("y", 2): 10, ("y", 1): 30, ("x", 2): 20}
    for number in range(2 * shown):
        order = "xy" if number < shown else "yx"
        for position, document in enumerate(order, start=1):
            rows["session"].append(number)
            rows["qid"].append("q")
            rows["docid"].append(document)
            rows["position"].append(position)
            rows["click"].append(number % shown < rates[document, position])
            rows["version"].append(order)
    found = clicks.harvest(clicks.ClickLog.from_rows(**rows), samples=2)
    assert found.theta[1] == pytest.approx(30 / 70, rel=0.02)  # a trace of a prior


def test_what_cannot_be_learned_is_refused():
    data = queries()
    plain = clicks.simulate(data, data.X[:, 0], 100, shown=5)
    with pytest.raises(DataError, match="swap experiment"):
        clicks.by_swaps(plain)
    with pytest.raises(DataError, match="two or more logging rankers"):
        clicks.harvest(plain)
    same = clicks.simulate(data, {"a": data.X[:, 0], "b": data.X[:, 0]}, 300, shown=5)
    with pytest.raises(DataError, match="no clicked document connects position"):
        clicks.harvest(same)
    swaps = clicks.simulate(data, data.X[:, 0], 300, shown=5, swaps=True)
    with pytest.raises(DataError, match="got none for position 3"):
        clicks.by_swaps(swaps[swaps.swap != 3])
    with pytest.raises(DataError, match="got no unswapped one of position 2"):
        clicks.by_swaps(swaps[swaps.swapped])
    with pytest.raises(DataError, match="got no swapped one of position 2"):
        clicks.by_swaps(swaps[~swaps.swapped])


def test_the_click_rate_is_refused_with_the_error_that_is_measured():
    from experiments.clicks_runs import Setting, naive_errors

    log = clicks.simulate(queries(), queries().X[:, 0], 10)
    with pytest.raises(RankwiseError, match=r"-70 to -21% off, too small and therefore unsafe"):
        clicks.by_click_rate(log)
    errors = naive_errors(Setting.make())
    assert [round(min(errors), 2), round(max(errors), 2)] == list(NAIVE_ERROR)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8))
@settings(max_examples=20)
def test_models_are_saved_and_loaded(tmp_path_factory, theta):
    path = tmp_path_factory.mktemp("p") / "positions.json"
    model = Propensities(
        theta=theta, high=[math.inf] * len(theta), how="swaps", delta_high=0.01, relative=True,
        sessions=np.array([3, 2**63], dtype=np.uint64),
    )  # fmt: skip
    model.save(path)
    assert Propensities.load(path).to_dict() == model.to_dict()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"theta": []}, "above 0 at every position"),
        ({"theta": [1.0, 0.0]}, "above 0"),
        ({"theta": [1.0, math.nan]}, "finite"),
        ({"theta": [2.0]}, "must be at most 1"),
        ({"theta": [1.0, 0.5], "low": [1.0]}, "one number per position"),
        ({"theta": [1.0], "low": [0.9], "high": [0.8]}, "low <= high"),
        ({"theta": [1.0], "beta": [1.0]}, "beta"),
    ],
)
def test_wrong_numbers_are_named(arguments, words):
    with pytest.raises(RankwiseError, match=words):
        Propensities(**arguments)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"theta": [1], "tau": 3}'])
def test_wrong_files_are_named(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"p\.json"):
        Propensities.load(path)


def test_they_draw_themselves():
    assert len(clicks.given(THETA).plot().axes) == 1
    assert len(clicks.given(THETA, high=np.minimum(1, 2 * THETA)).plot().axes) == 1
