"""The hold-out bounds of a certificate: which future queries they are about, and what was seen before.

:class:`Population` names the future queries that a mean is about. :func:`holdout_part` compares a hold-out with the
queries that a ranker has seen, and makes the claims and the notes, from the values of a measure by any source of
scores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Precondition
from rankwise.guarantees.certificate import Claim, holdout_claims
from rankwise.queries.fingerprints import Seen
from rankwise.queries.overlap import NOT_SEEN, overlap, same_content
from rankwise.queries.queries import Queries

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_NAMED = 5  # queries that a note names
# of scores of another origin
UNSEEN = "these queries were used neither for training nor for model selection by the source of the scores"


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


@dataclass(frozen=True, kw_only=True)
class HoldoutPart:
    """What a hold-out adds to a certificate.

    Attributes
    ----------
    claims : list of Claim
        The bounds.
    notes : list of str
        What was seen before, what is left out, and why there may be no bound.
    missing : str
        Why there is no bound, and what to do; empty if there is one.
    used : int
        The number of queries that take part.
    """

    claims: list[Claim]
    notes: list[str]
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
    (:mod:`rankwise.guarantees.holdout.readings`). A changed copy is certainly no further draw, and not every changed
    copy can be recognized. So where there is one, nothing is claimed.
    """
    notes, unseen = [], Precondition(NOT_SEEN if seen is not None else UNSEEN, None)
    same = np.zeros(len(queries), bool)
    if seen is not None:
        found, more = _compared(queries, seen, n_jobs)
        notes += more
        if found.changed:
            return HoldoutPart(
                claims=[],
                notes=notes,
                missing="the hold-out has changed copies of queries that were used in training; pass queries that the "
                "model has not seen",
            )
        same = found.same
        unseen = Precondition(NOT_SEEN, True if about_it and found.certain else None)
    if same.all():
        missing = f"all {len(queries):,} hold-out queries were used in training; pass queries the model has not seen"
        return HoldoutPart(claims=[], notes=notes, missing=missing)
    if np.isnan(values).all():
        notes.append(f"{title} is undefined for every query of the hold-out")
        return HoldoutPart(claims=[], notes=notes, missing=notes[-1])
    group = same_content(queries, n_jobs=n_jobs)
    repeated = int((np.bincount(group)[group] > 1).sum())
    if repeated:
        notes.append(
            f"{repeated:,} of the {len(queries):,} hold-out queries have the same content as others, or documents that "
            "only they have: they may be copies, or several draws of a frequent query; bounds hold in either case"
        )
    number = population.number(title)
    rest: dict[str, Any] = {"unseen": unseen, "weight": queries.weight, "group": group, "seen": same}
    try:
        claims = holdout_claims(1 - values, of=number, **rest)
        if population.empty or population.undefined:
            # 1 - 0 where it is undefined; queries of weight 0 stay left out
            losses = np.where(np.isnan(values) & (queries.query_weight > 0), 1.0, 1 - values)
            every = Population(weightless=population.weightless, tied=population.tied).number(title)
            of = f"{every}, undefined counted as 0"
            claims += [holdout_claims(losses, of=of, headline=False, **rest)[-1]] if claims else []
    except RankwiseError as error:  # weights that differ
        return HoldoutPart(claims=[], notes=[*notes, f"no hold-out bound: {error}"], missing=str(error))
    missing = (
        "" if claims else "every hold-out query that counts was used in training; pass queries the model has not seen"
    )
    return HoldoutPart(claims=claims, notes=notes, missing=missing, used=int((~np.isnan(values)).sum()))


@dataclass(frozen=True)
class _Compared:
    """A hold-out beside the queries that were seen: which have their content, and what else is known."""

    same: Mask
    changed: bool
    certain: bool


def _compared(queries: Queries, seen: Seen, n_jobs: int | None) -> tuple[_Compared, list[str]]:
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
