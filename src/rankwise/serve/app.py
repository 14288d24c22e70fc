"""The HTTP interface: one table of operations, from which the routes and the OpenAPI description are made.

Every operation runs in the same frame (:class:`_Route`): it gives the request an id, looks at the token, reads the body
within its limits, counts, logs, and turns every refusal into a problem in JSON. An operation itself is a few lines that
decode, call the service and encode.
"""

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._extras import require
from rankwise.serve import structs
from rankwise.serve.log import LoopReply, Refused
from rankwise.serve.metrics import Metrics
from rankwise.serve.service import Service, answer_of
from rankwise.serve.tokens import ANYBODY, Caller, Tokens, is_loopback

routing = require("starlette.routing")

logger = logging.getLogger("rankwise.serve.access")

JSON, NDJSON, BINARY = "application/json", "application/x-ndjson", "application/vnd.rankwise.f32"
_OCTETS = "application/octet-stream"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LINES = 1_000  # rankings of one NDJSON body

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Ask(NamedTuple):
    """A request whose token and body were checked."""

    path: dict[str, str]
    query: dict[str, str]
    kind: str
    body: bytes
    caller: Caller


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
    run: Callable[["_Api", Ask], Awaitable[Answer]]
    answer: Any
    body: Any = None
    query: tuple[str, ...] = ()
    many: bool = False
    kinds: tuple[str, ...] = (JSON,)


# --------------------------------------------------------------------------------------------------- operations


