"""The certificate of a fitted ranker, collected from its fit, its training queries and a hold-out.

Which bounds apply follows from the ranker as its fit left it: its parameters at that time, what it declares
(:class:`~rankwise.rankers.certificate.objective.TrainingObjective`, its own bounds, its ledger) and the facts of
losses. A bound that cannot be given is replaced by a note with the reason. :mod:`~rankwise.rankers.certificate.claims`
and :mod:`~rankwise.rankers.certificate.objective` compute the bounds. :func:`holdout_part` compares a hold-out with the
queries that a ranker has seen, and makes the claims and the notes, from the values of a measure by any source of
scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._arrays import Mask, Numbers, Vector
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Precondition, refuse_unless_chance
from rankwise.guarantees.bounds.training import REWEIGHTED, ROUNDS
from rankwise.guarantees.certificate import Certificate, Claim, certificate_of, holdout_claims
from rankwise.losses._base import Loss, upper_bound_of
from rankwise.measures._base import Measure
from rankwise.queries.fingerprints import Seen, TrainingRecord, fingerprints
from rankwise.queries.overlap import NOT_SEEN, overlap, same_content
from rankwise.queries.queries import Queries, as_queries
from rankwise.rankers._inputs import align
from rankwise.rankers._record import digest_of
from rankwise.rankers.certificate.claims import (
    Constants,
    Declared,
    Facts,
    LossOnSample,
    Population,
    ScoredSample,
    claim_with_known_preconditions,
    facts_of,
    online_claims,
    uniform_claims,
    with_known_preconditions,
)
from rankwise.rankers.certificate.objective import (
    TrainingObjective,
    expected_excess,
    gap_bound,
    minimizer_excess,
    smoothing_gap,
    surrogate_on_sample,
)

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker


__all__ = ["Declared", "certify_ranker"]

_NAMED = 5  # parameters or queries that a note names
LEARNED = "these are the training queries of the fit, with their weights"
# the bound of a booster is computed from its own rounds
OWN_ROUNDS: Facts = {one.sentence: replace(one, met=True) for one in (ROUNDS, REWEIGHTED)}
AS_FITTED = Precondition("parameters and weights are those of the fit, which files of an older version do not record")


def certify_ranker(
    ranker: "Ranker",
    train: Queries | None,
    holdout: Queries | None,
    delta: float,
    declared: Declared,
    unverified: bool,
    measure: Measure | None = None,
) -> Certificate:
    """All claims about a fitted ranker; :meth:`rankwise.rankers._base.Ranker.certificate` documents the parameters.

    ``measure`` takes the place of the measure that the ranker was trained for.
    """
    refuse_unless_chance("certificate", delta=delta)
    if train is not None:
        as_queries(train, "certificate(train=...)")
    fit = _Fit.of(ranker)
    ranker = fit.ranker
    measure = ranker._measure() if measure is None else measure
    held, learned = (None if one is None else _sample(ranker, align(ranker, one)) for one in (holdout, train))
    population = Population()
    if measure.at_most_one:
        population |= Population() if held is None else held.population(measure, "pessimistic")
        # training bounds take ties in the worst order
        population |= Population() if learned is None else learned.population(measure, None)
    found = _Collected(fit, delta, measure, population)
    about = f"{ranker.name}, {measure.title}"
    if held is not None:
        used = found.add_holdout(held, learned)
        about += f", {used:,} {'' if used == len(held.queries) else f'of {len(held.queries):,} '}hold-out queries"
    try:
        found.add_account()
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a state that no fit leaves
        found.notes.append(f"the state of the fit cannot be read: {type(error).__name__}: {error!s:.80}")
        fit.intact = False
    if learned is not None:
        about += f", {len(learned.queries):,} training queries"
        found.add_training(learned, declared)
        if held is not None and isinstance(held.queries, Queries):
            # what is declared of every query is refuted by hold-out queries, too
            coef, mapped, _ = ranker._linear_space(held.queries)
            if coef is not None:
                Constants.of(mapped, declared, getattr(ranker, "row_radius", None))
    else:
        found.notes.append("no bounds from the training queries, which were not given")
    return certificate_of(
        _one_number(found.claims, delta, population.number(measure.title)),
        about=about,
        delta=delta,
        unverified=unverified,
        notes=[*fit.notes, *found.notes],
        missing=found.missing,
    )


@dataclass
class _Fit:
    """A ranker as its fit left it.

    Attributes
    ----------
    ranker : Ranker
        The ranker with the parameters of the fit.
    intact : bool or None
        Whether it still holds what the fit learned; None if unknown.
    notes : list of str
        Changes since the fit.
    """

    ranker: "Ranker"
    intact: bool | None
    notes: list[str]

    @classmethod
    def of(cls, ranker: "Ranker") -> "_Fit":
        record = ranker.record_
        if record.digest is None:
            return cls(ranker, None, [])
        notes, changed = [], record.changed_parameters(ranker)
        if changed:
            some = ", ".join(
                f"{name}={now!r:.40} was {then!r:.40}" for name, (then, now) in list(changed.items())[:_NAMED]
            )
            notes.append(f"parameters were changed after the fit; this certificate is about the fit: {some}")
        try:
            intact = digest_of(ranker) == record.digest
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a state that no fit leaves
            intact = False
        if not intact:
            notes.append(
                "the learned state was changed after the fit: bounds that rest on the fit are left out, and it is not "
                "known what the present state was learned from"
            )
        return cls(record.as_fitted(ranker), intact, notes)


@dataclass
class _Collected:
    """Claims about a ranker, and notes on what could not be claimed."""

    fit: _Fit
    delta: float
    measure: Measure
    population: Population
    missing: str = ""
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ranker(self) -> "Ranker":
        return self.fit.ranker

    @property
    def training(self) -> TrainingObjective | None:
        """What the fit minimized, if these are still its weights."""
        if self.fit.intact is False or self.ranker.record_.document_weights:
            return None
        return self.ranker._training_objective()

    # ------------------------------------------------------------------------------------------- hold-out queries

    def add_holdout(self, sample: ScoredSample, learned: ScoredSample | None) -> int:
        """Bounds on the mean loss of the measure on future queries; returns the number of queries that take part.

        A ranker that was learned elsewhere has no fingerprints; the training queries that are given have some.
        """
        measure, queries = self.measure, sample.queries
        if not measure.at_most_one:
            self.missing = f"{measure.title} has no largest value, so no interval is known for its mean: use nDCG"
            self.notes.append(self.missing)
            return len(queries)
        seen, declared = self.ranker.record_.seen, False
        if seen is None and learned is not None:
            seen, declared = Seen().with_training(fingerprints(learned.queries, n_jobs=sample.n_jobs)), True
            self.notes.append(
                f"{self.ranker.name} has no fingerprints of its training queries: those given as train= stand for "
                "them, and whether it learned from others, too, cannot be checked"
            )
        elif seen is None:
            self.notes.append(
                f"{self.ranker.name} has no fingerprints of its training queries: overlap with its training queries "
                "cannot be checked; pass them as train="
            )
        part = holdout_part(
            queries,
            sample.measured(measure, "expected"),
            measure.title,
            self.population,
            seen=seen,
            # of weights that were changed after the fit nobody knows what they were learned from
            about_it=self.fit.intact is not False and not declared,
            n_jobs=sample.n_jobs,
        )
        self.claims += part.claims
        self.notes += part.notes
        self.missing = part.missing
        return part.used

    # ------------------------------------------------------------------------------------------- the fit itself

    def add_account(self) -> None:
        """Bounds that the fit itself provides."""
        if self.fit.intact is False:
            return
        if self.ranker.record_.document_weights:
            self.notes.append(
                "the fit weighted documents: no bound rests on its training objective, because bounds and measures "
                "count documents equally"
            )
            return
        own = [
            with_known_preconditions(replace(bound, kind=bound.kind or "training"), OWN_ROUNDS)
            for bound in self.ranker._own_bounds()
        ]
        training = self.training
        if training is not None and np.isfinite([training.objective, training.gap]).all():
            own.append(gap_bound(training.objective, training.gap))
        self.add([Claim.certain(bound) for bound in own], *self._as_fitted)

    @property
    def _as_fitted(self) -> tuple[Precondition, ...]:
        return (AS_FITTED,) if self.fit.intact is None else ()

    # ------------------------------------------------------------------------------------------- training queries

    def add_training(self, sample: ScoredSample, declared: Declared) -> None:
        """Bounds on the training queries, and from them on future queries."""
        ranker, measure = self.ranker, self.measure
        learned, training = self._training_precondition(sample.queries), self.training
        queries = sample.queries.with_document_weight(None)  # bounds count documents equally
        sample = replace(sample, queries=queries)
        if training is not None:
            rests = (learned, *self._as_fitted)
            own = [surrogate_on_sample(sample, training.loss), smoothing_gap(sample, training.loss, measure)]
            self.add([Claim.certain(bound) for bound in own if bound is not None], *rests)
        ledger = ranker.__dict__.get("ledger_") if self.fit.intact is not False else None
        if ledger is not None and ranker.record_.learned_features:
            self.notes.append(f"no bound from the rounds: {ranker.record_.learned_features}")
        elif ledger is not None:
            claims, notes = online_claims(ledger, queries, sample.no_repeats)
            self.add(claims, learned, *self._as_fitted)
            self.notes += notes
        coef, queries, note = ranker._linear_space(queries)
        self.notes += [note] if note else []
        if coef is None:
            return
        if np.isnan(sample.measured(measure, "pessimistic")).all():
            self.notes.append(f"{measure.title} is undefined for every training query")
            return
        constants = Constants.of(queries, declared, getattr(ranker, "row_radius", None))
        if constants.assumed:
            self.notes.append(
                f"bounds that assume {constants.assumed} take the largest value in these queries for that of all "
                "future queries, and are no headline: declare row_radius= and longest="
            )
        ball_known = declared.first_ball is None and "radius" not in constants.assumed  # it is 1 / radius
        for loss, fixed, among in self._losses(measure):
            own_loss = LossOnSample.of(loss, fixed, sample, measure, self.population, among)
            facts = facts_of(loss, own_loss.labels, first_ball_known=ball_known)
            claims = uniform_claims(own_loss, coef, constants, measure, self.delta)
            self.add([claim_with_known_preconditions(claim, facts) for claim in claims], learned)
            if not claims:
                self.notes.append(f"no uniform bound: {loss!r} has no finite slope on these queries")
        if training is not None:
            excess = expected_excess(training, replace(sample, queries=queries), constants)
            facts = facts_of(training.loss, sample.label_span, first_ball_known=ball_known)
            rests = (sample.no_repeats, learned, *self._as_fitted)
            if excess is not None:
                self.add([Claim.certain(with_known_preconditions(excess, facts))], *rests)
            in_ball = minimizer_excess(training, replace(sample, queries=queries), constants)
            if in_ball is not None:
                self.add([claim_with_known_preconditions(Claim(in_ball), facts)], *rests)

    def _losses(self, measure: Measure) -> list[tuple[Loss, bool | None, int]]:
        """(loss, whether it was fixed, among how many the data chose): the loss that was minimized, and a bound."""
        training = self.training
        found: list[tuple[Loss, bool | None, int]] = []
        if training is not None:
            found.append((training.loss, training.loss_fixed, training.loss_among))
        if not found or found[0][0].upper_bounds != measure:
            bounding = upper_bound_of(measure)
            if bounding is not None:
                found.append((bounding, True, 1))
            else:
                self.notes.append(
                    f"no uniform bound on {measure.title} itself: no loss with known facts upper-bounds it"
                )
        return found

    def _training_precondition(self, queries: Queries) -> Precondition:
        seen = self.ranker.record_.seen
        record = None if seen is None else seen.record
        if record is None:
            return Precondition(LEARNED)
        found = record.compare(TrainingRecord.of(queries, n_jobs=self.ranker.n_jobs))
        if found == "other":
            self.notes.append(f"the training queries given are not those of the fit, which saw {record.count:,}")
        elif found == "with other weights":
            self.notes.append("the training queries given are those of the fit with other weights")
        return Precondition(LEARNED, found in ("same", "in another order"))

    # ------------------------------------------------------------------------------------------- both

    def add(self, claims: Sequence[Claim], *preconditions: Precondition) -> None:
        """Add claims that rest on these preconditions as well."""
        self.claims += [claim.given(*preconditions) for claim in claims]


def _sample(ranker: "Ranker", queries: Queries) -> ScoredSample:
    """The queries with the ranker's scores; they are scored when values are wanted."""
    queries.require_labels()
    return ScoredSample(queries=queries, ranker=ranker)


