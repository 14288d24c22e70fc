"""``rankwise compare``: train, select and test rankers on the same judged queries.

The options are those of :func:`rankwise.compare`, which does the work; this module parses the names of the rankers and
prints the table of results.

``rankwise report`` is the same command with an HTML page as its output. The data must be named even with ``--resume``:
that folder keeps what was trained, and not the queries that the report shows. With the same ``--resume`` a finished
comparison is not computed again.
"""

import shlex
import sys
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankwise.cli import reading, wording
from rankwise.cli.options import argument, measure_option, model_option, output_option, report_option
from rankwise.cli.wording import in_shell
from rankwise.errors import RankwiseError
from rankwise.evaluation.statistics.multiple_testing import Correction
from rankwise.evaluation.statistics.paired import Test

if TYPE_CHECKING:
    from rankwise._tables import Table
    from rankwise.evaluation.comparison.comparison import Comparison

_ALL = "all"
_NO_REPORT = 2  # exit code: all results are out, and the report could not be written


@reading.with_options
def compare(
    data: Path = argument(..., "A folder of folds, or one file: LETOR text (.gz too, - for standard input), table ..."),
    ranker: list[str] | None = model_option(
        None,
        "A ranker's name, lightgbm, all, or a file: a saved model or scores (NAME=FILE); may be repeated.",
        "-r",
        autocompletion=wording.rankers,
    ),
    measure: reading.MeasuresOption = ["nDCG@10", "AP"],  # noqa: B006
    folds: int | None = model_option(None, "Number of folds of a file (default 5); 1 for a single split.", min=1),
    baseline: str | None = model_option(None, "The ranker to test the others against (default: the first)."),
    choose_by: str | None = model_option(None, "Measure used for model selection (default: the ranker's own)."),
    resume: Path | None = model_option(None, "Keep finished parts in this folder, and resume from them."),
    out: Path | None = output_option(None, "Also write all results to this file as JSON.", "-o"),
    report: Path | None = report_option(None, "Also write a report to this HTML file, which works offline."),
    documents: Path | None = report_option(None, "A table with a column docid and columns about documents."),
    title: str | None = report_option(None, "The column of --documents to show in place of ids (default: title)."),
    queries: Path | None = report_option(None, "A table with a column qid and columns about queries."),
    slice_by: list[str] | None = report_option(
        None, "A column of --queries whose values are groups of queries; may be repeated.", "--slice"
    ),
    like: reading.LikeOption = None,
    ties: reading.TiesOption = None,
    empty: reading.EmptyOption = None,
    rel: reading.RelOption = None,
    level: float = measure_option(0.95, "Confidence level of the intervals and of the marks."),
    test: Test = measure_option("randomization", "Paired test over queries."),
    correction: Correction = measure_option("holm", "Correction for the number of tests."),
    seed: int = model_option(0, "Seed of the folds and of the bootstrap.", min=0),
    jobs: int | None = model_option(None, "Rankers and folds in parallel (default: every core).", "-j", min=1),
    as_json: reading.JsonOption = False,
    as_what: reading.FormatOption = "text",
    *,
    reads: dict[str, Any],
) -> None:
    """Compare rankers: train on every fold, select on validation parts, test once, with paired tests.

    Rankers given by name are trained for the first measure. A run that was stopped or crashed resumes with the same
    --resume.

    Example: rankwise compare OHSUMED --like letor --resume ohsumed.cells --out results.json

    Example: rankwise compare judged.txt -r RidgeRanker -r SmoothRank -r bm25=bm25.scores
    """
    from rankwise._compare_rankers import compare as run_comparison
    from rankwise.report.page import check_report, write_report_or_warn

    reading.refuse_two_formats(as_json, as_what)
    if out is not None:
        reading.check_writable(out)
    shown = _read_descriptions(documents, title, queries, slice_by or [])
    if report is not None:
        check_report(report)
    elif shown:
        raise RankwiseError("--documents, --queries and --slice require --report FILE")
    about_tests: dict[str, Any] = {"folds": folds, "baseline": baseline, "choose_by": choose_by, "level": level}
    about_tests |= {"test": test, "correction": correction}
    conventions: dict[str, Any] = {"like": like, "ties": ties, "empty": empty, "rel": rel}
    try:
        found = run_comparison(
            _rankers(ranker or []), data, measure, resume=resume, random_state=seed, n_jobs=jobs, verbose=not as_json,
            reading=reading.with_defaults(reads, kinds=True), **about_tests, **conventions,
        )  # fmt: skip
    except KeyboardInterrupt:
        if resume is not None:
            print(f"rankwise: finished parts are in {resume}; run the same command to resume", file=sys.stderr)
        raise
    # all results are out before anything is drawn, which takes longer and may fail
    text = found.to_json(out)
    if as_json:
        print(text, end="", flush=True)
    elif as_what == "text":
        _show(found)
    else:
        print(found.to_markdown() if as_what == "markdown" else found.to_latex(), end="", flush=True)
    plain = as_what == "text" and not as_json
    if out is not None and plain:
        print(f"all results: {out}", flush=True)
    if plain and report is None and out is None and str(data) != "-":
        print(f"\nto see queries, features and errors:\n{shlex.join(['rankwise', 'report', *sys.argv[2:]])}")
    if report is not None:
        typed = shlex.join(["rankwise", *sys.argv[1:]])
        if not write_report_or_warn(found, report, command=typed, verbose=not as_json, **shown):
            raise typer.Exit(_NO_REPORT)
        if plain:
            print(f"report: {report}")


