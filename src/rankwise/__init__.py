"""Rankers trained directly for the measure that people report, with guarantees in numbers.

Everything public is a name of this module. Names are imported when they are first used, so that ``import rankwise``
costs nothing; ``__init__.pyi`` shows the same names to editors and type checkers.
"""

import importlib
from typing import Any

from rankwise._errors import DataError, FileFormatError, MeasureError, MissingExtraError, RankwiseError
from rankwise._version import __version__

__all__ = [
    "BinaryPerceptron",
    "DataError",
    "Evaluation",
    "FileFormatError",
    "Fold",
    "Ledger",
    "ListNet",
    "MaxPairPerceptron",
    "MeasureError",
    "MissingExtraError",
    "OnlineRanker",
    "Queries",
    "Query",
    "RankwiseError",
    "RidgeRanker",
    "SLAMPerceptron",
    "Scaler",
    "Selection",
    "SmoothRank",
    "Texts",
    "Whole",
    "World",
    "__version__",
    "by_group",
    "correct",
    "diagnose",
    "drifting_world",
    "evaluate",
    "from_frame",
    "from_trec",
    "guarantees",
    "iter_letor",
    "kfold",
    "label_pairs",
    "load",
    "losses",
    "make_lists",
    "measures",
    "noisy_world",
    "paired_test",
    "read_folds",
    "read_letor",
    "read_qrels",
    "read_run",
    "read_table",
    "select",
    "separable_world",
    "significance",
    "split",
    "to_frame",
    "write_letor",
    "write_qrels",
    "write_run",
    "write_table",
]

# module -> the public names that live in it
_HOMES = {
    "_api": ["load"],
    "data.diagnose": ["diagnose"],
    "data.folds": ["Fold", "kfold", "read_folds", "split"],
    "data.frames": ["from_frame", "read_table", "to_frame", "write_table"],
    "data.letor": ["iter_letor", "read_letor"],
    "data.letor_write": ["write_letor"],
    "data.queries": ["Queries", "Query"],
    "data.scaling": ["Scaler"],
    "data.synthetic": ["make_lists"],
    "data.texts": ["Texts"],
    "data.trec": ["from_trec", "read_qrels", "read_run", "write_qrels", "write_run"],
    "data.whole": ["Whole"],
    "data.worlds": ["World", "drifting_world", "noisy_world", "separable_world"],
    "evaluation.analyse": ["by_group", "label_pairs"],
    "evaluation.evaluate": ["evaluate"],
    "evaluation.paired": ["paired_test"],
    "evaluation.result": ["Evaluation"],
    "evaluation.select": ["Selection", "select"],
    "evaluation.significance": ["correct", "significance"],
    "rankers.binary_perceptron": ["BinaryPerceptron"],
    "rankers.listnet": ["ListNet"],
    "rankers.online": ["OnlineRanker"],
    "rankers.perceptron": ["MaxPairPerceptron", "SLAMPerceptron"],
    "rankers.ridge": ["RidgeRanker"],
    "rankers.smoothrank": ["SmoothRank"],
    "solvers.ledger": ["Ledger"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_SUBMODULES = ["guarantees", "losses", "measures"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
