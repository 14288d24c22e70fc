"""Tables whose columns are not all plain numbers, from the shell: a FeatureBuilder makes queries of them.

:mod:`rankwise.features.judged` opens them. :func:`built_parts` divides such a table and fits the builder on its
training part alone, :func:`built_whole` fits it on all of it. :func:`read_for` reads any file for a saved ranker: one
that has a builder takes tables as they are, by the columns that it remembers.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.cli import reading
from rankwise.cli.column_roles import is_called_id
from rankwise.errors import DataError, warn
from rankwise.queries.checks import plural

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.features.table import RawTable
    from rankwise.queries.queries import Queries
    from rankwise.rankers._base import Ranker

_OF_TEXTS = ("category", "text", "identifier", "other")  # kinds of columns that are not read as numbers
MIXED = "where most values are numbers, but not all: not taken for numbers"
Divided = tuple["Queries", "Queries | None", "Queries | None"]


def read_or_open(path: Path, reads: dict[str, Any]) -> "Queries | RawTable":
    """Read queries, or open a table of which a FeatureBuilder has to make them."""
    from rankwise.features import judged

    return judged.read_or_open(path, reads, lambda: reading.read_queries(path, reads))


def mostly_numbers(table: "RawTable", builder: "FeatureBuilder") -> dict[str, str]:
    """Columns that the builder takes for texts though most of their values are numbers, with a text that is none.

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


def built_parts(
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
        other = None if validation is None else _open_or_refuse(validation)
        return train, None if other is None else _applied(builder, other, validation or data), None
    parts = by_id(table.identities(builder.qid), table.n_rows)
    count = len(parts.start) - 1
    refuse_too_few(data, count)
    numbered = Queries._trusted(np.arange(table.n_rows, dtype=np.float64)[:, None], None, parts.start, parts.rows)
    learned, held = (
        SelectedRows(table, np.sort(part.X[:, 0].astype(np.int64)))
        for part in split(numbered, (1 - share, share), random_state=seed)
    )
    return fit_builder(builder, learned), None, _applied(builder, held, data)


def built_whole(path: Path, reads: dict[str, Any]) -> "Queries":
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
        warn(f"{plural(len(found), 'column')} {MIXED}: {', '.join(found.values())}; rankwise inspect says what to do")
    return queries


def refuse_too_few(data: Path, count: int) -> None:
    """Raise a clear error where there are too few queries to hold some out."""
    if count < 2:
        held = f"{count} {'query' if count == 1 else 'queries'}"
        raise DataError(f"{data} holds {held}, too few to hold some out: give --test-share 0")


def _open_or_refuse(path: Path) -> "RawTable":
    """Open a table, or raise an error."""
    from rankwise.features.judged import open_table

    table = open_table(path)
    if table is None:
        raise DataError(f"{path} is not a table: the FeatureBuilder of the training table needs its columns")
    return table


def _applied(builder: "FeatureBuilder", table: "RawTable", path: Path) -> "Queries":
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
    from rankwise.features.judged import built_by

    if hasattr(ranker, "features_") and str(path) == "-":
        raise DataError(
            f"{ranker.name} makes its features of a table, which is not read from standard input: give a file"
        )
    table = raw_table_for(ranker, path)
    if table is None:
        return reading.read_queries(path, reading.for_rankers(reads, [ranker]))
    return built_by(ranker.features_, table, path, reads, judged=judged)


def raw_table_for(ranker: "Ranker", path: Path) -> "RawTable | None":
    """The table if the ranker's builder has to be applied to it; None for files that hold features already."""
    from rankwise.features.judged import open_table

    table = open_table(path) if hasattr(ranker, "features_") else None
    if table is None:
        return None
    builder, names = ranker.features_, set(table.names)
    return None if not names >= {*builder.columns_in_} and names >= {*builder.feature_names_out_} else table
