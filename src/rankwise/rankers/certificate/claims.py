"""The bounds of a certificate that hold for linear weights and online runs, and the sample that they are computed from.

:class:`ScoredSample` holds judged queries with a ranker's scores, :class:`Declared` what the user declares about future
queries, and :class:`Constants` combines the two into the radius and the length that bounds use. :class:`Population`
names the future queries that a mean is about.

Uniform bounds hold for every w at once, so also for one that was learned in any way, with any loss that is fixed
beforehand and bounded on a ball: the loss that was minimized, or one that upper-bounds 1 - measure. All constants are
in the units of the raw features, because a scale learned from the same queries would not be fixed beforehand. Facts
that a loss declares decide preconditions (:func:`with_known_preconditions`); the rest stays open, and is shown.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankwise._arrays import Numbers, Vector
from rankwise._kernels.radius import largest_radius
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless
from rankwise.guarantees.bounds import uniform
from rankwise.guarantees.bounds.batch import CONVEX, ONE_PASS, ogd_average
from rankwise.guarantees.certificate import READINGS, Claim
from rankwise.guarantees.holdout.betting import Readings
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.queries.overlap import same_content
from rankwise.queries.queries import Queries
from rankwise.rankers._model_selection import measure_ranker
from rankwise.solvers.online.ledger import Ledger

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker


# ---------------------------------------------------------------------------------------------------------- populations


@dataclass(frozen=True)
class Population:
    """Which future queries a mean is about.

    Attributes
    ----------
    empty : bool, default=False
        Whether queries without a relevant document are left out, because the measure is undefined for them.
    undefined : bool, default=False
        Whether other queries are left out for the same reason.
    weightless : bool, default=False
        Whether queries of weight 0 are left out.
    tied : bool, default=False
        Whether tied scores change the measure, which then is averaged over the orders of tied documents.
    """

    empty: bool = False
    undefined: bool = False
    weightless: bool = False
    tied: bool = False

    def __or__(self, other: "Population") -> "Population":
        """What is left out of either."""
        return Population(*(one or two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __str__(self) -> str:
        left = [
            "with a relevant document" if self.empty else "",
            "for which it is defined" if self.undefined else "",
            "of weight above 0" if self.weightless else "",
        ]
        return " ".join(["future queries", " and ".join(filter(None, left))]).strip()

    def number(self, title: str) -> str:
        """The number that is bounded, in words."""
        return f"1 - {title}{', ties averaged,' if self.tied else ''} on {self}"

    @property
    def training(self) -> str:
        """The same restriction of the training queries, in words."""
        return f"the {self}".replace("future", "training")


def population_of(queries: Queries, values: Vector, worst: Vector | None = None) -> Population:
    """Which queries a mean of these values is about.

    Parameters
    ----------
    queries : Queries
        The queries, with labels.
    values : ndarray, shape (n_queries,)
        The measure with ties averaged; NaN where it is undefined.
    worst : ndarray, shape (n_queries,), default=None
        The measure with ties in the worst order.

    Returns
    -------
    Population
        What is left out.
    """
    weighted = queries.query_weight > 0
    undefined = np.isnan(values) & weighted
    relevant = queries.apply(largest_labels) > 0
    return Population(
        empty=bool((undefined & ~relevant).any()),
        undefined=bool((undefined & relevant).any()),
        weightless=not weighted.all(),
        tied=worst is not None and bool((worst[weighted & ~undefined] < values[weighted & ~undefined] - 1e-12).any()),
    )


def largest_labels(queries: Queries) -> Vector:
    """The largest label of every query; 0 of a query without documents."""
    found = np.zeros(len(queries))
    np.maximum.at(found, queries.query_of_row, queries.labels())
    return found


# ------------------------------------------------------------------------------------------- sample and constants

SCALED = Precondition("every feature of every query was scaled to [0, 1] within its query, as in future queries", True)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the user declares about all future queries, before seeing any.

    Attributes
    ----------
    row_radius : float, default=None
        The largest distance of a document from 0, or from a point of its query's own.
    longest : int, default=None
        The largest number of documents of a query.
    first_ball : float, default=None
        The smallest norm of weights that is distinguished.
    """

    row_radius: float | None = None
    longest: int | None = None
    first_ball: float | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number is not None:
                refuse_unless("certificate", above=0, **{name: number})


