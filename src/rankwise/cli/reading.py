"""Options that every command which reads judged lists shares."""

from enum import StrEnum
from typing import Annotated, Any

import typer


class Missing(StrEnum):
    """What to do with missing feature values."""

    error = "error"
    zero = "zero"
    min = "min"


class Unjudged(StrEnum):
    """What to do with negative labels."""

    error = "error"
    drop = "drop"
    zero = "zero"


class Base(StrEnum):
    """Where feature ids of a text begin."""

    auto = "auto"
    zero = "0"
    one = "1"


MissingOption = Annotated[
    Missing, typer.Option(help="NaN, NULL and infinities: refuse, 0, or the smallest of the query.")
]
UnjudgedOption = Annotated[Unjudged, typer.Option(help="Negative labels: refuse, drop the document, or label 0.")]
BaseOption = Annotated[
    Base, typer.Option("--first-id", help="First feature id of a LETOR text; auto: 0 if an id 0 occurs.")
]
QidOption = Annotated[str, typer.Option("--qid", help="Column of query ids, in a table.")]
LabelOption = Annotated[str, typer.Option("--label", help="Column of labels, in a table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]


def options(missing: Missing, unjudged: Unjudged, base: Base, qid: str, label: str) -> dict[str, Any]:
    """The keyword arguments of ``read_any`` that these options mean."""
    return {
        "missing": missing.value,
        "unjudged": unjudged.value,
        "zero_based": "auto" if base is Base.auto else base is Base.zero,
        "qid": qid,
        "label": label,
    }
