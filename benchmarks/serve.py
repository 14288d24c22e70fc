"""A load generator for the service: CPU of rankings beside a "hello" of the same server, latency, durable feedback.

The server is a process of its own on the loopback address, with what was shown written to its state. Its CPU time is
read from /proc, so that the figures hold on a busy machine; requests a second and latencies are those of the machine as
it was. Everything is bounded in number and time. ``python3 run.py python -m benchmarks.serve`` also writes
docs/serve_results.json. With ``--promotions`` it measures only what promotions cost, and prints that as ratios.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row
from benchmarks.symmetric_trees import data
from experiments.pages import write_block

CONNECTIONS = 16
REQUESTS = 4_000
ROUNDS = 3
SECONDS = 60.0  # of one measurement, at most
DOCS = Path(__file__).parents[1] / "docs"
TREES, LEAVES, GROWN = 500, 64, 24_000
WIDE = "rank 100 x 136 binary"
BY_TREES = f"{WIDE}, {TREES} trees of {LEAVES} leaves"


@contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """A server process: its address and its id."""
    command = [sys.executable, "-m", "rankwise", "serve", *options, "--state", str(folder / "state.db"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, "the server did not start"
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
    """The bytes of a request."""
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def load(
    url: str, make: Callable[[int], bytes], count: int, connections: int = CONNECTIONS, seconds: float = SECONDS
) -> dict[str, Any]:
    """Send ``count`` requests over some connections, each after the answer to the one before."""
    host, port = url.removeprefix("http://").split(":")
    numbers, latencies, answers, refused = iter(range(count)), [], [], 0
    deadline = time.monotonic() + seconds

    async def talk() -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in numbers:
            if time.monotonic() > deadline:
                break
            sent = make(number)
            began = time.perf_counter()
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
            body = await reader.readexactly(length)
            latencies.append(time.perf_counter() - began)
            refused += not head.startswith(b"HTTP/1.1 200")
            answers.append(body)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(talk() for _ in range(connections)))
    wall = time.perf_counter() - began
    half, high = np.percentile(latencies, [50, 99])
    return {
        "requests": len(latencies),
        "refused": refused,
        "rps": len(latencies) / wall,
        "p50_ms": 1e3 * float(half),
        "p99_ms": 1e3 * float(high),
        "answers": answers,
    }


def measured(url: str, pid: int, make: Callable[[int], bytes], count: int) -> dict[str, Any]:
    """A load with the CPU of the server per request, until nothing of it waits to be written."""
    before = cpu(pid)
    found = asyncio.run(load(url, make, count))
    time.sleep(0.2)
    found["cpu_us"] = 1e6 * (cpu(pid) - before) / found["requests"]
    return found


def models(folder: Path) -> list[str]:
    """Files of two online rankers, of 20 and of 136 features, and of LightGBM's trees on 136 features."""
    import lightgbm

    import rankwise as rw

    files = []
    for width in (20, 136):
        model = rw.SLAMPerceptron(measure="nDCG@10").fit(rw.make_lists(20, features=width, random_state=1))
        files.append(str(folder / f"wide{width}.rankwise"))
        model.save(files[-1])
    X, y, sizes = data(GROWN, 1)
    params = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "num_leaves": LEAVES, "learning_rate": 0.05}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y, group=sizes, params=params), TREES)
    files.append(str(folder / "trees136.rankwise"))
    rw.TreeRanker.from_lightgbm(booster).save(files[-1])
    return files


def bodies() -> dict[str, Callable[[int], bytes]]:
    """What is sent, by name."""
    random = np.random.default_rng(0)
    small, large = random.normal(size=(20, 20)), np.float32(random.normal(size=(100, 136)))
    ids = [[f"document-{number}" for number in range(size)] for size in (20, 100)]
    rank20 = json.dumps({"model": "wide20", "ids": ids[0], "x": small.round(6).tolist()}).encode()
    made = {"hello": request("/healthz"), "rank 20 x 20 JSON": request("/v1/rank", rank20)}
    for what, model in ((WIDE, "wide136"), (BY_TREES, "trees136")):
        body = json.dumps({"model": model, "ids": ids[1]}).encode() + b"\n" + large.tobytes()
        made[what] = request("/v1/rank", body, "application/vnd.rankwise.f32")
    return {what: lambda _, sent=sent: sent for what, sent in made.items()}


