"""The page of the service."""

from collections.abc import Iterator
from inspect import signature

from benchmarks.serve import CONNECTIONS, as_table
from rankwise.guarantees.holdout.sequences import RunningMean
from rankwise.serve.log import Log
from tests.prose.claims import claims, stated
from tests.prose.pages import path_of, stored
from tests.serve import test_killed

stated(
    "serve.md", "answers of HTTP: tests/serve/test_http.py", "other content gives 409", "does not know gives 409 with"
)
stated("serve.md", "answers of HTTP: tests/serve/test_hostile.py", "get 408, 413 or 503", "feedback gets 503")
stated(
    "serve.md", "a type", "little-endian float32", "arrays of float32 in", "features as float32", "(float64 otherwise)"
)
stated("serve.md", "a version of a standard", "(OpenAPI 3.1)")
stated("serve.md", "a mode of files: tests/serve/test_owner.py", "have mode 0600")
stated("serve.md", "a direction, not a comparison", "set ahead or back")
stated("serve.md", "a place, not a comparison", "use it behind a proxy", "Put replicas behind a proxy")
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
