r"""Confidence sequences: intervals that hold simultaneously at all times, so a stream may be stopped at any time.

A confidence sequence is an interval after each value of a stream such that, with probability 1 - delta, the mean is in
all of them. There are three kinds, for values in [0, 1], by the bets of :mod:`rankwise.guarantees.holdout.betting` and

.. math:: \frac{\sum_i \lambda_i x_i - \log(1/\alpha) - \sum_i \psi_i}{\sum_i \lambda_i}
          \quad\text{from below, alpha = delta/2 on each side:}

- Hoeffding: psi = lambda^2/8, lambda_i = min(1, sqrt(8 log(1/alpha)/(i log(i + 1)))), which does not use the spread;
- empirical Bernstein: psi = (x_i - mu)^2 (-log(1 - lambda) - lambda), mu the mean of the earlier values, lambda_i =
  min(1/2, sqrt(2 log(1/alpha)/(variance i log(i + 1))));
- betting: the capital on a grid of means.

All keep the best ends so far. Memory does not grow with the stream. The values need not be independent: it is enough
that each has the same mean given the earlier ones.

:class:`RunningMean` is for a mean that changes. A ranker that learns while it is measured has another mean in every
round. What can be bounded then is the average of these means,

.. math:: \bar\mu_t = \frac1t \sum_{i \le t} \mu_i, \qquad \mu_i = E[x_i \mid x_1 \dots x_{i-1}],

which is the mean quality of what was shown, without the luck of the draws.

References
----------
I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import SEQUENCE, Ends, Interval, Precondition, Scope, refuse_unless_chance
from rankwise.guarantees.holdout.betting import BetMoments, LowerGrid
from rankwise.guarantees.holdout.intervals import NAMES, Method, alpha_of, refuse_unless_known, scale_values

Floats = NDArray[np.float64]

STATEMENTS: dict[str, str] = {
    "hoeffding": "(sum lambda x -+ (log(1/alpha) + sum lambda^2/8)) / sum lambda",
    "empirical bernstein": "(sum lambda x -+ (log(1/alpha) + sum (x - mu)^2 (-log(1 - lambda) - lambda))) / sum lambda",
    "betting": "means m of a grid with capital(m) < 1/alpha at all times",
}


class LowerEnd(Protocol):
    """A lower bound on the mean of a stream in [0, 1]."""

    low: float

    def update(self, x: Floats, /) -> Floats:
        """The bound after each of the next values."""


class LowerPlugIn:
    """The lower end by Hoeffding's or the empirical Bernstein inequality, with weights computed from the past.

    Parameters
    ----------
    alpha : float
        Probability that the bound may ever fail.
    spread : bool
        Whether to use the empirical variance.
    """

    def __init__(self, alpha: float, spread: bool) -> None:
        self.alpha, self.spread, self.low, self.moments = alpha, spread, 0.0, BetMoments()
        self.sums = np.zeros(3)  # of lambda x, lambda, psi

    def update(self, x: Floats) -> Floats:
        """The bound after each of the next values."""
        if not len(x):
            return np.empty(0)
        place = self.moments.count + np.arange(1, len(x) + 1)
        means, variances = self.moments.before(x)
        wanted = math.log(1 / self.alpha)
        if self.spread:
            weights = np.minimum(0.5, np.sqrt(2 * wanted / (variances * place * np.log(place + 1))))
            psi = (x - means) ** 2 * (-np.log1p(-weights) - weights)
        else:
            weights = np.minimum(1.0, np.sqrt(8 * wanted / (place * np.log(place + 1))))
            psi = weights**2 / 8
        sums = np.column_stack([self.sums, np.stack([weights * x, weights, psi])])
        np.add.accumulate(sums, axis=1, out=sums)
        self.sums = sums[:, -1].copy()
        products, total, spent = sums[:, 1:]
        lows = np.maximum(self.low, np.maximum.accumulate((products - wanted - spent) / total))
        self.low = float(lows[-1])
        return np.asarray(lows)


class ConfidenceSequence(ShownAsFacts):
    """A running interval for the mean of a stream of values, valid simultaneously at all times.

    Parameters
    ----------
    delta : float, default=0.05
        Probability that the mean may ever be outside.
    method : {"betting", "empirical bernstein", "hoeffding"}, default="betting"
        How the ends are computed.
    ends : {"both", "low", "high"}, default="both"
        Which ends are wanted; one alone is tighter.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.
    grid : int, default=1_000
        Betting rounds its ends outwards to this many steps of the span.

    Attributes
    ----------
    n : int
        Number of values so far.
    low, high : float
        The ends so far; they cross if the mean of the stream drifts.

    Examples
    --------
    >>> sequence = ConfidenceSequence(0.05)
    >>> for value in [0.9, 0.8, 1.0, 0.7] * 20:
    ...     sequence.update(value)
    >>> sequence.n, sequence.low, sequence.high
    (80, 0.795, 0.89)
    """

    def __init__(
        self,
        delta: float = 0.05,
        *,
        method: Method = "betting",
        ends: Ends = "both",
        span: tuple[float, float] = (0.0, 1.0),
        grid: int = 1_000,
    ) -> None:
        refuse_unless_known("ConfidenceSequence", method, ends, span)
        refuse_unless_chance("ConfidenceSequence", delta=delta)
        if grid < 1:
            raise RankwiseError(f"ConfidenceSequence: grid must be at least 1, got {grid!r}")
        self.delta, self.method, self.ends, self.span, self.grid = delta, method, ends, span, grid
        self.n, self._total = 0, 0.0
        self._below, self._above = (self._end() if ends != other else None for other in ("high", "low"))

    def _end(self) -> LowerEnd:
        alpha = alpha_of(self.delta, self.ends)
        if self.method == "betting":
            return LowerGrid(alpha, self.grid)
        return LowerPlugIn(alpha, spread=self.method == "empirical bernstein")

    @property
    def low(self) -> float:
        """The lower end so far."""
        return self.span[0] + (self.span[1] - self.span[0]) * (self._below.low if self._below else 0.0)

    @property
    def high(self) -> float:
        """The upper end so far."""
        return self.span[1] - (self.span[1] - self.span[0]) * (self._above.low if self._above else 0.0)

    def update(self, values: ArrayLike) -> None:
        """Add the next values.

        Parameters
        ----------
        values : float or array-like
            The next value, or the next ones in their order; NaN (a skipped query) is left out.
        """
        self.run(values)

    def run(self, values: ArrayLike) -> tuple[Floats, Floats]:
        """Add the next values, and return both ends after each of them.

        Parameters
        ----------
        values : float or array-like
            The next values; NaN is left out.

        Returns
        -------
        low, high : ndarray
            The ends after each of the values that were not left out.
        """
        x = scale_values("ConfidenceSequence", np.atleast_1d(np.asarray(values, dtype=np.float64)), self.span)
        width = self.span[1] - self.span[0]
        low = self._below.update(x) if self._below else np.zeros(len(x))
        high = self._above.update(1 - x) if self._above else np.zeros(len(x))
        self.n += len(x)
        self._total = float(np.add.accumulate(np.concatenate([[self._total], x]))[-1])
        return self.span[0] + width * low, self.span[1] - width * high

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` continues the sequence, to the bit; for betting only."""
        ends = [end for end in (self._below, self._above) if isinstance(end, LowerGrid)]
        if len(ends) != (self._below is not None) + (self._above is not None):
            raise RankwiseError(f"only a sequence with method='betting' can be stored, got {self.method!r}")
        return {
            "settings": {"delta": self.delta, "ends": self.ends, "span": list(self.span), "grid": self.grid},
            "n": self.n,
            "total": self._total,
            "kept": [
                {"low": end.low, "capital": end.capital.tolist(), "moments": dict(vars(end.moments))} for end in ends
            ],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "ConfidenceSequence":
        """The sequence that :meth:`to_dict` described.

        Parameters
        ----------
        state : dict of str to object
            What ``to_dict`` returned.

        Returns
        -------
        ConfidenceSequence
            A sequence that continues where the other was.
        """
        found = cls(**state["settings"] | {"span": tuple(state["settings"]["span"])})
        found.n, found._total = state["n"], state["total"]
        ends = [end for end in (found._below, found._above) if isinstance(end, LowerGrid)]
        for end, kept in zip(ends, state["kept"], strict=True):
            end.low, end.capital = kept["low"], np.array(kept["capital"], dtype=np.float64)
            vars(end.moments).update(kept["moments"])
        return found

    @property
    def mean(self) -> float:
        """The mean of the values so far; NaN before the first one."""
        return self.span[0] + (self.span[1] - self.span[0]) * self._total / self.n if self.n else math.nan

    def interval(self, of: str = "mean over future queries") -> Interval:
        """The current interval.

        Parameters
        ----------
        of : str, default="mean over future queries"
            The mean in words, for display.

        Returns
        -------
        Interval
            The interval.
        """
        if self.n == 0:
            raise RankwiseError("ConfidenceSequence: an interval requires at least one value, got none so far")
        terms = {"alpha": alpha_of(self.delta, self.ends)} | (
            {"grid": float(self.grid)} if self.method == "betting" else {}
        )
        return Interval(
            name=f"{NAMES[self.method]}, at all times",
            of=of,
            low=self.low,
            high=self.high,
            mean=self.mean,
            n=self.n,
            delta=self.delta,
            ends=self.ends,
            span=self.span,
            statement=STATEMENTS[self.method],
            terms=terms,
            preconditions=(
                Precondition(f"values are between {self.span[0]:g} and {self.span[1]:g}", True),
                # bounds that have crossed agree with no constant mean
                Precondition(
                    "each value has the same mean, given the earlier ones", False if self.low > self.high else None
                ),
                Precondition(f"it holds simultaneously at all times with probability {1 - self.delta:g}"),
            ),
            source="Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, 2024",
            scope=SEQUENCE,
        )


def confidence_sequence(values: ArrayLike, delta: float = 0.05, **settings: Any) -> tuple[Floats, Floats]:
    """Both ends of a confidence sequence after each of the values.

    Parameters
    ----------
    values : array-like
        The values in their order; NaN is left out.
    delta : float, default=0.05
        Probability that the mean may ever be outside.
    **settings : object
        The other parameters of :class:`ConfidenceSequence`.

    Returns
    -------
    low, high : ndarray
        The ends after each of the values that were not left out.

    Examples
    --------
    >>> low, high = confidence_sequence([1.0] * 100)
    >>> [round(float(end), 3) for end in (low[9], low[99], high[99])]
    [0.627, 0.952, 1.0]
    """
    return ConfidenceSequence(delta, **settings).run(values)


# The interval of a running mean is tightest at about a thousand values; at any other number it holds as well.
RHO = 34.0


def anytime_radius(n: float, delta: float) -> float:
    """How far the mean of n values in [0, 1] may be from that of their expectations, simultaneously for all n.

    Parameters
    ----------
    n : float
        Number of values, 1 or more.
    delta : float
        Probability that the mean is ever farther away, on either side.

    Returns
    -------
    float
        The radius of :class:`RunningMean`, which has the proof.

    Examples
    --------
    >>> round(anytime_radius(1000, 0.05), 4)
    0.048
    """
    return math.sqrt((2 * RHO + n / 2) * math.log(math.sqrt(1 + n / (4 * RHO)) / delta)) / n


class RunningMean:
    r"""A mean of values in a span, and an interval for the mean of their expectations that holds at any time.

    The statement is about the values that were given, in the order in which they were given: mu_i is the expectation of
    the i-th of them given the earlier ones. For a service that means the rankings that were judged, in the order in
    which their judgments were complete. Rankings that nobody judged, and values left out as NaN, are not covered: if
    good rankings are judged more often than bad ones, or sooner, the interval is right for the judged ones and not for
    all. It may be read at any time, and as often as you like.

    .. math:: \left| \frac1t \sum_{i \le t} x_i - \bar\mu_t \right| \le
        \frac1t \sqrt{\left(2\rho + \tfrac t2\right) \log\frac{\sqrt{1 + t/(4\rho)}}{\delta}}
        \quad\text{for all } t \text{ at once, for values in } [0, 1]

    Parameters
    ----------
    delta : float, default=0.05
        Probability that the mean of the expectations is ever outside.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.
    n : int, default=0
        Number of values so far, to continue a mean that was stored.
    total : float, default=0.0
        Their sum, likewise.

    Notes
    -----
    Proof. By Hoeffding's lemma D = x_i - mu_i satisfies E[exp(lambda D - lambda^2/8) | past] <= 1 for values in [0, 1],
    so, with S_t the sum of the D's, exp(lambda S_t - lambda^2 t/8) is a supermartingale that begins at 1, for every
    lambda. So is its mean over lambda drawn from a normal distribution of variance 1/rho, which is (1 + t/(4 rho))^-1/2
    exp(S_t^2 / (2 rho + t/2)). By Ville's inequality the probability that it ever reaches 1/delta is at most delta;
    solved for abs(S_t), that is the statement. Nothing was assumed about how the expectations change, nor about which
    values are given, and when: mu_i is the expectation given the earlier values of those that are given. rho = 34.

    References
    ----------
    H. Robbins (1970). Statistical methods related to the law of the iterated logarithm. Annals of Mathematical
    Statistics 41(5), 1397-1409. S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021). Time-uniform, nonparametric,
    nonasymptotic confidence sequences. Annals of Statistics 49(2), 1055-1080.

    Examples
    --------
    >>> running = RunningMean(0.05)
    >>> running.update([0.5, 0.7] * 500)
    >>> running.n, round(running.mean, 3), round(running.low, 3), round(running.high, 3)
    (1000, 0.6, 0.552, 0.648)
    >>> running
    RunningMean(n=1000, mean=0.6, low=0.552, high=0.648; over the values given, in their order; at all times)
    """

    scope = Scope(
        population="the values given so far, in their order; of a service the rankings that were judged so far",
        unit="value; of a service a judged ranking, when its judgment is complete",
        read="at any time, and as often as you like",
        choices="when to look and when to stop; not which values are given, if that depends on the values",
    )

    def __init__(
        self, delta: float = 0.05, span: tuple[float, float] = (0.0, 1.0), *, n: int = 0, total: float = 0.0
    ) -> None:
        refuse_unless_chance("RunningMean", delta=delta)
        if not span[0] < span[1]:
            raise RankwiseError(f"RunningMean: span must be (smallest, largest), got {span!r}")
        self.delta, self.span, self.n, self.total = delta, span, n, total

    def update(self, values: ArrayLike) -> None:
        """Add the next values.

        Parameters
        ----------
        values : float or array-like
            The next values, in any number; NaN (an undefined measure) is left out.
        """
        given = np.atleast_1d(np.asarray(values, dtype=np.float64))
        scale_values("RunningMean", given, self.span)  # refuses what is outside
        kept = given[~np.isnan(given)]
        self.n += len(kept)
        # one after the other, so that no division into calls changes a bit
        self.total = float(np.add.accumulate(np.append(self.total, kept))[-1])

    @property
    def mean(self) -> float:
        """The mean so far; NaN before the first value."""
        return self.total / self.n if self.n else math.nan

    @property
    def radius(self) -> float:
        """Half of the width of the interval, before it is cut at the span."""
        if not self.n:
            return math.inf
        return (self.span[1] - self.span[0]) * anytime_radius(self.n, self.delta)

    @property
    def low(self) -> float:
        """The lower end now."""
        return max(self.span[0], self.mean - self.radius) if self.n else self.span[0]

    @property
    def high(self) -> float:
        """The upper end now."""
        return min(self.span[1], self.mean + self.radius) if self.n else self.span[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which ``RunningMean(**values)`` goes on."""
        return {"delta": self.delta, "span": self.span, "n": self.n, "total": self.total}

    def __repr__(self) -> str:
        found = f"n={self.n}, mean={self.mean:.4g}, low={self.low:.4g}, high={self.high:.4g}"
        return f"RunningMean({found}; over the values given, in their order; at all times)"
