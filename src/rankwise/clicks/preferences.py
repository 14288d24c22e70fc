r"""Which of two rankers do readers prefer? Team-draft interleaving, and confidence sequences on it and on A/B tests.

A page of :func:`team_draft` shows two rankings, and every click is a vote. In each round a coin decides which ranking
picks first; each adds its best document that is not on the page yet, to its team. A click is credited to the team of
its document. If readers do not care about the order, both teams win equally often, by the coin; a ranking that puts
what is clicked higher wins more often.

The sequences hold simultaneously at all times: you may look after every impression, and stop when the sign is clear.

- Interleaving: credits x_i in [-1, 1] with the same mean given the earlier ones; the sequence is betting's
  (:class:`~rankwise.guarantees.ConfidenceSequence`).
- A/B: session i is assigned to a with probability s, and has an outcome y_i in [0, 1]. With c_i the mean outcome of the
  earlier sessions, x_i = (y_i - c_i) (1[a]/s - 1[b]/(1 - s)) has the mean E[y given a] - E[y given b] given the past,
  because the second factor has mean 0 and c_i is known before; and it is in [-w, w] with w = max(1/s, 1/(1 - s)). So
  the same sequence applies, on the span [-w, w]. c_i makes x_i smaller, and nothing else.

Under no preference the sequence excludes 0 with probability delta at most, however often one looks (Ville's
inequality).

Two things that the data can refute are checked, and then there is neither an interval nor a winner: bounds that have
crossed (no constant mean agrees with all of them), and a share of the sessions that the claimed assignment gives with
probability 0.001 at most, however often one looks (:func:`~rankwise.clicks.checks.coin_refuted`).

References
----------
F. Radlinski, M. Kurup, T. Joachims (2008). How does clickthrough data reflect retrieval quality? CIKM.
doi:10.1145/1458082.1458092.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._parameters import Check, Fraction, NumberRange, OpenFraction, PositiveInt, validated
from rankwise._tables import ShownAsFacts, facts_html, facts_of
from rankwise.clicks.checks import coin_refuted
from rankwise.clicks.log import ClickLog, blocks_of
from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees._bound import Interval, Precondition, Scope, all_met, plain_fields
from rankwise.guarantees.holdout.intervals import Plan
from rankwise.guarantees.holdout.sequences import ConfidenceSequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Credit = Literal["sign", "share"]
_Even = Annotated[int, Check("an even number of at least 2", lambda grid: grid >= 2 and grid % 2 == 0)]


class Page(NamedTuple):
    """An interleaved page.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_shown,)
        The documents (rows of the query, or numbers in the given orders), in the order shown.
    team : ndarray of int64, shape (n_shown,)
        0 where the first ranking added the document, 1 where the second did.
    """

    rows: Ints
    team: Ints

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return facts_html(self, facts_of(self))


@validated
def team_draft(a: ArrayLike, b: ArrayLike, k: PositiveInt, random: np.random.Generator) -> Page:
    """Interleave two orders of the same documents, or many pairs of orders at once.

    Parameters
    ----------
    a, b : array-like of int, shape (m,) or (n, m)
        Documents best first; each row of both holds the same numbers.
    k : int
        Documents on a page.
    random : numpy.random.Generator
        The coins.

    Returns
    -------
    Page
        Rows and teams, of shape (k,) or (n, k); shorter if there are fewer documents.

    Raises
    ------
    DataError
        If a and b do not hold the same documents.

    Examples
    --------
    >>> page = team_draft([4, 2, 7], [7, 4, 2], 2, np.random.default_rng(0))
    >>> page.rows.tolist(), page.team.tolist()
    ([7, 4], [1, 0])
    """
    first, second = np.atleast_2d(np.asarray(a, dtype=np.int64)), np.atleast_2d(np.asarray(b, dtype=np.int64))
    if first.shape != second.shape or not (np.sort(first, axis=1) == np.sort(second, axis=1)).all():
        raise DataError("team_draft: a and b must be orders of the same documents")
    n, m = first.shape
    # documents as 0 ... m - 1, by their places in the first order
    by_number = np.argsort(second, axis=1)
    in_first = np.empty_like(second)
    np.put_along_axis(in_first, by_number, np.argsort(first, axis=1), axis=1)
    orders = np.stack([np.broadcast_to(np.arange(m), (n, m)), in_first])
    shown = min(k, m)
    used = np.zeros((n, m), dtype=bool)
    rows, team = np.empty((n, shown), dtype=np.int64), np.empty((n, shown), dtype=np.int64)
    every = np.arange(n)
    coin = random.integers(0, 2, size=(n, -(-shown // 2)))
    for number in range(shown):
        # who picks second in a round is the other one
        turn = coin[:, number // 2] if number % 2 == 0 else 1 - coin[:, number // 2]
        order = orders[turn, every]
        free = ~used[every[:, None], order]
        pick = order[every, np.argmax(free, axis=1)]
        used[every, pick] = True
        rows[:, number], team[:, number] = first[every, pick], turn
    single = np.ndim(a) == 1
    return Page(rows[0], team[0]) if single else Page(rows, team)


class TeamDraft(ShownAsFacts):
    """Interleaves the rankings of two rankers, page by page.

    The coins of a page depend on the seed and the id of its impression alone: a page can be made again when the clicks
    arrive, and nothing needs to be stored.

    Parameters
    ----------
    a, b : Ranker, or object with predict
        The rankers.
    k : int, default=10
        Documents on a page.
    seed : int, default=0
        Seed of the coins.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(20, documents=8, features=3, random_state=0)
    >>> draft = TeamDraft(rw.LinearModel.of([1.0, 0.0, 0.0]), rw.LinearModel.of([0.0, 1.0, 0.0]), k=4)
    >>> page = draft.page(queries[0], impression="i-17")
    >>> len(page.rows)
    4
    """

    @validated
    def __init__(self, a: Any, b: Any, *, k: PositiveInt = 10, seed: int = 0) -> None:
        for one in (a, b):
            if not hasattr(one, "predict"):
                raise RankwiseError(
                    f"TeamDraft: a and b must be fitted rankers, got {type(one).__name__} without predict"
                )
        self.a, self.b, self.k, self.seed = a, b, int(k), seed

    def page(self, query: Any, impression: Any) -> Page:
        """The page of one impression.

        Parameters
        ----------
        query : Query, or array of shape (n_documents, n_features)
            The candidates.
        impression : object
            The id of the impression; the same id (as text) has the same page.

        Returns
        -------
        Page
            Row numbers of the candidates in the order shown, and teams.
        """
        first, second = (np.argsort(-np.asarray(one.predict(query)), kind="stable") for one in (self.a, self.b))
        key = blake2b(f"{self.seed}/{impression}".encode(), digest_size=8).digest()
        random = np.random.default_rng(int.from_bytes(key, "little"))
        return team_draft(first, second, self.k, random)


@validated
def credits(team: ArrayLike, click: ArrayLike, *, how: Credit = "sign") -> Any:
    """The credit of impressions, from -1 (the second ranking wins) to 1 (the first wins).

    Parameters
    ----------
    team : array-like of int, shape (n_shown,) or (n, n_shown)
        0 for documents of the first ranking, 1 for those of the second.
    click : array-like of bool, same shape
        The clicks.
    how : {"sign", "share"}, default="sign"
        "sign": which team has more clicks, 0 for a tie; "share": the difference of clicks over their number.

    Returns
    -------
    float or ndarray, shape (n,)
        One credit per impression.

    Examples
    --------
    >>> credits([0, 1, 1], [True, True, True])
    -1.0
    """
    teams, clicks = np.asarray(team), np.asarray(click, dtype=np.float64)
    if teams.shape != clicks.shape or not np.isin(teams, (0, 1)).all():
        raise DataError("credits: team must be 0 or 1 for each click")
    difference = (clicks * (1 - 2 * teams)).sum(axis=-1)
    total = clicks.sum(axis=-1)
    found = np.sign(difference) if how == "sign" else difference / np.maximum(total, 1.0)
    return float(found) if np.ndim(found) == 0 else found


# ---------------------------------------------------------------------------------------------------------- preferences

# An even number of steps has 0 on the grid of means, so "no preference" is a mean that can be refuted.
_GRID = 1_000
# A plan simulates at least this many runs, and its number is enough with this probability.
_RUNS, _SURE = 1_000, 0.99


@dataclass(frozen=True, kw_only=True)
class Preference(ShownAsFacts):
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
        The mean so far, and the bounds of the confidence sequence, which hold simultaneously at all times; the bounds
        are NaN if a precondition is not met.
    delta : float
        Probability that the sequence ever misses the mean.
    decided : str or None
        The preferred ranker; None: cannot tell yet, or a precondition is not met.
    decided_at : int or None
        The impression after which 0 was excluded.
    lows, highs : ndarray, shape (n,)
        The bounds after each impression.
    preconditions : tuple of Precondition
        What has to be true.
    interval : Interval or None
        The current interval; None if a precondition is not met.
    kind : {"preference", "ab_test"}
        Which function made it.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {
        "preference": Scope(
            "mean credit of impressions like these",
            "impression",
            "at any time, as often as you like",
            "when to stop; not which impressions, credits or pairs of rankers are reported (several tests: divide "
            "delta among them)",
        ),
        "ab_test": Scope(
            "difference of the mean outcomes of the two rankers over sessions like these",
            "session (the user, if users were assigned: keep one session per user)",
            "at any time, as often as you like",
            "when to stop; not which sessions, outcomes or pairs of rankers are reported (several tests: divide "
            "delta among them)",
        ),
    }

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
    interval: Interval | None
    kind: Literal["preference", "ab_test"]

    @property
    def scope(self) -> Scope:
        """What the interval is about, when it may be read, and the choices after which it holds."""
        return self.SCOPES[self.kind]

    @property
    def applies(self) -> bool | None:
        """False if a precondition is not met, True if all are known to be, None if some are only assumed."""
        return all_met(self.preconditions)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers and strings, without the history; bounds that do not apply are None."""
        names = ("what", "n", "mean", "delta", "decided", "decided_at", "names", "low", "high", "applies")
        found = plain_fields(self, *names, "preconditions", "scope")
        return found | ({"low": None, "high": None} if self.applies is False else {})

    def __repr__(self) -> str:
        if self.applies is False:
            broken = "; ".join(str(one) for one in self.preconditions if one.met is False)
            return f"{self.what}: no interval after {self.n:,} {self._units}, a precondition is refuted: {broken}"
        verdict = "cannot tell yet"
        if self.decided is not None:
            verdict = f"{self.decided} is preferred, decided after {self.decided_at:,}"
        return (
            f"{self.what}: {self.mean:+.4f}, between {self.low:+.4f} and {self.high:+.4f} at all times, probability "
            f"{1 - self.delta:g} ({self.n:,} {self._units}): {verdict}"
        )

    @property
    def _units(self) -> str:
        return "impressions" if self.kind == "preference" else "sessions"

    def summary(self) -> str:
        """The result, the preconditions and the scope, line by line.

        Returns
        -------
        str
            The text.
        """
        return "\n".join([repr(self), "holds if", *(f"- {one}" for one in self.preconditions), str(self.scope)])

    def plot(self) -> "Figure":
        """Draw the bounds after each impression.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from rankwise._figures import COLORS, FAINT, house_style, new_figure

        figure = new_figure(4.6, 2.8)
        with house_style():
            axes = figure.subplots()
            place = np.arange(1, self.n + 1)
            axes.fill_between(place, self.lows, self.highs, color=COLORS[0], alpha=0.25, linewidth=0)
            axes.axhline(0, color=FAINT, linewidth=1)
            if self.decided_at is not None:
                axes.axvline(self.decided_at, color=COLORS[1], linewidth=1)
            axes.set_xscale("log")
            axes.set_xlabel(self._units)
            axes.set_ylabel(self.what)
            axes.set_title(f"{self.names[0]} against {self.names[1]}, at all times")
        return figure


@validated
def preference(
    credit: ArrayLike, *, delta: OpenFraction = 0.05, names: tuple[str, str] = ("a", "b"), grid: _Even = _GRID
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
        raise DataError("preference: credits must be numbers in [-1, 1], one per impression, got others or none")
    sequence = ConfidenceSequence(delta, span=(-1.0, 1.0), grid=grid)
    constant = "each impression has the same mean credit, given the earlier ones"
    coins = Precondition("fair coins made the teams, and readers did not see them")
    return _follow("preference", sequence, x, names, f"mean credit of {names[0]} over {names[1]}", constant, coins)


@validated
def ab_test(
    log: ClickLog,
    *,
    versions: tuple[str, str] | None = None,
    share: OpenFraction = 0.5,
    outcome: Literal["clicked", "first"] = "clicked",
    delta: OpenFraction = 0.05,
    grid: _Even = _GRID,
) -> Preference:
    """A confidence sequence on the difference of two logging rankers in an A/B test.

    Parameters
    ----------
    log : ClickLog
        Sessions in the order of time, with ``version``.
    versions : tuple of str, default=None
        The two rankers; None: the two of the log, in order of first appearance. Sessions of others are left out.
    share : float, default=0.5
        Probability with which a session was assigned to the first, known beforehand. A log that refutes it at level
        0.001 has no interval.
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

    Raises
    ------
    DataError
        If the log has no two logging rankers, or a session occurs twice.
    """
    if not isinstance(log, ClickLog):
        raise DataError(f"ab_test: log must be a ClickLog in the order of time, got {type(log).__name__}")
    (log,) = blocks_of(log, "ab_test")  # raises an error for repeated sessions
    if log.version is None:
        raise DataError("ab_test requires the column version, which names the two logging rankers")
    names = [str(one) for one in log.version.tolist()]
    found = tuple(dict.fromkeys(names)) if versions is None else tuple(map(str, versions))
    if len(found) != 2:
        raise DataError(f"ab_test compares two logging rankers, got {len(found)}: pass versions=")
    kept = np.flatnonzero(np.isin(np.array(names, dtype=str), found))
    if not len(kept):
        raise DataError(f"ab_test: the log has no session of {found[0]!r} or {found[1]!r}")
    first = np.array([names[one] == found[0] for one in kept.tolist()])
    y = outcomes(log, outcome)[kept]
    x, _ = differences(y, first, share)
    most = max(1 / share, 1 / (1 - share))
    sequence = ConfidenceSequence(delta, span=(-most, most), grid=grid)
    what = {"clicked": "difference of the share of sessions with a click", "first": "difference of 1/first click"}
    heads = int(first.sum())
    refuted = coin_refuted(heads, len(first), share)
    seen = f" (the log: {heads:,} of {len(first):,} sessions)" if refuted else ""
    assigned = Precondition(
        f"sessions were assigned to {found[0]} with probability {share:g}, independently{seen}",
        False if refuted else None,
    )
    constant = "the mean outcome of either ranker does not drift"
    return _follow("ab_test", sequence, x, (found[0], found[1]), what[outcome], constant, assigned)


def differences(
    y: Floats, first: NDArray[np.bool_], share: float, total: float = 0.0, n: int = 0
) -> tuple[Floats, float]:
    """The terms x_i of an A/B test, each with the mean E[y given a] - E[y given b] given the earlier ones.

    Parameters
    ----------
    y : ndarray, shape (k,)
        Outcomes in [0, 1], in the order in which their sides were drawn.
    first : ndarray of bool, shape (k,)
        Which were assigned to a.
    share : float
        Probability of a.
    total : float, default=0.0
        Sum of the outcomes before these.
    n : int, default=0
        Their number.

    Returns
    -------
    x : ndarray, shape (k,)
        (y_i - c_i) (1[a]/s - 1[b]/(1 - s)), where c_i is the mean of the outcomes before, shrunk toward 1/2.
    total : float
        Sum of all outcomes so far; the bits do not depend on the division into calls.
    """
    sums = np.add.accumulate(np.concatenate([[total], y]))
    center = (0.5 + sums[:-1]) / (1 + n + np.arange(len(y)))
    return (y - center) * np.where(first, 1 / share, -1 / (1 - share)), float(sums[-1])


def outcomes(log: ClickLog, outcome: str) -> Floats:
    """The outcome of every session, see :func:`ab_test`."""
    clicked = np.zeros(len(log))
    worth = 1.0 / log.position if outcome == "first" else np.ones(log.n_shown)
    np.maximum.at(clicked, log.session_of_row, np.where(log.click, worth, 0.0))
    return clicked


def _follow(
    kind: Literal["preference", "ab_test"],
    sequence: ConfidenceSequence,
    x: Floats,
    names: tuple[str, str],
    what: str,
    constant: str,
    assigned: Precondition,
) -> Preference:
    """The sequence after all of x; ``constant`` says that the mean of x is, which crossed bounds refute."""
    lows, highs = sequence.run(x)
    # both bounds are refuted means, so bounds that meet leave no mean, and 0 is excluded by a bound of exactly 0
    crossed = sequence.low >= sequence.high
    preconditions = (Precondition(constant, False if crossed else None), assigned)
    applies = all_met(preconditions) is not False
    out = (lows >= 0) | (highs <= 0)
    at = int(np.argmax(out)) + 1 if applies and out.any() else None
    decided = None if at is None else names[0] if lows[at - 1] >= 0 else names[1]
    return Preference(
        names=names,
        what=what,
        n=len(x),
        mean=float(x.mean()),
        low=sequence.low if applies else math.nan,
        high=sequence.high if applies else math.nan,
        delta=sequence.delta,
        decided=decided,
        decided_at=at,
        lows=lows,
        highs=highs,
        preconditions=preconditions,
        interval=sequence.interval(what) if applies else None,
        kind=kind,
    )


class ImpressionPlan(Plan):
    """A :class:`~rankwise.guarantees.Plan` whose ``queries`` are impressions."""

    def __str__(self) -> str:
        return f"{self.queries:,} impressions for {self.purpose} ({self.method}: {self.trust})"


@validated
def impressions_needed(
    preference: Fraction,
    *,
    ties: Annotated[float, NumberRange(0, 1)] = 0.5,
    delta: OpenFraction = 0.05,
    power: OpenFraction = 0.8,
    random_state: int = 0,
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
        The number of impressions, from simulated runs of the sequence itself. With probability 0.99 over the
        simulation it is enough for ``power``: of N runs that many have decided by then that a share of ``power`` would
        have as many with probability 0.01 at most.

    Examples
    --------
    >>> print(impressions_needed(0.2, ties=0.5))
    300 impressions for a mean credit of 0.2, decided 80% of the time at level 5%
    (simulated sequence: if guessed right)
    """
    if preference > 1 - ties:
        raise RankwiseError(f"impressions_needed: preference must be at most 1 - ties, got {preference!r} and {ties!r}")
    from scipy.stats import binom

    # a share near 1 is confirmed by more runs only
    runs = max(_RUNS, math.ceil(2 * math.log(1 - _SURE) / math.log(power)))
    place = int(binom.ppf(_SURE, runs, power))
    horizon = 256
    while True:
        times = np.sort(_decision_times(preference, ties, delta, horizon, runs, random_state))
        if times[place] <= horizon:
            break
        if horizon >= 1 << 22:
            raise RankwiseError("impressions_needed: more than 4 million impressions would be needed")
        horizon *= 4
    return ImpressionPlan(
        queries=int(times[place]),
        method="simulated sequence",
        trust="if guessed right",
        purpose=f"a mean credit of {preference:g}, decided {100 * power:g}% of the time at level {100 * delta:g}%",
        statement="upper confidence limit of the power quantile of the time at which the sequence excludes 0",
        terms={"preference": preference, "ties": ties, "delta": delta, "power": power, "runs": float(runs)},
    )


def _decision_times(
    preference: float, ties: float, delta: float, horizon: int, runs: int, seed: int
) -> NDArray[np.int64]:
    """When simulated runs find the preference; horizon + 1 if they do not."""
    random = np.random.default_rng(seed)
    up, times = (1 - ties + preference) / 2, np.empty(runs, dtype=np.int64)
    for run in range(runs):
        u = random.random(horizon)
        x = np.where(u < up, 1.0, np.where(u < 1 - ties, -1.0, 0.0))
        lows, _ = ConfidenceSequence(delta, span=(-1.0, 1.0), grid=2).run(x)
        out = lows >= 0
        times[run] = int(np.argmax(out)) + 1 if out.any() else horizon + 1
    return times
