"""Agreement with trec_eval itself: ``python3 run.py python -m experiments.trec_eval PROGRAM [--rounds 4000]``.

Random small runs and judgments, with ties, scores that differ only in double precision, unjudged documents, negative
labels and queries that only one side has, are measured by the program and by ``like="trec_eval"``. Values are compared
in the decimals that the program prints: 4, or more if its format ``%6.4f`` was changed. Rounds on which the program
fails (judgments that are all negative) are counted and left out.
"""

import argparse
import logging
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import rankwise as rw

ASKED = ["map", "Rprec", "bpref", "recip_rank", "ndcg"]
ASKED += ["P.1,5,10", "recall.5,1000", "ndcg_cut.5,10", "success.1,5", "map_cut.5,10"]
_PARTS = (one.partition(".") for one in ASKED)
NAMES = [f"{name}_{cut}" if cut else name for name, _, cuts in _PARTS for cut in cuts.split(",")]

Lists = dict[str, dict[str, float]]


def random_pair(rng: np.random.Generator) -> tuple[Lists, Lists]:
    """Judgments and a run of up to five queries, each of them missing on one side now and then."""
    pool = int(rng.integers(1, 20))
    judged: Lists = {}
    scored: Lists = {}
    for query in range(int(rng.integers(1, 6))):
        documents = [rng.choice(pool, rng.integers(1, pool + 1), replace=False) for _ in range(2)]
        labels = rng.integers(rng.integers(-2, 1), rng.integers(1, 6), len(documents[0]))
        size = len(documents[1])
        nearly_tied = 1 + 1e-9 * rng.integers(0, 3, size) + rng.integers(0, 2, size)
        scores = (rng.integers(0, 4, size), rng.normal(size=size), nearly_tied)[rng.integers(0, 3)]
        for lists, own, values in ((judged, documents[0], labels), (scored, documents[1], scores)):
            if rng.random() < 0.9:
                lists[f"q{query}"] = {f"d{one}": float(value) for one, value in zip(own, values, strict=True)}
    return judged, scored


def printed(program: Path, judged: Path, scored: Path, rel: int, complete: bool) -> dict[tuple[str, str], str] | None:
    """(measure, query) -> the decimals that the program prints; None if it fails."""
    options = [*(["-c"] if complete else []), "-q", "-l", str(rel), *(word for one in ASKED for word in ("-m", one))]
    done = subprocess.run([program, *options, judged, scored], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    rows = (line.split() for line in done.stdout.splitlines())
    return {(measure, query): value for measure, query, value in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="the program trec_eval, version 9")
    parser.add_argument("--rounds", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.getLogger("rankwise").setLevel(logging.ERROR)  # queries that one side lacks are meant
    rng = np.random.default_rng(given.seed)
    values = different = failures = 0
    decimals = set()
    with tempfile.TemporaryDirectory() as folder:
        judged_file, scored_file = Path(folder, "qrels"), Path(folder, "run")
        for _ in range(given.rounds):
            judged, scored = random_pair(rng)
            rel, complete = int(rng.integers(1, 4)), bool(rng.random() < 0.3)
            if not judged.keys() & scored.keys():
                continue
            lines = [f"{query} 0 {one} {label:.0f}\n" for query, own in judged.items() for one, label in own.items()]
            judged_file.write_text("".join(lines))
            lines = [f"{query} Q0 {one} 0 {score!r} t\n" for query, own in scored.items() for one, score in own.items()]
            scored_file.write_text("".join(lines))
            theirs = printed(given.program, judged_file, scored_file, rel, complete)
            if theirs is None:
                failures += 1
                continue
            pair = rw.io.from_trec(judged_file, scored_file, missing_queries="zero" if complete else "skip")
            ours = rw.evaluate(*pair, NAMES, like="trec_eval", rel=rel)
            for title, name in zip(ours.titles, NAMES, strict=True):
                for query, value in [*zip(ours.qid, ours[name], strict=True), ("all", ours.mean[title])]:
                    if (name, query) in theirs:  # it prints no single value of a query that the run lacks
                        places = len(theirs[name, query].partition(".")[2])
                        values += 1
                        decimals.add(places)
                        different += abs(float(theirs[name, query]) - value) > 0.6 * 10.0**-places
    print(f"{values:,} values in {given.rounds:,} rounds, {different} differ in {sorted(decimals)} decimals")
    print(f"the program failed in {failures} rounds")


if __name__ == "__main__":
    main()
