"""Reports of random small data sets: ``python3 run.py python -m experiments.report_fuzz``.

Each run is ``rankwise compare data.txt -r ... --report report.html`` on queries of any labels: 3 to 60 queries of 1 to
12 documents with 1 to 8 features, some of them constant, tied or huge, and three rankers. A run fails if it ends in
anything but its table and its report, or in one sentence about data that cannot be compared; and if a part of the
report could not be drawn. ``--runs 200`` and ``--seed 0``; prints the failures, and ends with 1 if there are any.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np

import rankwise as rw
from rankwise._progress import track
from rankwise.cli import main as rankwise
from rankwise.errors import ReportWarning
from rankwise.evaluation.comparison.selection import USUAL

RUNS = 200
RANKERS = (*(name for name in USUAL if name != "AutoRanker"), "lightgbm", "MaxPairRanker", "MaxPairPerceptron", "FRank")
MEASURES = (("nDCG@10", "AP"), ("AP",), ("RR", "P@5"), ("ERR@10", "nDCG"))
REFUSED = 2  # exit code: one sentence about the input


def drawn(random: np.random.Generator) -> rw.Queries:
    """Judged queries of any kind."""
    sizes = random.integers(1, 13, size=random.integers(3, 61))
    features = int(random.integers(1, 9))
    X = random.standard_normal((sizes.sum(), features))
    X[:, random.random(features) < 0.2] = 1.0  # constant
    X[:, random.random(features) < 0.2] *= 10.0 ** random.integers(-6, 7)
    if random.random() < 0.3:
        X = np.rint(X)  # ties
    useful = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) + random.standard_normal(len(X)) * random.choice([0.0, 0.3, 3.0])
    top = int(random.integers(0, 5))
    labels = np.clip(np.rint(useful * random.choice([0.3, 1.0, 2.0]) + random.integers(-1, 2)), 0, top)
    return rw.Queries.from_arrays(X, labels, group=sizes)


def run_once(number: int, seed: int, rankers: int = 3) -> tuple[str, bool]:
    """One run: what was wrong with it, or nothing; and whether its data could be compared."""
    random = np.random.default_rng([seed, number])
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder, "data.txt"), Path(folder, "report.html")
        rw.write_letor(drawn(random), data)
        arguments = ["rankwise", "compare", str(data), "--report", str(report), "--jobs", "1"]
        for name in random.choice(RANKERS, size=rankers, replace=False):
            arguments += ["-r", str(name)]
        for measure in MEASURES[int(random.integers(len(MEASURES)))]:
            arguments += ["-m", measure]
        arguments += ["--folds", str(random.choice([1, 3, 5]))]
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("always", ReportWarning)
            code = rankwise()
        said, printed = err.getvalue(), out.getvalue()
        about = f"run {number}: {' '.join(arguments[6:])}: exit code {code}: {said[-300:]}"
        if "could not be drawn" in said or "was not written" in said or "Traceback" in said:
            return about, True
        if code == REFUSED and not printed and said.strip().count("\n") == 0:
            return "", False  # too few queries, labels that a measure does not take
        if code != 0 or not report.is_file():
            return about, True
        if "could not be drawn" in report.read_text(encoding="utf-8").partition("<script")[0]:
            return about, True
    return "", True


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="experiments.report_fuzz", description="Reports of random small data sets.")
    parser.add_argument("--runs", type=int, default=RUNS, help="data sets")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers come from")
    given = parser.parse_args(arguments)
    found = [run_once(number, given.seed) for number in track(range(given.runs), "reports")]
    failed = [said for said, _ in found if said]
    for said in failed:
        print(said)
    refused = sum(not compared for _, compared in found)
    print(f"{len(failed)} of {given.runs} runs failed; {refused} had data that cannot be compared")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
