"""Simulated judged queries.

`lists` makes sets like those of a web search engine, `streams` makes streams whose best linear ranker is known.
"""
