"""``rankwise demo``: a complete example on synthetic queries: train, compare, certify, report, and commands to try
next.

Compilation is the slow part of a first run: :func:`compile_for` rehearses the demonstration on a few tiny queries, one
ranker at a time, in several processes that share the cache on the disk. Where everything is compiled already, one
rehearsal in this process finds that out.
"""

import importlib.util
import json
import shlex
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli import reading, wording
from rankwise.cli.options import option
from rankwise.cli.wording import in_shell, show_certificate
from rankwise.errors import MissingExtraError, RankwiseError

if TYPE_CHECKING:
    from rankwise.evaluation.comparison.comparison import Comparison
    from rankwise.queries.queries import Queries

Divided = tuple["Queries", "Queries", "Queries"]  # training, validation and test part

_FOLDER = Path("rankwise-demo")
_MEASURES = ("nDCG@10", "AP")
# One batch ranker of each family; for online rankers there is ``rankwise simulate``.
_RANKERS = ("RidgeRanker", "RankSVM", "ListNet", "RankBoost", "AdaRank", "SLAMRanker", "SmoothRank", "AutoRanker")


def demo(
    queries: int = option(300, "Number of queries to generate.", min=20),
    seed: reading.SeedOption = 0,
    out: Path = option(_FOLDER, "Folder for the queries, the model and the report.", "-o"),
    as_json: reading.JsonOption = False,
    called: str = option("rankwise", "How rankwise is called here.", hidden=True),
) -> None:
    """Train eight rankers on synthetic queries, compare them, certify the winner, and write a report.

    The queries resemble those of a web search engine: up to 200 documents, noisy graded labels, features that are
    correlated, unscaled and heavy-tailed. LightGBM takes part where it is installed. The winner is the ranker of this
    package that does best on the validation part; the test part certifies it. The first run on a machine also compiles,
    which takes most of its time.

    Example: rankwise demo --queries 100 --out demo
    """
    from rankwise import make_lists
    from rankwise._compare_rankers import compare
    from rankwise._progress import in_lines

    if out.exists() and not out.is_dir():
        raise RankwiseError(f"--out must be a folder, got the file {out}")
    data = make_lists(queries, random_state=seed)
    parts = _parts(data, seed)
    if not as_json:
        print(f"{data}\nmade by rankwise.make_lists: 60% training, 20% validation, 20% test\n")
    with nullcontext() if as_json else in_lines():
        compile_for(list(_rankers()))
        found = compare(_rankers(), [parts], _MEASURES, grids={}, random_state=seed, verbose=not as_json)
        outcome = finish(found, parts, out, verbose=not as_json)
    (_print_json if as_json else _show)(found, outcome, out, _next_commands(out, called))


def _parts(data: "Queries", seed: int) -> Divided:
    """Divide the queries into training, validation and test part."""
    from rankwise.queries.folds import split

    train, validation, test = split(data, (0.6, 0.2, 0.2), random_state=seed)
    return train, validation, test


def _rankers() -> dict[str, str]:
    """The rankers to compare by name, LightGBM among them where it is installed."""
    others = ("lightgbm",) if importlib.util.find_spec("lightgbm") else ()
    return {name: name for name in (*_RANKERS, *others)}


class Outcome(NamedTuple):
    """What the demonstration shows at its end.

    Attributes
    ----------
    winner : str
        The ranker of this package with the best validation value; only those can be saved and ranked with.
    certificate : Certificate
        Of the winner, which was chosen on the validation part, by the test part, which chose nothing.
    lacking : str
        Why there is no report; empty where there is one.
    """

    winner: str
    certificate: Any
    lacking: str


def finish(found: "Comparison", parts: Divided, folder: Path, verbose: bool = False) -> Outcome:
    """Choose and certify the winner, and write it, the data as LETOR text, and the report.

    Parameters
    ----------
    found : Comparison
        The comparison.
    parts : tuple of Queries
        The training, validation and test part.
    folder : Path
        The folder.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    Outcome
        The winner and its certificate; no report is written where its packages are not installed.
    """
    from rankwise.io.letor.write import write_letor
    from rankwise.rankers._base import Ranker
    from rankwise.report.page import write_report

    folder.mkdir(parents=True, exist_ok=True)
    for name, part in zip(("train", "validation", "test"), parts, strict=True):
        write_letor(part, folder / f"{name}.txt")
    own = [name for name in found.rankers if isinstance(found.models[name][0], Ranker)]
    winner, lacking = found.choose(own), ""
    found.models[winner][0].save(folder / "winner.rankwise")
    try:
        write_report(found, folder / "rankwise-demo.html", command="rankwise demo", verbose=verbose)
    except MissingExtraError as error:
        lacking = str(error)
    return Outcome(winner, found.certificate(among=own), lacking)


