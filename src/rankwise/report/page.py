"""The report as one HTML file: template, style, scripts and the numbers, and nothing from the network.

Templates escape the names, which come from untrusted data; :mod:`rankwise.report.figures` says what is drawn, and the
page's own script draws it.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import NoneType
from typing import Any

from rankwise._extras import require
from rankwise._files import path_of, refusing, writing
from rankwise.errors import DataError, RankwiseError, ReportWarning, in_one_line, warn
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.report.collect import collect
from rankwise.report.compact import pack, printable
from rankwise.report.descriptions import Descriptions
from rankwise.report.figures import figures
from rankwise.report.query_lists import ReportLimits, query_lists
from rankwise.report.slices import Slices

LARGEST = 12_000_000  # bytes of a report
TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("theme.js", "tables.js", "download.js", "charts.js", "changes.js", "lists.js", "start.js")
# What the page's own script reads; everything else is in the HTML already.
_FOR_SCRIPT = ("rankers", "baseline", "recommendation", "measures", "changes", "lists")


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    documents: Any = None,
    title: str | None = None,
    queries: Any = None,
    slices: Slices | None = None,
    limits: ReportLimits | None = None,
    command: str | None = None,
    verbose: bool = False,
) -> None:
    """Write everything about a comparison to one HTML file, which needs no network and no other file.

    The report has tables of results, changes by query with the documents of each, curves, features, errors,
    certificates, the diagnosis of the data, and the call that reproduces it; see the page "The report" of the
    documentation. Needs the extra ``report``.

    Parameters
    ----------
    comparison : Comparison
        What :func:`rankwise.compare` returned.
    path : str or path-like
        The file, which is written atomically.
    documents : mapping or data frame, default=None
        Texts about documents: a mapping from a document id to a title, or to a mapping of column to value; or a table
        (a data frame, or what :func:`read_columns` read) with a column ``docid``. Ids that it does not hold are shown
        as ids.
    title : str, default=None
        The column of ``documents`` that is shown in place of the id; None takes ``title``, or the first one.
    queries : mapping or data frame, default=None
        Texts about queries, likewise, with a column ``qid``. They are shown beside the id, and searched.
    slices : dict of str to array-like, callable or mapping, default=None
        Groups of queries by the name of the slice: one group (or True and False) per query in the order of
        ``comparison.queries``, a function from a :class:`Query` to its group, or a mapping from query ids to groups.
        None is no group. The report has means and paired differences in every group; their p-values are corrected for
        all groups, rankers and measures together.
    limits : ReportLimits, default=None
        How much of the queries and their documents is included; halved until the file has at most 12 MB.
    command : str, default=None
        The shell command that made the comparison, to be shown.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.

    Raises
    ------
    MissingExtraError
        If a package of the extra ``report`` is not installed.
    DataError
        If a table or a slice does not match the comparison.
    RankwiseError
        If the file cannot be written.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(40, documents=8, random_state=1)
    >>> found = rw.compare({"bm25": lists.X[:, 0], "ridge": rw.RidgeRanker()}, lists, folds=3)
    >>> titles = {"d1": "A page about ranking"}
    >>> slices = {"long": lambda query: len(query) > 4}
    >>> rw.evaluation.write_report(found, "r.html", documents=titles, slices=slices)  # doctest: +SKIP
    """
    check_report(path)
    if not isinstance(limits, (ReportLimits, NoneType)):
        raise RankwiseError(f"limits must be ReportLimits or None, got {type(limits).__name__}")
    used = limits or ReportLimits()
    texts = _texts(comparison, documents, title, queries)
    found = collect(comparison, slices=slices, limits=used, command=command, verbose=verbose, **texts)
    # browsers and mail programs struggle with larger files
    page = render(found)
    while len(page) > LARGEST and found["lists"]["queries"]:
        used = used.halve()
        found["lists"] = query_lists(comparison, used, **texts)
        page = render(found)
    with writing(path) as part:
        part.write_bytes(page)


def write_report_or_warn(comparison: Comparison, path: str | os.PathLike[str], **options: Any) -> bool:
    """Write a report at the end of a run, which an error must not end: it becomes a warning.

    Parameters
    ----------
    comparison : Comparison
        What :func:`rankwise.compare` returned.
    path : str or path-like
        The file.
    **options : dict
        Further arguments of :func:`write_report`.

    Returns
    -------
    bool
        Whether the report was written.
    """
    try:
        write_report(comparison, path, **options)
    except Exception as error:  # any error: the comparison took longer than the report
        kind = "" if isinstance(error, RankwiseError) else f"{type(error).__name__}: "
        warn(f"the report {os.fspath(path)} was not written: {kind}{in_one_line(error)}", ReportWarning)
        return False
    return True


def _texts(comparison: Comparison, documents: Any, title: str | None, queries: Any) -> dict[str, Any]:
    """The texts about documents and queries, which have to match the comparison."""
    docid = comparison.queries.docid
    if docid is None and documents is not None:
        raise DataError("documents= requires queries with document ids")
    if title is not None and documents is None:
        raise DataError(f"title must name a column of documents, which are not given, got {title!r:.60}")
    about = Descriptions.of(documents, "docid", "documents").check([] if docid is None else list(docid), "documents")
    return {
        "documents": about,
        "queries": Descriptions.of(queries, "qid", "queries").check(comparison.queries.names(), "queries"),
        "title": about.title(title, "documents"),
    }


def check_report(path: str | os.PathLike[str]) -> None:
    """Raise at once the errors that would come after a long run: a missing extra, a file that cannot be written."""
    require("jinja2")
    target = Path(os.path.realpath(path_of(path)))
    if not target.parent.is_dir():
        raise RankwiseError(f"{os.fspath(path)} cannot be written: the folder {target.parent} does not exist")
    if target.is_dir():
        raise RankwiseError(f"{os.fspath(path)} cannot be written: it is a folder")
    with refusing(path), TemporaryFile(dir=target.parent):
        pass


def render(found: dict[str, Any]) -> bytes:
    """Render the page."""
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        # names come from untrusted data
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    script = "\n".join(map(_template, _SCRIPTS))
    drawn, failed = figures(found)
    read = {"figures": drawn, "tables": tables(found), **{name: found[name] for name in _FOR_SCRIPT}}
    page: str = environment.get_template("page.html").render(
        found=found,
        figures=drawn,
        failed={**found["failed"], **failed},
        policy=_policy(script),
        style=_template("page.css"),
        script=script,
        numbers=pack(read),
    )
    return printable(page).encode("utf-8")


def _policy(script: str) -> str:
    """A content security policy: this script, the page's own style, and no request."""
    # by its hash: an injected script would not run even if escaping failed
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    others = "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src 'sha256-{digest}'; {others}"


