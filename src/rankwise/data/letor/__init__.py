"""LETOR / SVMlight text: read as a whole or as a stream (`read`), and written (`write`).

`table` turns bytes into arrays on threads, by the kernels of :mod:`rankwise._kernels.text`; `problems` checks the
options and turns a byte that cannot be read into an error message.
"""
