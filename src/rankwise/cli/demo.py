"""``rankwise demo``: the whole way from a messy table to a ranker in production, on a table that is made for it.

It does what the commands ``inspect``, ``compare``, ``certify``, ``report`` and ``export`` do, and says at every step
what and why: :func:`look` inspects, :func:`finish` chooses, certifies, reports and exports.

Compilation is the slow part of a first run: :func:`compile_for` rehearses the demonstration on a few tiny queries, one
ranker at a time, in several processes that share the cache on the disk. Where everything is compiled already, one
rehearsal in this process finds that out.
"""

import importlib.util
import json
import shlex
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli import demo_table, reading, wording
from rankwise.cli.options import option
from rankwise.errors import MissingExtraError, RankwiseError

if TYPE_CHECKING:
    from rankwise._diagnose.findings import Finding
    from rankwise.evaluation.comparison.comparison import Comparison
    from rankwise.features.builder import FeatureBuilder

_FOLDER = Path("rankwise-demo")
_MEASURES = ("nDCG@10", "AP")
# The ranker to begin with, a linear one, and rankers of the papers; for online rankers there is ``rankwise simulate``.
_RANKERS = ("AutoRanker", "RidgeRanker", "SmoothRank", "RankSVM", "SLAMRanker", "ListNet", "AdaRank", "RankBoost")
# Searches whose offers nobody has judged, which are left to be ranked.
_NEW = 20
_MOST = 25  # offers of a search
_ROLES = {"qid": demo_table.QUERY, "label": demo_table.LABEL, "docid": demo_table.DOCUMENT}


def demo(
    queries: int = option(300, "Number of queries to generate.", min=20),
    seed: reading.SeedOption = 0,
    out: Path = option(_FOLDER, "Folder for the tables, the model, its export and the report.", "-o"),
    as_json: reading.JsonOption = False,
    called: str = option("rankwise", "How rankwise is called here.", hidden=True),
) -> None:
    """Go from a messy table to a ranker with a certificate, step by step.

    The table is made for the demonstration: judged offers of a shop, with texts, dates, two currencies, gaps, and a
    column that leaks the judgment. Eight rankers, and LightGBM where it is installed, are trained on 60% of the
    searches. The one that does best on 20% is certified on the other 20%, reported and exported. The first run on a
    machine also compiles, which takes most of its time.

    Example: rankwise demo --queries 100 --out demo
    """
    from rankwise._progress import in_lines

    if out.exists() and not out.is_dir():
        raise RankwiseError(f"--out must be a folder, got the file {out}")
    with nullcontext() if as_json else in_lines():
        compile_for(list(_rankers()))
        judged, _ = demo_table.write_tables(out, queries, _NEW, _MOST, seed)
        looked = look(judged)
        if not as_json:
            _print_step(f"1. A table as people have it, one row per offer: {judged}, {looked.size}.")
            _show_columns(looked)
        found, outcome = learn(judged, looked, list(_rankers()), seed, verbose=not as_json)
    following = _next_commands(out, called)
    if as_json:
        _print_json(found, looked, outcome, out, following)
    else:
        _show(found, outcome, out, following)


def _rankers() -> dict[str, str]:
    """The rankers to compare by name, LightGBM among them where it is installed."""
    others = ("lightgbm",) if importlib.util.find_spec("lightgbm") else ()
    return {name: name for name in (*_RANKERS, *others)}


class Looked(NamedTuple):
    """What inspection finds in the table.

    Attributes
    ----------
    builder : FeatureBuilder
        How features are made of its columns.
    leaks : list of Finding
        Features that look like the label.
    size : str
        Queries, documents and features in words.
    """

    builder: "FeatureBuilder"
    leaks: "list[Finding]"
    size: str


def look(table: Path) -> Looked:
    """Inspect the table as ``rankwise inspect`` does."""
    from rankwise._diagnose.leaks import find_leaks, rank_alone
    from rankwise.features.judged import new_builder
    from rankwise.io import read_columns

    builder = new_builder({**_ROLES, "missing": "error"})
    queries = builder.fit_transform(read_columns(table))
    size = f"{len(queries):,} searches, {queries.n_documents:,} offers"
    return Looked(builder, list(find_leaks(queries, rank_alone(queries), {})), size)


def _reading(looked: Looked) -> dict[str, Any]:
    """How the table is read: without the columns that leak."""
    return {**_ROLES, "ignore": [name for leak in looked.leaks for name in leak.columns]}


def _show_columns(looked: Looked) -> None:
    """Print what becomes of the columns."""
    leaks = _reading(looked)["ignore"]
    plan = [row for row in looked.builder.plan_ if row["column"] not in leaks]
    used = [f"{row['column']} ({row['kind']})" for row in plan if row["features"]]
    left = [f"{row['column']} ({row['kind']})" for row in plan if not row["features"]]
    _print_step("2. Inspect it: each column is treated by its values, and a column may give the answer away.")
    _print_indented(f"used: {', '.join(used)}")
    _print_indented(f"left out: {', '.join(left)}")
    for leak in looked.leaks:
        where = ", ".join(str(one) for one in leak.where)
        _print_indented(f"a leak, which is left out: {where}; {leak.what}")


def _print_step(text: str) -> None:
    """Print what a step does, and why."""
    print("\n" + textwrap.fill(text, 79, subsequent_indent="   ", break_on_hyphens=False, break_long_words=False))


def _print_indented(text: str) -> None:
    """Print text in lines of 79 characters."""
    print(
        textwrap.fill(
            text, 79, initial_indent="   ", subsequent_indent="     ", break_on_hyphens=False, break_long_words=False
        )
    )


