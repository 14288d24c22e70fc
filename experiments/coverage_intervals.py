"""Intervals, sequences and plans, again and again: how often what they promise is not so.

No ranker is fitted here. Values are drawn from distributions with known means, so that hundreds of samples take
seconds. What is only approximate (bootstrap and t intervals, plans by the normal distribution) is counted beside what
is promised, and gets no verdict.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments import coverage_worlds
from experiments.coverage_cases import fixed_weights
from experiments.coverage_counts import CONTROL, ERRORS, Count, Outcome, Trial
from experiments.coverage_populations import POPULATIONS, Mean, reference_of
from rankwise.guarantees import (
    Bound,
    Precondition,
    confidence_sequence,
    difference_interval,
    holdout_claims,
    mean_interval,
    queries_needed,
    smallest,
)
from rankwise.guarantees.holdout.intervals import NAMES, Method

Floats = NDArray[np.float64]
METHODS: tuple[Method, ...] = get_args(Method)

HORIZON, GRID = 500, 200  # values of a sequence, and the steps to which its betting ends are rounded
HALF_WIDTH, POWER, DIFFERENCE = 0.1, 0.8, 0.5  # of plans; the difference in standard deviations


# ------------------------------------------------------------------------------------------- values with known means


@dataclass(frozen=True)
class Values:
    """A distribution of values in [0, 1]: its mean, its standard deviation, and a sampler."""

    mean: float
    sd: float
    draw: Callable[[np.random.Generator, int], Floats]

    @classmethod
    def table(cls, values: tuple[float, ...], chance: tuple[float, ...]) -> "Values":
        mean = math.fsum(v * p for v, p in zip(values, chance, strict=True))
        variance = math.fsum((v - mean) ** 2 * p for v, p in zip(values, chance, strict=True))
        return cls(mean, math.sqrt(variance), lambda random, n: random.choice(values, size=n, p=chance))


VALUES = {
    "coin 0.5": Values.table((0.0, 1.0), (0.5, 0.5)),
    "coin 0.05": Values.table((0.0, 1.0), (0.95, 0.05)),
    "coin 0.95": Values.table((0.0, 1.0), (0.05, 0.95)),
    "three values": Values.table((0.0, 0.37, 1.0), (0.6, 0.3, 0.1)),
    "beta(1, 4)": Values(0.2, math.sqrt(4 / 150), lambda random, n: random.beta(1.0, 4.0, size=n)),
    "rare loss": Values(
        0.04 + 0.96 * 0.025,
        math.sqrt(0.04 + 0.96 * 0.05**2 / 3 - (0.04 + 0.96 * 0.025) ** 2),
        lambda random, n: np.where(random.random(n) < 0.04, 1.0, 0.05 * random.random(n)),
    ),
}

# Pairs of values of two rankers on one query, and the probability of each pair.
PAIRS = {
    "equal on average": (((1.0, 0.0), (0.0, 1.0)), (0.5, 0.5)),
    "a little better": (((0.6, 0.5), (0.9, 0.8), (0.4, 0.45)), (0.4, 0.3, 0.3)),
    "better but for rare losses": (((0.7, 0.65), (0.0, 1.0)), (0.96, 0.04)),
}


# ------------------------------------------------------------------------------------------- without any simulation

CHANCES = tuple(place / 100 for place in range(1, 100))


def exact_failures(n: int, delta: float, chances: tuple[float, ...] = CHANCES) -> dict[str, Floats]:
    """The probability that each upper end is below the mean of n coins, by going through all 2^n samples.

    Parameters
    ----------
    n : coins of a sample
    delta : at which the upper ends are made
    chances : the means of the coins

    Returns
    -------
    failures : for each method, for the smallest of the three at delta/3 each (the headline of a certificate), and
        for the smallest of the three at delta each, one probability per chance
    """
    samples = [np.array(one) for one in product((0.0, 1.0), repeat=n)]
    ends: dict[str, list[float]] = {}
    for x in samples:
        claims = holdout_claims(x, of="mean", unseen=Precondition("all samples are there", True))
        alone = [claim.make(delta) for claim in claims]
        for bound in alone:
            ends.setdefault(bound.name, []).append(bound.value)
        best = smallest(*(claim.make for claim in claims), delta=delta)
        ends.setdefault("smallest of three, each at delta/3", []).append(best.value)
        ends.setdefault("smallest of three, each at delta", []).append(min(bound.value for bound in alone))
    ones = np.array([x.sum() for x in samples])
    p = np.array(chances)
    probability = p ** ones[:, None] * (1 - p) ** (n - ones[:, None])
    return {
        name: np.asarray((probability * (np.array(high)[:, None] < p - 1e-9)).sum(axis=0))
        for name, high in ends.items()
    }


def worst_failures(n: int, delta: float) -> dict[str, tuple[float, float]]:
    """The largest probability of failing of each, and the chance at which it is."""
    found = exact_failures(n, delta)
    return {name: (float(f"{each.max():.9g}"), CHANCES[int(each.argmax())]) for name, each in found.items()}


# ------------------------------------------------------------------------------------------- what is repeated


def mean_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """Intervals for a mean, both ends and the upper one alone, and the smallest upper end of all methods."""
    known = VALUES[trial.values]
    x = known.draw(random, trial.n)
    found, uppers = [], []
    for method in METHODS:
        both = mean_interval(x, delta, method=method)
        upper = mean_interval(x, delta, method=method, ends="high")
        uppers.append(upper.high)
        found.append(Outcome(f"{both.name}, both ends", delta, _outside(both.low, known.mean, both.high), both.vacuous))
        failed = _outside(0.0, known.mean, upper.high)
        found.append(Outcome(f"{upper.name}, upper end", delta, failed, upper.vacuous))
    claims = holdout_claims(x, of="mean", unseen=Precondition("drawn for this", True))
    best: Bound = smallest(*(claim.make for claim in claims), delta=delta)
    found.append(Outcome("Smallest of three, each at delta/3", delta, not best.allows(known.mean), best.vacuous))
    found.append(Outcome("Smallest of three, each at delta", math.nan, _outside(0.0, known.mean, min(uppers))))
    found.append(Outcome(CONTROL + "normal, upper end", delta, _outside(0.0, known.mean, _normal_ends(x, delta)[1])))
    return found


def _normal_ends(x: Floats, delta: float) -> tuple[float, float]:
    """The ends of the normal interval with the sample's spread, at delta/2 each: wrong for few and skewed values."""
    from scipy.special import ndtri

    reach = float(ndtri(1 - delta / 2)) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return float(x.mean()) - reach, float(x.mean()) + reach


