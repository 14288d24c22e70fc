"""Compiled loops over ragged arrays: sorting, dot products, sums over pairs, soft ranks, hashes and text.

The kernels are independent of ranking models and measures. `jit` compiles and caches them, `waiting` says so to a user
who waits, `drive` runs them on threads over fixed chunks of queries. A kernel works on contiguous arrays that its
caller allocates, and never uses more than one thread itself. By convention ``rows`` of length 0 means that query q owns
the rows start[q] .. start[q+1]-1.
"""

from rankwise._kernels import waiting as waiting  # listens from the first kernel on
