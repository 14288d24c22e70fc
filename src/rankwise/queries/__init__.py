"""Judged queries: the container `Queries`, data sets in parts, and what every part of the package does with them.

:mod:`rankwise.queries.queries` holds the container, :mod:`rankwise.queries.parts` the data sets that are larger than
memory, and :mod:`rankwise.queries.passes` the passes over both. `checks` validates what comes in, `grouping` finds the
rows of each query, `folds` and `concat` split and join, `scaling` transforms features, `stored` is the file format, and
`fingerprints` and `overlap` tell which queries a ranker has seen.
"""
