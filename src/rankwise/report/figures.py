"""The figures of the report as plain values, which ``templates/charts.js`` draws as SVG.

A figure is a dict: what is drawn (``"lines"``, ``"dots"`` with whiskers, ``"bars"`` or ``"heat"``), its height in
pixels, a sentence for readers who do not see it, two axes and the series. An axis has a title and what its places are:
numbers (``log``, ``reversed``, ``zero`` to include 0, ``percent``, or given ``ticks`` and ``range``), or ``names``, one
at every whole number, with a line break for a second line. Colours are the numbers of the rankers; the page has a
colour for each number in either theme. Names of untrusted origin stay as they are: the page only ever sets them as
text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Figure = dict[str, Any]
Numbers = Sequence[float | None]

_COLOURS = 8  # that the themes have
_DASHES = 4
_LINE = 19  # pixels of one name beside an axis


def figures(found: Mapping[str, Any]) -> dict[str, Figure]:
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
        made[f"importance-{number}"] = importance_figure(name, losses, rankers.index(name))
    if found["slices"]:
        others = [name for name in rankers if name != found["baseline"]]
        for number, one in enumerate(found["slices"]["slices"]):
            made[f"slice-{number}"] = slice_figure(one, found["measures"][0], rankers, others)
    made["weights"] = weight_figure(found["weights"])
    made["label-pairs"] = label_pair_figure(found["label_pairs"], rankers)
    return {name: figure for name, figure in made.items() if figure.get("series") or figure.get("rows")}


def cutoff_figure(found: Mapping[str, Any], rankers: list[str]) -> Figure:
    """One line per ranker against the cutoff."""
    return {
        "draw": "lines",
        "height": 320,
        "label": f"{found['family']}@k of every ranker for cut-offs k from {found['k'][0]} to {found['k'][-1]}",
        "x": {"title": "cut-off k", "ticks": [1, 5, 10, 15, 20], "range": [0.5, 20.5]},
        "y": {"title": f"{found['family']}@k"},
        "value": f"{found['family']}@k",
        "series": [
            {"name": name, **_look(rankers.index(name)), "x": found["k"], "y": line}
            for name, line in found["lines"].items()
        ],
    }


def history_figure(found: Mapping[str, Any]) -> Figure:
    """The training history of one ranker: one colour per line, the folds on top of each other."""
    # alphas and sigmas change by factors, rounds by one
    across: dict[str, Any] = {"title": found["across"], "log": found["logarithmic"]}
    if found["across"] == "sigma":
        across |= {"title": "sigma, from coarse to fine", "reversed": True}
    return {
        "draw": "lines",
        "height": 260,
        "label": f"{', '.join(found['lines'])} of {found['ranker']} by {found['across']}, one line per fold",
        "x": across,
        "y": {},
        "legend": len(found["lines"]) > 1,
        "series": [
            {
                "name": line,
                "fold": fold["fold"],
                "colour": place,
                "dash": place % _DASHES,
                "x": fold["across"],
                "y": fold["lines"][line],
            }
            for place, line in enumerate(found["lines"])
            for fold in found["folds"]
            if line in fold["lines"]
        ],
    }


def weight_figure(found: Mapping[str, Any]) -> Figure:
    """A map of weights, features by rankers."""
    rankers = found["rankers"]
    places = range(len(found["features"]))
    return {
        "draw": "heat",
        "height": 130 + _LINE * len(places),
        "label": "weights of linear rankers by feature, blue above 0 and orange below",
        "rows": found["features"] if rankers else [],
        "columns": list(rankers),
        "values": [[rankers[name]["mean"][place] for name in rankers] for place in places],
        "low": [[rankers[name]["low"][place] for name in rankers] for place in places],
        "high": [[rankers[name]["high"][place] for name in rankers] for place in places],
    }


def importance_figure(name: str, found: Mapping[str, Any], place: int) -> Figure:
    """The losses by shuffling: a dot and a whisker per feature."""
    features = found["features"]
    dots = {"name": name, **_look(place), "x": found["loss"], "y": list(range(len(features)))}
    return {
        "draw": "dots",
        "lying": True,
        "height": 70 + _LINE * len(features),
        "label": f"what {name} loses when one feature is shuffled, with intervals",
        "x": {"title": "loss", "zero": True},
        "y": {"names": features},
        "where": "feature",
        "value": "loss",
        "series": [dots | {"low": found["low"], "high": found["high"]}],
    }


def label_pair_figure(found: Mapping[str, Any], rankers: list[str]) -> Figure:
    """The share of inverted pairs: a group of dots per pair of labels."""
    return {
        "draw": "dots",
        "height": 320,
        "label": "share of inverted pairs of documents by their labels, with intervals",
        "x": {"title": "labels of the pair", "names": found["pairs"]},
        "y": {"title": "share of inverted pairs", "percent": True, "zero": True},
        "where": "labels",
        "value": "share",
        "series": [
            _dodged(name, rankers, one["share"], one["low"], one["high"]) for name, one in found["rankers"].items()
        ],
    }


def group_figure(found: Mapping[str, Any], rankers: list[str]) -> Figure:
    """Mean differences to the baseline: a group of dots per group of queries."""
    return {
        "draw": "dots",
        "height": 320,
        "label": f"{found['measure']} minus that of the baseline by {found['by']}, with intervals",
        "x": {"title": found["by"], "names": found["groups"]},
        "y": {"title": f"{found['measure']}, minus the baseline", "zero": True},
        "where": found["by"],
        "value": "difference",
        "series": [
            _dodged(name, rankers, one["mean"], one["low"], one["high"]) for name, one in found["rankers"].items()
        ],
    }


def slice_figure(found: Mapping[str, Any], measure: str, rankers: list[str], others: list[str]) -> Figure:
    """Paired differences to the baseline in the first measure: a line of dots per group of a slice."""
    rows = {(row["group"], row["ranker"]): row for row in found["rows"] if row["measure"] == measure}
    groups = list(dict.fromkeys(group for group, _ in rows))
    series = []
    for name in others:
        mine = [rows[group, name] for group in groups]
        ends = [[row[key] for row in mine] for key in ("difference", "difference_low", "difference_high")]
        dots = _dodged(name, rankers, *ends)
        series.append(dots | {"x": dots["y"], "y": dots["x"]})
    return {
        "draw": "dots",
        "lying": True,
        "height": 70 + len(groups) * (14 + 9 * len(rankers)),
        "label": f"{measure} minus that of the baseline by {found['name']}, with intervals",
        "x": {"title": f"{measure}, minus the baseline", "zero": True},
        "y": {"names": groups},
        "where": "group",
        "value": "difference",
        "series": series,
    }


def _dodged(name: str, rankers: list[str], values: Numbers, low: Numbers, high: Numbers) -> dict[str, Any]:
    """Dots with whiskers at whole numbers, each ranker a little beside the others."""
    number = rankers.index(name)
    # rankers stand beside each other, closer the more there are
    shift = (number - (len(rankers) - 1) / 2) * min(0.12, 0.7 / max(len(rankers), 1))
    places = [round(place + shift, 3) for place in range(len(values))]
    return {"name": name, **_look(number), "x": places, "y": values, "low": low, "high": high}


def _look(number: int) -> dict[str, int]:
    """Colour, dashes and shape of a ranker; after the last colour the dashes and shapes change."""
    return {"colour": number, "dash": number // _COLOURS % _DASHES, "shape": number // _COLOURS}
