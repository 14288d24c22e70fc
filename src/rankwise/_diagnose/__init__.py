"""Diagnosis of judged queries before training: what makes rankers fail silently.

`run` has :func:`diagnose`. `queries` looks at sizes, labels, ids, the order of rows and repeats, `features` at the
columns of X, `row_order` at whether the order of rows predicts them, `leaks` at how well each ranks alone,
`correlation` at pairs of them, `drift` at their values in other splits; `findings` holds the result.
"""
