"""Comparisons of rankers over folds: trained, selected on validation data, tested once, resumable.

The parts, in the order in which a comparison uses them: ``rankers`` (what takes part), ``grids`` (settings to try),
``folds`` (data), ``cells`` (one ranker on one fold), ``keys`` and ``store`` (finished cells on disk), ``run`` (all
cells, in parallel) and ``result`` (the comparison). ``foreign`` adapts learners of other packages. ``select`` is a
small relative: rankers x grids x folds without the rest.
"""