def _one_number(claims: list[Claim], delta: float, wanted: str) -> list[Claim]:
    """The claims, with the headline restricted to one quantity: the measure if any claim is about it."""
    texts = [claim.make(delta).bounds if claim.headline else "" for claim in claims]
    number = wanted if wanted in texts else next(filter(None, texts), "")
    return [
        replace(claim, headline=claim.headline and text == number) for claim, text in zip(claims, texts, strict=True)
    ]


# --------------------------------------------------------------------------------------------------------- the hold-out


# of scores of another origin
UNSEEN = "these queries were used neither for training nor for model selection by the source of the scores"


@dataclass(frozen=True, kw_only=True)
class HoldoutPart:
    """What a hold-out adds to a certificate.

    Attributes
    ----------
    notes : list of str
        What was seen before, what is left out, and why there may be no bound.
    claims : list of Claim
        The bounds.
    missing : str
        Why there is no bound, and what to do; empty if there is one.
    used : int
        The number of queries that take part.
    """

    notes: list[str]
    claims: list[Claim] = field(default_factory=list)
    missing: str = ""
    used: int = 0


def holdout_part(
    queries: Queries,
    values: Vector,
    title: str,
    population: Population,
    *,
    seen: Seen | None,
    about_it: bool = True,
    n_jobs: int | None = None,
) -> HoldoutPart:
    """Make the claims and notes of a hold-out.

    Parameters
    ----------
    queries : Queries
        The hold-out.
    values : ndarray, shape (n_queries,)
        The measure of every query, ties averaged; NaN where it is undefined or the weight is 0.
    title : str
        The name of the measure.
    population : Population
        Which future queries the bounds are about.
    seen : Seen or None
        The queries that the ranker has seen; None if nothing is known about them.
    about_it : bool, default=True
        Whether ``seen`` is known to hold everything that the scores were learned from.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    HoldoutPart
        Claims about :meth:`Population.number` and, where queries are left out because the measure is undefined, one
        about all queries.

    Notes
    -----
    A query with the content of a query that was seen is that query, or a further draw of it: bounds hold for either
    (:mod:`rankwise.guarantees.holdout.betting`). A changed copy is certainly no further draw, and not every changed
    copy can be recognized. So where there is one, nothing is claimed.
    """
    known = known_draws(queries, seen, about_it=about_it, n_jobs=n_jobs)
    notes = known.notes
    if known.missing:
        return HoldoutPart(notes=notes, missing=known.missing)
    if np.isnan(values).all():
        notes.append(f"{title} is undefined for every query of the hold-out")
        return HoldoutPart(notes=notes, missing=notes[-1])
    number = population.number(title)
    rest: dict[str, Any] = {"unseen": known.unseen, "weight": queries.weight, "group": known.group, "seen": known.same}
    try:
        claims = holdout_claims(1 - values, of=number, **rest)
        if population.empty or population.undefined:
            # 1 - 0 where it is undefined; queries of weight 0 stay left out
            losses = np.where(np.isnan(values) & (queries.query_weight > 0), 1.0, 1 - values)
            every = Population(weightless=population.weightless, tied=population.tied).number(title)
            of = f"{every}, undefined counted as 0"
            claims += [holdout_claims(losses, of=of, headline=False, **rest)[-1]] if claims else []
    except RankwiseError as error:  # weights that differ
        return HoldoutPart(notes=[*notes, f"no hold-out bound: {error}"], missing=str(error))
    missing = (
        "" if claims else "every hold-out query that counts was used in training; pass queries the model has not seen"
    )
    return HoldoutPart(claims=claims, notes=notes, missing=missing, used=int((~np.isnan(values)).sum()))


