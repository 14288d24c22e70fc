"""Batch solvers.

``objective`` is the sum of a loss over queries as a function of linear weights. ``descent`` (conjugate gradients,
L-BFGS), ``newton`` (truncated Newton) and ``bundle`` (cutting planes) minimise functions; ``anneal`` runs descents on
finer and finer smoothings. ``least_squares``, ``squared_pairs`` and ``working_sets`` are functions with a structure of
their own, and ``row_blocks`` and ``feature_scale`` read features without a second copy of X.
"""
