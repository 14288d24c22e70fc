"""``rankwise convert``: convert judged queries between formats, in bounded memory where the formats allow it."""

import json
from pathlib import Path
from typing import Any, Literal

from rankwise.cli import reading
from rankwise.cli.options import argument, option
from rankwise.errors import RankwiseError

_PART_SIZE = "256MB"
_OF_PARTS = ("missing", "unjudged", "zero_based", "qid", "label", "docid", "ignore", "grades", "features")


@reading.with_options
def convert(
    files: list[Path] = argument(
        ...,
        "Judged queries (LETOR text, CSV, JSON lines, .gz too, - is standard input; parquet, .rankwise, "
        "folders of them), followed by the file to write, whose suffix sets the format, or the folder of parts.",
        metavar="SOURCE... TARGET",
    ),
    parts: str | None = option(None, f"Write a folder of parts of about this size (default {_PART_SIZE})."),
    overwrite: bool = option(False, "Replace an existing folder of parts."),
    dtype: Literal["float64", "float32"] = option("float64", "Precision of the features."),
    sparse: bool = option(False, "Leave zeros out of a LETOR text."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Convert judged queries from one format to another.

    The suffix of the target sets its format: .rankwise (memory-mapped, opens at once), .txt or .letor (LETOR, .gz too),
    .parquet, .csv, .qrels. A LETOR text becomes a .rankwise file in blocks, so it may be larger than memory.

    A table with words, dates or gaps is converted to the features that rankwise inspect shows, learned from all of its
    rows; a .rankwise file remembers how they were made.

    A target without a suffix, or --parts, makes a folder of parts, from any number of sources of any size, with rows in
    any order. A query that is spread over several sources is joined. Temporary files beside the folder take up to twice
    its size; an error or Ctrl-C removes them.

    Example: rankwise convert train.txt.gz train.rankwise --dtype float32

    Example: rankwise convert my.csv my.txt --qid query --label grade --ignore url

    Example: rankwise convert train.txt.gz vali.txt lists --parts 256MB --dtype float32
    """
    if len(files) < 2:
        raise RankwiseError("convert requires the files to read and then the file or folder to write, got one path")
    *sources, target = files
    if parts is not None or not target.suffix or target.is_dir():
        written = _write_parts(sources, target, parts or _PART_SIZE, overwrite, dtype, reads)
    elif len(sources) > 1:
        raise RankwiseError(
            f"several sources require a folder of parts, got the file {target}: add --parts {_PART_SIZE}"
        )
    else:
        written = _convert_file(sources[0], target, dtype, sparse, reads)
    print(json.dumps({"out": str(target), "what": written.partition(": ")[2]}) if as_json else written)


def _write_parts(
    sources: list[Path], target: Path, size: str, overwrite: bool, dtype: str, reads: dict[str, Any]
) -> str:
    """Write a folder of parts, in bounded memory; a table of which features have to be made is read as a whole."""
    from rankwise.features.judged import new_builder, read_or_open
    from rankwise.features.table import RawTable
    from rankwise.io.convert import write_parts

    how: dict[str, Any] = {"part_bytes": size, "dtype": dtype, "overwrite": overwrite}
    given = {name: value for name, value in reads.items() if name in _OF_PARTS}
    names = [str(source) for source in sources]
    if len(sources) > 1:
        return f"{target}: {write_parts(names, target, **how, **given)}"
    # what holds numbers is written by the reading itself, and never is in memory
    found = read_or_open(sources[0], reads, lambda: write_parts(names, target, **how, **given))
    if isinstance(found, RawTable):
        found = write_parts(reading.fit_builder(new_builder(reads), found), target, **how)
    return f"{target}: {found}"


def _convert_file(source: Path, target: Path, dtype: str, sparse: bool, reads: dict[str, Any]) -> str:
    """Convert a file: a table is read first, by its columns; everything else is converted from file to file."""
    from rankwise.io.any_file import convert_any, kind_of, of_type, write_any

    if reading.is_parts(source):
        return _join_parts(source, target, dtype, sparse)
    reading.refuse_folders(source)
    from_stream = str(source) == "-"
    if (kind_of(source) in ("text", "store") and not from_stream) or (
        from_stream and target.suffix in (".rankwise", ".safetensors")
    ):
        # from file to file, in bounded memory
        return convert_any(source, target, dtype=dtype, sparse=sparse, **reading.of_letor(source, reads))
    queries = of_type(reading.read_built(source, reads), dtype)  # tables are read in their own precision
    write_any(queries, target, sparse)
    return f"{target}: {queries}"


def _join_parts(source: Path, target: Path, dtype: str, sparse: bool) -> str:
    """Write a data set in parts as one file: a .rankwise file block by block, other formats as a whole."""
    from rankwise._progress import throughput
    from rankwise.io.any_file import of_type, write_any
    from rankwise.queries.parts.parts import Parts
    from rankwise.queries.stored import QueriesWriter

    parts = Parts(source)
    if target.suffix in (".rankwise", ".safetensors"):
        with throughput("writing", parts.bytes) as bar, QueriesWriter(target) as writer:
            for block in parts.blocks():
                writer.append(of_type(block, dtype))
                bar.advance_rows(block.n_documents, block.X.nbytes + 8 * block.n_documents)
    else:
        write_any(of_type(parts.to_queries(), dtype), target, sparse)
    return f"{target}: {len(parts):,} queries, {parts.n_documents:,} documents"
