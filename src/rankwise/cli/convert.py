"""``rankwise convert``: judged lists from one format to another, in bounded memory where the formats allow it."""

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise._errors import RankwiseError
from rankwise.cli import reading

if TYPE_CHECKING:
    from rankwise.data.queries import Queries


class Precision(StrEnum):
    """How features are kept."""

    float64 = "float64"
    float32 = "float32"


@reading.with_options
def convert(
    source: reading.JudgedArgument,
    target: Annotated[Path, typer.Argument(help="Written beside and renamed; the ending says the format.")],
    dtype: Annotated[Precision, typer.Option(help="Precision of the features.")] = Precision.float64,
    sparse: Annotated[bool, typer.Option("--sparse", help="Leave zeros out of a LETOR text.")] = False,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Judged lists from one format to another.

    The ending of the target says which: .rankwise (memory-mapped, opens at once), .txt or .letor (LETOR, .gz too),
    .parquet, .csv, .qrels. A LETOR text becomes a .rankwise file block by block, so that it may be larger than memory.

    Example: rankwise convert train.txt.gz train.rankwise --dtype float32

    Example: rankwise convert my.csv my.txt --qid query --label grade --ignore url
    """
    written = _converted(source, target, dtype.value, sparse, reads)
    print(json.dumps({"out": str(target), "what": written.partition(": ")[2]}) if as_json else written)


def _converted(source: Path, target: Path, dtype: str, sparse: bool, settings: dict[str, Any]) -> str:
    """A table is read first, by its columns; everything else goes from file to file."""
    from rankwise.data.anyfile import convert_any
    from rankwise.data.tabular.frames import is_table

    of_texts = {name: value for name, value in settings.items() if name not in reading.OF_TABLES}
    reading.refuse_what_cannot_be(source)
    if not is_table(source) and not reading.looks_like_csv(source) and str(source) != "-":
        return convert_any(source, target, dtype=dtype, sparse=sparse, **of_texts)
    if str(source) == "-" and target.suffix in (".rankwise", ".safetensors"):
        return convert_any(source, target, dtype=dtype, sparse=sparse, **of_texts)  # in bounded memory
    queries = reading.read_lists(source, settings)
    if str(queries.X.dtype) != dtype:
        queries = queries.map_features(lambda X: X.astype(dtype))
    _write(queries, target, sparse)
    return f"{target}: {queries}"


def _write(queries: "Queries", target: Path, sparse: bool) -> None:
    """As the ending of the target says."""
    from rankwise.data.letor.write import write_letor
    from rankwise.data.tabular.frames import write_table
    from rankwise.data.trec import write_qrels

    ending = Path(target.name.removesuffix(".gz")).suffix.lower()
    writers: dict[str, Callable[[], None]] = {
        **dict.fromkeys((".rankwise", ".safetensors"), lambda: queries.save(target)),
        **dict.fromkeys((".parquet", ".csv"), lambda: write_table(queries, target)),
        **dict.fromkeys((".txt", ".letor", ".dat", ".svm"), lambda: write_letor(queries, target, sparse=sparse)),
        ".qrels": lambda: write_qrels(queries, target),
    }
    if ending not in writers:
        raise RankwiseError(f"{target} ends in {ending or 'nothing'!r}, expected one of {', '.join(writers)}")
    writers[ending]()
