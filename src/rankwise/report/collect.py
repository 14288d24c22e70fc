"""A comparison as one plain dict: every number of the report, before anything is drawn.

:func:`collect` calls one function per section of the report. The sections on tables of results, errors, certificates
and the origin (data, settings, versions, seeds, and the call that reproduces it) are here; queries and curves have
modules of their own.
"""

import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from rankwise._diagnose.run import diagnose
from rankwise._progress import progress
from rankwise.analysis.mistakes import by_group, label_pair_errors
from rankwise.errors import RankwiseError
from rankwise.evaluation.certificates import DELTA
from rankwise.evaluation.comparison.comparison import BETTER, EQUAL, WORSE, Comparison
from rankwise.evaluation.comparison.foreign import LambdaRank
from rankwise.evaluation.comparison.keys import plain
from rankwise.evaluation.comparison.selection import grid_for
from rankwise.evaluation.statistics.intervals import FEW, caution
from rankwise.guarantees._bound import Bound
from rankwise.guarantees.certificate import COMPARED, Certificate
from rankwise.report.attempts import attempt
from rankwise.report.compact import finite, numbers
from rankwise.report.descriptions import Descriptions
from rankwise.report.figures import cutoffs, histories, importance, weights
from rankwise.report.query_lists import ReportLimits, changes, no_lists, query_lists
from rankwise.report.recommendation import guarantee, recommendation
from rankwise.report.slices import VERDICTS, Slices, slice_results

# ------------------------------------------------------------------------------------------------------------- results


_MARGIN = 0.06  # of the width of a drawn interval, on either side


def results_table(comparison: Comparison) -> list[dict[str, Any]]:
    """One table per measure, best first."""
    return [_table(comparison, title) for title in comparison.titles]


def summary(comparison: Comparison) -> list[str]:
    """The main results in sentences."""
    title, level = comparison.titles[0], f"{comparison.level:.0%}"
    rows = [row for row in _table(comparison, title)["rows"] if row["mean"] is not None]
    if not rows:
        return [f"{title} is undefined on every test query."]
    best, taken, said = rows[0], recommendation(comparison), []
    if taken is None or taken["ranker"] != best["ranker"]:
        highest = f"{best['ranker']} with {best['mean']:.3f}{_between(best, level)}"
        said.append(f"Highest mean {title} on the test queries: {highest}.")
    if len(comparison.rankers) > 1:
        tests = len(comparison.tests)
        for_them = f"after correction for {tests} tests" if comparison.about["correction"] != "none" else "uncorrected"
        said.append(
            f"Against the baseline {comparison.baseline} ({for_them}): {_join_names(rows, BETTER, 'better')}; "
            f"{_join_names(rows, WORSE, 'worse')}; {_join_names(rows, EQUAL, 'not shown to differ')}."
        )
        chosen = winner(comparison)
        if chosen["ranker"] is not None:
            guaranteed = chosen["certificate"]["guarantee"]
            said.append(
                f"Certified for {chosen['ranker']}, which the validation part of fold 1 chose, by test queries that "
                f"chose nothing: {guaranteed}."
            )
    return said


def _between(row: dict[str, Any], level: str) -> str:
    """The interval of a row in parentheses."""
    return "" if row["low"] is None else f" ({level} interval {row['low']:.3f} to {row['high']:.3f})"


def _join_names(rows: list[dict[str, Any]], mark: str, as_what: str) -> str:
    """The rankers with a mark, as a part of a sentence."""
    names = [row["ranker"] for row in rows if row["mark"] == mark]
    return f"{as_what}: {', '.join(names) if names else 'none'}"


