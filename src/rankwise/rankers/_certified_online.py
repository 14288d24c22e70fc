"""What an online run could lose at most, and what it says about lists to come, as rows of a certificate."""

import math
from dataclasses import replace

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.batch import ONE_PASS, ogd_average
from rankwise.guarantees.certificate import Claim
from rankwise.solvers.ledger import Ledger


def online_claims(ledger: Ledger, queries: Queries, no_repeats: Precondition) -> tuple[list[Claim], list[str]]:
    """(claims, notes) of a run: against the best comparator, for the iterates, and for their average.

    The last two are about independent queries: ``no_repeats`` says whether these can be.
    """
    claims: list[Claim] = []
    notes: list[str] = []
    try:
        ledger.bounds(gamma=1.0)  # refuses a run that is no perceptron's
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
    """The bound as a row: no run loses more than a round each."""
    most = ledger.counted if bound.bounds == "cumulative loss" else float(ledger.rounds)
    ceiling = bound.ceiling if math.isfinite(bound.ceiling) else most
    return replace(bound, kind="online", ceiling=ceiling)


def _average(ledger: Ledger, queries: Queries) -> Bound | None:
    """Averaged gradient descent, against weights for which the run's step is the best: W = eta G R sqrt(n).

    A weight that all queries share multiplies every step: eta is the step times that weight.
    """
    rules, n = ledger.rules, ledger.rounds
    steady = rules.update == "always" and rules.step == "constant" and rules.projection == "none"
    if not (steady and rules.averaging == "uniform" and rules.scale == "none" and rules.loss.convex and n):
        return None
    G = rules.loss.lipschitz_l1(int(queries.sizes.max(initial=2)))
    if not (0 < G < math.inf and ledger.radius > 0) or ledger.lightest != ledger.heaviest:
        return None
    W = rules.eta * ledger.heaviest * G * ledger.radius * math.sqrt(n)
    if not W > 0:
        return None
    bound = ogd_average(G=G, W=W, radius=ledger.radius, n=n)
    once = ledger.tally.length == ledger.rounds
    settled = (replace(one, met=once) if one == ONE_PASS else one for one in bound.preconditions)
    return replace(
        bound,
        name=f"{bound.name}, {rules.loss.name}, assumes radius",
        bounds=f"expected excess of the {rules.loss.name} loss over weights of norm W",
        preconditions=tuple(settled),
    )