def difference_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """Intervals for the difference of two rankers on the same queries."""
    pairs, chance = (np.array(one) for one in PAIRS[trial.values])
    mean = float(chance @ (pairs[:, 0] - pairs[:, 1]))
    first, second = pairs[random.choice(len(pairs), size=trial.n, p=chance)].T
    found = []
    for method in METHODS:
        one = difference_interval(first, second, delta, method=method)
        found.append(Outcome(one.name, delta, _outside(one.low, mean, one.high), one.vacuous))
    low, high = _normal_ends(first - second, delta)
    return [*found, Outcome(CONTROL + "normal", delta, _outside(low, mean, high))]


def sequence_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """Confidence sequences: a mean that is ever outside is a failure."""
    known, found = VALUES[trial.values], []
    x = known.draw(random, trial.n)
    for method in METHODS:
        settings = {"grid": GRID} if method == "betting" else {}
        low, high = confidence_sequence(x, delta, method=method, **settings)
        ever = bool((low > known.mean + 1e-12).any() or (high < known.mean - 1e-12).any())
        found.append(Outcome(NAMES[method], delta, ever, bool(low[-1] <= 0 and high[-1] >= 1)))
    ends = [_normal_ends(x[:n], delta) for n in range(2, trial.n + 1, 10)]
    ever = any(_outside(low, known.mean, high) for low, high in ends)
    return [*found, Outcome(CONTROL + "normal interval for one n", delta, ever)]


