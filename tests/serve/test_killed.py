"""SIGKILL at random moments, under load with duplicates and retries: nothing is lost, and nothing counts twice."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rankwise.serve import statefile
from rankwise.serve.client import Client, ServiceError
from rankwise.serve.replay import Replay, file_of
from tests.serve.running import IDS, lists, saved

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
ROOT = Path(__file__).parents[2]
CONNECTIONS = 16


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Crowd:
    """Connections that rank and judge, repeat themselves, and note what was acknowledged."""

    def __init__(self, port, seed):
        self.url, self.stopped = f"http://127.0.0.1:{port}", threading.Event()
        self.acknowledged, self.wrong, self.gave_up = {}, [], 0
        self.threads = [threading.Thread(target=self.run, args=(number, seed)) for number in range(CONNECTIONS)]
        for one in self.threads:
            one.start()

    def run(self, number, seed):
        chance, client = random.Random(f"{seed} {number}"), Client(self.url, attempts=1, timeout=5)
        before = None
        for turn, (X, y) in enumerate(lists(100_000, seed=1000 * seed + number)):
            if self.stopped.is_set():
                break
            try:
                shown = client.rank(IDS, X)
            except ServiceError:
                time.sleep(0.02)
                continue
            id = f"{seed} {number} {turn}"
            told = {"grades": y} if chance.random() < 0.8 else {"clicks": [chance.choice(IDS)]}
            for _ in range(1 + (chance.random() < 0.3)):  # some are sent twice, whatever the answer was
                self.send(client, shown["ranking"], id, told)
            if before is not None and chance.random() < 0.1:  # and some long after
                self.send(client, *before)
            before = shown["ranking"], id, told

    def send(self, client, ranking, id, told):
        """Send an event until it is acknowledged; a ranking that was lost with the process is given up."""
        unknown = 0
        while not self.stopped.is_set() and unknown < 3:
            try:
                seq = client.feedback(ranking, id=id, **told)["seq"]
            except ServiceError as error:
                unknown += error.status == 409
                if error.status not in (0, 409, 503):
                    self.wrong.append(str(error))
                time.sleep(0.02)
                continue
            if self.acknowledged.setdefault(id, seq) != seq:
                self.wrong.append(f"{id} was acknowledged at {self.acknowledged[id]} and at {seq}")
            return
        self.gave_up += 1


def killed(tmp_path, kills, seed, longest):
    """Kill a service so often, with everything checked from its state alone."""
    state, port, chance = tmp_path / "state.db", free_port(), random.Random(seed)
    model = saved(tmp_path)["news"]
    command = [sys.executable, "-m", "tests.serve.forked", str(state), str(model), str(port)]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    crowd = None
    try:
        assert parent.stdout.readline() == "ready\n"
        for number in range(kills + 1):
            print("start", file=parent.stdin, flush=True)
            child = int(parent.stdout.readline())
            crowd = crowd or Crowd(port, seed)
            watch = Client(crowd.url, attempts=100, timeout=5)
            watch.models()  # it answers
            before = len(crowd.acknowledged)
            began = time.monotonic()
            while len(crowd.acknowledged) < before + 20 and time.monotonic() - began < 20:
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, longest))
            if number == kills:
                crowd.stopped.set()
                for one in crowd.threads:
                    one.join(20)
            os.kill(child, signal.SIGKILL)
            while Path(f"/proc/{child}").exists() and time.monotonic() - began < 60:
                time.sleep(0.005)
            check(state, crowd)
    finally:
        if crowd is not None:
            crowd.stopped.set()
        parent.stdin.close()
        parent.wait(20)
    assert len(crowd.acknowledged) >= 20 * kills
    return crowd


def check(state, crowd):
    acknowledged = dict(crowd.acknowledged)
    db = statefile.open_to_read(state)
    statefile.check_tail(db, state, 0)
    found = dict(db.execute("SELECT id, seq FROM event"))
    lost = [id for id, seq in acknowledged.items() if found.get(id) != seq]
    assert lost == []
    assert crowd.wrong == []
    restarted, nothing = Replay.at(db), Replay.at(db, from_nothing=True)
    assert file_of(restarted.models["news"].ranker) == file_of(nothing.models["news"].ranker)
    (closed,) = db.execute("SELECT count(DISTINCT ranking) FROM event WHERE kind IN ('grades', 'close')").fetchone()
    (closings,) = db.execute("SELECT count(*) FROM event WHERE kind IN ('grades', 'close')").fetchone()
    assert nothing.models["news"].lists == closings == closed
    assert nothing.models["news"].ranker.ledger_.rounds == closed + 1  # the model came with one round
    assert np.isfinite(nothing.models["news"].ranker.coef_).all()
    db.close()


def test_a_killed_service_has_lost_nothing_and_learned_nothing_twice(tmp_path):
    killed(tmp_path, 2, seed=1, longest=0.1)


@pytest.mark.thorough
def test_a_hundred_kills(tmp_path):
    crowd = killed(tmp_path, 100, seed=2, longest=0.6)
    print(f"\n100 kills: {len(crowd.acknowledged):,} events acknowledged, {crowd.gave_up:,} never acknowledged")
