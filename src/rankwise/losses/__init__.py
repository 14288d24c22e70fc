"""Surrogate losses with their facts: what they bound, how steep and how curved they are.

Every loss that the registry finds is a name of this package; a new one needs a file and no entry here.
"""

from typing import Any

from rankwise._registry import lazy_names


def _registered() -> Any:
    from rankwise.losses._base import registered

    return registered()


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_base": ["Loss", "SmoothedMeasure", "registered"],
        "permutation": ["TypeOne", "TypeTwo", "best_imperfect", "permutation_score", "worst_perfect"],
    },
    _registered,
)
