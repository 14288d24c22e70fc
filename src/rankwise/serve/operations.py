"""The operations of the HTTP interface: one table, from which the routes and the OpenAPI description are made.

An operation is a few lines that decode, call the service and encode. :mod:`rankwise.serve.app` has the frame in which
every operation runs.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from rankwise.serve import structs
from rankwise.serve.log import LoopReply, Refused
from rankwise.serve.metrics import Metrics
from rankwise.serve.service import Service, answer_of
from rankwise.serve.tokens import Caller

JSON, NDJSON, BINARY = "application/json", "application/x-ndjson", "application/vnd.rankwise.f32"
OCTETS = "application/octet-stream"
_LINES = 1_000  # rankings of one NDJSON body


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
    run: Callable[["Api", Ask], Awaitable[Answer]]
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

    async def rank(self, ask: Ask) -> Answer:
        """Rank the documents of one query, or of one on every line of NDJSON."""
        if ask.kind == NDJSON:
            lines = [line for line in ask.body.split(b"\n") if line.strip()]
            if len(lines) > _LINES:
                raise Refused(f"a body has at most {_LINES:,} rankings: found {len(lines):,}", 413)
            found = [structs.encode(await self._rank(structs.read_rank(line), ask, None)) for line in lines]
            return Answer(b"\n".join(found) + b"\n", kind=NDJSON)
        if ask.kind in (BINARY, OCTETS):
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
