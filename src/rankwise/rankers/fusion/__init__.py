"""Hybrid search: scores of several sub-queries, normalised within each query and combined by learned weights."""
