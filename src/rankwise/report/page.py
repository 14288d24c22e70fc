"""The report as one HTML file: template, style, scripts, plotly.js and the numbers, and nothing from the network.

The figures are plotly's own JSON, made from the collected numbers. Colours are roles ("@0" that of the first ranker,
"@ink", "@faint", "@paper", "@less", "@more"), which the page replaces by colours of the light or the dark theme. Names
come from untrusted data, and plotly interprets tags in texts: they are escaped.
"""

import base64
import hashlib
import os
from html import escape
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


# ------------------------------------------------------------------------------------------------------------ figures


Figure = dict[str, Any]

_LONGEST = 26  # signs of a name beside an axis
_DASHES = ("solid", "dash", "dot", "dashdot")
_COLOURS = 8  # that the themes have


def figures(found: dict[str, Any]) -> dict[str, Figure]:
    """Make all figures of a report.

    Parameters
    ----------
    found : dict
        What :func:`rankwise.report.collect.collect` returned.

    Returns
    -------
    dict of str to dict
        The figures by the name of their place in the page; empty ones are left out.
    """
    rankers = found["rankers"]
    made = {f"cutoffs-{number}": cutoff_figure(one, rankers) for number, one in enumerate(found["cutoffs"])}
    made |= {f"history-{number}": history_figure(one) for number, one in enumerate(found["histories"])}
    made |= {f"groups-{number}": group_figure(one, rankers) for number, one in enumerate(found["groups"])}
    for number, name in enumerate(found["importance"]["rankers"]):
        losses = found["importance"]["rankers"][name]
        made[f"importance-{number}"] = importance_figure(losses, rankers.index(name))
    made["weights"] = weight_figure(found["weights"])
    made["label-pairs"] = label_pair_figure(found["label_pairs"], rankers)
    return {name: figure for name, figure in made.items() if figure["data"]}


