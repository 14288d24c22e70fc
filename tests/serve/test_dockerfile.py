"""The Dockerfile, as far as no engine is needed: what it copies is there, what it runs is accepted, and not by root."""

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from rankwise._workloads import workloads
from rankwise.cli import app
from rankwise.serve.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions():
    """(instruction, arguments) of every logical line."""
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


FOUND = instructions()


def of(kind):
    return [arguments for name, arguments in FOUND if name == kind]


def accepted(words):
    """Parse a command line of rankwise as the shell would, and run nothing."""
    group = typer.main.get_command(app)
    name, *rest = words
    return group.commands[name].make_context(name, list(rest))


def command_lines():
    """Every command line of rankwise in the file: in RUN, in ENTRYPOINT with CMD, and in the comments."""
    for line in of("RUN"):
        for part in re.split(r"&&|;", line):
            words = shlex.split(part)
            if words and words[0] == "rankwise":
                yield words[1:]
    entry, usual = (json.loads(of(kind)[0]) for kind in ("ENTRYPOINT", "CMD"))
    assert entry[0] == "rankwise"
    yield [*entry[1:], *usual]
    comments = re.sub(r"\\\n#\s*", "", "\n".join(line for line in TEXT.splitlines() if line.startswith("#")))
    for arguments in re.findall(r"docker run .*? rankwise(?: (.*))?$", comments, re.M):
        yield [*entry[1:], *(shlex.split(arguments) or usual)]


@pytest.mark.parametrize("words", list(command_lines()), ids=" ".join)
def test_every_command_line_is_accepted(words):
    found = accepted(words)
    if words[0] == "warm":
        assert set(found.params["names"]) <= set(workloads())


def test_a_wrong_command_line_would_be_found():
    with pytest.raises(Exception, match="No such option"):
        accepted(["serve", "--demos"])


def test_everything_that_is_copied_is_there():
    copied = [word for line in of("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert {"pyproject.toml", "src"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_service_does_not_run_as_root_and_owns_its_state():
    assert of("USER")[-1] not in ("root", "0")
    made = next(line for line in of("RUN") if "useradd" in line)
    assert of("USER")[-1] in made
    assert f"chown {of('USER')[-1]} {of('VOLUME')[-1]}" in made
    after = [name for name, _ in FOUND[FOUND.index(("USER", of("USER")[-1])) :]]
    assert "RUN" in after  # kernels are compiled by the user who runs them
    assert "COPY" not in after


def test_the_port_and_the_check_of_health_are_those_of_the_service():
    assert of("EXPOSE") == [str(accepted(["serve", "--demo"]).params["port"])]
    (asked,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", of("HEALTHCHECK")[0])
    assert asked[0] == of("EXPOSE")[0]
    assert asked[1] in {one.path for one in OPERATIONS}
