"""The figures of the report: curves and features as plain values, and everything that is drawn from plain values.

Measures at every cutoff, rounds of each fit, weights and importance are collected here. :func:`figures` draws them,
with those of the other sections, as plotly's own JSON. Colours are roles ("@0" that of the first ranker, "@ink",
"@faint", "@paper", "@less", "@more"), which the page replaces by colours of the light or the dark theme. Names come
from untrusted data, and plotly interprets tags in texts: they are escaped.
"""

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.drive import one_blas_thread
from rankwise._tables import Table
from rankwise.data.diagnose.features import feature_names
from rankwise.data.queries import Queries
from rankwise.evaluation.analysis.importance import FeatureImportance, losses_by_query, weights_of
from rankwise.evaluation.compare.result import Comparison
from rankwise.evaluation.compare.store import is_kept
from rankwise.evaluation.evaluate import evaluate
from rankwise.measures._base import Vector
from rankwise.report.compact import numbers

CUTOFFS = tuple(range(1, 21))
_FAMILIES = ("nDCG", "P")
_POINTS = 150  # of a curve; more would not be seen
_MEASURED = ("train", "validation")


def cutoffs(comparison: Comparison) -> list[dict[str, Any]]:
    """nDCG@k and P@k for k = 1..20."""
    found: list[dict[str, Any]] = []
    conventions = comparison.about["conventions"]
    for family in _FAMILIES:
        measures = [f"{family}@{k}" for k in CUTOFFS]
        try:
            lines = {
                name: numbers(evaluate(comparison.queries, scores, measures, **conventions).mean.values())
                for name, scores in comparison.scores.items()
            }
        except RankwiseError as error:
            found.append({"family": family, "k": list(CUTOFFS), "lines": {}, "note": str(error)})
        else:
            found.append({"family": family, "k": list(CUTOFFS), "lines": lines, "note": None})
    return found


def histories(comparison: Comparison) -> list[dict[str, Any]]:
    """The training history of each ranker that keeps one, in every fold."""
    found = []
    for name, models in comparison.models.items():
        accounts = [(fold, _account(model)) for fold, model in enumerate(models, start=1)]
        known = [(fold, account) for fold, account in accounts if account is not None]
        if not known:
            continue
        _, (across, table, about) = known[0]
        folds = [
            {
                "fold": fold,
                "across": numbers(_thinned(columns[across])),
                "lines": {line: numbers(_thinned(columns[line])) for line in columns.columns[1:]},
            }
            for fold, (_, columns, _) in known
        ]
        found.append(
            {
                "ranker": name,
                "across": across,
                "logarithmic": _is_wide(table[across]),
                "about": about,
                "lines": list(table.columns[1:]),
                "folds": folds,
            }
        )
    return found


Account = tuple[str, Table, str]


def _account(model: Any) -> Account | None:
    """(name of the x-axis, table of it and the lines, explanation): of rounds, of alphas, or of a stream."""
    history = getattr(model, "history_", None)
    if isinstance(history, Table) and len(history):
        drawn = [name for name in _MEASURED if name in history] or list(getattr(history, "drawn", ()))
        return _kept(history, history.columns[0], drawn, "")
    ledger = getattr(model, "ledger_", None)
    if ledger is not None and len(ledger.curve.points):
        table = Table({"round": ledger.curve.rounds, "so far": ledger.curve.mean})
        return _kept(
            table, "round", ["so far"], "mean over the rounds so far, each query ranked before it was learned from"
        )
    path = getattr(model, "path_", None)
    if isinstance(path, Table) and len(path) > 1:
        return _kept(path, path.columns[0], list(path.columns[1:2]), "validation measure of each alpha")
    return None


def _kept(table: Table, across: str, lines: list[str], about: str) -> Account | None:
    """The account, reduced to lines that hold a number; None where none does."""
    known = [name for name in lines if np.isfinite(table[name].astype(np.float64)).any()]
    if not known:
        return None
    return across, Table({name: table[name].astype(np.float64) for name in (across, *known)}), about


def _is_wide(column: NDArray[Any]) -> bool:
    """Whether the steps are factors, as those of alphas and of an annealing are."""
    return bool((column > 0).all() and column.max() > 100 * column.min() and column[0] != 1)


def _thinned(column: NDArray[Any]) -> NDArray[Any]:
    """At most so many points as are visible, the first and the last among them."""
    if len(column) <= _POINTS:
        return column
    return column[np.unique(np.linspace(0, len(column) - 1, _POINTS).astype(np.int64))]


