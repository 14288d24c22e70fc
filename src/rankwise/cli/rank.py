"""``rankwise rank``: rank the documents of queries, judged or not, with a saved ranker.

The command reads whole queries in blocks, aligns their features with those of the ranker, scores them and passes them
to one of the writers in :mod:`rankwise.cli.rank_output`. One thread reads the next block while another one ranks and
writes the current block, so memory holds two blocks however large the file is.
"""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli import reading
from rankwise.cli.options import argument, data_option, output_option
from rankwise.cli.rank_output import Form, Ranked, form_of, open_output
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.queries.checks import Missing

if TYPE_CHECKING:
    from rankwise.guarantees.cutoff import Cutoff
    from rankwise.io.sources import ByteStream
    from rankwise.queries.queries import Queries
    from rankwise.rankers._base import Ranker

_SHOWN = 5  # names that fit into a message
_IDS = re.compile(rb"(?:^|\s)(\d+):")


@reading.share(reading.options, "reads", without=("missing", "unjudged", "grades", "judgments"))
def rank(
    model: Path = argument(
        ..., "A saved ranker, as rankwise train writes it, or a model of LightGBM, XGBoost or CatBoost."
    ),
    data: Path = argument(
        ...,
        "Queries, judged or not: LETOR text, CSV or JSON lines (.gz too; - is standard input), parquet, "
        ".rankwise, or a folder of parts.",
    ),
    out: Path | None = output_option(None, "The file to write (default: standard output).", "-o"),
    to: Form | None = output_option(None, "Output format (default: by the suffix of --out, else csv)."),
    top: int | None = output_option(None, "Only the best K documents of every query.", min=1),
    cutoff: Path | None = output_option(
        None, "Only the documents that this cut-off keeps, as rankwise cutoff writes it."
    ),
    tag: str = output_option("rankwise", "Name of the run in a TREC run."),
    unsorted: bool = data_option(False, "The rows of a query are not together: read the whole file at once."),
    features: int | None = data_option(None, "Number of features of a text that leaves out zeros.", min=1),
    as_json: bool = output_option(False, "JSON: one line per document; with --out, a summary.", "--json"),
    missing: Missing | None = data_option(None, "NaN, NULL, empty cells (default: the ranker's own rule)."),
    *,
    reads: dict[str, Any],
) -> None:
    """Rank the documents of queries with a saved ranker: query, document, rank, score.

    Whole queries are read, ranked and written in blocks, so a file may be larger than memory. Equal scores keep the
    order of the input. Columns of a table are found by the names of the features or columns that the ranker was trained
    on; a table whose features have to be built is read as a whole.

    Example: rankwise rank model.rankwise test.txt --top 10

    Example: rankwise rank model.rankwise new.csv --qid query -o ranked.csv

    Example: rankwise rank model.rankwise new.csv --qid query --cutoff cutoff.json

    Example: zcat test.txt.gz | rankwise rank model.rankwise - -o test.run
    """
    from rankwise._progress import progress

    form = form_of(out, to, as_json)
    if not reading.is_model(model):
        problem = "is not a saved ranker" if model.is_file() else "does not exist"
        raise DataError(f"{model} {problem}: the model comes first, then the queries")
    ranker = reading.load_ranker(model)
    if (top is not None or cutoff is not None) and form == "scores":
        given = "--top" if top is not None else "--cutoff"
        raise RankwiseError(f"--to scores writes a score for every document, so {given} does not apply")
    task = RankingTask(
        ranker,
        model,
        data,
        missing=missing or ranker.missing,
        zero_based=reads["zero_based"],
        features=features,
        unsorted=unsorted,
        columns=reads,
        cutoff=None if cutoff is None else _open_cutoff(cutoff, ranker),
    )
    size = None  # a pipe has no size: the bar then shows the elapsed time
    if not reading.is_parts(data):
        reading.refuse_folders(data)
        size = os.path.getsize(data) if data.is_file() else None
    else:
        from rankwise.queries.parts.parts import Parts

        opened_parts = Parts(data)
        size = opened_parts.n_documents * opened_parts.n_features * opened_parts.dtype.itemsize
    n_queries = n_documents = 0
    with progress("ranking", size, enabled=out is not None) as bar, open_output(out, form, tag, top) as write:
        for block in rank_blocks(task, bar.advance):
            write(block)
            n_queries += len(block.queries)
            n_documents += block.queries.n_documents
    if out is None:
        return
    if as_json:
        print(json.dumps({"out": str(out), "ranker": ranker.name, "queries": n_queries, "documents": n_documents}))
    else:
        print(f"{out}: {n_queries:,} queries, {n_documents:,} documents ranked by {ranker.name}")


