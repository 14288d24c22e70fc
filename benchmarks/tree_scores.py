"""Scores of the trees of LightGBM, XGBoost and CatBoost by a `TreeRanker`, beside each booster's own ``predict``.

500 trees on 136 features, grown on lists of the benchmark ``symmetric_trees``. A request has 100 documents, a batch
10,000; ours is `Scorer.scores`, with the Python call, as the service calls it. Processor seconds of one thread, the
fastest of several runs in turn. Compilers of trees are no dependencies: treelite with tl2cgen (and gcc), and lleaves,
are measured where they can be imported and work; where not, the row of LightGBM's 64 leaves says why.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row
from benchmarks.online import interleaved
from benchmarks.symmetric_trees import data

TREES, GROWN, REQUEST, BATCH = 500, 24_000, 100, 10_000
# Runs of a request and of a batch, and requests of a run.
RUNS, REQUESTS = {REQUEST: 9, BATCH: 5}, 20

Predict = Callable[[Any], Any]


def lightgbm(leaves: int, X: Any, y: Any, sizes: Any) -> Any:
    from lightgbm import Dataset, train

    params = {
        "objective": "lambdarank", "verbosity": -1, "num_threads": 1, "num_leaves": leaves, "learning_rate": 0.05,
        "min_data_in_leaf": 10,
    }  # fmt: skip
    return train(params, Dataset(X, y, group=sizes, params=params), TREES)


def xgboost(X: Any, y: Any, sizes: Any) -> Any:
    from xgboost import XGBRanker

    made = XGBRanker(
        objective="rank:ndcg", tree_method="hist", n_estimators=TREES, max_depth=6, learning_rate=0.05, n_jobs=1
    )
    return made.fit(X, y, group=sizes).get_booster()


def catboost(X: Any, y: Any, sizes: Any) -> Any:
    from catboost import CatBoost, Pool

    params = {
        "loss_function": "QueryRMSE", "iterations": TREES, "depth": 6, "learning_rate": 0.05, "thread_count": 1,
        "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    return CatBoost(params).fit(Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes)))


# -------------------------------------------------------------------------------------------------------- compilers


def tl2cgen(folder: Path) -> Predict:
    """C code of the trees, compiled by gcc."""
    import tl2cgen
    import treelite

    library = str(folder / "trees.so")
    trees = treelite.frontend.load_lightgbm_model(folder / "trees.txt")
    tl2cgen.export_lib(trees, toolchain="gcc", libpath=library, params={"parallel_comp": 32, "quantize": 1})
    predictor = tl2cgen.Predictor(library, nthread=1)
    return lambda X: predictor.predict(tl2cgen.DMatrix(X, dtype="float64"), pred_margin=True)


def lleaves(folder: Path) -> Predict:
    """Machine code of the trees by LLVM."""
    import lleaves

    model = lleaves.Model(model_file=str(folder / "trees.txt"))
    model.compile()
    return lambda X: model.predict(X, n_jobs=1)


def compiled(booster: Any, folder: Path) -> tuple[dict[str, Predict], list[str]]:
    """What could be compiled, and what could not, with the reason."""
    booster.save_model(folder / "trees.txt")
    made, missed = {}, []
    for title, compile in (("treelite with tl2cgen", tl2cgen), ("lleaves", lleaves)):
        try:
            made[title] = compile(folder)
        except Exception as error:  # of a package that is not ours, for whatever reason
            missed.append(f"{title} not measured ({type(error).__name__}: {str(error).splitlines()[0][:70]})")
    return made, missed


# ------------------------------------------------------------------------------------------------------------- rows


def rows_of(trees: Any, what: str, peers: dict[str, Predict], targets: tuple[str, str], X: Any) -> list[dict[str, Any]]:
    """A request and a batch, ours beside the peers."""
    from rankwise.rankers.scorer import Scorer

    scorer, found = Scorer(trees), []
    for (count, runs), target in zip(RUNS.items(), targets, strict=True):
        some = np.ascontiguousarray(X[:count])
        calls = REQUESTS if count == REQUEST else 1

        def work(score: Predict, some: Any = some, calls: int = calls) -> Callable[[], None]:
            def run() -> None:
                for _ in range(calls):
                    score(some)

            return run

        seconds = interleaved(runs + 1, [work(score) for score in (scorer.scores, *peers.values())], time.process_time)
        ours, *theirs = (one / calls for one in seconds)
        each = f"Scorer.scores, {1e9 * ours / (count * TREES):.1f} ns a document and tree, 1 thread"
        for place, (peer, needed) in enumerate(zip(peers, theirs, strict=True)):
            work_of = f"scores of {count:,} x {X.shape[1]} float32 by {TREES} trees of {what}"
            found.append(row(work_of, peer, needed, ours, each, "-" if place else target))
    return found


def run() -> list[dict[str, Any]]:
    import rankwise as rw

    X, y, sizes = data(GROWN, 1)
    found: list[dict[str, Any]] = []
    for leaves, targets in ((15, ("10 x", "20 x")), (64, ("10 x", "12 x")), (255, ("-", "-"))):
        booster = lightgbm(leaves, X, y, sizes)
        ranker = rw.TreeRanker.from_lightgbm(booster)
        peers: dict[str, Predict] = {
            "LightGBM predict": lambda X, booster=booster: booster.predict(X, num_threads=1)  # type: ignore[misc]
        }
        with tempfile.TemporaryDirectory() as folder:
            made, missed = compiled(booster, Path(folder)) if leaves == 64 else ({}, [])
            some = rows_of(ranker, f"{leaves} leaves", peers | made, targets, X)
        for one in some[:1] if missed else []:
            one["how"] += f"; {'; '.join(missed)}"
        found += some
    booster = xgboost(X, y, sizes)
    booster.set_param({"nthread": 1})
    peers = {"XGBoost inplace_predict": booster.inplace_predict}
    found += rows_of(rw.TreeRanker.from_xgboost(booster), "XGBoost, depth 6", peers, ("1 x", "1 x"), X)
    model = catboost(X, y, sizes)
    peers = {"CatBoost predict": lambda X: model.predict(X, thread_count=1)}
    found += rows_of(rw.TreeRanker.from_catboost(model), "CatBoost, depth 6", peers, ("1 x", "1 x"), X)
    return found


if __name__ == "__main__":
    for line in run():
        print(line)
