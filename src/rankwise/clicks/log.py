"""`ClickLog`: sessions of a search engine, what each of them showed in which order, and what was clicked.

A log has one row per shown document, session after session and position after position. It may be joined with the
candidates of its queries (:meth:`ClickLog.join`), a `Queries` with features and document ids, which new rankers score.
Clicks are 0 or 1 per document; several clicks on one document in one session count once.

A session may come from one of two experiments, which the log describes by three columns:

- a *swap* of positions 1 and ``swap`` that a coin decided, ``swapped`` or not; 0 in ``swap`` for other sessions;
- *exploration*: with probability ``exploration`` the page was a uniformly random order of the query's ``pool``
  candidates, cut at the page's length; otherwise the page of the logging ranker, by which ``logged_rank`` counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._parameters import validated
from rankwise._tables import ShownAsFacts, Table, notebook_html, paragraph
from rankwise.errors import DataError
from rankwise.queries.fingerprints import is_among
from rankwise.queries.queries import Queries, as_queries

if TYPE_CHECKING:
    from os import PathLike

    from rankwise.clicks.propensities import Propensities

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# columns with one value per session, and those with one value per shown document
_PER_SESSION = ("session", "qid", "version", "swap", "swapped", "exploration", "pool")
_SHOWN_POSITIONS = 10  # of a log in a notebook
_PER_ROW = ("docid", "position", "click", "logged_rank", "row")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClickLog(ShownAsFacts):
    """Sessions with the documents that they showed and the clicks on them.

    :meth:`from_frame`, :meth:`from_csv` and :meth:`from_ubi` make logs from data, :func:`~rankwise.clicks.simulate`
    makes them from judged queries.

    Parameters
    ----------
    start : ndarray of int64, shape (n_sessions + 1,)
        Session s owns the rows ``start[s]:start[s + 1]``.
    session : ndarray, shape (n_sessions,)
        One id per session, without repeats.
    qid : ndarray, shape (n_sessions,)
        The query of each session.
    docid : ndarray, shape (n_shown,)
        The document of each row.
    position : ndarray of int64, shape (n_shown,)
        Its position, 1 at the top; positions climb within a session.
    click : ndarray of bool, shape (n_shown,)
        Whether it was clicked.
    version : ndarray, shape (n_sessions,), default=None
        The logging ranker of each session; None: one ranker.
    swap : ndarray of int64, shape (n_sessions,), default=None
        The position that a coin swapped with position 1 or did not; 0: no such experiment.
    swapped : ndarray of bool, shape (n_sessions,), default=None
        Whether it did.
    exploration : ndarray of float64, shape (n_sessions,), default=None
        Probability with which the session's page was shuffled; None: never.
    pool : ndarray of int64, shape (n_sessions,), default=None
        Number of candidates that shuffled pages are drawn from, those of the logging ranker's page among them.
    logged_rank : ndarray of int64, shape (n_shown,), default=None
        Position of the document on the page of the logging ranker, 0 if it is not on it; None: ``position``. Needed
        where pages were shuffled in some sessions only.
    row : ndarray of int64, shape (n_shown,), default=None
        Row of each shown document in ``documents``.
    query : ndarray of int64, shape (n_sessions,), default=None
        Number of each session's query in ``documents``.
    documents : Queries, default=None
        The candidates of the queries.
    propensities : Propensities, default=None
        Position model for learning, see :meth:`with_propensities`.
    tau : float, default=0.0
        Clipping for learning.

    Examples
    --------
    >>> import numpy as np
    >>> log = ClickLog.from_rows(
    ...     session=["s1", "s1", "s2"], qid=["q", "q", "q"], docid=["a", "b", "a"], position=[1, 2, 1], click=[0, 1, 1]
    ... )
    >>> log
    ClickLog(2 sessions, 3 shown, 2 clicks, 1 query, positions 1 to 2)
    """

    start: Ints
    session: NDArray[Any]
    qid: NDArray[Any]
    docid: NDArray[Any]
    position: Ints
    click: NDArray[np.bool_]
    version: NDArray[Any] | None = None
    swap: Ints | None = None
    swapped: NDArray[np.bool_] | None = None
    exploration: Floats | None = None
    pool: Ints | None = None
    logged_rank: Ints | None = None
    row: Ints | None = None
    query: Ints | None = None
    documents: Queries | None = field(default=None)
    propensities: "Propensities | None" = None
    tau: float = 0.0

    # ------------------------------------------------------------------------------------------- making one

    @classmethod
    def from_rows(
        cls,
        *,
        session: Sequence[Any] | NDArray[Any],
        qid: Sequence[Any] | NDArray[Any],
        docid: Sequence[Any] | NDArray[Any],
        position: ArrayLike,
        click: ArrayLike,
        version: Sequence[Any] | NDArray[Any] | None = None,
        swap: ArrayLike | None = None,
        swapped: ArrayLike | None = None,
        exploration: ArrayLike | None = None,
        pool: ArrayLike | None = None,
        logged_rank: ArrayLike | None = None,
        where: str = "ClickLog",
    ) -> "ClickLog":
        """Make a log from columns with one value per shown document, in any order.

        Parameters
        ----------
        session, qid, docid : sequence, length n_shown
            Ids.
        position : array-like of int, shape (n_shown,)
            Positions, 1 at the top.
        click : array-like, shape (n_shown,)
            Clicks: booleans or counts; counts above 1 count once.
        version, swap, swapped, exploration, pool : array-like, shape (n_shown,), default=None
            What :class:`ClickLog` keeps per session; equal within a session.
        logged_rank : array-like of int, shape (n_shown,), default=None
            See :class:`ClickLog`.
        where : str, default="ClickLog"
            The source, for error messages.

        Returns
        -------
        ClickLog
            The log; sessions in order of first appearance.

        Raises
        ------
        DataError
            If a column has another length, a position is not a whole number of 1 or more, or a session shows two
            documents at one position, one document twice, or holds two queries.
        """
        from rankwise.clicks.checks import check_rows

        optional = {
            "version": version, "swap": swap, "swapped": swapped, "exploration": exploration, "pool": pool,
            "logged_rank": logged_rank,
        }  # fmt: skip
        return cls(**check_rows(where, session, qid, docid, position, click, optional))

    @classmethod
    def from_frame(cls, frame: Any, **columns: str) -> "ClickLog":
        """Make a log from a polars, pandas or Arrow table with one row per shown document.

        Parameters
        ----------
        frame : data frame
            The table.
        **columns : str
            Names of the columns, by the parameters of :meth:`from_rows`; those that are not given have the parameter's
            own name, and optional ones are used where the table has them.

        Returns
        -------
        ClickLog
            The log.
        """
        from rankwise.clicks.reading import from_frame

        return from_frame(frame, columns)

    @classmethod
    def from_csv(cls, path: "str | PathLike[str]", **columns: str) -> "ClickLog":
        """Read a log from a CSV file (.gz too) with one line per shown document; see :meth:`from_frame`.

        Parameters
        ----------
        path : path
            The file.
        **columns : str
            Names of the columns, as in :meth:`from_frame`.

        Returns
        -------
        ClickLog
            The log.
        """
        from rankwise.clicks.reading import iter_csv

        return cls.concat(list(iter_csv(path, columns)))

    @classmethod
    def iter_csv(cls, path: "str | PathLike[str]", *, sessions: int = 100_000, **columns: str) -> Iterator["ClickLog"]:
        """Read a CSV file in blocks of whole sessions, for logs larger than memory.

        Parameters
        ----------
        path : path
            The file; the lines of a session stand together.
        sessions : int, default=100_000
            Sessions per block.
        **columns : str
            Names of the columns, as in :meth:`from_frame`.

        Returns
        -------
        iterator of ClickLog
            The blocks; a session that returns after its lines have ended raises an error.
        """
        from rankwise.clicks.reading import iter_csv

        return iter_csv(path, columns, sessions)

    @classmethod
    def from_ubi(cls, queries: "str | PathLike[str]", events: "str | PathLike[str]", **options: Any) -> "ClickLog":
        """Read OpenSearch User Behavior Insights: JSON lines of ``ubi_queries`` and ``ubi_events``.

        Parameters
        ----------
        queries : path
            Documents of the index ``ubi_queries``, one per line (.gz too); hits with ``_source`` are unwrapped.
        events : path
            Documents of the index ``ubi_events``.
        **options : object
            The options of :func:`rankwise.clicks.iter_ubi`.

        Returns
        -------
        ClickLog
            One session per query id with shown documents.
        """
        from rankwise.clicks.reading import iter_ubi

        return cls.concat(list(iter_ubi(queries, events, **options)))

    @classmethod
    def concat(cls, logs: Sequence["ClickLog"]) -> "ClickLog":
        """Join logs, session after session.

        Parameters
        ----------
        logs : sequence of ClickLog
            The logs, over the same ``documents`` or without any; a column that only some of them have is an error.

        Returns
        -------
        ClickLog
            All sessions.
        """
        if not logs:
            raise DataError("ClickLog.concat requires at least one log, got none (is the file empty?)")
        first = logs[0]
        if any(log.documents is not first.documents for log in logs):
            raise DataError("ClickLog.concat: all logs must have the same documents: call join after concat")
        joined: dict[str, Any] = {}
        for name in (*_PER_SESSION, *_PER_ROW, "query"):
            parts = [getattr(log, name) for log in logs]
            have = [part is not None for part in parts]
            if any(have) != all(have):
                raise DataError(f"ClickLog.concat: all logs or none must have {name}, got {sum(have)} of {len(logs)}")
            joined[name] = np.concatenate(parts) if all(have) else None
        shifts = np.cumsum([0, *(len(log.position) for log in logs[:-1])])
        starts = [log.start[1:] + shift for log, shift in zip(logs, shifts, strict=True)]
        if len(np.unique(joined["session"])) < len(joined["session"]):
            raise DataError("ClickLog.concat: session ids must be unique, got one in two logs")
        return replace(first, start=np.concatenate([np.zeros(1, np.int64), *starts]), **joined)

    # ------------------------------------------------------------------------------------------- looking at it

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def n_shown(self) -> int:
        """Number of shown documents, over all sessions."""
        return len(self.position)

    @property
    def sizes(self) -> Ints:
        """Number of shown documents of every session."""
        return np.diff(self.start)

    @property
    def depth(self) -> int:
        """The largest position; 0 for an empty log."""
        return int(self.position.max(initial=0))

    @property
    def session_of_row(self) -> Ints:
        """The session of every shown document."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def ranks(self) -> Ints:
        """Rank of every shown document by the logging ranker without exploration; 0: not on its page."""
        return self.position if self.logged_rank is None else self.logged_rank

    def hashes(self) -> NDArray[np.uint64]:
        """A 64-bit hash of every session id, by which logs and models recognize sessions.

        Returns
        -------
        ndarray of uint64, shape (n_sessions,)
            The same for the same id (as text) in every process.
        """
        digests = b"".join(blake2b(str(one).encode(), digest_size=8).digest() for one in self.session.tolist())
        return np.frombuffer(digests, dtype="<u8")

    def candidates(self, function: str) -> Queries:
        """The joined candidates, or an error that says how to join them."""
        if self.documents is None or self.row is None:
            raise DataError(f"{function} requires the candidates of the queries: call log.join(documents) first")
        return self.documents

    def __getitem__(self, key: Any) -> "ClickLog":
        """Sessions by slice, mask or numbers."""
        chosen = np.arange(len(self))[key]
        if chosen.ndim != 1:
            raise DataError(f"a ClickLog index must be a slice, a mask or session numbers, got {key!r:.60}")
        sizes = self.sizes[chosen]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.repeat(self.start[chosen] - start[:-1], sizes) + np.arange(start[-1])
        changes: dict[str, Any] = {"start": start}
        for names, places in ((_PER_SESSION, chosen), (("query",), chosen), (_PER_ROW, rows)):
            for name in names:
                values = getattr(self, name)
                changes[name] = None if values is None else values[places]
        return replace(self, **changes)

    def __repr__(self) -> str:
        queries = len(set(self.qid.tolist()))
        versions = "" if self.version is None else f", {len(set(self.version.tolist()))} logging rankers"
        joined = "" if self.documents is None else f", {self.documents.n_documents:,} candidates"
        return (
            f"ClickLog({len(self):,} sessions, {self.n_shown:,} shown, {int(self.click.sum()):,} clicks, "
            f"{queries:,} {'query' if queries == 1 else 'queries'}, positions 1 to {self.depth}{versions}{joined})"
        )

    def _repr_html_(self) -> str:
        """What it prints, and the clicks on each of the first positions, for notebooks."""
        from rankwise.clicks.checks import click_rates

        columns = click_rates(self).to_dict().items()
        table = Table({name: column[:_SHOWN_POSITIONS] for name, column in columns})
        return notebook_html(paragraph(repr(self)), table.html())

    # ------------------------------------------------------------------------------------------- making another

    @validated
    def join(self, documents: Queries, *, unknown: Literal["error", "drop"] = "error") -> "ClickLog":
        """Join the sessions with the candidates of their queries, by query id and document id.

        Parameters
        ----------
        documents : Queries
            The candidates, with ``qid`` and ``docid``; ids are compared as text.
        unknown : {"error", "drop"}, default="error"
            What to do with sessions that show a document, or have a query, that is not among the candidates.

        Returns
        -------
        ClickLog
            The log with ``documents``, ``row`` and ``query``.

        Raises
        ------
        DataError
            If a shown document is not a candidate, by name.
        """
        documents = as_queries(documents, "ClickLog.join")
        if documents.qid is None or documents.docid is None:
            missing = "query ids" if documents.qid is None else "document ids"
            raise DataError(f"ClickLog.join matches by qid and docid, but the documents have no {missing}")
        numbers = {str(name): number for number, name in enumerate(documents.names())}
        owner, ids = documents.query_of_row.tolist(), list(documents.docid)
        place = {(query, str(one)): row for row, (query, one) in enumerate(zip(owner, ids, strict=True))}
        query = np.array([numbers.get(str(one), -1) for one in self.qid.tolist()], dtype=np.int64)
        of_row = np.repeat(query, self.sizes).tolist()
        row = np.array(
            [place.get((q, str(d)), -1) for q, d in zip(of_row, self.docid.tolist(), strict=True)], dtype=np.int64
        )
        joined = replace(self, documents=documents, row=row, query=query)
        bad = query < 0
        bad[self.session_of_row[row < 0]] = True
        if not bad.any():
            return joined
        if unknown == "drop":
            return joined[~bad]
        first = int(np.argmax(bad))
        page = slice(self.start[first], self.start[first + 1])
        unmatched = self.docid[page][row[page] < 0].tolist()
        what = f"document {str(unmatched[0])!r}" if query[first] >= 0 and unmatched else "query"
        raise DataError(
            f"ClickLog.join: session {self.session[first]!s:.40} (query {self.qid[first]!s:.40}) has a {what} that is "
            f"not among the candidates ({int(bad.sum()):,} of {len(self):,} sessions have one): pass unknown='drop' "
            "to leave such sessions out, which changes the population of the values"
        )

    def with_propensities(self, propensities: "Propensities", *, tau: float) -> "ClickLog":
        """The log with a position model, which ``fit`` of rankers takes.

        Parameters
        ----------
        propensities : Propensities
            The position model.
        tau : float
            Propensities below it count as tau.

        Returns
        -------
        ClickLog
            The same sessions.
        """
        if not 0 < tau <= 1:
            raise DataError(f"with_propensities: tau must be in (0, 1], got {tau!r}")
        return replace(self, propensities=propensities, tau=float(tau))

    def as_training_queries(self, ranker: Any) -> Queries:
        """What a ranker learns from, see :func:`rankwise.clicks.training_queries`; ``fit`` calls it."""
        from rankwise.clicks.learning import check_linear, training_queries

        check_linear(ranker)
        if self.propensities is None:
            raise DataError(
                f"{ranker.name}.fit requires a ClickLog with a position model: use log.with_propensities(..., tau=...)"
            )
        return training_queries(self, self.propensities, tau=self.tau)

    @validated
    def split(
        self, parts: Sequence[float], *, by: Literal["session", "query"] = "session", random_state: int = 0
    ) -> list[Self]:
        """Divide the sessions at random.

        Parameters
        ----------
        parts : sequence of float
            Shares of the sessions (or of the queries), which sum to 1.
        by : {"session", "query"}, default="session"
            "query" keeps all sessions of a query together.
        random_state : int, default=0
            Seed.

        Returns
        -------
        list of ClickLog
            One log per share; sessions in their order.
        """
        shares = np.asarray(parts, dtype=np.float64)
        if shares.ndim != 1 or not len(shares) or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-9:
            raise DataError(f"split: parts must be positive shares that sum to 1, got {parts!r:.60}")
        code = np.arange(len(self)) if by == "session" else np.unique(self.qid.astype(str), return_inverse=True)[1]
        units = int(code.max(initial=-1)) + 1
        order = np.random.default_rng(random_state).permutation(units)
        ends = np.rint(np.cumsum(shares) * units).astype(int)
        part = np.empty(units, dtype=int)
        part[order] = np.searchsorted(ends, np.arange(units), side="right")
        return [self[np.flatnonzero(part[code] == number)] for number in range(len(shares))]  # type: ignore[misc]


