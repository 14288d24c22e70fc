"""A thin client for long loads: raw sockets with several requests in flight, a few microseconds a request.

HTTP/1.1 answers in the order of the requests of a connection, so that a client need not wait for one answer before it
sends the next request. What is sent next is decided by a callable, which may look at the answers so far.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable

_LENGTH = re.compile(rb"content-length: (\d+)")

# What to send next on a connection: (kind, bytes of the request), or None for nothing any more.
Feed = Callable[["Pipeline"], tuple[str, bytes] | None]
# Receives (connection, kind of the request, head, body) of every answer.
Take = Callable[["Pipeline", str, bytes, bytes], None]


class Pipeline(asyncio.Protocol):
    """One connection with some requests in flight.

    Parameters
    ----------
    feed : callable
        What to send next.
    take : callable
        Receives the answers.
    depth : int
        Requests in flight.
    """

    def __init__(self, feed: Feed, take: Take, depth: int) -> None:
        self._feed, self._take, self._depth = feed, take, depth
        self._sent: deque[str] = deque()
        self._buffer = b""
        self.due: deque[tuple[str, bytes]] = deque()  # requests that follow from answers; the feed's to use
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first requests."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._send()

    def data_received(self, data: bytes) -> None:
        """Take the answers that are complete, and send as many requests."""
        data, begin = self._buffer + data, 0
        while (end := data.find(b"\r\n\r\n", begin)) >= 0:
            head = data[begin:end]
            found = _LENGTH.search(head)
            assert found is not None, head
            last = end + 4 + int(found[1])
            if last > len(data):
                break
            self._take(self, self._sent.popleft(), head, data[end + 4 : last])
            begin = last
        self._buffer = data[begin:]
        self._send()

    def _send(self) -> None:
        requests = []
        while len(self._sent) < self._depth and (found := self._feed(self)) is not None:
            self._sent.append(found[0])
            requests.append(found[1])
        if requests:
            self._transport.write(b"".join(requests))
        elif not self._sent:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End: well if every request was answered."""
        if self._sent:
            self.done.set_exception(exc or ConnectionResetError(f"{len(self._sent)} requests got no answer"))
        else:
            self.done.set_result(None)


async def pipelined(url: str, feed: Feed, take: Take, connections: int = 16, depth: int = 4) -> None:
    """Send what ``feed`` has over some connections, until it has nothing more.

    Parameters
    ----------
    url : str
        The server.
    feed : callable
        What to send next.
    take : callable
        Receives the answers.
    connections, depth : int
        Connections, and requests in flight on each.
    """
    host, port = url.removeprefix("http://").split(":")
    loop = asyncio.get_running_loop()
    opened = [
        (await loop.create_connection(lambda: Pipeline(feed, take, depth), host, int(port)))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(one.done for one in opened))