def plan_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """Samples as large as planned for an interval: is the mean within the half-width, is the half-width reached?

    The empirical Bernstein plan with the true standard deviation s has sqrt(2 s^2 L/n) + 7 L/(3 (n - 1)) <= h with
    L = log(3/delta). By Bernstein's inequality abs(mean - truth) <= sqrt(2 s^2 l/n) + l/(3 n) fails with probability
    2 exp(-l). With l = L that is less than h, so the mean is farther than h from the truth with probability 2 delta/3.
    Whether the sample's own interval reaches h is another matter: its spread is above s in about half of all samples.
    """
    known = VALUES[trial.values]
    certain, guessed, normal = queries_needed(half_width=HALF_WIDTH, sd=known.sd, delta=delta)
    x, y, z = (known.draw(random, plan.queries) for plan in (certain, guessed, normal))
    reached = mean_interval(y, delta, method="empirical bernstein").terms["reach"] <= HALF_WIDTH * (1 + 1e-9)
    few = known.draw(random, max(1, normal.queries // 4))

    def far(values: Floats) -> bool:
        return bool(abs(values.mean() - known.mean) > HALF_WIDTH)

    return [
        Outcome("Hoeffding plan: mean within half-width", delta, far(x)),
        Outcome("Empirical Bernstein plan, true sd: mean within half-width", 2 * delta / 3, far(y)),
        Outcome("Empirical Bernstein plan, true sd: half-width reached", math.nan, not reached),
        Outcome("Normal plan: mean within half-width", math.nan, far(z)),
        Outcome(CONTROL + "a quarter of the normal plan: mean within half-width", delta, far(few)),
    ]


def power_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """Two rankers on as many queries as planned: is a true difference found, and none where there is none?"""
    # the noise is not bounded; the plan of the t test does not use the span
    *_, plan = queries_needed(difference=DIFFERENCE, sd=1.0, delta=delta, power=POWER, span=(0.0, 100.0))
    normal = trial.values == "normal differences"

    def noise() -> Floats:
        drawn = random.standard_normal(plan.queries) if normal else 1 - random.exponential(size=plan.queries)
        return np.asarray(drawn)

    zeros = np.zeros(plan.queries)
    missed = rw.evaluation.paired_test(DIFFERENCE + noise(), zeros, test="t").p_value > delta
    invented = rw.evaluation.paired_test(noise(), zeros, test="t").p_value <= delta
    kind = "normal" if normal else "skewed"
    half = slice(plan.queries // 2)
    too_few = rw.evaluation.paired_test((DIFFERENCE + noise())[half], zeros[half], test="t").p_value > delta
    return [
        Outcome(CONTROL + f"t test on half as many finds a difference, {kind}", 1 - POWER, bool(too_few)),
        Outcome(f"t test finds a difference, {kind}", 1 - POWER if normal else math.nan, bool(missed)),
        Outcome(f"t test invents none, {kind}", delta if normal else math.nan, bool(invented)),
    ]


def approximate_trial(trial: Trial, random: np.random.Generator, delta: float) -> list[Outcome]:
    """The intervals that ``evaluate`` prints, for weights that learned nothing; they promise nothing at finite n."""
    queries = POPULATIONS[trial.values].draw(trial.n, random)
    model, truth = model_of_fixed_weights(trial.values), mean_of_fixed_weights(trial.values)
    evaluation = rw.evaluate(queries, model, ["nDCG@10"], random_state=int(random.integers(2**31)), n_jobs=1)
    found = []
    for how, name in (("bootstrap", "Bootstrap (BCa)"), ("t", "Student's t")):
        low, high = evaluation.interval(1 - delta, how=how)["nDCG@10"]  # type: ignore[arg-type]
        reach = ERRORS * truth.error
        found.append(
            Outcome(
                name,
                math.nan,
                _outside(low, truth.value, high),
                counted=not math.isnan(low),
                surely=_outside(low - reach, truth.value, high + reach),
                perhaps=_outside(low + reach, truth.value, high - reach),
            )
        )
    return found


@cache
def model_of_fixed_weights(population: str) -> rw.LinearModel:
    """A ranker that learned nothing."""
    queries = reference_of(population).queries[:1]
    return fixed_weights(queries.n_features).fit(queries)


@cache
def mean_of_fixed_weights(population: str) -> Mean:
    """Its mean nDCG@10."""
    reference, model = reference_of(population), model_of_fixed_weights(population)
    return reference.mean(1 - reference.one_minus("nDCG@10", np.asarray(model.predict(reference.queries))))


def _outside(low: float, mean: float, high: float) -> bool:
    """Whether the mean is outside, up to rounding."""
    return not low - 1e-9 <= mean <= high + 1e-9


PARTS: dict[str, Callable[[Trial, np.random.Generator, float], list[Outcome]]] = {
    "mean": mean_trial,
    "difference": difference_trial,
    "sequence": sequence_trial,
    "plan": plan_trial,
    "power": power_trial,
    "approximate": approximate_trial,
    **coverage_worlds.PARTS,
}
TRIALS: tuple[Trial, ...] = (
    *(Trial("mean", values, n) for values in VALUES for n in (5, 10, 30, 100)),
    *(Trial("difference", pairs, n) for pairs in PAIRS for n in (10, 30, 100)),
    *(Trial("sequence", values, HORIZON) for values in VALUES),
    *(Trial("plan", values, 0) for values in VALUES),
    *(Trial("power", values, 0) for values in ("normal differences", "skewed differences")),
    *(Trial("approximate", name, n) for name in POPULATIONS if name != "coins" for n in (10, 30, 100)),
    *coverage_worlds.TRIALS,
)

Counted = dict[str, tuple[float, Count]]


def run_trial(trial: Trial, first: int, last: int, seed: int, delta: float) -> Counted:
    """Repetitions ``first`` to ``last - 1``: what was promised -> (how often it may fail, how often it did)."""
    found: Counted = {}
    for repetition in range(first, last):
        random = np.random.default_rng([seed, crc32(repr(trial).encode()), repetition])
        for outcome in PARTS[trial.part](trial, random, delta):
            found.setdefault(outcome.what, (outcome.allowed, Count()))[1].add(outcome.count())
    return found