def blocks_of(log: "ClickLog | Iterable[ClickLog]", function: str) -> Iterator[ClickLog]:
    """The log as one block, or the blocks of an iterable; a session that is given again raises an error.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        The sessions.
    function : str
        The caller, for error messages.

    Yields
    ------
    ClickLog
        The blocks.

    Raises
    ------
    DataError
        If a session id occurs twice, in one block or in two: its clicks would count twice.
    """
    if isinstance(log, (str, bytes)) or not isinstance(log, (ClickLog, Iterable)):
        raise DataError(f"{function}: log must be a ClickLog or an iterable of them, got {type(log).__name__}")
    seen = np.empty(0, dtype=np.uint64)  # ascending; eight bytes per session, whatever the size of the log
    for block in [log] if isinstance(log, ClickLog) else log:
        if not isinstance(block, ClickLog):
            raise DataError(
                f"{function}: log must be a ClickLog or an iterable of them, got {type(block).__name__} in it"
            )
        hashes = block.hashes()
        order = np.argsort(hashes, kind="stable")
        again = is_among(hashes, seen)
        again[order[1:]] |= hashes[order[1:]] == hashes[order[:-1]]
        if again.any():
            first = int(np.argmax(again))
            raise DataError(
                f"{function}: session ids must be unique, got {block.session[first]!s:.40} again "
                f"({int(again.sum()):,} of the {len(block):,} sessions of this block are repeated): leave out repeated "
                "blocks, and give each session its own id"
            )
        seen = np.insert(seen, np.searchsorted(seen, hashes[order]), hashes[order])
        yield block
