"""Trees in databases and in C: ``python3 run.py python -m experiments.sql_trees``.

500 trees of 31 leaves, grown by LightGBM on 30 features, score 100,000 documents: in DuckDB, SQLite and PostgreSQL by
the query that ``rw.export`` writes, by the function in C, compiled by ``cc -O2``, and by LightGBM and rankwise. Every
figure is CPU time of one thread. Writes docs/sql_trees.json and the table of docs/production.md.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from tests.engines.databases import DATABASES, PostgreSQL

PAGE, RESULTS = DOCS / "production.md", DOCS / "sql_trees.json"
TREES, LEAVES, FEATURES, ROWS = 500, 31, 30, 100_000
_LOOP = (
    "\nvoid over(const double *x, long rows, double *scores)\n"
    "{\n    long i;\n    for (i = 0; i < rows; i++) scores[i] = rankwise(x + i * rankwise_width);\n}\n"
)


def grown() -> Any:
    """A LightGBM regression: what trees look like does not depend on the objective."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, FEATURES))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.3 * X[:, 3:8].sum(axis=1) + 0.5 * rng.normal(size=len(X))
    options = {"objective": "regression", "num_leaves": LEAVES, "learning_rate": 0.05, "feature_fraction": 0.7}
    return lightgbm.train({**options, "num_threads": 1, "verbose": -1}, lightgbm.Dataset(X, y), TREES)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and the result."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def in_postgresql(base: PostgreSQL, sql: str) -> tuple[float, Any]:
    """CPU seconds of the server, whose processes are its children, and the result."""
    import psutil

    def used() -> float:
        own = psutil.Process(base.server.pid).cpu_times()
        return float(own.children_user + own.children_system)

    began = used()
    found = base.score(sql)
    return used() - began, found


def in_c(text: str, X: np.ndarray) -> tuple[float, Any]:
    """CPU seconds of the compiled function over all rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "trees.c"), Path(folder, "trees.so")
        source.write_text(text + _LOOP)
        subprocess.run(["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source], check=True)
        scores = np.empty(len(X))
        pointer = ctypes.POINTER(ctypes.c_double)
        function = ctypes.CDLL(str(library)).over
        arguments = X.ctypes.data_as(pointer), ctypes.c_long(len(X)), scores.ctypes.data_as(pointer)
        return seconds(lambda: function(*arguments) and None)[0], scores


def collect() -> dict[str, Any]:
    """CPU seconds, sizes and largest differences."""
    booster = grown()
    ranker = rw.TreeRanker.from_lightgbm(booster)
    X = np.random.default_rng(5).normal(size=(ROWS, FEATURES))
    own, expected = seconds(lambda: booster.predict(X, num_threads=1, raw_score=True))
    found: dict[str, Any] = {"LightGBM's `predict`": {"seconds": own, "difference": 0.0}}

    def put(title: str, size: int, measured: tuple[float, Any]) -> None:
        difference = float(np.max(np.abs(measured[1] - expected)))
        found[title] = {"seconds": measured[0], "difference": difference, "characters": size}
        print(title, found[title], flush=True)

    ranker.set_params(n_jobs=1)
    ranker.predict(X[:100])
    put("rankwise's `predict`", 0, seconds(lambda: ranker.predict(X)))
    text = rw.export(ranker, "c").text
    put("C, compiled", len(text), in_c(text, X))
    sql = rw.export(ranker, "sql").text
    names = [f"f{place}" for place in range(1, FEATURES + 1)]
    names = list(map(str, getattr(ranker, "feature_names_in_", names)))
    for kind in DATABASES:
        with kind() as base:
            base.load(X, names)
            measured = in_postgresql(base, sql) if kind is PostgreSQL else seconds(lambda base=base: base.score(sql))
            put(f"{base.title} {base.version}", len(sql), measured)
    return found


def table(found: dict[str, Any]) -> str:
    """The rows with their ratio to LightGBM."""
    own = found["LightGBM's `predict`"]["seconds"]
    rows = [
        [
            title,
            f"{one['characters'] / 1e6:.1f} MB" if one.get("characters") else "",
            f"{one['seconds']:.2f} s",
            f"{one['seconds'] / own:.2f}",
            f"{one['difference']:.0e}" if one["difference"] else "0",
        ]
        for title, one in found.items()
    ]
    titles = ["", "text", "CPU time", "times LightGBM's", "largest difference"]
    return markdown_table(titles, rows)


def main() -> int:
    found = collect()
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "sql trees", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
