"""What each row of a certificate is about, computed without the certificate: the true value of every statement.

A row says in words what it bounds. Here each such sentence has its own computation: over the population for future
queries, query by query for the training queries, round by round for online runs. A row whose sentence is not known
here is reported as not checked.

Rows of a ranker on a map are about mapped rows: the truth behind them is that of the ranker inside on the mapped
population. A perceptron with a kernel has no weights on the features: its rounds are played again, and the ranker
before each round is kept.
"""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import rankwise as rw
from experiments.coverage_populations import Mean, Reference, reference_of
from rankwise.guarantees import Bound
from rankwise.losses import Loss
from rankwise.rankers._base import LinearRanker

Floats = NDArray[np.float64]

# The future queries for which the measure is defined: a sample decides whether the sentence names what is left out.
_WITH = "(?:lists|queries)(?: with a relevant document)?(?: (?:and )?for which it is defined)?"
FUTURE, TRAINING, ALL = f"future {_WITH}", _WITH, ", undefined counted as 0"
# Queries that the risk of every iterate of a run is measured on, where means are not exact.
FEW = 1_000
# What rounding may leave between two objectives that should be equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Case:
    """A ranker, and what the rows of its certificate need to be understood.

    Attributes
    ----------
    name : the ranker, and its settings where several are tried
    make : the unfitted ranker, for a number of features
    losses : the losses that rows name; a function of the fitted ranker where it chooses their parameters
    ties : how tied documents are ordered in rows about the training queries
    objective : of a fitted ranker on its training queries; None where it is not a sum of known parts
    precise : settings with which the same objective is minimized much more precisely
    mapped : whether rows are about the space of a map or a kernel
    most : queries to learn from at most, where larger samples take too long
    map : the map, where it does not depend on the training queries; None for the features as they are
    """

    name: str
    make: Callable[[int], Any]
    losses: Mapping[str, Loss | Callable[[Any], Loss]] = field(default_factory=dict)
    ties: str = "pessimistic"
    objective: Callable[[Any, rw.Queries], float] | None = None
    precise: Mapping[str, Any] = field(default_factory=dict)
    mapped: bool = False
    map: Any = None
    most: int = 1_000_000