@dataclass(frozen=True, kw_only=True)
class KnownDraws:
    """What is known of the queries of a hold-out as draws that no ranker has seen.

    Attributes
    ----------
    same : ndarray of bool, shape (n_queries,)
        The query has the content of one that was seen.
    group : ndarray of int64, shape (n_queries,)
        Queries of one number have the same content.
    unseen : Precondition
        Whether it is known that none was seen.
    notes : list of str
        What was found.
    missing : str
        Why nothing can be claimed, and what to do; empty if something can.
    """

    same: Mask
    group: Numbers
    unseen: Precondition
    notes: list[str]
    missing: str = ""


def known_draws(queries: Queries, seen: Seen | None, *, about_it: bool = True, n_jobs: int | None = None) -> KnownDraws:
    """Compare a hold-out with the queries that were seen, and its queries with each other; see :func:`holdout_part`.

    Parameters
    ----------
    queries : Queries
        The hold-out.
    seen : Seen or None
        The queries that were seen; None if nothing is known about them.
    about_it : bool, default=True
        Whether ``seen`` is known to hold everything that the scores were learned from.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    KnownDraws
        What is known.
    """
    notes, unseen = [], Precondition(NOT_SEEN if seen is not None else UNSEEN, None)
    same, missing = np.zeros(len(queries), bool), ""
    if seen is not None:
        found, more = _compare_with_fit(queries, seen, n_jobs)
        notes += more
        same = found.same
        unseen = Precondition(NOT_SEEN, True if about_it and found.certain else None)
        if found.changed:
            missing = (
                "the hold-out has changed copies of queries that were used in training; pass queries that the model "
                "has not seen"
            )
    if not missing and same.all():
        missing = f"all {len(queries):,} hold-out queries were used in training; pass queries the model has not seen"
    if missing:
        nothing = np.arange(len(queries))
        return KnownDraws(same=same, group=nothing, unseen=unseen, notes=notes, missing=missing)
    group = same_content(queries, n_jobs=n_jobs)
    repeated = int((np.bincount(group)[group] > 1).sum())
    if repeated:
        notes.append(
            f"{repeated:,} of the {len(queries):,} hold-out queries have the same content as others, or documents that "
            "only they have: they may be copies, or several draws of a frequent query; bounds hold in either case"
        )
    return KnownDraws(same=same, group=group, unseen=unseen, notes=notes)


