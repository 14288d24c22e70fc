"""What engines make of exported rankers on OHSUMED: ``python3 run.py python -m experiments.exported``.

The first fold: rankers learn from its training part with their defaults, choices on its validation part, and every
target's own arithmetic scores its test part. Then twelve ridge models, folds 1 to 4 with three alphas each, to see
how often an engine that adds in float32 changes the order of two documents. Then trees that LightGBM grew, the mean of
three seeds, on three data sets. Then AutoRanker, on four. Reads the folder that RANKWISE_DATA names; writes
docs/exported_results.json and the tables of docs/production.md. With the argument ``trees`` or ``stacks`` only these
are learned and measured again.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise.exports import targets
from rankwise.exports.formula import TreeSum, WeightedSum
from rankwise.exports.parity import parity_of
from rankwise.measures import parse
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

PAGE, RESULTS = DOCS / "production.md", DOCS / "exported_results.json"
ROUNDS = {"RankBoost": 100, "FRank": 40}
ALPHAS = (0.1, 1.0, 10.0)
# targets that the page shows together: their figures are the same
SHOWN = {
    "Solr, Elasticsearch": ("solr", "elasticsearch", "opensearch"),
    "ONNX": ("onnx",),
    "RankLib": ("ranklib",),
    "Vespa, SQL, Python, C": ("vespa", "sql", "python", "c"),
}
# columns of the second table; Elasticsearch can take a weighted sum in RankLib's form, too
PRECISE: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "Solr, `model/linear`": (("solr", {}), ("elasticsearch", {}), ("opensearch", {})),
    "ONNX": (("onnx", {}),),
    '`model/ranklib` (`form="ranklib"`), RankLib': (("elasticsearch", {"form": "ranklib"}), ("ranklib", {})),
    "Vespa, SQL, Python, C": (("vespa", {}), ("sql", {}), ("python", {}), ("c", {})),
}


# the third table: trees of LightGBM, and its columns
SETS = {"OHSUMED, fold 1": "ohsumed", "MQ2008, fold 1": "mq2008", "LightGBM's ranking example": "lightgbm-rank"}
SEEDS, TREES = 3, 300
GROWN = {"objective": "lambdarank", "num_leaves": 15, "learning_rate": 0.05, "bagging_fraction": 0.8, "bagging_freq": 1}
OF_TREES = {
    "RankLib, Solr, Elasticsearch": ("ranklib", "solr", "elasticsearch", "opensearch"),
    "ONNX": ("onnx",),
    "Vespa, SQL, Python, C": ("vespa", "sql", "python", "c"),
}


# the fourth table: AutoRanker, compact where it has more trees than Vespa and SQL read
STACKS: dict[str, dict[str, Any]] = {
    "OHSUMED, fold 1": {},
    "MQ2008, fold 1": {},
    "simulated, interactions": {},
    "simulated, interactions and heavy tails, `compact=True`": {"compact": True},
}
OF_STACKS = {name: together for name, together in OF_TREES.items() if "RankLib" not in name}


def rankers() -> dict[str, Any]:
    """Linear ones, batch and online, and the two that add up steps."""
    found = {name: getattr(rw, name)("nDCG@10") for name in ("RidgeRanker", "AdaRank", "RankSVM", "SLAMPerceptron")}
    return found | {name: getattr(rw, name)("nDCG@10", rounds=rounds) for name, rounds in ROUNDS.items()}


def learned(ranker: Any, fold: rw.io.Fold) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ranker.fit(fold.train, validation=fold.validation if ranker.takes_validation else None)


def collect(data: Path) -> dict[str, Any]:
    """The parity of every ranker and target, then of the ridge models."""
    folds = list(rw.io.read_folds(data / "ohsumed"))
    every = [target for together in SHOWN.values() for target in together]
    assert sorted(every) == sorted(name for name, kind in targets().items() if WeightedSum in kind.takes)
    first = folds[0]
    found: dict[str, Any] = {"training queries": len(first.train), "rankers": {}, "ridge": {}}
    for name, ranker in rankers().items():
        model = learned(ranker, first)
        found["rankers"][name] = {
            target: rw.export(model, target, sample=first.test).parity.to_dict() for target in every
        }
    models = [
        (learned(rw.RidgeRanker("nDCG@10", alpha=alpha), fold), fold.test) for fold in folds[:4] for alpha in ALPHAS
    ]
    for column, together in PRECISE.items():
        found["ridge"][column] = [
            [rw.export(model, target, sample=test, **options).parity.to_dict() for model, test in models]
            for target, options in together
        ]
    return found


def grown(train: rw.Queries) -> TreeEnsemble:
    """The mean of several LightGBM models that differ by their seeds."""
    import lightgbm

    parts = []
    for seed in range(SEEDS):
        options = {**GROWN, "seed": seed, "deterministic": True, "num_threads": 1, "verbose": -1}
        data = lightgbm.Dataset(train.X, train.labels(), group=train.sizes)
        parts.append(TreeEnsemble.from_lightgbm(lightgbm.train(options, data, TREES).model_to_string()))
    return TreeEnsemble.concat(parts)


def collect_trees(data: Path) -> dict[str, Any]:
    """The parity of trees with every target on every data set."""
    found: dict[str, Any] = {}
    for title, name in SETS.items():
        if name == "lightgbm-rank":
            train, test = (rw.read_letor(data / name / f"{part}.txt.gz") for part in ("train", "test"))
            width = min(train.n_features, test.n_features)
            train, test = (part.map_features(lambda X, width=width: X[:, :width]) for part in (train, test))
        else:
            fold = next(iter(rw.io.read_folds(data / name)))
            train, test = fold.train, fold.test
        trees = grown(train)
        formula = TreeSum.of(trees, tuple(f"f{place}" for place in range(1, trees.n_features + 1)))
        own = trees.predict(test.X)
        found[title] = {}
        for target in (target for together in OF_TREES.values() for target in together):
            engine = targets()[target]()
            scores = engine.score(engine.write(formula, "rankwise").files, test.X, formula.names)
            found[title][target] = parity_of(test, own, scores, parse("nDCG@10"), engine.arithmetic).to_dict()
    return found


def drawn(title: str, seed: int) -> rw.Queries:
    """Simulated queries."""
    lists = rw.make_lists(200, documents=(10, 60), interactions=1.0, random_state=seed)
    return lists.map_features(lambda X: ((X - X.mean(0)) / X.std(0)) ** 5) if "heavy" in title else lists


def collect_stacks(data: Path) -> dict[str, Any]:
    """The parity of AutoRanker with every target on every data set."""
    found: dict[str, Any] = {}
    for title, options in STACKS.items():
        if title in SETS:
            fold = next(iter(rw.io.read_folds(data / SETS[title])))
            train, test = fold.train, fold.test
        else:
            train, test = drawn(title, 1), drawn(title, 2)
        model = rw.AutoRanker(**options).fit(train)
        found[title] = {
            target: rw.export(model, target, sample=test).parity.to_dict() | {"trees": model.ensemble_.n_trees}
            for target in (target for together in OF_STACKS.values() for target in together)
        }
    return found


def trees_table(found: dict[str, Any]) -> str:
    """The table of trees."""
    return _by_data(found["trees"], OF_TREES)


def stacks_table(found: dict[str, Any]) -> str:
    """The table of AutoRanker."""
    return _by_data(found["stacks"], OF_STACKS)


def _by_data(found: dict[str, Any], columns: dict[str, tuple[str, ...]]) -> str:
    """The largest difference of scores over the targets of a column, and the pairs that any of them inverts."""
    rows = []
    for title, by_target in found.items():
        one = next(iter(by_target.values()))
        cells = [f"{one['trees']:,}"] if "trees" in one else []
        for together in columns.values():
            widest = max(by_target[target]["largest_difference"] for target in together)
            inverted = max(by_target[target]["inverted"] for target in together)
            cells += [f"{widest:.1e}" if widest else "0", str(inverted)]
        rows.append([title, f"{one['largest_score']:.3g}", f"{one['pairs']:,}", *cells])
    several = ["trees"] if "trees" in one else []
    words = [word for name in columns for word in (name, "inverted")]
    return markdown_table(["", "largest score", "pairs", *several, *words], rows)


def rankers_table(found: dict[str, Any]) -> str:
    """The largest difference of scores over the targets of a column, and the measure that all of them share."""
    rows = []
    for name, by_target in found["rankers"].items():
        one = next(iter(by_target.values()))
        title = f"{name}, {ROUNDS[name]} rounds" if name in ROUNDS else name
        widest = [max(by_target[target]["largest_difference"] for target in each) for each in SHOWN.values()]
        differences = [f"{value:.1e}" if value else "0" for value in widest]
        rows.append([title, f"{one['largest_score']:.3g}", *differences, f"{one['ranker']:.4f}"])
    return markdown_table(["", "largest score", *SHOWN, "nDCG@10"], rows)


def ridge_table(found: dict[str, Any]) -> str:
    """Inverted pairs of all twelve models, the most of any target in the column."""
    inverted = [max(sum(one["inverted"] for one in each) for each in found["ridge"][column]) for column in PRECISE]
    widest = [max(one["widest_inversion"] for each in found["ridge"][column] for one in each) for column in PRECISE]
    rows = [
        ["pairs inverted", *map(str, inverted)],
        ["widest difference of scores among them", *(f"{value:.1e}" if value else "" for value in widest)],
    ]
    return markdown_table(["", *PRECISE], rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the set ohsumed", file=sys.stderr)
        return 2
    kept = sys.argv[1:] in (["trees"], ["stacks"])
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if kept else collect(Path(data))
    if sys.argv[1:] != ["stacks"]:
        found["trees"] = collect_trees(Path(data))
    if sys.argv[1:] != ["trees"]:
        found["stacks"] = collect_stacks(Path(data))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found) + "\n", encoding="utf-8")
    write_block(PAGE, "exported", rankers_table(found))
    write_block(PAGE, "ridge", ridge_table(found))
    write_block(PAGE, "ensembles", trees_table(found))
    write_block(PAGE, "stacks", stacks_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
