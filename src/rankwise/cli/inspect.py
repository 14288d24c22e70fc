"""``rankwise inspect``: describe judged queries and find problems in them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwise.cli import reading
from rankwise.cli.wording import in_shell


@reading.with_options
def inspect(
    files: Annotated[
        list[Path],
        typer.Argument(help="Judged queries in any format (- is standard input); further files are other splits."),
    ],
    per_feature: Annotated[
        bool, typer.Option("--per-feature", "--features", help="Also print a line for each feature.")
    ] = False,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Describe judged queries and find problems in them.

    Shows sizes and labels, and finds useless or unscaled features, degenerate queries, duplicates, and queries that two
    splits share.

    Example: rankwise inspect train.txt vali.txt test.txt

    Example: rankwise inspect my.csv --qid query --label grade --ignore url
    """
    from rankwise._progress import track
    from rankwise.data.diagnose.run import diagnose

    splits = {str(path): reading.read_queries(path, reads) for path in track(files, "reading")}
    diagnosis = diagnose(splits, verbose=True)
    if as_json:
        print(json.dumps(diagnosis.to_dict()))
        return
    from rich.console import Console

    print(in_shell(str(diagnosis)))
    if per_feature:
        Console().print(diagnosis.table().rich())
