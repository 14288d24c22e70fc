"""The certificate of a fitted ranker: what its own account, its training lists and a hold-out guarantee.

Which bounds apply is read off what a ranker declares (:class:`~rankwise.rankers._minimised.Minimised`, its own bounds,
its ledger) and off the facts of losses. A bound that cannot be given is told in a note, with the reason.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data.fingerprints import Seen, fingerprints
from rankwise.data.queries import Queries
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless_chance
from rankwise.guarantees.certificate import Certificate, Claim, certify, holdout_claims
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.measures.ndcg import DCG
from rankwise.rankers._certified_facts import OWN_ROUNDS, facts_of, settled, settled_claim
from rankwise.rankers._certified_lists import Constants, Declared, ScoredSample
from rankwise.rankers._certified_online import online_claims
from rankwise.rankers._certified_risk import LossOnSample, expected_excess, label_span, uniform_claims
from rankwise.rankers._certified_training import smoothing_gap, surrogate_on_sample
from rankwise.rankers._minimised import gap_bound

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker

__all__ = ["Declared", "certificate_of"]

_NAMED = 5  # queries that a note names
LEARNED = "these are the lists that the ranker learned from"


def certificate_of(
    ranker: "Ranker",
    train: Queries | None,
    holdout: Queries | None,
    delta: float,
    declared: Declared,
    unverified: bool,
    random_state: int | np.random.Generator,
) -> Certificate:
    """Everything that is guaranteed about a fitted ranker; see :meth:`rankwise.rankers._base.Ranker.certificate`."""
    refuse_unless_chance("certificate", delta=delta)
    about, found = f"{ranker.name}, {ranker._measure().title}", _Collected(ranker, delta)
    if holdout is not None:
        about += f", {len(holdout):,} hold-out lists"
        found.add_holdout(ranker._aligned(holdout), random_state)
    found.add_account()
    if train is not None:
        about += f", {len(train):,} training lists"
        found.add_training(ranker._aligned(train), declared)
    else:
        found.notes.append("without the training lists nothing is said about them, nor through them about others")
    return certify(
        _one_number(found.claims, delta, _to_come(ranker._measure())),
        about=about,
        delta=delta,
        unverified=unverified,
        notes=found.notes,
    )


@dataclass
class _Collected:
    """Claims about a ranker, and notes on what could not be claimed."""

    ranker: "Ranker"
    delta: float
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------- unseen lists

    def add_holdout(self, queries: Queries, random_state: int | np.random.Generator) -> None:
        """Intervals for the mean loss of the measure, if nobody has seen these lists."""
        measure, seen = self.ranker._measure(), getattr(self.ranker, "seen_", None)
        if isinstance(measure, DCG):
            self.notes.append(f"{measure.title} has no largest value, so no interval is known for its mean: use nDCG")
            return
        unseen = self._unseen(queries, seen)
        if unseen is None:
            return
        values = 1 - self._sample(queries).measured(measure, "expected")
        if np.isnan(values).all():
            self.notes.append(f"no list of the hold-out says anything about {measure.title}")
            return
        try:
            self.claims += holdout_claims(
                values, of=_to_come(measure), unseen=unseen, weight=queries.weight, random_state=random_state
            )
        except RankwiseError as error:  # weights that differ
            self.notes.append(f"no hold-out bound: {error}")

    def _unseen(self, queries: Queries, seen: Seen | None) -> Precondition | None:
        """What is known about these lists being unseen; None if some were seen, which a note names."""
        sentence = "no list of the hold-out was learned from, or chosen by"
        if seen is None:
            self.notes.append(
                "the ranker's file has no fingerprints: whether the hold-out shares lists with what it learned from "
                "could not be checked"
            )
            return Precondition(sentence)
        words, names = fingerprints(queries), queries.names()
        shared = False
        for part, as_what in ((seen.training, "training"), (seen.validation, "validation")):
            which = np.flatnonzero(part.shared(words))
            if len(which):
                shared = True
                some = ", ".join(str(names[query]) for query in which[:_NAMED])
                more = f" and {len(which) - _NAMED:,} more" if len(which) > _NAMED else ""
                self.notes.append(
                    f"no hold-out bound: {len(which):,} of these lists were seen in fit, as {as_what}: {some}{more}"
                )
        if shared:
            return None
        forgotten = seen.training.forgotten + seen.validation.forgotten
        if forgotten:
            self.notes.append(
                f"the last {forgotten:,} lists of the stream left no fingerprint: whether the hold-out shares lists "
                "with them could not be checked"
            )
        return Precondition(sentence, None if forgotten else True)

    # ------------------------------------------------------------------------------------------- the fit's own account

    def add_account(self) -> None:
        """What a ranker knows about its own fit."""
        for bound in self.ranker._own_bounds():
            self.add(settled(replace(bound, kind=bound.kind or "training"), OWN_ROUNDS))
        minimised = self.ranker._minimised()
        if minimised is not None and np.isfinite([minimised.objective, minimised.gap]).all():
            self.add(gap_bound(minimised.objective, minimised.gap))

    # ------------------------------------------------------------------------------------------- the lists of the fit

    def add_training(self, queries: Queries, declared: Declared) -> None:
        """What the training lists say about themselves, and about lists to come."""
        ranker, measure = self.ranker, self.ranker._measure()
        sample = self._sample(queries)
        learned = self._learned(queries)
        minimised = ranker._minimised()
        if minimised is not None and minimised.loss.bounds is not None:
            self.add(surrogate_on_sample(sample, minimised.loss))
        if minimised is not None:
            self.add(smoothing_gap(sample, minimised.loss, measure))
        ledger = ranker.__dict__.get("ledger_")
        if ledger is not None:
            claims, notes = online_claims(ledger, queries, learned)
            self.claims += claims
            self.notes += notes
        coef = getattr(ranker, "coef_", None)
        if coef is None:
            self.notes.append(f"{ranker.name} is not linear: the bounds for linear weights say nothing about it")
            return
        if np.isnan(sample.measured(measure, "pessimistic")).all():
            self.notes.append(f"no training list says anything about {measure.title}")
            return
        constants = Constants.of(queries, declared, getattr(ranker, "row_radius", None))
        if constants.assumed:
            self.notes.append(
                f"bounds that assume {constants.assumed} take the largest of these lists for that of all lists to "
                "come, and are no headline: declare row_radius= and longest="
            )
        ball_known = declared.first_ball is None and "radius" not in constants.assumed  # it is 1 / radius
        for loss, fixed in self._losses(measure):
            own = LossOnSample.of(loss, fixed, sample, measure)
            facts = facts_of(loss, own.labels, first_ball_known=ball_known)
            claims = uniform_claims(own, coef, constants, measure, self.delta)
            self.claims += [settled_claim(claim, facts) for claim in claims]
            if not claims:
                self.notes.append(f"no uniform bound: {loss!r} has no finite slope on these lists")
        if minimised is not None:
            excess = expected_excess(minimised, queries, constants, sample.count_the_same, learned)
            facts = facts_of(minimised.loss, label_span(queries), first_ball_known=ball_known)
            self.add(excess and settled(excess, facts))

    def _losses(self, measure: Measure) -> list[tuple[Loss, bool | None]]:
        """What was made small, and a loss above 1 - measure if that is another one."""
        from rankwise.rankers.perceptron import slam_for

        minimised = self.ranker._minimised()
        found: list[tuple[Loss, bool | None]] = []
        if minimised is not None:
            found.append((minimised.loss, minimised.loss_fixed))
        if not found or found[0][0].bounds != measure:
            try:
                found.append((slam_for(measure), True))
            except RankwiseError:
                self.notes.append(
                    f"no uniform bound is about {measure.title} itself: no loss with known facts bounds it"
                )
        return found

    def _learned(self, queries: Queries) -> Precondition:
        seen: Seen | None = getattr(self.ranker, "seen_", None)
        met = None if seen is None else seen.training.are(fingerprints(queries))
        if seen is not None and met is False:
            self.notes.append(f"the training lists given are not those of the fit, which saw {seen.training.length:,}")
        return Precondition(LEARNED, met)

    # ------------------------------------------------------------------------------------------- both

    def add(self, bound: Bound | None) -> None:
        """A bound that no delta changes, if there is one."""
        if bound is not None:
            self.claims.append(Claim.certain(bound))

    def _sample(self, queries: Queries) -> ScoredSample:
        queries.labels()
        n_jobs = getattr(self.ranker, "n_jobs", None)
        return ScoredSample(queries=queries, scores=self.ranker.predict(queries), n_jobs=n_jobs)


def _to_come(measure: Measure) -> str:
    return f"1 - {measure.title} on lists to come"


def _one_number(claims: list[Claim], delta: float, wanted: str) -> list[Claim]:
    """The claims, with those for the headline about one number: the measure's, if any of them is about that."""
    texts = [claim.make(delta).bounds if claim.headline else "" for claim in claims]
    number = wanted if wanted in texts else next(filter(None, texts), "")
    return [
        replace(claim, headline=claim.headline and text == number) for claim, text in zip(claims, texts, strict=True)
    ]
