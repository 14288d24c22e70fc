"""Features of a table that does not fit into memory: learned from a sample of its queries, built block by block.

The table is read three times. First its queries are numbered, in order of first appearance. Of those that may be
learned from, whole queries are drawn by a seed until they have 200,000 rows, and a
:class:`~rankwise.FeatureBuilder` is fitted on their rows. Then features are built of all rows. The sample depends on
the seed and on the order of the rows alone, not on the blocks in which they are read. A table with fewer rows is
learned from as a whole, as in memory.

Queries that are held out for a certificate must not be learned from, neither by the ranker nor by the builder: the
bound holds for any features that are computed in the same way for all queries, and chosen without a look at those that
were held out. So the division of the queries is drawn before the builder learns.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import throughput
from rankwise.errors import DataError
from rankwise.features.builder import FeatureBuilder
from rankwise.features.roles import labels_of
from rankwise.features.table import Column, RawTable, iter_columns
from rankwise.io.convert import block_of_rows, grouped_blocks, runs_of_ids
from rankwise.queries.checks import Missing
from rankwise.queries.grouping import StringColumn, parse_ids
from rankwise.queries.parts.query_numbers import QueryNumbers
from rankwise.queries.parts.regroup import SourceBlock
from rankwise.queries.parts.write import PART_BYTES, PartsWriter

Numbers = NDArray[np.int64]
Path = str | os.PathLike[str]
OnRead = Callable[[int], object]
# Takes the number of queries and gives those that may be learned from.
Learned = Callable[[int], Numbers]

SAMPLED = 200_000  # rows
_SAMPLE = 1  # what tells the seed of the sample from that of the division


def learn_from_sample(builder: FeatureBuilder, path: Path, learned: Learned, seed: int) -> int:
    """Fit a builder on a sample of the queries of a table.

    Parameters
    ----------
    builder : FeatureBuilder
        The builder.
    path : path
        The file.
    learned : callable
        Takes the number of queries, and gives the numbers of those that may be learned from.
    seed : int
        The seed of the sample.

    Returns
    -------
    n_queries : int
        The number of queries of the table.
    """
    sizes = np.zeros(0, np.int64)
    for number, _ in _numbered(path, builder, "numbering queries"):
        most = int(number.max(initial=-1)) + 1
        if most > len(sizes):
            sizes = np.append(sizes, np.zeros(max(most, 2 * len(sizes)) - len(sizes), np.int64))
        sizes += np.bincount(number, minlength=len(sizes))
    sizes = sizes[: np.flatnonzero(sizes)[-1] + 1] if sizes.any() else sizes[:0]
    drawn = draw_queries(sizes, learned(len(sizes)), seed)
    chosen = np.zeros(len(sizes), bool)
    chosen[drawn] = True
    sample = SampledTable(builder.qid)
    for number, rows in _numbered(path, builder, "reading a sample"):
        sample.append(rows, chosen[number])
    builder.fit(sample)
    return len(sizes)


def draw_queries(sizes: Numbers, among: Numbers, seed: int) -> Numbers:
    """Draw whole queries until they have :data:`SAMPLED` rows.

    Parameters
    ----------
    sizes : ndarray of int64
        The number of rows of every query.
    among : ndarray of int64
        The queries that may be drawn.
    seed : int
        The seed.

    Returns
    -------
    drawn : ndarray of int64
        At least one query, and all if they have no more rows.
    """
    order = np.random.default_rng((seed, _SAMPLE)).permutation(np.sort(among))
    count = int(np.searchsorted(np.cumsum(sizes[order]), SAMPLED, side="right"))
    return np.sort(order[: max(1, count)])


def _numbered(path: Path, builder: FeatureBuilder, what: str) -> Iterator[tuple[Numbers, "_Rows"]]:
    """(the number of the query of every row, the rows) of every block; rows that are dropped are in neither."""
    numbers = QueryNumbers()
    with throughput(what, os.path.getsize(path)) as bar:
        for table in iter_columns(path, lambda size: bar.advance_rows(0, size)):
            bar.advance_rows(table.n_rows, 0)
            kept = None
            if builder.unjudged == "drop":
                y = labels_of(table, builder.label, builder.grades)
                kept = None if y is None else ~(np.isnan(y) | (y < 0))
            ids, head, _ = runs_of_ids(table.written_identities(builder.qid))
            if kept is not None:
                run = np.arange(table.n_rows) if head is None else np.repeat(
                    np.arange(len(head)), np.diff(np.append(head, table.n_rows))
                )  # fmt: skip
                ids, head = ids[run[kept]], None
            number, _ = numbers.number(ids)
            if head is not None:
                number = np.repeat(number, np.diff(np.append(head, table.n_rows)))
            yield number, _Rows(table, kept)


class _Rows:
    """The rows of a block that are not dropped."""

    def __init__(self, table: RawTable, kept: NDArray[np.bool_] | None) -> None:
        self.table, self.kept = table, kept

    def places(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The places in the table of some of these rows."""
        places = np.arange(self.table.n_rows) if self.kept is None else np.flatnonzero(self.kept)
        return places[chosen]


