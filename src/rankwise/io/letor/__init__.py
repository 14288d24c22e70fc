"""LETOR / SVMlight text: read as a whole (`read`) or block by block (`stream`), and written (`write`).

`table` turns bytes into arrays on threads, by the kernels of :mod:`rankwise._kernels.text`; `problems` checks the
options and turns a byte that cannot be read into an error message.
"""
