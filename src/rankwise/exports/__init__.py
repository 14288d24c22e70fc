"""Exports of rankers to search engines, databases and programs, and models of other tools read as rankers.

:func:`export` writes a fitted ranker for one of the :func:`targets`. A ranker is first reduced to a formula
(``formula``): a weighted sum, a sum of steps or trees, or a fusion of scores that are normalized within a query. A
target, one module each, writes that formula as files and computes the scores of these files exactly as its engine does;
:class:`Parity` compares them with the scores of the ranker.
:func:`read_model` reads model files of RankLib, SVM-rank and liblinear.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