class SampledTable(RawTable):
    """Some rows of a table, collected block by block; texts are held as bytes.

    Parameters
    ----------
    qid : str
        The column of query ids, which are kept as written.
    """

    def __init__(self, qid: str) -> None:
        self.names, self.n_rows, self._qid = (), 0, qid
        self._ids: list[Any] = []
        self._pieces: dict[str, list[Column]] = {}

    def append(self, rows: _Rows, chosen: NDArray[np.bool_]) -> None:
        """Take the chosen rows of a block."""
        table = rows.table
        if not self.names:
            self.names = table.names
            self._pieces = {name: [] for name in table.names}
        if not chosen.any():
            return
        places = rows.places(chosen)
        self.n_rows += len(places)
        self._ids.append(table.written_identities(self._qid)[places])
        for name in self.names:
            column = table.column(name)
            values: Any = column.values if column.stored == "other" else column.values[places]
            if column.stored == "text":  # what is missing is the empty text, which no other value is
                values = StringColumn.of(["" if text is None else text for text in values.tolist()])
            self._pieces[name].append(
                Column(name, column.stored, values, column.decimal, column.type_name, column.first_row)
            )

    def column(self, name: str) -> Column:
        """One column by name."""
        pieces = self._pieces[name]
        kinds = sorted({one.stored for one in pieces})
        if len(kinds) > 1:
            return Column(name, "other", np.empty(0), type_name=" and ".join(kinds))
        stored, values = pieces[0].stored, [one.values for one in pieces]
        if stored != "text":
            return Column(name, stored, np.concatenate(values), type_name=pieces[0].type_name)
        texts = np.empty(self.n_rows, dtype=object)
        texts[:] = [text or None for piece in values for text in cast(StringColumn, piece)]
        return Column(name, "text", texts, pieces[0].decimal)

    def identities(self, name: str) -> NDArray[Any]:
        """The query ids; no other column is asked for."""
        if isinstance(self._ids[0], StringColumn):
            return parse_ids(StringColumn.concat(self._ids))
        return np.concatenate(self._ids)


def write_built_parts(
    builder: FeatureBuilder, path: Path, folder: Path, *, missing: Missing, memory: int, n_queries: int | None = None
) -> None:
    """Build the features of all rows of a table, and write them as a data set in parts.

    Parameters
    ----------
    builder : FeatureBuilder
        The fitted builder, which the data set remembers.
    path : path
        The file.
    folder : path
        The folder to write.
    missing : {"error", "zero", "min", "keep"}
        What to do with gaps that the builder leaves.
    memory : int
        Bytes of rows that are put into order together.
    n_queries : int, default=None
        The number of queries that the file had when the builder learned.
    """
    name = os.fspath(path)

    def blocks(on_read: OnRead) -> Iterator[SourceBlock]:
        for table in iter_columns(path, on_read):
            try:
                rows = builder._block(table)
                yield block_of_rows(rows, builder.feature_names_out_, missing, name, table.first_row)
            except DataError as error:
                raise DataError(
                    f"{name}: {error}; features were learned from a sample of {SAMPLED:,} rows: leave the column out, "
                    f"or say what it is (rankwise inspect {name} shows how)"
                ) from error

    with PartsWriter(folder, part_bytes=PART_BYTES, distinct=True) as writer:
        count = 0
        for queries in grouped_blocks(writer, blocks, os.path.getsize(path), "float64", missing, memory):
            count += len(queries)
            writer.append(queries._replace(built_by=builder))
        if n_queries not in (None, count):
            raise DataError(f"{name} was changed while it was read: it had {n_queries:,} queries and now has {count:,}")
