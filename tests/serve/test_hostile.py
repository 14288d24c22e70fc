"""Clients with bad manners: huge and slow bodies, broken HTTP, headers without end. The service answers on."""

import socket
import time

import pytest

from rankwise.serve import server as server_module
from rankwise.serve.service import Limits, Service
from tests.serve.running import IDS, Raw, lists, saved, serving


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    patch = pytest.MonkeyPatch()
    patch.setattr(server_module, "_HEADERS", 0.4)
    service = Service(folder / "state.db", saved(folder), limits=Limits(body=50_000, seconds=0.4))
    with serving(service) as address:
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


def test_headers_without_end_are_refused(url):
    found = talk(url, HEAD, *[b"X-More: " + b"a" * 8000 + b"\r\n"] * 10)
    assert b" 400 " in found or found == b""


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
