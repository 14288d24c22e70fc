"""Ten thousand fuzzed requests from the OpenAPI description: no fault, no crash, no secret in the logs.

``python3 run.py python -m experiments.serve_fuzz [SCHEMATHESIS [SEED]]`` needs the program ``schemathesis``, which is
in no group of this project (``pip install schemathesis`` in an environment of its own); its path is the argument. The
server runs on the loopback address with tokens and is counted by its own metrics.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from rankwise.cli.serve import demo_models
from rankwise.serve.tokens import SCOPES, add_token

WANTED = 10_000
EXAMPLES = 100  # per operation and run
RUNS = 60
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"


def counted(url: str, token: str) -> dict[str, int]:
    """Requests by status, as the service counts them."""
    asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, int] = {}
    for status, count in re.findall(r'rankwise_request_seconds_count\{.*?status="(\d+)"\} ([\d.e+]+)', text):
        found[status] = found.get(status, 0) + int(float(count))
    return found


def main() -> int:
    program = sys.argv[1] if len(sys.argv) > 1 else shutil.which("schemathesis")
    if program is None:
        print("schemathesis is needed: give its path", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = demo_models(folder)
        token = add_token(folder / "tokens", "fuzz", list(SCOPES))
        command = [sys.executable, "-m", "rankwise", "serve", *map(str, files.values()), "--port", "0", "--access-log"]
        command += ["--state", str(folder / "state.db"), "--tokens", str(folder / "tokens")]
        with open(folder / "log", "w") as log:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert server.stdout is not None
            url = re.search(r"http://\S+", server.stdout.readline())[0]  # type: ignore[index]
            problems = []
            first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
            for number in range(first, first + RUNS):
                done = subprocess.run(
                    [program, "run", f"{url}/openapi.json", "--checks", CHECKS, "--max-examples", str(EXAMPLES),
                     "--seed", str(number), "-H", f"Authorization: Bearer {token}", "--phases", "fuzzing",
                     "--request-timeout", "20", "--continue-on-failure"],
                    capture_output=True, text=True, check=False, cwd=folder,
                )  # fmt: skip
                found = counted(url, token)
                print(f"seed {number}: {sum(found.values()):,} requests so far, {found}", flush=True)
                problems += [] if done.returncode == 0 else [done.stdout[-6000:]]
                if sum(found.values()) >= WANTED:
                    break
            alive = server.poll() is None
        finally:
            server.terminate()
            server.wait(30)
        secret = token in (folder / "log").read_text()
        faults = sum(count for status, count in found.items() if status.startswith("5") and status != "503")
        print("\n".join(problems[:1]))
        print(f"{sum(found.values()):,} requests, {faults} faults, alive: {alive}, secret in the logs: {secret}")
        return int(bool(problems or faults or not alive or secret or sum(found.values()) < WANTED))


if __name__ == "__main__":
    sys.exit(main())
