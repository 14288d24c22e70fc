"""Read 200 MB of LETOR text with 136 features, against scikit-learn and XGBoost, and see how much memory it takes.

The text is like MSLR-WEB10K's: counts, lengths and decimals of six digits, some of them negative; the same text with
LETOR 4.0's comments stands beside it. Memory is measured in a fresh process that has compiled everything before.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

BYTES, FEATURES, DISTINCT, LIST = 200_000_000, 136, 20_000, 120
COMMENT = " #docid = GX{0:03d}-{1:02d}-{2:07d} inc = 0.0119881192468859 prob = 0.139842"


def make_rows(count: int = DISTINCT) -> list[str]:
    """The features of different documents, as text."""
    rng = np.random.default_rng(0)
    columns = []
    for feature in range(1, FEATURES + 1):
        match feature % 15:
            case 1 | 2 | 3:
                values = [f"{value}" for value in rng.poisson(2, count)]
            case 4 | 5:
                values = [f"{value}" for value in rng.integers(0, 10 ** rng.integers(1, 6), count)]
            case 6:
                values = [f"{-value:.6f}" for value in rng.gamma(2, 8, count)]
            case _:
                absent = rng.random(count) < 0.3
                sizes = rng.gamma(1, 10.0 ** rng.integers(-2, 3), count)
                values = ["0" if none else f"{size:.6f}" for none, size in zip(absent, sizes, strict=True)]
        columns.append([f"{feature}:{value}" for value in values])
    return [" ".join(row) for row in zip(*columns, strict=True)]


def write(path: Path, rows: list[str], size: int, comment: str = "") -> None:
    """Lists of ``LIST`` documents until the file has ``size`` bytes."""
    written = number = 0
    with open(path, "w", encoding="ascii") as file:
        while written < size:
            end = comment.format(number % 1000, number % 97, number)
            written += file.write(f"{number % 5} qid:{number // LIST + 1} {rows[number % len(rows)]}{end}\n")
            number += 1


def check_against_sklearn(path: Path) -> None:
    """A smaller text is the same numbers to both, bit for bit."""
    from sklearn.datasets import load_svmlight_file

    from rankwise.io.letor.read import read_letor

    X, y, qid = load_svmlight_file(str(path), n_features=FEATURES, zero_based=False, query_id=True)
    queries = read_letor(path)
    assert np.array_equal(X.toarray(), queries.X)
    assert np.array_equal(y, queries.y)
    assert np.array_equal(qid, queries.qid[queries.query_of_row])


# Linux's own figures: getrusage would count what the process was before it became Python.
PEAK = """
import sys
from rankwise.io.letor.read import read_letor

def memory(figure):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(figure))

read_letor(sys.argv[1])  # a small text: everything is compiled
held = memory("VmRSS")
queries = read_letor(sys.argv[2])
peak = memory("VmHWM")
arrays = [queries.X, queries.y, queries.start, queries.qid]
if queries.docid is not None:
    arrays += [queries.docid.data, queries.docid.offset]
print(peak - held, sum(array.nbytes for array in arrays))
"""


def peak_row(work: str, small: Path, path: Path) -> dict[str, Any]:
    """Peak memory above what the process held, beside what was allowed."""
    measured = subprocess.run([sys.executable, "-c", PEAK, small, path], check=True, capture_output=True, text=True)
    peak, result = map(int, measured.stdout.split())
    allowed = path.stat().st_size + result
    return {
        "work": work,
        "how": "peak memory",
        "peer": "the text's mapping plus the result",
        "peer_mib": allowed / 2**20,
        "rankwise_mib": peak / 2**20,
        "ratio": allowed / peak,
        "target": "1 x",
    }


def compare(work: str, path: Path) -> list[dict[str, Any]]:
    import xgboost
    from sklearn.datasets import load_svmlight_file

    from rankwise.io.letor.read import read_letor

    one, two = best_of(3, lambda: read_letor(path, n_jobs=1)), best_of(3, lambda: read_letor(path, n_jobs=2))
    theirs = best_of(3, lambda: xgboost.DMatrix(f"{path}?format=libsvm"))
    slowest = best_of(1, lambda: load_svmlight_file(str(path), n_features=FEATURES, zero_based=False, query_id=True))
    return [
        row(work, "scikit-learn load_svmlight_file", slowest, one, "1 thread", "-"),
        row(work, "scikit-learn load_svmlight_file", slowest, two, "2 threads", "15 x"),
        row(work, "XGBoost DMatrix, libsvm", theirs, one, "1 thread", "-"),
        row(work, "XGBoost DMatrix, libsvm", theirs, two, "2 threads", "1.5 x"),
    ]


def run() -> list[dict[str, Any]]:
    rows = make_rows()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder, "small.txt"), Path(folder, "train.txt")
        for kind, comment in ("", ""), (" with comments", COMMENT):
            work = f"read LETOR text, {BYTES // 10**6} MB, {FEATURES} features{kind}"
            write(small, rows, 3_000_000, comment)
            write(path, rows, BYTES, comment)
            check_against_sklearn(small)
            lines += [*compare(work, path), peak_row(work, small, path)]
    return lines


if __name__ == "__main__":
    for line in run():
        print(line)
