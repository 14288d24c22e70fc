"""``rankwise evaluate``: how well do these scores rank these judged lists, and how sure is that."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwise._errors import RankwiseError
from rankwise.cli import reading
from rankwise.cli import wording as completion


class TieMode(StrEnum):
    """How equal scores are ordered."""

    expected = "expected"
    pessimistic = "pessimistic"
    optimistic = "optimistic"
    stable = "stable"


class EmptyQuery(StrEnum):
    """What a query counts on which a measure is 0/0."""

    skip = "skip"
    zero = "zero"
    one = "one"


@reading.with_options
def evaluate(
    judged: Annotated[Path, typer.Argument(help="Judged lists, or TREC qrels when the scores are a TREC run.")],
    scores: Annotated[
        list[Path] | None,
        typer.Argument(help="Files: a saved ranker, a score a line, RankLib's -score file, or a TREC run."),
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option("--model", help="A saved ranker that is to rank the lists; may be repeated.")
    ] = None,
    measure: Annotated[
        list[str],
        typer.Option(
            "--measure",
            "-m",
            help="nDCG@10, AP, RR@10, P@5, ERR@20 ...; may be repeated.",
            autocompletion=completion.measures,
        ),
    ] = [  # noqa: B006
        "nDCG@10",
        "AP",
        "RR",
    ],
    like: Annotated[
        str | None, typer.Option(help="Measure exactly as another tool: letor, trec_eval, sklearn, lightgbm, ...")
    ] = None,
    ties: Annotated[
        TieMode | None, typer.Option(help="Order of equal scores (default expected, or the tool's).")
    ] = None,
    empty: Annotated[
        EmptyQuery | None, typer.Option(help="Queries without a relevant document (default skip, or the tool's).")
    ] = None,
    rel: Annotated[float | None, typer.Option(help="Smallest label that counts as relevant (default 1).")] = None,
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also print a line for each query.")] = False,
    tie_range: Annotated[
        bool,
        typer.Option("--tie-range", help="Also print the smallest and largest mean over all orders of equal scores."),
    ] = False,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Measure scores or saved rankers on judged lists: means with intervals, paired tests.

    With several files the others are tested against the first.

    Example: rankwise evaluate test.txt bm25.scores model.scores -m nDCG@10 -m AP

    Example: rankwise evaluate my.csv --model m.rankwise --qid query --label grade
    """
    from rankwise._progress import track
    from rankwise.evaluation.evaluate import evaluate as measure_scores
    from rankwise.evaluation.statistics.significance import significance
    from rankwise.measures.conventions import settle

    settle(measure, like, rel)  # a misspelt measure is told before anything is read
    results: dict[str, Any] = {}
    rankings = [*(scores or ()), *(model or ())]
    if not rankings:
        raise RankwiseError("evaluate takes files of scores, or --model with a saved ranker: found neither")
    rankers = {path: _ranker(path) for path in rankings if _is_model(path)}
    if len(rankers) == len(rankings):
        reads = reading.for_rankers(reads, rankers.values())
    opened: dict[str, Any] = {}
    for path in track(rankings, "evaluating"):
        if path in rankers:
            queries = opened["queries"] = opened.get("queries") or reading.read_lists(judged, reads)
            values = rankers[path].predict(queries)
        else:
            queries, values = reading.read_scored(judged, path, reads, opened)
        results[str(path)] = measure_scores(queries, values, measure, like=like, ties=ties, empty=empty, rel=rel)  # type: ignore[arg-type]
    tests = significance(results, baseline=str(rankings[0])) if len(results) > 1 else None
    if as_json:
        document: dict[str, Any] = {name: _document(result, level, tie_range) for name, result in results.items()}
        print(json.dumps({"results": document, "tests": None if tests is None else list(tests)}))
        return
    _show(results, tests, level, per_query, tie_range)


def _is_model(path: Path) -> bool:
    from rankwise.data.anyfile import kind_of

    return path.is_file() and kind_of(path) == "store"


def _ranker(path: Path) -> Any:
    from rankwise._api import load
    from rankwise.rankers._base import Ranker

    ranker = load(path)
    if not isinstance(ranker, Ranker):
        raise RankwiseError(f"{path} holds {type(ranker).__name__}: expected scores, or a saved ranker")
    return ranker


def _document(result: Any, level: float, tie_range: bool) -> dict[str, Any]:
    return {**result.to_dict(level), **({"tie_range": result.tie_range()} if tie_range else {})}


def _show(results: dict[str, Any], tests: Any, level: float, per_query: bool, tie_range: bool) -> None:
    from rich.console import Console

    from rankwise._tables import Table

    console = Console(highlight=False)
    for name, result in results.items():
        table = result.table(level)
        if tie_range:
            bounds = result.tie_range()
            extremes = {end: [bounds[title][at] for title in result.titles] for at, end in enumerate(("min", "max"))}
            table = Table({**{column: table[column] for column in table.columns}, **extremes})
        console.print(f"{name}: {len(result.qid):,} queries, {level:.0%} intervals over queries", markup=False)
        console.print(table.rich())
        if per_query:
            print(result.per_query)
    if tests is not None:
        first = next(iter(results))
        console.print(f"Paired tests against {first} (Fisher's randomisation, p with Holm's correction)", markup=False)
        shown = ("measure", "ranker", "difference", "low", "high", "p_corrected", "wins", "losses")
        console.print(Table({column: tests[column] for column in shown}).rich())