def _next_commands(folder: Path, called: str) -> list[str]:
    """Commands that run as they are."""
    model, train, test = (shlex.quote(str(folder / name)) for name in ("winner.rankwise", "train.txt", "test.txt"))
    return [
        f"{called} rank {model} {test} --top 3",
        f"{called} evaluate {test} --model {model} -m nDCG@10 -m RR",
        f"{called} train {train} -r AdaRank -o {shlex.quote(str(folder / 'ada.rankwise'))}",
    ]


def _results(found: "Comparison") -> dict[str, list[Any]]:
    """The results as columns that fit into 80 characters, best first."""
    table, first, second = found.table(_MEASURES[0]), *_MEASURES
    names = table["ranker"].tolist()
    return {
        "ranker": names,
        **{column: table[column].tolist() for column in (first, "low", "high", "mark")},
        second: [found.means[name][second] for name in names],
        "seconds": table["seconds"].tolist(),
    }


def _print_json(found: "Comparison", outcome: Outcome, folder: Path, following: list[str]) -> None:
    """Print the demonstration as JSON."""
    document = {
        "folder": str(folder),
        "files": sorted(one.name for one in folder.iterdir()),
        "results": _results(found),
        "winner": outcome.winner,
        "certificate": json.loads(outcome.certificate.to_json()),
        "next": following,
    }
    print(json.dumps(document))


def _show(found: "Comparison", outcome: Outcome, folder: Path, following: list[str]) -> None:
    """Print the demonstration as tables."""
    from rankwise._tables import Table

    console = wording.new_console()
    console.print(f"[bold]Results[/bold] on {len(found.queries):,} test queries, 95% intervals over queries")
    results = _results(found)
    console.print(Table({**results, "seconds": [f"{seconds:.1f}" for seconds in results["seconds"]]}).rich())
    console.print(f"+ and -: better and worse than {found.baseline} (paired randomization test, Holm's correction)\n")
    console.print(f"[bold]Certificate[/bold] of {outcome.winner}, the winner on the validation part")
    console.print(in_shell(outcome.certificate.summary()), markup=False)
    show_certificate(outcome.certificate)
    report = f"no report: {outcome.lacking}" if outcome.lacking else f"open {folder / 'rankwise-demo.html'}"
    console.print(f"\n[bold]Report[/bold]: {report}", soft_wrap=True)
    console.print("\n[bold]Try next[/bold]")
    for command in following:
        console.print(f"  {command}", markup=False, soft_wrap=True)


# -------------------------------------------------------------------------------------------------- compilation


def compile_for(names: Sequence[str]) -> None:
    """Compile what the demonstration needs with these rankers, if it is not compiled yet."""
    from rankwise._kernels.machine.compile_progress import count_needed
    from rankwise._progress import progress
    from rankwise.cli.compiling import Call, WouldCompileError, compile_in_processes, processes, without_compiler

    try:
        with progress("looking for compiled kernels"), without_compiler():
            rehearse(names)
    except WouldCompileError:
        whole = count_needed("first calls", ["demo"])

        def call(name: str, function: Callable[..., None], *arguments: Any) -> Call:
            kernels = count_needed("first calls", [name]) & whole
            return Call(name, f"{__name__}:{function.__name__}", arguments, kernels)

        # what takes longest comes first: no process compiles alone at the end
        last, *others = reversed(_RANKERS)
        calls = [
            call("evaluate", measure_tiny),
            call(last, fit_tiny, last),
            call("report", rehearse, [_RANKERS[0]]),
            *(call(name, fit_tiny, name) for name in others),
            call("demo", rehearse, names),
        ]
        compile_in_processes(calls, processes(None, calls), "compiling, once on this machine")


def _tiny() -> Divided:
    """Data that take no time."""
    from rankwise import make_lists

    return _parts(make_lists(15, documents=(2, 6)), 0)


def measure_tiny() -> None:
    """Measure a few queries."""
    from rankwise.evaluation.evaluation import evaluate

    queries = _tiny()[0]
    evaluate(queries, queries.X[:, 0], _MEASURES)


def fit_tiny(name: str) -> None:
    """Fit one ranker to a few queries.

    Parameters
    ----------
    name : str
        The ranker.
    """
    from rankwise.evaluation.comparison.rankers import Learner, as_entries

    train, validation, test = _tiny()
    entry = as_entries({name: name}, _MEASURES[0], None, 0)[name]
    assert isinstance(entry, Learner)
    ranker = entry.fresh({parameter: values[0] for parameter, values in entry.grid.items()}, 1)
    ranker.fit(train, validation=validation if ranker.takes_validation else None).predict(test)


def rehearse(names: Sequence[str] = _RANKERS) -> None:
    """Run every step of the demonstration on a few queries.

    Parameters
    ----------
    names : sequence of str
        The rankers.
    """
    from rankwise._compare_rankers import compare

    parts = _tiny()
    found = compare({name: name for name in names}, [parts], _MEASURES, grids={}, n_jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        finish(found, parts, Path(folder))
