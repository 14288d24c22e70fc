"""Clients with bad manners: huge and slow bodies, broken HTTP, headers without end. The service answers on."""

import json
import socket
import time

import pytest

from rankwise.serve import app as app_module
from rankwise.serve import server as server_module
from rankwise.serve.service import RequestLimits, Service
from tests.serve.running import IDS, Raw, lists, saved, serving


@pytest.fixture(scope="module", params=["h11", "httptools"])
def url(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    patch = pytest.MonkeyPatch()
    patch.setattr(server_module, "_HEADERS", 0.4)
    patch.setattr(server_module, "_STALLED", 0.3)
    patch.setattr(app_module, "_DISCARD", 0.2)
    service = Service(folder / "state.db", saved(folder), limits=RequestLimits(body=50_000, seconds=0.4))
    with serving(service, http=request.param) as address:
        yield address
    patch.undo()


@pytest.fixture(autouse=True)
def still_there(url):
    yield
    X, _ = next(lists(1))
    assert Raw(url).post("/v1/rank", {"ids": IDS, "x": X.tolist()})[0] == 200


def talk(url, *parts, wait=0.0):
    """Send pieces, with a pause after each; what comes back until the other side closes or is silent."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=3) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(wait)
        found = b""
        try:
            while piece := connection.recv(1 << 16):
                found += piece
                if b"connection: close" not in found.lower() and b"\r\n\r\n" in found:
                    break
        except OSError:
            pass
        return found


def until_closed(url, *parts):
    """Send pieces; what comes back until the other side closes, which it must."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        found = b""
        try:
            for part in parts:
                connection.sendall(part)
            while piece := connection.recv(1 << 16):
                found += piece
        except ConnectionError:
            pass
        return found


HEAD = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_huge_body_is_refused_before_it_is_read(url):
    assert b" 413 " in talk(url, HEAD + b"Content-Length: 99999999999\r\n\r\n")


def test_a_huge_body_in_chunks_is_refused_on_the_way(url):
    chunk = b"4000\r\n" + b"[" * 0x4000 + b"\r\n"
    assert b" 413 " in talk(url, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk, chunk, chunk)


def test_a_slow_body_is_given_up(url):
    assert b" 408 " in talk(url, HEAD + b"Content-Length: 100\r\n\r\n", b"{", wait=0.6)


def test_slow_headers_are_given_up(url):
    assert talk(url, b"POST /v1/rank HT", wait=0.9) == b""
    assert talk(url, wait=0.9) == b""


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, *[b"X-More: " + b"a" * 8000 + b"\r\n"] * 10],
        [HEAD + b"X-More: ", *[b"a" * 8000] * 40],  # one header without an end
        [HEAD + b"X-More: " + b"a" * 200_000 + b"\r\n\r\n"],  # complete, in one piece
        [HEAD + b"X: a\r\n" * 3_000 + b"\r\n"],  # small, and thousands of them
        [b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ],
)
def test_headers_that_are_too_long_are_refused(url, parts):
    found = until_closed(url, *parts)
    assert b" 400 " in found or found == b""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n", b" 404 "),
        (b"PUT /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b" 405 "),
        (b"POST /v1/rank HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 500\r\n\r\n", b" 403 "),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n", b" 200 "),
        (b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n", b" 200 "),
    ],
)
def test_s6_an_answer_before_the_end_of_the_body_closes_the_connection(url, head, status):
    """Otherwise anybody could hold all connections, by bodies that never end."""
    found = until_closed(url, head)
    assert status in found
    assert b"connection: close" in found.lower()


def test_s6_a_client_that_reads_no_answers_is_cut(url):
    """Closing alone would wait until it has read what was written for it."""
    host, port = url.removeprefix("http://").split(":")
    wanted, found = 400, 0
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.settimeout(5)
        size = len(Raw(url)("GET", "/openapi.json")[1].__repr__())
        try:
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * wanted)
            time.sleep(1.0)
            while piece := connection.recv(1 << 20):
                found += len(piece)
        except ConnectionError:
            pass
    assert found < wanted * size / 2


def test_pipelined_requests_are_answered_in_their_order(url):
    X, _ = next(lists(1))
    body = json.dumps({"ids": IDS, "x": X.tolist()}).encode()
    rank = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    last = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    found = until_closed(url, (rank + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") * 10 + last)
    statuses = [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200] * 20 + [404]


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"],
        [CHUNKED + b"5\r\n{}\r\n0\r\n\r\n"],
        [CHUNKED + b"1\r\n{}\r\n0\r\n\r\n"],
        [CHUNKED + b"ffffffffffffffffff\r\n{}"],
        [CHUNKED + b"-2\r\n{}"],
        [CHUNKED + b"2;" + b"a" * 100_000],
        [CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"a" * 100_000],
        [CHUNKED + b"2\r\n{}\r\n"],
        [HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
        [HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"],
        [HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}"],
    ],
)
def test_bodies_of_wrong_sizes_end_the_connection(url, parts, caplog):
    assert until_closed(url, *parts)[9:12] in (b"400", b"408", b"413")
    assert "fault" not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "more",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_s19_requests_that_others_may_read_differently_are_refused(url, more):
    found = until_closed(url, HEAD + more)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in found.lower()


def test_protocols_are_not_switched(url):
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert until_closed(url, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + upgrade).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"\0" * 1000,
        b"GET \xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEAD + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_what_is_no_request_is_refused(url, junk):
    found = talk(url, junk)
    assert b" 200 " not in found
    assert b" 500 " not in found


def test_a_client_that_leaves_in_the_middle_is_no_fault(url, caplog):
    host, port = url.removeprefix("http://").split(":")
    for _ in range(5):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        connection.close()
    Raw(url)("GET", "/healthz")
    assert "fault" not in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example:80"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:1"}, 200),
        ({}, 200),
    ],
)
def test_without_tokens_a_page_of_a_stranger_is_not_served(url, headers, status):
    assert Raw(url)("GET", "/v1/models", **headers)[0] == status
    assert Raw(url)("GET", "/healthz", **headers)[0] == 200
