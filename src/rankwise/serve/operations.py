"""The operations of the HTTP interface: one table, from which the routes and the OpenAPI description are made.

An operation is a few lines that decode, call the service and encode. :mod:`rankwise.serve.app` has the frame in which
every operation runs. :func:`description` is the OpenAPI 3.1 document, from the table and the structs of the bodies.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from rankwise._extras import require
from rankwise._version import __version__
from rankwise.serve import structs
from rankwise.serve.log import LoopReply, RequestError
from rankwise.serve.metrics import Metrics
from rankwise.serve.service import Service, answer_of

msgspec = require("msgspec")

JSON, NDJSON, BINARY = "application/json", "application/x-ndjson", "application/vnd.rankwise.f32"
OCTETS = "application/octet-stream"
_LINES = 1_000  # rankings of one NDJSON body
# Bytes of a body that is read and ranked in the event loop, where it takes less than a millisecond: a thread would cost
# more than it saves. Numbers as text cost about four times as much as bytes.
_SMALL, _SMALL_BINARY = 64 << 10, 256 << 10


class Request(NamedTuple):
    """A request whose token and body were checked."""

    path: dict[str, str]
    query: dict[str, str]
    kind: str
    body: bytes


class Answer(NamedTuple):
    """What goes back."""

    body: bytes
    status: int = 200
    kind: str = JSON


class Operation(NamedTuple):
    """One operation of the interface."""

    method: str
    path: str
    scope: str | None
    run: Callable[["Api", Request], Awaitable[Answer]]
    answer: Any
    body: Any = None
    query: tuple[str, ...] = ()
    many: bool = False
    kinds: tuple[str, ...] = (JSON,)


# --------------------------------------------------------------------------------------------------- operations


class Api:
    """The operations on one service."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self.service, self.metrics = service, metrics

    async def rank(self, request: Request) -> Answer:
        """Rank the documents of one query, or of one on every line of NDJSON."""
        if request.kind == NDJSON:
            lines = _lines(request.body, _LINES, "rankings")
            queries = await asyncio.to_thread(lambda: [structs.read_rank(line) for line in lines])
            await self._until(queries, request)
            return Answer(await asyncio.to_thread(self._rank_lines, queries), kind=NDJSON)
        X = None
        if request.kind in (BINARY, OCTETS):
            end = request.body.find(b"\n")
            if end < 0:
                raise RequestError(
                    "a binary body must be a line of JSON followed by the features as little-endian float32", 400
                )
            query, raw = structs.read_rank(request.body[:end]), request.body[end + 1 :]
            documents = len(query.ids or ())
            if documents == 0 or len(raw) % (4 * documents):
                raise RequestError(
                    f"the features must be float32 values, the same number for each of the {documents:,} ids, got "
                    f"{len(raw):,} bytes"
                )
            X = np.frombuffer(raw, "<f4").reshape(documents, -1)  # of bytes of its own, which nobody changes
            X = X.astype(np.float32, copy=False)  # where numbers end with their largest byte
        else:
            query = await self._apart(structs.read_rank, request.body, when=len(request.body) > _SMALL)
        await self._until([query], request)
        slow = len(request.body) > (_SMALL if X is None else _SMALL_BINARY) or query.explain
        slow = slow or not self.service.model(query.model).scorer.is_compiled
        return Answer(await self._apart(lambda: structs.encode(self.service.rank(query, X)), when=slow))

    async def _until(self, queries: list[structs.RankRequest], request: Request) -> None:
        """Wait for the last event that any of the queries wants to have been learned."""
        default = _whole(request.query, "min_seq") if "min_seq" in request.query else 0
        seq = max((default if one.min_seq is None else one.min_seq for one in queries), default=0)
        if seq:
            await self.service.wait_for(seq)

    def _rank_lines(self, requests: list[structs.RankRequest]) -> bytes:
        """The answers to several requests, one on each line; together they explain no more than one may."""
        found, explained = [], 0
        for request in requests:
            answer = self.service.rank(request)
            if request.explain:
                explained += sum(len(item.adds or ()) for item in answer.items)
                if explained > self.service.limits.explained:
                    raise RequestError(
                        f"an explained answer must have at most {self.service.limits.explained:,} contributions, got "
                        "more: explain fewer rankings in one request",
                        413,
                    )
            found.append(structs.encode(answer))
        return b"\n".join(found) + b"\n"

    @staticmethod
    async def _apart(work: Callable[..., Any], *args: Any, when: bool) -> Any:
        """Do some work, in a thread if it takes long: the event loop has other requests to answer."""
        return await asyncio.to_thread(work, *args) if when else work(*args)

    async def feedback(self, request: Request) -> Answer:
        """Record what became of rankings: one event, an array, or one on every line of NDJSON."""
        large, many = len(request.body) > _SMALL, True
        if request.kind == NDJSON:
            lines = _lines(request.body, structs.MOST_EVENTS, "events")
            events = await self._apart(lambda: [structs.read_feedback(line) for line in lines], when=large)
        elif request.body.lstrip()[:1] == b"[":
            events = await self._apart(structs.read_many_feedback, request.body, when=large)
        else:
            events, many = [await self._apart(structs.read_feedback, request.body, when=large)], False
        replies = [LoopReply() for _ in events]

        def record() -> None:
            for one, reply in zip(events, replies, strict=True):
                self.service.record(one, reply)

        # features that an event brings are scored
        await self._apart(record, when=large or any(one.ids is not None for one in events))
        if not many:
            return Answer(structs.encode(structs.FeedbackAnswer(*await self._in_time(replies[0].future))))
        outcomes = await self._in_time(asyncio.gather(*(one.future for one in replies), return_exceptions=True))
        found = [structs.encode(answer_of(each, one.id)) for one, each in zip(events, outcomes, strict=True)]
        if request.kind == NDJSON:
            return Answer(b"\n".join(found) + b"\n", kind=NDJSON)
        return Answer(b"[" + b",".join(found) + b"]")

    async def close(self, request: Request) -> Answer:
        """End the clicks of a ranking: it is learned now and not at the end of its window."""
        body = structs.read_close(request.body or b"{}")
        return await self._change(self.service.close_ranking(request.path["ranking"], body.id))

    async def models(self, request: Request) -> Answer:
        """All models."""
        return Answer(structs.encode([self.service.describe(name) for name in self.service.view.models]))

    async def model(self, request: Request) -> Answer:
        """One model."""
        return Answer(structs.encode(self.service.describe(request.path["name"])))

    async def upload(self, request: Request) -> Answer:
        """Add a model, or give it a new file: the body is what ``save`` wrote."""
        name = structs.read_name(structs.encode(request.path["name"]))
        done = await asyncio.to_thread(self.service.register, name, request.body, request.query.get("id"))
        return await self._change(done)

    async def versions(self, request: Request) -> Answer:
        """The recorded versions of a model; every event is a version, and these are rebuilt at once."""
        return Answer(structs.encode(await self._wait_for_commit(self.service.versions(request.path["name"]))))

    async def promote(self, request: Request) -> Answer:
        """Publish a version of a model (None: follow the newest), and make the model the default."""
        return await self._event("promote", request)

    async def rollback(self, request: Request) -> Answer:
        """Go back to a version, and pause learning until the model is thawed."""
        return await self._event("rollback", request)

    async def freeze(self, request: Request) -> Answer:
        """Pause learning; feedback is still recorded."""
        return await self._event("freeze", request)

    async def thaw(self, request: Request) -> Answer:
        """Resume learning, from the next event on."""
        return await self._event("thaw", request)

    async def _event(self, kind: str, request: Request) -> Answer:
        """One event about a model."""
        change = structs.read_change(request.body or b"{}")
        body = {"version": change.version, "note": change.note}
        return await self._change(self.service.change(kind, request.path["name"], body, change.id))

    async def ledger(self, request: Request) -> Answer:
        """Loss, mistakes and measure of a run so far, with the bounds that apply."""
        gamma, delta = _number(request.query, "gamma", 1e9), _number(request.query, "delta", 1.0)
        found = self.service.ledger(request.query.get("model"), 0.05 if delta is None else delta, gamma)
        return Answer(structs.encode(found))

    async def certificate(self, request: Request) -> Answer:
        """What is guaranteed about what a model has shown, simultaneously at all times."""
        return Answer(structs.encode(self.service.certificate(request.query.get("model"))))

    async def experiments(self, request: Request) -> Answer:
        """All experiments with their read-outs."""
        return Answer(structs.encode(self.service.experiments()))

    async def experiment(self, request: Request) -> Answer:
        """Begin an experiment between two models."""
        return await self._change(self.service.experiment(structs.read_experiment(request.body)))

    async def stop(self, request: Request) -> Answer:
        """End an experiment; its read-out stays."""
        body = structs.read_change(request.body or b"{}")
        return await self._change(self.service.change("stop", "", {"name": request.path["name"]}, body.id))

    async def status(self, request: Request) -> Answer:
        """Everything that the status page draws."""
        return Answer(structs.encode(self.status_of()))

    def status_of(self) -> dict[str, Any]:
        """Everything that the status page draws, as plain values."""
        service = self.service
        return {
            "at": time.time(),
            "up": time.time() - service.began,
            "seq": service.log.committed,
            "lag": service.log.committed - service.log.replay.seq,
            "counts": service.log.counts,
            "requests": self.metrics.requests(),
            "latency": {route: self.metrics.latency(route) for route in list(self.metrics.recent)},
            "alarms": service.alarms(),
            "models": [
                {
                    "about": service.describe(name),
                    "ledger": service.ledger(name),
                    "curve": list(service.curves.get(name, ())),
                    "drift": max(service.drift.shares(name), default=0.0),
                }
                for name in list(service.view.models)
            ],
            "experiments": service.experiments(),
        }

    async def health(self, request: Request) -> Answer:
        """Whether the process answers."""
        return Answer(b'{"status":"ok"}')

    async def ready(self, request: Request) -> Answer:
        """Whether there is a model, and the state can be written."""
        log = self.service.log
        if log.broken is not None or log.full or not self.service.view.models:
            raise RequestError("not ready: there is no model, or the state cannot be written", 503)
        return Answer(b'{"status":"ready"}')

    async def metrics_text(self, request: Request) -> Answer:
        """Metrics for Prometheus."""
        return Answer(self.metrics.text(), kind="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request) -> Answer:
        """This description."""
        return Answer(_description())

    async def page(self, request: Request) -> Answer:
        """The status page."""
        return Answer(files("rankwise.serve").joinpath("status.html").read_bytes(), kind="text/html; charset=utf-8")

    # ------------------------------------------------------------------------------------------- waiting

    async def _change(self, done: "Future[tuple[int, bool]]") -> Answer:
        found = structs.ChangeAnswer(*await self._wait_for_commit(done))
        await self.service.wait_for(found.seq)
        return Answer(structs.encode(found))

    async def _wait_for_commit(self, done: "Future[Any]") -> Any:
        return await self._in_time(asyncio.wrap_future(done))

    async def _in_time(self, waiting: "asyncio.Future[Any]") -> Any:
        try:
            async with asyncio.timeout(self.service.limits.wait):
                return await waiting
        except TimeoutError:
            raise RequestError(
                "the commit is taking too long and its outcome is unknown: send the same request again", 503
            ) from None


def _lines(body: bytes, most: int, what: str) -> list[bytes]:
    """The lines of NDJSON."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    if len(lines) > most:
        raise RequestError(f"a body must have at most {most:,} {what}, got {len(lines):,}", 413)
    return lines


def _whole(query: dict[str, str], name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", query[name]):
        raise RequestError(f"{name} must be a whole number, got {query[name]!r:.40}")
    return int(query[name])


def _number(query: dict[str, str], name: str, below: float) -> float | None:
    try:
        value = float(query[name]) if name in query else None
    except ValueError:
        value = float("nan")
    if value is not None and not 0 < value < below:
        raise RequestError(f"{name} must be a number above 0 and below {below:g}, got {query[name]!r:.40}")
    return value


_NAMED = "/v1/models/{name}"
OPERATIONS = (
    Operation("POST", "/v1/rank", "rank", Api.rank, structs.RankAnswer, structs.RankRequest, ("min_seq",),
              kinds=(JSON, NDJSON, BINARY)),
    Operation("POST", "/v1/feedback", "feedback", Api.feedback, structs.FeedbackAnswer, structs.Feedback, many=True,
              kinds=(JSON, NDJSON)),
    Operation("POST", "/v1/rankings/{ranking}/close", "feedback", Api.close, structs.ChangeAnswer,
              structs.CloseRequest),
    Operation("GET", "/v1/models", "read", Api.models, list[structs.ModelAnswer]),
    Operation("POST", _NAMED + ":promote", "admin", Api.promote, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":rollback", "admin", Api.rollback, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":freeze", "admin", Api.freeze, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":thaw", "admin", Api.thaw, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("GET", _NAMED + "/versions", "read", Api.versions, list[structs.VersionAnswer]),
    Operation("GET", _NAMED, "read", Api.model, structs.ModelAnswer),
    Operation("POST", _NAMED, "admin", Api.upload, structs.ChangeAnswer, bytes, ("id",), kinds=(OCTETS,)),
    Operation("GET", "/v1/ledger", "read", Api.ledger, structs.LedgerAnswer, query=("model", "delta", "gamma")),
    Operation("GET", "/v1/certificate", "read", Api.certificate, structs.CertificateAnswer, query=("model",)),
    Operation("GET", "/v1/experiments", "read", Api.experiments, list[structs.ExperimentAnswer]),
    Operation("POST", "/v1/experiments", "admin", Api.experiment, structs.ChangeAnswer, structs.ExperimentRequest),
    Operation("POST", "/v1/experiments/{name}:stop", "admin", Api.stop, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("GET", "/v1/status", "read", Api.status, dict),
    Operation("GET", "/healthz", None, Api.health, dict),
    Operation("GET", "/readyz", None, Api.ready, dict),
    Operation("GET", "/metrics", "read", Api.metrics_text, str),
    Operation("GET", "/openapi.json", None, Api.openapi, dict),
    Operation("GET", "/", None, Api.page, str),
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- description

_PATH = {"name": "The name of a model or of an experiment.", "ranking": "The id of a ranking."}
_QUERY = {
    "min_seq": ("Wait until this event is in the published models.", {"type": "integer", "minimum": 0}),
    "model": ("The model; without it the default one.", {"type": "string"}),
    "delta": (
        "The probability with which a bound may fail.",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    ),
    "gamma": ("A margin that is claimed, for mistake bounds.", {"type": "number", "exclusiveMinimum": 0}),
    "id": (
        "The id of this event, which makes retries harmless.",
        {"type": "string", "minLength": 1, "maxLength": structs.LONGEST_ID},
    ),
}
_REFUSALS = ("400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "503")


@cache
def _description() -> bytes:
    """The description as it is sent: anybody may ask for it, so it is made once."""
    return json.dumps(description(OPERATIONS)).encode()


def description(operations: Sequence[Any]) -> dict[str, Any]:
    """Describe the interface.

    Parameters
    ----------
    operations : sequence of Operation
        The operations.

    Returns
    -------
    dict of str to object
        The OpenAPI document.
    """
    kinds = list({id(one): one for each in operations for one in (each.body, each.answer) if _is_struct(one)}.values())
    schemas, components = msgspec.json.schema_components(
        [*kinds, structs.Problem], ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(map(repr, [*kinds, structs.Problem]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankwise serve",
            "version": __version__,
            "description": "An online ranking service that learns from feedback and loses nothing it acknowledged.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _is_struct(kind: Any) -> bool:
    return kind not in (None, str, dict, bytes)


def _schema(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    if kind is bytes:
        return {"type": "string", "format": "binary"}
    if not _is_struct(kind):
        return {"type": "object"} if kind is dict else {"type": "string"}
    return dict(known[repr(kind)])


def _one_or_many(one: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a body that may be an array, if it may."""
    return {"anyOf": [schema, {"type": "array", "items": schema}]} if one.many else schema


def _operation(one: Any, known: dict[str, Any]) -> dict[str, Any]:
    """One operation."""
    lines = (one.run.__doc__ or "").strip().splitlines()
    named = [part[1 : part.index("}")] for part in one.path.split("/") if part.startswith("{")]
    described: list[tuple[str, str, str, Any]] = [(name, "path", _PATH[name], {"type": "string"}) for name in named]
    described += [(name, "query", *_QUERY[name]) for name in one.query]
    parameters = [
        {"name": name, "in": place, "required": place == "path", "schema": schema, "description": text}
        for name, place, text, schema in described
    ]
    kind = "application/json" if one.answer is not str else "text/html" if one.path == "/" else "text/plain"
    answer = _one_or_many(one, _schema(one.answer, known))
    found: dict[str, Any] = {
        "operationId": one.run.__name__,
        "summary": lines[0] if lines else one.path,
        "responses": {
            "200": {"description": "Done.", "content": {kind: {"schema": answer}}},
            **{
                status: {
                    "description": "RequestError; the body says why.",
                    "content": {"application/problem+json": {"schema": known[repr(structs.Problem)]}},
                }
                for status in _REFUSALS
            },
        },
        "security": [{"token": []}] if one.scope is not None else [],
    }
    if parameters:
        found["parameters"] = parameters
    if one.body is not None:
        schema = _schema(one.body, known)
        content: dict[str, Any] = {}
        for name in one.kinds:
            of = schema if name == JSON or one.body is bytes else {"type": "string"}
            content[name] = {"schema": _one_or_many(one, of) if name == JSON else of}
        required = one.path in ("/v1/rank", "/v1/feedback", "/v1/experiments") or one.body is bytes
        found["requestBody"] = {"required": required, "content": content}
    return found