class _Api:
    """The operations on one service."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self.service, self.metrics = service, metrics

    async def rank(self, ask: Ask) -> Answer:
        """Rank the documents of one query, or of one on every line of NDJSON."""
        if ask.kind == NDJSON:
            lines = [line for line in ask.body.split(b"\n") if line.strip()]
            if len(lines) > _LINES:
                raise Refused(f"a body has at most {_LINES:,} rankings: found {len(lines):,}", 413)
            found = [structs.encode(await self._rank(structs.read_rank(line), ask, None)) for line in lines]
            return Answer(b"\n".join(found) + b"\n", kind=NDJSON)
        if ask.kind in (BINARY, _OCTETS):
            end = ask.body.find(b"\n")
            if end < 0:
                raise Refused("a binary body is a line of JSON and then the features as little-endian float32", 400)
            request, raw = structs.read_rank(ask.body[:end]), ask.body[end + 1 :]
            documents = len(request.ids or ())
            if documents == 0 or len(raw) % (4 * documents):
                raise Refused(f"{len(raw):,} bytes are no float32 features of {documents:,} ids", 422)
            X = np.frombuffer(raw, "<f4").reshape(documents, -1).copy()  # one's own, aligned and writable
            return Answer(structs.encode(await self._rank(request, ask, X)))
        return Answer(structs.encode(await self._rank(structs.read_rank(ask.body), ask, None)))

    async def _rank(self, request: structs.RankRequest, ask: Ask, X: Any) -> structs.RankAnswer:
        seq = request.min_seq
        if seq is None and "min_seq" in ask.query:
            seq = _whole(ask.query, "min_seq")
        if seq is not None:
            await self.service.wait_for(seq)
        if self.service.model(request.model).scorer.is_compiled:
            return self.service.rank(request, X)
        return await asyncio.to_thread(self.service.rank, request, X)

    async def feedback(self, ask: Ask) -> Answer:
        """Record what became of rankings: one event, an array, or one on every line of NDJSON."""
        if ask.kind == NDJSON:
            told = [structs.read_feedback(line) for line in ask.body.split(b"\n") if line.strip()]
        elif ask.body.lstrip()[:1] == b"[":
            told = structs.read_many_feedback(ask.body)
        else:
            return Answer(structs.encode(await self._one(structs.read_feedback(ask.body))))
        if len(told) > structs.MOST_EVENTS:
            raise Refused(f"a body has at most {structs.MOST_EVENTS:,} events: found {len(told):,}", 413)
        replies = [LoopReply() for _ in told]
        for one, reply in zip(told, replies, strict=True):
            self.service.record(one, reply)
        outcomes = await self._in_time(asyncio.gather(*(one.future for one in replies), return_exceptions=True))
        found = [structs.encode(answer_of(each, one.id)) for one, each in zip(told, outcomes, strict=True)]
        if ask.kind == NDJSON:
            return Answer(b"\n".join(found) + b"\n", kind=NDJSON)
        return Answer(b"[" + b",".join(found) + b"]")

    async def _one(self, told: structs.Feedback) -> structs.FeedbackAnswer:
        reply = LoopReply()
        self.service.record(told, reply)
        return structs.FeedbackAnswer(*await self._in_time(reply.future))

    async def close(self, ask: Ask) -> Answer:
        """End the clicks of a ranking: it is learned now and not at the end of its window."""
        told = structs.read_close(ask.body or b"{}")
        return await self._change(self.service.close_ranking(ask.path["ranking"], told.id))

    async def models(self, ask: Ask) -> Answer:
        """All models."""
        return Answer(structs.encode([self.service.describe(name) for name in self.service.view.models]))

    async def model(self, ask: Ask) -> Answer:
        """One model."""
        return Answer(structs.encode(self.service.describe(ask.path["name"])))

    async def upload(self, ask: Ask) -> Answer:
        """Add a model, or give it a new file: the body is what ``save`` wrote."""
        name = structs.read_name(structs.encode(ask.path["name"]))
        done = await asyncio.to_thread(self.service.register, name, ask.body, ask.query.get("id"))
        return await self._change(done)

    async def versions(self, ask: Ask) -> Answer:
        """The recorded versions of a model; every event is a version, and these are remade at once."""
        return Answer(structs.encode(await self._committed(self.service.versions(ask.path["name"]))))

    async def promote(self, ask: Ask) -> Answer:
        """Publish a version of a model (None: follow the newest), and make the model the default."""
        return await self._event("promote", ask)

    async def rollback(self, ask: Ask) -> Answer:
        """Go back to a version, and learn no more until the model is thawed."""
        return await self._event("rollback", ask)

    async def freeze(self, ask: Ask) -> Answer:
        """Learn no more; feedback is recorded as before."""
        return await self._event("freeze", ask)

    async def thaw(self, ask: Ask) -> Answer:
        """Learn again, from the next event on."""
        return await self._event("thaw", ask)

    async def _event(self, kind: str, ask: Ask) -> Answer:
        """One event about a model."""
        told = structs.read_change(ask.body or b"{}")
        body = {"version": told.version, "note": told.note}
        return await self._change(self.service.change(kind, ask.path["name"], body, told.id))

    async def ledger(self, ask: Ask) -> Answer:
        """Loss, mistakes and measure of a run so far, with the bounds that apply."""
        gamma, delta = _number(ask.query, "gamma"), _number(ask.query, "delta")
        found = self.service.ledger(ask.query.get("model"), 0.05 if delta is None else delta, gamma)
        return Answer(structs.encode(found))

    async def certificate(self, ask: Ask) -> Answer:
        """What is guaranteed about what a model has shown, at all times at once."""
        return Answer(structs.encode(self.service.certificate(ask.query.get("model"))))

    async def experiments(self, ask: Ask) -> Answer:
        """All experiments with their read-outs."""
        return Answer(structs.encode(self.service.experiments()))

    async def experiment(self, ask: Ask) -> Answer:
        """Begin an experiment between two models."""
        return await self._change(self.service.experiment(structs.read_experiment(ask.body)))

    async def stop(self, ask: Ask) -> Answer:
        """End an experiment; its read-out stays."""
        told = structs.read_change(ask.body or b"{}")
        return await self._change(self.service.change("stop", "", {"name": ask.path["name"]}, told.id))

    async def status(self, ask: Ask) -> Answer:
        """Everything that the status page draws."""
        return Answer(structs.encode(self.status_of()))

    def status_of(self) -> dict[str, Any]:
        """Everything that the status page draws, as plain values."""
        service = self.service
        return {
            "at": time.time(),
            "up": time.time() - service.began,
            "seq": service.log.committed,
            "lag": service.log.committed - service.log.course.seq,
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

    async def health(self, ask: Ask) -> Answer:
        """Whether the process answers."""
        return Answer(b'{"status":"ok"}')

    async def ready(self, ask: Ask) -> Answer:
        """Whether there is a model, and the state can be written."""
        log = self.service.log
        if log.broken is not None or log.full or not self.service.view.models:
            raise Refused("not ready: there is no model, or the state cannot be written", 503, retry=True)
        return Answer(b'{"status":"ready"}')

    async def metrics_text(self, ask: Ask) -> Answer:
        """Metrics for Prometheus."""
        return Answer(self.metrics.text(), kind="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, ask: Ask) -> Answer:
        """This description."""
        from rankwise.serve.openapi import description

        return Answer(json.dumps(description(OPERATIONS)).encode())

    async def page(self, ask: Ask) -> Answer:
        """The status page."""
        return Answer(files("rankwise.serve").joinpath("status.html").read_bytes(), kind="text/html; charset=utf-8")

    # ------------------------------------------------------------------------------------------- waiting

    async def _change(self, done: "Future[tuple[int, bool]]") -> Answer:
        found = structs.ChangeAnswer(*await self._committed(done))
        await self.service.wait_for(found.seq)
        return Answer(structs.encode(found))

    async def _committed(self, done: "Future[Any]") -> Any:
        return await self._in_time(asyncio.wrap_future(done))

    async def _in_time(self, waiting: "asyncio.Future[Any]") -> Any:
        try:
            async with asyncio.timeout(self.service.limits.wait):
                return await waiting
        except TimeoutError:
            raise Refused("the commit takes long, its outcome is not known: send the same again", 503, True) from None


def _whole(query: dict[str, str], name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", query[name]):
        raise Refused(f"{name} is a whole number: found {query[name]!r:.40}", 422)
    return int(query[name])


def _number(query: dict[str, str], name: str) -> float | None:
    try:
        value = float(query[name]) if name in query else None
    except ValueError:
        value = float("nan")
    if value is not None and not 0 < value < 1e9:
        raise Refused(f"{name} is a number above 0: found {query[name]!r:.40}", 422)
    return value


_NAMED = "/v1/models/{name}"
OPERATIONS = (
    Operation("POST", "/v1/rank", "rank", _Api.rank, structs.RankAnswer, structs.RankRequest, ("min_seq",),
              kinds=(JSON, NDJSON, BINARY)),
    Operation("POST", "/v1/feedback", "feedback", _Api.feedback, structs.FeedbackAnswer, structs.Feedback, many=True,
              kinds=(JSON, NDJSON)),
    Operation("POST", "/v1/rankings/{ranking}/close", "feedback", _Api.close, structs.ChangeAnswer,
              structs.CloseRequest),
    Operation("GET", "/v1/models", "read", _Api.models, list[structs.ModelAnswer]),
    Operation("POST", _NAMED + ":promote", "admin", _Api.promote, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":rollback", "admin", _Api.rollback, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":freeze", "admin", _Api.freeze, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("POST", _NAMED + ":thaw", "admin", _Api.thaw, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("GET", _NAMED + "/versions", "read", _Api.versions, list[structs.VersionAnswer]),
    Operation("GET", _NAMED, "read", _Api.model, structs.ModelAnswer),
    Operation("POST", _NAMED, "admin", _Api.upload, structs.ChangeAnswer, bytes, ("id",), kinds=(_OCTETS,)),
    Operation("GET", "/v1/ledger", "read", _Api.ledger, structs.LedgerAnswer, query=("model", "delta", "gamma")),
    Operation("GET", "/v1/certificate", "read", _Api.certificate, structs.CertificateAnswer, query=("model",)),
    Operation("GET", "/v1/experiments", "read", _Api.experiments, list[structs.ExperimentAnswer]),
    Operation("POST", "/v1/experiments", "admin", _Api.experiment, structs.ChangeAnswer, structs.ExperimentRequest),
    Operation("POST", "/v1/experiments/{name}:stop", "admin", _Api.stop, structs.ChangeAnswer, structs.ChangeRequest),
    Operation("GET", "/v1/status", "read", _Api.status, dict),
    Operation("GET", "/healthz", None, _Api.health, dict),
    Operation("GET", "/readyz", None, _Api.ready, dict),
    Operation("GET", "/metrics", "read", _Api.metrics_text, str),
    Operation("GET", "/openapi.json", None, _Api.openapi, dict),
    Operation("GET", "/", None, _Api.page, str),
)  # fmt: skip


# --------------------------------------------------------------------------------------------------- the frame


class _Route:
    """All operations of one path, in the frame that every request has."""

    def __init__(self, path: str, operations: dict[str, Operation], app: "App") -> None:
        self.path, self.operations, self.app = path, operations, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, method, app = time.perf_counter(), scope["method"], self.app
        headers = {name: value for name, value in scope["headers"] if name in _WANTED}
        given = headers.get(b"x-request-id", b"")
        request = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()
        caller, more = "-", list[tuple[bytes, bytes]]()
        try:
            operation = self.operations.get("GET" if method == "HEAD" else method)
            if operation is None:
                more = [(b"allow", ", ".join(self.operations).encode())]
                raise Refused(f"{self.path} takes {' or '.join(self.operations) or 'nothing'}", 405)
            who = app.allowed(headers, operation.scope)
            caller = who.name
            body = await _read(receive, headers, app.service.limits) if method == "POST" else b""
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1") or JSON
            if operation.body is not None and kind not in operation.kinds and kind not in _FREE:
                raise Refused(f"{self.path} takes {' or '.join(operation.kinds)}: found {kind!r:.60}", 415)
            raw = scope["query_string"]
            query = {} if not raw else {name: found[-1] for name, found in parse_qs(raw.decode("latin-1")).items()}
            answer = await operation.run(app.api, Ask(scope.get("path_params", {}), query, kind, body, who))
        except _Gone:
            return
        except BaseException as error:
            answer = _problem(error, request.decode())
            if answer.status == 401:
                more = [(b"www-authenticate", b"Bearer")]
            elif answer.status in (408, 413):
                more = [(b"connection", b"close")]
            elif answer.status == 503:
                more = [(b"retry-after", b"1")]
            if isinstance(error, asyncio.CancelledError):
                raise
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [
                    (b"content-type", answer.kind.encode()),
                    (b"content-length", b"%d" % len(answer.body)),
                    (b"x-request-id", request),
                    *_SAFE,
                    *more,
                ],
            }
        )
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})
        seconds = time.perf_counter() - began
        app.metrics.observe(self.path, answer.status, seconds)
        if app.access_log or answer.status >= 500 or answer.status in (401, 403):  # others are the client's to read
            level = logging.ERROR if answer.status == 500 else logging.INFO
            logger.log(
                level,
                "%s %s %d",
                method,
                self.path,
                answer.status,
                extra={
                    "fields": {
                        "method": method,
                        "route": self.path,
                        "status": answer.status,
                        "ms": round(1e3 * seconds, 2),
                        "request": request.decode(),
                        "caller": caller,
                    }
                },
            )


_WANTED = frozenset({b"authorization", b"content-type", b"content-length", b"host", b"origin", b"x-request-id"})
_FREE = (JSON, "text/plain", "application/x-www-form-urlencoded", _OCTETS)  # what clients send where they do not think
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:",
    ),
)


class _Gone(Exception):  # noqa: N818
    """The client has closed its connection."""


async def _read(receive: Receive, headers: dict[bytes, bytes], limits: Any) -> bytes:
    """The body, within the limits of size and time."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body:
        raise Refused(f"a body has at most {limits.body:,} bytes: found {int(length):,}", 413)
    message = None
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.seconds):
            while message is None or message.get("more_body", False):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body:
                    raise Refused(f"a body has at most {limits.body:,} bytes", 413)
    except TimeoutError:
        raise Refused(f"the body did not come within {limits.seconds:g} s", 408) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


