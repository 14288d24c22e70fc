"""The account of a counterfactual value: what each session adds, block by block, and in which range that is.

:class:`ClickAccount` keeps one number per session and tau, and one per candidate for the doubly robust estimate: a log
larger than memory can be read in blocks. The formulas are those of :mod:`rankwise.clicks.values`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.clicks.checks import incomplete
from rankwise.clicks.log import ClickLog
from rankwise.clicks.propensities import Propensities
from rankwise.clicks.rankings import discounts
from rankwise.errors import DataError
from rankwise.queries.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The doubly robust estimate shrinks the attractiveness of a document as if it had been examined once more.
_PRIOR = 1.0


class Terms(NamedTuple):
    """The sessions' values, and the constants that bound them: each is in [-loss, gain]."""

    values: Floats
    loss: float
    gain: float


class ClickAccount:
    """Accumulates the values of sessions under several tau.

    Parameters
    ----------
    name : str
        The caller, for error messages.
    propensities : Propensities
        The position model.
    taus : tuple of float
        The values of tau.
    k : int
        The cut-off.
    documents : Queries or None
        The candidates; None for the value of the logged ranking.
    new : ndarray of int64 or None
        The ranks of the candidates by the new ranking; None: as shown.
    old : ndarray of int64 or None
        Their ranks by the ranking to compare with.
    logged : bool
        Whether to compare with the logged ranking.
    """

    def __init__(
        self,
        name: str,
        propensities: Propensities,
        taus: tuple[float, ...],
        k: int,
        documents: Queries | None,
        new: Ints | None,
        old: Ints | None,
        logged: bool,
    ) -> None:
        self.name, self.propensities, self.taus, self.k = name, propensities, taus, k
        self.documents, self.logged = documents, logged
        self.discount = discounts(k)
        self.n, self.clicks = 0, 0
        self.explores, self.least_exploration, self.most_exploration, self.largest_pool = False, 1.0, 0.0, 1
        self.beyond_pool = False
        self._bounded: list[list[Floats]] = [[] for _ in taus]  # by the ends
        self._plain: list[list[Floats]] = [[] for _ in taus]  # by theta
        self._relevance = np.zeros((len(taus), 2))  # sums of clicks over max(p, tau), and over p
        self._old_sum = 0.0
        rows = 0 if documents is None else documents.n_documents
        self._new_discount = None if new is None else self._discount_of(new)
        self._old_discount = None if old is None else self._discount_of(old)
        self._seen = np.zeros(rows, dtype=bool)
        self._clicked, self._examined = np.zeros((2, rows)), np.zeros((2, rows))
        self._balance = np.zeros((len(taus), 2, rows))
        self._sessions = np.zeros((2, 0 if documents is None else len(documents)))

    @property
    def compares(self) -> bool:
        """Whether this is a gain and not a value."""
        return self.logged or self._old_discount is not None

    @property
    def lower_ends_positive(self) -> bool:
        """Whether losses can be divided by the lower ends."""
        return bool((self.propensities.low > 0).all())

    def _discount_of(self, ranks: Ints) -> Floats:
        return np.asarray(self.discount[np.minimum(ranks, self.k + 1)])

    # ------------------------------------------------------------------------------------------- one block

    def add(self, log: ClickLog) -> None:
        """Add the sessions of a block."""
        if self._new_discount is not None and log.documents is not self.documents:
            raise DataError(f"{self.name}: all blocks of a log must be joined with the same documents")
        if log.depth > len(self.propensities):
            raise DataError(
                f"{self.name}: the propensities must cover all {log.depth} positions of the log, got "
                f"{len(self.propensities)}"
            )
        if self.compares and incomplete(log).any():
            first = int(np.argmax(incomplete(log)))
            raise DataError(
                f"{self.name}: session {log.session[first]!s:.40} has a gap between its positions, so a document that "
                "loses may be missing from the log (inspect counts such sessions)"
            )
        self._note_exploration(log)
        n, owner = len(log), log.session_of_row
        low, theta, high = (
            policy_average(log, one) for one in (self.propensities.low, self.propensities.theta, self.propensities.high)
        )
        # Not the average over pages: it would be subtracted only where the document was shown, which is too little.
        beta = np.concatenate([[0.0], self.propensities.trust])[log.position]
        if (theta <= 0).any():
            first = int(np.argmax(theta <= 0))
            raise DataError(
                f"{self.name}: session {log.session[owner[first]]!s:.40} shows document {log.docid[first]!s:.40}, "
                "which its policy never shows: exploration is 0, and the document is not on the logging ranker's page"
            )
        click = log.click - beta
        shown = self._discount_of(log.ranks)
        new = shown if self._new_discount is None else self._new_discount[log.row]
        old = shown if self.logged else 0.0 * shown if self._old_discount is None else self._old_discount[log.row]
        d = new - old
        rising = d > 0
        missing = self._missing_losses(log)
        with np.errstate(divide="ignore"):
            loss_low, loss_theta = 1 / low, 1 / theta
        for number, tau in enumerate(self.taus):
            ends = np.where(rising, 1 / np.maximum(high, tau), np.where(d < 0, loss_low, 0.0))
            plain = np.where(rising, 1 / np.maximum(theta, tau), loss_theta)
            # 0 times an infinite weight is no loss
            self._bounded[number].append(_sums(owner, np.where(d == 0, 0.0, click * d * _finite(ends)), n) - missing)
            self._plain[number].append(_sums(owner, click * d * plain, n))
            clipped = 1 / np.maximum(theta, tau)
            self._relevance[number] += (float((click * clipped).sum()), float((click * loss_theta).sum()))
            self._add_balance(number, log, d, old if self.logged else 0.0, np.where(rising, clipped, loss_theta))
        self._old_sum += float((click * old * loss_theta).sum())
        self._add_seen(log, click)
        self.n += n
        self.clicks += int(log.click.sum())

    def _note_exploration(self, log: ClickLog) -> None:
        if log.exploration is None or log.pool is None:
            self.least_exploration = 0.0
            return
        explores = bool((log.exploration > 0).any())
        if explores and log.swap is not None and (log.swap > 1).any():
            raise DataError(
                f"{self.name}: the log mixes swaps and shuffled pages, whose joint policy is unknown: keep the "
                "sessions of the two experiments in separate logs"
            )
        self.explores = self.explores or explores
        if explores:
            self._check_policy(log)
        self.least_exploration = min(self.least_exploration, float(log.exploration.min(initial=1.0)))
        self.most_exploration = max(self.most_exploration, float(log.exploration.max(initial=0.0)))
        self.largest_pool = max(self.largest_pool, int(log.pool.max(initial=1)))

    def _check_policy(self, log: ClickLog) -> None:
        """Raise an error if the log does not tell how likely its policy shows a document."""
        assert log.exploration is not None
        assert log.pool is not None
        partly = (log.exploration > 0) & (log.exploration < 1)
        needs_ranks = self.logged or self._new_discount is None or bool(partly.any())
        if log.logged_rank is None and needs_ranks:
            raise DataError(
                f"{self.name}: pages may have been shuffled, so the log requires the column logged_rank: the rank by "
                "the logging ranker, 0 for documents that are not on its page"
            )
        if self.documents is None or log.query is None:
            return
        pool = np.where(log.exploration > 0, log.pool, 0)
        candidates = self.documents.sizes[log.query]
        if (pool > candidates).any():
            first = int(np.argmax(pool > candidates))
            raise DataError(
                f"{self.name}: session {log.session[first]!s:.40} draws shuffled pages from a pool of {pool[first]:,}, "
                f"but its query has {candidates[first]:,} candidates: join the log with all documents of the pool, and "
                "do not drop sessions because of what their pages show"
            )
        self.beyond_pool = self.beyond_pool or bool(((pool > 0) & (pool < candidates)).any())

    def _missing_losses(self, log: ClickLog) -> Any:
        """What documents lose that a session could not show, in the worst case (:mod:`rankwise.clicks.values`).

        Without exploration a session could show nothing but its page. With exploration it could not show candidates
        beyond the pool. The log does not name the pool, which holds what was shown: so those that lose most, of as many
        documents that were not shown as there are candidates beyond the pool, are charged.
        """
        if self._old_discount is None or self.documents is None or self._new_discount is None or log.query is None:
            return 0.0
        assert log.row is not None
        documents = self.documents
        losses = np.maximum(self._old_discount - self._new_discount, 0.0)
        losers = np.flatnonzero(losses > 0)
        losers = losers[np.lexsort((-losses[losers], documents.query_of_row[losers]))]
        count = np.bincount(documents.query_of_row[losers], minlength=len(documents))
        # the losers of every session's query, the largest loss first
        sizes, start = count[log.query], (np.cumsum(count) - count)[log.query]
        session = np.repeat(np.arange(len(log)), sizes)
        row = losers[np.repeat(start - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(session))]
        n = documents.n_documents
        hidden = ~np.isin(session * n + row, log.session_of_row * n + log.row)
        beyond = documents.sizes[log.query]
        if log.exploration is not None and log.pool is not None:
            beyond = np.where(log.exploration > 0, beyond - log.pool, beyond)
        ahead = np.concatenate([[0], np.cumsum(hidden)])
        place = ahead[1:] - np.repeat(ahead[np.cumsum(sizes) - sizes], sizes)
        return _sums(session, np.where(hidden & (place <= beyond[session]), losses[row], 0.0), len(log))

    def _add_balance(self, number: int, log: ClickLog, d: Floats, old: Any, weight: Floats) -> None:
        """What a model of attractiveness adds for the shown documents, by candidate and half of the sessions."""
        if self.documents is None or log.row is None:
            return
        examined = np.concatenate([[0.0], self.propensities.theta])[log.position]
        half = (self.n + log.session_of_row) % 2
        np.add.at(self._balance[number], (half, log.row), -old - weight * examined * d)

    def _add_seen(self, log: ClickLog, click: Floats) -> None:
        if self.documents is None or log.row is None or log.query is None:
            return
        self._seen[log.row] = True
        half = (self.n + log.session_of_row) % 2
        np.add.at(self._clicked, (half, log.row), click)
        np.add.at(self._examined, (half, log.row), self.propensities.theta[log.position - 1])
        np.add.at(self._sessions, ((self.n + np.arange(len(log))) % 2, log.query), 1.0)

    # ------------------------------------------------------------------------------------------- all blocks

    def terms(self, number: int) -> Terms:
        """The sessions' values under one tau, and their range, which depends on no session."""
        loss, gain = self._range(self.taus[number])
        most = float(self.propensities.trust.max())
        return Terms(np.concatenate(self._bounded[number]), loss + most * gain, gain + most * loss)

    def _range(self, tau: float) -> tuple[float, float]:
        """The largest loss and gain of any page, see :mod:`rankwise.clicks.values`."""
        ends, d = self.propensities, self.discount[1 : self.k + 1]
        if self.explores:
            gain = float(d.sum()) / tau
            if not self.compares:
                return 0.0, gain
            floor = self.least_exploration * float(ends.low[0]) / self.largest_pool
            least = (1 - self.most_exploration) * ends.low + floor
            if self.logged:
                return _ratio_sum(d, least[: self.k]), gain
            # a document that the other ranking has need not be on the logged page
            return _ratio_sum(d, np.full(self.k, min(floor, 1.0) if floor else 0.0)), gain
        weight = 1 / np.maximum(ends.high, tau)
        ordered = np.sort(weight)[::-1][: self.k]
        gain = float(d[: len(ordered)] @ ordered)
        if not self.compares:
            return 0.0, gain
        if not self.lower_ends_positive:
            return math.inf, gain
        heavy = np.maximum(1 / ends.low, 1.0)
        if not self.logged:
            return float(d @ np.sort(heavy)[::-1][: self.k]), gain
        # if no query has more candidates than a page has positions, nothing can fall off the page
        closed = self.documents is not None and int(self.documents.sizes.max(initial=0)) <= len(ends)
        return _largest_changes(self.discount, weight, 1 / ends.low, closed)

    def estimates(self, number: int) -> tuple[float, float, float]:
        """Clipped, self-normalized and doubly robust estimates."""
        clipped = float(np.concatenate(self._plain[number]).mean())
        kept, whole = self._relevance[number]
        scale = whole / kept if kept > 0 else math.nan
        old = self._old_sum / self.n if self.compares else 0.0
        normalized = (clipped + old) * scale - old
        return clipped, normalized, self._doubly_robust(number, clipped)

    def _doubly_robust(self, number: int, clipped: float) -> float:
        """The clipped estimate of what a model of attractiveness does not explain, plus what it predicts.

        The model of one half of the sessions is used on the other half. NaN if the logged pages are not known.
        """
        if self.documents is None or self._new_discount is None or (self.explores and self.logged):
            return math.nan
        whole = self._new_discount if self._old_discount is None else self._new_discount - self._old_discount
        shown, total = self._balance[number], 0.0
        for half in (0, 1):
            clicks, looks = self._clicked[1 - half], self._examined[1 - half]
            rate = clicks.sum() / looks.sum() if looks.sum() > 0 else 0.0
            attractive = np.clip((clicks + _PRIOR * rate) / (looks + _PRIOR), 0.0, None)
            predicted = whole * self._sessions[half][self.documents.query_of_row] + shown[half]
            total += float(attractive @ predicted)
        return clipped + total / self.n

    def warnings(self, tau: float) -> list[str]:
        """What no bound can certify, and what would be needed for it."""
        found = []
        if self.compares and not self.lower_ends_positive:
            place = 1 + int(np.argmin(self.propensities.low))
            found.append(
                f"{self.name}: the lower end of the propensity of position {place} is 0, so losses there are unbounded "
                "and the gain has no bound: swap this position in more sessions"
            )
        elif math.isinf(self._range(tau)[0]):
            found.append(
                f"{self.name}: the log mixes sessions with and without shuffled pages, so losses against another "
                "ranking are unbounded: keep only the shuffled sessions, or compare with the logged ranking"
            )
        explored = self.least_exploration > 0
        if self.documents is None or self._new_discount is None or (explored and not self.beyond_pool):
            return found
        per_query = self._sessions.sum(axis=0)
        # against another ranking, what it shows and the new one does not is charged as if it were always clicked
        share_of = "ranking's discount" if self._old_discount is None else "difference between the rankings"
        change = self._new_discount - (0.0 if self._old_discount is None else self._old_discount)
        weight = np.abs(change) * per_query[self.documents.query_of_row]
        unseen = float(weight[~self._seen].sum())
        if unseen <= 0:
            return found
        strange = ~self._seen & (weight > 0)
        pool = float(self.documents.sizes[self.documents.query_of_row[strange]].mean())
        uniform = float(self.propensities.theta.sum()) / pool  # propensity on a page that is always shuffled
        share = tau / uniform
        if explored:
            how = "draw shuffled pages from all candidates"
        elif share <= 1:
            how = f"shuffling the page in {100 * share:.2g}% of the sessions gives each a propensity of tau = {tau:g}"
        else:
            how = f"even always shuffling gives them {uniform:.2g}, below tau = {tau:g}: also lower tau"
        found.append(
            f"{self.name}: {100 * unseen / float(weight.sum()):.1f}% of the {share_of} goes to documents that no "
            f"session showed; certifying their worth requires exploration: {how}"
        )
        return found


