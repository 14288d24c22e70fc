"""Measures as values: ``NDCG() @ 10``, ``AP(rel=2)``, or parsed from their spelling, ``parse("nDCG@10")``.

Every measure that the registry finds is a name of this package, so a new measure is one file and needs no entry here.
:mod:`rankwise.measures._base` holds the base classes, :mod:`rankwise.measures.compute` runs measures over many queries,
:mod:`rankwise.measures.ndcg` has gains and discounts, and :mod:`rankwise.measures.conventions` the conventions of
other tools.
"""

from rankwise._lazy import lazy_names
from rankwise.measures._base import registered

__getattr__, __dir__ = lazy_names(__name__, registered)
