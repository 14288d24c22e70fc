"""``rankwise report``: a comparison whose result is an HTML page.

The command is ``rankwise compare`` with the report as its output, and has the same options. The data must be named even
with ``--resume``: that folder keeps what was trained, and not the queries that the report shows. With the same
``--resume`` a finished comparison is not computed again.
"""

from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwise.cli.compare import compare

_OWN = ("out", "report")  # options of ``compare`` that have another meaning here, or none


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    results: Annotated[
        Path | None, typer.Option("--results", help="Also write all results to this file as JSON.")
    ] = None,
    **comparing: Any,
) -> None:
    """Compare rankers and write one HTML report: tables, queries, curves, features, errors, certificates.

    The options are those of rankwise compare. With the --resume of a finished comparison only the report is written.

    Example: rankwise report OHSUMED -r RidgeRanker -r SmoothRank -r lightgbm -o report.html

    Example: rankwise report judged.txt --resume judged.cells -o report.html
    """
    compare(report=out, out=results, **comparing)


def _signature() -> Any:
    """The options of ``compare``, with some of them replaced, so that each option is declared in one place."""
    own = [one for one in signature(report).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    shared = [one for name, one in signature(compare).parameters.items() if name not in _OWN]
    first, *others = shared  # the data come first, as the only argument
    return signature(report).replace(parameters=[first, *own, *others])


report.__signature__ = _signature()  # type: ignore[attr-defined]
