"""Click logs from tables, CSV text and OpenSearch User Behavior Insights.

CSV and UBI are read in blocks of whole sessions: a log larger than memory can be evaluated block by block. Of
UBI events only the clicked ids are kept in memory; queries are streamed.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Literal

from rankwise._parameters import PositiveInt, validated
from rankwise.clicks.log import ClickLog
from rankwise.errors import DataError, FileFormatError, warn
from rankwise.io.sources import lines_of
from rankwise.io.tables.csv import open_csv

_NEEDED = ("session", "qid", "docid", "position", "click")
_OPTIONAL = ("version", "swap", "swapped", "exploration", "pool", "logged_rank")
_NUMBERS = ("position", "click", "swap", "swapped", "exploration", "pool", "logged_rank")
_WORDS = {"true": 1.0, "false": 0.0}


def from_frame(frame: Any, columns: Mapping[str, str]) -> ClickLog:
    """A log from a data frame; see ``ClickLog.from_frame``."""
    from rankwise.io.tables.frames import open_frame

    table = open_frame(frame)
    chosen = _columns(table.columns, columns, "the table")
    return ClickLog.from_rows(**{name: table[own].to_numpy() for name, own in chosen.items()}, where="from_frame")


@validated
def iter_csv(
    path: str | os.PathLike[str], columns: Mapping[str, str], sessions: PositiveInt = 100_000
) -> Iterator[ClickLog]:
    """Blocks of whole sessions from a CSV file; see ``ClickLog.iter_csv``."""
    return _logs_of(_csv_sessions(path, columns), sessions, os.fspath(path))


def _csv_sessions(path: str | os.PathLike[str], columns: Mapping[str, str]) -> Iterator[dict[str, list[Any]]]:
    """The columns of every session of a CSV file."""
    with open_csv(path) as text:
        chosen = _columns(text.names, columns, os.fspath(path))
        places = {field: text.names.index(own) for field, own in chosen.items()}
        seen: set[str] = set()
        for session, lines in groupby(text.records(), lambda record: record[1][places["session"]]):
            page: dict[str, list[Any]] = {field: [] for field in places}
            for line, record in lines:
                if session in seen:
                    raise FileFormatError(
                        f"{text.places.at(line)}: session {session!r:.40} returns after its lines have ended: the "
                        "lines of a session stand together"
                    )
                for field, place in places.items():
                    cell = record[place]
                    page[field].append(_number(cell, field, text.places.at, line) if field in _NUMBERS else cell)
            seen.add(session)
            yield page


def _logs_of(pages: Iterator[dict[str, list[Any]]], sessions: int, where: str) -> Iterator[ClickLog]:
    """Logs of so many sessions, each of which is given by its columns."""
    for columns in pages:
        for page in islice(pages, sessions - 1):
            for field, values in page.items():
                columns[field] += values
        yield ClickLog.from_rows(**columns, where=where)


@validated
def iter_ubi(
    queries: str | os.PathLike[str],
    events: str | os.PathLike[str],
    *,
    clicks: Sequence[str] = ("click", "click_through"),
    qid: str = "user_query",
    version: str | None = None,
    depth: int | None = None,
    strange: Literal["warn", "error"] = "warn",
    repeated: Literal["error", "first"] = "error",
    sessions: PositiveInt = 100_000,
) -> Iterator[ClickLog]:
    """Read OpenSearch User Behavior Insights in blocks of sessions.

    A session is a line of ``ubi_queries``: its id is ``query_id``, its query ``user_query``, and its page
    ``query_response_hit_ids`` in their order. A click is a line of ``ubi_events`` with that ``query_id``, an
    ``action_name`` among ``clicks``, and ``event_attributes.object.object_id``; an event without an object id counts
    for the hit at ``event_attributes.position.ordinal``, where the first hit is 1. Lines without hits are left out.

    Parameters
    ----------
    queries, events : path
        JSON lines (.gz too); documents as indexed, or hits of a search with ``_source``.
    clicks : sequence of str, default=("click", "click_through")
        The values of ``action_name`` that are clicks.
    qid : str, default="user_query"
        The field of ``ubi_queries`` that tells queries apart.
    version : str, default=None
        The entry of ``query_attributes`` that names the logging ranker. Entries ``swap``, ``swapped``, ``exploration``,
        ``pool`` and ``logged_hit_ids`` (the logging ranker's own page) describe experiments, where all lines have them.
    depth : int, default=None
        Number of hits that a page showed; None: all hits.
    strange : {"warn", "error"}, default="warn"
        What to do with clicks on documents that the page did not show; they are left out, and counted in the warning.
    repeated : {"error", "first"}, default="error"
        What to do with a second line of the same ``query_id``, as paging writes it.
    sessions : int, default=100_000
        Sessions per block.

    Returns
    -------
    iterator of ClickLog
        The blocks.

    Raises
    ------
    FileFormatError
        If a line is not JSON or has not the fields above, by file and line.

    Warns
    -----
    DataWarning
        If clicks are on documents that were not shown, or belong to no query.
    """
    clicked = _read_clicks(events, frozenset(clicks))

    def pages() -> Iterator[dict[str, list[Any]]]:
        seen: set[str] = set()
        lost, total = 0, sum(map(len, clicked.values()))
        experiment: tuple[str, ...] | None = None
        for number, line in _documents(queries):
            where = f"{os.fspath(queries)}, line {number:,}"
            session, hits = line.get("query_id"), line.get("query_response_hit_ids")
            if not isinstance(session, str) or not session:
                raise FileFormatError(f"{where}: query_id must be a non-empty string, got {session!r:.40}")
            if hits is not None and not isinstance(hits, list):
                raise FileFormatError(f"{where}: query_response_hit_ids must be a list, got {type(hits).__name__}")
            if session in seen:
                if repeated == "error":
                    raise FileFormatError(f"{where}: query_id {session!r:.40} occurs twice: keep one line of each")
                continue
            seen.add(session)
            hits = [str(one) for one in (hits or ())][:depth]
            if not hits:
                clicked.pop(session, None)
                continue
            if qid not in line:
                raise FileFormatError(f"{where}: there is no {qid!r}, which identifies the query")
            found = _experiment(line.get("query_attributes") or {}, version, hits, where)
            experiment = tuple(found) if experiment is None else experiment
            if experiment != tuple(found):
                raise FileFormatError(
                    f"{where}: query_attributes must have {experiment}, as earlier lines do, got {tuple(found)}"
                )
            marks = {_hit(one, hits) for one in clicked.pop(session, ())}
            lost += len(marks - set(hits))
            yield {
                "session": [session] * len(hits),
                "qid": [str(line[qid])] * len(hits),
                "docid": hits,
                "position": list(range(1, len(hits) + 1)),
                "click": [one in marks for one in hits],
                **found,
            }
        if experiment is None:
            raise FileFormatError(f"{os.fspath(queries)} has no query with query_response_hit_ids")
        orphans = sum(map(len, clicked.values()))
        if lost or orphans:
            sentence = (
                f"{os.fspath(events)}: of {total:,} clicks {lost:,} are on documents that their page did not show, and "
                f"{orphans:,} belong to no query with hits; they are left out"
            )
            if strange == "error":
                raise FileFormatError(sentence)
            warn(sentence)

    return _logs_of(pages(), sessions, os.fspath(queries))


def _hit(mark: Any, hits: list[str]) -> Any:
    """The id of a clicked hit, which an event without an object id names by its ordinal."""
    return hits[mark - 1] if isinstance(mark, int) and 0 < mark <= len(hits) else mark


def _experiment(attributes: Any, version: str | None, hits: list[str], where: str) -> dict[str, list[Any]]:
    """The columns of a log that ``query_attributes`` describe."""
    if not isinstance(attributes, dict):
        raise FileFormatError(f"{where}: query_attributes must be an object, got {type(attributes).__name__}")
    names = [name for name in ("swap", "swapped", "exploration", "pool") if name in attributes]
    found: dict[str, list[Any]] = {}
    if version is not None:
        if version not in attributes:
            raise FileFormatError(f"{where}: query_attributes must have {version!r}, which names the logging ranker")
        found["version"] = [str(attributes[version])] * len(hits)
    found |= {name: [attributes[name]] * len(hits) for name in names}
    if "logged_hit_ids" in attributes:
        rank = {str(one): place for place, one in enumerate(attributes["logged_hit_ids"], start=1)}
        found["logged_rank"] = [rank.get(one, 0) for one in hits]
    return found


def _read_clicks(events: str | os.PathLike[str], names: frozenset[str]) -> dict[str, set[Any]]:
    """The clicked ids (or ordinals, as int) by query id."""
    found: dict[str, set[Any]] = {}
    for number, event in _documents(events):
        where = f"{os.fspath(events)}, line {number:,}"
        action = event.get("action_name")
        if not isinstance(action, str):
            raise FileFormatError(f"{where}: action_name must be a string, got {action!r:.40}")
        query = event.get("query_id")
        if action not in names or not isinstance(query, str):
            continue
        attributes = event.get("event_attributes") or {}
        shown = attributes.get("object") or {} if isinstance(attributes, dict) else {}
        place = attributes.get("position") or {} if isinstance(attributes, dict) else {}
        if isinstance(shown, dict) and shown.get("object_id") is not None:
            found.setdefault(query, set()).add(str(shown["object_id"]))
        elif isinstance(place, dict) and isinstance(place.get("ordinal"), int):
            found.setdefault(query, set()).add(place["ordinal"])
        else:
            raise FileFormatError(
                f"{where}: a click must have event_attributes.object.object_id or event_attributes.position.ordinal"
            )
    return found


def _documents(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, JSON object) of every line that is not empty; ``_source`` of search hits is unwrapped."""
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise FileFormatError(f"{os.fspath(path)}, line {number:,}: not a line of JSON ({error})") from None
        found = found.get("_source", found) if isinstance(found, dict) else found
        if not isinstance(found, dict):
            raise FileFormatError(
                f"{os.fspath(path)}, line {number:,}: expected a JSON object, got {line.decode()!r:.40}"
            )
        yield number, found


def _columns(names: Iterable[str], given: Mapping[str, str], where: str) -> dict[str, str]:
    """The column of every parameter of ``ClickLog.from_rows`` that the table has."""
    names = list(names)
    unknown = [parameter for parameter in given if parameter not in (*_NEEDED, *_OPTIONAL)]
    if unknown:
        raise DataError(f"the columns of a click log are {', '.join((*_NEEDED, *_OPTIONAL))}, got {unknown[0]!r}")
    for parameter, column in {**{name: name for name in _NEEDED}, **given}.items():
        if column not in names:
            raise DataError(
                f"{where} has no column {column!r} for {parameter}; available: {', '.join(map(str, names))[:200]}"
            )
    chosen = {name: given.get(name, name) for name in (*_NEEDED, *_OPTIONAL)}
    return {name: own for name, own in chosen.items() if own in names}


def _number(cell: str, field: str, place: Callable[[int], str], line: int) -> float:
    try:
        return _WORDS[cell.strip().lower()] if cell.strip().lower() in _WORDS else float(cell)
    except ValueError:
        raise FileFormatError(f"{place(line)}: {field} must be a number, got {cell!r:.40}") from None