def _read_descriptions(
    documents: Path | None, title: str | None, queries: Path | None, slices: list[str]
) -> dict[str, Any]:
    """Read the tables about documents and queries before anything is trained; the options of the report."""
    from rankwise.features.table import read_columns
    from rankwise.report.descriptions import Descriptions

    if title is not None and documents is None:
        raise RankwiseError("--title requires --documents")
    if slices and queries is None:
        raise RankwiseError("--slice requires --queries")
    shown: dict[str, Any] = {}
    if documents is not None:
        table = read_columns(documents)
        Descriptions.of(table, "docid", str(documents)).title(title, str(documents))
        shown |= {"documents": table, "title": title}
    if queries is not None:
        table = read_columns(queries)
        about = Descriptions.of(table, "qid", str(queries))
        shown |= {"queries": table, "slices": {name: about.column(name, str(queries)) for name in slices}}
    return shown


def _rankers(given: list[str]) -> dict[str, str]:
    """Parse NAME, FILE or NAME=FILE; the default rankers where nothing is given."""
    from rankwise.evaluation.comparison.selection import USUAL, all_names

    if not given:
        return {name: name for name in USUAL}
    found: dict[str, str] = {}
    for text in given:
        name, equals, file = text.partition("=")
        pairs = {one: one for one in all_names()} if text.lower() == _ALL else {name: file if equals else text}
        for called, value in pairs.items():
            if called in found:
                raise RankwiseError(f"--ranker {called} is given twice: use NAME=FILE to name files")
            if equals and not Path(value).is_file():
                raise RankwiseError(f"--ranker {text}: {value} does not exist")
            found[called] = value
    return found


def _league(found: "Comparison") -> "Table":
    """The results, best first, in 80 columns: the first measure with its interval, the others with marks."""
    from rankwise._tables import Table

    first, *others = found.titles
    table = found.table(first)
    names = table["ranker"].tolist()
    columns: dict[str, Any] = {column: table[column] for column in ("ranker", first, "low", "high", "mark")}
    for title in others:
        columns[title] = [f"{found.means[name][title]:.4f} {found.mark(name, title)}" for name in names]
    columns["seconds"] = [f"{seconds:.1f}" for seconds in table["seconds"].tolist()]
    return Table(columns)


def _show(found: "Comparison") -> None:
    """Print the results, and the winner with its certificate."""
    from rankwise.evaluation.statistics.intervals import caution

    console = wording.new_console()
    folds = len(found.about["data"]["folds"])
    about = f"{len(found.queries):,} test queries in {folds} fold{'' if folds == 1 else 's'}"
    console.print(f"{about}, {found.level:.0%} intervals over queries", markup=False)
    console.print(_league(found).rich())
    if few := caution(len(found.queries) - max(found.results[found.baseline].skipped.values())):
        console.print(few, markup=False)
    if len(found.results) > 1:
        console.print(found.legend(), markup=False)
        console.print(in_shell(_describe_winner(found)), markup=False)


def _describe_winner(found: "Comparison") -> str:
    """The winner and its certificate, or the reason why there is none and what may be quoted instead."""
    from rankwise.evaluation.certificates import DELTA

    try:
        winner = found.choose()
    except RankwiseError as error:
        every = found.certificates()
        bounds = {name: one.headline.value for name, one in every.items() if one.headline is not None}
        if not bounds:
            return f"no winner: {error}"
        best = min(bounds, key=bounds.__getitem__)
        together = (
            f"the smallest of {len(every)} certificates that hold simultaneously with {100 * (1 - DELTA):g}% confidence"
        )
        return f"no winner: {error}\n{together}: {best}\n{every[best].summary()}"
    return f"winner on the validation part of fold 1: {winner}\n{found.certificate().summary()}"


# ---------------------------------------------------------------------------------------------------- rankwise report


_OWN = ("out", "report")  # options of ``compare`` that have another meaning here, or none


def report(
    out: Path = output_option(Path("report.html"), "The HTML file to write.", "-o"),
    results: Path | None = output_option(None, "Also write all results to this file as JSON."),
    **comparing: Any,
) -> None:
    """Compare rankers and write one HTML report: tables, queries, curves, features, errors, certificates.

    The options are those of rankwise compare. With the --resume of a finished comparison only the report is written.

    Example: rankwise report OHSUMED -r RidgeRanker -r SmoothRank -r lightgbm -o report.html

    Example: rankwise report judged.txt --resume judged.cells -o report.html

    Example: rankwise report judged.csv --documents titles.csv --queries texts.csv --slice country -o report.html
    """
    compare(report=out, out=results, **comparing)


def _signature() -> Any:
    """The options of ``compare``, with some of them replaced: each option is declared in one place."""
    own = [one for one in signature(report).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    shared = [one for name, one in signature(compare).parameters.items() if name not in _OWN]
    first, *others = shared  # the data come first, as the only argument
    return signature(report).replace(parameters=[first, *own, *others])


report.__signature__ = _signature()  # type: ignore[attr-defined]
