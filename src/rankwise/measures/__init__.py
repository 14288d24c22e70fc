"""Measures as values: ``NDCG() @ 10``, ``AP(rel=2)``, or parsed from their spelling, ``parse("nDCG@10")``.

Every measure that the registry finds is a name of this package; a new one needs a file and no entry here.
"""

from rankwise._registry import lazy_names
from rankwise.measures.parse import parse as parse  # now: later, the module of that name would take its place
from rankwise.measures.parse import registered

__getattr__, __dir__ = lazy_names(
    __name__, {"_base": ["BinaryMeasure", "Measure"], "parse": ["parse", "registered"]}, registered
)
