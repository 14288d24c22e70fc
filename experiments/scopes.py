"""What every guaranteed number is about: the table of guarantees.md, ``python3 run.py python -m experiments.scopes``.

The rows come from the objects themselves: from the bounds that the functions of :mod:`rankwise.guarantees` return for
the examples below, and from the classes and modules that declare a scope. A function or class that is not in the table
fails a test.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import rankwise.guarantees as guarantees
from experiments.pages import DOCS, markdown_table, write_block
from rankwise.guarantees._bound import Scope

PAGE = DOCS / "guarantees.md"

_BALL = {"W": 1.0, "radius": 1.0, "m": 10, "n": 10_000, "delta": 0.05}
_LEARNED = {"G": 2.0, "W": 1.0, "radius": 1.0, "n": 100}
_SPARSE = {"G": 1.0, "W1": 1.0, "entry": 1.0, "d": 5, "m": 10, "n": 100}
_RUN = {"F": 1.0, "norm_u": 2.0, "radius": 1.0}

# function of rankwise.guarantees -> arguments
EXAMPLES: dict[str, dict[str, Any]] = {
    "adarank_certificate": {"phi": [0.6, 0.5], "alpha": [0.5, 0.4], "delta": [0.2, 0.1]},
    "adarank_logistic_certificate": {"phi": [0.6], "alpha": [0.5], "delta": [0.2], "mass": [0.5]},
    "ogd_smooth_small_step": {"L_star": 0.1, "H": 1.0, "W": 1.0, "n": 100},
    "fixed_step": _RUN | {"kappa": 2.0, "eta": 0.1},
    "l1_ball": _SPARSE | {"risk": 0.1, "b": 1.0, "delta": 0.05},
    "l1_erm": _SPARSE | {"b": 1.0, "delta": 0.05},
    "l2_ball": _BALL | {"risk": 0.1, "L2": 1.0, "b": 1.0},
    "linf_ball": _BALL | {"risk": 0.1, "G": 1.0, "b": 1.0},
    "linf_erm": _BALL | {"G": 1.0, "b": 1.0},
    "ogd_average": _LEARNED,
    "ogd_smooth": {"L_star": 0.1, "H": 1.0, "W": 1.0, "n": 100},
    "online_to_batch": {"L": 3.0, "n": 10, "delta": 0.05},
    "rerm": _LEARNED | {"lambda_": 0.1, "gap": 0.01},
    "rerm_best": _LEARNED | {"gap": 0.01},
    "separable_loss": {"gamma": 0.5, "radius": 1.0, "V": 1.0, "eta": 1.0},
    "separable_mistakes": {"gamma": 0.5, "radius": 1.0, "V": 1.0, "smallest": 0.1, "eta": 1.0},
    "separable_worst_pair": {"gamma": 0.5, "radius": 1.0},
    "slam_mistakes": _RUN | {"V": 1.0, "smallest": 0.1, "eta": 1.0},
    "smooth_ball": _BALL | {"risk": 0.1, "H1": 1.0, "B": 1.0},
    "smooth_erm": _BALL | {"L_star": 0.1, "H1": 1.0, "B": 1.0},
    "smoothing_error": {"scores": [0.3, 0.1], "gains": [1.0, 0.0], "sigma": 0.1},
    "surrogate_above_loss": {"surrogate": [0.5, 0.2], "losses": [0.4, 0.1]},
    "quarter_step": _RUN | {"kappa": 2.0, "eta": 0.125},
    "rerm_in_ball": _LEARNED,
    "slam_loss": _RUN | {"V": 1.0, "eta": 1.0},
    "top_k_regret": _LEARNED | {"m": 5, "k": 2, "labels_per_term": 2, "explore": 0.1, "eta": 0.01},
    "type_two_below_type_one": {"type_one": [0.4], "margin": [1.5], "achieved": [1.0]},
    "worst_pair_mistakes": _RUN,
}

# module, class in it (or "" for the module itself) -> what it prints; each declares ``SCOPES`` or ``scope``
DECLARED: dict[tuple[str, str], str] = {
    ("guarantees.holdout.sequences", "RunningMean"): "running means: ledgers and certificates of the service",
    ("guarantees.holdout.intervals", "Plan"): "plans: `queries_needed`, `rankwise certify --half-width`",
    ("guarantees.cutoff", "Cutoff"): "cut-offs: `rw.cutoff`, `rankwise cutoff`",
    ("evaluation.comparison.comparison", "Comparison"): "comparisons, the report, the demo",
    ("evaluation.gate.gate", "Gate"): "release gates: `Gate`, `rankwise gate`",
    ("evaluation.evaluation", "Evaluation"): "intervals of `evaluate` and `compare`",
    ("clicks.propensities", "Propensities"): "bounds of propensities",
    ("clicks.click_value", "ClickValue"): "values and gains from clicks",
    ("clicks.learning", "SafeRanker"): "`clicks.safe_ranker`",
    ("clicks.preferences", "Preference"): "interleaving and A/B tests from logs",
    ("serve.experiments", ""): "experiments of the service",
}


def rows() -> Iterator[tuple[str, Scope]]:
    """(number, scope) of everything that is guaranteed, in the order of the table."""
    yield "hold-out bounds and the headline: `mean_interval`, `difference_interval`", _interval().scope
    yield "confidence sequences: `ConfidenceSequence`", _sequence().scope
    by_scope: dict[Scope, list[str]] = {}
    for name, arguments in EXAMPLES.items():
        by_scope.setdefault(getattr(guarantees, name)(**arguments).scope, []).append(f"`{name}`")
    for scope, names in by_scope.items():
        yield ", ".join(names), scope
    from rankwise.rankers.certificate.objective import gap_bound

    gap = gap_bound(1.0, 0.1).scope
    assert gap is not None
    yield "gap to the minimum", gap
    for (module, name), what in DECLARED.items():
        home = import_module(f"rankwise.{module}")
        found = getattr(home, name) if name else home
        scopes = getattr(found, "SCOPES", None)
        for kind, scope in {"": found.scope}.items() if scopes is None else scopes.items():
            yield f"{what}{': ' if kind else ''}{kind.replace('_', ' ')}", scope


def _interval() -> guarantees.Interval:
    return guarantees.mean_interval([0.2, 0.7, 0.4])


def _sequence() -> guarantees.Interval:
    sequence = guarantees.ConfidenceSequence()
    sequence.update([0.2, 0.7])
    return sequence.interval()


def table() -> str:
    """The table of the page."""
    cells = [(what, one.population, one.unit, one.read, one.choices) for what, one in rows()]
    return markdown_table(["number", "population", "unit", "may be read", "still holds after"], cells)


if __name__ == "__main__":
    write_block(PAGE, "scopes", table())
