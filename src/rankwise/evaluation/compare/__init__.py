"""Comparisons of rankers over folds: fitted, selected on validation data, tested once, resumable."""
