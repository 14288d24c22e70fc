"""Batch solvers.

``objective`` is the sum of a loss over queries as a function of linear weights. ``descent`` (conjugate gradients,
L-BFGS), ``newton`` (truncated Newton, with the squared pair hinges) and ``bundle`` (cutting planes, under the
``penalties``) minimise functions; ``risk`` puts them together, and ``working_sets`` have a structure of their own.
"""
