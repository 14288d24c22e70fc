"""Options that several commands share, and the way from the files that a user names to data.

Every option that more than one command takes is declared here once. ``with_options`` adds
those that say how files are read to a command, which then receives their meaning as one dictionary, ``reads``. The
functions below take that dictionary: :func:`read_queries` reads judged queries from any format, :func:`read_scored`
reads judged queries together with a file of scores, and :func:`load_ranker` opens a saved ranker.

Tables whose columns are not all plain numbers become queries by a FeatureBuilder. :func:`build_parts` splits such a
table and fits the builder on its training part only, :func:`read_built` fits it on all of it. :func:`read_for` reads
any file for a saved ranker: one that has a builder takes tables as they are, by the columns that it remembers.
"""

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from rankwise.cli import wording
from rankwise.cli.columns import is_called_id, read_columns_file
from rankwise.cli.options import is_required, table_option, value_option
from rankwise.errors import DataError, RankwiseError, warn
from rankwise.io.sources import plain_number
from rankwise.measures._base import Empty, Ties
from rankwise.queries.checks import Missing, plural

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.features.table import RawTable
    from rankwise.queries.parts.parts import Parts
    from rankwise.queries.queries import Queries
    from rankwise.rankers._base import Ranker

_NAME_COLUMNS = {"columns": "--columns", "qid": "--qid", "label": "--label", "docid": "--docid", "ignore": "--ignore"}
_NAME_COLUMNS |= {"grades": "--labels"}

# Documents per block: some megabytes of features, enough to keep threads busy and few enough to stay in a cache. The
# live line and Ctrl-C are served after each, and a slow pipe is not waited for too long.
ROWS = 1 << 14
OnRead = Callable[[int], object]

Unjudged = Literal["error", "drop", "zero"]
FirstId = Literal["auto", "0", "1"]