# ----------------------------------------------------------------------------------------------------------- features


SHUFFLES = 3
_WEIGHTS_SHOWN, _LOSSES_SHOWN = 30, 12
_MOST_QUERIES, _MOST_DOCUMENTS = 400, 40_000  # that features are shuffled in: some seconds a ranker


@one_blas_thread()
def weights(comparison: Comparison) -> dict[str, Any]:
    r"""The weights of linear rankers, made comparable: :math:`w_f s_f / \lVert w s \rVert_2`.

    :math:`s_f` is the standard deviation of feature f within queries. The mean, smallest and largest value over folds
    are given for the features with the largest weight in any ranker.
    """
    # weights on features of different scales cannot be compared; within queries, because only that ranks
    spread = _spread_within(_sample(comparison)[0])
    found = {}
    for name, models in comparison.models.items():
        raw = [weights_of(model, comparison.queries) for model in models]
        scaled = [spread * w / (np.linalg.norm(spread * w) or 1.0) for w in raw if w is not None]
        if scaled:
            found[name] = np.array(scaled)
    names = feature_names(comparison.queries)
    largest = np.max([np.abs(each.mean(axis=0)) for each in found.values()], axis=0) if found else np.zeros(len(names))
    shown = np.argsort(-largest, kind="stable")[:_WEIGHTS_SHOWN]
    shown = shown[largest[shown] > 0]
    return {
        "features": [names[place] for place in shown],
        "left_out": len(names) - len(shown),
        "rankers": {
            name: {
                "mean": numbers(each.mean(axis=0)[shown], 3),
                "low": numbers(each.min(axis=0)[shown], 3),
                "high": numbers(each.max(axis=0)[shown], 3),
            }
            for name, each in found.items()
        },
    }


def importance(comparison: Comparison) -> dict[str, Any]:
    """The loss of the first measure when a feature is shuffled within queries, each fold with its own model."""
    sample, chosen = _sample(comparison)
    measure = comparison.results[comparison.baseline].measures[0]
    conventions = comparison.about["conventions"]
    names, seed = feature_names(sample), comparison.about["random_state"]
    fold_of = comparison.fold_of_query[chosen]
    found = {}
    for name, models in comparison.models.items():
        # models that were not kept cannot score the shuffled features
        if not all(is_kept(model) or comparison.about["rankers"][name]["kind"] == "fitted" for model in models):
            continue
        parts = [
            losses_by_query(model, part, measure, repeats=SHUFFLES, random_state=seed, **conventions)
            for model, part in _by_fold(models, sample, fold_of)
        ]
        table = FeatureImportance.of(names, np.hstack(parts), sample.weight, comparison.level, random_state=seed)
        shown = slice(0, _LOSSES_SHOWN)
        found[name] = {"features": table["feature"][shown].tolist()} | {
            column: numbers(table[column][shown], 4) for column in ("loss", "low", "high")
        }
    return {
        "measure": comparison.titles[0],
        "queries": len(sample),
        "of": len(comparison.queries),
        "features": len(names),
        "shuffles": SHUFFLES,
        "rankers": found,
    }


def _by_fold(models: list[Any], sample: Queries, fold_of: NDArray[np.int64]) -> Iterator[tuple[Any, Queries]]:
    """The model of each fold with the queries of the sample that this fold tested."""
    for fold, model in enumerate(models, start=1):
        if (fold_of == fold).any():
            yield model, sample[np.flatnonzero(fold_of == fold)]


def _sample(comparison: Comparison) -> tuple[Queries, NDArray[np.int64]]:
    """A random sample of test queries that is small enough to be scored often, and their indices."""
    queries = comparison.queries
    # shuffling scores every feature several times: a sample keeps a report within seconds
    order = np.random.default_rng(comparison.about["random_state"]).permutation(len(queries))
    fits = np.cumsum(queries.sizes[order]) <= _MOST_DOCUMENTS
    chosen = np.sort(order[: max(1, min(_MOST_QUERIES, int(fits.sum())))])
    return (queries, chosen) if len(chosen) == len(queries) else (queries[chosen], chosen)


def _spread_within(queries: Queries) -> Vector:
    """The standard deviation of every feature around the means of its queries."""
    total = np.zeros(queries.n_features)
    for query in queries:
        if len(query):
            X = np.asarray(query.X, dtype=np.float64)
            total += ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    return np.sqrt(total / max(queries.n_documents, 1))


# ---------------------------------------------------------------------------------------------------------------- drawn

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
