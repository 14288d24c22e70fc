"""Analyses of rankings: groups of queries, pairs of labels, features, and rounds of training."""
