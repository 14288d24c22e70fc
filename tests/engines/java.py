"""Engines of the Java registry: a pom each, and a small program over what it names."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.engines.databases import Unavailable

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 420  # for all downloads of an engine


def version_of(engine):
    """The version of the first dependency in the engine's pom."""
    text = (HERE / engine / "pom.xml").read_text(encoding="utf-8")
    return re.search(r"<version>([\d.]+)</version>\s*</dependency>", text)[1]


def prepare(engine):
    """The class path of an engine with its compiled program; resolved by Maven once for each pom."""
    for program in ("mvn", "javac", "java"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")
    pom = HERE / engine / "pom.xml"
    (source,) = (HERE / engine).glob("*.java")
    digest = hashlib.sha256(pom.read_bytes() + source.read_bytes()).hexdigest()[:12]
    folder = ROOT / ".rankwise-env" / "engines" / f"{engine}-{digest}"
    listed = folder / "class-path"
    if not listed.exists() or not all(map(os.path.exists, listed.read_text().split(os.pathsep))):
        folder.mkdir(parents=True, exist_ok=True)
        found = folder / "resolved"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={found}"]
        run(["mvn", "-q", "-B", "-f", str(pom), *goal], "Maven cannot fetch it")
        path = found.read_text().strip()
        run(["javac", "-encoding", "UTF-8", "-cp", path, "-d", str(folder), str(source)], "javac failed")
        listed.write_text(os.pathsep.join([str(folder), path]))
    return listed.read_text()


def run(command, what):
    """Run a command to its end; one that fails is an engine that cannot run here."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{what}: {command[0]} took more than {SECONDS} s") from error
    if done.returncode:
        said = re.findall(r"ERROR\S*\s+(.+)", done.stdout) or [done.stdout[-200:] + done.stderr[-200:]]
        # addresses of registries are nobody's business
        raise Unavailable(f"{what}: {re.sub(r'[(]?https?://[^ ]*', '', said[0]).strip()[:300]}")
    return done.stdout


class Scores:
    """A program that computes scores: tasks of (model, rows) at once, since a JVM takes a second to start."""

    def __init__(self, engine, program, *, with_names):
        self.name, self.version, self.with_names = engine, version_of(engine), with_names
        self.path, self.program = prepare(engine), program

    def score(self, tasks):
        """The scores of every (text of a model, rows, names of features)."""
        with tempfile.TemporaryDirectory() as folder:
            lines = []
            for number, (model, X, names) in enumerate(tasks):
                places = [Path(folder, f"{number}.{kind}") for kind in ("model", "rows", "scores")]
                places[0].write_text(model, encoding="utf-8")
                rows = ["\t".join(map(repr, row)).replace("nan", "NaN") for row in X.tolist()]
                if self.with_names:
                    rows.insert(0, "\t".join(names))
                places[1].write_text("\n".join(rows) + "\n", encoding="utf-8")
                lines += map(str, places)
            listed = Path(folder, "tasks")
            listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command = ["java", "-Xss16m", "-cp", self.path, self.program, str(listed)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:  # the engine refused a file that we wrote: this is a finding, not an absence
                raise RuntimeError(f"{self.program}: {done.stderr[-2000:]}")
            return [np.array([float(line) for line in Path(place).read_text().split()]) for place in lines[2::3]]


def ranklib():
    """RankLib."""
    return Scores("ranklib", "RankLibScores", with_names=False)


def vespa():
    """Vespa's evaluator."""
    return Scores("vespa", "VespaScores", with_names=True)


def expressions(profile):
    """The functions and the second phase of a rank profile, as the program for Vespa takes them."""
    functions = re.findall(r"function (\w+)\(\) \{\n +expression: (.+)\n", profile)
    body = profile.split("expression {\n")[1].split("\n        }")[0]
    lines = [f"{name}\t{expression}" for name, expression in functions]
    return "\n".join([*lines, "score\t" + " ".join(line.strip() for line in body.splitlines())]) + "\n"
