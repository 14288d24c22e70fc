"""``rankwise evaluate``: measure scores or saved rankers on judged queries.

The command opens the judged queries once, measures every file in turn with :func:`rankwise.evaluate`, and tests the
other rankings against the first with :func:`rankwise.significance`.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from rankwise.cli import reading, wording
from rankwise.cli.options import argument, option
from rankwise.errors import RankwiseError


@reading.with_options
def evaluate(
    judged: Path = argument(..., "Judged queries, a folder of parts, or qrels (TREC, BEIR) when the scores are a run."),
    scores: list[Path] | None = argument(
        None, "Files: a saved ranker, one score per line, RankLib's -score file, a TREC run, predictions (MTEB)."
    ),
    model: list[Path] | None = option(None, "A saved ranker; may be repeated."),
    measure: reading.MeasuresOption = ["nDCG@10", "AP", "RR"],  # noqa: B006
    like: reading.LikeOption = None,
    ties: reading.TiesOption = None,
    empty: reading.EmptyOption = None,
    rel: reading.RelOption = None,
    level: float = option(0.95, "Confidence level of the intervals."),
    per_query: bool = option(False, "Also print a line for each query."),
    tie_range: bool = option(False, "Also print the smallest and largest mean over all orders of equal scores."),
    as_json: reading.JsonOption = False,
    as_what: reading.FormatOption = "text",
    *,
    reads: dict[str, Any],
) -> None:
    """Measure scores or saved rankers on judged queries: means with intervals, paired tests.

    With several files, the others are tested against the first.

    Example: rankwise evaluate test.txt bm25.scores model.scores -m nDCG@10 -m AP

    Example: rankwise evaluate my.csv --model m.rankwise --qid query --label grade
    """
    from rankwise._progress import track
    from rankwise.evaluation.evaluation import evaluate as measure_scores
    from rankwise.evaluation.files import is_qrels
    from rankwise.evaluation.statistics.multiple_testing import significance
    from rankwise.measures._base import settle

    reading.refuse_two_formats(as_json, as_what)
    settle(measure, like, rel)  # a misspelled measure is an error before anything is read
    results: dict[str, Any] = {}
    rankings = [*(scores or ()), *(model or ())]
    if not rankings:
        raise RankwiseError("evaluate requires files of scores, or --model with a saved ranker")
    rankers = {path: reading.load_ranker(path) for path in rankings if reading.is_model(path)}
    # a ranker with a FeatureBuilder reads a table in its own way; the others share the queries that are read once
    built = {path: ranker for path, ranker in rankers.items() if hasattr(ranker, "features_")}
    if len(built) < len(rankers) == len(rankings):
        reads = reading.for_rankers(reads, [ranker for path, ranker in rankers.items() if path not in built])
    opened: dict[str, Any] = {}
    if built and len(built) == len(rankers) < len(rankings):  # scores need ids and labels alone
        opened["queries"] = reading.read_for(next(iter(built.values())), judged, reads)
    in_parts = reading.is_parts(judged)
    for path in track(rankings, "evaluating", enabled=False if in_parts else None):
        queries: Any
        values: Any
        if path in built and not in_parts:
            queries = reading.read_for(built[path], judged, reads)
            values = built[path]
        elif path in rankers:  # parts are scored and measured block by block
            queries = opened["queries"] = opened.get("queries") or reading.read_queries_or_parts(judged, reads)
            values = rankers[path]
        else:
            queries, values = reading.read_scored(judged, path, reads, opened)
        results[str(path)] = measure_scores(queries, values, measure, like=like, ties=ties, empty=empty, rel=rel)
    tests = significance(results, baseline=str(rankings[0])) if len(results) > 1 else None
    if as_json:
        document = {
            name: {**result.to_dict(level), **({"tie_range": result.tie_range()} if tie_range else {})}
            for name, result in results.items()
        }
        print(json.dumps({"results": document, "tests": None if tests is None else list(tests)}))
        return
    _show(results, tests, level, per_query, tie_range, as_what)
    if is_qrels(judged) and like is None:
        for note in _about_gains(next(iter(results.values())).measures):
            print(note)


def _about_gains(measures: Any) -> list[str]:
    """Notes about nDCG, whose short name has a linear gain in the tools that usually read judgments."""
    notes = []
    for measure in measures:
        if measure.name == "nDCG" and measure.gain == "exp2":
            theirs = "ndcg" if measure.cutoff is None else f"ndcg_cut_{measure.cutoff}"
            ours = "nDCG(dcg='log2')" if measure.cutoff is None else theirs
            notes.append(
                f"{measure.title} has the gain 2^label - 1 here; trec_eval's {theirs} and ir-measures' {measure.title} "
                f"have the gain label: -m {shlex.quote(ours)}, or --like trec_eval"
            )
    return notes


def _show(
    results: dict[str, Any], tests: Any, level: float, per_query: bool, tie_range: bool, as_what: reading.Format
) -> None:
    """Print a table for each ranking, and then the table of the tests."""
    from rankwise._tables import Table
    from rankwise.evaluation.statistics.intervals import caution

    console = wording.new_console()

    def show(about: str, table: Table) -> None:
        if as_what == "text":
            console.print(about, markup=False)
            console.print(table.rich())
        else:
            print(table.to_markdown(note=about) if as_what == "markdown" else table.to_latex(note=about))

    for name, result in results.items():
        table = result.table(level)
        if tie_range:
            low, high = zip(*result.tie_range().values(), strict=True)
            table = Table({**{column: table[column] for column in table.columns}, "min": low, "max": high})
        show(f"{name}: {len(result.qid):,} queries, {level:.0%} intervals over queries", table)
        few = caution(min(table["queries"].tolist()))
        if few and as_what == "text":
            console.print(few, markup=False)
        if per_query and as_what == "text":
            print(result.per_query)
        elif per_query:
            show(f"{name}: each query", result.per_query)
    if tests is not None:
        first = next(iter(results))
        shown = ("measure", "ranker", "difference", "low", "high", "p_corrected", "wins", "losses")
        about = f"Paired tests against {first} (Fisher's randomization test, p with Holm's correction)"
        show(about, Table({column: tests[column] for column in shown}))
