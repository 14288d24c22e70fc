"""Online learning with any loss: the general round loop as a ranker."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Numbers, Vector
from rankwise._kernels.dot_products import score_rows
from rankwise._parameters import NumberRange, PositiveFloat, PositiveInt
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.given_relevance import GivenSoftmax
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM
from rankwise.queries import checks
from rankwise.queries.grouped_labels import Labels
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.queries.source import QuerySet
from rankwise.rankers import _inputs as inputs
from rankwise.rankers._base import AnyMeasure
from rankwise.rankers._parameters import AnyLoss
from rankwise.rankers.online.learner import (
    GATHERED,
    IMPOSSIBLE,
    LinearOnlineLearner,
    gather,
    one_list,
    unpack_ledger,
    unpack_state,
)
from rankwise.rankers.online.shown_list import ShownList, is_live, pair_and_flags, show_list
from rankwise.solvers.online.config import Averaging, Ball, OnlineConfig, State, Step, Update
from rankwise.solvers.online.ledger import Ledger
from rankwise.solvers.online.loop import RoundRunner, set_scale
from rankwise.solvers.online.top_k_rounds import TopKRunner, TopKState

# The default of ``explore``.
_EXPLORE = 0.1


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineRanker(LinearOnlineLearner):
    r"""Online gradient descent on any loss, one query at a time.

    w <- projection of (w - eta_t X' g), where g is the (sub)gradient of any loss on the query of the round.

    The online counterpart of :class:`~rankwise.LossRanker`. It takes any loss of :mod:`rankwise.losses`, also one of
    your own in a single file.

    Parameters
    ----------
    loss : Loss, default=None
        The loss; None is :class:`~rankwise.losses.SLAM`.
    measure : str or Measure, default="nDCG@10"
        The measure that the ledger records, which also defines a mistake.
    update : {"always", "mistakes"}, default="always"
        Whether every round learns (online gradient descent) or those with a mistake (a perceptron).
    eta : float or "theory", default=1.0
        The step size. "theory" is max_norm / (G1 R sqrt(n)), which minimizes the bound on the mean loss of the rounds
        for a convex loss whose gradients have an l1 norm of at most G1.
    step : {"sqrt", "constant"}, default="sqrt"
        The schedule: eta / sqrt(t) or eta; "theory" is constant.
    projection : {"none", "l2", "l1"}, default="none"
        The norm of w that is kept below ``max_norm``.
    max_norm : float, default=None
        The largest norm of w, and the norm of the weights to compare with in "theory".
    averaging : {"uniform", "suffix", "none"}, default="uniform"
        Whether ``coef_`` is the mean of the weights over all rounds, over the later ones, or the last weights.
    row_radius : float, default=None
        R of "theory" in a stream, which cannot be looked ahead; ``fit`` finds it itself.
    horizon : int, default=None
        n of "theory" in a stream; ``fit`` finds it itself.
    feedback_depth : int, default=None
        k: learn from the labels of the first k documents shown alone. ``fit`` and complete labels simulate that, labels
        that are NaN for the other documents are what was seen. It needs a loss that is a sum of terms with at most k
        labels each (``loss.labels_per_term``), and update="always". None learns from all labels.
    explore : float, default=None
        With a feedback depth: the probability that the first k documents shown are drawn at random; None is 0.1.
    epochs : int, default=1
        Number of passes over the queries in ``fit``.
    shuffle : bool, default=False
        Whether each pass visits the queries in a random order of its own.
    scale : {"none", "radius", "standard"}, default="none"
        Features as they are, divided by the largest radius of a query so far, or by their own running standard
        deviation. ``coef_`` applies to raw features in every case.
    random_state : int or numpy.random.Generator, default=0
        Seed of the shuffling, and of the documents that are drawn at random with a feedback depth.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays: raise an error, replace it by 0, or by the smallest value
        of the feature within the query.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    ledger_ : Ledger
        Rounds, mistakes, losses, and the bounds on them.
    state_ : State
        Everything that the next round depends on.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(200, random_state=0)
    >>> model = OnlineRanker(rw.losses.PairHinge(), measure="AP").fit(queries)
    >>> model.ledger_.rounds
    200

    Learn from the labels of the first two documents shown:

    >>> loss = rw.losses.PairHinge(per_pair=False)
    >>> model = OnlineRanker(loss, eta=0.01, feedback_depth=2, explore=0.5).fit(queries)
    >>> shown = model.show(queries[0].X)
    >>> model = model.partial_fit(shown.labeled([1, 0]))
    >>> model.ledger_.rounds, model.ledger_.feedback.unmeasured
    (201, 1)
    """

    name = "OnlineRanker"

    loss: AnyLoss | None = field(default=None, kw_only=False)
    measure: AnyMeasure = field(default="nDCG@10", kw_only=True)
    update: Update = "always"
    step: Step = "sqrt"
    projection: Ball = "none"
    max_norm: PositiveFloat | None = None
    averaging: Averaging = "uniform"
    row_radius: PositiveFloat | None = None
    horizon: PositiveInt | None = None
    feedback_depth: Annotated[int, NumberRange(1, 2**31)] | None = None
    explore: Annotated[float, NumberRange(0, 1, closed="right")] | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._loss().noisy:  # the noise of a document depends on its place in the whole set
            raise self._wrong("loss", "a loss without noise, because a stream has no fixed places of documents")
        if self.projection != "none" and self.max_norm is None:
            raise self._wrong("max_norm", f"a positive float for projection={self.projection!r}")
        if self.feedback_depth is None:
            if self.explore is not None:
                raise self._wrong(
                    "explore", "None without feedback_depth: where all labels are seen, nothing is explored"
                )
            return
        if self.eta == "theory":
            raise self._wrong(
                "eta",
                "a positive float with feedback_depth: rankwise.guarantees.top_k_settings computes eta and explore",
            )
        self._resumed(self.eta)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls(),
            cls(PairHinge(), measure="AP", projection="l2", max_norm=0.5, scale="radius"),
            cls(MaxPair(), update="mistakes", step="constant", projection="l1", max_norm=2.0, averaging="suffix"),
            cls(PairHinge(per_pair=False), eta=0.01, feedback_depth=2, explore=0.5),
            cls(
                GivenSoftmax(), eta=0.01, projection="l2", max_norm=2.0, step="constant", feedback_depth=1, explore=1.0
            ),
        )

    def _loss(self) -> Loss:
        return SLAM() if self.loss is None else self.loss

    def _resumed(self, eta: float) -> OnlineConfig:
        return OnlineConfig(
            loss=self._loss(),
            measure=self._measure(),
            update=self.update,
            eta=eta,
            step="constant" if self.eta == "theory" else self.step,
            projection=self.projection,
            max_norm=math.inf if self.projection == "none" or self.max_norm is None else self.max_norm,
            averaging=self.averaging,
            scale=self.scale,
            feedback_depth=self.feedback_depth,
            explore=0.0 if self.feedback_depth is None else float(self.explore or _EXPLORE),
        )

    def _begin(self, config: OnlineConfig, random: np.random.Generator) -> tuple[State, Ledger]:
        if config.feedback_depth is None:
            return super()._begin(config, random)
        return TopKState.drawn(self.n_features_in_, random), Ledger(config)

    def _runner(
        self, config: OnlineConfig, queries: Queries, state: Any, read: bool, record: Numbers | None = None
    ) -> RoundRunner:
        if config.feedback_depth is None:
            return super()._runner(config, queries, state, read)
        return TopKRunner(config, queries, state, read, record)

    # ------------------------------------------------------------------------------------------- the first labels

    def show(self, X: Any, *, name: str | None = None, scores: ArrayLike | None = None) -> ShownList:
        """The documents of one query in the order to show them, with a feedback depth.

        With probability ``explore`` the first ``feedback_depth`` documents are drawn at random. The result goes to
        ``partial_fit`` with the labels of these documents, or the labels go there as an array that is NaN for all
        others, before any other list is learned from. A ranker that was never fitted begins its run here.

        Parameters
        ----------
        X : array of shape (n_documents, n_features)
            The features.
        name : str, default=None
            A name of the list, which decides what is drawn; None takes the number of the next round. Lists that are
            shown before the labels of earlier ones have come need names of their own, because they would share a draw.
        scores : array-like of shape (n_documents,), default=None
            The scores to rank by; None takes those of the next round.

        Returns
        -------
        ShownList
            The order, and what learning has to know about it.

        Raises
        ------
        RankwiseError
            If the ranker learns from all labels.
        """
        self._check_parameters()
        if self.feedback_depth is None:
            raise RankwiseError("show() is for rankers that learn from the first labels alone: pass feedback_depth=")
        one = one_list((X, np.zeros(len(X))))
        if not hasattr(self, "ledger_"):
            self._learn_block(gather([one], self.missing)[:0])
        state, config = self.state_, self.ledger_.config
        if not isinstance(state, TopKState) or config.feedback_depth is None:
            raise RankwiseError("this run began without feedback_depth and learns from all labels: fit again")
        if scores is None:
            block = inputs.align(self, gather([one], self.missing))
            values = _next_scores(config, state.copy(), np.asarray(block.X))
        else:
            values = checks.as_vector(scores, len(X), "scores")
        if not np.isfinite(values).all():
            raise DataError(
                "the scores of a list must be finite to show it: its features, or the weights, are too large"
            )
        draw = state.rounds + 1 if name is None else str(name)
        return show_list(X, values, config.feedback_depth, config.explore, int(state.key[0]), draw)

    def _known_blocks(self, X: Any, y: Any, group: Any, qid: Any) -> Iterator[tuple[Queries, dict[str, Any]]]:
        if isinstance(X, ShownList) and y is None:
            X = [X]
        elif y is not None and group is None and qid is None and not isinstance(y, Labels) and is_live((X, y)):
            X, y = [(X, y)], None
        whole = isinstance(X, (Query, QuerySet, np.ndarray)) or not isinstance(X, Iterable)
        if self.feedback_depth is None or whole or not (y is None and group is None and qid is None):
            yield from super()._known_blocks(X, y, group, qid)
            return
        for live, items in groupby(X, key=is_live):
            if live:
                yield from self._live_blocks(items)
            else:
                yield from ((block, {}) for block in self._stream(items))

    def _live_blocks(self, items: Iterator[Any]) -> Iterator[tuple[Queries, dict[str, Any]]]:
        """Blocks of lists some of whose labels are not seen."""
        lists: list[Any] = []
        flags: list[Numbers] = []
        documents = 0
        for item in items:
            pair, known = pair_and_flags(item)
            if isinstance(item, ShownList):
                self._check_shown(item, len(lists))
            lists.append(one_list(pair))
            flags.append(known)
            documents += len(known)
            if documents >= GATHERED:
                yield gather(lists, self.missing), {"record": np.concatenate(flags)}
                lists, flags, documents = [], [], 0
        if lists:
            yield gather(lists, self.missing), {"record": np.concatenate(flags)}

    def _check_shown(self, item: ShownList, waiting: int) -> None:
        """Raise an error for a list whose estimate would be biased; ``waiting`` lists are learned before it."""
        settings = self._resumed(1.0)
        if (item.depth, item.explore) != (settings.feedback_depth, settings.explore):
            raise DataError(
                f"a list must have been shown with feedback_depth={settings.feedback_depth} and "
                f"explore={settings.explore:g}, got one shown with {item.depth} and {item.explore:g}"
            )
        now = (self.state_.rounds if hasattr(self, "state_") else 0) + waiting + 1
        if item.round not in (None, now):
            raise DataError(
                f"a list shown for round {item.round:,} must be learned in that round, got it in round {now:,}: "
                "show lists that wait for their labels under names of their own, show(X, name=...)"
            )

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        if self.feedback_depth is None:
            super()._restore(facts, store)
            return
        flat = unpack_state(store, self.n_features_in_)
        key, totals = store.array("state.key", np.uint64, (1,)), store.array("state.totals", np.float64, (6,))
        if not np.isfinite(totals).all() or (totals[1:] < 0).any():
            raise RankwiseError(IMPOSSIBLE)
        state = TopKState(**vars(flat), key=key, totals=totals)
        ledger = unpack_ledger(facts, store, self._resumed(self._step_of(facts)))
        self._take(state, replace(ledger, feedback=state.feedback if ledger.rounds else None), None)


def _next_scores(config: OnlineConfig, state: State, X: Any) -> Vector:
    """The scores of a list in the next round; ``state`` is a copy, whose scale of the features changes."""
    if config.scale != "none" and len(X):
        buffer, own = np.empty(X.shape[1]), np.arange(len(X))
        set_scale(X, own, config.as_numbers(), state.moments, state.counts, state.sizes, state.scale, buffer)
    scores = np.empty(len(X))
    score_rows(X, 0, len(X), state.w * state.scale, scores)
    return scores
