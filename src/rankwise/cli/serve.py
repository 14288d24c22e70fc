"""``rankwise serve``: the online ranking service, and the commands around its state."""

import asyncio
import json
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import typer

from rankwise.cli import reading
from rankwise.cli.options import argument, model_option, online_option, option, output_option, service_option
from rankwise.errors import RankwiseError


def serve(
    models: list[Path] | None = argument(
        None,
        "Model files that `train` wrote, or of LightGBM, XGBoost or CatBoost; each is served under its file's name.",
    ),
    state: Path | None = service_option(None, "The SQLite file that holds the whole state (default: rankwise.db)."),
    host: str = service_option("127.0.0.1", "Address to listen on; anything but loopback requires --tokens."),
    port: int = service_option(8000, "Port; 0 picks a free one.", min=0, max=65535),
    tokens: Path | None = service_option(None, "File of tokens; SIGHUP reloads it."),
    new_token: str | None = service_option(
        None,
        "Make a token (scopes: rank, feedback, read, admin), add its hash to --tokens, print it, and stop.",
        metavar="NAME:SCOPES",
    ),
    name: str | None = model_option(None, "Name of the model, if one file is given."),
    window: float = online_option(1800, "Seconds after the first click until a ranking is closed.", min=0),
    retention: float = online_option(7, "Days that rankings without feedback are kept.", min=1),
    floor: float | None = online_option(
        None, "Promised value of the measure: raises an alarm once it is provably missed."
    ),
    cutoff: list[Path] | None = model_option(None, "A cut-off of a model, for requests with cut; may be repeated."),
    training: Path | None = model_option(
        None, "Training queries, whose feature ranges are the reference of the drift alarm."
    ),
    http: Literal["h11", "httptools"] = service_option(
        "h11", "HTTP parser; httptools is faster and requires the package httptools."
    ),
    access_log: bool = output_option(False, "Log every request, as JSON."),
    accept_loss: bool = service_option(False, "Start even if acknowledged events are missing at the end of the state."),
    demo: bool = service_option(False, "Serve demo models to simulated users, and watch one learn."),
    seconds: float | None = option(None, None, hidden=True),
    as_json: reading.JsonOption = False,
) -> None:
    """Serve rankings over HTTP, and learn from feedback on them.

    Feedback is on disk when it is acknowledged, and counts once however often it is sent. The state is one file, from
    which `rankwise replay` rebuilds every version of every model, bit for bit. The status page is at /, the API
    description at /openapi.json. Ctrl-C stops the service cleanly. Requires the extra serve.

    Example: rankwise serve --demo

    Example: rankwise serve model.rankwise --state state.db --tokens tokens
    """
    from rankwise._extras import require

    for module in ("msgspec", "starlette", "uvicorn", "prometheus_client"):
        require(module)  # missing: one sentence before anything is opened
    from rankwise.serve.tokens import Tokens, add_token

    if new_token is not None:
        who, _, scopes = new_token.partition(":")
        if tokens is None:
            raise RankwiseError("--new-token requires --tokens FILE")
        print(add_token(tokens, who, [one for one in scopes.split(",") if one]))
        return
    files = {(name if name and len(models or ()) == 1 else path.stem): path for path in models or ()}
    if len(files) < len(models or ()):
        raise RankwiseError("the model files must have different names, since each is served under its file name")
    callers = None if tokens is None else Tokens(tokens)
    from rankwise.serve.app import make_app
    from rankwise.serve.server import log_in_json, make_server, run_server
    from rankwise.serve.service import Service

    log_in_json()
    with tempfile.TemporaryDirectory(prefix="rankwise-demo-") as folder:
        if demo:
            files = demo_models(Path(folder)) | files
        state = state or (Path(folder) / "state.db" if demo else Path("rankwise.db"))
        if not files and not state.exists():
            raise RankwiseError("nothing to serve: give a model file, a state with models, or --demo")
        limits: dict[str, Any] = {"window": window, "retention": retention * 86_400, "floor": floor}
        limits["cutoffs"] = cutoff or ()
        service = Service(state, dict(files), accept_loss=accept_loss, **limits)
        app = make_app(service, callers, access_log=access_log)
        if training is not None:
            _declare(service, training)
        crowds: list[Crowd] = []

        def announce(address: str) -> None:
            names = ", ".join(service.view.models) or "no model yet"
            if as_json:
                info = {"address": address, "models": list(service.view.models), "version": service.view.seq}
                typer.echo(json.dumps({**info, "state": os.fspath(state)}))
            else:
                typer.echo(f"serving {names} at {address} (status page), state {state}, version {service.view.seq:,}")
            if demo:
                typer.echo("simulated users judge 25 rankings per second; press Ctrl-C to stop")
                crowds.append(Crowd(address, say=typer.echo).start())

        server = make_server(app, host, port, http=http)

        async def run() -> None:
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, setattr, server, "should_exit", True)
            await run_server(server, app, announce)

        try:
            asyncio.run(run())
        except KeyboardInterrupt:  # uvicorn has shut down by then
            pass
        finally:
            for crowd in crowds:
                crowd.stop()
            if not service.log._closing:
                service.close()
        if as_json:
            typer.echo(json.dumps({"stopped": True, "version": service.view.seq}))
        else:
            kept = f"; the state is in {os.fspath(state)}" if not os.fspath(state).startswith(folder) else ""
            typer.echo(f"stopped cleanly at version {service.view.seq:,}{kept}")


