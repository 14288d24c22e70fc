"""``rankwise inspect``: what is in these judged lists, and what is wrong with them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rankwise.cli import reading
from rankwise.cli.reading import Base, Missing, Unjudged


def inspect(
    files: Annotated[list[Path], typer.Argument(help="Judged lists; further files are other splits of the same data.")],
    features: Annotated[bool, typer.Option("--features", help="Also print a line for each feature.")] = False,
    as_json: reading.JsonOption = False,
    missing: reading.MissingOption = Missing.error,
    unjudged: reading.UnjudgedOption = Unjudged.error,
    base: reading.BaseOption = Base.auto,
    qid: reading.QidOption = "qid",
    label: reading.LabelOption = "label",
) -> None:
    """What is in judged lists, and what is wrong with them.

    Sizes, labels, useless or unscaled features, degenerate queries, duplicates, queries that two splits share.

    Example: rankwise inspect Fold1/train.txt Fold1/vali.txt Fold1/test.txt
    """
    from rankwise._progress import track
    from rankwise.data.anyfile import read_any
    from rankwise.data.diagnose import diagnose

    settings = reading.options(missing, unjudged, base, qid, label)
    splits = {str(path): read_any(path, **settings) for path in track(files, "reading")}
    diagnosis = diagnose(splits, verbose=True)
    if as_json:
        print(json.dumps(diagnosis.to_dict()))
        return
    from rich.console import Console

    print(diagnosis)
    if features:
        Console().print(diagnosis.table().rich())