def _open_cutoff(path: Path, ranker: "Ranker") -> "Cutoff":
    """Read the file of a cut-off, which has to be one of this ranker."""
    from rankwise.guarantees.cutoff import Cutoff
    from rankwise.rankers._record import digest_of_scores

    found = Cutoff.load(path)
    found.refuse_other_model(digest_of_scores(ranker), ranker.name)
    return found


@dataclass(frozen=True)
class RankingTask:
    """What is ranked, by which ranker, and how the file is read.

    Attributes
    ----------
    ranker : Ranker
        The fitted ranker.
    model : Path
        The file that it was read from, for messages.
    data : Path
        The file of queries, or ``-``.
    missing : {"error", "zero", "min", "keep"}
        How missing values are treated.
    zero_based : bool or "auto"
        Whether feature ids of a text begin at 0.
    features : int or None
        The number of features that the user declared for a text which leaves out zeros.
    unsorted : bool
        Whether the rows of a query may be apart.
    columns : dict
        What the options say, such as the columns that they name: qid, label, docid, ignore.
    cutoff : Cutoff or None
        What decides which documents are kept.
    """

    ranker: "Ranker"
    model: Path
    data: Path
    missing: Any
    zero_based: Any
    features: int | None
    unsorted: bool
    columns: dict[str, Any]
    cutoff: "Cutoff | None" = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features that the ranker was trained on, if it knows them."""
        return self.ranker._names()


def rank_blocks(task: RankingTask, on_read: reading.OnRead) -> Iterator[Ranked]:
    """Yield blocks of whole queries with the scores of their documents."""
    before = 0
    for queries in _one_ahead(_blocks(task, on_read)):
        _check_features(task, queries)
        scores = task.ranker.predict(queries)
        kept = None if task.cutoff is None else task.cutoff.kept(queries, scores)
        yield Ranked(queries, scores, before, kept)
        before += queries.n_documents


def _one_ahead(blocks: Iterator["Queries"]) -> Iterator["Queries"]:
    """Yield the same blocks, each read on another thread while the one before is ranked and written."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def _blocks(task: RankingTask, on_read: reading.OnRead) -> Iterator["Queries"]:
    """Read the file in blocks of whole queries, by its format."""
    from rankwise.features.judged import apply_builder
    from rankwise.features.table import CsvTable
    from rankwise.io.any_file import is_store
    from rankwise.io.sources import open_text
    from rankwise.io.tables.csv import CsvText
    from rankwise.io.tables.rows import is_arrow
    from rankwise.queries.stored import load_queries

    data = task.data
    if reading.is_parts(data):
        yield from read_part_blocks(data, on_read)
        return
    if not task.unsorted and _is_large(task):
        yield from _built(task, on_read)
        return
    table = reading.raw_table_for(task.ranker, data)
    if table is not None:  # features are made of the whole table at once
        yield apply_builder(task.ranker.features_, table, data, task.columns, judged=False)
        on_read(os.path.getsize(data))
    elif is_arrow(str(data)):
        yield from _table(task, data, on_read)
    elif data.is_file() and is_store(str(data)):
        yield from reading.iter_blocks(load_queries(data), data, on_read)
    else:
        with open_text(data, on_read) as source:
            if not source.is_table:
                yield from _text(task, source)
            elif hasattr(task.ranker, "features_") and not data.is_file():  # standard input, of which features are made
                table = CsvTable(CsvText.open(source))
                yield apply_builder(task.ranker.features_, table, data, task.columns, judged=False)
            else:
                yield from _table(task, source, on_read)


def read_part_blocks(data: Path, on_read: reading.OnRead) -> Iterator["Queries"]:
    """Read the blocks of a data set in parts."""
    from rankwise._kernels.parallel import query_chunks
    from rankwise.queries.parts.parts import Parts

    parts = Parts(data)
    for first, last in query_chunks(parts.start, reading.ROWS):
        block = parts.block(first, last)
        yield block
        on_read(block.X.nbytes)


def _is_large(task: RankingTask) -> bool:
    """Whether features have to be made of a table that does not fit into memory."""
    from rankwise._kernels.memory import available_memory
    from rankwise.features.table import iter_columns
    from rankwise.io.memory_needed import memory_needed

    builder = getattr(task.ranker, "features_", None)
    if builder is None or builder.needs_queries:
        return False
    roles = {role: name for role, name in builder.roles_.items() if name is not None and role != "weight"}
    free, needed = available_memory(), memory_needed(task.data, {**roles, "label": None, "missing": "keep"})
    if free is None or needed is None or needed <= free:
        return False
    return reading.needs_builder(task.ranker, next(iter_columns(task.data)))


