r"""Position models: the probability that a document at position k is examined, relative to position 1.

Three ways lead to a :class:`Propensities`:

- :func:`by_swaps`: a coin that swapped positions 1 and k, or did not. The bounds are exact at any number of sessions.
- :func:`harvest`: rankers that showed the same documents at different positions. The bounds are bootstrap percentiles
  over queries, which hold for many queries only, whatever the number of sessions, and are marked "asymptotic".
- :func:`given`: numbers from elsewhere, which are taken as they are.

The click rate by position is not one of them: good rankers put good documents on top, so it confounds position
and relevance (:func:`by_click_rate` says how far it is off).

**Upper ends by betting.** Let x be the document that belongs at position 1, and y the one at k. In a session that
was not swapped the clicks at positions 1 and k have the means theta_1 a_x and theta_k a_y under the position-based
model, in a swapped one theta_1 a_y and theta_k a_x. The coin does not depend on the query, so both kinds of sessions
have the same mean a_x and the same mean a_y. Take pairs of one swapped and one unswapped session, the first with the
first and so on, and let c_1 and c_k be the mean clicks of a pair at positions 1 and k: E[c_1] = theta_1 E[a_x + a_y]/2
and E[c_k] = theta_k E[a_x + a_y]/2, given all tosses of the coin, **whatever its bias**. So E[rho c_1 - c_k] = 0 at
rho = theta_k / theta_1, and for that rho the capital

.. math:: K_t(\rho) = \prod_{i \le t} \big(1 + \lambda_i (\rho\, c_{1,i} - c_{k,i})\big),
          \qquad 0 \le \lambda_i \le 3/4 \text{ computed from earlier pairs},

is a nonnegative martingale, and by Ville's inequality ever reaches 1/alpha with probability at most alpha. Every factor
grows with rho, because lambda_i does not depend on it. Hence the rho with max_t K_t(rho) >= 1/alpha are all those
above some end, and theta_k / theta_1 is above that end with probability at most alpha. The lower end is one over the
upper end of theta_1 / theta_k, for which c_1 and c_k change places.

References
----------
T. Joachims, A. Swaminathan, T. Schnabel (2017). Unbiased learning-to-rank with biased feedback. WSDM.
doi:10.1145/3018661.3018699.

A. Agarwal, I. Zaitsev, X. Wang, C. Li, M. Najork, T. Joachims (2019). Estimating position bias without intrusive
interventions. WSDM. doi:10.1145/3289600.3291017 (AllPairs).

R. A. Bradley, M. E. Terry (1952). Rank analysis of incomplete block designs. Biometrika 39(3/4), 324-345.
doi:10.2307/2334029.

I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.
"""

import base64
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._files import writing
from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NumberRange, OpenFraction, validated
from rankwise._tables import ShownAsFacts
from rankwise.clicks.log import ClickLog, blocks_of
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.guarantees._bound import Scope
from rankwise.guarantees.holdout.betting import SHARE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]
How = Literal["given", "swaps", "harvest"]

# An upper end is looked for up to here; beyond it is infinite.
_MOST = 1e6
# Relative accuracy of an end, on the safe side.
_ACCURACY = 1e-9

# Entries of a file, besides the sessions.
_STORED = ("theta", "low", "high", "how", "delta_low", "delta_high", "relative", "asymptotic", "beta")
# Relative error of the click rate by position where the logging ranker is right more often than not, as measured by
# experiments/clicks.py (docs/clicks.json) at positions 2 to 10 with theta = 1/rank.
NAIVE_ERROR = (-0.70, -0.21)