@dataclass(frozen=True, kw_only=True)
class ScoredSample:
    """Judged queries with a ranker's scores.

    Attributes
    ----------
    queries : Queries or ChunkedQueries
        The sample.
    ranker : Ranker
        The ranker.
    kept : dict
        The scores, and the values of measures that were asked for before; samples of the same documents share them.
    """

    queries: Any
    ranker: "Ranker"
    kept: dict[Any, Vector] = field(default_factory=dict, repr=False)

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        n_jobs: int | None = getattr(self.ranker, "n_jobs", None)
        return n_jobs

    @property
    def scores(self) -> Vector:
        """The ranker's scores of all documents, which are computed once."""
        if "scores" not in self.kept:
            self.kept["scores"] = self.ranker.predict(self.queries)
        return self.kept["scores"]

    @cached_property
    def group(self) -> Numbers:
        """The group number of each query; queries of one group repeat each other."""
        return same_content(self.queries, n_jobs=self.n_jobs)

    @property
    def no_repeats(self) -> Precondition:
        """Precondition of expectations over samples of independent queries."""
        return Precondition("no query repeats another one", len(set(self.group.tolist())) == len(self.group))

    @property
    def label_span(self) -> tuple[float, float]:
        """0 and the largest label."""
        return 0.0, float(self.queries.labels().max(initial=0.0))

    @property
    def count_the_same(self) -> Precondition:
        """Precondition of bounds on means: all queries have the same weight."""
        weight = self.queries.query_weight
        kept = weight[weight > 0]
        return Precondition("all queries have the same weight", not len(kept) or bool((kept == kept[0]).all()))

    def measured(self, measure: Measure, ties: Ties) -> Vector:
        """The measure of every query; NaN where it is undefined or the query has weight 0."""
        if (measure, ties) not in self.kept:
            both: tuple[Ties, ...] = ("expected", "pessimistic")
            if isinstance(self.queries, Queries):  # scored once, whatever is measured
                one = self.queries
                lists = ScoredLists(self.scores, one.labels(), one.start, one.scattered_rows, one.judged)
                measured = measure_lists_by_ties([measure], lists, both, n_jobs=self.n_jobs)[:, 0]
            else:
                measured = measure_ranker(self.queries, self.ranker, measure, both)
            for each, values in zip(both, measured, strict=True):
                self.kept[measure, each] = np.where(self.queries.query_weight > 0, values, math.nan)
        return self.kept[measure, ties]

    def population(self, measure: Measure, ties: Ties | None) -> Population:
        """Which queries a mean of the measure is about; whether ties matter, if their worst order is given."""
        worst = None if ties is None else self.measured(measure, ties)
        return population_of(self.queries, self.measured(measure, "expected"), worst)

    def losses(self, loss: Loss) -> Vector:
        """The loss of every query."""
        prepared = PreparedLists.of(loss, self.queries.labels(), self.queries.start, self.queries.scattered_rows)
        return loss_lists(prepared, self.scores, n_jobs=self.n_jobs)[0]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants that hold for every future query, or are assumed to.

    Attributes
    ----------
    radius : float
        Radius of every query around 0 or a point of its own.
    measured : float
        The largest radius in the sample, around 0 or the mean of the query.
    m : int
        Number of documents of the longest query.
    first_ball : float
        W_0, the smallest norm that is distinguished.
    assumed : str
        Which of radius and length are taken from the sample, in words; empty if none is.
    conditions : tuple of Precondition
        What is known about the constants.
    """

    radius: float
    measured: float
    m: int
    first_ball: float
    assumed: str
    conditions: tuple[Precondition, ...]

    @property
    def mark(self) -> str:
        """What the name of a bound says about constants that are assumed."""
        return f", assumes {self.assumed}" if self.assumed else ""

    @classmethod
    def of(cls, queries: Queries, declared: Declared, known_radius: float | None) -> "Constants":
        """From what was declared, the ranker's parameters, the scaling of the queries, or the sample, in this order."""
        measured, longest = largest_radius(queries.X, queries.start, queries.rows), int(queries.sizes.max(initial=1))
        radius, conditions = declared.row_radius if declared.row_radius is not None else known_radius, []
        scaling = queries.scaling
        if radius is not None:
            found = min(measured, _around_middles(queries))
            if found > radius * (1 + 1e-9):
                raise RankwiseError(f"row_radius={radius:g} must hold for every query, got a query of radius {found:g}")
            conditions.append(Precondition(f"row_radius={radius:g} was declared, and no query contradicts it", True))
        elif scaling is not None and (scaling.how, scaling.per) == ("minmax", "query"):
            radius = math.sqrt(queries.n_features) / 2  # around the middle of the cube
            conditions.append(SCALED)
        if declared.longest is not None and longest > declared.longest:
            raise RankwiseError(
                f"longest={declared.longest:,} must hold for every query, got a query of {longest:,} documents"
            )
        assumed = [name for name, known in (("radius", radius), ("length", declared.longest)) if known is None]
        radius = measured if radius is None else radius
        return cls(
            radius=radius,
            measured=measured,
            m=longest if declared.longest is None else declared.longest,
            first_ball=declared.first_ball or (1 / radius if radius > 0 else 1.0),
            assumed=" and ".join(assumed),
            conditions=tuple(conditions),
        )


