"""A certificate: every bound that was found to apply, the strongest first, and one headline that pays for the choice.

Each row is a :class:`~rankwise.guarantees.Bound` that holds alone, with probability 1 - delta where chance comes in.
The headline is the smallest of the rows about lists to come, each made anew at delta divided by how many were compared,
so that it holds with probability 1 - delta as well. Numbers in, numbers out: no model is known here.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from rankwise._errors import RankwiseError
from rankwise._tables import Table
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless_chance
from rankwise.guarantees.fitted import smallest
from rankwise.guarantees.holdout import Method, mean_interval

LAYOUT = 1


@dataclass(frozen=True)
class Claim:
    """A bound that depends on delta, and whether the headline may rest on it.

    Attributes
    ----------
    make : the bound at a level delta
    headline : True where all constants are known beforehand; all such claims are about one number
    """

    make: Callable[[float], Bound]
    headline: bool = False

    @classmethod
    def certain(cls, bound: Bound) -> "Claim":
        """A bound that no delta changes."""
        return cls(lambda delta: bound)


@dataclass(frozen=True, repr=False, kw_only=True)
class Certificate:
    """Bounds with everything they were made of; prints as a table, and goes to JSON and back.

    Attributes
    ----------
    about : what is certified, in words
    delta : how often each row that has to do with chance may be wrong, and how often the headline
    rows : the bounds, the strongest first: those whose preconditions are not met, and those that say nothing, last
    headline : the smallest bound on lists to come, at delta divided by how many were compared; None where nothing may
        be the headline
    notes : what is not among the rows, and why

    Examples
    --------
    >>> unseen = Precondition("nobody learned from these lists", True)
    >>> claims = holdout_claims([0.2, 0.4, 0.1, 0.3] * 25, of="mean loss", unseen=unseen)
    >>> print(certify(claims, about="a ranker", delta=0.05))
    a ranker; each row holds alone, where chance comes in with probability 0.95
    mean loss <= 0.294 with probability 0.95 (0.250 on the 100 that were held out): Betting, smallest of 3,
    each at delta = 0.0167
    kind      what       at most  by                   holds    says
    hold-out  mean loss   0.2832  Betting              assumed
    hold-out  mean loss   0.3675  Empirical Bernstein  assumed
    hold-out  mean loss   0.3724  Hoeffding            assumed
    """

    about: str
    delta: float
    rows: tuple[Bound, ...]
    headline: Bound | None = None
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """A line a row: kind, what is bounded, the number, by which bound, whether it holds, what it says."""
        sided = [f"{row.bounds} (at least)" if row.side == "at least" else row.bounds for row in self.rows]
        return Table(
            {
                "kind": [row.kind or "" for row in self.rows],
                "what": sided,
                "at most": [float(row.value) for row in self.rows],
                "by": [row.name for row in self.rows],
                "holds": [_HOLDS[row.applies] for row in self.rows],
                "says": [_says(row) for row in self.rows],
            }
        )

    def summary(self) -> str:
        """The headline as a sentence."""
        best = self.headline
        if best is None:
            return (
                "no headline: no bound on lists to come rests on constants that were all known beforehand; lists that "
                "nobody learned from give one"
            )
        sign = "<=" if best.side == "at most" else ">="
        empty = ", which says nothing" if best.vacuous else ""
        held_out = best.kind == "hold-out" and "mean" in best.terms
        own = f" ({best.terms['mean']:.3f} on the {best.terms['n']:,.0f} that were held out)" if held_out else ""
        return (
            f"{best.bounds} {sign} {best.value:.3f}{empty} with probability {1 - self.delta:g}{own}: {best.name}, each "
            f"at delta = {best.terms['delta_each']:.3g}"
        )

    def details(self) -> str:
        """Every row with its formula, its constants and what it rests on."""
        blocks = []
        for row in self.rows:
            blocks.append("\n".join([repr(row), *(f"    {one}" for one in row.preconditions)]))
        return "\n".join(blocks)

    def __repr__(self) -> str:
        lines = [
            f"{self.about}; each row holds alone, where chance comes in with probability {1 - self.delta:g}",
            self.summary(),
        ]
        shown = [str(self.table())] if self.rows else []
        return "\n".join([*lines, *shown, *(f"- {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p>{escape(self.about)}. {escape(self.summary())}</p>{self.table()._repr_html_()}<ul>{notes}</ul>"

    # ------------------------------------------------------------------------------------------- to JSON and back

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts; what JSON has no number for is a text, "inf", "-inf" or "nan"."""
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
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Certificate":
        """The certificate that :meth:`to_dict` wrote."""
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
        """The certificate that :meth:`to_json` wrote."""
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
    claims : the bounds; those for the headline are about one number
    about : what is certified
    delta : how often each may be wrong, and how often the headline
    unverified : whether the headline may rest on constants that nobody checked
    notes : what is not among the claims, and why
    """
    refuse_unless_chance("certify", delta=delta)
    every = list(claims)
    rows = tuple(sorted((claim.make(delta) for claim in every), key=_weakness))
    offered = [claim.make for claim in every if claim.headline]
    return Certificate(
        about=about, delta=delta, rows=rows, headline=_best(offered, delta, unverified), notes=tuple(notes)
    )


def holdout_claims(
    losses: ArrayLike,
    *,
    of: str,
    unseen: Precondition,
    weight: ArrayLike | None = None,
    random_state: int | np.random.Generator = 0,
) -> list[Claim]:
    """The upper ends of the hold-out intervals for a mean loss, one a method, all of them for the headline.

    Parameters
    ----------
    losses : 1 - measure of every list, between 0 and 1; NaN where the measure says nothing
    of : what their mean is, in words
    unseen : what is known about nobody having learned from these lists
    weight : of every list; weights that differ are refused
    random_state : the order in which the betting interval takes the lists, the same at every delta
    """
    whole = isinstance(random_state, (int, np.integer))
    seed = int(random_state) if whole else int(np.random.default_rng(random_state).integers(2**32))  # type: ignore[arg-type]

    def claim(method: Method) -> Claim:
        def make(delta: float) -> Bound:
            ends = mean_interval(losses, delta, method=method, ends="high", weight=weight, random_state=seed, of=of)
            (bound,) = ends.bounds()
            return replace(bound, preconditions=(unseen, *bound.preconditions))

        make(0.5)  # refuses what no interval is for, here and not when it is printed
        return Claim(make, headline=True)

    return [claim(method) for method in get_args(Method)]


def _best(makers: Sequence[Callable[[float], Bound]], delta: float, unverified: bool) -> Bound | None:
    kept = [make for make in makers if unverified or make(delta).status == "proved here"]
    # whether a bound applies may depend on the data, so all that are kept are paid for; and none may be left
    if not kept or all(make(delta / len(kept)).applies is False for make in kept):
        return None
    return smallest(*kept, delta=delta, unverified=unverified)


_HOLDS = {True: "yes", None: "assumed", False: "not met"}


def _says(bound: Bound) -> str:
    doubt = "" if bound.status == "proved here" else bound.status
    return ", ".join(filter(None, (doubt, "vacuous" if bound.vacuous else "")))


def _weakness(bound: Bound) -> tuple[bool, bool, bool, float, float]:
    """What sorts bounds: usable ones first, then by the share of what is possible anyway that they leave."""
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
