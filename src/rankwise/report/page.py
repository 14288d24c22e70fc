"""The report as one HTML file: template, style, scripts, plotly.js and the numbers, and nothing from the network.

Templates escape the names, which come from untrusted data; :mod:`rankwise.report.figures` makes the figures.
"""

import base64
import hashlib
import os
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rankwise._atomic_write import refusing, writing
from rankwise._errors import RankwiseError
from rankwise._extras import require
from rankwise._paths import path_of
from rankwise.evaluation.compare.result import Comparison
from rankwise.report.collect import collect
from rankwise.report.compact import script_json
from rankwise.report.figures import figures
from rankwise.report.query_lists import Limits, query_lists

LARGEST = 12_000_000  # bytes of a report
TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("theme.js", "tables.js", "changes.js", "lists.js", "start.js")
# What the page's own script reads; everything else is in the HTML already.
_FOR_SCRIPT = ("rankers", "baseline", "measures", "changes", "lists")


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    limits: Limits | None = None,
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
    limits : Limits, default=None
        How much of the queries and their documents is included; halved until the file has at most 12 MB.
    command : str, default=None
        The shell command that made the comparison, to be shown.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.

    Raises
    ------
    MissingExtraError
        If a package of the extra ``report`` is not installed.
    RankwiseError
        If the file cannot be written.
    """
    check_report(path)
    used = limits or Limits()
    found = collect(comparison, limits=used, command=command, verbose=verbose)
    # browsers and mail programs struggle with larger files
    page = render(found)
    while len(page) > LARGEST and found["lists"]["queries"]:
        used = used.halved()
        found["lists"] = query_lists(comparison, used)
        page = render(found)
    with writing(path) as part:
        part.write_bytes(page)


def check_report(path: str | os.PathLike[str]) -> None:
    """Raise at once the errors that would come after a long run: a missing extra, a file that cannot be written."""
    require("jinja2")
    _plotly_script()
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
    environment.filters |= {"fixed": _fixed, "chance": _chance, "bytes": _bytes, "signed": _signed}
    scripts = [_plotly_script().read_text(encoding="utf-8"), "\n".join(map(_template, _SCRIPTS))]
    drawn = figures(found)
    page: str = environment.get_template("page.html").render(
        found=found,
        figures=drawn,
        policy=_policy(scripts),
        style=_template("page.css"),
        scripts=scripts,
        numbers=script_json({"figures": drawn, **{name: found[name] for name in _FOR_SCRIPT}}),
        licences=_licences(),
    )
    return page.encode("utf-8", errors="replace")  # a name may hold half a character


def _policy(scripts: list[str]) -> str:
    """A content security policy: these scripts, the page's own style, embedded pictures, and no request."""
    # by their hashes, so that an injected script would not run even if escaping failed
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    others = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {others}"


def _template(name: str) -> str:
    """The text of a file of the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _plotly_script() -> Path:
    """The file plotly.js as the package plotly ships it: one bundle of 4.8 MB; there is no smaller one."""
    path = Path(str(require("plotly").__file__)).parent / "package_data" / "plotly.min.js"
    if not path.is_file():
        raise RankwiseError(f"{path} does not exist: install plotly anew, pip install --force-reinstall plotly")
    return path


def _licences() -> list[tuple[str, str]]:
    """The licences of what the file embeds: the notice at the head of plotly.js, and the licence of the package."""
    head = _plotly_script().read_text(encoding="utf-8")[:400]
    notice = head.partition("*/")[0].replace("/**", "").replace("*", "").strip()
    files = distribution("plotly").files or ()
    texts = [str(file.read_text()) for file in files if file.name.upper().startswith("LICENSE")]
    return [("plotly.js", notice), *(("the package plotly, which plotly.js was taken from", one) for one in texts)]


# ----------------------------------------------------------------------------------------------- numbers for people


def _fixed(value: float | None, places: int = 3) -> str:
    """A number with a fixed number of decimals."""
    return "\u2013" if value is None else f"{value:.{places}f}"


def _signed(value: float | None, places: int = 3) -> str:
    """A number with its sign."""
    return "\u2013" if value is None else f"{value:+.{places}f}".replace("-", "\u2212")


def _chance(value: float | None) -> str:
    """A p-value."""
    return "\u2013" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _bytes(value: int | None) -> str:
    """A size in megabytes."""
    return "\u2013" if value is None else f"{value / 1e6:,.0f} MB"
