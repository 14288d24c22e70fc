"""The origin of a report as plain values: data, settings, versions, seeds, and the call that reproduces it."""

import inspect
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rankwise._errors import RankwiseError
from rankwise.data.diagnose.run import diagnose
from rankwise.evaluation.compare.foreign import LambdaRank
from rankwise.evaluation.compare.keys import plain
from rankwise.evaluation.compare.result import Comparison
from rankwise.evaluation.compare.select import grid_for
from rankwise.report.compact import rounded

_FEATURES_SHOWN = 300


def data_facts(comparison: Comparison) -> dict[str, Any]:
    """The diagnosis of the first fold: its training part against its test part, or all queries where nothing was
    trained.
    """
    first = comparison.first
    found = diagnose(first.test) if first.train is None else diagnose({"train": first.train}, {"test": first.test})
    rows = [
        {name: rounded(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        for row in found.table()
    ]
    return {
        "part": "all queries" if first.train is None else "training part of fold 1",
        "about": repr(found).split("\n\n")[0].splitlines(),
        "findings": [
            {"severity": one.severity, "what": one.what, "where": one.places(), "advice": one.advice}
            for one in found.findings
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


_USUAL = {"choose_by": None, "level": 0.95, "test": "randomisation", "correction": "holm", "random_state": 0}
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
        *(f"    {name!r}: {_ranker(one)}" for name, one in about["rankers"].items()),
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
    learned = {name: one for name, one in rankers.items() if one["kind"] == "learned"}
    return {name: one["grid"] for name, one in learned.items() if one["grid"] != _declared_grid(one)}


def _declared_grid(about: Mapping[str, Any]) -> dict[str, Any]:
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
    homes = (one["class"].rpartition(".") for one in rankers if "class" in one and one["kind"] == "learned")
    return sorted({f"from {module} import {kind}" for module, _, kind in homes if not module.startswith("rankwise.")})


def _defaults(module: str, kind: str) -> dict[str, Any]:
    """The default parameters of a class, as plain values."""
    try:
        parameters = inspect.signature(getattr(import_module(module), kind)).parameters.values()
        return {one.name: plain(one.default, one.name) for one in parameters if one.default is not one.empty}
    except (ImportError, AttributeError, ValueError, TypeError, RankwiseError):
        return {}
