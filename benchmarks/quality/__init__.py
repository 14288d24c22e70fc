"""How good rankers are: every ranker of the package and its peers on real and simulated sets.

``python3 run.py bench quality [set/ranker ...]`` computes the cells that are missing in build/quality, one file per set
and ranker, and writes docs/quality.json, the pages and the figures from all of them; results of cells whose file is not
there stay as they are. A run that is stopped resumes with the next cell. Arguments such as ``ohsumed``, ``AutoRanker``
or ``ohsumed/AutoRanker`` limit the run, and compute these cells again if ``--again`` is among them.

``python3 run.py bench quality --letor FOLDER [ranker ...]`` compares on a set of yours
(:mod:`benchmarks.quality.letor`).
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from benchmarks.quality.optional_peers import INSTALLED
from benchmarks.quality.peers import BAGGED, PEERS, Fit, Scores
from benchmarks.quality.sets import SETS, Set
from rankwise._files import writing
from rankwise._progress import track

CELLS = Path(__file__).parents[2] / "build" / "quality"
MEASURES = ("nDCG@10", "AP")
SEEDS = 3
LARGE = 1_000  # queries: from here on one seed is enough, and beyond only these rankers are run
QUICK = ("AutoRanker", "BoostedRanker", "RidgeCommittee", "SmoothRank", "RidgeRanker", "ListNet", "SLAMPerceptron")
CURVED = ("MappedRanker", "KernelPerceptron", "NeuralRanker")  # by other means than trees, with their defaults
LEFT_OUT = ("LinearModel", "HybridRanker", "Committee")  # no learning, another task, another's members


def fitting(make: Callable[[], Any]) -> Fit:
    """How a ranker of the package is fitted: with the validation part if it takes one."""

    def fit(train: rw.Queries, validation: rw.Queries, seed: int) -> Scores:
        model = make().set_params(n_jobs=1)
        model.fit(train, validation=validation if model.takes_validation else None)
        return model.predict

    return fit


def own_rankers() -> dict[str, Fit]:
    """Every ranker of the package that learns, with its defaults."""
    from rankwise.evaluation.comparison.selection import all_names, ranker_called

    return {name: fitting(partial(ranker_called, name, "nDCG@10")) for name in all_names() if name not in LEFT_OUT}


def on_maps() -> dict[str, Fit]:
    """Rankers on maps of standardized features, with scikit-learn's own settings of the maps: none was tuned."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    def mapped(ranker: Any, *steps: Any) -> Fit:
        return fitting(lambda: rw.MappedRanker(make_pipeline(StandardScaler(), *steps), ranker))

    landmarks = Nystroem(n_components=200, random_state=0)
    return {
        "RidgeRanker on splines": mapped(rw.RidgeRanker("nDCG@10"), SplineTransformer()),
        "RidgeRanker on 200 landmarks": mapped(rw.RidgeRanker("nDCG@10"), landmarks),
        "SmoothRank on 200 landmarks": mapped(rw.SmoothRank("nDCG@10"), landmarks),
        "KernelPerceptron, standardized, map=512, 10 epochs": mapped(
            rw.KernelPerceptron("nDCG@10", map=512, epochs=10)
        ),
    }


def rankers() -> dict[str, Fit]:
    """All rankers by name, the quickest to know first: peers."""
    return {**PEERS, **BAGGED, **INSTALLED, **own_rankers(), **on_maps()}


def wanted(arguments: list[str]) -> Iterator[tuple[Set, str]]:
    """The cells that were asked for."""
    large = {*PEERS, *BAGGED, *INSTALLED, *QUICK, *CURVED, *on_maps()}
    for one in SETS:
        for name in rankers():
            if one.queries > LARGE and name not in large:
                continue
            if not arguments or {one.name, name, f"{one.name}/{name}"} & set(arguments):
                yield one, name


def file_of(one: Set, name: str) -> Path:
    """The file of a cell."""
    return CELLS / one.name / f"{name.replace(':', '-').replace(',', '').replace(' ', '_')}.json"


def cell(one: Set, name: str, measures: Sequence[str]) -> dict[str, Any]:
    """Values of every test query, the mean on the validation parts, and CPU seconds per fit."""
    fit = rankers()[name]
    fit(*rw.split(rw.make_lists(40, documents=(5, 10)), (0.5, 0.5)), 0)  # imports and compiles
    # the seed of a peer moves its mean on a small set by up to .01: the mean over seeds is what to expect of it
    seeds = SEEDS if name in (*PEERS, *INSTALLED) and one.queries < LARGE else 1
    values: dict[str, list[float]] = {measure: [] for measure in measures}
    validated, seconds = [], []
    for fold in one.folds():
        found = np.zeros((len(measures), len(fold.test)))
        for seed in range(seeds):
            began = time.process_time()
            scores = fit(fold.train, fold.validation, seed)
            seconds.append(time.process_time() - began)
            tested = rw.evaluate(fold.test, scores(fold.test), measures, empty="zero")
            found += np.array([tested.per_query[measure] for measure in measures]) / seeds
            judged = rw.evaluate(fold.validation, scores(fold.validation), "nDCG@10", empty="zero")
            validated.append(judged.mean["nDCG@10"])
        for measure, of_queries in zip(measures, found.tolist(), strict=True):
            values[measure] += of_queries
        del fold  # before the next one is read
    return {"values": values, "validation": float(np.mean(validated)), "seconds": float(np.mean(seconds))}


def compute(cells: list[tuple[Set, str]], measures: Sequence[str] = MEASURES, again: bool = False) -> None:
    """Compute the cells that are missing, or all of them again."""
    for one, name in track(cells, "quality"):
        path = file_of(one, name)
        if path.exists() and not again:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        found = cell(one, name, measures)
        with writing(path) as part:
            part.write_text(json.dumps(found) + "\n")
        means = {measure: round(float(np.mean(values)), 4) for measure, values in found["values"].items()}
        print(f"{one.name} {name}: {means}, validation {found['validation']:.4f}, {found['seconds']:.1f} s", flush=True)


def main(arguments: list[str]) -> int:
    """Compute what is missing, and write the results and the pages."""
    if "--letor" in arguments:
        from benchmarks.quality import letor

        return letor.main([one for one in arguments if one != "--letor"])
    again = "--again" in arguments
    compute(list(wanted([one for one in arguments if one != "--again"])), again=again)
    from benchmarks.quality.page import write

    write()
    return 0
