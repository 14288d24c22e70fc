r"""Which of two rankers do readers prefer? Confidence sequences on interleaving credits and on A/B tests.

Both hold at all times at once: looking after every impression, and stopping when the sign is clear, costs nothing.

- Interleaving: credits x_i in [-1, 1] with the same mean given the earlier ones; the sequence is betting's
  (:class:`~rankwise.guarantees.ConfidenceSequence`).
- A/B: session i is assigned to a with probability s, and has an outcome y_i in [0, 1]. With c_i the mean outcome of the
  earlier sessions, x_i = (y_i - c_i) (1[a]/s - 1[b]/(1 - s)) has the mean E[y given a] - E[y given b] given the past,
  because the second factor has mean 0 and c_i is known before; and it is in [-w, w] with w = max(1/s, 1/(1 - s)). So
  the same sequence applies, on the span [-w, w]. c_i makes x_i smaller, and nothing else.

Under no preference the sequence excludes 0 with probability delta at most, however often one looks (Ville's
inequality).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.guarantees._bound import Precondition, refuse_unless, refuse_unless_chance
from rankwise.guarantees.holdout.interval import Interval
from rankwise.guarantees.holdout.intervals import Plan
from rankwise.guarantees.holdout.sequences import ConfidenceSequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankwise.clicks.log import ClickLog

Floats = NDArray[np.float64]

# An even number of steps has 0 on the grid of means, so that "no preference" is a mean that can be refuted.
_GRID = 1_000
# Simulated runs of a plan; their share has a standard error of 2 %.
_RUNS = 400


@dataclass(frozen=True, kw_only=True)
class Preference:
    """What :func:`preference` and :func:`ab_test` return.

    Attributes
    ----------
    names : tuple of str
        The two rankers.
    what : str
        The mean in words: positive where the first is preferred.
    n : int
        Impressions (sessions).
    mean, low, high : float
        The mean so far and the ends of the confidence sequence, which hold at all times at once.
    delta : float
        Probability that the sequence ever misses the mean.
    decided : str or None
        The preferred ranker; None: cannot tell yet.
    decided_at : int or None
        The impression after which 0 was excluded.
    lows, highs : ndarray, shape (n,)
        The ends after each impression.
    preconditions : tuple of Precondition
        What has to be true.
    interval : Interval
        The current interval.
    """

    names: tuple[str, str]
    what: str
    n: int
    mean: float
    low: float
    high: float
    delta: float
    decided: str | None
    decided_at: int | None
    lows: Floats
    highs: Floats
    preconditions: tuple[Precondition, ...]
    interval: Interval

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers and strings, without the history."""
        found = {name: getattr(self, name) for name in ("what", "n", "mean", "low", "high", "delta", "decided")}
        return found | {
            "names": list(self.names),
            "decided_at": self.decided_at,
            "preconditions": [{"sentence": one.sentence, "met": one.met} for one in self.preconditions],
        }

    def __repr__(self) -> str:
        verdict = "cannot tell yet"
        if self.decided is not None:
            verdict = f"{self.decided} is preferred, decided after {self.decided_at:,}"
        return (
            f"{self.what}: {self.mean:+.4f}, between {self.low:+.4f} and {self.high:+.4f} at all times, probability "
            f"{1 - self.delta:g} ({self.n:,} impressions): {verdict}"
        )

    def plot(self) -> "Figure":
        """Draw the ends after each impression.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from rankwise._figures import COLOURS, FAINT, house_style, new_figure

        figure = new_figure(4.6, 2.8)
        with house_style():
            axes = figure.subplots()
            place = np.arange(1, self.n + 1)
            axes.fill_between(place, self.lows, self.highs, color=COLOURS[0], alpha=0.25, linewidth=0)
            axes.axhline(0, color=FAINT, linewidth=1)
            if self.decided_at is not None:
                axes.axvline(self.decided_at, color=COLOURS[1], linewidth=1)
            axes.set_xscale("log")
            axes.set_xlabel("impressions")
            axes.set_ylabel(self.what)
            axes.set_title(f"{self.names[0]} against {self.names[1]}, at all times")
        return figure


def preference(
    credit: ArrayLike, *, delta: float = 0.05, names: tuple[str, str] = ("a", "b"), grid: int = _GRID
) -> Preference:
    """A confidence sequence on the mean credit of interleaving.

    Parameters
    ----------
    credit : array-like, shape (n,)
        Credits of :func:`credits` in the order of the impressions.
    delta : float, default=0.05
        Probability that the sequence ever misses the mean.
    names : tuple of str, default=("a", "b")
        The rankers.
    grid : int, default=1_000
        Steps of the ends, an even number.

    Returns
    -------
    Preference
        The result.

    Examples
    --------
    >>> found = preference([1.0, 0.0, 1.0, 1.0, -1.0] * 30)
    >>> found.decided, found.decided_at
    ('a', 38)
    """
    x = np.atleast_1d(np.asarray(credit, dtype=np.float64))
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all() or (np.abs(x) > 1).any():
        raise DataError("preference takes credits between -1 and 1, one per impression: found others or none")
    return _sequence(
        x,
        (-1.0, 1.0),
        delta,
        names,
        grid,
        f"mean credit of {names[0]} over {names[1]}",
        (
            Precondition("each impression has the same mean credit, given the earlier ones"),
            Precondition("fair coins made the teams, and readers did not see them"),
        ),
    )


def ab_test(
    log: "ClickLog",
    *,
    versions: tuple[str, str] | None = None,
    share: float = 0.5,
    outcome: str = "clicked",
    delta: float = 0.05,
    grid: int = _GRID,
) -> Preference:
    """A confidence sequence on the difference of two logging rankers in an A/B test.

    Parameters
    ----------
    log : ClickLog
        Sessions in the order of time, with ``version``.
    versions : tuple of str, default=None
        The two rankers; None: the two of the log, in order of first appearance. Sessions of others are left out.
    share : float, default=0.5
        Probability with which a session was assigned to the first, known beforehand.
    outcome : {"clicked", "first"}, default="clicked"
        "clicked": whether anything was clicked; "first": one over the position of the highest click, 0 without one.
    delta : float, default=0.05
        Probability that the sequence ever misses the difference.
    grid : int, default=1_000
        Steps of the ends, an even number.

    Returns
    -------
    Preference
        The result; ``mean`` estimates the difference of mean outcomes.
    """
    refuse_unless_chance("ab_test", share=share)
    if outcome not in ("clicked", "first"):
        raise RankwiseError(f"ab_test: outcome is 'clicked' or 'first': found {outcome!r:.40}")
    if log.version is None:
        raise DataError("ab_test compares two logging rankers: the log has no column version")
    names = [str(one) for one in log.version.tolist()]
    found = tuple(dict.fromkeys(names)) if versions is None else tuple(map(str, versions))
    if len(found) != 2:
        raise DataError(f"ab_test compares two logging rankers: found {len(found)}; give versions=")
    kept = np.flatnonzero(np.isin(np.array(names, dtype=str), found))
    if not len(kept):
        raise DataError(f"ab_test: no session of {found[0]!r} or {found[1]!r}")
    first = np.array([names[one] == found[0] for one in kept.tolist()])
    y = outcomes(log, outcome)[kept]
    centre = np.concatenate([[0.5], (0.5 + np.cumsum(y)[:-1]) / (1 + np.arange(1, len(y)))])
    factor = np.where(first, 1 / share, -1 / (1 - share))
    most = max(1 / share, 1 / (1 - share))
    what = {"clicked": "difference of the share of sessions with a click", "first": "difference of 1/first click"}
    return _sequence(
        (y - centre) * factor,
        (-most, most),
        delta,
        (found[0], found[1]),
        grid,
        what[outcome],
        (
            Precondition(f"sessions were assigned to {found[0]} with probability {share:g}, independently"),
            Precondition("the mean outcome of either ranker does not drift"),
        ),
    )


def outcomes(log: "ClickLog", outcome: str) -> Floats:
    """The outcome of every session, see :func:`ab_test`."""
    clicked = np.zeros(len(log))
    worth = 1.0 / log.position if outcome == "first" else np.ones(log.n_shown)
    np.maximum.at(clicked, log.session_of_row, np.where(log.click, worth, 0.0))
    return clicked


def _sequence(
    x: Floats,
    span: tuple[float, float],
    delta: float,
    names: tuple[str, str],
    grid: int,
    what: str,
    preconditions: tuple[Precondition, ...],
) -> Preference:
    if grid < 2 or grid % 2:
        raise RankwiseError(f"grid is an even number of steps: found {grid!r}")
    sequence = ConfidenceSequence(delta, span=span, grid=grid)
    lows, highs = sequence.run(x)
    # a low end of exactly 0 is a refuted mean of 0: the mean is above it
    out = (lows >= 0) | (highs <= 0)
    at = int(np.argmax(out)) + 1 if out.any() else None
    decided = None if at is None else names[0] if lows[at - 1] >= 0 else names[1]
    return Preference(
        names=names,
        what=what,
        n=len(x),
        mean=float(x.mean()),
        low=sequence.low,
        high=sequence.high,
        delta=delta,
        decided=decided,
        decided_at=at,
        lows=lows,
        highs=highs,
        preconditions=preconditions,
        interval=sequence.interval(what),
    )


class ImpressionPlan(Plan):
    """A :class:`~rankwise.guarantees.Plan` whose ``queries`` are impressions."""

    def __str__(self) -> str:
        return f"{self.queries:,} impressions for {self.purpose} ({self.method}: {self.trust})"


def impressions_needed(
    preference: float, *, ties: float = 0.5, delta: float = 0.05, power: float = 0.8, random_state: int = 0
) -> Plan:
    """How many impressions interleaving needs to decide, looking all the time.

    Parameters
    ----------
    preference : float
        The mean credit that is worth finding, above 0 and at most 1 - ties.
    ties : float, default=0.5
        Share of impressions without a winner, mostly those without a click.
    delta : float, default=0.05
        Probability that the sequence ever misses the mean.
    power : float, default=0.8
        Share of runs that have decided by then.
    random_state : int, default=0
        Seed of the simulated runs.

    Returns
    -------
    Plan
        The number of impressions, from simulated runs of the sequence itself.

    Examples
    --------
    >>> print(impressions_needed(0.2, ties=0.5))
    285 impressions for a mean credit of 0.2, decided 80 % of the time at level 5 %
    (simulated sequence: if guessed right)
    """
    refuse_unless("impressions_needed", above=0, preference=preference)
    refuse_unless_chance("impressions_needed", delta=delta, power=power)
    if not 0 <= ties < 1 or preference > 1 - ties:
        raise RankwiseError(
            f"impressions_needed: ties is 0 to 1 and preference at most 1 - ties: found {ties!r} and {preference!r}"
        )
    horizon = 256
    while True:
        times = _decision_times(preference, ties, delta, horizon, random_state)
        if (times <= horizon).mean() >= power:
            break
        if horizon >= 1 << 22:
            raise RankwiseError("impressions_needed: more than 4 million impressions would be needed")
        horizon *= 4
    needed = int(np.sort(times)[math.ceil(power * _RUNS) - 1])
    return ImpressionPlan(
        queries=needed,
        method="simulated sequence",
        trust="if guessed right",
        purpose=f"a mean credit of {preference:g}, decided {100 * power:g} % of the time at level {100 * delta:g} %",
        statement="power quantile of the time at which the sequence excludes 0",
        terms={"preference": preference, "ties": ties, "delta": delta, "power": power},
    )


def _decision_times(preference: float, ties: float, delta: float, horizon: int, seed: int) -> NDArray[np.int64]:
    """When simulated runs exclude 0; horizon + 1 if they do not."""
    random = np.random.default_rng(seed)
    up, times = (1 - ties + preference) / 2, np.empty(_RUNS, dtype=np.int64)
    for run in range(_RUNS):
        u = random.random(horizon)
        x = np.where(u < up, 1.0, np.where(u < 1 - ties, -1.0, 0.0))
        lows, highs = ConfidenceSequence(delta, span=(-1.0, 1.0), grid=2).run(x)
        out = (lows >= 0) | (highs <= 0)
        times[run] = int(np.argmax(out)) + 1 if out.any() else horizon + 1
    return times