def _around_middles(queries: Queries) -> float:
    """The largest radius of a query around the center of its bounding box."""
    found = 0.0
    for query in map(int, np.flatnonzero(queries.sizes)):
        rows = queries.X[queries.rows_of(query)].astype(np.float64)
        middle = (rows.min(axis=0) + rows.max(axis=0)) / 2
        found = max(found, float(np.linalg.norm(rows - middle, axis=1).max()))
    return found


# ------------------------------------------------------------------------------------------- facts of a loss


Facts = Mapping[str, Precondition]


def facts_of(loss: Loss, labels: tuple[float, float], *, first_ball_known: bool) -> Facts:
    """Preconditions that the constants of a loss decide, by their sentence.

    Parameters
    ----------
    loss : Loss
        The loss whose slope, smoothness and range are the constants of a bound.
    labels : tuple of float
        The smallest and the largest label that its range was computed for.
    first_ball_known : bool
        Whether W_0 follows from declared constants alone.

    Returns
    -------
    facts : mapping of str to Precondition
        By the sentence of the precondition.
    """
    declared = {
        one.sentence: replace(one, met=True) for one in (uniform.STEEP_L2, uniform.STEEP_MAX, uniform.SMOOTH_TO_B)
    }
    span = replace(uniform.SPAN, met=True)
    if range_needs_labels(loss, labels):
        span = Precondition(f"no future label is above {labels[1]:g}, so that {uniform.SPAN.sentence}")
    convex = replace(CONVEX, met=loss.convex)
    first_ball = replace(uniform.FIRST_BALL, met=True if first_ball_known else None)
    return declared | {uniform.SPAN.sentence: span, CONVEX.sentence: convex, uniform.FIRST_BALL.sentence: first_ball}


def range_needs_labels(loss: Loss, labels: tuple[float, float]) -> bool:
    """Whether the range of the loss depends on the largest label, which is known from the sample only."""
    low, high = labels
    return loss.range(1.0, 2, labels) != loss.range(1.0, 2, (low, high + 1))


def with_known_preconditions(bound: Bound, facts: Facts) -> Bound:
    """The bound, its preconditions replaced by those that the facts decide."""
    return replace(bound, preconditions=tuple(facts.get(one.sentence, one) for one in bound.preconditions))


def claim_with_known_preconditions(claim: Claim, facts: Facts) -> Claim:
    """The claim, its bound treated by :func:`with_known_preconditions` at every delta."""
    return replace(claim, make=lambda delta: with_known_preconditions(claim.make(delta), facts))


# ------------------------------------------------------------------------------------------- risk of linear weights


Span: TypeAlias = tuple[float, float]
Ball: TypeAlias = Callable[[float, float, float], Bound]  # of the sample's risk, the size of the ball, and delta

ABOVE = Precondition("on every query the loss is at least 1 - measure, ties in the worst order", True)
LOSS = "the loss was fixed before the data were seen"
LOSSES = "the {} losses of which this one was chosen were fixed before the data were seen"


@dataclass(frozen=True, kw_only=True)
class LossOnSample:
    """A loss and its values on the queries that the measure is defined for.

    Attributes
    ----------
    loss : Loss
        The loss.
    fixed : bool or None
        Whether it was fixed before the data were seen.
    readings : Readings
        The loss of every query that the measure is defined for, divided by which of them are sure to be draws.
    labels : tuple of float
        0 and the largest label.
    count_the_same : Precondition
        Whether all queries have the same weight.
    population : Population
        Which future queries the bounds are about.
    drawn : int, default=None
        The number of queries, including those that the measure is undefined for.
    among : int, default=1
        The number of losses of which the loss was chosen on the same queries. Their bounds hold together with
        probability 1 - delta, each at delta / among: so does that of any choice.
    """

    loss: Loss
    fixed: bool | None
    readings: Readings
    labels: tuple[float, float]
    count_the_same: Precondition
    population: Population
    drawn: int | None = None
    among: int = 1

    @classmethod
    def of(
        cls,
        loss: Loss,
        fixed: bool | None,
        sample: ScoredSample,
        measure: Measure,
        population: Population,
        among: int = 1,
    ) -> "LossOnSample":
        undefined = np.isnan(sample.measured(measure, "pessimistic"))
        return cls(
            loss=loss,
            fixed=fixed,
            readings=Readings.of(np.where(undefined, math.nan, sample.losses(loss)), sample.group),
            labels=sample.label_span,
            count_the_same=sample.count_the_same,
            population=population,
            drawn=len(sample.queries),
            among=among,
        )

    def span(self, W: float, constants: Constants) -> tuple[float, float]:
        """The smallest and the largest loss of a query, for every w with norm(w) <= W."""
        low, high = self.loss.range(W * constants.radius, constants.m, self.labels)
        return float(low), float(high)


