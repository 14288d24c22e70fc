"""Judged queries: the `Queries` container, its files, its splits, its scaling and its diagnosis.

:mod:`rankwise.data.queries` holds the container. `letor`, `tabular`, `trec` and `stored` read and write files,
`folds` and `concat` split and join, `scaling` transforms features, `diagnose` looks for mistakes in the data,
`fingerprints` remembers which queries a ranker has seen, and `synthetic` simulates queries.
"""
