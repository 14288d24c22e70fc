"""How often something failed, what that says about its probability, and the verdict on what was promised."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Literal, NamedTuple

from experiments.coverage_populations import Mean
from rankwise.guarantees import Bound

# Confidence of every binomial interval that is shown or that a verdict rests on.
LEVEL = 0.99
# A true mean that is only known from a reference sample is taken to be within so many of its standard errors.
ERRORS = 4.0

Verdict = Literal["kept", "FALSE", ""]


@dataclass
class Count:
    """Checks of one promise.

    Attributes
    ----------
    checked : how many times it was made and checked
    failed : how many of these were wrong
    surely, perhaps : the same if the reference sample erred in favor of the promise, and against it
    vacuous : how many of the checked ones could not be wrong
    not_met : how many were made with a precondition that is known to be broken; they are not among the checked ones
    """

    checked: int = 0
    failed: int = 0
    surely: int = 0
    perhaps: int = 0
    vacuous: int = 0
    not_met: int = 0

    def add(self, other: "Count") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    @classmethod
    def total(cls, counts: Iterable["Count"]) -> "Count":
        whole = cls()
        for count in counts:
            whole.add(count)
        return whole

    @classmethod
    def of(cls, *, failed: int, checked: int, vacuous: int = 0) -> "Count":
        """A count of checks whose truth is known exactly."""
        return cls(checked, failed, failed, failed, vacuous)

    def written(self) -> list[int]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def rate(self) -> float:
        return self.failed / self.checked if self.checked else math.nan

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Where the probability of failing is; wider where the reference sample leaves failures open."""
        low, _ = clopper_pearson(self.surely, self.checked, level)
        _, high = clopper_pearson(self.perhaps, self.checked, level)
        return low, high


class Trial(NamedTuple):
    """What is repeated: the part, the distribution, and the number of queries (0: planned)."""

    part: str
    values: str
    n: int


# How the name of a control begins: a wrong bound, which a verdict has to find out.
CONTROL = "control: "


class Outcome(NamedTuple):
    """One promise in one repetition: what it is, how often it may fail (NaN: no promise), and whether it did."""

    what: str
    allowed: float
    failed: bool
    vacuous: bool = False
    counted: bool = True
    surely: bool | None = None
    perhaps: bool | None = None

    def count(self) -> Count:
        if not self.counted:
            return Count()
        surely = self.failed if self.surely is None else self.surely
        perhaps = self.failed if self.perhaps is None else self.perhaps
        return Count(1, int(self.failed), int(surely), int(perhaps), int(self.vacuous))


def clopper_pearson(failed: int, checked: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact two-sided interval for a probability, from ``failed`` of ``checked`` independent trials.

    >>> [round(end, 4) for end in clopper_pearson(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(failed, checked - failed + 1, tail)) if failed else 0.0
    high = float(betaincinv(failed + 1, checked - failed, 1 - tail)) if failed < checked else 1.0
    return low, high


def check(bound: Bound, truth: Mean | None) -> Count:
    """One check of a bound against the true value; None stands for one that a vacuous bound cannot be below."""
    if bound.applies is False:
        return Count(not_met=1)
    if truth is None:
        return Count(checked=1, vacuous=int(bound.vacuous))
    sign = 1.0 if bound.side == "at most" else -1.0
    reach = sign * ERRORS * truth.error
    return Count(
        checked=1,
        failed=not bound.allows(truth.value),
        surely=not bound.allows(truth.value - reach),
        perhaps=not bound.allows(truth.value + reach),
        vacuous=int(bound.vacuous),
    )


def verdict(parts: Iterable[Count], allowed: float, groups: Iterable[Count] = ()) -> Verdict:
    """FALSE if failures are more frequent than allowed beyond the interval: in all parts together, or in one of them.

    For one of k parts and groups the interval has the level of :func:`level_of_one`, since the worst is looked at.

    Parameters
    ----------
    parts : disjoint counts
    allowed : how often it may fail
    groups : sums of some of the parts, which are looked at as well
    """
    found = [part for part in parts if part.checked]
    if not found:
        return ""
    looked_at = [*found, *groups]
    whole = Count.total(found).interval()[0]
    worst = max(one.interval(level_of_one(len(looked_at)))[0] for one in looked_at)
    return "FALSE" if max(whole, worst) > allowed else "kept"


def level_of_one(many: int) -> float:
    """The level of the interval of one count if the worst of ``many`` is looked at."""
    return 1 - (1 - LEVEL) / many


def power(count: Count, allowed: float, rate: float, level: float = LEVEL) -> float:
    """The probability that a promise which fails at this rate is found FALSE with as many checks.

    Checks of vacuous bounds cannot fail, so the failures are binomial over the others.

    >>> round(power(Count(checked=24), 0.1, 0.25), 2), round(power(Count(checked=400), 0.1, 0.25), 2)
    (0.42, 1.0)
    """
    from scipy.special import bdtrc

    able = count.checked - count.vacuous
    least = fewest_flagged(count.checked, allowed, level)
    if least > able:
        return 0.0
    return float(bdtrc(least - 1, able, rate)) if least else 1.0


@cache
def fewest_flagged(checked: int, allowed: float, level: float = LEVEL) -> int:
    """The smallest number of failures whose interval lies above what is allowed; one more than all if there is none."""
    low, high = 0, checked + 1
    while high - low > 1:  # the lower end of the interval grows with the failures
        middle = (low + high) // 2
        if clopper_pearson(middle, checked, level)[0] > allowed:
            high = middle
        else:
            low = middle
    return high


def rates_to_find(allowed: float) -> tuple[float, float]:
    """The failure rates for which power is printed: twice what is allowed (1% where nothing is), and 25%."""
    return 2 * allowed if allowed else 0.01, 0.25


def read_count(numbers: Iterable[int]) -> Count:
    return Count(*numbers)


@dataclass
class Average:
    """Numbers whose mean is bounded, not each of them: what is promised on average over samples.

    Attributes
    ----------
    count : repetitions
    total, squares : of the risk minus its bound
    bound, vacuous : sums of the bound, and of whether it is vacuous
    norm : the largest norm W of the weights that it compares with
    error : of the reference sample
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    bound: float = 0.0
    vacuous: int = 0
    norm: float = 0.0
    error: float = 0.0

    @classmethod
    def once(cls, bound: Bound, risk: Mean) -> "Average":
        gap = risk.value - bound.value
        return cls(1, gap, gap**2, bound.value, int(bound.vacuous), bound.terms["W"], risk.error)

    def add(self, other: "Average") -> None:
        for name in ("count", "total", "squares", "bound", "vacuous"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.norm, self.error = max(self.norm, other.norm), max(self.error, other.error)

    def written(self) -> list[float]:
        """Plain numbers, to nine digits."""
        return [float(f"{getattr(self, field.name):.9g}") for field in fields(self)]

    def excess(self, best: Mean) -> Mean:
        """Mean of (risk - smallest risk - bound), which is promised to be 0 or less, with its standard error."""
        mean = self.total / self.count
        spread = max(0.0, self.squares / self.count - mean**2) / max(1, self.count - 1)
        # the same reference sample stands behind both risks; at worst their errors add up
        return Mean(mean - best.value, math.sqrt(spread) + self.error + best.error)


def is_false(average: Average, best: Mean) -> bool:
    """Whether the mean is above the promise by more than its error allows."""
    found = average.excess(best)
    return found.value > ERRORS * found.error + 1e-12
