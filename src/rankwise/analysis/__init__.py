"""Analyses of rankings: groups of queries, pairs of labels, features, and rounds of training."""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
