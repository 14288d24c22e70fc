"""Batch solvers.

``descent`` (conjugate gradients, L-BFGS), ``newton`` (truncated Newton, with the squared pair hinges) and ``bundle``
(cutting planes, under the ``penalties``) minimize functions, such as the sum of a loss over queries
(:class:`rankwise.losses.compute.LossOverLists`); ``risk`` puts them together, and ``working_sets`` have a structure of
their own.
"""
