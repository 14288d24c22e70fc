"""Solvers: how weights are found, in batch and online, from the facts that losses and measures declare.

``batch`` minimizes a function of the weights over a whole set of queries; ``online`` learns from one query at a time
and keeps a ledger of mistakes and losses.
"""