def policy_average(log: ClickLog, by_position: Floats) -> Floats:
    """The average of a number by position over the pages that a session could have shown, for shown documents.

    Without exploration that is the number of the document's own position. With exploration a page was shuffled with
    probability e, where each of the pool's m candidates is at each position with probability 1/m.

    Parameters
    ----------
    log : ClickLog
        The sessions.
    by_position : ndarray, shape (n_positions,)
        The numbers.

    Returns
    -------
    ndarray, shape (n_shown,)
        One average per shown document.
    """
    table = np.concatenate([[0.0], by_position])
    if log.exploration is None or log.pool is None:
        return np.asarray(table[log.position])
    sizes = log.sizes
    uniform = np.repeat(np.cumsum(table)[sizes] / log.pool, sizes)
    share = np.repeat(log.exploration, sizes)
    with np.errstate(invalid="ignore"):  # 0 times an infinite end
        pages = np.where(share < 1, (1 - share) * table[log.ranks], 0.0)
        shuffled = np.where(share > 0, share * uniform, 0.0)
    return np.asarray(pages + shuffled)


def _sums(owner: Ints, values: Floats, n: int) -> Floats:
    return np.bincount(owner, weights=values, minlength=n).astype(np.float64)


def _finite(weights: Floats) -> Floats:
    """Infinite weights as 0: the range is infinite then, and no bound is computed."""
    return np.where(np.isfinite(weights), weights, 0.0)


def _ratio_sum(d: Floats, least: Floats) -> float:
    return math.inf if (least[: len(d)] <= 0).any() else float((d[: len(least)] / least[: len(d)]).sum())


def _largest_changes(discount: Floats, rising: Floats, falling: Floats, closed: bool) -> tuple[float, float]:
    """The largest loss and gain over all assignments of the page's positions to ranks.

    ``closed``: ranks are a permutation of the positions. Otherwise documents may also leave for ranks beyond k.
    """
    from scipy.optimize import linear_sum_assignment

    depth = len(rising)
    k = len(discount) - 2
    own = np.zeros(depth)
    own[:k] = discount[1 : k + 1]
    target = own if closed else np.concatenate([own, np.zeros(depth)])
    change = target[None, :] - own[:, None]
    found = []
    for worth in (np.maximum(-change, 0.0) * falling[:, None], np.maximum(change, 0.0) * rising[:, None]):
        rows, columns = linear_sum_assignment(worth, maximize=True)
        found.append(float(worth[rows, columns].sum()))
    return found[0], found[1]
