"""A certificate: every bound that was found to apply, the strongest first, and one headline that pays for the choice.

Each row is a :class:`~rankwise.guarantees.Bound` that holds alone, with probability 1 - delta if it is probabilistic.
The headline is the smallest of the rows about future queries, each computed again at delta divided by the number of
compared rows, so that it holds with probability 1 - delta as well. The value of a compared row at that smaller delta is
shown beside it.

:func:`certify` turns :class:`Claim` values, bounds that depend on delta, into a :class:`Certificate`;
:func:`holdout_claims` makes the claims of a hold-out. Numbers in, numbers out: no model is known here.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._tables import ShownAsFacts, Table, notebook_html, paragraph
from rankwise.data import checks
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless_chance
from rankwise.guarantees.bounds.uniform import smallest
from rankwise.guarantees.holdout.intervals import Method, mean_interval

LAYOUT = 1

# The term of a row that holds its value as it was compared for the headline.
COMPARED = "compared_value"


@dataclass(frozen=True)
class Claim(ShownAsFacts):
    """A bound that depends on delta, and whether it may be the headline.

    Attributes
    ----------
    make : callable
        delta -> the bound at level delta.
    headline : bool
        True if all constants are known beforehand; all such claims bound the same number.
    """

    make: Callable[[float], Bound]
    headline: bool = False

    @classmethod
    def certain(cls, bound: Bound) -> "Claim":
        """The claim of a bound that does not depend on delta."""
        return cls(lambda delta: bound)

    def given(self, *preconditions: Precondition) -> "Claim":
        """The claim with further preconditions."""

        def make(delta: float) -> Bound:
            bound = self.make(delta)
            return replace(bound, preconditions=(*bound.preconditions, *preconditions))

        return replace(self, make=make)


@dataclass(frozen=True, repr=False, kw_only=True)
class Certificate:
    """Bounds with everything that they were computed from; prints as a table, and is written to and read from JSON.

    Attributes
    ----------
    about : str
        What is certified.
    delta : float
        Probability that a probabilistic row may fail, and that the headline may fail.
    rows : tuple of Bound
        The bounds, the strongest first. Bounds whose preconditions are not met, and vacuous ones, come last.
    headline : Bound or None
        The smallest bound on future queries, at delta divided by the number of compared bounds; None if no claim may be
        the headline.
    notes : tuple of str
        What is not among the rows, and why.

    Examples
    --------
    >>> unseen = Precondition("the ranker did not learn from these queries", True)
    >>> claims = holdout_claims([0.2, 0.4, 0.1, 0.3] * 25, of="mean loss", unseen=unseen)
    >>> print(certify(claims, about="a ranker", delta=0.05))
    a ranker; each row holds alone, where chance comes in with probability 0.95
    mean loss <= 0.294 with probability 0.95 (0.250 on the 100 that were held out): Betting, smallest of 3,
    each at delta = 0.0167
    kind      what       at most  compared  by                   holds    status
    hold-out  mean loss   0.2832    0.2942  Betting              assumed
    hold-out  mean loss   0.3675    0.3976  Empirical Bernstein  assumed
    hold-out  mean loss   0.3724    0.3931  Hoeffding            assumed
    """

    about: str
    delta: float
    rows: tuple[Bound, ...]
    headline: Bound | None = None
    notes: tuple[str, ...] = ()

    def table(self, *, vacuous: bool = True) -> Table:
        """One line per row: kind, what is bounded, the number, by which bound, whether it holds, its status.

        ``compared`` is the value that took part in the choice of the headline; empty where the row did not.

        Parameters
        ----------
        vacuous : bool, default=True
            Whether to list vacuous rows.

        Returns
        -------
        Table
            The table.
        """
        rows = [row for row in self.rows if vacuous or not row.vacuous]
        sided = [f"{row.bounds} (at least)" if row.side == "at least" else row.bounds for row in rows]
        columns: dict[str, Any] = {
            "kind": [row.kind or "" for row in rows],
            "what": sided,
            "at most": [float(row.value) for row in rows],
            "compared": [row.terms.get(COMPARED, "") for row in rows],
            "by": [row.name for row in rows],
            "holds": [_HOLDS[row.applies] for row in rows],
            "status": [_status(row) for row in rows],
        }
        if self.headline is None:
            del columns["compared"]
        return Table(columns)

    def folded(self) -> str:
        """One line in place of the vacuous rows; empty if there are none."""
        names = [row.name for row in self.rows if row.vacuous]
        if not names:
            return ""
        count = f"{len(names)} more bounds are" if len(names) > 1 else "1 more bound is"
        return f"{count} vacuous, as large as what is possible anyway: {'; '.join(names)}"

    def summary(self) -> str:
        """The headline as a sentence."""
        best = self.headline
        if best is None:
            return (
                "no headline: no bound on future queries rests on constants that were all known beforehand; queries "
                "that no ranker learned from give one"
            )
        sign = "<=" if best.side == "at most" else ">="
        empty = ", which is vacuous" if best.vacuous else ""
        held_out = best.kind == "hold-out" and "mean" in best.terms
        own = f" ({best.terms['mean']:.3f} on the {best.terms['n']:,.0f} that were held out)" if held_out else ""
        return (
            f"{best.bounds} {sign} {best.value:.3f}{empty} with probability {1 - self.delta:g}{own}: {best.name}, each "
            f"at delta = {best.terms['delta_each']:.3g}"
        )

    def details(self) -> str:
        """Every row with its formula, its constants and its preconditions."""
        blocks = []
        for row in self.rows:
            blocks.append("\n".join([repr(row), *(f"    {one}" for one in row.preconditions)]))
        return "\n".join(blocks)

    def __repr__(self) -> str:
        lines = [
            f"{self.about}; each row holds alone, where chance comes in with probability {1 - self.delta:g}",
            self.summary(),
        ]
        table = self.table(vacuous=False)
        shown = [*([str(table)] if len(table) else []), *filter(None, [self.folded()])]
        return "\n".join([*lines, *shown, *(f"- {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """The certificate as notebooks show it."""
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in (*filter(None, [self.folded()]), *self.notes))
        said = paragraph(f"{self.about}. {self.summary()}")
        return notebook_html(said, self.table(vacuous=False).html(), f"<ul>{notes}</ul>")

    # ------------------------------------------------------------------------------------------- to JSON and back

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain numbers and strings; "inf", "-inf" and "nan", which JSON lacks, are strings."""
        return {
            "certificate": LAYOUT,
            "about": self.about,
            "delta": self.delta,
            "headline": None if self.headline is None else _written(self.headline),
            "summary": self.summary(),
            "rows": [_written(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = None) -> str:
        """The certificate as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Certificate":
        """Read what :meth:`to_dict` returned; raises RankwiseError for anything else."""
        try:
            if document["certificate"] > LAYOUT:
                raise RankwiseError(f"a certificate of layout {document['certificate']!r} needs a newer rankwise")
            return cls(
                about=str(document["about"]),
                delta=float(document["delta"]),
                rows=tuple(_read(row) for row in document["rows"]),
                headline=None if document["headline"] is None else _read(document["headline"]),
                notes=tuple(map(str, document["notes"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RankwiseError(f"this is no certificate: {type(error).__name__}: {error!s:.80}") from error

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what :meth:`to_json` returned; raises RankwiseError for anything else."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RankwiseError(f"this is no certificate, for it is no JSON: {error!s:.80}") from error
        return cls.from_dict(document)


def certify(
    claims: Iterable[Claim], *, about: str, delta: float = 0.05, unverified: bool = False, notes: Sequence[str] = ()
) -> Certificate:
    """All claims at delta, the strongest first, and the smallest of those that may be the headline.

    Parameters
    ----------
    claims : iterable of Claim
        The bounds; those for the headline bound the same number.
    about : str
        What is certified.
    delta : float, default=0.05
        Probability that each may fail, and that the headline may fail.
    unverified : bool, default=False
        Whether the headline may rest on unchecked constants.
    notes : sequence of str, default=()
        What is not among the claims, and why.

    Returns
    -------
    Certificate
        The certificate.
    """
    refuse_unless_chance("certify", delta=delta)
    every = list(claims)
    offered = [claim for claim in every if claim.headline and (unverified or claim.make(delta).status == "proved here")]
    headline = _best([claim.make for claim in offered], delta, unverified)
    rows = []
    for claim in every:
        row = claim.make(delta)
        if headline is not None and claim in offered:
            row = replace(row, terms={**row.terms, COMPARED: claim.make(delta / len(offered)).value})
        rows.append(row)
    return Certificate(
        about=about, delta=delta, rows=tuple(sorted(rows, key=_weakness)), headline=headline, notes=tuple(notes)
    )


def holdout_claims(
    losses: ArrayLike,
    *,
    of: str,
    unseen: Precondition,
    weight: ArrayLike | None = None,
    group: NDArray[np.int64] | None = None,
    random_state: int | np.random.Generator = 0,
) -> list[Claim]:
    """The upper ends of the hold-out intervals for a mean loss, one per method, all of them for the headline.

    Parameters
    ----------
    losses : array-like, shape (n_queries,)
        1 - measure of every query, between 0 and 1; NaN where the measure is undefined.
    of : str
        What their mean is, in words.
    unseen : Precondition
        Whether it is known that no ranker learned from these queries.
    weight : array-like, shape (n_queries,), default=None
        Weights of the queries; weights that differ raise an error.
    group : ndarray of int64, shape (n_queries,), default=None
        Numbers of :func:`rankwise.data.fingerprints.same_content`: queries of one group repeat each other.
    random_state : int or Generator, default=0
        Seed of the order in which the betting interval takes the queries, the same at every delta.

    Returns
    -------
    list of Claim
        One claim per method.

    Notes
    -----
    Queries that repeat each other are either copies, and then the groups are the independent draws, or draws of a
    distribution that gives the same query more than once, and then all of them are. The data cannot tell which. So if
    there are repetitions, each bound is computed twice, from one query per group (that with the largest loss) and from
    all of them, and the larger one is taken: under either reading it is at least a bound that holds with probability
    1 - delta.
    """
    samples: list[tuple[ArrayLike, ArrayLike | None]] = [(losses, weight)]
    repeated: tuple[Precondition, ...] = ()
    counts: dict[str, float] = {}
    if group is not None:
        distinct = largest_of_groups(losses, group, weight)
        if len(distinct) < len(largest_of_groups(losses, np.arange(len(group)), weight)):
            samples.append((np.asarray(losses, dtype=np.float64)[distinct], None))
            repeated = (Precondition(REPEATED, True),)
            counts = {"distinct": float(len(distinct))}
    random = checks.as_random(random_state)
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else int(random.integers(2**32))

    def claim(method: Method) -> Claim:
        def make(delta: float) -> Bound:
            ends = [
                mean_interval(values, delta, method=method, ends="high", weight=weights, random_state=seed, of=of)
                for values, weights in samples
            ]
            (bound,) = max(ends, key=lambda one: one.high).bounds()
            known = (unseen, *repeated, *bound.preconditions)
            return replace(bound, preconditions=known, terms={**bound.terms, **counts})

        make(0.5)  # raises errors here, and not when the certificate is printed
        return Claim(make, headline=True)

    return [claim(method) for method in get_args(Method)]


def repeats_note(queries: int, distinct: int) -> str:
    """The note of a certificate on a hold-out with repetitions."""
    return (
        f"{queries - distinct:,} of the {queries:,} hold-out queries repeat others: hold-out bounds count the "
        f"{distinct:,} distinct ones, or all of them where that gives the larger bound"
    )


def largest_of_groups(
    losses: ArrayLike, group: NDArray[np.int64], weight: ArrayLike | None = None
) -> NDArray[np.int64]:
    """One query per group: the first of those with the largest loss, of queries that count and have a loss.

    Parameters
    ----------
    losses : array-like, shape (n_queries,)
        Losses; NaN where the measure is undefined.
    group : ndarray of int64, shape (n_queries,)
        The group of every query.
    weight : array-like, shape (n_queries,), default=None
        Weights of the queries; those of weight 0 are left out.

    Returns
    -------
    ndarray of int64
        The chosen queries, in ascending order.

    Examples
    --------
    >>> largest_of_groups([0.1, 0.4, 0.2, float("nan")], np.array([0, 0, 1, 2])).tolist()
    [1, 2]
    """
    values = np.asarray(losses, dtype=np.float64)
    counted = ~np.isnan(values) & (np.ones(len(values), bool) if weight is None else np.asarray(weight) != 0)
    places = np.flatnonzero(counted)
    order = places[np.lexsort((places, -values[places], group[places]))]
    first = np.unique(group[order], return_index=True)[1]
    return np.sort(order[first])


def _best(makers: Sequence[Callable[[float], Bound]], delta: float, unverified: bool) -> Bound | None:
    """The smallest bound at the divided delta; None if there is none, or none applies."""
    if not makers or all(make(delta / len(makers)).applies is False for make in makers):
        return None
    return smallest(*makers, delta=delta, unverified=unverified)


REPEATED = "queries that repeat each other count as one, or each for itself, whichever bound is larger"
_HOLDS = {True: "yes", None: "assumed", False: "not met"}


def _status(bound: Bound) -> str:
    """The last column of the table."""
    doubt = "" if bound.status == "proved here" else bound.status
    return ", ".join(filter(None, (doubt, "vacuous" if bound.vacuous else "")))


def _weakness(bound: Bound) -> tuple[bool, bool, bool, float, float]:
    """The sort key of rows: usable ones first, then by the share of the possible range that they leave."""
    width = bound.ceiling - bound.floor if math.isfinite(bound.floor) else bound.ceiling
    used = bound.value if bound.side == "at most" else bound.ceiling - bound.value
    share = used / width if math.isfinite(width) and width > 0 else math.inf
    return bound.applies is False, bound.vacuous, bound.status != "proved here", share, bound.value


# ----------------------------------------------------------------------------------------------- numbers for JSON

_OF_TEXT = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _back(value: float | str) -> float:
    return _OF_TEXT[value] if isinstance(value, str) else float(value)


def _written(bound: Bound) -> dict[str, Any]:
    numbers = {"value": bound.value, "ceiling": bound.ceiling, "floor": bound.floor}
    return (
        bound.to_dict()
        | {name: _number(value) for name, value in numbers.items()}
        | {"terms": {name: _number(value) for name, value in bound.terms.items()}}
    )


def _read(row: Mapping[str, Any]) -> Bound:
    numbers = {name: _back(row[name]) for name in ("value", "ceiling", "floor")}
    texts = {name: row[name] for name in ("name", "bounds", "statement", "status", "source", "side", "kind")}
    return Bound(
        **texts,
        **numbers,  # type: ignore[arg-type]
        terms={name: _back(value) for name, value in row["terms"].items()},
        preconditions=tuple(Precondition(one["sentence"], one["met"]) for one in row["preconditions"]),
    )
