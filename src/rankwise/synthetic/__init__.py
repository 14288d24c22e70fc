"""Simulated judged queries.

`lists` makes sets like those of a web search engine, `streams` makes streams whose best linear ranker is known.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
