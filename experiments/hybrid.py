"""Learned weights of hybrid search against equal weights and RRF: ``python3 run.py python -m experiments.hybrid``.

Generated collections of two, three and six columns, five of each: weights are learned on 300 queries and compared on
1,000 others. Then the parity of every engine and normalizer on a test part, and how often the interval of a weight
covers the weight that is the best on 20,000 queries. Writes docs/hybrid_results.json, docs/figures/hybrid_weight.png
and the tables of docs/hybrid.md. About two minutes.
"""

import json
import sys
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import save_png
from rankwise._files import writing
from rankwise._progress import track
from rankwise.evaluation.statistics.intervals import interval
from rankwise.rankers.fusion.normalizers import RULES

PAGE, RESULTS, FIGURE = DOCS / "hybrid.md", DOCS / "hybrid_results.json", DOCS / "figures" / "hybrid_weight.png"
COLUMNS, COLLECTIONS, TRAIN, TEST = (2, 3, 6), 5, 300, 1_000
REPETITIONS, SMALL, LARGE = 200, 200, 20_000
ENGINES = ("opensearch", "elasticsearch", "vespa", "solr")
# rank features of Vespa have names of their own
VESPA = ["bm25(text)", "closeness(field,embedding)", "attribute(sparse)"]


def rankers() -> dict[str, rw.HybridRanker]:
    """What is compared: the same normalizer with learned and equal weights, and reciprocal rank fusion."""
    return {
        "learned": rw.HybridRanker(engine="opensearch"),
        "equal": rw.HybridRanker(engine="opensearch", weights="equal"),
        "RRF": rw.HybridRanker(engine="opensearch", normalizer="rrf", weights="equal"),
    }


def compared(columns: int, seed: int) -> dict[str, Any]:
    """Means on the test part, and the intervals of the paired differences."""
    queries = rw.synthetic.make_hybrid(TRAIN + TEST, columns=columns, random_state=seed)
    train, test = queries[:TRAIN], queries[TRAIN:]
    found, values = {}, {}
    for name, ranker in rankers().items():
        model = ranker.fit(train)
        measured = rw.evaluate(test, model.predict(test), "nDCG@10")
        found[name], values[name] = measured.mean["nDCG@10"], measured.per_query["nDCG@10"]
        if name == "learned":
            weights = {row["column"]: [row["weight"], row["low"], row["high"]] for row in model.intervals_}
            future = model.certificate(holdout=test).headline
    differences = {name: interval(values["learned"] - values[name]) for name in ("equal", "RRF")}
    assert future is not None
    return {"means": found, "differences": differences, "weights": weights, "certified": future.value}


def parities() -> list[dict[str, Any]]:
    """The parity of every engine and normalizer, on a test part of three columns."""
    queries, found = rw.synthetic.make_hybrid(TRAIN + TEST, columns=3, random_state=0), []
    train, test = queries[:TRAIN], queries[TRAIN:]
    for engine in ENGINES:
        for normalizer in RULES[engine]:
            fixed = "equal" if (engine, normalizer) == ("solr", "rrf") else None  # Solr's has no weights
            model = rw.HybridRanker(normalizer=normalizer, engine=engine, weights=fixed, bootstrap=0).fit(train)
            names = VESPA if engine == "vespa" else None
            parity = rw.export(model, f"{engine}-hybrid", sample=test, feature_names=names).parity
            assert parity is not None
            found.append({"target": f"{engine}-hybrid", "normalizer": normalizer, **parity.to_dict()})
    return found


def covered() -> dict[str, Any]:
    """How often the interval of the weight of BM25 covers the best weight of the population."""
    best = rw.HybridRanker(bootstrap=0).fit(rw.synthetic.make_hybrid(LARGE, random_state=1_000)).weights_[0]
    inside, widths, chosen = 0, [], []
    for seed in track(range(REPETITIONS), "drawing"):
        model = rw.HybridRanker(bootstrap=500).fit(rw.synthetic.make_hybrid(SMALL, random_state=2_000 + seed))
        low, high = model.intervals_["low"][0], model.intervals_["high"][0]
        inside += bool(low <= best <= high)
        widths.append(high - low)
        chosen.append(model.weights_[0])
    spread = float(np.std(chosen, ddof=1))
    return {"best": best, "inside": inside, "width": float(np.mean(widths)), "spread": spread}


def gains_table(found: dict[str, Any]) -> str:
    """One row per number of columns: the first collection."""
    rows = []
    for columns in COLUMNS:
        one = found["collections"][str(columns)][0]
        means = [f"{one['means'][name]:.4f}" for name in ("learned", "equal", "RRF")]
        differences = ["{:+.4f} to {:+.4f}".format(*one["differences"][name]) for name in ("equal", "RRF")]
        rows.append([str(columns), *means, *differences])
    return markdown_table(["columns", "learned", "equal", "RRF", "learned - equal", "learned - RRF"], rows)


def parity_table(found: dict[str, Any]) -> str:
    """One row per engine and normalizer."""
    rows = [
        [
            f"`{one['target']}`",
            f"`{one['normalizer']}`",
            f"{one['pairs']:,}",
            str(one["inverted"]),
            str(one["tied"]),
            # Solr adds reciprocal ranks without the factor 1/3 of equal weights
            "" if (one["target"], one["normalizer"]) == ("solr-hybrid", "rrf") else f"{one['largest_difference']:.0e}",
        ]
        for one in found["parity"]
    ]
    return markdown_table(["target", "normalizer", "ordered pairs", "inverted", "tied", "largest difference"], rows)


def main() -> int:
    found: dict[str, Any] = {
        "collections": {str(columns): [compared(columns, seed) for seed in range(COLLECTIONS)] for columns in COLUMNS},
        "parity": parities(),
        "intervals": covered(),
    }
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found) + "\n", encoding="utf-8")
    train = rw.synthetic.make_hybrid(TRAIN + TEST, random_state=0)[:TRAIN]
    save_png(rankers()["learned"].fit(train).curve_.plot(), FIGURE)
    write_block(PAGE, "gains", gains_table(found))
    write_block(PAGE, "parity", parity_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
