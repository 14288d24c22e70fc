"""NDCG@10 and AP of 10,000 lists of 120 documents, from arrays, against ir-measures with pytrec_eval.

The dictionaries that pytrec_eval wants are built before its clock starts. Scores have ties, as real ones do.
"""

from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

LISTS, DOCUMENTS = 10_000, 120


def make() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    size = LISTS * DOCUMENTS
    labels = np.clip(rng.geometric(0.5, size) - 1, 0, 4).astype(float)
    return labels, (labels + rng.normal(scale=2, size=size)).round(3), np.repeat(np.arange(LISTS), DOCUMENTS)


def run() -> list[dict[str, Any]]:
    import ir_measures
    import pytrec_eval

    from rankwise.evaluation.evaluation import evaluate
    from rankwise.measures._base import parse
    from rankwise.measures.compute import ScoredLists, measure_lists
    from rankwise.queries.queries import Queries

    labels, scores, qid = make()
    qrels = {str(q): {} for q in range(LISTS)}
    ranked = {str(q): {} for q in range(LISTS)}
    for place, (q, label, score) in enumerate(zip(qid.tolist(), labels.tolist(), scores.tolist(), strict=True)):
        qrels[str(q)][f"d{place}"] = int(label)
        ranked[str(q)][f"d{place}"] = score

    queries = Queries.from_arrays(np.empty((len(labels), 0)), labels, qid=qid)
    names = ["nDCG(dcg='log2')@10", "AP"]
    parsed = [parse(name) for name in names]
    plain = [ir_measures.nDCG @ 10, ir_measures.AP]

    lists = ScoredLists(scores, labels, queries.start)

    def ours(jobs: int | None) -> Any:
        return measure_lists(parsed, lists, n_jobs=jobs)

    theirs_mean = ir_measures.calc_aggregate(plain, qrels, ranked)
    ours_mean = evaluate(queries, scores, names, ties="stable").mean
    assert abs(theirs_mean[plain[0]] - ours_mean[names[0]]) < 1e-3, (theirs_mean, ours_mean)  # ties apart

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map"})
    whole = {
        "pytrec_eval": best_of(2, lambda: evaluator.evaluate(ranked)),
        "ir-measures": best_of(1, lambda: ir_measures.calc_aggregate(plain, qrels, ranked)),
    }
    one, two = best_of(7, lambda: ours(1)), best_of(7, lambda: ours(2))
    complete = best_of(5, lambda: evaluate(queries, scores, names).mean)
    work = f"nDCG@10 and AP, {LISTS:,} lists of {DOCUMENTS}"
    return [
        row(work, "pytrec_eval, dicts ready", whole["pytrec_eval"], one, "1 thread", "10 x"),
        row(work, "pytrec_eval, dicts ready", whole["pytrec_eval"], two, "2 threads", "10 x"),
        row(work, "pytrec_eval, dicts ready", whole["pytrec_eval"], complete, "evaluate(), means", "10 x"),
        row(work, "ir-measures, dicts ready", whole["ir-measures"], complete, "evaluate(), means", "10 x"),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
