"""A certificate: every bound that was found to apply, the strongest first, and one headline that pays for the choice.

Each row is a :class:`~rankwise.guarantees.Bound` that holds individually, with probability 1 - delta if it is
probabilistic.
The headline is the smallest of the rows about future queries, each computed again at delta divided by the number of
compared rows, so it holds with probability 1 - delta as well. The value of a compared row at that smaller delta is
shown beside it.

:func:`certificate_of` turns :class:`Claim` values, bounds that depend on delta, into a :class:`Certificate`;
:func:`holdout_claims` makes the claims of a hold-out. Numbers in, numbers out: no model is known here.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts, Table, notebook_html, paragraph
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, Scope, refuse_unless_chance, smallest
from rankwise.guarantees.holdout.betting import Readings
from rankwise.guarantees.holdout.intervals import NAMES, SOURCES, STATEMENTS, Method, mean_interval

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
    missing : str
        Why there is no headline, and what to do; empty if there is one.

    Examples
    --------
    >>> unseen = Precondition("the ranker did not learn from these queries", True)
    >>> claims = holdout_claims([0.2, 0.4, 0.1, 0.3] * 25, of="mean loss", unseen=unseen)
    >>> print(certificate_of(claims, about="a ranker", delta=0.05))
    a ranker; each bound holds individually with 95% confidence
    mean loss <= 0.297 with probability 0.95 (0.250 on 100 hold-out queries): Betting, smallest of 3,
    each at delta = 0.0167
    kind      what       at most  compared  by                   holds    status
    hold-out  mean loss   0.2870    0.2973  Betting              assumed
    hold-out  mean loss   0.3675    0.3976  Empirical Bernstein  assumed
    hold-out  mean loss   0.3724    0.3931  Hoeffding            assumed
    """

    about: str
    delta: float
    rows: tuple[Bound, ...]
    headline: Bound | None = None
    notes: tuple[str, ...] = ()
    missing: str = ""

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

    def fold_vacuous(self) -> str:
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
            return f"nothing certified: {self.missing or NO_HOLDOUT}"
        sign = "<=" if best.side == "at most" else ">="
        empty = ", which is vacuous" if best.vacuous else ""
        held_out = best.kind == "hold-out" and "mean" in best.terms
        own = ""
        if held_out:
            n, drawn = best.terms["n"], best.terms.get("drawn", best.terms["n"])
            own = f" ({best.terms['mean']:.3f} on {n:,.0f}{'' if n == drawn else f' of {drawn:,.0f}'} hold-out queries)"
        return (
            f"{best.bounds} {sign} {best.value:.3f}{empty} with probability {1 - self.delta:g}{own}: {best.name}, each "
            f"at delta = {best.terms['delta_each']:.3g}"
        )

    def details(self) -> str:
        """Every row with its formula, its constants, what it is about, and its preconditions."""
        blocks = []
        for row in self.rows:
            about = [] if row.scope is None else str(row.scope).splitlines()
            blocks.append("\n".join([repr(row), *(f"    {one}" for one in (*about, *row.preconditions))]))
        return "\n".join(blocks)

    def __repr__(self) -> str:
        lines = [
            f"{self.about}; each bound holds individually with {100 * (1 - self.delta):g}% confidence",
            self.summary(),
        ]
        table = self.table(vacuous=False)
        shown = [*([str(table)] if len(table) else []), *filter(None, [self.fold_vacuous()])]
        return "\n".join([*lines, *shown, *(f"- {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """The certificate as notebooks show it."""
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in (*filter(None, [self.fold_vacuous()]), *self.notes))
        said = paragraph(f"{self.about}. {self.summary()}")
        return notebook_html(said, self.table(vacuous=False).html(), f"<ul>{notes}</ul>")

    # ------------------------------------------------------------------------------------------- to JSON and back

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain numbers and strings; "inf", "-inf" and "nan", which JSON lacks, are strings."""
        return {
            "certificate": LAYOUT,
            "about": self.about,
            "delta": self.delta,
            "headline": None if self.headline is None else bound_as_json(self.headline),
            "summary": self.summary(),
            "rows": [bound_as_json(row) for row in self.rows],
            "notes": list(self.notes),
            "missing": self.missing,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The certificate as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Certificate":
        """Read what :meth:`to_dict` returned; raises RankwiseError for anything else."""
        try:
            if document["certificate"] > LAYOUT:
                raise RankwiseError(
                    f"certificate layout {document['certificate']!r} requires a newer version of rankwise"
                )
            return cls(
                about=str(document["about"]),
                delta=float(document["delta"]),
                rows=tuple(bound_of_json(row) for row in document["rows"]),
                headline=None if document["headline"] is None else bound_of_json(document["headline"]),
                notes=tuple(map(str, document["notes"])),
                missing=str(document.get("missing", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RankwiseError(f"this is not a certificate: {type(error).__name__}: {error!s:.80}") from error

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what :meth:`to_json` returned; raises RankwiseError for anything else."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RankwiseError(f"this is not a certificate, because it is not JSON: {error!s:.80}") from error
        return cls.from_dict(document)


def certificate_of(
    claims: Iterable[Claim],
    *,
    about: str,
    delta: float = 0.05,
    unverified: bool = False,
    notes: Sequence[str] = (),
    missing: str = "",
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
    missing : str, default=""
        Why there is no headline, if there is none.

    Returns
    -------
    Certificate
        The certificate.
    """
    refuse_unless_chance("certificate_of", delta=delta)
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
        about=about,
        delta=delta,
        rows=tuple(sorted(rows, key=_weakness)),
        headline=headline,
        notes=tuple(notes),
        missing=missing if headline is None else "",
    )


def holdout_claims(
    losses: ArrayLike,
    *,
    of: str,
    unseen: Precondition,
    weight: ArrayLike | None = None,
    group: NDArray[np.int64] | None = None,
    seen: NDArray[np.bool_] | None = None,
    headline: bool = True,
) -> list[Claim]:
    """The upper ends of the hold-out intervals for a mean loss, one per method.

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
        Numbers of :func:`rankwise.queries.overlap.same_content`: queries of one group have the same content.
    seen : ndarray of bool, shape (n_queries,), default=None
        Whether the content of each query was seen in training.
    headline : bool, default=True
        Whether the claims may be the headline.

    Returns
    -------
    list of Claim
        One claim per method; none if the content of all queries was seen in training.

    Notes
    -----
    If queries have the same content as others, or as training queries, bounds are the largest over all readings of the
    data, see :mod:`rankwise.guarantees.holdout.betting`. The empirical Bernstein bound does not grow with every loss,
    so it is not given then; it still takes its share of delta, because data decide whether it is given.
    """
    known: dict[str, Any] = {"ends": "high", "weight": weight, "of": of}
    mean_interval(losses, 0.5, method="hoeffding", **known)  # raises errors here, not when the certificate is printed
    counts = np.ones(len(np.asarray(losses)), bool) if weight is None else np.asarray(weight) != 0
    # rounding may leave a loss slightly outside [0, 1]; mean_interval allows that, and clips alike
    values = np.clip(np.asarray(losses, dtype=np.float64), 0.0, 1.0)
    readings = Readings.of(np.where(counts, values, math.nan), group, seen)
    if not len(readings.sure):
        return []

    def claim(method: Method) -> Claim:
        def make(delta: float) -> Bound:
            if not len(readings.optional):
                (bound,) = mean_interval(losses, delta, method=method, **known).bounds()
                return replace(
                    bound, terms={**bound.terms, "drawn": len(counts)}, preconditions=(unseen, *bound.preconditions)
                )
            (bound,) = mean_interval(losses, delta, method="hoeffding", **known).bounds()
            kept = {name: bound.terms[name] for name in ("mean", "n", "delta")}
            ends = {"hoeffding": readings.hoeffding, "betting": readings.betting}
            return replace(
                bound,
                name=NAMES[method],
                source=SOURCES[method],
                value=ends[method](delta) if method in ends else bound.ceiling,
                statement=f"largest over all readings: {STATEMENTS[method]}",
                terms={**kept, "drawn": len(counts), "sure": len(readings.sure), "optional": len(readings.optional)},
                preconditions=(unseen, Precondition(READINGS, method in ends), *bound.preconditions),
            )

        return Claim(cache(make), headline=headline)  # a certificate asks for the same levels several times

    return [claim(method) for method in get_args(Method)]


def _best(makers: Sequence[Callable[[float], Bound]], delta: float, unverified: bool) -> Bound | None:
    """The smallest bound at the divided delta; None if there is none, or none applies."""
    if not makers or all(make(delta / len(makers)).applies is False for make in makers):
        return None
    return smallest(*makers, delta=delta, unverified=unverified)


READINGS = "the bound is the largest over all readings of which queries with equal content are independent draws"
NO_HOLDOUT = "pass judged queries that were not used in training as holdout="
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


def as_json_number(value: float) -> float | str:
    """The number, or the word for one that JSON lacks: "inf", "-inf" or "nan"."""
    return float(value) if math.isfinite(value) else str(float(value))


def of_json_number(value: float | str) -> float:
    """The number that :func:`as_json_number` wrote."""
    return _OF_TEXT[value] if isinstance(value, str) else float(value)


def bound_as_json(bound: Bound) -> dict[str, Any]:
    """The bound as JSON values, from which :func:`bound_of_json` makes it again."""
    numbers = {"value": bound.value, "ceiling": bound.ceiling, "floor": bound.floor}
    return (
        bound.to_dict()
        | {name: as_json_number(value) for name, value in numbers.items()}
        | {"terms": {name: as_json_number(value) for name, value in bound.terms.items()}}
    )


def bound_of_json(row: Mapping[str, Any]) -> Bound:
    """The bound that :func:`bound_as_json` wrote."""
    numbers = {name: of_json_number(row[name]) for name in ("value", "ceiling", "floor")}
    texts = {name: row[name] for name in ("name", "bounds", "statement", "status", "source", "side", "kind")}
    return Bound(
        **texts,
        **numbers,  # type: ignore[arg-type]
        terms={name: of_json_number(value) for name, value in row["terms"].items()},
        preconditions=tuple(Precondition(one["sentence"], one["met"]) for one in row["preconditions"]),
        scope=None if row.get("scope") is None else Scope(**{key: str(text) for key, text in row["scope"].items()}),
    )