def uniform_claims(
    found: LossOnSample, coef: Vector, constants: Constants, measure: Measure, delta: float
) -> list[Claim]:
    """The uniform bounds of these weights and this loss; none if the loss has no finite constants.

    Two kinds of bounds are no candidates for the headline at ``delta``. The first would be vacuous whatever the sample
    had been, even for the smallest ball and a loss of 0; the declared constants and the number of queries decide that
    beforehand, so it costs no delta. The second rests on a range that is known from the labels of the sample only:
    the sample would otherwise choose how many bounds are compared.

    If queries repeat each other, it is not known which of them are draws. Every bound grows with the mean loss and
    falls with the number of draws, so the largest mean and the smallest number of all readings
    (:mod:`rankwise.guarantees.holdout.betting`) give a bound that holds under each of them.
    """
    n, G = len(found.readings.sure), found.loss.lipschitz_l1(constants.m)
    if not (n and constants.radius > 0 and 0 < G < math.inf):
        return []
    balls = _balls(found, constants, G, n, len(coef))
    at_best = _balls(found, constants, G, found.drawn or n, len(coef))
    risk_on_sample = found.readings.largest_mean
    reach = {"l2": float(np.linalg.norm(coef)), "l1": float(np.abs(coef).sum())}

    def claim(kind: str) -> Claim:
        def fitted(ball: Ball, risk: float | None, norm: float, delta: float) -> Bound:
            def at(W: float, level: float) -> Bound:
                return ball(found.span(W, constants)[0] if risk is None else risk, W, level)

            bound = uniform.for_fitted_norm(at, norm=norm, W_0=constants.first_ball, delta=delta / found.among)
            if found.among > 1:
                bound = one_of_several(bound, found.among, delta)
            return about_future_queries(bound, found, reach["l2"], constants, measure)

        norm = reach["l1" if kind == "l1" else "l2"]
        hopeless = found.loss.upper_bounds == measure and fitted(at_best[kind], None, 0.0, delta).vacuous
        return Claim(
            lambda level: fitted(balls[kind], risk_on_sample, norm, level),
            headline=not (constants.assumed or hopeless or range_needs_labels(found.loss, found.labels)),
        )

    return [claim(kind) for kind in balls]


def _balls(found: LossOnSample, constants: Constants, G: float, n: int, d: int) -> dict[str, Ball]:
    """The bounds for a ball, as functions of the empirical risk, the size of the ball and delta."""
    R, m, H1 = constants.radius, constants.m, found.loss.smoothness(constants.m)
    balls = lipschitz_balls(lambda W: found.span(W, constants), G, R, m, n, d)
    if math.isfinite(H1) and found.loss.nonnegative:
        balls["smooth"] = lambda risk, W, delta: uniform.smooth_ball(
            risk=risk, H1=H1, W=W, radius=R, m=m, n=n, B=found.span(W, constants)[1], delta=delta
        )
    return balls


def lipschitz_balls(span: Callable[[float], Span], G: float, R: float, m: int, n: int, d: int) -> dict[str, Ball]:
    """The bounds for a ball of a loss whose gradients have l1 norms of at most G.

    Parameters
    ----------
    span : callable
        The smallest and the largest loss of a query in a ball of this size.
    G : float
        The largest l1 norm of a gradient with respect to the scores.
    R : float
        The radius of the documents.
    m : int
        The length of the longest query.
    n : int
        The number of queries.
    d : int
        The number of features.

    Returns
    -------
    dict of str to callable
        By the norm of the ball.
    """

    def shared(risk: float, W: float, delta: float) -> dict[str, Any]:
        low, high = span(W)
        return {"risk": risk, "n": n, "m": m, "delta": delta, "b": high - low, "low": low}

    # adding a constant to all scores changes no loss, so gradients sum to 0: half of the l1 norm G is positive
    return {
        "l2": lambda risk, W, delta: uniform.l2_ball(L2=G / math.sqrt(2), W=W, radius=R, **shared(risk, W, delta)),
        "linf": lambda risk, W, delta: uniform.linf_ball(G=G, W=W, radius=R, **shared(risk, W, delta)),
        # no entry of a row exceeds its norm
        "l1": lambda risk, W, delta: uniform.l1_ball(G=G, W1=W, entry=R, d=d, **shared(risk, W, delta)),
    }


