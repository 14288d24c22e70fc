"""Evaluation of rankings: measures with intervals, paired tests, comparisons over folds, and analyses of errors.

:mod:`~rankwise.evaluation.evaluation` measures scores, :mod:`~rankwise.evaluation.statistics` has the intervals and
tests, :mod:`~rankwise.evaluation.comparison` trains and compares rankers over folds, and
:mod:`~rankwise.analysis` shows on which queries, labels and features rankers differ.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
