"""Compiled loops over ragged arrays: sorting, dot products, sums over pairs, soft ranks, hashes and text.

The kernels are independent of ranking models and measures. `machine` compiles and caches them, `parallel` runs them on
threads over fixed chunks of queries, `blas` keeps linear algebra on one thread. A kernel works on contiguous arrays
that its caller allocates, and never uses more than one thread itself. By convention ``rows`` of length 0 means that
query q owns the rows start[q] .. start[q+1]-1.
"""