def one_of_several(bound: Bound, among: int, delta: float) -> Bound:
    """The uniform bound of one of several losses at delta / among, said of all of them together."""
    kept = [one for one in bound.preconditions if not one.sentence.startswith("it holds with")]
    together = f"it holds with probability {1 - delta:g} over the queries, for every w and all {among} losses at once"
    return replace(
        bound,
        terms=dict(bound.terms) | {"losses": float(among), "delta_each": delta / among},
        preconditions=(*kept, Precondition(together)),
    )


def about_future_queries(
    bound: Bound, found: LossOnSample, norm: float, constants: Constants, measure: Measure
) -> Bound:
    """The bound with its quantity in words, and with the preconditions of the sample and the constants."""
    above = found.loss.upper_bounds == measure
    return replace(
        bound,
        name=f"{bound.name}, {found.loss.name}{constants.mark}",
        bounds=found.population.number(measure.title) if above else f"{found.loss.name} loss on {found.population}",
        terms=dict(bound.terms) | {"measured_radius": constants.measured},
        preconditions=(
            *((ABOVE,) if above else ()),
            Precondition(LOSS if found.among == 1 else LOSSES.format(found.among), found.fixed),
            found.count_the_same,
            *((Precondition(READINGS, True),) if len(found.readings.optional) else ()),
            *constants.conditions,
            *bound.preconditions,
        ),
        ceiling=1.0 if above else found.span(norm, constants)[1],  # no weights of this norm exceed it
    )


# ------------------------------------------------------------------------------------------- online runs


def online_claims(ledger: Ledger, queries: Queries, no_repeats: Precondition) -> tuple[list[Claim], list[str]]:
    """(claims, notes) of an online run: against the best comparator, for the iterates, and for their average.

    The last two need independent queries; ``no_repeats`` is the precondition for that.
    """
    claims: list[Claim] = []
    notes: list[str] = []
    try:
        ledger.bounds(gamma=1.0)  # raises for a run that is not a perceptron
        claims += [Claim.certain(_row(bound, ledger)) for bound in ledger.bounds(queries)]
    except RankwiseError as error:
        notes.append(f"no bound on the losses of the run: {error}")
    try:
        ledger.bounds(delta=0.5)
        claims.append(Claim(lambda delta: _row(ledger.bounds(delta=delta)[0], ledger)).given(no_repeats))
    except RankwiseError as error:
        notes.append(f"no bound on the risk of the iterates: {error}")
    average = _average(ledger, queries)
    if average is not None:
        claims.append(Claim.certain(average).given(no_repeats))
    return claims, notes


def _row(bound: Bound, ledger: Ledger) -> Bound:
    """The bound as a row of a certificate; no round loses more than 1."""
    most = ledger.counted if bound.bounds == "cumulative loss" else float(ledger.rounds)
    ceiling = bound.ceiling if math.isfinite(bound.ceiling) else most
    return replace(bound, kind="online", ceiling=ceiling)


def _average(ledger: Ledger, queries: Queries) -> Bound | None:
    """Averaged gradient descent against weights of the norm for which its step is optimal: W = eta G R sqrt(n).

    A weight that all queries share multiplies every step: eta is the step times that weight.
    """
    config, n = ledger.config, ledger.rounds
    steady = config.update == "always" and config.step == "constant" and config.projection == "none"
    steady = steady and config.feedback_depth is None  # estimated gradients may be far longer than G
    if not (steady and config.averaging == "uniform" and config.scale == "none" and config.loss.convex and n):
        return None
    G = config.loss.lipschitz_l1(int(queries.sizes.max(initial=2)))
    if not (0 < G < math.inf and ledger.radius > 0) or ledger.lightest != ledger.heaviest:
        return None
    W = config.eta * ledger.heaviest * G * ledger.radius * math.sqrt(n)
    if not W > 0:
        return None
    bound = ogd_average(G=G, W=W, radius=ledger.radius, n=n)
    once = ledger.tally.length == ledger.rounds
    preconditions = tuple(replace(one, met=once) if one == ONE_PASS else one for one in bound.preconditions)
    return replace(
        bound,
        name=f"{bound.name}, {config.loss.name}, assumes radius",
        bounds=f"expected excess of the {config.loss.name} loss over weights of norm W",
        preconditions=preconditions,
    )