def _table(comparison: Comparison, title: str) -> dict[str, Any]:
    """The table of one measure."""
    tested = {row["ranker"]: row for row in comparison.tests if row["measure"] == title}
    result = comparison.results[comparison.baseline]
    rows = []
    for name in comparison.table(title)["ranker"].tolist():
        low, high = comparison.intervals[name][title]
        mark = comparison.mark(name, title)
        cells = [cell for cell in comparison.cells if cell.ranker == name]
        memory = [cell.memory for cell in cells if cell.memory is not None]
        test = tested.get(name, {})
        rows.append(
            {
                "ranker": name,
                "mean": finite(comparison.means[name][title]),
                "low": finite(low),
                "high": finite(high),
                "mark": mark,
                "verdict": VERDICTS[mark],
                **{key: finite(test.get(key, math.nan)) for key in ("difference", "p", "p_corrected")},
                **{key: test.get(key) for key in ("wins", "losses", "ties")},
                "seconds": finite(math.fsum(cell.seconds for cell in cells)),
                "memory": max(memory, default=None),
            }
        )
    _place(rows, comparison.baseline)
    counted = len(comparison.queries) - result.skipped[title]
    return {
        "measure": title,
        "full_name": comparison.about["measures"][title],
        "queries": counted,
        "skipped": result.skipped[title],
        "caution": caution(counted),
        "rows": rows,
    }


def _place(rows: list[dict[str, Any]], baseline: str) -> None:
    """Add the positions of dots and whiskers, in percent of one width for all rows."""
    # one scale for all rows: intervals can be compared by eye
    known = [row[key] for row in rows for key in ("mean", "low", "high") if row[key] is not None]
    if not known:
        return
    low, high = min(known), max(known)
    width = (high - low) or 1.0

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * (_MARGIN + (1 - 2 * _MARGIN) * (value - low) / width), 2)

    base = next(at(row["mean"]) for row in rows if row["ranker"] == baseline)
    for row in rows:
        row["drawn"] = {"mean": at(row["mean"]), "low": at(row["low"]), "high": at(row["high"]), "base": base}


# ----------------------------------------------------------------------------------------------------------- mistakes


GROUPINGS = {"documents": "documents per query", "relevant": "relevant documents per query"}


def label_pairs(comparison: Comparison) -> dict[str, Any]:
    """The share of pairs that each ranker inverts, by labels, with its interval."""
    options: dict[str, Any] = {"level": comparison.level, "random_state": comparison.about["random_state"]}
    try:
        table = label_pair_errors(comparison.queries, comparison.scores, **options)
    # the section then shows the reason instead of the figure
    except RankwiseError as error:  # too many labels
        return {"note": str(error), "pairs": [], "rankers": {}}
    pairs = list(dict.fromkeys(table["pair"].tolist()))
    shares: dict[str, Any] = {}
    for name in comparison.rankers:
        mine = table["ranker"] == name
        shares[name] = {column: numbers(table[column][mine]) for column in ("share", "low", "high")}
    counts = {row["pair"]: row["pairs"] for row in table}
    return {"note": None, "pairs": pairs, "counts": [counts[pair] for pair in pairs], "rankers": shares}


def groups(comparison: Comparison) -> list[dict[str, Any]]:
    """The mean difference to the baseline of the first measure, by kind of query, with its interval."""
    title = comparison.titles[0]
    base = comparison.results[comparison.baseline][title]
    rel = comparison.about["conventions"]["rel"]
    options: dict[str, Any] = {
        "level": comparison.level,
        "random_state": comparison.about["random_state"],
        "rel": 1 if rel is None else rel,
    }
    groupings = []
    for by, text in GROUPINGS.items():
        rankers, labels, few = {}, [], []
        for name in comparison.rankers:
            if name == comparison.baseline:
                continue
            # paired differences: intervals of the two means would be wider
            table = by_group(comparison.queries, comparison.results[name][title] - base, by, **options)
            labels, few = [_span(row) for row in table], [row["queries"] - row["skipped"] < FEW for row in table]
            rankers[name] = {column: numbers(table[column]) for column in ("mean", "low", "high")}
        groupings.append({"by": text, "measure": title, "groups": labels, "few": few, "rankers": rankers})
    return groupings


def _span(row: dict[str, Any]) -> str:
    """The label of a group below its axis: from and to, and how many queries count."""
    span = f"{row['from']:,}" if row["from"] == row["to"] else f"{row['from']:,}\u2013{row['to']:,}"
    return f"{span}\nn = {row['queries'] - row['skipped']:,}"


