"""``rankwise convert``: judged lists from one format to another, in bounded memory where the formats allow it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankwise.cli import reading
from rankwise.cli.reading import Base, Missing, Unjudged


class Precision(StrEnum):
    """How features are kept."""

    float64 = "float64"
    float32 = "float32"


def convert(
    source: Annotated[
        Path, typer.Argument(help="Judged lists: LETOR text (.gz too, - for standard input), table, or rankwise file.")
    ],
    target: Annotated[Path, typer.Argument(help="Written beside and renamed; the ending says the format.")],
    dtype: Annotated[Precision, typer.Option(help="Precision of the features.")] = Precision.float64,
    sparse: Annotated[bool, typer.Option("--sparse", help="Leave zeros out of a LETOR text.")] = False,
    missing: reading.MissingOption = Missing.error,
    unjudged: reading.UnjudgedOption = Unjudged.error,
    base: reading.BaseOption = Base.auto,
    qid: reading.QidOption = "qid",
    label: reading.LabelOption = "label",
) -> None:
    """Judged lists from one format to another.

    The ending of the target says which: .rankwise (memory-mapped, opens at once), .txt or .letor (LETOR, .gz too),
    .parquet, .csv, .qrels. A LETOR text becomes a .rankwise file block by block, so that it may be larger than memory.

    Example: rankwise convert train.txt.gz train.rankwise --dtype float32
    """
    from rankwise.data.anyfile import convert_any

    settings = reading.options(missing, unjudged, base, qid, label)
    print(convert_any(source, target, dtype=dtype.value, sparse=sparse, **settings))