def _declare(service: Any, training: Path) -> None:
    """The ranges of features in the training queries are the usual ones."""
    import numpy as np

    queries = reading.read_queries(training, {})
    for name, used in service.view.models.items():
        if used.ranker.n_features_in_ == queries.n_features:
            service.drift.declare(name, np.nanmin(queries.X, axis=0), np.nanmax(queries.X, axis=0))


def replay(
    state: Path = argument(..., "The state of a service; it may be running."),
    out: Path = option(..., "The model file to write.", "-o"),
    to: int | None = option(None, "The last event (default: the end of the log).", min=0),
    model: str | None = option(None, "The model (default: the default model of the service)."),
    snapshots: bool = option(False, "Start from the last snapshot before it, not from the first event: faster."),
    as_json: reading.JsonOption = False,
) -> None:
    """Rebuild a version of a model from the log of a service, bit for bit.

    A version is a place in the log. Replaying from the start and from a snapshot gives the same file.

    Example: rankwise replay state.db --to 20 -o model.rankwise
    """
    from rankwise.serve.replay import Replay
    from rankwise.serve.statefile import open_to_read

    db = open_to_read(state)
    try:
        rebuilt = Replay.at(db, to, from_nothing=not snapshots)
    finally:
        db.close()
    name = model or rebuilt.default
    if name is None or name not in rebuilt.models:
        known = ", ".join(rebuilt.models) or "none"
        raise RankwiseError(f"the log has no model {name!r} at event {rebuilt.seq:,}; available: {known}")
    served = rebuilt.models[name]
    served.ranker.save(out)
    if as_json:
        print(json.dumps({"model": name, "seq": rebuilt.seq, "lists": served.lists, "file": os.fspath(out)}))
        return
    print(f"{name} after event {rebuilt.seq:,}: learned from {served.lists:,} lists, written to {out}")


def state(
    what: Literal["check", "backup", "compact"] = argument(..., "What to do."),
    file: Path = argument(..., "The state of a service."),
    to: Path | None = option(None, "The copy, for backup."),
    as_json: reading.JsonOption = False,
) -> None:
    """Check, copy or compact the state of a service.

    check reads everything that learning reads, and reports the first event that is not as it was written. backup copies
    a state while its service runs. compact replaces the log so far by a snapshot; stop the service first. Older
    versions cannot be rebuilt afterwards, and recorded events stay recorded.

    Example: rankwise state backup state.db --to copy.db
    """
    from rankwise.serve import statefile, upkeep

    if what == "check":
        found = upkeep.check(file)
        sentence = f"{file} is intact: " + ", ".join(f"{count:,} {name}" for name, count in found.items())
    elif what == "backup":
        if to is None:
            raise RankwiseError("backup requires --to FILE")
        found = {"events": upkeep.backup(file, to)}
        sentence = f"{to} holds the first {found['events']:,} events"
    else:
        if not file.is_file():
            raise RankwiseError(f"{file} does not exist: expected the state of a service")
        opened = statefile.StateFile(file)
        before = file.stat().st_size
        try:
            found = upkeep.compact(opened)
        finally:
            opened.close()
        found |= {"before": before, "after": file.stat().st_size}
        sentence = (
            f"compacted {found['events']:,} events and {found['rankings']:,} rankings into a snapshot: "
            f"{found['before']:,} bytes before, {found['after']:,} after"
        )
    print(json.dumps(found) if as_json else sentence)