def feedback(url: str, pid: int, count: int, tag: str) -> dict[str, Any]:
    """Rankings, and then one durable event for each."""
    shown = [
        json.loads(one)["ranking"] for one in asyncio.run(load(url, bodies()["rank 20 x 20 JSON"], count))["answers"]
    ]
    grades = np.random.default_rng(1).integers(0, 3, (count, 20)).tolist()

    def make(number: int) -> bytes:
        told = {"id": f"{tag} {number}", "ranking": shown[number], "grades": grades[number]}
        return request("/v1/feedback", json.dumps(told).encode())

    found = measured(url, pid, make, len(shown))
    new = sum(json.loads(one).get("new", False) for one in found["answers"])
    assert new == found["requests"] - found["refused"], f"{new} of {found['requests']} events are new"
    return found


def measure(http: str = "h11", requests: int = REQUESTS, rounds: int = ROUNDS) -> dict[str, dict[str, Any]]:
    """Every load, in alternating rounds; of each the round with the least CPU."""
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(folder, *models(folder), "--http", http) as (url, pid):
            for make in bodies().values():  # warm
                asyncio.run(load(url, make, 100))
            for number in range(rounds):
                for what, make in bodies().items():
                    found = measured(url, pid, make, requests if "100" not in what else requests // 2)
                    _keep(best, what, found)
                _keep(best, "feedback, durable", feedback(url, pid, requests // 2, f"{number}"))
        learned = replayed(folder / "state.db")
    hello = best["hello"]["cpu_us"]
    for one in best.values():
        one["of_hello"] = one["cpu_us"] / hello
    best["hello"]["replayed_per_second"] = learned
    return best


def replayed(state: Path) -> float:
    """Events that one learner takes in per second of CPU, from nothing: reading, learning and measuring."""
    from rankwise.serve.replay import Replay
    from rankwise.serve.statefile import open_to_read

    db = open_to_read(state)
    began = time.process_time()
    replay = Replay.at(db, from_nothing=True)
    rate = replay.seq / (time.process_time() - began)
    db.close()
    return rate


PROMOTIONS = (5, 50, 200)


def promoted(folder: Path, promotions: int, lists: int) -> dict[str, float]:
    """One run with so many promotions of old and new versions, while lists are judged one after the other."""
    from rankwise.cli.serve import demo_models
    from rankwise.serve.replay import Replay
    from rankwise.serve.service import Service
    from rankwise.serve.statefile import open_to_read
    from rankwise.serve.structs import Feedback, RankRequest
    from rankwise.serve.upkeep import backup

    random = np.random.default_rng(0)
    ids, hidden, waits, asked = [f"d{number}" for number in range(20)], random.normal(size=20), [], []
    service = Service(folder / "state.db", {"news": demo_models(folder)["learner"]}, snapshot_every=500)
    for number in range(lists):
        X = np.float32(random.normal(size=(20, 20)))
        shown = service.rank(RankRequest(ids=ids), X)
        grades = (X @ hidden > 2.0).astype(float).tolist()
        began = time.perf_counter()
        service.feedback(Feedback(f"{number}", shown.ranking, grades=grades)).result(60)
        waits.append(time.perf_counter() - began)
        if number * promotions // lists != (number + 1) * promotions // lists:
            committed = service.log.committed
            version = committed if len(asked) % 2 else max(1, committed // 2)
            asked.append(service.change("promote", "news", {"version": version}))
    assert sorted(one.result(60)[1] for one in asked) == [True] * promotions
    backup(folder / "state.db", folder / "killed.db")  # without the snapshot of a clean stop
    service.close()
    found = {"wait": 1e3 * max(waits), "p99": 1e3 * float(np.percentile(waits, 99))}
    for what, from_nothing in (("replay", True), ("restart", False)):
        db = open_to_read(folder / "killed.db")
        began = time.process_time()
        Replay.at(db, from_nothing=from_nothing)
        found[what] = time.process_time() - began
        db.close()
    return found


def measure_promotions(lists: int = 2_000, rounds: int = 3) -> dict[int, dict[str, float]]:
    """What promotions cost: the CPU of a replay and of a restart, and the longest wait of feedback; medians."""
    runs: dict[int, list[dict[str, float]]] = {count: [] for count in PROMOTIONS}
    for number in range(rounds + 1):  # the first only compiles
        for count in PROMOTIONS if number else PROMOTIONS[:1]:
            with tempfile.TemporaryDirectory() as folder:
                found = promoted(Path(folder), count, lists if number else 200)
            if number:
                runs[count].append(found)
    return {count: {what: float(np.median([one[what] for one in of])) for what in of[0]} for count, of in runs.items()}


def print_promotions() -> None:
    """The table of :func:`measure_promotions`, each figure beside that with the fewest promotions."""
    found = measure_promotions()
    first, last = found[PROMOTIONS[0]], found[PROMOTIONS[-1]]
    for count, one in found.items():
        print(
            f"{count:4} promotions in 2,000 judged lists: replay {one['replay']:.2f} s CPU "
            f"({one['replay'] / first['replay']:.2f} x), restart {one['restart']:.2f} s "
            f"({one['restart'] / first['restart']:.2f} x), feedback waits {one['wait']:.0f} ms at most "
            f"({one['wait'] / first['wait']:.2f} x), {one['p99']:.0f} ms in 99% ({one['p99'] / first['p99']:.2f} x)"
        )
    each = (last["replay"] - first["replay"]) / (PROMOTIONS[-1] - PROMOTIONS[0])
    print(f"a promotion adds {1e3 * each:.1f} ms to a replay, however many there are")


def _keep(best: dict[str, dict[str, Any]], what: str, found: dict[str, Any]) -> None:
    found.pop("answers")
    assert not found["refused"], f"{found['refused']} requests of {what!r} were refused"
    if what not in best or found["cpu_us"] < best[what]["cpu_us"]:
        best[what] = {**found, "rps": max(found["rps"], best.get(what, found)["rps"])}
    best[what]["rps"] = max(found["rps"], best[what]["rps"])


def run() -> list[dict[str, Any]]:
    """Rows for the page of benchmarks: the CPU of a "hello" beside that of a ranking."""
    found = measure()
    hello = found["hello"]["cpu_us"] * 1e-6
    return [
        row(
            f"answer one request: {what}",
            "a hello of the same server",
            hello,
            found[what]["cpu_us"] * 1e-6,
            f"{found[what]['rps']:,.0f} requests/s, p99 {found[what]['p99_ms']:.0f} ms",
            "0.25 x",
        )
        for what in ("rank 20 x 20 JSON", WIDE, "feedback, durable")
    ] + [
        row(
            f"answer one request: {BY_TREES}",
            "the same by a linear ranker",
            found[WIDE]["cpu_us"] * 1e-6,
            found[BY_TREES]["cpu_us"] * 1e-6,
            f"{found[BY_TREES]['rps']:,.0f} requests/s, p99 {found[BY_TREES]['p99_ms']:.0f} ms",
            "0.5 x",
        )
    ]


def as_table(stored: dict[str, Any]) -> str:
    """The measured loads, as the page of the service shows them."""
    where = stored["machine"]
    lines = [
        f"Measured on {where['cores']} cores ({where['processor']}) with {stored['connections']} connections; the load "
        f"of the machine was {stored['load']:.0f}.",
        "",
        "| parser | request | CPU | times hello | requests a second | median | 99% |",
        "|---|---|---|---|---|---|---|",
    ]
    for http, found in stored["results"].items():
        for what, one in found.items():
            lines.append(
                f"| {http} | {what} | {one['cpu_us']:.0f} us | {one['of_hello']:.1f} | {one['rps']:,.0f} "
                f"| {one['p50_ms']:.1f} ms | {one['p99_ms']:.0f} ms |"
            )
    learned = max(one["hello"]["replayed_per_second"] for one in stored["results"].values())
    lines += [
        "",
        f"The learner alone takes in {learned:,.0f} events per second of CPU, read from the log (`rankwise replay`).",
    ]
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:] == ["--promotions"]:
        print_promotions()
        return
    results = {}
    for http in ("h11", "httptools"):
        results[http] = measure(http)
        print(f"{http}, {CONNECTIONS} connections")
        for what, one in results[http].items():
            print(
                f"  {what:<22} {one['cpu_us']:6.0f} us CPU, {one['of_hello']:4.1f} of hello, "
                f"{one['rps']:6,.0f} a second, p50 {one['p50_ms']:5.1f} ms, p99 {one['p99_ms']:5.1f} ms"
            )
    from benchmarks.__main__ import machine

    stored = {"machine": machine(), "connections": CONNECTIONS, "load": os.getloadavg()[0], "results": results}
    (DOCS / "serve_results.json").write_text(json.dumps(stored, indent=1) + "\n")
    write_block(DOCS / "serve.md", "loads", as_table(stored))


if __name__ == "__main__":
    main()