def _built(task: RankingTask, on_read: reading.OnRead) -> Iterator["Queries"]:
    """Make features of a table block by block; the rows of a query stand together."""
    from rankwise.features.judged import with_options
    from rankwise.features.table import iter_columns
    from rankwise.io.tables.rows import whole_lists

    builder = with_options(task.ranker.features_, task.columns)
    rows = (builder._block(table, judged=False) for table in iter_columns(task.data, on_read))
    try:
        for block in whole_lists(rows, builder.feature_names_out_, "keep", reading.ROWS, str(task.data)):
            yield block._replace(built_by=task.ranker.features_)
    except DataError as error:
        raise DataError(str(error).replace("read the file as a whole", "add --unsorted")) from error


def _table(task: RankingTask, source: "Path | ByteStream", on_read: reading.OnRead) -> Iterator["Queries"]:
    """Read the columns that the ranker knows by name, or else every column without another role."""
    from rankwise.io.tables.frames import iter_table
    from rankwise.io.tables.rows import Roles

    columns: dict[str, Any] = {role: task.columns[role] for role in ("qid", "label", "docid") if role in task.columns}
    columns["ignore"] = () if task.names else task.columns.get("ignore", ())
    roles = Roles(**columns, features=task.names, judged=False, learned_by=f"{task.ranker.name} ({task.model})")
    rows = None if task.unsorted else reading.ROWS
    try:
        yield from iter_table(source, roles, rows=rows, missing=task.missing, on_read=on_read)
    except DataError as error:
        raise DataError(str(error).replace("read the file as a whole", "add --unsorted")) from error


def _text(task: RankingTask, source: "ByteStream") -> Iterator["Queries"]:
    """Read a LETOR text, after a check of its first lines: a text may leave out features that are 0."""
    from rankwise.io.letor.read import read_letor
    from rankwise.io.letor.stream import iter_letor

    width = task.ranker.n_features_in_
    _check_text(task, source, width)
    how = {"missing": task.missing, "unjudged": "zero", "zero_based": task.zero_based, "n_features": width}
    if task.unsorted:
        yield read_letor(source, **how)
        return
    try:
        yield from iter_letor(source, rows=reading.ROWS, **how)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace("read_letor takes", "--unsorted takes")) from error


def _check_text(task: RankingTask, source: "ByteStream", width: int) -> None:
    """Compare the feature ids in the first lines of a text with the features of the ranker."""
    if task.features is not None and task.features != width:
        raise DataError(
            f"--features must be {width}, the number that {task.ranker.name} was trained on, got {task.features}"
        )
    lines = source.head.split(b"\n")
    ids = [int(found) for line in lines[: max(1, len(lines) - 1)] for found in _IDS.findall(line.partition(b"#")[0])]
    if not ids:
        return
    base = int(task.zero_based is False or (task.zero_based == "auto" and 0 not in ids))
    found = max(ids) - base + 1
    if found > width:
        raise DataError(
            f"{source.name} must have {width} features, as {task.ranker.name} was trained on, got {found}: "
            f"{_span(width + base, max(ids))} {'is' if found == width + 1 else 'are'} unknown"
        )
    if found < width and task.features is None:
        raise DataError(
            f"{source.name} must have {width} features, as {task.ranker.name} was trained on, got {found} in its first "
            f"lines: {_span(max(ids) + 1, width + base - 1)} {'is' if found == width - 1 else 'are'} missing (if "
            f"zeros are left out, add --features {width})"
        )


def _span(first: int, last: int) -> str:
    """Name one feature id or a range of them."""
    return f"feature {first}" if first == last else f"features {first} to {last}"


def _check_features(task: RankingTask, queries: "Queries") -> None:
    """Raise an error where a block lacks features of the ranker."""
    width, known = task.ranker.n_features_in_, task.names
    if known is not None and queries.feature_names is not None:
        lacking = [name for name in known if name not in queries.feature_names]
        if lacking:
            more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
            raise DataError(
                f"{task.data} lacks {', '.join(map(repr, lacking[:_SHOWN]))}{more}, which {task.ranker.name} was "
                "trained on"
            )
    elif queries.n_features != width:
        names = "" if queries.feature_names is None else f" ({', '.join(queries.feature_names[:_SHOWN])} ...)"
        raise DataError(
            f"{task.data} must have {width} features, as {task.ranker.name} was trained on, got "
            f"{queries.n_features}{names}"
        )