# ---------------------------------------------------------------------------------------------------- the demonstration

_FEATURES, _DOCUMENTS = 20, 20


def demo_models(folder: Path) -> dict[str, Path]:
    """Files of a learner that knows nothing yet, and of a fixed ranker to compare with."""
    import numpy as np

    from rankwise.rankers.linear.linear_model import LinearModel
    from rankwise.rankers.online.perceptron import SLAMPerceptron

    folder.mkdir(parents=True, exist_ok=True)
    learner = SLAMPerceptron(measure="nDCG@10", scale="none")
    learner.partial_fit([(np.zeros((2, _FEATURES)), np.zeros(2))])  # one empty round: only the width is known
    fixed = LinearModel.of(np.eye(_FEATURES)[0])
    files = {"learner": folder / "learner.rankwise", "first-feature": folder / "first-feature.rankwise"}
    learner.save(files["learner"])
    fixed.save(files["first-feature"])
    return files


class Crowd:
    """A simulated crowd, in a thread: it requests rankings and sends feedback over HTTP, as any client would.

    A hidden vector decides what is relevant; one judgment in twenty is wrong.

    Parameters
    ----------
    url : str
        The service.
    rate : float, default=25.0
        Rankings a second.
    lists : int, default=100000
        Rankings in all.
    say : callable, default=print
        Receives a line every few seconds.
    seed : int, default=0
        Seed of the stream.
    token : str, default=None
        The token, if the service asks for one.
    """

    def __init__(
        self,
        url: str,
        *,
        rate: float = 25.0,
        lists: int = 100_000,
        say: Callable[[str], None] = print,
        seed: int = 0,
        token: str | None = None,
    ) -> None:
        from rankwise.serve.client import Client
        from rankwise.synthetic.streams import noisy_stream

        self.client, self.rate, self.say = Client(url, token=token, attempts=2), rate, say
        self.stream = noisy_stream(
            lists, documents=_DOCUMENTS, features=_FEATURES, margin=0.01, noise=0.05, random_state=seed
        )
        self.sent, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._run, name="rankwise-crowd", daemon=True)

    def start(self) -> "Crowd":
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, and wait for the last answer."""
        self._stop.set()
        self._thread.join(timeout=15)
        self.client.close()

    def _run(self) -> None:
        import numpy as np

        from rankwise.serve.client import ServiceError

        lately: deque[float] = deque(maxlen=100)
        reported, ids = time.monotonic(), [f"document {number}" for number in range(1, _DOCUMENTS + 1)]
        try:
            self.client.experiment("learner-against-first-feature", "shadow", "learner", "first-feature")
        except RankwiseError as error:
            if not isinstance(error, ServiceError) or error.status != 409:  # a state that is resumed has it already
                self.say(str(error))
        for query in self.stream:
            if self._stop.is_set():
                return
            began, grades = time.monotonic(), np.asarray(query.y)
            try:
                shown = self.client.rank(ids, np.asarray(query.X, np.float32), model="learner")
                self.client.feedback(shown["ranking"], grades=grades.tolist())
            except RankwiseError as error:
                gone = isinstance(error, ServiceError) and error.status == 0  # the service has stopped before
                if not self._stop.is_set() and not gone:
                    self.say(f"the simulated users have stopped: {error}")
                return
            self.sent += 1
            lately.append(float(grades[ids.index(shown["items"][0]["id"])] == grades.max()))
            if began - reported >= 2.0:
                reported = began
                self.say(
                    f"  {self.sent:>6,} lists judged, version {shown['version']:,}: one of the best documents came "
                    f"first in {100 * np.mean(lately):.0f}% of the last {len(lately)}"
                )
            self._stop.wait(max(0.0, 1 / self.rate - (time.monotonic() - began)))
