"""Clients of the service, in the standard library alone: :class:`Client`, and :class:`AsyncClient` for event loops.

A request that fails on the way is sent again. Every event has an id, which is made once and sent with every attempt:
an event is recorded once however often it was sent.
"""

import asyncio
import http.client
import json
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
from numpy.typing import ArrayLike

from rankwise.errors import RankwiseError

_BINARY = "application/vnd.rankwise.f32"


class ServiceError(RankwiseError):
    """The service refused a request, or could not be reached.

    Parameters
    ----------
    sentence : str
        The message.
    status : int, default=0
        The status of HTTP; 0 if there was no answer.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class Client:
    """A client of one service; threads may share it.

    Parameters
    ----------
    url : str, default="http://127.0.0.1:8000"
        Where the service is.
    token : str, default=None
        The token, if the service asks for one.
    timeout : float, default=10.0
        Seconds to wait for an answer.
    attempts : int, default=6
        How often a request is sent before an error is raised; the waits between grow from 50 ms to about 2 s.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", token="...")  # doctest: +SKIP
    >>> shown = client.rank(["a", "b"], [[0.2, 1.0], [0.9, 0.1]])  # doctest: +SKIP
    >>> client.feedback(shown["ranking"], clicks=["b"])  # doctest: +SKIP
    {'seq': 12, 'new': True}
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, token: str | None = None, timeout: float = 10.0, attempts: int = 6
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RankwiseError(f"url must be an address such as http://host:port, got {url!r:.80}")
        self._secure, self._host, self._base = parts.scheme == "https", parts.netloc, parts.path.rstrip("/")
        self._timeout, self._attempts = timeout, max(1, attempts)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._idle: list[http.client.HTTPConnection] = []

    # ------------------------------------------------------------------------------------------- ranking and feedback

    def rank(
        self,
        ids: Sequence[str],
        x: ArrayLike,
        *,
        model: str | None = None,
        user: str | None = None,
        min_seq: int | None = None,
        explain: bool = False,
        cut: bool = False,
    ) -> dict[str, Any]:
        """Rank documents.

        Parameters
        ----------
        ids : sequence of str
            The documents.
        x : array-like of shape (n_documents, n_features)
            Their features. An array of float32 is sent as bytes, which costs both sides least.
        model : str, default=None
            The model; None is the default one of the service.
        user : str, default=None
            Who asks, for experiments that show every user one side.
        min_seq : int, default=None
            Wait until the model has learned from this event.
        explain : bool, default=False
            Whether to say what every feature adds to every score.
        cut : bool, default=False
            Whether to return only the documents that the cut-off of the model keeps.

        Returns
        -------
        dict of str to object
            ``ranking``, ``version`` and ``items``, the best first.
        """
        named = {"model": model, "user": user, "min_seq": min_seq, "explain": explain or None, "cut": cut or None}
        body: dict[str, Any] = {"ids": list(ids), **{key: value for key, value in named.items() if value is not None}}
        if isinstance(x, np.ndarray) and x.dtype == np.float32:
            data = json.dumps(body).encode() + b"\n" + np.ascontiguousarray(x, "<f4").tobytes()
            return dict(self._send("POST", "/v1/rank", data, _BINARY))
        body["x"] = x if isinstance(x, list) else np.asarray(x, dtype=np.float64).tolist()
        return self._post("/v1/rank", body)

    def rank_items(self, items: Mapping[str, Mapping[str, float]], **more: Any) -> dict[str, Any]:
        """Rank documents whose features come by name.

        Parameters
        ----------
        items : mapping of str to mapping of str to float
            The features of each document, by its id.
        **more : object
            ``model``, ``user``, ``min_seq``, ``explain`` and ``cut`` as in :meth:`rank`.

        Returns
        -------
        dict of str to object
            As :meth:`rank`.
        """
        listed = [{"id": id, "features": dict(features)} for id, features in items.items()]
        return self._post("/v1/rank", {"items": listed, **more})

    def feedback(
        self,
        ranking: str,
        *,
        grades: Sequence[float] | Mapping[str, float] | None = None,
        clicks: Sequence[str] | None = None,
        id: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Say what became of a ranking; recorded once, and on the disk when the call returns.

        Parameters
        ----------
        ranking : str
            The ranking, as :meth:`rank` named it.
        grades : sequence of float or mapping of str to float, default=None
            Grades of all documents in the order of the request, or of some by id; the others have grade 0.
        clicks : sequence of str, default=None
            Documents that were clicked; a window or :meth:`close_ranking` completes them.
        id : str, default=None
            The id of the event; None makes one.
        **more : object
            ``ids``, ``x`` and ``model``, for a ranking that the service does not know.

        Returns
        -------
        dict of str to object
            ``seq``, its place in the log, and ``new``, whether it was not there before.
        """
        body: dict[str, Any] = {"id": id or uuid.uuid4().hex, "ranking": ranking, **more}
        if grades is not None:
            body["grades"] = dict(grades) if isinstance(grades, Mapping) else [float(one) for one in grades]
        if clicks is not None:
            body["clicks"] = list(clicks)
        return self._post("/v1/feedback", body)

    def feedback_many(self, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send many events in one request; each needs an ``id``, and is recorded or refused for itself."""
        for one in events:
            if "id" not in one:
                raise RankwiseError("every event of feedback_many must have an id, so that it can be sent again")
        return list(self._send("POST", "/v1/feedback", json.dumps(list(events)).encode(), "application/json"))

    def close_ranking(self, ranking: str) -> dict[str, Any]:
        """End the clicks of a ranking, which is then learned now."""
        return self._post(f"/v1/rankings/{quote(ranking, safe='')}/close", {})

    # ------------------------------------------------------------------------------------------- models

    def models(self) -> list[dict[str, Any]]:
        """All models."""
        return list(self._send("GET", "/v1/models"))

    def versions(self, model: str) -> list[dict[str, Any]]:
        """The recorded versions of a model."""
        return list(self._send("GET", f"/v1/models/{quote(model, safe='')}/versions"))

    def upload(self, model: str, data: bytes) -> dict[str, Any]:
        """Add a model, or give it a new file; ``data`` is what ``save`` wrote."""
        path = f"/v1/models/{quote(model, safe='')}?{urlencode({'id': uuid.uuid4().hex})}"
        return dict(self._send("POST", path, data, "application/octet-stream"))

    def change(self, model: str, what: str, version: int | None = None) -> dict[str, Any]:
        """``promote``, ``rollback``, ``freeze`` or ``thaw`` a model."""
        body: dict[str, Any] = {"id": uuid.uuid4().hex}
        if version is not None:
            body["version"] = version
        return self._post(f"/v1/models/{quote(model, safe='')}:{what}", body)

    def ledger(self, model: str | None = None) -> dict[str, Any]:
        """Loss, mistakes and measure of a run so far, with the bounds that apply."""
        return self._about_model("/v1/ledger", model)

    def certificate(self, model: str | None = None) -> dict[str, Any]:
        """What is guaranteed about what a model has shown."""
        return self._about_model("/v1/certificate", model)

    def experiment(self, name: str, kind: str, model: str, challenger: str, **more: Any) -> dict[str, Any]:
        """Begin a ``shadow``, ``split`` or ``interleave`` experiment between two models."""
        body = {"name": name, "kind": kind, "model": model, "challenger": challenger, "id": uuid.uuid4().hex, **more}
        return self._post("/v1/experiments", body)

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments with their read-outs."""
        return list(self._send("GET", "/v1/experiments"))

    def stop_experiment(self, name: str) -> dict[str, Any]:
        """End an experiment."""
        return self._post(f"/v1/experiments/{quote(name, safe='')}:stop", {"id": uuid.uuid4().hex})

    def status(self) -> dict[str, Any]:
        """Everything that the status page draws."""
        return dict(self._send("GET", "/v1/status"))

    def healthy(self) -> bool:
        """Whether the service answers and is ready."""
        try:
            self._once("GET", "/readyz", b"", "")
        except (ServiceError, OSError, http.client.HTTPException):
            return False
        return True

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------- sending

    def _about_model(self, path: str, model: str | None) -> dict[str, Any]:
        return dict(self._send("GET", path + ("" if model is None else f"?{urlencode({'model': model})}")))

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._send("POST", path, json.dumps(body).encode(), "application/json"))

    def _send(self, method: str, path: str, body: bytes = b"", kind: str = "") -> Any:
        """Send a request, again where the same may work later."""
        for attempt in range(self._attempts):
            try:
                return self._once(method, path, body, kind)
            except _Again as again:
                if attempt == self._attempts - 1:
                    raise ServiceError(str(again), again.status) from again.__cause__
            # waits differ: many clients do not come back at the same moment
            time.sleep(min(2.0, 0.05 * 2**attempt) * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: bytes, kind: str) -> Any:
        headers = dict(self._headers)
        if kind:
            headers["Content-Type"] = kind
        try:
            connection = self._idle.pop()
        except IndexError:
            make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = make(self._host, timeout=self._timeout)
        try:
            connection.request(method, self._base + path, body or None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _Again(f"the service at {self._host} did not answer: {error!r}") from error
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        if answer.status < 300:
            return json.loads(data) if data else None
        problem = _problem(data)
        sentence = f"{method} {path}: {problem.get('detail', f'status {answer.status}')}"
        if answer.status in (408, 429, 502, 503, 504) or problem.get("retry"):
            raise _Again(sentence, answer.status)
        raise ServiceError(sentence, answer.status)


class _Again(ServiceError):  # noqa: N818
    """A failure after which the same request may succeed."""


def _problem(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _in_thread(name: str) -> Callable[..., Any]:
    method = getattr(Client, name)

    @wraps(method)
    async def call(self: "AsyncClient", *args: Any, **named: Any) -> Any:
        return await asyncio.to_thread(method, self._client, *args, **named)

    return call


class AsyncClient:
    """The methods of :class:`Client` for event loops: each is awaited, and waits in a thread of its own.

    Parameters
    ----------
    url : str, default="http://127.0.0.1:8000"
        Where the service is.
    **more : object
        The other parameters of :class:`Client`.

    Examples
    --------
    >>> async with AsyncClient("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     shown = await client.rank(["a", "b"], [[0.2, 1.0], [0.9, 0.1]])
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", **more: Any) -> None:
        self._client = Client(url, **more)

    rank = _in_thread("rank")
    rank_items = _in_thread("rank_items")
    feedback = _in_thread("feedback")
    feedback_many = _in_thread("feedback_many")
    close_ranking = _in_thread("close_ranking")
    models = _in_thread("models")
    versions = _in_thread("versions")
    upload = _in_thread("upload")
    change = _in_thread("change")
    ledger = _in_thread("ledger")
    certificate = _in_thread("certificate")
    experiment = _in_thread("experiment")
    experiments = _in_thread("experiments")
    stop_experiment = _in_thread("stop_experiment")
    status = _in_thread("status")
    healthy = _in_thread("healthy")

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