JudgedArgument = Annotated[
    Path,
    typer.Argument(
        help="Judged queries: LETOR text, CSV or JSON lines (.gz too; - is standard input), parquet, .rankwise, a "
        "folder of parts."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Format = Literal["text", "markdown", "latex"]
FormatOption = Annotated[Format, typer.Option("--format", help="Format of the tables.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random choices.")]
MeasuresOption = Annotated[
    list[str],
    typer.Option(
        "--measure", "-m", help="nDCG@10, AP, RR@10, P@5, ERR@20 ...; may be repeated.", autocompletion=wording.measures
    ),
]
LikeOption = Annotated[
    str | None, typer.Option(help="Match another tool exactly: letor, trec_eval, sklearn, lightgbm ...")
]
TiesOption = Annotated[Ties | None, typer.Option(help="Order of equal scores (default: expected, or the tool's).")]
EmptyOption = Annotated[
    Empty | None, typer.Option(help="Value of queries where a measure is 0/0 (default: skip, or the tool's).")
]
RelOption = Annotated[float | None, typer.Option(help="Smallest label that counts as relevant (default 1).")]


def share(
    options: Callable[..., Any], name: str, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a decorator that adds the parameters of ``options`` to a command, which receives its result as ``name``."""
    every = signature(options).parameters
    shared = {one: parameter for one, parameter in every.items() if one not in without}
    left = {one: every[one].default.default for one in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in signature(command).parameters.values() if one.name != name]
        # keyword-only ones are for another such decorator; required ones come before those with a default
        parameters = sorted([*own, *shared.values()], key=lambda one: (one.kind, not is_required(one)))

        @wraps(command)
        def run(**values: Any) -> None:
            result = options(**left, **{one: values.pop(one) for one in shared})
            command(**values, **{name: result})

        # typer reads the signature and the annotations to find the options
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def options(
    missing: Missing = value_option(
        "error", "NaN, NULL and empty cells: an error, 0, the smallest value in the query, or keep (for HybridRanker)."
    ),
    unjudged: Unjudged = value_option("error", "Negative or empty labels: an error, drop the document, or label 0."),
    first_id: FirstId = value_option(
        "auto", "First feature id of a LETOR text; auto means 0 if an id 0 occurs, else 1."
    ),
    qid: str | None = table_option(None, "Column of query ids (default: the model's, or qid)."),
    label: str | None = table_option(None, "Column of labels (default: the model's, or label)."),
    docid: str | None = table_option(None, "Column of document ids."),
    ignore: list[str] | None = table_option(None, "Columns that are not features: a,b; may be repeated."),
    grades: str | None = table_option(None, "Grades of words in the label column: bad=0,good=1.", "--labels"),
    columns: Path | None = table_option(None, "A file with all of these, as inspect writes it."),
    judgments: Path | None = value_option(
        None, "Judgments (qrels) of the documents in a JSON log of features, as Elasticsearch LTR writes it."
    ),
) -> dict[str, Any]:
    """Turn these options into keyword arguments of :func:`read_queries`; options of tables only where given.

    Options take precedence over the file of ``--columns``; an empty label is none.
    """
    found = {} if columns is None else read_columns_file(columns)
    if label is not None:
        found["label"] = label or None
    given: dict[str, Any] = {"qid": qid, "docid": docid, "ignore": [*found.get("ignore", ()), *as_names(ignore or [])]}
    given |= {"grades": None if grades is None else as_grades(grades), "columns": columns, "judgments": judgments}
    found |= {name: value for name, value in given.items() if value}
    return {
        "missing": missing, "unjudged": unjudged, "zero_based": "auto" if first_id == "auto" else first_id == "0",
    } | found  # fmt: skip


with_options = share(options, "reads")


def with_defaults(reads: dict[str, Any], kinds: bool = False) -> dict[str, Any]:
    """The same with the default names of columns; kinds, which no reader of plain numbers takes, if asked."""
    taken = {name: value for name, value in reads.items() if name != "columns" and (kinds or name != "kinds")}
    return {"qid": "qid", "label": "label", **taken}


def for_rankers(reads: dict[str, Any], rankers: Iterable[Any]) -> dict[str, Any]:
    """Restrict the columns of a table to the features of these rankers, where all of them know names."""
    rankers = list(rankers)
    reads = keeping_missing(reads, rankers)
    known = [ranker._names() for ranker in rankers]
    if not known or None in known:
        return reads
    return {**reads, "features": list(dict.fromkeys(name for names in known for name in names or ()))}


def as_names(given: list[str]) -> list[str]:
    """Parse names of columns separated by commas as one line of CSV: a name that holds a comma stands in quotes."""
    lines = (next(csv.reader([one], skipinitialspace=True), []) for one in given)
    return list(dict.fromkeys(name.strip() for line in lines for name in line if name.strip()))


def keeping_missing(reads: dict[str, Any], rankers: Iterable[Any]) -> dict[str, Any]:
    """Keep missing values for rankers that give them a meaning, unless the user chose another rule."""
    keep = reads["missing"] == "error" and all(ranker.missing == "keep" for ranker in rankers)
    return {**reads, "missing": "keep"} if keep else reads


def as_grades(text: str) -> dict[str, float]:
    """Parse ``bad=0,good=1`` into a dictionary."""
    found: dict[str, float] = {}
    for pair in text.split(","):
        word, equals, grade = pair.rpartition("=")
        value = plain_number(grade.strip())
        if value is None or not equals or not word.strip():
            raise RankwiseError(f"--labels must be WORD=GRADE pairs, such as bad=0,good=1, got {pair!r:.60}")
        found[word.strip()] = value
    return found


def is_model(path: Path) -> bool:
    """Tell whether a path is a file that rankwise wrote, or the model of a booster; files of scores are neither."""
    from rankwise.rankers.model_files import is_model as holds_model

    return holds_model(path)


def load_ranker(path: Path) -> "Ranker":
    """Open a saved ranker, or the trees of a booster; anything else raises a clear error."""
    from rankwise.rankers.model_files import open_ranker

    return open_ranker(path)


def read_queries(path: Path, reads: dict[str, Any]) -> "Queries":
    """Read judged queries from a file of any format; ``-`` is standard input with LETOR text or CSV."""
    from rankwise.io.any_file import kind_of, read_any
    from rankwise.io.sources import is_stream, open_text

    refuse_folders(path)
    kind = "text" if is_stream(path) else kind_of(path)
    if "judgments" in reads and kind != "json" and (is_stream(path) or path.exists()):
        raise DataError(f"--judgments requires a JSON log of features, got {path}")
    if is_stream(path):
        with open_text(path) as source:
            if source.kind != "letor":
                return read_any(source, "table", **with_defaults(reads))
            return read_any(source, "text", **of_letor(path, reads))
    if kind != "table":
        of_letor(path, reads)
    return read_any(path, kind, **with_defaults(reads))


def is_parts(path: Path) -> bool:
    """Tell whether a path is a data set in parts: a folder with a manifest."""
    from rankwise.queries.parts.manifest import NAME

    return (path / NAME).is_file()


def read_queries_or_parts(path: Path, reads: dict[str, Any]) -> "Queries | Parts":
    """Open a data set in parts without reading it; anything else is read as queries."""
    from rankwise._load_saved import load

    opened: Queries | Parts = load(path) if is_parts(path) else read_queries(path, reads)
    return opened


def iter_blocks(queries: "Queries", data: Path, on_read: OnRead) -> Iterator["Queries"]:
    """Yield the queries of a file that was opened as a whole in blocks, and count its bytes with them."""
    from rankwise._kernels.parallel import query_chunks

    size = os.path.getsize(data)
    for first, last in query_chunks(queries.start, ROWS):
        yield queries[first:last]
        on_read(size * (last - first) // len(queries))


def of_letor(path: Path, reads: dict[str, Any]) -> dict[str, Any]:
    """Select the options that apply to LETOR text; those that the user gave to name columns raise a clear error."""
    from rankwise.io import any_file

    named = [option for name, option in _NAME_COLUMNS.items() if name in reads]
    if named and (os.fspath(path) == "-" or path.exists()):
        given = ", ".join(named)
        raise DataError(f"{given}: only tables (CSV, JSON lines, parquet, Arrow) have columns to name, got {path}")
    return any_file.of_letor(reads)


def read_scored(judged: Path, scores: Path, reads: dict[str, Any], opened: dict[str, Any]) -> tuple[Any, Any]:
    """Read judged queries and the scores of their documents; ``opened`` keeps the queries for the next file."""
    from rankwise.evaluation.files import is_qrels, open_pair, read_scores
    from rankwise.io.any_file import kind_of

    if is_parts(judged):
        from rankwise.evaluation.files import read_scores_of_parts

        parts: Any = opened.get("queries") or read_queries_or_parts(judged, reads)
        opened["queries"] = parts
        return parts, read_scores_of_parts(scores, parts)
    refuse_folders(judged)
    table = os.fspath(judged) == "-" or kind_of(judged) == "table"
    if "queries" not in opened and table and not is_qrels(judged):
        opened["queries"] = read_queries(judged, reads)
    if "queries" in opened:
        return opened["queries"], read_scores(scores, opened["queries"])
    return open_pair(judged, scores, opened, **of_letor(judged, reads))


def refuse_two_formats(as_json: bool, as_what: Format) -> None:
    """Raise an error where both --json and --format are given."""
    if as_json and as_what != "text":
        raise RankwiseError(f"--json and --format {as_what} cannot be combined")


def check_writable(path: Path) -> None:
    """Raise an error, before the work, for a file or folder that cannot be written later."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise RankwiseError(f"{path} cannot be written: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise RankwiseError(f"{path} cannot be written: no permission")


def refuse_folders(path: Path) -> None:
    """Raise a clear error for a folder, which no reader takes."""
    if path.is_dir():
        inside = sorted(one.name for one in path.iterdir() if one.is_file())
        held = f", such as {path / inside[0]}" if inside else ""
        if is_parts(path):
            raise RankwiseError(f"{path} is a data set in parts, which this command does not accept: pass a file")
        raise RankwiseError(f"{path} is a folder: pass a file{held} (compare takes a folder of folds)")


# --------------------------------------------------------------------------------------- tables with a FeatureBuilder

_OF_TEXTS = ("category", "text", "identifier", "other")  # kinds of columns that are not read as numbers
MIXED = "with mostly, but not only, numbers: not treated as numeric"
Divided = tuple["Queries", "Queries | None", "Queries | None"]


def read_or_open(path: Path, reads: dict[str, Any]) -> "Queries | RawTable":
    """Read queries, or open a table of which a FeatureBuilder has to make them."""
    from rankwise.features import judged

    return judged.read_or_open(path, reads, lambda: read_queries(path, reads))


def mostly_numbers(table: "RawTable", builder: "FeatureBuilder") -> dict[str, str]:
    """Columns that the builder takes for texts though most of their values are numbers, with a text that is not one.

    Parameters
    ----------
    table : RawTable
        The training table.
    builder : FeatureBuilder
        The builder that was fitted on it.

    Returns
    -------
    dict of str to str
        The columns, each with an example.
    """
    from rankwise.features.texts import number_of

    found = {}
    for row in builder.plan_:
        column = table.column(row["column"])
        if row["kind"] not in _OF_TEXTS or column.stored != "text" or is_called_id(column.name):
            continue
        texts = [text for text in column.values.tolist() if text is not None]
        odd = [text for text in texts if number_of(text, column.decimal) is None]
        if odd and 2 * len(odd) < len(texts):
            found[column.name] = f"{column.name} ({odd[0]!r:.40} and {len(odd) - 1:,} more of {len(texts):,})"
    return found


def build_parts(
    data: Path, table: "RawTable", validation: Path | None, share: float, seed: int, reads: dict[str, Any]
) -> Divided:
    """Divide a table by query, fit a FeatureBuilder on the training part, and apply it to the other one.

    Parameters
    ----------
    data : Path
        The file, for messages.
    table : RawTable
        Its table.
    validation : Path or None
        A second file for model selection; nothing is held out then.
    share : float
        The share of queries that is held out.
    seed : int
        Seed of the division.
    reads : dict
        What the options say.

    Returns
    -------
    train, validation, test : Queries or None
        As the ranker learns from them; the builder is ``train.built_by``.
    """
    from rankwise.features.judged import new_builder
    from rankwise.features.table import SelectedRows
    from rankwise.queries.folds import split
    from rankwise.queries.grouping import by_id
    from rankwise.queries.queries import Queries

    builder = new_builder(reads)
    if validation is not None or share == 0:
        train = fit_builder(builder, table)
        other = None if validation is None else open_table_or_raise(validation)
        return train, None if other is None else transform(builder, other, validation or data), None
    parts = by_id(table.identities(builder.qid), table.n_rows)
    count = len(parts.start) - 1
    refuse_too_few(data, count)
    numbered = Queries._trusted(np.arange(table.n_rows, dtype=np.float64)[:, None], None, parts.start, parts.rows)
    learned, held = (
        SelectedRows(table, np.sort(part.X[:, 0].astype(np.int64)))
        for part in split(numbered, (1 - share, share), random_state=seed)
    )
    return fit_builder(builder, learned), None, transform(builder, held, data)


def read_built(path: Path, reads: dict[str, Any]) -> "Queries":
    """Read a file of any kind; of a table with texts, dates or gaps, features are learned from all of its rows."""
    from rankwise.features.judged import new_builder
    from rankwise.features.table import RawTable

    data = read_or_open(path, reads)
    return fit_builder(new_builder(reads), data) if isinstance(data, RawTable) else data


def fit_builder(builder: "FeatureBuilder", table: "RawTable") -> "Queries":
    """Fit a builder and make queries of the training table; columns that should be numbers are a warning."""
    queries = builder.fit_transform(table)
    found = mostly_numbers(table, builder)
    if found:
        warn(f"{plural(len(found), 'column')} {MIXED}: {', '.join(found.values())}; see rankwise inspect")
    return queries


def refuse_too_few(data: Path, count: int) -> None:
    """Raise a clear error where there are too few queries to hold some out."""
    if count < 2:
        held = f"{count} {'query' if count == 1 else 'queries'}"
        raise DataError(f"{data} has {held}, too few to hold some out: use --test-share 0")


def open_table_or_raise(path: Path) -> "RawTable":
    """Open a table, or raise an error."""
    from rankwise.features.judged import open_table

    table = open_table(path)
    if table is None:
        raise DataError(f"{path} must be a table, like the training data, whose columns the FeatureBuilder uses")
    return table


def transform(builder: "FeatureBuilder", table: "RawTable", path: Path) -> "Queries":
    """Apply a fitted builder to rows that it did not learn from; errors say where to look."""
    try:
        return builder.transform(table)
    except DataError as error:
        raise DataError(f"{path}: {error} (rankwise inspect {path} shows all columns)") from error


# ------------------------------------------------------------------------------------------- saved rankers


def read_for(ranker: "Ranker", path: Path, reads: dict[str, Any], *, judged: bool = True) -> "Queries":
    """Read a file of any format for a saved ranker, by the columns that its builder remembers.

    Parameters
    ----------
    ranker : Ranker
        The ranker.
    path : Path
        The file.
    reads : dict
        What the options say; columns that they name take precedence.
    judged : bool, default=True
        Whether labels are read.

    Returns
    -------
    Queries
        With the features that the ranker learned from.
    """
    from rankwise.features.judged import apply_builder

    if hasattr(ranker, "features_") and str(path) == "-":
        raise DataError(f"{ranker.name} builds its features from a table, which requires a file, got standard input")
    table = raw_table_for(ranker, path)
    if table is None:
        return read_queries(path, for_rankers(reads, [ranker]))
    return apply_builder(ranker.features_, table, path, reads, judged=judged)


def raw_table_for(ranker: "Ranker", path: Path) -> "RawTable | None":
    """The table if the ranker's builder has to be applied to it; None for files that hold features already."""
    from rankwise.features.judged import open_table

    table = open_table(path) if hasattr(ranker, "features_") else None
    if table is None:
        return None
    builder, names = ranker.features_, set(table.names)
    return None if not names >= {*builder.columns_in_} and names >= {*builder.feature_names_out_} else table
