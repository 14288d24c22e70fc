"""``rankwise convert``: convert judged queries between formats, in bounded memory where the formats allow it."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rankwise.cli import reading


@reading.with_options
def convert(
    source: reading.JudgedArgument,
    target: Annotated[Path, typer.Argument(help="The file to write; its ending is the format.")],
    dtype: Annotated[Literal["float64", "float32"], typer.Option(help="Precision of the features.")] = "float64",
    sparse: Annotated[bool, typer.Option("--sparse", help="Leave zeros out of a LETOR text.")] = False,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Convert judged queries from one format to another.

    The ending of the target is its format: .rankwise (memory-mapped, opens at once), .txt or .letor (LETOR, .gz too),
    .parquet, .csv, .qrels. A LETOR text becomes a .rankwise file in blocks, so it may be larger than memory.

    Example: rankwise convert train.txt.gz train.rankwise --dtype float32

    Example: rankwise convert my.csv my.txt --qid query --label grade --ignore url
    """
    written = _converted(source, target, dtype, sparse, reads)
    print(json.dumps({"out": str(target), "what": written.partition(": ")[2]}) if as_json else written)


def _converted(source: Path, target: Path, dtype: str, sparse: bool, reads: dict[str, Any]) -> str:
    """Convert a file: a table is read first, by its columns; everything else is converted from file to file."""
    from rankwise.data.anyfile import convert_any, write_any
    from rankwise.data.tabular.frames import is_table

    reading.refuse_folders(source)
    from_stream = str(source) == "-"
    if not (is_table(source) or reading.looks_like_csv(source) or from_stream) or (
        from_stream and target.suffix in (".rankwise", ".safetensors")
    ):
        return convert_any(source, target, dtype=dtype, sparse=sparse, **reading.of_letor(reads))  # in bounded memory
    queries = reading.read_queries(source, reads)
    # tables are read in their own precision
    if str(queries.X.dtype) != dtype:
        queries = queries.map_features(lambda X: X.astype(dtype))
    write_any(queries, target, sparse)
    return f"{target}: {queries}"
