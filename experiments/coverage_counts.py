"""How often something failed, what that says about its probability, and the verdict on what was promised."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

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
    surely, perhaps : the same if the reference sample erred in favour of the promise, and against it
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


def verdict(parts: Iterable[Count], allowed: float) -> Verdict:
    """FALSE if failures are more frequent than allowed beyond the interval: in all parts together, or in one of them.

    For one of k parts the interval has the level 1 - (1 - LEVEL)/k, since the worst of k is looked at.
    """
    found = [part for part in parts if part.checked]
    if not found:
        return ""
    whole = Count.total(found).interval()[0]
    worst = max(part.interval(1 - (1 - LEVEL) / len(found))[0] for part in found)
    return "FALSE" if max(whole, worst) > allowed else "kept"


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
