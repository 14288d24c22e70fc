"""Running the application under uvicorn: limits of connections, structured logs, reload of tokens, a clean end."""

import asyncio
import json
import logging
import os
import re
import signal
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rankwise._extras import require
from rankwise.errors import RankwiseError
from rankwise.serve.app import App
from rankwise.serve.tokens import is_loopback

require("uvicorn")  # missing: one sentence that names the extra

import h11  # noqa: E402
import uvicorn  # noqa: E402
from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: E402

_HEADERS = 10.0  # seconds until the headers of a request must be there
_HEADER_BYTES, _HEADER_LINES = 32 << 10, 200
_HEADERS_END = re.compile(rb"\n\r?\n")
_STALLED = 10.0  # seconds in which a client that has an answer to read must read some of it
_CONNECTIONS = 1_000


class _Bounded(asyncio.Protocol, ABC):
    """Bounds what uvicorn's protocols leave open: the time that headers take, and clients that read no answers."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _deadline: asyncio.TimerHandle | None = None
    _watch: asyncio.TimerHandle | None = None
    _unsent = 0

    @abstractmethod
    def _in_headers(self) -> bool:
        """Whether a request has begun whose headers are not complete."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(_HEADERS, self._late)
        self._watch = self.loop.call_later(_STALLED, self._look)

    def data_received(self, data: bytes) -> None:
        """Wait on for headers that are not complete, and no longer for those that are."""
        super().data_received(data)
        incomplete = self._in_headers()
        if self._deadline is not None and not incomplete:
            self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None and incomplete:
            self._deadline = self.loop.call_later(_HEADERS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        for timer in (self._deadline, self._watch):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()

    def _look(self) -> None:
        """Cut a client that has read nothing since the last look: closing would wait for it to read the rest."""
        left = self.transport.get_write_buffer_size()
        if 0 < self._unsent <= left:
            self.transport.abort()
            return
        self._unsent = left
        self._watch = self.loop.call_later(_STALLED, self._look)


class BoundedH11(_Bounded, H11Protocol):
    """HTTP/1.1 by h11, with a bound on headers that come in one piece, too: h11 takes 20 us for each line of them."""

    def _in_headers(self) -> bool:
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def handle_events(self) -> None:
        """Look at the size of headers before they are parsed."""
        if self.conn.their_state is h11.IDLE:
            waiting = self.conn.trailing_data[0]
            end = _HEADERS_END.search(waiting, 0, _HEADER_BYTES)
            size = len(waiting) if end is None else end.start()
            if size > _HEADER_BYTES or waiting.count(b"\n", 0, size) >= _HEADER_LINES:
                self.send_400_response("The headers are too long.")
                return
        super().handle_events()


def make_httptools_protocol() -> type[asyncio.Protocol]:
    """HTTP/1.1 by httptools, with a bound on the size of headers."""
    require("httptools")
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class BoundedHttpTools(_Bounded, HttpToolsProtocol):
        _begun, _received = False, 0

        def _in_headers(self) -> bool:
            return self._begun

        def on_message_begin(self) -> None:
            self._begun = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._begun = False
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > _HEADER_BYTES or len(self.headers) > _HEADER_LINES:
                raise ValueError("the headers are too long")  # which the parser turns into 400
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            # the parser keeps a header of any length until it ends
            self._received = self._received + len(data) if self._begun else 0
            if self._received > _HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response("The headers are too long.")
                return
            super().data_received(data)

    return BoundedHttpTools


class JsonLines(logging.Formatter):
    """One JSON object a line; a record's ``fields`` are part of it."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line."""
        fields: dict[str, Any] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_in_json(level: int = logging.INFO) -> None:
    """Send the logs of the service and of uvicorn to standard error, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("rankwise.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if name == "rankwise.serve" else max(level, logging.WARNING))


def make_server(app: App, host: str, port: int, *, http: str = "h11") -> Any:
    """A uvicorn server of an application.

    Parameters
    ----------
    app : App
        The application.
    host : str
        The address; without tokens only a loopback address is allowed.
    port : int
        The port; 0 takes a free one.
    http : {"h11", "httptools"}, default="h11"
        What parses HTTP; ``httptools`` costs less.

    Returns
    -------
    uvicorn.Server
        The server; ``run()`` blocks.
    """
    if app.tokens is None and not is_loopback(host):
        raise RankwiseError(
            f"other machines can reach {host}, which requires --tokens; or serve on 127.0.0.1 behind a proxy"
        )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=BoundedH11 if http == "h11" else make_httptools_protocol(),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=65,  # above the usual 60 s of proxies, which close first
        timeout_graceful_shutdown=20,
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )
    return uvicorn.Server(config)


async def run_server(server: Any, app: App, on_start: Callable[[str], None] | None = None) -> None:
    """Run a server in the main thread until it is told to stop; SIGHUP reads the tokens again."""
    listening = _listen(server.config.host, server.config.port)
    # uvicorn sends itself SIGTERM again after its clean end, which would keep the caller from ending cleanly, too
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        task = asyncio.create_task(server.serve([listening]))
        if hasattr(signal, "SIGHUP") and app.tokens is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _reload, app)
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started and on_start is not None:
            on_start(address_of(server))
        await task
    finally:
        listening.close()
        signal.signal(signal.SIGTERM, before)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; uvicorn's own way to say that a port is taken is a traceback."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        # the reason alone: what Python adds to it names the address again
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise RankwiseError(f"cannot serve at {host}:{port}: {why.lower()}") from error
    # Connections inherit it. An answer is written in two parts, and the second would wait 40 ms for the first to be
    # acknowledged; asyncio sets it by itself for sockets that it makes, and not for others.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(server: Any) -> str:
    """Where a running server is reached."""
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reload(app: App) -> None:
    """Read the tokens again; a malformed file changes nothing."""
    logger = logging.getLogger("rankwise.serve")
    try:
        if app.tokens is not None:
            app.tokens.reload()
            logger.info("the tokens were reloaded")
    except (RankwiseError, OSError) as error:
        logger.error("the tokens are unchanged: %s", error)
