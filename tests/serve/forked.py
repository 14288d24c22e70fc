"""Servers to be killed: a process that has everything imported, and forks one for every line it reads.

``python -m tests.serve.forked STATE MODEL PORT``
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from rankwise.rankers.scorer import Scorer
from rankwise.serve.app import make_app
from rankwise.serve.replay import ranker_of_bytes
from rankwise.serve.server import make_server
from rankwise.serve.service import Service


def main() -> None:
    state, model, port = sys.argv[1:]
    ranker = ranker_of_bytes(Path(model).read_bytes())
    Scorer(ranker)  # compiled code is loaded once, here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.stdin.close()
            service = Service(state, {"news": model}, snapshot_every=150, window=0.2)
            server = make_server(make_app(service), "127.0.0.1", int(port))
            asyncio.run(server.serve())
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main()