class Outcome(NamedTuple):
    """What the demonstration shows at its end.

    Attributes
    ----------
    winner : str
        The ranker of this package with the best validation value; only those can be saved and ranked with.
    certificate : Certificate
        Of the winner, which was chosen on the validation part, by the test part, which chose nothing.
    export : Export
        The winner as C.
    lacking : str
        Why there is no report; empty where there is one.
    """

    winner: str
    certificate: Any
    export: Any
    lacking: str


def learn(
    judged: Path, looked: Looked, names: Sequence[str], seed: int, **settings: Any
) -> "tuple[Comparison, Outcome]":
    """Compare rankers, choose and certify the winner, and write it, its export and the report beside the table.

    Parameters
    ----------
    judged : Path
        The table.
    looked : Looked
        What inspection found.
    names : sequence of str
        The rankers.
    seed : int
        The seed of the division.
    **settings : dict
        Further arguments of :func:`rankwise.compare`.

    Returns
    -------
    found : Comparison
        The comparison.
    outcome : Outcome
        The winner and its certificate; no report is written where its packages are not installed.
    """
    from rankwise._compare_rankers import compare
    from rankwise.exports import export
    from rankwise.io import read_columns
    from rankwise.rankers._base import Ranker
    from rankwise.report.page import write_report

    folder, rankers = judged.parent, {name: name for name in names}
    how: dict[str, Any] = {"folds": 1, "grids": {}, "random_state": seed, "reading": _reading(looked), **settings}
    found = compare(rankers, judged, _MEASURES, **how)
    own = [name for name in found.rankers if isinstance(found.models[name][0], Ranker)]
    winner, lacking = found.choose(own), ""
    model: Any = found.models[winner][0]
    model.save(folder / "winner.rankwise")
    table: Any = read_columns(judged)
    exported = export(model, "c", folder / "winner.c", sample=table)
    try:
        write_report(
            found, folder / "rankwise-demo.html", command="rankwise demo", verbose=settings.get("verbose", False)
        )
    except MissingExtraError as error:
        lacking = str(error)
    return found, Outcome(winner, found.certificate(among=own), exported, lacking)


def _next_commands(folder: Path, called: str) -> list[str]:
    """Commands that run as they are, and then one for the user's own table."""
    model, judged, new = (shlex.quote(str(folder / name)) for name in ("winner.rankwise", "judged.csv", "new.csv"))
    return [
        f"{called} rank {model} {new} --top 3",
        f"{called} inspect {judged}",
        f"{called} train my.csv --qid query --label grade",
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


def _print_json(found: "Comparison", looked: Looked, outcome: Outcome, folder: Path, following: list[str]) -> None:
    """Print the demonstration as JSON."""
    document = {
        "folder": str(folder),
        "files": sorted(one.name for one in folder.iterdir()),
        "ignored": _reading(looked)["ignore"],
        "results": _results(found),
        "winner": outcome.winner,
        "certificate": json.loads(outcome.certificate.to_json()),
        "next": following,
    }
    print(json.dumps(document))


def _show(found: "Comparison", outcome: Outcome, folder: Path, following: list[str]) -> None:
    """Print the steps after the inspection."""
    from rankwise._tables import Table

    console = wording.new_console()
    _print_step(
        f"3. Compare rankers: they learn from 60% of the searches, and {len(found.queries):,} others test them."
    )
    results = _results(found)
    console.print(Table({**results, "seconds": [f"{seconds:.1f}" for seconds in results["seconds"]]}).rich())
    _print_indented(
        f"low, high: 95% interval over queries; + and -: better and worse than {found.baseline} (paired randomization "
        "test, Holm's correction)"
    )
    first = results["ranker"][0]
    _print_step(f"4. Choose on the validation part, another 20%: {outcome.winner}.")
    if first != outcome.winner:
        _print_indented(f"{first} is ahead on the test part, which may not choose: it certifies.")
    _print_step("5. Certify on the test part, which chose nothing: a bound that holds on future searches.")
    _print_indented(wording.describe_certificate(outcome.certificate.to_dict(), _MEASURES[0]))
    parity = outcome.export.parity
    _print_step(f"6. Export it to your stack: {folder / 'winner.c'}")
    _print_indented(
        f"of {parity.pairs:,} pairs of offers, {parity.inverted:,} stand in another order than in Python; other "
        "targets: ONNX, SQL, Vespa, Solr, Elasticsearch, OpenSearch"
    )
    report = f"no report: {outcome.lacking}" if outcome.lacking else f"open {folder / 'rankwise-demo.html'}"
    _print_step(f"7. See everything in a browser: {report}")
    _print_step("Try next: rank searches that nobody has judged, inspect the table, train on your own")
    for command in following:
        print(f"  {command}")


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


def measure_tiny() -> None:
    """Measure a few queries."""
    from rankwise import evaluate, make_lists

    queries = make_lists(15, documents=(2, 6))
    evaluate(queries, queries.X[:, 0], _MEASURES)


def fit_tiny(name: str) -> None:
    """Fit one ranker to a few queries.

    Parameters
    ----------
    name : str
        The ranker.
    """
    from rankwise import make_lists, split
    from rankwise.evaluation.comparison.rankers import Learner, as_entries

    train, validation, test = split(make_lists(15, documents=(2, 6)), (0.6, 0.2, 0.2), random_state=0)
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
    with tempfile.TemporaryDirectory() as folder:
        judged, _ = demo_table.write_tables(Path(folder), 20, 0, 6, 0)
        learn(judged, look(judged), names, 0, n_jobs=1)
