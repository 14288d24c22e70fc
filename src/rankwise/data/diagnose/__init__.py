"""Diagnosis of judged queries before training: what makes rankers fail silently.

`run` has :func:`diagnose`; `queries` looks at sizes, labels and repeats, `features` at the columns of X, and `findings`
holds the result.
"""
