"""What is guaranteed, in numbers: bounds with every constant shown, and certificates that collect them.

Numbers in, numbers out: radii, norms, weights and cumulative losses go in, a :class:`Bound` comes out. No model is
known here. :mod:`~rankwise.guarantees.bounds` has the theorems about training, online runs and future queries, and the
adversary that shows which of them cannot be improved; :mod:`~rankwise.guarantees.holdout` has intervals from held-out
queries and the number of queries that a given width takes; :mod:`~rankwise.guarantees.certificate` puts bounds in one
table with a headline.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
