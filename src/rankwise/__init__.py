"""Rankers trained directly for the measure that people report, with guarantees in numbers.

What the first hour needs is a name of this module; the rest is in its submodules: ``io``, ``evaluation``, ``analysis``,
``measures``, ``losses``, ``guarantees``, ``clicks``, ``exports``, ``features``, ``synthetic``, ``sklearn``,
``boosting``, ``torch`` and ``errors``. Names are imported when they are first used: ``import rankwise`` costs nothing.
"""

from rankwise._lazy import lazy_names
from rankwise._version import __version__ as __version__

__getattr__, __dir__ = lazy_names(__name__)
