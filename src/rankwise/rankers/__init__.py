"""Rankers: one file an algorithm, all of them scikit-learn estimators on judged lists."""
