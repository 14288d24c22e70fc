"""Passes: a function of every chunk of a data set, on threads, processes or a cluster, folded in the order of chunks."""
