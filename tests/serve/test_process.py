"""The service as a process of its own: signals, a second process, tokens read again, a clean end."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from rankwise.serve.client import Client, ServiceError
from rankwise.serve.tokens import add_token
from rankwise.serve.upkeep import check
from tests.serve.running import IDS, lists, saved

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs the signals of POSIX")


def command(folder, *more):
    words = ["serve", "news.rankwise", "--state", "state.db", "--port", "0", *more]
    return [sys.executable, "-m", "rankwise", *words], {"cwd": folder, "text": True}


def test_a_process_is_reloaded_guards_its_state_and_ends_cleanly(tmp_path):
    saved(tmp_path)
    old = add_token(tmp_path / "tokens", "old", ["rank", "feedback"])
    words, options = command(tmp_path, "--json", "--tokens", "tokens")
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, **options)
    try:
        address = json.loads(process.stdout.readline())["address"]
        X, y = next(lists(1))
        with Client(address, token=old) as client:
            seq = client.feedback(client.rank(IDS, X)["ranking"], grades=y)["seq"]
        second = subprocess.run(command(tmp_path)[0], capture_output=True, timeout=60, check=False, **options)
        assert second.returncode == 2
        assert second.stderr.strip().endswith("state.db is in use by another service: only one process may use a state")
        (tmp_path / "tokens").unlink()
        new = add_token(tmp_path / "tokens", "new", ["rank"])
        process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while "read again" not in (tmp_path / "log").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        with Client(address, token=new) as client:
            assert client.rank(IDS, X, min_seq=seq)["version"] == seq
        with Client(address, token=old, attempts=1) as client, pytest.raises(ServiceError, match="not valid"):
            client.rank(IDS, X)
        process.send_signal(signal.SIGTERM)
        assert json.loads(process.stdout.readline()) == {"stopped": True, "version": seq}
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()
    assert check(tmp_path / "state.db")["events"] == seq
    logged = (tmp_path / "log").read_text()
    assert [one for one in (old, new) if one in logged] == []
    assert all(json.loads(line)["level"] == "info" for line in logged.splitlines())


@pytest.mark.thorough
def test_ctrl_c_is_a_clean_end(tmp_path):
    saved(tmp_path)
    words, options = command(tmp_path)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == "stopped cleanly at version 1; the state is in state.db\n"
    assert said == ""
