"""Rankers trained directly for the measure that people report, with guarantees in numbers.

Everything public is a name of this module. Names are imported when they are first used, so that ``import rankwise``
costs nothing; ``__init__.pyi`` shows the same names to editors and type checkers.
"""

import importlib
from typing import Any

from rankwise._errors import DataError, DataWarning, FileFormatError, MeasureError, MissingExtraError, RankwiseError
from rankwise._version import __version__

__all__ = [
    "AdaRank",
    "BinaryPerceptron",
    "Comparison",
    "DataError",
    "DataWarning",
    "DocumentTransformer",
    "Evaluation",
    "Explanation",
    "FRank",
    "FeatureBuilder",
    "FeatureImportance",
    "FileFormatError",
    "Fold",
    "HybridRanker",
    "Ledger",
    "LinearModel",
    "ListNet",
    "LossRanker",
    "MaxPairPerceptron",
    "MaxPairRanker",
    "MeasureError",
    "MissingExtraError",
    "NothingLearnedWarning",
    "OnlineRanker",
    "PermuRank",
    "Queries",
    "Query",
    "QueryExplanation",
    "RankBoost",
    "RankSVM",
    "RankwiseError",
    "RidgeRanker",
    "SLAMPerceptron",
    "SLAMRanker",
    "SVMMap",
    "Scaler",
    "Scorer",
    "Selection",
    "SmoothRank",
    "Stream",
    "StringColumn",
    "StructuredNDCG",
    "TwoStage",
    "Unsliced",
    "__version__",
    "by_group",
    "compare",
    "correct",
    "diagnose",
    "drifting_stream",
    "evaluate",
    "explain",
    "export",
    "exports",
    "from_frame",
    "from_trec",
    "gain_by_group",
    "guarantees",
    "iter_letor",
    "kfold",
    "label_pair_errors",
    "label_pairs",
    "labels",
    "learning_curves",
    "load",
    "losses",
    "make_hybrid",
    "make_lists",
    "measures",
    "noisy_stream",
    "paired_test",
    "permutation_importance",
    "queries_by_size",
    "read_columns",
    "read_folds",
    "read_letor",
    "read_model",
    "read_qrels",
    "read_run",
    "read_table",
    "select",
    "separable_stream",
    "significance",
    "split",
    "to_frame",
    "write_letor",
    "write_qrels",
    "write_report",
    "write_run",
    "write_table",
]

# module -> the public names that live in it
_HOMES = {
    "_api": ["compare", "load"],
    "data.diagnose.run": ["diagnose"],
    "data.document_transformer": ["DocumentTransformer"],
    "data.folds": ["Fold", "Unsliced", "kfold", "read_folds", "split"],
    "data.tabular.frames": ["from_frame", "read_table", "to_frame", "write_table"],
    "data.labels": ["labels"],
    "data.letor.read": ["read_letor"],
    "data.letor.stream": ["iter_letor"],
    "data.letor.write": ["write_letor"],
    "data.queries": ["Queries"],
    "data.selection": ["Query"],
    "data.scaling": ["Scaler"],
    "data.synthetic.hybrid": ["make_hybrid"],
    "data.synthetic.lists": ["make_lists"],
    "data.string_column": ["StringColumn"],
    "data.trec": ["from_trec", "read_qrels", "read_run", "write_qrels", "write_run"],
    "data.synthetic.streams": ["Stream", "drifting_stream", "noisy_stream", "separable_stream"],
    "evaluation.analysis.explanation": ["Explanation", "QueryExplanation", "explain"],
    "evaluation.analysis.groups": ["by_group", "gain_by_group", "queries_by_size"],
    "evaluation.compare.result": ["Comparison"],
    "evaluation.evaluate": ["Evaluation", "evaluate"],
    "evaluation.analysis.importance": ["FeatureImportance", "permutation_importance"],
    "evaluation.analysis.label_pairs": ["label_pair_errors", "label_pairs"],
    "evaluation.analysis.learning_curves": ["learning_curves"],
    "evaluation.statistics.paired": ["paired_test"],
    "evaluation.compare.select": ["Selection", "select"],
    "evaluation.statistics.significance": ["correct", "significance"],
    "exports.imports": ["read_model"],
    "exports.write": ["export"],
    "features.builder": ["FeatureBuilder"],
    "features.table": ["read_columns"],
    "rankers._fit_frame": ["NothingLearnedWarning"],
    "rankers.boosting.adarank": ["AdaRank"],
    "rankers.online.binary_perceptron": ["BinaryPerceptron"],
    "rankers.boosting.frank": ["FRank"],
    "rankers.fusion.hybrid_ranker": ["HybridRanker"],
    "rankers.linear.linear_model": ["LinearModel"],
    "rankers.linear.listnet": ["ListNet"],
    "rankers.online.online_ranker": ["OnlineRanker"],
    "rankers.online.perceptron": ["MaxPairPerceptron", "SLAMPerceptron"],
    "rankers.permutation.permurank": ["PermuRank"],
    "rankers.boosting.steps": ["RankBoost"],
    "rankers.linear.loss_ranker": ["LossRanker"],
    "rankers.linear.presets": ["MaxPairRanker", "RankSVM", "SLAMRanker", "SVMMap", "StructuredNDCG"],
    "rankers.linear.ridge": ["RidgeRanker"],
    "rankers.scorer": ["Scorer"],
    "rankers.smooth.smoothrank": ["SmoothRank"],
    "rankers.permutation.two_stage": ["TwoStage"],
    "report.page": ["write_report"],
    "solvers.online.ledger": ["Ledger"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_SUBMODULES = ["exports", "guarantees", "losses", "measures"]


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
