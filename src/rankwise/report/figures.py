"""Curves and features of a comparison as plain values, and the figures, which ``templates/charts.js`` draws as SVG.

A figure is a dict: what is drawn (``"lines"``, ``"dots"`` with whiskers, ``"bars"`` or ``"heat"``), its height in
pixels, a sentence for readers who do not see it, two axes and the series. An axis has a title and what its places are:
numbers (``log``, ``reversed``, ``zero`` to include 0, ``percent``, or given ``ticks`` and ``range``), or ``names``, one
at every whole number, with a line break for a second line. Colors are the numbers of the rankers; the page has a
color for each number in either theme. Names of untrusted origin stay as they are: the page only ever sets them as
text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._tables import Table
from rankwise.analysis.importance import FeatureImportance, losses_by_query, weights_of
from rankwise.errors import RankwiseError
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.evaluation.comparison.store import is_kept
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures._base import Vector
from rankwise.queries.checks import names_or_columns
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.report.attempts import attempt
from rankwise.report.compact import numbers

Figure = dict[str, Any]
Numbers = Sequence[float | None]

_COLORS = 8  # that the themes have
_DASHES = 4
_LINE = 19  # pixels of one name beside an axis

CUTOFFS = tuple(range(1, 21))
_FAMILIES = ("nDCG", "P")
_POINTS = 150  # of a curve; more would not be seen
_MEASURED = ("train", "validation")


# ------------------------------------------------------------------------------------------------- what is drawn


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
        for account in _ACCOUNTS:
            known = [(fold, one) for fold, model in enumerate(models, start=1) if (one := account(model)) is not None]
            if not known:
                continue
            # one kind of account for all folds: a ranker may keep its start in some fold, and has no rounds there
            across, _, about = known[0][1]
            tables = {fold: table for fold, (_, table, _) in known}
            lines = list(dict.fromkeys(line for table in tables.values() for line in table.columns[1:]))
            folds = [
                {
                    "fold": fold,
                    "across": numbers(_thin(table[table.columns[0]])),
                    "lines": {line: numbers(_thin(table[line])) for line in table.columns[1:]},
                }
                for fold, table in tables.items()
            ]
            found.append(
                {
                    "ranker": name,
                    "across": across,
                    "logarithmic": all(_is_wide(table[table.columns[0]]) for table in tables.values()),
                    "about": about,
                    "lines": lines,
                    "folds": folds,
                    "without": [fold for fold in range(1, len(models) + 1) if fold not in tables],
                }
            )
            break
    return found


Account = tuple[str, Table, str]


def _rounds(model: Any) -> Account | None:
    """(name of the x-axis, table of it and the lines, explanation) of the rounds of a fit."""
    history = getattr(model, "history_", None)
    if not isinstance(history, Table) or not len(history):
        return None
    drawn = [name for name in _MEASURED if name in history] or list(getattr(history, "drawn", ()))
    return _keep(history, history.columns[0], drawn, "")


def _stream(model: Any) -> Account | None:
    """The same of a stream that was learned from."""
    ledger = getattr(model, "ledger_", None)
    if ledger is None or not len(ledger.curve.points):
        return None
    table = Table({"round": ledger.curve.rounds, "so far": ledger.curve.mean})
    about = "mean over the rounds so far, each query ranked before it was learned from"
    return _keep(table, "round", ["so far"], about)


def _alphas(model: Any) -> Account | None:
    """The same of the alphas that were tried."""
    path = getattr(model, "path_", None)
    if not isinstance(path, Table) or len(path) < 2:
        return None
    return _keep(path, path.columns[0], list(path.columns[1:2]), "validation measure of each alpha")


_ACCOUNTS = (_rounds, _stream, _alphas)  # the first that any fold has is drawn


def _keep(table: Table, across: str, lines: list[str], about: str) -> Account | None:
    """The account, reduced to lines that hold a number; None where none does."""
    known = [name for name in lines if np.isfinite(table[name].astype(np.float64)).any()]
    if not known:
        return None
    return across, Table({name: table[name].astype(np.float64) for name in (across, *known)}), about


def _is_wide(column: NDArray[Any]) -> bool:
    """Whether the steps are factors, as those of alphas and of an annealing are."""
    return bool((column > 0).all() and column.max() > 100 * column.min() and column[0] != 1)


def _thin(column: NDArray[Any]) -> NDArray[Any]:
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
    names = names_or_columns(comparison.queries)
    largest = np.max([np.abs(each.mean(axis=0)) for each in found.values()], axis=0) if found else np.zeros(len(names))
    shown = np.argsort(-largest, kind="stable")[:_WEIGHTS_SHOWN]
    shown = shown[largest[shown] > 0]
    return {
        "features": [names[place] for place in shown],
        "left_out": len(names) - len(shown),
        "rankers": {
            name: {
                "mean": numbers(each.mean(axis=0)[shown]),
                "low": numbers(each.min(axis=0)[shown]),
                "high": numbers(each.max(axis=0)[shown]),
            }
            for name, each in found.items()
        },
    }


def importance(comparison: Comparison) -> dict[str, Any]:
    """The loss of the first measure when a feature is shuffled within queries, each fold with its own model."""
    sample, chosen = _sample(comparison)
    measure = comparison.results[comparison.baseline].measures[0]
    conventions = comparison.about["conventions"]
    names, seed = names_or_columns(sample), comparison.about["random_state"]
    fold_of = comparison.fold_of_query[chosen]
    found = {}
    for name, models in comparison.models.items():
        # models that were not kept cannot score the shuffled features
        if not all(is_kept(model) or comparison.about["rankers"][name]["kind"] == "fitted" for model in models):
            continue
        # nor can those that make features of a table themselves, or know them by place and have fewer in some fold
        if any(model is None or _width(model) not in (None, sample.n_features) for model in models):
            continue
        parts = [
            losses_by_query(model, part, measure, repeats=SHUFFLES, random_state=seed, **conventions)
            for model, part in _by_fold(models, sample, fold_of)
        ]
        table = FeatureImportance.of(names, np.hstack(parts), sample.weight, comparison.level, random_state=seed)
        shown = slice(0, _LOSSES_SHOWN)
        found[name] = {"features": table["feature"][shown].tolist()} | {
            column: numbers(table[column][shown]) for column in ("loss", "low", "high")
        }
    return {
        "measure": comparison.titles[0],
        "queries": len(sample),
        "of": len(comparison.queries),
        "features": len(names),
        "shuffles": SHUFFLES,
        "rankers": found,
    }


def _width(model: Any) -> int | None:
    """The number of features that a model of another package takes; None where it does not say."""
    if isinstance(model, Ranker):
        return None
    model = getattr(model, "model_", model)  # inside of a wrapper
    count = getattr(model, "num_feature", None)  # LightGBM's
    return count() if callable(count) else getattr(model, "n_features_in_", None)


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


# ------------------------------------------------------------------------------------------------- how it is drawn


def figures(found: Mapping[str, Any]) -> tuple[dict[str, Figure], dict[str, str]]:
    """Make all figures of a report.

    Parameters
    ----------
    found : dict
        What :func:`rankwise.report.collect.collect` returned.

    Returns
    -------
    figures : dict of str to dict
        The figures by the name of their place in the page; empty ones are left out.
    failed : dict of str to str
        For each figure that raised an error, a sentence that stands in its place.
    """
    rankers = found["rankers"]
    others = [name for name in rankers if name != found["baseline"]]
    slices = found["slices"]["slices"] if found["slices"] else []
    losses = found["importance"]["rankers"].items()
    several: dict[str, list[Callable[[], Figure]]] = {
        "cutoffs": [partial(cutoff_figure, one, rankers) for one in found["cutoffs"]],
        "history": [partial(history_figure, one) for one in found["histories"]],
        "groups": [partial(group_figure, one, rankers) for one in found["groups"]],
        "importance": [partial(importance_figure, name, one, rankers.index(name)) for name, one in losses],
        "slice": [partial(slice_figure, one, found["measures"][0], rankers, others) for one in slices],
    }
    made = {f"{name}-{number}": make for name, figures in several.items() for number, make in enumerate(figures)}
    made["weights"] = partial(weight_figure, found["weights"])
    made["label-pairs"] = partial(label_pair_figure, found["label_pairs"], rankers)
    drawn, failed = {}, {}
    nothing: Figure = {}
    for name, make in made.items():
        figure, said = attempt(make, f"the figure {name!r}", nothing)
        if said:
            failed[name] = said
        elif figure.get("series") or figure.get("rows"):
            drawn[name] = figure
    return drawn, failed


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
    """The training history of one ranker: one color per line, the folds on top of each other."""
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
                "color": place,
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
    return _dot_groups(found, rankers, "share", "share") | {
        "label": "share of inverted pairs of documents by their labels, with intervals",
        "x": {"title": "labels of the pair", "names": found["pairs"]},
        "y": {"title": "share of inverted pairs", "percent": True, "zero": True},
        "where": "labels",
    }


def group_figure(found: Mapping[str, Any], rankers: list[str]) -> Figure:
    """Mean differences to the baseline: a group of dots per group of queries."""
    return _dot_groups(found, rankers, "mean", "difference") | {
        "label": f"{found['measure']} minus that of the baseline by {found['by']}, with intervals",
        "x": {"title": found["by"], "names": found["groups"]},
        "y": {"title": f"{found['measure']}, minus the baseline", "zero": True},
        "where": found["by"],
    }


def _dot_groups(found: Mapping[str, Any], rankers: list[str], column: str, value: str) -> Figure:
    """Dots with whiskers of every ranker; ``value`` is what they are called."""
    ends = {name: [one[key] for key in (column, "low", "high")] for name, one in found["rankers"].items()}
    series = [_dodge(name, rankers, *numbers) | {"few": found.get("few")} for name, numbers in ends.items()]
    return {"draw": "dots", "height": 320, "value": value, "series": series}


def slice_figure(found: Mapping[str, Any], measure: str, rankers: list[str], others: list[str]) -> Figure:
    """Paired differences to the baseline in the first measure: a line of dots per group of a slice."""
    rows = {(row["group"], row["ranker"]): row for row in found["rows"] if row["measure"] == measure}
    few = [group for (group, _), row in rows.items() if row["few"]]
    groups = list(dict.fromkeys(group for group, _ in rows))
    series = []
    for name in others:
        mine = [rows[group, name] for group in groups]
        ends = [[row[key] for row in mine] for key in ("difference", "difference_low", "difference_high")]
        dots = _dodge(name, rankers, *ends)
        series.append(dots | {"x": dots["y"], "y": dots["x"], "few": [group in few for group in groups]})
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


def _dodge(name: str, rankers: list[str], values: Numbers, low: Numbers, high: Numbers) -> dict[str, Any]:
    """Dots with whiskers at whole numbers, each ranker a little beside the others."""
    number = rankers.index(name)
    # rankers stand beside each other, closer the more there are
    shift = (number - (len(rankers) - 1) / 2) * min(0.12, 0.7 / max(len(rankers), 1))
    places = [round(place + shift, 3) for place in range(len(values))]
    return {"name": name, **_look(number), "x": places, "y": values, "low": low, "high": high}


def _look(number: int) -> dict[str, int]:
    """Color, dashes and shape of a ranker; after the last color the dashes and shapes change."""
    return {"color": number, "dash": number // _COLORS % _DASHES, "shape": number // _COLORS}
