"""Certificates of anything that scores documents: :func:`certify` in one call, for models and for scores.

A ranker of this package is certified by its own bounds as well. Scores of another source are certified by a hold-out
alone, whatever made them.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from rankwise.errors import DataError
from rankwise.evaluation.evaluation import Evaluation, evaluate, open_judged_and_scores
from rankwise.guarantees._bound import refuse_unless_chance
from rankwise.guarantees.certificate import Certificate, certificate_of
from rankwise.guarantees.cutoff import Cutoff
from rankwise.measures._base import Measure, parse
from rankwise.queries.fingerprints import Seen, fingerprints
from rankwise.queries.queries import Queries, as_queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._inputs import apply_builder
from rankwise.rankers._record import digest_of_scores
from rankwise.rankers.certificate.claims import Declared, population_of
from rankwise.rankers.certificate.collect import certify_ranker, holdout_part

DELTA = 0.05


def certify(
    judged: Any,
    scores: Any,
    measure: str | Measure = "nDCG@10",
    *,
    train: Queries | None = None,
    delta: float = DELTA,
    cutoff: Cutoff | None = None,
) -> Certificate:
    """Certify a model, or scores of any source, by judged queries that it has not seen.

    Parameters
    ----------
    judged : Queries, Parts, str or path-like
        Judged queries, or the file of some.
    scores : ranker, array-like of shape (n_documents,), str or path-like
        A fitted ranker, any object with ``predict``, one score per document, or the file of some.
    measure : str or Measure, default="nDCG@10"
        The measure. A ranker of this package that was trained for it adds the bounds of its training.
    train : Queries, default=None
        The queries that the scores were learned from. Judged queries with the same content are recognized. A ranker
        of this package remembers them; for it, they add the bounds that rest on training queries.
    delta : float, default=0.05
        The probability with which each bound may fail, and the headline, which is the smallest of several.
    cutoff : Cutoff, default=None
        Certify the lists as this cut-off cuts them, by the hold-out alone. The queries that calibrated it count as
        seen; they may certify the lists that are not cut, both together at the sum of their deltas.

    Returns
    -------
    Certificate
        A table of bounds on the mean of 1 - measure over future queries, the strongest first, and a headline.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(300, random_state=0)
    >>> model = rw.RidgeRanker().fit(lists[:150])
    >>> print(rw.certify(lists[150:], model, "nDCG@10").summary())
    1 - nDCG@10 on future queries with a relevant document <= 0.252 with probability 0.95 (0.206 on 136 of 150 hold-out
    queries): Betting, smallest of 3, each at delta = 0.0167
    """
    refuse_unless_chance("certify", delta=delta)
    wanted = parse(measure)
    queries, values = open_judged_and_scores(judged, scores)
    if train is not None and not isinstance(train, Queries):
        raise DataError(f"train must be Queries, got {type(train).__name__}")
    if isinstance(values, Ranker):
        values._check_fitted()
        if cutoff is None:
            return certify_ranker(values, train, queries, delta, Declared(), False, wanted)
        queries = apply_builder(values, queries, grouped=True, judged=True)
    name = type(values).__name__ if hasattr(values, "predict") else "scores"
    queries = as_queries(queries, "certify with scores")
    seen = None if train is None else Seen().with_training(fingerprints(train))
    if cutoff is not None:
        return _certify_cut_lists(name, queries, values, wanted, cutoff, seen, delta)
    if hasattr(values, "predict"):
        values = values.predict(queries)
    result, worst = (evaluate(queries, values, [wanted], ties=ties) for ties in ("expected", "pessimistic"))
    return holdout_certificate(name, result, queries, delta, worst=worst, seen=seen)


def _certify_cut_lists(
    name: str, queries: Queries, model: Any, measure: Measure, cutoff: Cutoff, seen: Seen | None, delta: float
) -> Certificate:
    """Certify lists that are cut: what is not kept counts as not retrieved, and what calibrated the cut-off as seen."""
    known = seen or Seen()
    digest, n_jobs = None, None
    if isinstance(model, Ranker):
        digest, n_jobs = digest_of_scores(model), model.n_jobs
        known |= model.record_.seen or Seen()
    cutoff.refuse_other_model(digest, name)
    scores = np.asarray(model.predict(queries) if hasattr(model, "predict") else model, dtype=np.float64)
    cut = np.where(cutoff.kept(queries, scores), scores, -np.inf)
    known |= Seen().with_validation(cutoff.calibrated_on.marks)
    result, worst = (
        evaluate(queries, cut, [measure], ties=ties, n_jobs=n_jobs) for ties in ("expected", "pessimistic")
    )
    found = holdout_certificate(f"{name}, {cutoff.rule}", result, queries, delta, worst=worst, seen=known)
    used = "used in training or calibrated the cut-off"
    return replace(found, missing=found.missing.replace("used in training", used))


def holdout_certificate(
    name: str,
    result: Evaluation,
    queries: Queries,
    delta: float = DELTA,
    *,
    worst: Evaluation | None = None,
    seen: Seen | None = None,
    learned_here: bool = False,
) -> Certificate:
    """Certify the first measure of scores of any origin by the hold-out alone.

    Parameters
    ----------
    name : str
        What the certificate calls the scores.
    result : Evaluation
        The scores, measured on the hold-out.
    queries : Queries
        The hold-out.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    worst : Evaluation, default=None
        The same scores with ties in the worst order, to say whether ties matter.
    seen : Seen, default=None
        The queries that the scores were learned from, and selected on; None if they are not known.
    learned_here : bool, default=False
        Whether ``seen`` is known to be everything that the scores were learned from.

    Returns
    -------
    Certificate
        The hold-out bounds of the mean of 1 - measure on future queries.
    """
    title, values = result.titles[0], result.values[0]
    population = population_of(queries, values, None if worst is None else worst.values[0])
    part = holdout_part(queries, values, title, population, seen=seen, about_it=learned_here)
    used = f"{part.used:,} {'' if part.used == len(queries) else f'of {len(queries):,} '}hold-out queries"
    return certificate_of(
        part.claims, about=f"{name}, {title}, {used}", delta=delta, notes=part.notes, missing=part.missing
    )
