"""Passes: a function of every chunk of a data set, on threads, processes or a cluster, in the order of chunks."""
