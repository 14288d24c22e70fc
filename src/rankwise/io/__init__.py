"""Readers and writers of judged queries: LETOR text, tables, TREC files, logs and results of other tools, and parts.

The readers of the first hour, such as ``read_letor`` and ``read_table``, are names of :mod:`rankwise`; the others are
names of this module.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
