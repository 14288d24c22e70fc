"""The ledger of an online run: what happened, and what the bounds of theory allow.

A :class:`Ledger` counts rounds, mistakes and losses as :class:`~rankwise.solvers.online.config.RoundLog` values come
in. Its memory does not grow with the run, apart from two bytes per query: a ``Curve`` keeps a thinned history, and a
``Tally`` the number of mistakes on each query. :meth:`Ledger.bounds` fills in the constants of
:mod:`rankwise.guarantees.bounds.online` from the run itself. Which bounds apply is read from the facts of the loss,
``perceptron_bound`` and its margin. :func:`best_comparator` finds the best fixed ranker in hindsight, in terms of the
bound.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._figures import COLORS, FAINT, house_style, new_figure
from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeFloat, PositiveFloat, PositiveInt, validated
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, all_met
from rankwise.guarantees.bounds import online as bounds_of
from rankwise.guarantees.bounds import top_k
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses.compute import LossOverLists
from rankwise.queries.fingerprints import TrainingRecord, fingerprints
from rankwise.queries.queries import Queries
from rankwise.solvers.online.config import Curve, FeedbackTotals, OnlineConfig, RoundLog, State, Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure


from rankwise.guarantees.bounds.online import largest_root
from rankwise.solvers.batch.bundle import Bundle, Oracle

Vector = NDArray[np.float64]


THESE = Precondition("the comparator's loss is that on the queries of the run, in their order and with their weights")


@dataclass(frozen=True)
class Ledger:
    """Rounds, mistakes and losses of an online run, with the bounds that apply to it.

    Attributes
    ----------
    config : OnlineConfig
        The configuration of the run.
    rounds : int
        Number of rounds.
    mistakes : int
        Rounds whose ranking, under pessimistic ties, was not ideal.
    counted : float
        Total weight of the rounds on which the measure is defined.
    loss : float
        Cumulative loss 1 - measure under pessimistic ties, which the bounds bound.
    measured : float
        Sum of the measure of the published rankings, ties averaged.
    radius : float
        Largest radius of a query that was learned from.
    lightest, heaviest : float
        Extremes of the weights of queries; both 1 where all count the same.
    weights : WeightFacts
        Extremes of the weights v of the queries with a mistake.
    curve : Curve
        The history, at no more than about two thousand rounds.
    tally : Tally
        Mistakes on each query, in the order of the data.
    record : TrainingRecord or None
        Which queries these were, in the order of the data; None if that is not known.
    space : object or None
        The transformer through which the run saw the features; None if it saw them as they are. One that is not
        fitted is fitted on the documents of the queries with a mistake, whose span holds the best comparator.
    removed : int
        Documents that a run with a budget has removed.
    feedback : FeedbackTotals or None
        What a run with a feedback depth has counted; None for other runs.

    Notes
    -----
    Weighted queries count by their weights in ``loss`` and ``mean``. In a run with a feedback depth the rankings are
    those that were shown, the random ones among them. Mistakes, ``loss`` and ``mean`` are then known of the rounds all
    of whose labels were given, which the learner does not see; the surrogate loss is estimated.
    """

    config: OnlineConfig
    rounds: int = 0
    counted: float = 0.0
    mistakes: int = 0
    loss: float = 0.0
    measured: float = 0.0
    radius: float = 0.0
    lightest: float = math.inf
    heaviest: float = 0.0
    weights: WeightFacts = field(default_factory=WeightFacts)
    curve: Curve = field(default_factory=Curve)
    tally: Tally = field(default_factory=Tally)
    record: TrainingRecord | None = field(default_factory=TrainingRecord)
    space: Any = None
    removed: int = 0
    feedback: FeedbackTotals | None = None

    @property
    def mean(self) -> float:
        """The time-averaged measure of the published rankings, ties averaged; NaN before the first defined value."""
        return self.measured / self.counted if self.counted else math.nan

    def after(self, played: RoundLog, queries: Queries, state: State, first: int) -> "Ledger":
        """The ledger after some more rounds.

        Parameters
        ----------
        played : RoundLog
            What happened.
        queries : Queries
            The queries that the log refers to.
        state : State
            The state after the rounds.
        first : int
            The position of ``queries[0]`` in the order of the data.

        Returns
        -------
        Ledger
            A new ledger.
        """
        query_weight = queries.query_weight[played.order]
        found = np.isfinite(played.measure)
        # running sums round by round, so that no division of the rounds into calls changes a bit
        counted, measured, loss = (
            np.cumsum(np.append(before, np.where(found, query_weight * values, 0.0)))[1:]
            for before, values in (
                (self.counted, np.ones(len(found))),
                (self.measured, played.measure),
                (self.loss, 1.0 - played.worst),
            )
        )
        mistakes = self.mistakes + np.cumsum(played.mistake)
        if not len(found):
            return self
        return replace(
            self,
            rounds=state.rounds,
            counted=float(counted[-1]),
            mistakes=int(mistakes[-1]),
            loss=float(loss[-1]),
            measured=float(measured[-1]),
            radius=state.radius,
            removed=state.removed,
            feedback=state.feedback,
            lightest=min(self.lightest, float(query_weight.min())),
            heaviest=max(self.heaviest, float(query_weight.max())),
            weights=self.weights | played.weights,
            curve=self.curve.extend(self.rounds, mistakes, loss, counted, measured),
            tally=self.tally.add(first + played.order[played.mistake], first + len(queries)),
        )

    # ------------------------------------------------------------------------------------------- bounds

    def bounds(
        self,
        queries: Queries | Iterable[Queries] | None = None,
        *,
        comparator: ArrayLike | None = None,
        gamma: float | None = None,
        delta: float | None = None,
        anytime: bool = False,
    ) -> list[Bound]:
        """Bounds on the loss and the mistakes of this run, with every constant.

        Parameters
        ----------
        queries : Queries or iterable of Queries, default=None
            The queries that were learned from, in their order, or blocks of them; needed for a comparator.
        comparator : array-like, shape (n_features,), default=None
            Weights u on the features, or on those that ``space`` makes; None with ``queries``: the best one for the
            bound is computed.
        gamma : float, default=None
            A margin that is claimed: some unit vector ranks every query with all gaps of gamma or more. A claim that
            the run refutes, by more losses or mistakes than it allows or by queries that are smaller than gamma, is
            not met.
        delta : float, default=None
            Also bound, with probability 1 - delta, the mean risk of the weights, if each query was an independent draw
            and was shown once.
        anytime : bool, default=False
            Whether that bound is for all lengths of the run simultaneously, as for a run that is watched while it goes
            on; otherwise it is for one length that was fixed beforehand.

        Returns
        -------
        list of Bound
            The bounds that were asked for.

        Raises
        ------
        RankwiseError
            If nothing was asked for, if the run is no perceptron, or if the queries are not those of the run.
        """
        found: list[Bound] = []
        if gamma is not None:
            found += self._against(gamma=gamma)
        if comparator is not None or queries is not None:
            these = replace(THESE, met=None if self.record is None else True)
            against = self._against(*self._comparator(queries, comparator))
            found += [replace(bound, preconditions=(*bound.preconditions, these)) for bound in against]
        if delta is not None:
            found.append(self._risk(delta, anytime))
        if not found:
            raise RankwiseError(
                "a bound needs something to compare with: give queries=, comparator= with queries=, gamma= or delta="
            )
        return found

    def _refuse_unless_perceptron(self) -> None:
        """Refuse runs for which no mistake bound is known."""
        config, bound = self.config, self.config.loss.perceptron_bound
        if config.update != "mistakes" or config.projection != "none" or config.step != "constant" or bound is None:
            raise RankwiseError(
                "bounds on the loss of a run are for perceptrons: SLAM or MaxPair, learning on mistakes, with a "
                f"constant step and no projection; this run has {config.loss!r}, update={config.update!r}, "
                f"step={config.step!r}, projection={config.projection!r}"
            )

    def _refuse_if_removed(self) -> None:
        """Refuse runs that have removed documents: what they learned is not the sum of their steps."""
        if self.removed:
            raise RankwiseError(
                f"the run has removed {self.removed:,} documents to keep to its budget, and no bound is proved for "
                "that; the bounds hold in the space of the kernel as long as nothing was removed"
            )

    def _against(self, F: float = 0.0, norm_u: float = 0.0, *, gamma: float | None = None) -> list[Bound]:
        """The mistake bounds against a comparator, or for a claimed margin ``gamma``."""
        self._refuse_unless_perceptron()
        self._refuse_if_removed()
        against = {"F": F, "norm_u": norm_u} if gamma is None else {"gamma": gamma}
        if self.config.loss.perceptron_bound == "worst pair":
            self._refuse_weights("the number of mistakes of the max-pair perceptron")
            bound = bounds_of.worst_pair_mistakes if gamma is None else bounds_of.separable_worst_pair
            return self._with_known_preconditions([bound(radius=self.radius, **against)])
        facts, margin = self.weights, self._margin
        run: dict[str, Any] = {"radius": self.radius, "V": facts.V, "margin": margin, **against}
        run["eta"] = self.config.eta if margin > 0 else None
        smallest = facts.smallest if facts.V else 1.0
        if gamma is not None:
            found = [bounds_of.separable_loss(**run), bounds_of.separable_mistakes(smallest=smallest, **run)]
        else:
            found = [bounds_of.slam_loss(**run), bounds_of.slam_mistakes(smallest=smallest, **run)]
            if margin == 1 and self.radius > 0 and facts.kappa > 0:
                step: dict[str, Any] = {"radius": self.radius, "kappa": facts.kappa, "eta": self.config.eta, **against}
                found += [bounds_of.fixed_step(**step), bounds_of.quarter_step(**step)]
        return self._with_known_preconditions(found)

    @property
    def _margin(self) -> float:
        """The margin of the loss; 0 for a loss without one."""
        return self.config.loss.hinge_margin or 0.0

    def _with_known_preconditions(self, bounds: Sequence[Bound]) -> list[Bound]:
        """The bounds with those preconditions marked that the run itself meets or refutes.

        A gap is at most the distance of two documents, 2 radius. And where the run has lost more than one of the bounds
        allows, what is only assumed cannot be true if all the rest is: it is refuted in all of them.
        """
        known = {
            bounds_of.RUN.sentence: self.config.projection == "none",
            bounds_of.F_SLAM.sentence: True,
            bounds_of.F_WORST_PAIR.sentence: True,
            bounds_of.COVERED.sentence: covers(self.config),
            bounds_of.MARGIN_1.sentence: self._margin == 1,
        }
        marked = [
            [replace(one, met=known.get(one.sentence, one.met)) for one in bound.preconditions] for bound in bounds
        ]
        refuted = False
        for bound, found in zip(bounds, marked, strict=True):
            lost = self.loss if bound.bounds == "cumulative loss" else self.mistakes
            too_wide = bound.terms.get("gamma", 0.0) > 2 * self._reach
            refuted = refuted or (all_met(found) is None and (too_wide or not bound.allows(lost)))
        if refuted:
            marked = [[replace(one, met=bool(one.met)) for one in found] for found in marked]
        return [replace(bound, preconditions=tuple(found)) for bound, found in zip(bounds, marked, strict=True)]

    @property
    def _reach(self) -> float:
        """The largest radius, rounded up; infinite before the first mistake, which tells it."""
        return self.radius * (1 + 1e-9) if self.mistakes else math.inf

    @one_blas_thread()
    def _comparator(self, queries: Queries | Iterable[Queries] | None, u: ArrayLike | None) -> tuple[float, float]:
        """(F(u), norm of u), for the given u or for the best one."""
        self._refuse_unless_perceptron()
        self._refuse_if_removed()
        if queries is None:
            raise RankwiseError("the loss of a comparator is that on the queries with a mistake: give queries= as well")
        if self.config.scale != "none":
            raise RankwiseError(
                f"features were scaled as they came (scale={self.config.scale!r}), so no comparator on the raw ones "
                "belongs to this run: claim a margin on the scaled ones by gamma="
            )
        spanned = self.space is not None and not hasattr(self.space, "n_features_in_")
        if spanned and u is not None:
            raise RankwiseError(
                "weights cannot be given in the space of a kernel: leave out comparator=, and the best one is computed"
            )
        parts = list(self._mistakes_of(queries))
        if spanned:
            parts = [_in_span(parts, self.space)]
        n_features = parts[0].queries.n_features

        def total(w: Vector) -> tuple[float, Vector]:
            found = [part(w) for part in parts]
            return sum(value for value, _ in found), np.sum([slope for _, slope in found], axis=0)

        if u is None:
            best = best_comparator(total, n_features, self._constant())
            return best.value, best.norm
        vector = np.asarray(u, dtype=np.float64)
        if vector.shape != (n_features,) or not np.isfinite(vector).all():
            raise RankwiseError(f"a comparator must have one finite weight per feature, {n_features}, got {u!r:.60}")
        return total(vector)[0], float(np.linalg.norm(vector))

    def _constant(self) -> float:
        """c of x - F(u) <= norm(u) sqrt(c x)."""
        if self.config.loss.perceptron_bound == "worst pair":
            return 4 * self.radius**2
        return 4 * self.radius**2 * self.weights.V + 2 * self._margin / self.config.eta

    def _mistakes_of(self, queries: Queries | Iterable[Queries]) -> Iterator[LossOverLists]:
        """The loss at margin 1, summed over the mistakes, block by block; only queries with a mistake are kept.

        Mistakes are looked up by position, so other queries, or the same in another order, raise an error.
        """
        loss = self.config.loss.at_margin(1.0)
        counts, first, record = self.tally.counts, 0, TrainingRecord()
        for block in [queries] if isinstance(queries, Queries) else queries:
            times = counts[first : first + len(block)].astype(np.float64)
            first += len(block)
            if len(times) < len(block):
                break
            if self.record is not None:
                record = record.add(fingerprints(block), block.weight)
            chosen = block if len(times) and times.all() else block[np.flatnonzero(times)]
            times = times[times > 0]
            if self.space is not None and hasattr(self.space, "n_features_in_"):
                chosen = chosen.map_features(self.space.transform)
            yield LossOverLists.of(loss, chosen, times * chosen.query_weight)
        found = "other" if first != self.tally.length else self.record and self.record.compare(record)
        if found and found != "same":
            what = "others" if found == "other" else f"the same {found}"
            raise RankwiseError(
                f"the run has seen {self.tally.length:,} queries, and these are {what}: give the queries that it "
                "learned from, all of them, in their order and with their weights"
            )

    def regret_bounds(self, largest_label: float | None = None) -> list[Bound]:
        """Bounds on the expected regret of a run with a feedback depth, against any weights in its ball.

        Parameters
        ----------
        largest_label : float, default=None
            A number that no label exceeds, seen or not; None takes the largest label that was given, which is known to
            be the largest only if all labels were given.

        Returns
        -------
        list of Bound
            For the surrogate loss of the weights of each round, and the same where rounds that draw documents at random
            are charged the largest loss. Where the preconditions are not met the bounds do not apply, and say so.

        Raises
        ------
        RankwiseError
            If all labels are seen, the loss is not convex, weights are not kept in an l2 ball, features were scaled in
            the run, queries have weights, or the loss declares no constants.
        """
        config, run, depth = self.config, self.feedback, self.config.feedback_depth
        terms = config.loss.labels_per_term
        if run is None or depth is None or terms is None or not run.longest:
            raise RankwiseError("a regret bound is for runs with feedback_depth that have seen a query")
        if not config.loss.convex:
            raise RankwiseError(f"the regret bound is proved for convex losses, and {config.loss!r} is not one")
        if config.projection != "l2" or config.scale != "none":
            raise RankwiseError(
                "the regret bound is proved for weights in an l2 ball and features as they are: pass projection='l2', "
                f"max_norm= and scale='none', got projection={config.projection!r}, scale={config.scale!r}"
            )
        self._refuse_weights("the expected regret")
        label = run.largest_label if largest_label is None else float(largest_label)
        reach = config.max_norm * self.radius
        settings: dict[str, Any] = {
            "W": config.max_norm,
            "radius": self.radius,
            "G": config.loss.term_lipschitz_l1(reach, run.longest, label),
            "m": run.longest,
            "k": depth,
            "labels_per_term": terms,
            "explore": config.explore,
            "eta": config.eta,
            "n": self.rounds,
            "decreasing": config.step == "sqrt",
        }
        cost = config.loss.range(reach, run.longest, (0.0, label))[1]
        # the largest label that was seen may not be the largest of those that were not
        sure = None if run.unmeasured else True
        known = {
            top_k.CONVEX.sentence: True,
            top_k.BALL.sentence: True,
            top_k.LABELS.sentence: False if label < run.largest_label else sure,
        }
        found = [top_k.top_k_regret(**settings), *([top_k.top_k_regret(cost=cost, **settings)] if cost > 0 else [])]
        return [
            replace(
                bound,
                preconditions=tuple(replace(one, met=known.get(one.sentence)) for one in bound.preconditions),
                ceiling=self.rounds * cost if cost > 0 else math.inf,  # a loss is at least 0
            )
            for bound in found
        ]

    def _refuse_weights(self, what: str) -> None:
        """Refuse weighted queries."""
        if self.rounds and not self.lightest == self.heaviest == 1:
            raise RankwiseError(
                f"{what} is bounded if all queries have the same weight: these had weights from {self.lightest:g} to "
                f"{self.heaviest:g}"
            )

    def _risk(self, delta: float, anytime: bool) -> Bound:
        """The mean risk of the iterates, by the online-to-batch bound."""
        self._refuse_weights("the risk of online weights")
        if self.feedback is not None:
            raise RankwiseError(
                "the risk of online weights follows from rankings by these weights, and some rankings of this run are "
                "random: regret_bounds() is about it"
            )
        if self.tally.length != self.rounds:
            raise RankwiseError(
                "the risk of online weights follows from one pass over the queries: this run showed "
                f"{self.tally.length:,} queries in {self.rounds:,} rounds"
            )
        if not self.counted > 0:
            raise RankwiseError("the measure was undefined in every round so far: there is nothing to generalize from")
        return bounds_of.online_to_batch(L=self.loss, n=round(self.counted), delta=delta, anytime=anytime)

    # ------------------------------------------------------------------------------------------- display

    def table(self, bounds: Iterable[Bound] = ()) -> Table:
        """The ledger line by line.

        Parameters
        ----------
        bounds : iterable of Bound, default=()
            Bounds to append, as :meth:`bounds` returned them.

        Returns
        -------
        Table
            Columns what, value and note.
        """
        facts = self.weights
        lines: list[tuple[str, float, str]] = [
            ("rounds", self.rounds, ""),
            ("mistakes", self.mistakes, "first positions not ideal, pessimistic ties"),
            (f"mean {self.config.measure.title}", self.mean, "of the published rankings, ties averaged"),
            (
                f"cumulative loss of {self.config.measure.title}",
                self.loss,
                "1 - measure, pessimistic ties",
            ),
            ("largest radius", self.radius, "of a query that was learned from"),
        ]
        if self.feedback is not None:
            lines = self._feedback_lines(lines, self.feedback)
        if facts.V:
            lines += [
                ("largest sum of weights", facts.V, "V, over queries with a mistake"),
                ("smallest positive weight", facts.smallest, ""),
                ("kappa", facts.kappa, "largest (sum v)^2 / smallest v, or longest query times ratio"),
            ]
        for bound in bounds:
            broken = "; ".join(f"NOT met: {one.sentence}" for one in bound.preconditions if one.met is False)
            # a number that follows from something false is not shown as a bound
            number, doubt = (math.nan, f" (no bound; {broken})") if broken else (bound.value, "")
            lines.append((f"{bound.bounds} at most", number, f"{bound.name}: {bound.statement}{doubt}"))
        what, value, note = zip(*lines, strict=True)
        return Table({"what": list(what), "value": [float(number) for number in value], "note": list(note)})

    def _feedback_lines(self, lines: list[tuple[str, float, str]], run: FeedbackTotals) -> list[tuple[str, float, str]]:
        """The lines of a run with a feedback depth: what is known, what is known of some rounds, what is estimated."""
        measured = self.rounds - run.unmeasured
        rounds, mistakes, mean, loss, radius = lines
        about = f"known of the {measured:,} rounds with all labels, which the learner does not see"
        if not measured:
            about, blank = "not known: some labels of every round were not given", math.nan
            mistakes, loss = (mistakes[0], blank, ""), (loss[0], blank, "")
        return [
            rounds,
            ("rounds that explored", run.explored, "known: their first documents were drawn at random"),
            (mistakes[0], mistakes[1], about),
            (mean[0], mean[1], about),
            (loss[0], loss[1], about),
            ("surrogate loss of the weights", run.estimated_loss, "an unbiased ESTIMATE, from the labels seen"),
            radius,
        ]

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return self.table()._repr_html_()

    def plot(self, bounds: Iterable[Bound] = ()) -> "Figure":
        """Plot the time-averaged measure (left), and mistakes and cumulative loss on logarithmic scales (right).

        Parameters
        ----------
        bounds : iterable of Bound, default=()
            Bounds to draw as lines; those that do not apply are left out.

        Returns
        -------
        Figure
            A matplotlib figure; needs the extra ``plot``.
        """
        curve, lines = self.curve, list(bounds)
        figure = new_figure(7.6, 3.0)
        with house_style():
            left, right = figure.subplots(1, 2)
            left.plot(curve.rounds, curve.mean, color=COLORS[0])
            left.set(xlabel="round", title=f"time-averaged {self.config.measure.title}", ylim=(None, 1.02))
            left.set_xscale("log")
            right.plot(curve.rounds, curve.mistakes, color=COLORS[1], label="mistakes")
            right.plot(curve.rounds, curve.loss, color=COLORS[0], label="cumulative loss")
            for bound, style in zip(lines, ("--", ":", "-.", (0, (5, 1))) * len(lines), strict=False):
                if bound.applies is not False and bound.bounds != "mean risk of the iterates":
                    right.axhline(bound.value, color=FAINT, linestyle=style, label=f"{bound.bounds}: {bound.name}")
            right.set(xlabel="round", title="mistakes and loss so far", xscale="log", yscale="log")
            right.legend(loc="best")
        return figure


def _in_span(parts: Sequence[LossOverLists], space: Any) -> LossOverLists:
    """The losses of all blocks in the space that their documents span."""
    from sklearn.base import clone

    queries = Queries.concat([part.work.queries for part in parts])
    if queries.n_documents:
        queries = queries.map_features(clone(space).fit_transform)
    return LossOverLists.of(parts[0].loss, queries, np.concatenate([part.weight for part in parts]))


def covers(config: OnlineConfig) -> bool:
    """Whether the loss at margin 1 bounds the measure of the run, so that the bounds on the loss apply to it."""
    return config.loss.at_margin(1.0).upper_bounds == config.measure


# ------------------------------------------------------------------------------------------------- the best comparator


# The relative gap of the first lambda, the one below which rounding decides, and the longest move of log lambda.
_COARSEST, _FINEST, _LONGEST = 0.1, 1e-14, 10.0


@dataclass(frozen=True, eq=False)
class Comparator:
    """What :func:`best_comparator` found.

    Attributes
    ----------
    u : ndarray, shape (dimensions,)
        The comparator.
    norm : float
        norm(u).
    value : float
        F(u).
    bound : float
        The larger root x of x - F(u) = norm(u) sqrt(c x), valid whatever the accuracy of the search.
    lower_bound : float
        No comparator gives a smaller bound.
    converged : bool
        Whether the two are as close as was asked for.
    n_calls : int
        Number of calls of the oracle.
    """

    u: Vector
    norm: float
    value: float
    bound: float
    lower_bound: float
    converged: bool
    n_calls: int


def larger_root(value: float, norm: float, c: float) -> float:
    """The larger root x of x - value = norm sqrt(c x), which is at least value and at least c norm^2."""
    return largest_root(F=max(value, 0.0), b=norm * math.sqrt(c))  # a sum of hinges may round to -1e-17


@one_blas_thread()
@validated
def best_comparator(
    oracle: Oracle, dimensions: int, c: NonNegativeFloat, *, tol: PositiveFloat = 1e-3, max_calls: PositiveInt = 2000
) -> Comparator:
    """The u that minimizes the larger root x of x - F(u) = norm(u) sqrt(c x), u = 0 among them.

    For every fixed u the bounds of online rankers state that the loss of the run is at most x, where F(u) is the sum
    over rounds with a mistake of the convex loss of u at margin 1, and c is a constant of the algorithm and the data.
    Regularized problems are solved by :class:`~rankwise.solvers.batch.bundle.Bundle` along a path of lambda.

    Parameters
    ----------
    oracle : callable
        u -> (F(u), a subgradient of F at u), where F is convex and 0 or more.
    dimensions : int
        Length of u.
    c : float
        The constant of the bound, above 0.
    tol : float, default=1e-3
        How far above the smallest bound the result may be, relative to it.
    max_calls : int, default=2000
        The largest number of calls of the oracle.

    Returns
    -------
    Comparator
        The best u that was found.

    Raises
    ------
    RankwiseError
        If an argument is not valid, or c is 0 and the loss is not constant.

    Notes
    -----
    *Why a path.* At equal norms x grows with F, so for every norm the best u is the one of least F, and those are the
    u_lambda = argmin F(u) + (lambda/2) norm(u)^2.

    *Why one direction.* x(u) <= t exactly where F(u) + sqrt(c t) norm(u) <= t, a convex set of u; so x falls and then
    rises along the path. Where it is smallest, u also makes F(u) + sqrt(c x) norm(u) smallest, so lambda norm(u) =
    sqrt(c x). A lambda is too small if lambda norm(u) < sqrt(c x) and too large otherwise. As x >= c norm(u)^2, none
    below c is best.

    *Why it is certain.* The bound holds for every u, so it is computed from F at the u that is returned, however far
    the search went. A plane F(u) >= b + a'u with b > 0 shows that no u does better than t = min(b, c b^2 / norm(a)^2):
    with k = t / b <= 1, F(u) + sqrt(c t) norm(u) >= k (b + a'u) + k norm(a) norm(u) >= t, because F >= 0.

    Examples
    --------
    Two lessons in one dimension, u >= 1 and u >= 1/2, with c = 1/8: u = 1 has F = 0, and so the bound 1/8.

    >>> import numpy as np
    >>> x = np.array([1.0, 2.0])
    >>> def hinges(u):
    ...     slack = 1 - x * u
    ...     return slack[slack > 0].sum(), -x[slack > 0].sum(keepdims=True)
    >>> found = best_comparator(hinges, 1, 1 / 8)
    >>> round(found.bound, 3)
    0.125
    """
    u, norm, calls = np.zeros(dimensions), 0.0, 1
    value, slope = oracle(u)
    value = float(value)
    bound, proved = larger_root(value, norm, c), _least_bound(value, slope, c)
    if c == 0 and proved < bound:
        raise RankwiseError(
            "the search for a comparator needs c above 0 unless the loss is the same everywhere, got c=0"
        )
    if value >= 0 and bound - proved <= tol * bound:  # no u is better than 0
        return Comparator(u, norm, value, bound, min(proved, bound), True, calls)
    bundle = Bundle(oracle, dimensions, floor=0.0)
    bundle.add(u, value, slope)
    search, accuracy = _Search(math.log(c or 1.0)), max(_COARSEST, tol / 4)
    while bound - proved > tol * bound and calls < max_calls and accuracy > _FINEST:
        found = bundle.solve(math.exp(search.at), tol=accuracy, max_calls=max_calls - calls)
        calls += found.n_calls
        found_norm = float(np.linalg.norm(found.w))
        root = larger_root(found.value, found_norm, c)
        if root < bound:
            u, norm, value, bound = found.w, found_norm, found.value, root
        proved = max(proved, _least_bound(found.offset, found.slope, c))
        # a distant lambda needs no accuracy; without a new call, nothing more can be learned at this accuracy
        if accuracy > tol / 4 or found.n_calls == 0 or found_norm == 0:
            accuracy /= 4
            search.reopen()
        if found_norm > 0:
            search.move(math.log(c * root) / 2 - math.log(found_norm))
    return Comparator(u, norm, value, bound, min(proved, bound), bound - proved <= tol * bound, calls)


def _least_bound(offset: float, slope: Vector, c: float) -> float:
    """No comparator gives a smaller bound, by the plane F(u) >= offset + slope'u and F >= 0."""
    steepness = float(slope @ slope)
    if offset <= 0:
        return 0.0
    return offset if steepness <= c * offset else c * offset * offset / steepness


class _Search:
    """Root finding for log lambda: where the pull of the bound, log(sqrt(c x) / norm(u)) - log lambda, is 0.

    Moving by the pull approaches the root from below without passing it, slowly where the bound is flat. So the stride
    is doubled until a pull is downwards; from then on a move that would leave the bracket bisects it instead.
    """

    def __init__(self, smallest: float) -> None:
        self.at = self._smallest = smallest
        self.reopen()

    def reopen(self) -> None:
        """Forget the bracket, which inexact pulls may have put on the wrong side of the root."""
        self._low, self._high, self._stride = self._smallest, math.inf, 1.0

    def move(self, wanted: float) -> None:
        """Move to the next log lambda, given the one that the bound asks for."""
        pull = wanted - self.at
        if pull > 0:
            self._low = self.at
        else:
            self._high = self.at
        ahead = self.at + self._stride * pull
        if self._high == math.inf:
            self._stride *= 2
            self.at = min(ahead, self.at + _LONGEST)
        else:
            self._stride = 1.0
            self.at = ahead if self._low < ahead < self._high else (self._low + self._high) / 2
