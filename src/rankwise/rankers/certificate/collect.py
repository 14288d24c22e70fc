"""The certificate of a fitted ranker, collected from its fit, its training queries and a hold-out.

Which bounds apply follows from the ranker as its fit left it: its parameters at that time, what it declares
(:class:`~rankwise.rankers.certificate.objective.TrainingObjective`, its own bounds, its ledger) and the facts of
losses. A bound that cannot be given is replaced by a note with the reason. :mod:`~rankwise.rankers.certificate.claims`
and :mod:`~rankwise.rankers.certificate.objective` compute the bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.fingerprints import NOT_SEEN, Seen, TrainingRecord, fingerprints, is_among, seen_before
from rankwise.data.parts.parts import Parts
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.queries import Queries
from rankwise.guarantees._bound import Precondition, refuse_unless_chance
from rankwise.guarantees.bounds.training import REWEIGHTED, ROUNDS
from rankwise.guarantees.certificate import Certificate, Claim, certify, holdout_claims, repeats_note
from rankwise.losses._base import Loss, upper_bound_of
from rankwise.measures._base import Measure
from rankwise.rankers._fit_frame import digest_of
from rankwise.rankers._passes import measured
from rankwise.rankers.certificate.claims import (
    Constants,
    Declared,
    Facts,
    LossOnSample,
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
    smoothing_gap,
    surrogate_on_sample,
)

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker

__all__ = ["Declared", "certificate_of"]

_NAMED = 5  # queries or parameters that a note names
LEARNED = "these are the training queries of the fit, with their weights"
# the bound of a booster is computed from its own rounds
OWN_ROUNDS: Facts = {one.sentence: replace(one, met=True) for one in (ROUNDS, REWEIGHTED)}
AS_FITTED = Precondition("parameters and weights are those of the fit, which files of an older version do not record")


def certificate_of(
    ranker: "Ranker",
    train: Queries | None,
    holdout: Queries | None,
    delta: float,
    declared: Declared,
    unverified: bool,
    random_state: int | np.random.Generator,
) -> Certificate:
    """All claims about a fitted ranker; :meth:`rankwise.rankers._base.Ranker.certificate` documents the parameters."""
    refuse_unless_chance("certificate", delta=delta)
    if isinstance(train, Parts):
        raise DataError(
            "bounds from training queries need them in memory: give train=parts.to_queries(), or hold-out queries "
            "alone, which may be Parts"
        )
    fit = _Fit.of(ranker)
    ranker = fit.ranker
    about, found = f"{ranker.name}, {ranker._measure().title}", _Collected(fit, delta)
    if holdout is not None:
        used = found.add_holdout(ranker._aligned(holdout), random_state)
        about += f", {used:,} {'' if used == len(holdout) else f'of {len(holdout):,} '}hold-out queries"
    try:
        found.add_account()
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a state that no fit leaves
        found.notes.append(f"the state of the fit cannot be read: {type(error).__name__}: {error!s:.80}")
        fit.intact = False
    if train is not None:
        about += f", {len(train):,} training queries"
        found.add_training(ranker._aligned(train), declared)
        if isinstance(holdout, Queries):  # what is declared of every query is refuted by hold-out queries, too
            coef, seen, _ = ranker._linear_space(ranker._aligned(holdout))
            if coef is not None:
                Constants.of(seen, declared, getattr(ranker, "row_radius", None))
    else:
        found.notes.append("no bounds from the training queries, which were not given")
    return certify(
        _one_number(found.claims, delta, _to_come(ranker._measure())),
        about=about,
        delta=delta,
        unverified=unverified,
        notes=[*fit.notes, *found.notes],
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
        frozen = getattr(ranker, "frozen_", None)
        if frozen is None:
            return cls(ranker, None, [])
        notes, changed = [], frozen.changed(ranker)
        if changed:
            some = ", ".join(
                f"{name}={now!r:.40} was {then!r:.40}" for name, (then, now) in list(changed.items())[:_NAMED]
            )
            notes.append(f"parameters were changed after the fit; this certificate is about the fit: {some}")
        try:
            intact = digest_of(ranker) == frozen.digest
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a state that no fit leaves
            intact = False
        if not intact:
            notes.append("the learned state was changed after the fit: bounds that rest on the fit are left out")
        return cls(frozen.restored(ranker), intact, notes)


@dataclass
class _Collected:
    """Claims about a ranker, and notes on what could not be claimed."""

    fit: _Fit
    delta: float
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ranker(self) -> "Ranker":
        return self.fit.ranker

    @property
    def training(self) -> TrainingObjective | None:
        """What the fit minimised, if these are still its weights."""
        if self.fit.intact is False or getattr(self.ranker, "document_weights_", False):
            return None
        return self.ranker._training_objective()

    # ------------------------------------------------------------------------------------------- hold-out queries

    def add_holdout(self, queries: Queries, random_state: int | np.random.Generator) -> int:
        """Intervals for the mean loss of the measure on the queries that the ranker has not seen; their number."""
        measure = self.ranker._measure()
        if not measure.at_most_one:
            self.notes.append(f"{measure.title} has no largest value, so no interval is known for its mean: use nDCG")
            return len(queries)
        unseen, queries = self._unseen(queries, getattr(self.ranker, "seen_", None))
        if not len(queries):
            return 0
        sample = self._sample(queries)
        values = 1 - sample.measured(measure, "expected")
        if np.isnan(values).all():
            self.notes.append(f"{measure.title} is undefined for every query of the hold-out")
            return len(queries)
        distinct = len(set(sample.group.tolist()))
        if distinct < len(queries):
            self.notes.append(repeats_note(len(queries), distinct))
        try:
            self.claims += holdout_claims(
                values,
                of=_to_come(measure),
                unseen=unseen,
                weight=queries.weight,
                group=sample.group,
                random_state=random_state,
            )
        except RankwiseError as error:  # weights that differ
            self.notes.append(f"no hold-out bound: {error}")
        return len(queries)

    def _unseen(self, queries: Queries, seen: Seen | None) -> tuple[Precondition, Queries]:
        """The queries that ``fit`` did not see, and whether that is known; notes name the others.

        What is left out is decided by the training queries and the content of each query, never by a score. Given the
        training queries, the rest are therefore still independent draws: of queries that ``fit`` did not see. A changed
        copy is recognised most times and not always, so where there is one, nothing is known about the rest.
        """
        if seen is None:
            self.notes.append(
                "the ranker's file has no fingerprints: whether the hold-out shares queries with the training queries "
                "could not be checked"
            )
            return Precondition(NOT_SEEN), queries
        n_jobs = getattr(self.ranker, "n_jobs", None)
        hashes = fingerprints(queries, n_jobs=n_jobs)["hash"]
        left, changed = np.ones(len(queries), bool), np.zeros(len(queries), bool)
        found = {}
        for as_what, part in {"training": seen.training, "validation": seen.validation}.items():
            known, copies = seen_before(queries, part, n_jobs=n_jobs), is_among(hashes, part.marks["hash"])
            changed |= known & ~copies
            # queries of equal documents coincide by chance, but in a file that holds others of these they are copies
            found[as_what] = known | copies if known.any() else known
            left &= ~found[as_what]
        if changed.any():
            left[:] = False
        for as_what, which in found.items():
            if which.any():
                self.notes.append(_seen_note(queries, np.flatnonzero(which), as_what, int(left.sum())))
        if changed.any():
            self.notes.append(
                f"{int(changed.sum()):,} of them are changed copies (other labels, rounded features, documents left "
                "out), of which not all can be recognised: no query of this hold-out counts as unseen"
            )
        forgotten = seen.training.forgotten + seen.validation.forgotten
        if forgotten:
            self.notes.append(
                f"the last {forgotten:,} queries of the stream left no fingerprint: whether the hold-out shares "
                "queries with them could not be checked"
            )
        return Precondition(NOT_SEEN, None if forgotten else True), queries if left.all() else queries[left]

    # ------------------------------------------------------------------------------------------- the fit itself

    def add_account(self) -> None:
        """Bounds that the fit itself provides."""
        if self.fit.intact is False:
            return
        if getattr(self.ranker, "document_weights_", False):
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

    def add_training(self, queries: Queries, declared: Declared) -> None:
        """Bounds on the training queries, and from them on future queries."""
        ranker, measure = self.ranker, self.ranker._measure()
        learned, training = self._learned(queries), self.training
        queries = queries.with_document_weight(None)  # bounds count documents equally
        sample = self._sample(queries)
        if training is not None:
            rests = (learned, *self._as_fitted)
            own = [surrogate_on_sample(sample, training.loss), smoothing_gap(sample, training.loss, measure)]
            self.add([Claim.certain(bound) for bound in own if bound is not None], *rests)
        ledger = ranker.__dict__.get("ledger_") if self.fit.intact is not False else None
        if ledger is not None:
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
        for loss, fixed in self._losses(measure):
            own_loss = LossOnSample.of(loss, fixed, sample, measure)
            facts = facts_of(loss, own_loss.labels, first_ball_known=ball_known)
            claims = uniform_claims(own_loss, coef, constants, measure, self.delta)
            self.add([claim_with_known_preconditions(claim, facts) for claim in claims], learned)
            if not claims:
                self.notes.append(f"no uniform bound: {loss!r} has no finite slope on these queries")
        if training is not None:
            excess = expected_excess(training, replace(sample, queries=queries), constants)
            facts = facts_of(training.loss, sample.label_span, first_ball_known=ball_known)
            if excess is not None:
                rests = (sample.no_repeats, learned, *self._as_fitted)
                self.add([Claim.certain(with_known_preconditions(excess, facts))], *rests)

    def _losses(self, measure: Measure) -> list[tuple[Loss, bool | None]]:
        """The loss that was minimised, and one that upper-bounds 1 - measure if that is another one."""
        training = self.training
        found: list[tuple[Loss, bool | None]] = []
        if training is not None:
            found.append((training.loss, training.loss_fixed))
        if not found or found[0][0].upper_bounds != measure:
            bounding = upper_bound_of(measure)
            if bounding is not None:
                found.append((bounding, True))
            else:
                self.notes.append(
                    f"no uniform bound on {measure.title} itself: no loss with known facts upper-bounds it"
                )
        return found

    def _learned(self, queries: Queries) -> Precondition:
        seen: Seen | None = getattr(self.ranker, "seen_", None)
        record = None if seen is None else seen.record
        if record is None:
            return Precondition(LEARNED)
        found = record.compared(TrainingRecord.of(queries, n_jobs=getattr(self.ranker, "n_jobs", None)))
        if found == "other":
            self.notes.append(f"the training queries given are not those of the fit, which saw {record.count:,}")
        elif found == "with other weights":
            self.notes.append("the training queries given are those of the fit with other weights")
        return Precondition(LEARNED, found in ("same", "in another order"))

    # ------------------------------------------------------------------------------------------- both

    def add(self, claims: Sequence[Claim], *preconditions: Precondition) -> None:
        """Add claims that rest on these preconditions as well."""
        self.claims += [claim.given(*preconditions) for claim in claims]

    def _sample(self, queries: Queries) -> ScoredSample:
        queries.labels()
        n_jobs = getattr(self.ranker, "n_jobs", None)
        if isinstance(queries, ChunkedQueries):
            values = partial(measured, self.ranker, queries)
            return ScoredSample(queries=queries, scores=np.empty(0), n_jobs=n_jobs, values_in_parts=values)
        return ScoredSample(queries=queries, scores=self.ranker.predict(queries), n_jobs=n_jobs)


def _seen_note(queries: Queries, which: NDArray[np.int64], as_what: str, left: int) -> str:
    """The note on queries of the hold-out that were seen, of which ``left`` others are used."""
    names = queries.names()
    some = ", ".join(str(names[query]) for query in which[:_NAMED])
    more = f" and {len(which) - _NAMED:,} more" if len(which) > _NAMED else ""
    seen = f"{len(which):,} of these queries were seen in fit, as {as_what}: {some}{more}"
    if not left:
        return f"no hold-out bound: {seen}"
    return f"{seen}; they are left out, and hold-out bounds use the {left:,} others"


def _to_come(measure: Measure) -> str:
    return f"1 - {measure.title} on future queries"


def _one_number(claims: list[Claim], delta: float, wanted: str) -> list[Claim]:
    """The claims, with the headline restricted to one quantity: the measure if any claim is about it."""
    texts = [claim.make(delta).bounds if claim.headline else "" for claim in claims]
    number = wanted if wanted in texts else next(filter(None, texts), "")
    return [
        replace(claim, headline=claim.headline and text == number) for claim, text in zip(claims, texts, strict=True)
    ]