@dataclass(frozen=True)
class _Compared:
    """A hold-out beside the queries that were seen: which have their content, and what else is known."""

    same: Mask
    changed: bool
    certain: bool


def _compare_with_fit(queries: Queries, seen: Seen, n_jobs: int | None) -> tuple[_Compared, list[str]]:
    """The comparison with what was seen, and notes on it."""
    notes, total = [], len(queries)
    same, changed, common = (np.zeros(total, bool) for _ in range(3))
    for as_what, part in {"training": seen.training, "validation": seen.validation}.items():
        found = overlap(queries, part, n_jobs=n_jobs)
        same |= found.same
        changed |= found.changed
        common |= found.common
        if found.copies.any():
            notes.append(
                f"{_some(queries, found.copies)} the features and labels of {as_what} queries: they are copies, or "
                "further draws of the same queries; bounds hold in either case, and are tighter without them"
            )
        chance = found.same & found.unclear
        if chance.any():
            notes.append(
                f"{_some(queries, chance)} the features and labels of {as_what} queries, which do not identify a "
                "query: it cannot be told whether they were used; bounds hold in either case"
            )
    if changed.any():
        notes.append(
            f"no hold-out bound: {_some(queries, changed)} documents of queries that were used in training, in changed "
            "copies (other labels, rounded features, documents left out), of which not all can be recognized"
        )
    if (common & ~same).any():
        notes.append(
            f"{int((common & ~same).sum()):,} of the {total:,} hold-out queries share documents with queries that were "
            "used in training, as may happen by chance: whether they are changed copies could not be checked"
        )
    forgotten = seen.training.forgotten + seen.validation.forgotten
    if forgotten:
        notes.append(
            f"the last {forgotten:,} queries of the stream left no fingerprint: whether the hold-out shares queries "
            "with them could not be checked"
        )
    certain = not forgotten and not (common & ~same).any()
    return _Compared(same, bool(changed.any()), certain), notes


def _some(queries: Queries, which: Mask) -> str:
    """The beginning of a note: how many queries, which, and "have"."""
    places, names = np.flatnonzero(which), queries.names()
    some = ", ".join(str(names[place]) for place in places[:_NAMED])
    more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
    verb = "has" if len(places) == 1 else "have"
    return f"{len(places):,} of the {len(queries):,} hold-out queries ({some}{more}) {verb}"
