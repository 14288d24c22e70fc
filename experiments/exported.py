"""What engines make of exported rankers on OHSUMED: ``python3 run.py python -m experiments.exported``.

The first fold: rankers learn from its training part with their defaults, choices on its validation part, and every
target's own arithmetic scores its test part. Then twelve ridge models, folds 1 to 4 with three alphas each, to see
how often an engine that adds in float32 changes the order of two documents. Reads the folder that RANKWISE_DATA names;
writes docs/exported_results.json and the tables of docs/production.md.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._atomic_write import writing
from rankwise.exports import targets
from rankwise.exports.formula import WeightedSum

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


def rankers() -> dict[str, Any]:
    """Linear ones, batch and online, and the two that add up steps."""
    found = {name: getattr(rw, name)("nDCG@10") for name in ("RidgeRanker", "AdaRank", "RankSVM", "SLAMPerceptron")}
    return found | {name: getattr(rw, name)("nDCG@10", rounds=rounds) for name, rounds in ROUNDS.items()}


def learned(ranker: Any, fold: rw.Fold) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ranker.fit(fold.train, validation=fold.validation if ranker.takes_validation else None)


def collect(data: Path) -> dict[str, Any]:
    """The parity of every ranker and target, then of the ridge models."""
    folds = list(rw.read_folds(data / "ohsumed"))
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
    found = collect(Path(data))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found) + "\n", encoding="utf-8")
    write_block(PAGE, "exported", rankers_table(found))
    write_block(PAGE, "ridge", ridge_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
