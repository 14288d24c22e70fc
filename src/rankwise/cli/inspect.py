"""``rankwise inspect``: describe judged queries, find problems in them, and say how to train on them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli import reading
from rankwise.cli.wording import in_shell

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder


@reading.with_options
def inspect(
    files: Annotated[
        list[Path],
        typer.Argument(help="Judged queries in any format (- is standard input); further files are other splits."),
    ],
    per_feature: Annotated[
        bool, typer.Option("--per-feature", "--features", help="Also print a line for each feature.")
    ] = False,
    write_columns: Annotated[
        Path | None,
        typer.Option("--write-columns", help="Write roles and kinds of columns to this TOML file, for --columns."),
    ] = None,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Describe judged queries, find problems in them, and print the command that trains on them.

    Shows sizes and labels, and finds useless or unscaled features, leaks, degenerate queries, duplicates, and queries
    that two splits share. Of a table it finds the columns of ids and labels by name and values, and shows what is done
    with texts, categories, dates, gaps, identifiers and constants.

    Example: rankwise inspect train.txt vali.txt test.txt

    Example: rankwise inspect my.csv --qid query --label grade --ignore url

    Example: rankwise inspect my.csv --write-columns columns.toml
    """
    from rankwise._progress import track
    from rankwise.cli.look import look_at, read_other, train_command, write_look
    from rankwise.data.diagnose.findings import Diagnosis
    from rankwise.data.diagnose.run import diagnose
    from rankwise.data.tabular.frames import is_table

    path, *others = files
    look = look_at(path, reads)
    splits = {str(path): look.queries}
    splits |= {str(other): read_other(other, look) for other in track(others, "reading")}
    diagnosis = diagnose(splits, verbose=True)
    diagnosis = Diagnosis.of([*look.findings, *diagnosis.findings], diagnosis.facts, diagnosis.features)
    if write_columns is not None:
        write_look(write_columns, path, look)
    written = write_columns is not None
    command = train_command(path, look, write_columns or reads.get("columns"), written)
    if as_json:
        plan = None if look.builder is None else look.builder.plan_
        print(json.dumps({**diagnosis.to_dict(), "columns": plan, "command": command}))
        return
    if look.builder is not None:
        _show_columns(path, look.builder)
    print(in_shell(str(diagnosis)))
    if per_feature:
        from rich.console import Console

        Console().print(diagnosis.table().rich())
    if command is not None and (look.table is not None or is_table(path)):
        print(f"\nto train:\n{command}")


def _show_columns(path: Path, builder: "FeatureBuilder") -> None:
    """Print what is done with each column."""
    from rich.console import Console

    from rankwise._tables import Table

    report, titles = builder.report_, {"qid": "query ids", "label": "labels", "docid": "document ids"}
    roles = [f"{titles[role]} in {name}" for role, name in builder.roles_.items() if role in titles and name]
    left = sum(not row["features"] for row in builder.plan_)
    used = f"{len(builder.feature_names_out_)} features from {len(builder.columns_in_)} columns, {left} left out"
    print(f"{path}: {builder.n_features_in_} columns: {', '.join(roles)}; {used}")
    columns: dict[str, Any] = {name: report[name] for name in report.columns}
    columns["reason"] = [in_shell(reason) for reason in report["reason"].tolist()]
    Console(highlight=False).print(Table(columns).rich())
