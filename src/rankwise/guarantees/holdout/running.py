r"""An interval at all times for a running mean whose expectation may change: what a stream that learns needs.

A confidence sequence of :mod:`rankwise.guarantees.holdout.sequences` is for one mean that stays the same. A ranker that
learns while it is measured has another mean in every round. What can be bounded then is the average of these means,

.. math:: \bar\mu_t = \frac1t \sum_{i \le t} \mu_i, \qquad \mu_i = E[x_i \mid x_1 \dots x_{i-1}],

which is the mean quality of what was shown, without the luck of the draws.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import refuse_unless_chance
from rankwise.guarantees.holdout.intervals import scaled_values


class RunningMean:
    r"""A mean of values in a span, with an interval for the mean of their expectations that holds at all times at once.

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
    so that with S_t the sum of the D's, exp(lambda S_t - lambda^2 t/8) is a supermartingale that begins at 1, for every
    lambda. So is its mean over lambda drawn from a normal distribution of variance 1/rho, which is (1 + t/(4 rho))^-1/2
    exp(S_t^2 / (2 rho + t/2)). By Ville's inequality the probability that it ever reaches 1/delta is at most delta;
    solved for abs(S_t), that is the statement. Nothing was assumed about how the expectations change. rho = 34 makes
    the interval tightest at about a thousand values; at any other number it holds as well.

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
    """

    RHO = 34.0

    def __init__(
        self, delta: float = 0.05, span: tuple[float, float] = (0.0, 1.0), *, n: int = 0, total: float = 0.0
    ) -> None:
        refuse_unless_chance("RunningMean", delta=delta)
        if not span[0] < span[1]:
            raise RankwiseError(f"RunningMean: a span is (smallest, largest): found {span!r}")
        self.delta, self.span, self.n, self.total = delta, span, n, total

    def update(self, values: ArrayLike) -> None:
        """Add the next values.

        Parameters
        ----------
        values : float or array-like
            The next values, in any number; NaN (an undefined measure) is left out.
        """
        given = np.atleast_1d(np.asarray(values, dtype=np.float64))
        scaled_values("RunningMean", given, self.span)  # refuses what is outside
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
        room = math.log(math.sqrt(1 + self.n / (4 * self.RHO)) / self.delta)
        return (self.span[1] - self.span[0]) * math.sqrt((2 * self.RHO + self.n / 2) * room) / self.n

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
        return f"RunningMean(n={self.n}, mean={self.mean:.4g}, low={self.low:.4g}, high={self.high:.4g})"
