"""The page of the service."""

import sqlite3
from collections.abc import Iterator
from inspect import signature
from random import Random

from benchmarks.serve import CONNECTIONS, as_table
from experiments.serve_guarantees import as_table as as_split_table
from rankwise.guarantees.holdout.sequences import RunningMean
from rankwise.serve.log import Log
from rankwise.serve.statefile import _PAGE, SCHEMA
from tests.prose.claims import claims, stated
from tests.prose.pages import path_of, stored
from tests.serve import test_killed

stated(
    "serve.md",
    "answers of HTTP: tests/serve/test_http.py",
    "other content gives 409",
    "does not know gives 409 with",
    "than were ranked give 409",
)
stated("serve.md", "answers of HTTP: tests/serve/test_hostile.py", "get 400, 408, 413 or 503", "feedback gets 503")
stated(
    "serve.md", "a type", "little-endian float32", "arrays of float32 in", "features as float32", "(float64 otherwise)"
)
stated("serve.md", "a version of a standard", "(OpenAPI 3.1)")
stated("serve.md", "a place, not a comparison", "Put replicas behind a proxy")
stated(
    "serve.md", "definitions: tests/serve/test_experiments.py", "count as 0", "1, 0 or -1", "they would be 0",
    "then names the better model", "never better with probability", "first ranking that the user was shown",
)  # fmt: skip
stated("serve.md", "a mode of files: tests/serve/test_owner.py", "have mode 0600")
stated("serve.md", "a direction, not a comparison", "set ahead or back")
stated("serve.md", "which team drafts are fair: tests/clicks", "label 1")


@claims("serve.md")
def kills() -> Iterator[str]:
    assert test_killed.CONNECTIONS == 16
    yield "at a hundred random moments while sixteen connections ranked"


@claims("serve.md")
def probability_of_the_interval() -> Iterator[str]:
    assert signature(RunningMean).parameters["delta"].default == 0.05
    yield "with probability 0.95, the mean"


@claims("serve.md")
def splits() -> Iterator[str]:
    found = stored("serve_guarantees")
    assert as_split_table(found) in path_of("serve.md").read_text(encoding="utf-8")
    for row in found["split"]:
        if row["lift"] == 0:
            assert row["model"] + row["challenger"] <= found["most"]
        else:
            assert row["challenger"] >= 0.7
    assert all(row["anytime"] <= found["most"] for row in found["risk"])
    yield "simulates users of very different activity"


@claims("serve.md")
def row_of_a_user() -> Iterator[str]:
    db, random, rows = sqlite3.connect(":memory:"), Random(0), 20_000
    db.execute(f"PRAGMA page_size={_PAGE}")
    db.executescript(SCHEMA)
    (before,) = db.execute("PRAGMA page_count").fetchone()
    db.executemany("INSERT INTO unit VALUES(?)", [(random.getrandbits(64) - 2**63,) for _ in range(rows)])
    (after,) = db.execute("PRAGMA page_count").fetchone()
    assert 12 <= (after - before) * _PAGE / rows <= 18
    yield "one row of about 15 bytes"


@claims("serve.md")
def loads() -> Iterator[str]:
    found = stored("serve_results")
    assert found["connections"] == CONNECTIONS
    assert as_table(found) in path_of("serve.md").read_text(encoding="utf-8")
    for what in ("rank 20 x 20 JSON", "rank 100 x 136 binary"):
        assert found["results"]["h11"][what]["of_hello"] <= 4
    assert found["results"]["h11"]["feedback, durable"]["rps"] >= 1_000
    hello, other = (found["results"][http]["hello"]["cpu_us"] for http in ("h11", "httptools"))
    assert other < hello
    yield "`--http httptools` costs less"


assert signature(Log).parameters["window"].default == 1_800
