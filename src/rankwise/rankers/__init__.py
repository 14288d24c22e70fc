"""Rankers: scikit-learn estimators that learn from judged queries.

``_base`` has what all of them share, ``_parameters`` the parameters that they declare once, ``_inputs`` what they are
given, ``_record`` what a fit keeps about itself and its file, and ``_model_selection`` the choice among
candidates. ``linear``, ``smooth``, ``boosting``, ``permutation``, ``fusion`` and ``online`` hold the algorithms,
``certificate`` what can be claimed about a fit. The registry finds every class below
:class:`~rankwise.rankers._base.Ranker` by its ``name``.
"""
