"""A simulated crowd for ``rankwise serve --demo``: it asks for rankings and says what was relevant.

A hidden vector decides what is relevant; one judgement in twenty is wrong. The model begins with nothing and learns
from what the crowd says, over HTTP, as any client would.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data.synthetic.streams import noisy_stream
from rankwise.rankers.linear.linear_model import LinearModel
from rankwise.rankers.online.perceptron import SLAMPerceptron
from rankwise.serve.client import Client, ServiceError

FEATURES, DOCUMENTS = 20, 20
_NAMES = [f"feature_{number}" for number in range(1, FEATURES + 1)]


def demo_models(folder: Path) -> dict[str, Path]:
    """Files of a learner that knows nothing yet, and of a fixed ranker to compare with."""
    folder.mkdir(parents=True, exist_ok=True)
    learner = SLAMPerceptron(measure="nDCG@10", scale="none")
    learner.partial_fit([(np.zeros((2, FEATURES)), np.zeros(2))])  # one empty round: only the width is known
    fixed = LinearModel.of(np.eye(FEATURES)[0])
    files = {"learner": folder / "learner.rankwise", "first-feature": folder / "first-feature.rankwise"}
    learner.save(files["learner"])
    fixed.save(files["first-feature"])
    return files


class Crowd:
    """A thread that feeds a service.

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
        self.client, self.rate, self.say = Client(url, token=token, attempts=2), rate, say
        self.stream = noisy_stream(
            lists, documents=DOCUMENTS, features=FEATURES, margin=0.01, noise=0.05, random_state=seed
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
        lately: deque[float] = deque(maxlen=100)
        told, ids = time.monotonic(), [f"document {number}" for number in range(1, DOCUMENTS + 1)]
        try:
            self.client.experiment("learner-against-first-feature", "shadow", "learner", "first-feature")
        except RankwiseError as error:
            if not isinstance(error, ServiceError) or error.status != 409:  # a state that goes on has it already
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
                    self.say(f"the crowd has stopped: {error}")
                return
            self.sent += 1
            lately.append(float(grades[ids.index(shown["items"][0]["id"])] == grades.max()))
            if began - told >= 2.0:
                told = began
                self.say(
                    f"  {self.sent:>6,} lists judged, version {shown['version']:,}: one of the best documents came "
                    f"first in {100 * np.mean(lately):.0f} % of the last {len(lately)}"
                )
            self._stop.wait(max(0.0, 1 / self.rate - (time.monotonic() - began)))
