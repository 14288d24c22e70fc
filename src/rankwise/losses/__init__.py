"""Surrogate losses with their facts: what they bound, their Lipschitz constants and their smoothness.

Every loss that the registry finds is a name of this package, so a new loss is one file and needs no entry here.
:mod:`rankwise.losses._base` holds the base classes and the loop over many queries. SLAM, MaxPair, the pairwise and the
structured hinges are convex upper bounds; ListNet and PairLogistic are convex and smooth; the smoothed measures are 1 -
A for a smooth approximation A of a measure. :mod:`rankwise.losses.permutation` has the type one and type two losses.
"""

from typing import Any

from rankwise._lazy import lazy_names


def _registered() -> Any:
    from rankwise.losses._base import registered

    return registered()


__getattr__, __dir__ = lazy_names(__name__, _registered)
