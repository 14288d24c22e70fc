"""Rankers: scikit-learn estimators that learn from judged queries.

``_base`` has what all of them share, ``_parameters`` the parameters that they declare once, ``_fit_frame`` the checks
before a fit and what it freezes, ``_persist`` the file, ``_raw_tables`` what a ranker makes of a table, and
``_model_selection`` the choice among candidates. ``linear``, ``smooth``, ``boosting``, ``permutation``, ``fusion`` and
``online`` hold the algorithms, ``certificate`` what can be claimed about a fit. The registry finds every class below
:class:`~rankwise.rankers._base.Ranker` by its ``name``.
"""