@dataclass(frozen=True, eq=False, kw_only=True)
class Propensities(ShownAsFacts):
    """Examination probabilities by position, with their ends.

    Parameters
    ----------
    theta : array-like, shape (n_positions,)
        The estimates, position 1 first.
    low, high : array-like, shape (n_positions,), default=None
        Lower and upper ends; None: ``theta`` itself, which is then taken as exact.
    how : {"given", "swaps", "harvest"}, default="given"
        Where they are from.
    delta_low, delta_high : float, default=0.0
        Probability that any of the lower (upper) ends is on the wrong side.
    relative : bool, default=False
        Whether they are relative to position 1, which then has 1: values are then in units of position 1's examination.
    asymptotic : bool, default=False
        Whether the ends hold only for many queries.
    beta : array-like, shape (n_positions,), default=None
        Probability of a click that does not depend on the document, by position (trust bias):
        E[click] = theta a + beta. The numbers are taken as they are; None: none.
    sessions : ndarray of uint64, default=()
        Hashes of the sessions that the ends were computed from; values refuse these sessions.

    Examples
    --------
    >>> model = Propensities(theta=[1.0, 0.5, 0.25])
    >>> model
    Propensities(3 positions, given: 1, 0.5, 0.25)
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {
        "by_swaps": Scope(
            "examination of every position relative to position 1, by readers like those of these sessions",
            "session",
            "once, at a log whose end was fixed beforehand",
            "any choice among the positions, whose bounds hold together; not a choice of sessions by their clicks",
        ),
        "harvest": Scope(
            "examination of every position relative to position 1, on queries like these (asymptotic)",
            "query",
            "once, at a log whose end was fixed beforehand",
            "any choice among the positions, whose bounds hold together; not a choice of queries by their clicks",
        ),
    }

    theta: Floats
    low: Floats = None  # type: ignore[assignment]
    high: Floats = None  # type: ignore[assignment]
    how: How = "given"
    delta_low: float = 0.0
    delta_high: float = 0.0
    relative: bool = False
    asymptotic: bool = False
    beta: Floats | None = None
    sessions: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def __post_init__(self) -> None:
        for name in ("theta", "low", "high", "beta"):
            values = getattr(self, name)
            if name != "beta" or values is not None:
                given = self.theta if values is None else values
                object.__setattr__(self, name, _as_positions(name, given, infinite=name == "high"))
        theta, low, high, beta = self.theta, self.low, self.high, self.trust
        if not len(theta) or (theta <= 0).any():
            raise RankwiseError(f"Propensities: theta must be above 0 at every position, got {theta!r:.60}")
        if not len(low) == len(high) == len(beta) == len(theta):
            raise RankwiseError(
                f"Propensities: theta, low, high and beta must have one number per position, got {len(theta)}, "
                f"{len(low)}, {len(high)} and {len(beta)}"
            )
        if (low < 0).any() or (low > high).any():
            raise RankwiseError("Propensities: 0 <= low <= high must hold at every position")
        if not self.relative and (theta > 1).any():
            raise RankwiseError(f"Propensities: theta must be at most 1, got {theta.max():g} (unless relative=True)")
        if (beta < 0).any() or (beta >= 1).any():
            raise RankwiseError("Propensities: beta must have one probability below 1 per position")

    def __len__(self) -> int:
        return len(self.theta)

    @property
    def scope(self) -> Scope | None:
        """What the bounds are about; None for given numbers, which nothing is guaranteed of."""
        return self.SCOPES.get({"swaps": "by_swaps"}.get(self.how, self.how))

    @property
    def exact(self) -> bool:
        """Whether the ends are the estimates themselves."""
        return bool((self.low == self.theta).all() and (self.high == self.theta).all())

    @property
    def trust(self) -> Floats:
        """``beta``, zeros if there is none."""
        return np.zeros(len(self)) if self.beta is None else self.beta

    def __repr__(self) -> str:
        shown = ", ".join(f"{one:.3g}" for one in self.theta[:5].tolist()) + (", ..." if len(self) > 5 else "")
        ends = "" if self.exact else f", ends {'asymptotic in queries' if self.asymptotic else 'exact'}"
        relative = ", relative to position 1" if self.relative else ""
        return f"Propensities({len(self)} positions, {self.how}{ends}{relative}: {shown})"

    def summary(self) -> str:
        """What they are, and what their bounds are about, line by line.

        Returns
        -------
        str
            The text.
        """
        return "\n".join([repr(self), *([] if self.scope is None else [str(self.scope)])])

    def to_dict(self) -> dict[str, Any]:
        """The model as plain numbers and strings."""
        found = {name: getattr(self, name) for name in _STORED}
        found = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in found.items()}
        found["high"] = [None if math.isinf(one) else one for one in found["high"]]
        return found | {"sessions": base64.b64encode(np.sort(self.sessions).astype("<u8").tobytes()).decode()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], where: str = "Propensities") -> "Propensities":
        """The model that :meth:`to_dict` wrote.

        Parameters
        ----------
        found : mapping
            Its entries; ``theta`` alone is enough.
        where : str, default="Propensities"
            The source, for error messages.

        Returns
        -------
        Propensities
            The model.
        """
        if not isinstance(found, Mapping) or "theta" not in found:
            raise FileFormatError(f"{where}: expected an object with theta, a list of numbers")
        strange = set(found) - {*_STORED, "sessions"}
        if strange:
            raise FileFormatError(
                f"{where}: unknown entries {', '.join(sorted(map(str, strange)))}; known are {', '.join(_STORED)}"
            )
        given = {name: found[name] for name in _STORED if found.get(name) is not None}
        if "high" in given:
            given["high"] = [math.inf if one is None else one for one in given["high"]]
        packed = base64.b64decode(found.get("sessions") or "")
        return cls(**given, sessions=np.frombuffer(packed, dtype="<u8"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file.

        Parameters
        ----------
        path : path
            The file, which is replaced as a whole.
        """
        with writing(path) as part:
            part.write_text(json.dumps(self.to_dict()) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Propensities":
        """Read a model from a JSON file that :meth:`save` or a person wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Propensities
            The model.
        """
        name = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except ValueError as error:
            raise FileFormatError(f"{name} is not JSON: {error}") from None
        return cls.from_dict(found, name)

    def plot(self) -> "Figure":
        """Draw the estimates and their ends by position.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from rankwise._figures import COLORS, house_style, new_figure

        figure = new_figure(4.6, 2.8)
        with house_style():
            axes = figure.subplots()
            place = np.arange(1, len(self) + 1)
            if not self.exact:
                top = np.where(np.isfinite(self.high), self.high, np.nan)
                axes.vlines(place, self.low, top, color=COLORS[0], alpha=0.5, linewidth=3)
            axes.plot(place, self.theta, "o", color=COLORS[1])
            axes.set_xlabel("position")
            axes.set_ylabel("examined, relative to position 1" if self.relative else "probability of examination")
            axes.set_ylim(bottom=0)
            kind = "" if self.exact else ", asymptotic ends" if self.asymptotic else ", exact ends"
            axes.set_title(f"Propensities by {self.how}{kind}" if self.how != "given" else "Propensities as given")
        return figure


def given(
    theta: ArrayLike, *, low: ArrayLike | None = None, high: ArrayLike | None = None, beta: ArrayLike | None = None
) -> Propensities:
    """Propensities from elsewhere, which values take as they are.

    Parameters
    ----------
    theta : array-like, shape (n_positions,)
        Probabilities of examination, position 1 first.
    low, high : array-like, shape (n_positions,), default=None
        Ends; None: theta is exact.
    beta : array-like, shape (n_positions,), default=None
        Clicks that do not depend on the document (trust bias), see :class:`Propensities`.

    Returns
    -------
    Propensities
        The model.

    Examples
    --------
    >>> given(1 / np.arange(1, 4))
    Propensities(3 positions, given: 1, 0.5, 0.333)
    """
    return Propensities(theta=theta, low=low, high=high, beta=beta)  # type: ignore[arg-type]


def by_click_rate(log: ClickLog) -> NoReturn:
    """Refuse the click rate by position as a position model, always.

    Parameters
    ----------
    log : ClickLog
        Any log.

    Raises
    ------
    RankwiseError
        With the measured error of this method.
    """
    least, most = NAIVE_ERROR
    raise RankwiseError(
        "the click rate by position is not a propensity: rankers put what is clicked on top, so it falls with the "
        f"position faster than examination does. In a simulation it is {100 * least:+.0f} to {100 * most:+.0f}% off, "
        "too small and therefore unsafe: bounds that divide by it are wrong. Learn propensities from "
        "randomized swaps, or from several rankers"
    )


# ----------------------------------------------------------------------------------------------------------- by swaps


def ratio_upper_end(one: Floats, other: Floats, alpha: float) -> float:
    """An upper bound at level alpha on E[other] / E[one], for pairs of values in [0, 1]; proof in the module's text.

    Parameters
    ----------
    one, other : ndarray, shape (n,)
        The pairs, in the order of the bets.
    alpha : float
        Probability that the bound is below the ratio.

    Returns
    -------
    float
        The bound; infinite if no ratio is refuted.
    """
    n = len(one)
    if not n:
        return math.inf
    # the ratio and the spread as far as they were known before each pair
    before_one, before_other = (np.concatenate([[0.0], np.cumsum(x)[:-1]]) for x in (one, other))
    ratio = np.clip((1 + before_other) / (1 + before_one), 1e-3, 1e3)
    spread = np.concatenate([[0.0], np.cumsum((ratio * one - other) ** 2)[:-1]])
    # the prior is worth one pair of spread 1/4, and shrinks as pairs come
    variance = (0.25 + spread) / np.arange(1, n + 1)
    bet = np.minimum(SHARE, np.sqrt(2 * math.log(1 / alpha) / (n * variance)))
    active = (one > 0) | (other > 0)  # other factors are 1
    up, down, bet = one[active], other[active], bet[active]
    wanted = math.log(1 / alpha)

    def refutes(rho: float) -> bool:
        return bool(np.cumsum(np.log1p(bet * (rho * up - down))).max(initial=0.0) >= wanted)

    if not refutes(_MOST):
        return math.inf
    low, high = 0.0, _MOST
    while high - low > _ACCURACY * high:
        # by ratios while far away: 60 steps from one to a million at nine digits
        middle = math.sqrt(max(low, high * 1e-3) * high) if low < high / 2 else (low + high) / 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


@validated
def by_swaps(log: "ClickLog | Iterable[ClickLog]", *, delta: OpenFraction = 0.05) -> Propensities:
    """Propensities relative to position 1 from randomized swaps, with exact ends.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        Sessions with ``swap`` and ``swapped``: a coin, fair or not, decided whether the documents at positions 1 and
        ``swap`` change places. Other sessions are not used, nor are those that no session of the other kind is left
        for.
    delta : float, default=0.05
        Probability that any end is on the wrong side: delta/2 for all lower and delta/2 for all upper ends.

    Returns
    -------
    Propensities
        The model of positions 1 to the deepest swap; positions without swaps in between raise an error.

    Raises
    ------
    DataError
        If there are no swaps, a position has none, or has none on one side of the coin.

    Notes
    -----
    Swaps reveal ratios alone: position 1 has 1. A value computed with them is theta_1 times the value in
    attractiveness, which is the smaller one.
    """
    parts: list[tuple[NDArray[Any], ...]] = []
    for block in blocks_of(log, "by_swaps"):
        if block.swap is None:
            raise DataError("by_swaps requires sessions of a swap experiment, with the columns swap and swapped")
        top_place = np.ones(len(block), dtype=np.int64)
        chosen = block[(block.swap > 1) & _has_at(block, block.swap) & _has_at(block, top_place)]
        assert chosen.swap is not None
        assert chosen.swapped is not None
        clicks = (_has_at(chosen, place, chosen.click) for place in (top_place[: len(chosen)], chosen.swap))
        parts.append((chosen.hashes(), chosen.swap, chosen.swapped, *clicks))
    hashes, swap, swapped, top, low_place = map(np.concatenate, zip(*parts, strict=True))
    depth = int(swap.max(initial=0))
    counts = np.bincount(swap, minlength=depth + 1)[2:]
    if depth < 2 or (counts == 0).any():
        missing = "any position" if depth < 2 else f"position {2 + int(np.argmin(counts))}"
        raise DataError(f"by_swaps requires sessions that swap position 1 with every other, got none for {missing}")
    alpha = delta / (2 * (depth - 1))
    theta, low, high = np.ones(depth), np.ones(depth), np.ones(depth)
    for k in range(2, depth + 1):
        own = np.flatnonzero(swap == k)  # in the order of the log: no seed can be chosen
        sides = own[swapped[own]], own[~swapped[own]]
        pairs = min(map(len, sides))
        if not pairs:
            what = "swapped" if len(sides[1]) else "unswapped"
            raise DataError(
                f"by_swaps requires both swapped and unswapped sessions of each position, got no {what} one of "
                f"position {k}"
            )
        one, other = (np.mean([clicked[side[:pairs]] for side in sides], axis=0) for clicked in (top, low_place))
        high[k - 1] = ratio_upper_end(one, other, alpha)
        inverse = ratio_upper_end(other, one, alpha)
        low[k - 1] = 0.0 if math.isinf(inverse) else 1 / inverse
        # of all sessions, both sides with the same weight; half a click more keeps the estimate above 0
        rates = [np.mean([clicked[side].mean() for side in sides]) for clicked in (low_place, top)]
        theta[k - 1] = (rates[0] * len(own) + 0.5) / (rates[1] * len(own) + 0.5)
    high, low = np.maximum(high, theta), np.minimum(low, theta)
    return Propensities(
        theta=theta, low=low, high=high, how="swaps", delta_low=delta / 2, delta_high=delta / 2, relative=True,
        sessions=hashes,
    )  # fmt: skip


def _has_at(log: ClickLog, position: NDArray[np.int64], which: Any = True) -> NDArray[np.bool_]:
    """Whether each session showed a document at its position: a swap that a short page made impossible is none."""
    found = np.zeros(len(log), dtype=bool)
    found[log.session_of_row[(log.position == np.repeat(position, log.sizes)) & which]] = True
    return found


def _as_positions(name: str, values: Any, infinite: bool = False) -> Floats:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise RankwiseError(f"Propensities: {name} must have one number per position, got {values!r:.60}") from None
    if found.ndim != 1 or np.isnan(found).any() or (not infinite and np.isinf(found).any()):
        raise RankwiseError(f"Propensities: {name} must have one finite number per position, got {values!r:.60}")
    return found


# ----------------------------------------------------------------------------------------------------------- harvesting

# Queries are resampled in this many groups, which makes a bootstrap sample a sum of 200 tables of counts.
_GROUPS = 200


@one_blas_thread()
@validated
def harvest(
    log: "ClickLog | Iterable[ClickLog]",
    *,
    delta: OpenFraction = 0.05,
    samples: Annotated[int, NumberRange(2)] = 400,
) -> Propensities:
    r"""Propensities relative to position 1 from several rankers that showed the same documents elsewhere (AllPairs).

    A document of a query that was shown n_k times at position k and n_l times at l adds its click rates, weighted by
    n_k n_l / (n_k + n_l), to C_{k,l} and C_{l,k}. Both have the same relevance in them, so the likelihood of
    Poisson counts with the unknown relevances maximized out is that of Bradley and Terry,

    .. math:: \sum_{k \ne l} C_{k,l} \log \frac{\theta_k}{\theta_k + \theta_l},

    which has one maximum if the positions are connected.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        Sessions of two or more logging rankers (``version``), which were assigned to sessions at random.
    delta : float, default=0.05
        Probability that any end is on the wrong side, for many queries: the ends are bootstrap percentiles over
        queries, and few queries with many sessions leave them too narrow.
    samples : int, default=400
        Number of bootstrap samples, of queries.

    Returns
    -------
    Propensities
        The model, its ends marked asymptotic.

    Raises
    ------
    DataError
        If there is one ranker alone, or positions that no document connects.
    """
    shown: Counter[tuple[str, str, int]] = Counter()
    clicked: Counter[tuple[str, str, int]] = Counter()
    hashes, versions, depth = [], set(), 0
    for block in blocks_of(log, "harvest"):
        if block.version is None:
            raise DataError("harvest requires the column version, with two or more logging rankers")
        versions |= set(block.version.tolist())
        depth = max(depth, block.depth)
        hashes.append(block.hashes())
        columns = np.repeat(block.qid, block.sizes).tolist(), block.docid.tolist(), block.position.tolist()
        keys = [(str(query), str(document), place) for query, document, place in zip(*columns, strict=True)]
        shown.update(keys)
        clicked.update(compress(keys, block.click.tolist()))
    if len(versions) < 2:
        raise DataError(f"harvest requires two or more logging rankers in the column version, got {len(versions)}")
    pairs = _pair_counts(shown, clicked, depth)
    counts = pairs.sum(axis=0)
    theta = _bradley_terry(counts[None])[0]
    draws = np.random.default_rng(0).multinomial(_GROUPS, np.full(_GROUPS, 1 / _GROUPS), samples)
    ways = _bradley_terry(np.tensordot(draws.astype(np.float64), pairs, axes=1))
    alpha = delta / (2 * max(1, depth - 1))
    low, high = np.nanquantile(ways, [min(alpha, 0.5), 1 - min(alpha, 0.5)], axis=0)
    return Propensities(
        theta=theta, low=np.minimum(low, theta), high=np.maximum(high, theta), how="harvest", delta_low=delta / 2,
        delta_high=delta / 2, relative=True, asymptotic=True, sessions=np.concatenate(hashes),
    )  # fmt: skip


def _pair_counts(shown: Mapping[Any, int], clicked: Mapping[Any, int], depth: int) -> Floats:
    """The C of :func:`harvest`, by group of queries."""
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for key, count in shown.items():
        found.setdefault(key[:2], []).append((key[2], count, clicked[key]))
    group: dict[str, int] = {}
    counts = np.zeros((_GROUPS, depth, depth))
    for (query, _), places in found.items():
        own = counts[group.setdefault(query, len(group) % _GROUPS)]
        for i, (k, n_k, c_k) in enumerate(places):
            for m, n_m, c_m in places[:i]:
                weight = n_k * n_m / (n_k + n_m)
                own[k - 1, m - 1] += weight * c_k / n_k
                own[m - 1, k - 1] += weight * c_m / n_m
    return counts


def _bradley_terry(counts: Floats) -> Floats:
    """theta relative to position 1 by minorization, for each of several tables; NaN where positions are unconnected."""
    samples, depth, _ = counts.shape
    linked = (counts + counts.transpose(0, 2, 1)).sum(axis=0) > 0
    reached = np.zeros(depth, dtype=bool)
    reached[0] = True
    for _ in range(depth):
        reached = reached | linked[reached].any(axis=0)
    if not reached.all():
        place = 1 + int(np.argmin(reached))
        raise DataError(
            f"harvest: no clicked document connects position {place} with position 1: the rankers are too similar, "
            "or there are too few sessions; use randomized swaps"
        )
    wins = counts.sum(axis=2) + 0.5 / depth  # a trace of a prior keeps positions without clicks above 0
    games = counts + counts.transpose(0, 2, 1) + 1.0 / depth**2
    theta = np.ones((samples, depth))
    for _ in range(2000):
        new = wins / (games / (theta[:, :, None] + theta[:, None, :])).sum(axis=2)
        new /= new[:, :1]
        step = np.abs(np.log(new / theta)).max()
        theta = new
        if step < 1e-7:
            break
    return theta