# ------------------------------------------------------------------------------------------------------- certificates


_HOLDS = {True: "yes", None: "assumed", False: "not met"}
_MET = {True: "met", None: "assumed", False: "not met"}


def certificates(comparison: Comparison) -> list[dict[str, Any]]:
    """The certificates of all rankers, each at delta divided by their number: all hold together."""
    title = _short_title(comparison)
    return [_certificate(name, certificate, title) for name, certificate in comparison.certificates(DELTA).items()]


def winner(comparison: Comparison) -> dict[str, Any]:
    """The ranker with the best validation value and its certificate at the whole delta, or why there is none."""
    try:
        name = comparison.choose()
    except RankwiseError as error:
        return {"ranker": None, "note": str(error), "certificate": None}
    return {
        "ranker": name,
        "note": None,
        "certificate": _certificate(name, comparison.certificate(DELTA), _short_title(comparison)),
    }


Names = Callable[[str], str]


def _short_title(comparison: Comparison) -> Names:
    """What gives the first measure the name that it has in the tables, in place of its full one."""
    title = comparison.titles[0]
    full = comparison.about["measures"][title]
    return lambda text: text.replace(full, title)


def _certificate(name: str, certificate: Certificate, named: Names) -> dict[str, Any]:
    """One certificate as plain values."""
    return {
        "ranker": name,
        "about": certificate.about,
        "delta": certificate.delta,
        "summary": named(certificate.summary()),
        "guarantee": named(guarantee(certificate)),
        "rows": [_row(bound, named) for bound in certificate.rows],
        "folded": certificate.fold_vacuous(),
        "notes": [named(note) for note in certificate.notes],
    }


def _row(bound: Bound, named: Names) -> dict[str, Any]:
    """One bound as plain values."""
    return {
        "kind": bound.kind or "",
        "what": named(bound.bounds),
        "sign": "\u2264" if bound.side == "at most" else "\u2265",
        "value": finite(bound.value),
        "compared": finite(bound.terms[COMPARED]) if COMPARED in bound.terms else None,
        "name": bound.name,
        "vacuous": bound.vacuous,
        "applies": _HOLDS[bound.applies],
        "status": bound.status,
        "statement": bound.statement,
        "terms": {term: finite(value) for term, value in bound.terms.items()},
        "preconditions": [[condition.sentence, _MET[condition.met]] for condition in bound.preconditions],
    }


# --------------------------------------------------------------------------------------------------------------- origin

_FEATURES_SHOWN = 300


def data_facts(comparison: Comparison) -> dict[str, Any]:
    """The diagnosis of the first fold: its training part against its test part, or all queries where nothing was
    trained.
    """
    first = comparison.first
    diagnosis = diagnose(first.test) if first.train is None else diagnose({"train": first.train}, {"test": first.test})
    rows = [
        {name: finite(value) if isinstance(value, float) else value for name, value in row.items()}
        for row in diagnosis.table()
    ]
    return {
        "part": "all queries" if first.train is None else "training part of fold 1",
        "about": repr(diagnosis).split("\n\n")[0].splitlines(),
        "findings": [
            {"severity": finding.severity, "what": finding.what, "where": finding.places(), "advice": finding.advice}
            for finding in diagnosis.findings
        ],
        "features": rows[:_FEATURES_SHOWN],
        "left_out": max(0, len(rows) - _FEATURES_SHOWN),
    }


def provenance(comparison: Comparison, command: str | None) -> dict[str, Any]:
    """Everything that determines the numbers, and how to reproduce them.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    command : str or None
        The shell command, where there was one.

    Returns
    -------
    dict
        Versions, seed, folds, selected settings, configuration, and calls.
    """
    about = comparison.about
    return {
        "versions": about["versions"],
        "random_state": about["random_state"],
        "folds": about["data"]["folds"],
        "chosen": [
            {"ranker": row["ranker"], "fold": row["fold"], "settings": _setting(row), "tried": row["tried"]}
            for row in comparison.chosen
        ],
        "configuration": json.dumps(about, indent=1, ensure_ascii=False),
        "python": python_call(comparison),
        "command": command,
    }


