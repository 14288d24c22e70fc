"""The ASGI application: the routes of the operations, in the frame that every request has.

The frame (:class:`_Route`) gives the request an id, looks at the token, reads the body within its limits, counts, logs,
and turns every refusal into a problem in JSON.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from rankwise._extras import require
from rankwise.errors import RankwiseError
from rankwise.serve import structs
from rankwise.serve.log import RequestError
from rankwise.serve.metrics import Metrics
from rankwise.serve.operations import JSON, OCTETS, OPERATIONS, Answer, Api, Operation, Request
from rankwise.serve.service import Service
from rankwise.serve.tokens import ANYBODY, Caller, Tokens, is_loopback

routing = require("starlette.routing")

logger = logging.getLogger("rankwise.serve.access")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class _Route:
    """All operations of one path, in the frame that every request has."""

    def __init__(self, path: str, operations: dict[str, Operation], app: "App") -> None:
        self.path, self.operations, self.app = path, operations, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, method, app = time.perf_counter(), scope["method"], self.app
        headers, twice = _headers(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()
        caller, more = "-", list[tuple[bytes, bytes]]()
        coded = headers.get(b"transfer-encoding")
        unread = coded is not None or headers.get(b"content-length", b"0").strip(b"0") != b""
        close = True
        try:
            # where a proxy may see another request than we do, nothing that follows on the connection is believed
            if twice is not None:
                raise RequestError(f"the header {twice.decode('latin-1')} must be sent only once", 400)
            if coded is not None and b"content-length" in headers:
                raise RequestError("a request must not have both Content-Length and Transfer-Encoding", 400)
            if coded is not None and coded.strip().lower() != b"chunked":
                raise RequestError(f"Transfer-Encoding must be chunked, got {coded.decode('latin-1')!r:.60}", 400)
            # the rest of a body that is not read would have no limit of time; protocols are never switched
            close = unread or b"upgrade" in headers
            operation = self.operations.get("GET" if method == "HEAD" else method)
            if not self.operations:
                raise RequestError("there is no such path: see /openapi.json", 404)
            if operation is None:
                more = [(b"allow", ", ".join(self.operations).encode())]
                raise RequestError(f"{self.path} accepts {' or '.join(self.operations)}, got {method}", 405)
            who = app.caller(headers) if operation.scope is not None else ANYBODY
            caller = who.name
            if operation.scope is not None and operation.scope not in who.scopes:
                raise RequestError(f"the token does not allow {operation.scope!r}", 403)
            body = b""
            if method == "POST":
                body, unread = await _read(receive, headers, app.service.limits), False
                close = b"upgrade" in headers
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1") or JSON
            if operation.body is not None and kind not in operation.kinds and kind not in _FREE:
                raise RequestError(
                    f"the content type of {self.path} must be {' or '.join(operation.kinds)}, got {kind!r:.60}", 415
                )
            raw = scope["query_string"]
            query = {} if not raw else {name: found[-1] for name, found in parse_qs(raw.decode("latin-1")).items()}
            answer = await operation.run(app.api, Request(scope.get("path_params", {}), query, kind, body))
        except ClientDisconnected:
            return
        except BaseException as error:
            answer = _problem(error, request.decode())
            if answer.status == 401:
                more = [(b"www-authenticate", b"Bearer")]
            elif answer.status == 503:
                more = [(b"retry-after", b"1")]
            if isinstance(error, asyncio.CancelledError):
                raise
            if unread and answer.status != 408 and b"expect" not in headers:
                await _discard(receive)
        if close:
            more.append((b"connection", b"close"))
        length = b"%d" % len(answer.body)
        sent = [(b"content-type", answer.kind.encode()), (b"content-length", length), (b"x-request-id", request)]
        start = {"type": "http.response.start", "status": answer.status, "headers": [*sent, *_SAFE, *more]}
        await send(start)
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})
        seconds = time.perf_counter() - began
        app.metrics.observe(self.path, answer.status, seconds)
        if app.access_log or answer.status >= 500 or answer.status in (401, 403):  # others are the client's to read
            level = logging.ERROR if answer.status == 500 else logging.INFO
            fields = {"method": method, "route": self.path, "status": answer.status, "ms": round(1e3 * seconds, 2)}
            fields |= {"request": request.decode(), "caller": caller}
            logger.log(level, "%s %s %d", method, self.path, answer.status, extra={"fields": fields})


_WANTED = frozenset(
    {b"authorization", b"content-type", b"content-length", b"expect", b"host", b"origin", b"transfer-encoding",
     b"upgrade", b"x-request-id"}
)  # fmt: skip
_REPEATABLE = (b"upgrade", b"x-request-id")
_FREE = (JSON, "text/plain", "application/x-www-form-urlencoded", OCTETS)  # what clients send where they do not think
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:",
    ),
)


def _headers(found: list[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], bytes | None]:
    """The headers that are looked at, and one that was sent twice: which of them others believe is not known."""
    kept: dict[bytes, bytes] = {}
    twice = None
    for name, value in found:
        if name in _WANTED:
            twice = name if name in kept and name not in _REPEATABLE else twice
            kept[name] = value
    return kept, twice


class ClientDisconnected(Exception):  # noqa: N818
    """The client has closed its connection."""


async def _read(receive: Receive, headers: dict[bytes, bytes], limits: Any) -> bytes:
    """The body, within the limits of size and time."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limits.body:
        raise RequestError(f"a body must have at most {limits.body:,} bytes, got {int(length):,}", 413)
    message = None
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.seconds):
            while message is None or message.get("more_body", False):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body:
                    raise RequestError(f"a body must have at most {limits.body:,} bytes, got more", 413)
    except TimeoutError:
        raise RequestError(f"the body was not received within {limits.seconds:g} s", 408) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


