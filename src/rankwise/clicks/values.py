r"""The value of a new ranking from the log of another one, with a one-sided bound that holds at any number of sessions.

The value of a ranking r is V(r) = E[sum_d a_d D(r(d))], the expected DCG@k of attractiveness over sessions: a_d is the
probability that document d is clicked if it is examined, D(j) = 1/log2(1 + j) up to rank k and 0 beyond. A session that
showed d with propensity p_d (that of its position; with exploration, the average over the pages that could have been
shown) has E[click_d] = p_d a_d under the position-based model.

**Bound on a value.** Let p+_d be an upper end of p_d and w_d = 1/max(p+_d, tau). For a session,

.. math:: U = \sum_{d\ \text{shown}} \mathrm{click}_d\, D(r(d))\, w_d, \qquad
          E[U] = E\Big[\sum_d a_d D(r(d))\, \frac{p_d}{\max(p^+_d, \tau)}\Big] \le V(r),

because p_d <= p+_d wherever the ends hold: clipping, ends and documents that were never shown (p_d = 0) only lower it.
0 <= U <= B, where B = sum_j D(j) w_(j), w_(1) >= w_(2) >= ... the weights of the positions in order, is the largest sum
over all pages (rearrangement inequality), and is known before any click. U over independent sessions are independent
draws in [0, B]; the lower end of :mod:`rankwise.guarantees.holdout.betting` at level alpha is below E[U] with
probability 1 - alpha. The ends are from other sessions and fail with probability delta_high, so the bound fails with
probability alpha + delta_high = delta at most.

**Bound on a gain** over the logged ranking (or another one): d_d = D(new rank) - D(old rank), and

.. math:: G = \sum_{d_d > 0} \frac{\mathrm{click}_d\, d_d}{\max(p^+_d, \tau)}
              - \sum_{d_d < 0} \frac{\mathrm{click}_d\, |d_d|}{p^-_d}.

A gain term has expectation at most a_d d_d, as above. A loss term has expectation a_d d_d p_d/p-_d <= a_d d_d, because
the lower end p-_d <= p_d: dividing by too large a propensity would hide losses, so these are not clipped and use the
lower end.

Documents of propensity 0, which a session could not show, gain at least 0 over the logged page, which did not have
them. Against another ranking those with d_d < 0 are charged abs(d_d), the worst case a_d = 1. Without exploration they
are the candidates that are not on the page. With exploration they are the N - m candidates beyond the pool of m. The
log tells m and not the pool P; but the shown documents S are in P, so all N - m are among the documents that were not
shown, and what they lose is at most

.. math:: C(S) = \text{the sum of the } N - m \text{ largest } |d_d| \text{ over } d \notin S,\ d_d < 0,

whatever the page was. G is the above minus C(S). So E[G] is at most V(new) - V(old) in every case.
G is in [-A, B] with A and B the largest losses and gains over all assignments of the page's positions to ranks, which
is an assignment problem in the propensities' ends alone. The bound is betting's on (G + A)/(A + B), and all ends are
paid for: alpha + delta_low + delta_high = delta.

**Trust bias.** With known clicks beta_k that do not depend on the document, E[click] = theta_k a + beta_k, click - beta
takes the place of the click, beta that of the position where the document was shown, and A and B grow by max(beta)
times the other.

**Several tau.** Each of m values of tau is tried at alpha/m, and the largest bound is taken.

The estimates beside the bound (clipped, self-normalized, doubly robust) have no guarantee.

References
----------
T. Joachims, A. Swaminathan, T. Schnabel (2017). Unbiased learning-to-rank with biased feedback. WSDM.
doi:10.1145/3018661.3018699.

H. Oosterhuis, M. de Rijke (2020). Policy-aware unbiased learning to rank for top-k rankings. SIGIR.
doi:10.1145/3397271.3401102.

H. Oosterhuis (2023). Doubly robust estimation for correcting position bias in click feedback for unbiased learning to
rank. ACM Transactions on Information Systems 41(3). doi:10.1145/3569453.

I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import Fraction, OpenFraction, PositiveInt, validated
from rankwise.clicks.accounts import ClickAccount, Terms
from rankwise.clicks.click_value import ClickValue
from rankwise.clicks.log import ClickLog, blocks_of
from rankwise.clicks.propensities import Propensities
from rankwise.clicks.rankings import ranks_of, scores_of
from rankwise.errors import DataError, RankwiseError, warn
from rankwise.guarantees._bound import Precondition
from rankwise.guarantees.holdout.betting import lower_end
from rankwise.queries.fingerprints import is_among
from rankwise.queries.queries import Queries
from rankwise.rankers._record import record_of

Floats = NDArray[np.float64]

# Rounding may move a session's value this far out of its range, relative to it.
_ROUNDING = 1e-9


@validated
def value(
    log: "ClickLog | Iterable[ClickLog]",
    ranker: Any,
    propensities: Propensities,
    *,
    tau: Fraction | Sequence[Fraction],
    delta: OpenFraction = 0.05,
    k: PositiveInt | None = None,
) -> ClickValue:
    """The value of a ranking from clicks on another one, with a lower bound.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        Sessions that neither the ranker nor the propensities were learned from, joined with their candidates; blocks
        of a log larger than memory.
    ranker : Ranker, array of shape (n_documents,), mapping of query id to document ids, or "logged"
        The ranking to be valued; "logged": what the sessions showed.
    propensities : Propensities
        The position model.
    tau : float or sequence of float
        Propensities below it count as tau, chosen before the clicks are seen; several are paid for.
    delta : float, default=0.05
        Probability that the bound may be above the value, the propensities' ends included.
    k : int, default=None
        The cut-off of DCG; None: the number of positions of the propensities.

    Returns
    -------
    ClickValue
        ``estimate``, ``lower``, ``preconditions`` and what they were computed from.

    Raises
    ------
    RankwiseError
        If the log has sessions that the ranker or the propensities were learned from, or an argument is not valid.

    Warns
    -----
    DataWarning
        If the ranking shows documents that no session showed.

    Examples
    --------
    >>> import rankwise as rw
    >>> from rankwise import clicks
    >>> queries = rw.make_lists(50, documents=10, features=4, random_state=0)
    >>> log = clicks.simulate(queries, queries.X[:, 0], 2_000)
    >>> found = clicks.value(log, queries.X[:, 1], clicks.given(1 / np.arange(1, 11)), tau=0.1)
    >>> bool(found.lower <= found.estimate)
    True
    """
    return _run("value", log, ranker, None, propensities, tau, delta, k)


@validated
def gain(
    log: "ClickLog | Iterable[ClickLog]",
    ranker: Any,
    propensities: Propensities,
    *,
    over: Any = "logged",
    tau: Fraction | Sequence[Fraction],
    delta: OpenFraction = 0.05,
    k: PositiveInt | None = None,
) -> ClickValue:
    """How much more a ranking is worth than the logged one (or another), with a lower bound.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        See :func:`value`; pages without gaps.
    ranker : Ranker, array of shape (n_documents,), or mapping of query id to document ids
        The new ranking.
    propensities : Propensities
        The position model.
    over : "logged", or as ``ranker``, default="logged"
        The ranking to compare with.
    tau : float or sequence of float
        Clips the weights of documents that gain; losses keep 1/p.
    delta : float, default=0.05
        Probability that the bound may be above the gain, the propensities' ends included.
    k : int, default=None
        The cut-off of DCG; None: the number of positions of the propensities.

    Returns
    -------
    ClickValue
        As from :func:`value`; a ``lower`` above 0 certifies that the new ranking is better.

    Raises
    ------
    RankwiseError
        As :func:`value`, and if a page of the log has a gap.

    Examples
    --------
    >>> import rankwise as rw
    >>> from rankwise import clicks
    >>> queries = rw.make_lists(50, documents=10, features=4, random_state=0)
    >>> log = clicks.simulate(queries, -queries.y, 2_000)
    >>> found = clicks.gain(log, queries.y, clicks.given(1 / np.arange(1, 11)), tau=0.1)
    >>> found.certified
    True
    """
    if isinstance(over, str) and over != "logged":
        raise RankwiseError(f"gain: over must be 'logged', a ranker, scores or lists of ids, got {over!r:.40}")
    return _run("gain", log, ranker, over, propensities, tau, delta, k)


@one_blas_thread()
def _run(
    name: str,
    log: Any,
    ranker: Any,
    over: Any,
    propensities: Propensities,
    tau: Any,
    delta: float,
    k: int | None,
) -> ClickValue:
    """What :func:`value` (``over`` None) and :func:`gain` do."""
    if not isinstance(propensities, Propensities):
        raise RankwiseError(
            f"{name}: propensities must be Propensities, such as given(theta), got {type(propensities).__name__}"
        )
    taus = tuple(np.atleast_1d(np.asarray(tau, dtype=np.float64)).tolist())
    depth = len(propensities)
    k = depth if k is None else k
    if k > depth:
        raise RankwiseError(f"{name}: k must be at most {depth}, the positions of the propensities, got {k!r}")
    paid = propensities.delta_high + (propensities.delta_low if over is not None else 0.0)
    if paid >= delta:
        raise RankwiseError(
            f"{name}: delta must be above {paid:g}, which the bounds of the propensities spend, got {delta:g}: pass "
            "a larger delta, or propensities with a smaller one"
        )
    logged = isinstance(over, str)
    itself = isinstance(ranker, str)
    if itself and (ranker != "logged" or over is not None):
        raise RankwiseError(f"{name}: ranker must be a fitted ranker, scores or lists of ids, got {ranker!r:.40}")
    account: ClickAccount | None = None
    for block in blocks_of(log, name):
        if account is None:
            candidates = None if itself else block.candidates(name)
            orders = ranker, None if logged else over
            new, old = (_ranks(name, one, candidates) for one in orders)
            account = ClickAccount(name, propensities, taus, int(k), candidates, new, old, logged)
        _check_sessions(name, block, ranker, over, propensities)
        account.add(block)
    if account is None or not account.n:
        raise DataError(f"{name} requires at least one session, got none")
    alpha = (delta - paid) / len(taus)
    terms = [account.terms(one) for one in range(len(taus))]
    bounds = [_bound(one, alpha) for one in terms]
    best = int(np.argmax(bounds))
    notes = account.warnings(taus[best])
    for note in notes:
        warn(note)
    estimate, self_normalized, doubly_robust = account.estimates(best)
    return ClickValue(
        kind=name,
        of=f"{name}: DCG@{k} of attractiveness per session"
        + (", times the examination of position 1" if propensities.relative else ""),
        lower=bounds[best],
        estimate=estimate,
        self_normalized=self_normalized,
        doubly_robust=doubly_robust,
        n=account.n,
        clicks=account.clicks,
        delta=delta,
        alpha=alpha,
        paid=paid,
        tau=taus[best],
        taus=taus,
        k=int(k),
        span=(-terms[best].loss, terms[best].gain),
        preconditions=_preconditions(name, ranker, propensities, account, len(taus)),
        warnings=tuple(notes),
    )


def _ranks(name: str, ranker: Any, candidates: Queries | None) -> NDArray[np.int64] | None:
    """The ranks of the candidates; None for the logged ranking, and where there is no ranking."""
    if ranker is None or candidates is None:
        return None
    return ranks_of(candidates, scores_of(ranker, candidates, name))


def _bound(terms: Terms, alpha: float) -> float:
    """Betting's lower end on the sessions' values, which are in [-loss, gain]."""
    if not math.isfinite(terms.loss) or not math.isfinite(terms.gain):
        return -math.inf
    width = terms.loss + terms.gain
    if width == 0:
        return 0.0  # all weights are 0, and so are all values
    scaled = (terms.values + terms.loss) / width
    if (scaled < -_ROUNDING).any() or (scaled > 1 + _ROUNDING).any():
        raise DataError("a session's value is outside its range: its page is longer than the propensities")
    return lower_end(np.clip(scaled, 0.0, 1.0), alpha) * width - terms.loss


def _check_sessions(name: str, block: ClickLog, ranker: Any, over: Any, propensities: Propensities) -> None:
    """Raise an error for sessions that something in the bound was learned from."""
    learned = {
        "ranker": record_of(ranker).click_sessions,
        "propensities": propensities.sessions,
        "ranker of over=": record_of(over).click_sessions,
    }
    known = {what: sessions for what, sessions in learned.items() if sessions is not None and len(sessions)}
    own = block.hashes() if known else np.empty(0, np.uint64)
    for what, sessions in known.items():
        shared = int(is_among(own, sessions).sum())
        if shared:
            raise RankwiseError(
                f"{name}: {shared:,} of these {len(block):,} sessions were used to learn the {what}, so they give no "
                "bound: pass other sessions (log.split separates them)"
            )


def _preconditions(
    name: str, ranker: Any, propensities: Propensities, account: ClickAccount, several: int
) -> tuple[Precondition, ...]:
    """What has to be true, each with whether it is known to be."""
    known = True if record_of(ranker).click_sessions is not None else None
    if propensities.how == "given":
        exact = propensities.exact
        ends = "the given propensities are right" if exact else "propensities are between the given ends"
    elif propensities.asymptotic:
        ends = "there were enough queries for the bootstrap ends of the propensities (asymptotic in queries)"
    else:
        ends = "one coin, fair or not, decided on the swaps, independently of queries and readers"
    chosen = "tau was chosen before these clicks were seen"
    shuffled = (
        "pages were shuffled with the probability and from the number of candidates that the log says, the logging "
        "ranker's page among them"
    )
    trusted = propensities.beta is not None
    # (condition, whether it is met, whether it is one)
    conditions: list[tuple[str, bool | None, bool]] = [
        ("position-based model: a click needs examination, which depends on the position alone", None, True),
        ("clicks that trust adds are as given (beta)" if trusted else "there is no trust bias", None, True),
        ("sessions are independent draws, and queries were not chosen by the ranking's clicks", None, True),
        ("the ranking was not learned from these sessions", known, True),
        (ends, None, True),
        (chosen, None, several == 1),
        (f"delta is paid for {several} tau", True, several > 1),
        ("propensities are from other sessions", True, propensities.how != "given"),
        ("lower ends of propensities are above 0", account.lower_ends_positive, name == "gain"),
        (shuffled, None, account.explores),
        ("this is the one look at a log whose end was fixed beforehand", None, True),
    ]
    return tuple(Precondition(sentence, met) for sentence, met, holds in conditions if holds)