def _setting(row: Mapping[str, Any]) -> str:
    """The settings of a ranker on one fold, from the grid and from the fit itself."""
    together = {**row["settled"], **row["settings"]}
    return ", ".join(f"{name} = {_short(value)}" for name, value in together.items()) or "nothing to choose"


def _short(value: Any) -> str:
    """A value in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


# --------------------------------------------------------------------------------------------------------------- call


_USUAL = {"choose_by": None, "level": 0.95, "test": "randomization", "correction": "holm", "random_state": 0}
_USUAL_READING = {"missing": "error", "unjudged": "error", "zero_based": "auto", "qid": "qid", "label": "label"}
_ELSEWHERE = {"scores": "...,  # scores from elsewhere", "fitted": "...,  # a model that was fitted elsewhere"}


def python_call(comparison: Comparison) -> str:
    """Write the call of :func:`rankwise.compare` that gives the same numbers; ``...`` stands for what has no text."""
    about = comparison.about
    source = about["data"]["source"]
    options = {name: about[name] for name, usual in _USUAL.items() if about[name] != usual}
    options |= {name: value for name, value in about["conventions"].items() if value is not None}
    if comparison.folds is not None:
        options["folds"] = comparison.folds
    reading = {key: value for key, value in about["data"]["reading"].items() if value != _USUAL_READING.get(key)}
    options |= {key: value for key, value in (("reading", reading), ("grids", _own_grids(about["rankers"]))) if value}
    if about["baseline"] != next(iter(about["rankers"])):
        options["baseline"] = about["baseline"]
    # only what differs from the defaults is written, as one would type it
    arguments = ["rankers", "data" if source is None else repr(source), repr(list(about["measures"]))]
    arguments += [f"{name}={value!r}" for name, value in sorted(options.items())]
    lines = [
        "import rankwise as rw",
        *_imports(about["rankers"].values()),
        "",
        "rankers = {",
        *(f"    {name!r}: {_ranker(entry)}" for name, entry in about["rankers"].items()),
        "}",
        f"found = rw.compare({', '.join(arguments)})",
    ]
    return "\n".join(lines)


def _ranker(about: Mapping[str, Any]) -> str:
    """One ranker as it would be typed, with the parameters that differ from the defaults, and a comma."""
    if about["kind"] in _ELSEWHERE:
        return _ELSEWHERE[about["kind"]]
    module, _, kind = about["class"].rpartition(".")
    if about["class"] == f"{LambdaRank.__module__}.{LambdaRank.__qualname__}":
        return "'lightgbm',"
    usual = _defaults(module, kind)
    given = {name: value for name, value in about.get("parameters", {}).items() if value != usual.get(name)}
    texts = [f"{name}={'...' if isinstance(value, dict) else repr(value)}" for name, value in given.items()]
    return f"{'rw.' if module.startswith('rankwise.') else ''}{kind}({', '.join(texts)}),"


def _own_grids(rankers: Mapping[str, Any]) -> dict[str, Any]:
    """The grids that differ from the declared ones."""
    learned = {name: entry for name, entry in rankers.items() if entry["kind"] == "learned"}
    return {name: entry["grid"] for name, entry in learned.items() if entry["grid"] != _grid_of(entry)}


def _grid_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """The declared grid of a ranker with these parameters, as plain values."""
    module, _, kind = about["class"].rpartition(".")
    given = {name: value for name, value in about.get("parameters", {}).items() if not isinstance(value, dict)}
    try:
        # the class is looked up again from texts, so anything may fail here
        grid = grid_for(getattr(import_module(module), kind)(**given))
        return {name: plain(values, name) for name, values in grid.items()}
    except Exception:  # a foreign class, made from texts
        return {}


def _imports(rankers: Any) -> list[str]:
    """The imports of classes from other packages."""
    homes = (entry["class"].rpartition(".") for entry in rankers if entry["kind"] == "learned" and "class" in entry)
    return sorted({f"from {module} import {kind}" for module, _, kind in homes if not module.startswith("rankwise.")})


def _defaults(module: str, kind: str) -> dict[str, Any]:
    """The default parameters of a class, as plain values."""
    try:
        parameters = inspect.signature(getattr(import_module(module), kind)).parameters.values()
        return {each.name: plain(each.default, each.name) for each in parameters if each.default is not each.empty}
    except (ImportError, AttributeError, ValueError, TypeError, RankwiseError):
        return {}


# --------------------------------------------------------------------------------------------------------- all sections

Section = Callable[[Comparison], Any]
_NO_FEATURES = {"measure": "", "queries": 0, "of": 0, "features": 0, "shuffles": 0, "rankers": {}}
# Each section, and what it is where it could not be made.
_SECTIONS: dict[str, tuple[Section, Any]] = {
    "recommendation": (recommendation, None),
    "summary": (summary, []),
    "results_table": (results_table, []),
    "changes": (changes, {}),
    "cutoffs": (cutoffs, []),
    "histories": (histories, []),
    "weights": (weights, {"features": [], "left_out": 0, "rankers": {}}),
    "importance": (importance, _NO_FEATURES),
    "label_pairs": (label_pairs, {"note": None, "pairs": [], "rankers": {}}),
    "groups": (groups, []),
    "winner": (winner, {"ranker": None, "note": None, "certificate": None}),
    "certificates": (certificates, []),
    "diagnosis": (data_facts, {"part": "queries", "about": [], "findings": [], "features": [], "left_out": 0}),
}


def collect(
    comparison: Comparison,
    *,
    documents: Descriptions | None = None,
    queries: Descriptions | None = None,
    title: int | None = None,
    slices: Slices | None = None,
    limits: ReportLimits | None = None,
    command: str | None = None,
    verbose: bool = False,
) -> dict[str, Any]:
    """Collect everything that the report of a comparison shows, as plain values ready for JSON.

    The same comparison gives the same dict, whether it was computed at once or read from the folder of ``resume=``;
    seconds and memory are those of the run that trained the rankers.

    Parameters
    ----------
    comparison : Comparison
        What :func:`rankwise.compare` returned.
    documents : Descriptions, default=None
        Texts about documents.
    queries : Descriptions, default=None
        Texts about queries.
    title : int, default=None
        The column of ``documents`` that is shown in place of an id.
    slices : dict, default=None
        Groups of queries, see :func:`rankwise.report.slices.slice_results`.
    limits : ReportLimits, default=None
        How much of the queries and their documents is included.
    command : str, default=None
        The shell command that made the comparison, where there was one.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.

    Returns
    -------
    dict
        The sections of the report by name. A section that raised an error is empty, and ``failed`` has a sentence about
        it under its name: no section costs the others.
    """
    about = comparison.about
    report: dict[str, Any] = {
        "rankers": comparison.rankers,
        "baseline": comparison.baseline,
        "measures": list(comparison.titles),
        "level": comparison.level,
        "delta": DELTA,
        "few": FEW,
        "test": about["test"],
        "correction": about["correction"],
        "data": {name: about["data"][name] for name in ("source", "queries", "documents", "features")},
        "folds": len(about["data"]["folds"]),
        "provenance": provenance(comparison, command),
        "slices": slice_results(comparison, slices),
        "failed": {},
    }
    limits = limits or ReportLimits()
    sections = {
        **_SECTIONS,
        "lists": (lambda compared: query_lists(compared, limits, documents, queries, title), no_lists(limits)),
    }
    with progress("writing the report", len(sections), enabled=None if verbose else False) as bar:
        for name, (section, nothing) in sections.items():
            report[name], failed = attempt(partial(section, comparison), f"the section {name!r}", nothing)
            if failed:
                report["failed"][name] = failed
            bar.advance()
    return report
