"""Hybrid search: scores of several sub-queries, normalized within each query and combined by learned weights."""
