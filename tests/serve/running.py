"""A service in this process, with a server in a thread, for tests."""

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager

import numpy as np

import rankwise as rw
from rankwise.serve.app import make_app
from rankwise.serve.client import Client
from rankwise.serve.server import address_of, make_server
from rankwise.serve.service import Service

NAMES = ["bm25", "age", "clicks"]


def learner(width=3, names=None):
    """An online ranker that knows its features and nothing else."""
    model = rw.SLAMPerceptron(measure="nDCG@10")
    X, y = np.zeros((2, width)), np.zeros(2)
    return model.partial_fit(rw.Queries.from_arrays(X, y, group=[2], feature_names=names))


def saved(folder, name="news", model=None):
    path = folder / f"{name}.rankwise"
    (learner(names=NAMES) if model is None else model).save(path)
    return {name: path}


@contextmanager
def serving(service, tokens=None, http="h11", **more):
    """The address of a server of this service; the service is closed at the end."""
    app = make_app(service, tokens, **more)
    server = make_server(app, "127.0.0.1", 0, http=http)
    ready = threading.Event()

    async def run():
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():
            await asyncio.sleep(0.005)
        ready.set()
        await task

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield address_of(server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


class Raw:
    """Requests as a client with bad manners sends them."""

    def __init__(self, url):
        self.host = url.removeprefix("http://")

    def __call__(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data

    def post(self, path, told, **headers):
        headers.setdefault("content_type", "application/json")
        return self("POST", path, told if isinstance(told, bytes) else json.dumps(told).encode(), **headers)


def lists(count, documents=6, width=3, seed=0):
    """Features and grades, by a hidden vector."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=width)
    for _ in range(count):
        X = np.float32(random.normal(size=(documents, width)))
        yield X, (X @ hidden > 0.5).astype(float).tolist()


IDS = [f"d{number}" for number in range(6)]
__all__ = ["IDS", "NAMES", "Client", "Raw", "Service", "learner", "lists", "saved", "serving"]
