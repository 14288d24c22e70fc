r"""Learning from clicks: labels click/p for objectives that are linear in the labels, and a ranker that stays safe.

If an objective is sum_d label_d f_d(scores) with f_d free of labels, then labels of the right mean give an objective of
the right mean: click_d / p_d has the mean a_d. :func:`training_queries` makes these labels, averaged over the sessions
of a query, which weighs as much as it has sessions: for a linear objective that is the same as one query per session.
Clipping p at tau trades a bias toward documents that were shown for less noise.

Rankers say whether they are linear: ``RidgeRanker(target="labels", balanced=False)``, ``LossRanker`` with
:class:`~rankwise.losses.PropensityHinge` or :class:`~rankwise.losses.GivenSoftmax`, and ``SmoothRank`` on
``DCG(dcg='log2')@k`` from a given start; several penalties are selected by a measure that is linear, too. All others
raise an error that names them. Folds of these rankers are over queries, with all their sessions.

:func:`safe_ranker` learns on one part of the sessions with a penalty toward the logged ranker, for several strengths,
and takes the strength whose gain has the largest lower bound on the other part. With m strengths each bound is at
delta/m, so all m hold together with probability 1 - delta, and so does the one that was chosen (union bound). If
none is above 0 the logged ranker stays: what is deployed is worse than the logged ranker with probability delta at
most.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import Fraction, OpenFraction, PositiveFloat, PositiveInt, validated
from rankwise._tables import ShownAsFacts, Table
from rankwise.clicks.accounts import policy_average
from rankwise.clicks.click_value import ClickValue
from rankwise.clicks.log import ClickLog
from rankwise.clicks.propensities import Propensities
from rankwise.clicks.values import gain
from rankwise.errors import DataError, DataWarning, RankwiseError, warn
from rankwise.guarantees._bound import Scope
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossOverLists
from rankwise.losses.given_relevance import GivenSoftmax
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._parameters import raw_weights
from rankwise.rankers.linear.loss_ranker import LossRanker

Vector = NDArray[np.float64]

TAKERS = (
    "RidgeRanker(target='labels', balanced=False), LossRanker with PropensityHinge or GivenSoftmax, and "
    "SmoothRank(\"DCG(dcg='log2')@10\", start=...)"
)
# Strengths of the penalty toward the logged ranker, in units of the mean sum of a session's labels.
STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001)
# Scales at which the logged ranker's scores are tried as the start.
_SCALES = tuple(2.0**power for power in range(-8, 13))


def check_linear(ranker: Ranker) -> None:
    """Raise an error for a ranker whose objective is not linear in the labels.

    Parameters
    ----------
    ranker : Ranker
        The ranker.

    Raises
    ------
    RankwiseError
        With the reason, and the rankers that take a click log.
    """
    why = ranker._reason_not_linear_in_labels
    if why is not None:
        raise RankwiseError(
            f"{ranker.name}.fit does not accept a ClickLog: {why}, so clicks over propensities would not be "
            f"unbiased labels; rankers that accept one: {TAKERS}"
        )


@validated
def training_queries(log: ClickLog, propensities: Propensities | None, *, tau: Fraction = 1e-9) -> Queries:
    """The candidates of a log's queries with labels click/max(p, tau), averaged over the sessions of each query.

    Parameters
    ----------
    log : ClickLog
        A log joined with its candidates.
    propensities : Propensities or None
        The position model; its estimates are used. None: plain click rates, the naive labels that a ranker copies
        the logging ranker from.
    tau : float, default=1e-9
        Propensities below it count as tau.

    Returns
    -------
    Queries
        The queries that have sessions, weighted by their number. Candidates that were not shown have label 0.

    Examples
    --------
    >>> import rankwise as rw
    >>> from rankwise import clicks
    >>> queries = rw.make_lists(20, documents=10, features=3, random_state=0)
    >>> log = clicks.simulate(queries, queries.X[:, 0], 400)
    >>> found = training_queries(log, clicks.given(1 / np.arange(1, 11)), tau=0.1)
    >>> len(found), int(found.weight.sum())
    (20, 400)
    """
    documents = log.candidates("training_queries")
    assert log.row is not None
    assert log.query is not None
    if propensities is None:
        weight = np.ones(log.n_shown)
    else:
        if propensities.beta is not None:
            raise RankwiseError(
                "training_queries: propensities must have no beta: clicks minus beta would be negative labels"
            )
        if log.depth > len(propensities):
            raise DataError(
                f"training_queries: the propensities must cover all {log.depth} positions of the log, got "
                f"{len(propensities)}"
            )
        weight = 1 / np.maximum(policy_average(log, propensities.theta), tau)
    sessions = np.bincount(log.query, minlength=len(documents)).astype(np.float64)
    total = np.bincount(log.row, weights=log.click * weight, minlength=documents.n_documents)
    labels = total / np.maximum(sessions, 1.0)[documents.query_of_row]
    found = documents.with_labels(labels).with_weight(sessions)
    return found[np.flatnonzero(sessions)]


@dataclass(frozen=True, kw_only=True)
class SafeRanker(ShownAsFacts):
    """What :func:`safe_ranker` returns.

    Attributes
    ----------
    model : Ranker
        The ranker to deploy: the learned one if its gain is certified, otherwise the logged one.
    learned : Ranker
        The learned one in any case.
    certified : bool
        Whether the gain of the learned ranker is above 0 with probability 1 - delta.
    gain : ClickValue
        Its gain over the logged ranking, at delta/m for m strengths.
    path : Table
        For each strength: alpha, estimate and lower bound of the gain.
    delta : float
        Probability that a certified ranker is worse after all.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {
        "safe_ranker": Scope(
            "mean difference to the logged ranking over future sessions of the same readers and queries",
            "session",
            "once, at a log whose end was fixed beforehand",
            "the strength among those given, which share delta; not tau, k, the loss, the seed or the sessions by "
            "these clicks",
        )
    }

    model: Any
    learned: Ranker
    certified: bool
    gain: ClickValue
    path: Table
    delta: float

    @property
    def scope(self) -> Scope:
        """What the bound is about, when it may be read, and the choices after which it holds."""
        return self.SCOPES["safe_ranker"]

    def summary(self) -> str:
        """The verdict, the preconditions and the scope, line by line.

        Returns
        -------
        str
            The text.
        """
        lines = [repr(self), "holds if", *(f"- {one}" for one in self.gain.preconditions), str(self.scope)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self.certified:
            verdict = f"gain at least {self.gain.lower:+.4f} with probability {1 - self.delta:g}"
        else:
            verdict = f"no gain certified (at least {self.gain.lower:+.4f}): keep the logged ranker"
        return f"SafeRanker({verdict}; estimate {self.gain.estimate:+.4f}, {self.gain.n:,} sessions judged)"


@one_blas_thread()
@validated
def safe_ranker(
    log: ClickLog,
    logged: Any,
    propensities: Propensities,
    *,
    tau: Fraction,
    loss: Loss | None = None,
    strengths: Sequence[PositiveFloat] = STRENGTHS,
    delta: OpenFraction = 0.05,
    k: PositiveInt | None = None,
    judged: OpenFraction = 0.5,
    random_state: int = 0,
) -> SafeRanker:
    """Learn near the logged ranker, and replace it only where the gain is certified; the module's text has the proof.

    Parameters
    ----------
    log : ClickLog
        Sessions of the logged ranker, joined with their candidates; other sessions than those of the propensities.
    logged : fitted linear ranker, or array of shape (n_features,)
        The logged ranker, which the penalty pulls to.
    propensities : Propensities
        The position model.
    tau : float
        Clipping, of labels and of the bound.
    loss : Loss, default=None
        A convex loss that is linear in the labels; None: :class:`~rankwise.losses.GivenSoftmax`.
    strengths : sequence of float, default=(10, 1, 0.1, 0.01, 0.001)
        Penalties, in units of the mean sum of a session's labels; delta is divided among them.
    delta : float, default=0.05
        Probability that a certified ranker is worse after all.
    k : int, default=None
        The cut-off of DCG.
    judged : float, default=0.5
        Share of the sessions that judge.
    random_state : int, default=0
        Seed of the division.

    Returns
    -------
    SafeRanker
        The ranker to deploy, with its bound.
    """
    loss = GivenSoftmax() if loss is None else loss
    if not loss.linear_in_labels or not loss.convex:
        raise RankwiseError(f"safe_ranker: loss must be convex and linear in the labels, got {loss!r:.60}")
    learning, judging = log.split((1 - judged, judged), random_state=random_state)
    train = training_queries(learning, propensities, tau=tau)
    raw = raw_weights(logged, train.n_features, "logged")
    over = LossOverLists.of(loss, train)
    # the factor of the logged ranker's weights, which changes no ranking, that fits the clicks best
    prior = raw * _SCALES[int(np.argmin([float(over(raw * scale)[0]) for scale in _SCALES]))]
    unit = float(
        np.bincount(train.query_of_row, weights=train.labels()) @ train.query_weight / train.query_weight.sum()
    )
    paid = propensities.delta_low + propensities.delta_high
    if paid >= delta:
        raise RankwiseError(
            f"safe_ranker: delta must be above {paid:g}, which the bounds of the propensities spend, got {delta:g}"
        )
    # ends are paid for once, bets once for each strength
    each = paid + (delta - paid) / len(strengths)
    rankers, gains = [], []
    labeled = learning.with_propensities(propensities, tau=tau)
    for strength in strengths:
        model = LossRanker(loss, alpha=strength * max(unit, 1e-300), prior_coef=prior).fit(labeled)
        rankers.append(model)
        with warnings.catch_warnings():  # the warnings of the chosen one follow
            warnings.simplefilter("ignore", DataWarning)
            gains.append(gain(judging, model, propensities, tau=tau, delta=each, k=k))
    best = int(np.argmax([one.lower for one in gains]))
    for sentence in gains[best].warnings:
        warn(sentence)
    certified = gains[best].certified
    path = {"strength": list(strengths), "alpha": [one.alpha_ for one in rankers]}
    path |= {name: [getattr(one, name) for one in gains] for name in ("estimate", "lower")}
    return SafeRanker(
        model=rankers[best] if certified else logged,
        learned=rankers[best],
        certified=certified,
        gain=gains[best],
        path=Table(path),
        delta=delta,
    )
