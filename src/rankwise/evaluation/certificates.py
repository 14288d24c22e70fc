"""The certificate of scores from any source: a hold-out alone, whatever made the scores."""

from rankwise.data.fingerprints import same_content
from rankwise.data.queries import Queries
from rankwise.evaluation.evaluate import Evaluation
from rankwise.guarantees._bound import Precondition
from rankwise.guarantees.certificate import Certificate, certify, holdout_claims, repeats_note

DELTA = 0.05
UNSEEN = "these queries were used neither for training nor for model selection by the source of the scores"


def holdout_certificate(
    name: str, result: Evaluation, queries: Queries, unseen: Precondition, delta: float = DELTA, random_state: int = 0
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
    unseen : Precondition
        That the scores do not depend on the labels of the hold-out, and whether this is known.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    random_state : int, default=0
        Seed of the order in which betting takes the queries.

    Returns
    -------
    Certificate
        The hold-out bounds of the mean of 1 - measure on future queries.
    """
    title, group = result.titles[0], same_content(queries)
    claims = holdout_claims(
        1 - result[title],
        of=f"1 - {title} on future queries",
        unseen=unseen,
        weight=result.weight,
        group=group,
        random_state=random_state,
    )
    distinct = len(set(group.tolist()))
    notes = [repeats_note(len(group), distinct)] if distinct < len(group) else []
    return certify(claims, about=f"{name}, {title}, {len(group):,} hold-out queries", delta=delta, notes=notes)