_DISCARD = 2.0  # seconds


async def _discard(receive: Receive) -> None:
    """Read on for a moment: who is still sending when the connection is closed may never see the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD):
            message = await receive()
            while message["type"] != "http.disconnect" and message.get("more_body", False):
                message = await receive()


_TITLES = {400: "malformed", 401: "no valid token", 403: "not allowed", 404: "not found", 405: "method not allowed",
           408: "timeout", 409: "conflict", 413: "too large", 415: "unsupported content type", 422: "invalid",
           500: "internal error", 503: "unavailable"}  # fmt: skip


def _problem(error: BaseException, request: str) -> Answer:
    """An error as a problem in JSON; details of unexpected errors go to the log and not to the client."""
    retry = False
    if isinstance(error, RequestError):
        status, detail, retry = error.status, str(error), error.retry
    elif isinstance(error, structs.Malformed):
        malformed = isinstance(error, structs.Invalid)
        status, detail = (422 if malformed else 400), str(error)[:500]
    elif isinstance(error, RankwiseError):
        status, detail = 422, str(error)[:500]
    elif isinstance(error, (UnicodeDecodeError, RecursionError)):
        status, detail = 400, "the body could not be decoded"
    else:
        logger.error("an error in request %s", request, exc_info=error)
        status, detail = 500, "an internal error: see the log of the service for this request id"
    problem = structs.Problem(_TITLES.get(status, "rejected"), status, detail, request, retry)
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
        self.api = Api(service, self.metrics)
        paths: dict[str, dict[str, Operation]] = {}
        for one in OPERATIONS:
            paths.setdefault(one.path, {})[one.method] = one
        routes = [routing.Route(path, _Route(path, found, self)) for path, found in paths.items()]
        self._nothing = _Route("(none)", {}, self)
        self._router = routing.Router(routes, redirect_slashes=False, default=self._handle_unknown)

    def caller(self, headers: dict[bytes, bytes]) -> Caller:
        """Who sends a request: the owner of its token."""
        if self.tokens is None:
            # without tokens a page of a stranger, open in a browser of this machine, must not reach the service
            host, origin = headers.get(b"host", b""), headers.get(b"origin")
            name = host.rpartition(b":")[0] if b":" in host and not host.endswith(b"]") else host
            if not is_loopback(name.strip(b"[]").decode("latin-1")):
                raise RequestError("without tokens, only requests to localhost or a loopback address are served", 403)
            if origin is not None and origin != b"http://" + host:
                raise RequestError("without tokens, requests from pages of other origins are not served", 403)
            return ANYBODY
        header = headers.get(b"authorization")
        if header is None or not header[:7].lower() == b"bearer ":
            raise RequestError("send a token: Authorization: Bearer TOKEN", 401)
        caller = self.tokens.caller(header[7:].strip())
        if caller is None:
            raise RequestError("the token is not valid", 401)
        return caller

    async def _handle_unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        await self._nothing(scope, receive, send)

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