def _template(name: str) -> str:
    """The text of a file of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------- numbers for people


_DASH = "\u2013"

# The filters of the templates: a number in the way of the key; None is a dash, or what ``short`` is given instead.
_FILTERS: dict[str, Callable[..., str]] = {
    "fixed": lambda value, places=3: _DASH if value is None else f"{value:.{places}f}",
    "signed": lambda value, places=3: _DASH if value is None else f"{value:+.{places}f}".replace("-", "\u2212"),
    "chance": lambda p: _DASH if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
    "bytes": lambda size: _DASH if size is None else f"{size / 1e6:,.0f} MB",
    "short": lambda value, missing=_DASH: missing if value is None else _short(value),
}


def _short(value: Any) -> str:
    """A number in four significant digits; anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------------------- tables as CSV files

# The names of tables are those of the attribute ``data-table`` in the templates. Tables that the reader makes in the
# page (queries, documents, contributions of features, numbers of figures) are put together there.
_RESULTS = (
    "ranker", "mean", "low", "high", "verdict", "difference", "p", "p_corrected", "wins", "losses", "ties", "seconds",
    "memory",
)  # fmt: skip
_SLICE = (
    "group", "measure", "ranker", "queries", "mean", "low", "high", "verdict", "difference", "difference_low",
    "difference_high", "p", "p_corrected",
)  # fmt: skip
_BOUND = ("kind", "what", "sign", "value", "compared", "name", "vacuous", "applies", "status", "statement")


def tables(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Put together every table of the templates.

    Parameters
    ----------
    found : dict
        What :func:`rankwise.report.collect.collect` returned.

    Returns
    -------
    dict of str to dict
        For each table its columns and rows.
    """
    diagnosis, made = found["diagnosis"], found["provenance"]
    slices = found["slices"]["slices"] if found["slices"] else []
    every = {f"results {one['measure']}": _table(_RESULTS, one["rows"]) for one in found["results_table"]}
    every |= {f"slice {one['name']}": _table(_SLICE, one["rows"]) for one in slices}
    every |= {f"certificate {one['ranker']}": _table(_BOUND, one["rows"]) for one in found["certificates"]}
    if found["winner"]["certificate"]:
        every["certificate of the winner"] = _table(_BOUND, found["winner"]["certificate"]["rows"])
    # the page looks tables up by the names that its HTML gives back
    every = {printable(name): table for name, table in every.items()}
    every["findings"] = _table(("severity", "what", "where", "advice"), diagnosis["findings"])
    every["features"] = _table(tuple(diagnosis["features"][0]) if diagnosis["features"] else (), diagnosis["features"])
    every["settings"] = _table(("ranker", "fold", "settings", "tried"), made["chosen"])
    every["folds"] = _table(("fold", "part", "queries", "fingerprint"), _folds(made["folds"]))
    return every


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of rows that may have more."""
    return {"columns": list(columns), "rows": [[row[name] for name in columns] for row in rows]}


def _folds(folds: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """One row per fold and part."""
    for number, fold in enumerate(folds, start=1):
        for part in ("train", "validation", "test"):
            if fold[part]:
                yield {
                    "fold": number, "part": part, "queries": fold[part], "fingerprint": fold["fingerprints"][part],
                }  # fmt: skip