def cutoff_figure(found: dict[str, Any], rankers: list[str]) -> Figure:
    """One line per ranker against the cutoff."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": text(name),
            "x": found["k"],
            "y": found["lines"][name],
            "line": _line(rankers.index(name)),
            "marker": {"size": 4, "color": _colour(rankers.index(name))},
            "hovertemplate": "%{y:.4f} at %{x}<extra>%{fullData.name}</extra>",
        }
        for name in found["lines"]
    ]
    layout = {
        "xaxis": {"title": {"text": "cut-off k"}, "tickvals": [1, 5, 10, 15, 20], "range": [0.5, 20.5]},
        "yaxis": {"title": {"text": f"{found['family']}@k"}},
        "showlegend": False,
    }
    return {"data": data, "layout": layout, "height": 320}


def history_figure(found: dict[str, Any]) -> Figure:
    """The training history of one ranker: one colour per line, the folds on top of each other."""
    data = []
    for place, line in enumerate(found["lines"]):
        for number, fold in enumerate(found["folds"]):
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers" if len(fold["across"]) <= 20 else "lines",
                    "name": text(line),
                    "legendgroup": str(place),
                    "showlegend": number == 0 and len(found["lines"]) > 1,
                    "x": fold["across"],
                    "y": fold["lines"].get(line, []),
                    "line": {"color": f"@{place}", "width": 1.4, "dash": _DASHES[place % len(_DASHES)]},
                    "marker": {"size": 3, "color": f"@{place}"},
                    "opacity": 0.75,
                    "hovertemplate": f"%{{y:.4f}} at %{{x}}<extra>fold {fold['fold']}</extra>",
                }
            )
    # alphas and sigmas change by factors, rounds by one
    across: dict[str, Any] = {"title": {"text": text(found["across"])}}
    if found["logarithmic"]:
        across |= {"type": "log", "dtick": 1, "exponentformat": "power"}
    if found["across"] == "sigma":
        across |= {"title": {"text": "sigma, from coarse to fine"}, "autorange": "reversed"}
    return {"data": data, "layout": {"xaxis": across, "yaxis": {"nticks": 5}}, "height": 260}


def weight_figure(found: dict[str, Any]) -> Figure:
    """A heat map of weights, rankers by features."""
    rankers = found["rankers"]
    if not rankers or not found["features"]:
        return {"data": [], "layout": {}, "height": 0}
    features = [text(name, _LONGEST) for name in found["features"]]
    z = [[rankers[name]["mean"][place] for name in rankers] for place in range(len(features))]
    ends = [
        [[rankers[name]["low"][place], rankers[name]["high"][place]] for name in rankers]
        for place in range(len(features))
    ]
    heat = {
        "type": "heatmap",
        "x": _apart([text(name, _LONGEST) for name in rankers]),
        "y": _apart(features),
        "z": z,
        "customdata": ends,
        "zmid": 0,
        "xgap": 2,
        "ygap": 1,
        "colorscale": [[0, "@less"], [0.5, "@paper"], [1, "@more"]],
        "colorbar": {"thickness": 8, "outlinewidth": 0, "len": 160, "lenmode": "pixels", "y": 1, "yanchor": "top"},
        "hovertemplate": "%{y}: %{z:.3f}<br>folds: %{customdata[0]:.3f} to %{customdata[1]:.3f}<extra>%{x}</extra>",
    }
    layout = {
        "xaxis": {"side": "top", "showgrid": False, "tickangle": -35},
        "yaxis": {"autorange": "reversed", "showgrid": False},
    }
    return {"data": [heat], "layout": layout, "height": 130 + 19 * len(features)}


def importance_figure(found: dict[str, Any], place: int) -> Figure:
    """The losses by shuffling: a dot and a whisker per feature."""
    names = _apart([text(name, _LONGEST) for name in found["features"]])
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": found["loss"],
        "y": names,
        "error_x": _whiskers(found["loss"], found["low"], found["high"], _colour(place)),
        "marker": {"size": 6, "color": _colour(place)},
        "showlegend": False,
        "hovertemplate": "%{y}: %{x:.4f}<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "loss"}, "zeroline": True, "nticks": 5},
        "yaxis": {"autorange": "reversed", "showgrid": False},
    }
    return {"data": [dots], "layout": layout, "height": 110 + 19 * len(names)}


def label_pair_figure(found: dict[str, Any], rankers: list[str]) -> Figure:
    """The share of inverted pairs: a group of dots per pair of labels."""
    data = [
        _dodged(name, rankers, found["pairs"], numbers["share"], numbers["low"], numbers["high"], "%{y:.1%}")
        for name, numbers in found["rankers"].items()
    ]
    layout = {
        "xaxis": _places(found["pairs"], "labels of the pair"),
        "yaxis": {"title": {"text": "share of inverted pairs"}, "tickformat": ".0%", "rangemode": "tozero"},
        "showlegend": False,
    }
    return {"data": data, "layout": layout, "height": 320}


def group_figure(found: dict[str, Any], rankers: list[str]) -> Figure:
    """Mean differences to the baseline: a group of dots per group of queries."""
    data = [
        _dodged(name, rankers, found["groups"], numbers["mean"], numbers["low"], numbers["high"], "%{y:.4f}")
        for name, numbers in found["rankers"].items()
    ]
    layout = {
        "xaxis": _places(found["groups"], found["by"]),
        "yaxis": {"title": {"text": f"{text(found['measure'])}, minus the baseline"}, "zeroline": True},
        "showlegend": False,
    }
    return {"data": data, "layout": layout, "height": 320}


def text(name: Any, longest: int = 60) -> str:
    """Escape a name for plotly, and shorten a long one."""
    plain = str(name)
    return escape(plain if len(plain) <= longest else plain[: longest - 1] + "\u2026", quote=False)


def _dodged(
    name: str, rankers: list[str], places: list[Any], values: list[Any], low: list[Any], high: list[Any], shown: str
) -> dict[str, Any]:
    """Dots with whiskers at whole numbers, each ranker a little beside the others."""
    number = rankers.index(name)
    # rankers stand beside each other, closer the more there are
    shift = (number - (len(rankers) - 1) / 2) * min(0.12, 0.7 / max(len(rankers), 1))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": text(name),
        "x": [round(place + shift, 3) for place in range(len(places))],
        "y": values,
        "error_y": _whiskers(values, low, high, _colour(number)),
        "marker": {"size": 7, "color": _colour(number), "symbol": number // _COLOURS},
        "hovertemplate": f"{shown}<extra>%{{fullData.name}}</extra>",
    }


def _whiskers(values: list[Any], low: list[Any], high: list[Any], colour: str) -> dict[str, Any]:
    """Error bars of plotly from the ends of intervals; unknown ends give no bar."""
    # an unknown end has no whisker, and plotly would draw NaN as 0
    known = [None not in ends for ends in zip(values, low, high, strict=True)]
    up = [max(0.0, top - value) if ok else 0 for ok, value, top in zip(known, values, high, strict=True)]
    down = [max(0.0, value - bottom) if ok else 0 for ok, value, bottom in zip(known, values, low, strict=True)]
    bars = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    return {**bars, "color": colour, "thickness": 1.3, "width": 0}


def _places(labels: list[str], title: str) -> dict[str, Any]:
    """An axis with a name at every whole number."""
    ticks = {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": labels}
    return {**ticks, "range": [-0.5, len(labels) - 0.5], "title": {"text": title}, "tickangle": 0, "showgrid": False}


def _apart(names: list[str]) -> list[str]:
    """Names of a category axis, which merges equal ones: the second gets an invisible character."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        found.append(name + "\u200b" * seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1
    return found


def _colour(number: int) -> str:
    """The role of the colour of a ranker."""
    return f"@{number % _COLOURS}"


def _line(number: int) -> dict[str, Any]:
    """The line of a ranker; after the last colour the dashes change."""
    return {"color": _colour(number), "width": 1.8, "dash": _DASHES[number // _COLOURS % len(_DASHES)]}