@dataclass(frozen=True)
class Truths:
    """The true values behind the rows of one certificate.

    Attributes
    ----------
    case, population : what was fitted, and the name of the population behind the queries
    model, train : the fitted ranker and its training queries, both in the mapped space where there is a map
    outer : the ranker with its map; None where there is none
    eta : the step of an online run that worked it out from all queries; None where it is a setting
    """

    case: Case
    population: str
    model: Any
    train: rw.Queries
    eta: float | None = None
    outer: Any = None

    @classmethod
    def behind(cls, case: Case, population: str, model: Any, train: rw.Queries, eta: float | None) -> "Truths":
        """The truths behind the certificate of a fitted ranker."""
        if isinstance(model, rw.MappedRanker):
            return cls(case, population, model.ranker_, model.mapped(train), eta, model)
        return cls(case, population, model, train, eta)

    def of(self, row: Bound) -> "Mean | str":
        """The true value of what the row bounds; a text says why it cannot be checked."""
        for pattern, compute in RULES:
            found = re.fullmatch(pattern, row.bounds)
            if found:
                return compute(self, row, *found.groups())
        return "no rule is known for this sentence"

    def loss(self, name: str) -> Loss:
        """The loss that rows call so, with its parameters."""
        known = self.case.losses[name]
        return known if isinstance(known, Loss) else known(self.model)

    # ------------------------------------------------------------------------------------------- future queries

    @property
    def reference(self) -> Reference:
        return reference_of(self.population)

    @cached_property
    def scores(self) -> Floats:
        return np.asarray((self.model if self.outer is None else self.outer).predict(self.reference.queries))

    def on_future(self, row: Bound, measure: str) -> Mean:
        # bounds through a surrogate hold with tied documents in the worst order, which is more
        ties = "pessimistic" if row.kind == "generalization" else "expected"
        return self.reference.mean(self._losses(measure, ties))

    def on_all_future(self, row: Bound, measure: str) -> Mean:
        losses = self._losses(measure, "expected")
        return self.reference.mean(np.where(np.isnan(losses), 1.0, losses))

    def _losses(self, measure: str, ties: str) -> Floats:
        key = (measure, ties)
        if key not in self._known:
            self._known[key] = self.reference.one_minus(measure, self.scores, ties)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, str], Floats]:
        return {}

    def loss_on_future(self, row: Bound, name: str) -> "Mean | str":
        if name not in self.case.losses:
            return f"the parameters of {name} are not known here"
        values = self.reference.losses(self.loss(name), self.scores)
        # uniform bounds count the queries for which the measure is defined, as the certificate does
        counted = self.reference.one_minus(self.model.measure, self.scores)
        return self.reference.mean(np.where(np.isnan(counted), np.nan, values))

    def risk(self, row: Bound, name: str) -> "Mean | str":
        """The expected loss of the fitted weights, over all queries."""
        if name not in self.case.losses:
            return f"the parameters of {name} are not known here"
        return self.reference.mean(self.reference.losses(self.loss(name), self.scores))

    def excess(self, row: Bound, name: str, order: str, norm: str) -> "Mean | str":
        """The risk of the fitted weights minus the smallest one that is found in the ball; never overstated."""
        risk = self.risk(row, name)
        if isinstance(risk, str):
            return risk
        best = smallest_risk(self.loss(name), self.population, float(norm), self.case.map, order=order)
        return Mean(risk.value - best.value, risk.error + best.error)

    # ------------------------------------------------------------------------------------------- training queries

    @cached_property
    def own_scores(self) -> Floats:
        return np.asarray(self.model.predict(self.train))

    def on_training(self, row: Bound, measure: str) -> Mean:
        values = rw.evaluate(self.train, self.own_scores, [measure], ties=self.case.ties, n_jobs=1)[measure]  # type: ignore[arg-type]
        return Mean(1 - float(np.nanmean(values)))

    def below_best(self, row: Bound, measure: str) -> Mean:
        """The mean of best - measure; the best of these measures is 1, and 0 where nothing is relevant."""
        values = rw.evaluate(self.train, self.own_scores, [measure], n_jobs=1)[measure]
        return Mean(float(np.nan_to_num(1 - values).mean()))

    def smoothing(self, row: Bound, measure: str) -> "Mean | str":
        if "SmoothNDCG" not in self.case.losses:
            return "the parameters of the smoothed measure are not known here"
        loss = self.loss("SmoothNDCG")
        found = rw.evaluate(self.train, self.own_scores, [measure], n_jobs=1)[measure]
        smooth = [
            1 - loss(self.own_scores[self.train.rows_of(query)], self.train[query].y)[0]
            for query in range(len(self.train))
        ]
        return Mean(float(np.nanmean(np.abs(np.array(smooth) - found))))

    # ------------------------------------------------------------------------------------------- the solver

    def gap(self, row: Bound) -> "Mean | str":
        """The objective at the weights minus the smallest that a far more precise solution has reached."""
        if self.case.objective is None:
            return "the objective is not a sum of public parts"
        reached = self.case.objective(self.model, self.train)
        if abs(reached - row.terms["objective"]) > 1e-9 * max(1.0, abs(reached)):
            return Mean(np.inf)  # the row is not about the objective of these weights
        better = clone(self.model).set_params(**self.case.precise).fit(self.train)
        return Mean(max(0.0, reached - self.case.objective(better, self.train) - ROUNDING))

    # ------------------------------------------------------------------------------------------- online runs

    @cached_property
    def iterates(self) -> Floats:
        """The weights before each round."""
        weights = [np.zeros(self.train.n_features), *(model.coef_ for model in self.played[1:])]
        return np.array(weights)

    @cached_property
    def played(self) -> list[Any]:
        """The ranker before each round, by learning from one query at a time; None before the first."""
        run = clone(self.model)
        if "averaging" in run.get_params():
            run.set_params(averaging="none")
        if self.eta is not None:
            run.set_params(eta=self.eta)
        found: list[Any] = [None]
        for query in range(len(self.train) - 1):
            run.partial_fit(self.train[query : query + 1])
            found.append(copy.deepcopy(run))
        return found

    @property
    def is_linear(self) -> bool:
        return isinstance(self.model, LinearRanker)

    @cached_property
    def scores_of_rounds(self) -> Floats:
        """The scores of the documents of each round, by the ranker before it."""
        if self.is_linear:
            return (self.train.X * self.iterates[self.train.query_of_row]).sum(axis=1)
        scores = np.zeros(self.train.n_documents)
        for query, ranker in enumerate(self.played):
            if ranker is not None:
                rows = self.train.rows_of(query)
                scores[rows] = ranker.predict(self.train.X[rows])
        return scores

    @cached_property
    def lost(self) -> Floats:
        """The loss of each round, tied documents in the worst order; NaN where the measure is not defined."""
        measure = self.model.measure
        return 1 - rw.evaluate(self.train, self.scores_of_rounds, [measure], ties="pessimistic", n_jobs=1)[measure]

    def cumulative_loss(self, row: Bound) -> Mean:
        return Mean(float(np.nansum(self.lost)))

    def rounds_with_loss(self, row: Bound) -> Mean:
        return Mean(float((np.nan_to_num(self.lost) > 1e-12).sum()))

    def rounds_with_mistake(self, row: Bound) -> Mean:
        """A round is a mistake if some document is not scored above every document of a smaller label."""
        scores = self.scores_of_rounds
        return Mean(
            float(sum(mistaken(scores[self.train.rows_of(q)], self.train[q].y) for q in range(len(self.train))))
        )

    def risk_of_iterates(self, row: Bound) -> Mean:
        """The mean risk of the weights before each round that the measure is defined for."""
        reference = reference_of(self.population, FEW)
        counts = ~np.isnan(self.lost)

        def risk(scores: Floats) -> Floats:
            # ties in the worst order, as in the run
            return reference.one_minus(self.model.measure, scores, "pessimistic")

        if self.is_linear:
            kept, times = np.unique(self.iterates[counts], axis=0, return_counts=True)
            X = np.asarray((reference.queries if self.outer is None else self.outer.mapped(reference.queries)).X)
            each = [risk(X @ w) for w in kept]
        else:
            # documents that are scored alike, to the bit, rank alike
            known, times = {}, np.zeros(0)
            for ranker in (one for one, counted in zip(self.played, counts, strict=True) if counted):
                scores = (
                    np.zeros(reference.queries.n_documents) if ranker is None else ranker.predict(reference.queries)
                )
                place = known.setdefault(scores.tobytes(), (len(known), scores))[0]
                times = np.append(times, 0.0) if place == len(times) else times
                times[place] += 1
            each = [risk(scores) for _, scores in known.values()]
        return reference.mean(np.average(each, axis=0, weights=times))