_TITLES = {400: "malformed", 401: "no valid token", 403: "not allowed", 404: "not found", 405: "method not allowed",
           408: "too slow", 409: "conflict", 413: "too large", 415: "unknown kind of body", 422: "does not fit",
           500: "a fault of the service", 503: "not now"}  # fmt: skip


def _problem(error: BaseException, request: str) -> Answer:
    """A refusal in JSON; what was not foreseen is logged, and nothing of it is told."""
    retry = False
    if isinstance(error, Refused):
        status, detail, retry = error.status, str(error), error.retry
    elif isinstance(error, structs.Malformed):
        malformed = isinstance(error, structs.Invalid)
        status, detail = (422 if malformed else 400), str(error)[:500]
    elif isinstance(error, RankwiseError):
        status, detail = 422, str(error)[:500]
    elif isinstance(error, (UnicodeDecodeError, RecursionError)):
        status, detail = 400, "the body is not what it should be"
    else:
        logger.error("a fault in request %s", request, exc_info=error)
        status, detail = 500, "see the log of the service under this request"
    problem = structs.Problem(_TITLES.get(status, "refused"), status, detail, request, retry)
    return Answer(structs.encode(problem), status, "application/problem+json")


class App:
    """The ASGI application of a service.

    Parameters
    ----------
    service : Service
        The service; closed when the server shuts down.
    tokens : Tokens, default=None
        Who may do what; None lets anybody do everything, which only a loopback address may offer.
    access_log : bool, default=False
        Whether every request is logged, and not only those that were refused.
    """

    def __init__(self, service: Service, tokens: Tokens | None = None, access_log: bool = False) -> None:
        self.service, self.tokens, self.access_log = service, tokens, access_log
        self.metrics = Metrics(service)
        self.api = _Api(service, self.metrics)
        paths: dict[str, dict[str, Operation]] = {}
        for one in OPERATIONS:
            paths.setdefault(one.path, {})[one.method] = one
        routes = [routing.Route(path, _Route(path, found, self)) for path, found in paths.items()]
        self._nothing = _Route("(no such path)", {}, self)
        self._router = routing.Router(routes, redirect_slashes=False, default=self._unknown)

    def allowed(self, headers: dict[bytes, bytes], scope: str | None) -> Caller:
        """Who sends a request, if they may."""
        if scope is None:
            return ANYBODY
        if self.tokens is None:
            # without tokens a page of a stranger, open in a browser of this machine, must not reach the service
            host, origin = headers.get(b"host", b""), headers.get(b"origin")
            name = host.rpartition(b":")[0] if b":" in host and not host.endswith(b"]") else host
            if not is_loopback(name.strip(b"[]").decode("latin-1")):
                raise Refused("without tokens only this machine is served, by the name localhost or its address", 403)
            if origin is not None and origin != b"http://" + host:
                raise Refused("without tokens no page of another origin is served", 403)
            return ANYBODY
        header = headers.get(b"authorization")
        if header is None or not header[:7].lower() == b"bearer ":
            raise Refused("send a token: Authorization: Bearer TOKEN", 401)
        caller = self.tokens.caller(header[7:].strip())
        if caller is None:
            raise Refused("the token is not valid", 401)
        if scope not in caller.scopes:
            raise Refused(f"the token does not allow {scope!r}", 403)
        return caller

    async def _unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = _problem(Refused("there is no such path: see /openapi.json", 404), "-")
        headers = [(b"content-type", problem.kind.encode()), (b"content-length", b"%d" % len(problem.body)), *_SAFE]
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else problem.body})
        self.metrics.observe("(none)", 404, 0.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._router(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self.service.close)
                await send({"type": "lifespan.shutdown.complete"})
                return


def make_app(service: Service, tokens: Tokens | None = None, *, access_log: bool = False) -> App:
    """The ASGI application of a service, for uvicorn or any other server.

    Parameters
    ----------
    service : Service
        The service.
    tokens : Tokens, default=None
        Who may do what.
    access_log : bool, default=False
        Whether every request is logged.

    Returns
    -------
    App
        The application.
    """
    return App(service, tokens, access_log)