Rule = Callable[..., Mean | str]
RULES: tuple[tuple[str, Rule], ...] = (
    (rf"1 - (.+?)(?:, ties averaged,)? on {FUTURE}", Truths.on_future),
    (rf"1 - (.+?)(?:, ties averaged,)? on future queries{ALL}", Truths.on_all_future),
    (rf"(\w+) loss on {FUTURE}", Truths.loss_on_future),
    (r"excess of the (\w+) loss over the best weights of (l1|l2) norm (\S+)", Truths.excess),
    (rf"1 - (.+) on the training {TRAINING}", Truths.on_training),
    (r"mean of the best (.+) - \1", Truths.below_best),
    (rf"abs\(smooth (.+) - \1\) on the training {TRAINING}", Truths.smoothing),
    (r"objective - its minimum", Truths.gap),
    (r"objective on the working sets - its minimum", lambda truths, row: "the working sets are not public"),
    (r"cumulative loss", Truths.cumulative_loss),
    (r"rounds with a loss above 0", Truths.rounds_with_loss),
    (r"rounds with a mistake", Truths.rounds_with_mistake),
    (r"mean risk of the iterates", Truths.risk_of_iterates),
)
# What is bounded on average over samples, and not sample by sample.
ON_AVERAGE = r"expected excess of the (\w+) loss over weights of norm W"
# Rows that cost nothing to check are checked even where they are vacuous.
COSTLY = (Truths.on_future, Truths.on_all_future, Truths.loss_on_future, Truths.excess, Truths.risk_of_iterates)


def mistaken(scores: Floats, labels: Floats) -> bool:
    """Whether some document is not scored above every document with a smaller label."""
    return bool(((labels[:, None] > labels) & (scores[:, None] <= scores)).any())


def is_costly(row: Bound) -> bool:
    """Whether the true value takes a pass over the reference sample."""
    return any(re.fullmatch(pattern, row.bounds) and rule in COSTLY for pattern, rule in RULES)


def label_of(row: Bound) -> str:
    """The row's name without the loss and the constants of the sample, which tables pool."""
    parts = row.name.split(", ")
    known = rw.losses.registered()
    kept = ", ".join(part for part in parts if part not in known and not part.startswith("assumes"))
    if row.bounds.endswith(ALL):
        return f"{kept}{ALL}"
    if row.kind != "generalization" or not kept.startswith("Uniform"):
        return kept
    return f"{kept} ({'measure' if row.bounds.startswith('1 - ') else 'loss'})"


@cache
def smallest_risk(
    loss: Loss, population: str, norm: float, map_: Any = None, steps: int = 300, order: str = "l2"
) -> Mean:
    """The smallest risk of weights of this norm that projected subgradient steps have found.

    Parameters
    ----------
    norm : of the weights at most
    map_ : the map of the features that the weights are on; None for the features as they are
    steps : how many; they shrink as 1/sqrt(step)
    order : which norm, l2 or l1
    """
    from rankwise.losses.compute import LossOverLists
    from rankwise.solvers.online.loop import onto_l1_ball

    def seen(queries: rw.Queries) -> rw.Queries:
        return queries if map_ is None else queries.map_features(clone(map_).fit(queries.X).transform)

    reference = reference_of(population, FEW)
    share = np.full(len(reference.queries), 1 / len(reference.queries))
    queries = seen(reference.queries)
    total = LossOverLists.of(loss, queries, share if reference.chance is None else reference.chance)
    w, best, best_w = np.zeros(queries.n_features), np.inf, np.zeros(queries.n_features)
    for step in range(1, steps + 1):
        value, slope = total(w, n_jobs=1)
        if value < best:
            best, best_w = value, w
        length = float(np.linalg.norm(slope))
        if length == 0:
            break
        w = w - norm / np.sqrt(step) * slope / length
        if order == "l1":
            onto_l1_ball(w, norm)
        else:
            w = w * min(1.0, norm / max(float(np.linalg.norm(w)), 1e-300))
    # its risk on the sample behind all other risks: never below the smallest, so that no excess is overstated
    whole = reference_of(population)
    return whole.mean(whole.losses(loss, np.asarray(seen(whole.queries).X) @ best_w))
