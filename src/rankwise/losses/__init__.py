"""Surrogate losses with their facts: what they bound, how steep and how curved they are."""

from typing import TYPE_CHECKING

from rankwise._registry import lazy_names

if TYPE_CHECKING:
    from rankwise.losses._base import Loss, SmoothedMeasure, registered
    from rankwise.losses.listnet import ListNet
    from rankwise.losses.max_pair import MaxPair
    from rankwise.losses.pairwise_hinge import PairHinge
    from rankwise.losses.permutation import TypeOne, TypeTwo, best_imperfect, permutation_score, worst_perfect
    from rankwise.losses.slam import SLAM
    from rankwise.losses.smooth_ap import SmoothAP
    from rankwise.losses.smooth_ndcg import SmoothDCG1, SmoothNDCG, SmoothPrecision, SmoothRR
    from rankwise.losses.soft_rank import SoftRank, SoftRankNDCG
    from rankwise.losses.structured import SVMMapHinge
    from rankwise.losses.structured_ndcg import NDCGHinge

__all__ = [
    "SLAM",
    "ListNet",
    "Loss",
    "MaxPair",
    "NDCGHinge",
    "PairHinge",
    "SVMMapHinge",
    "SmoothAP",
    "SmoothDCG1",
    "SmoothNDCG",
    "SmoothPrecision",
    "SmoothRR",
    "SmoothedMeasure",
    "SoftRank",
    "SoftRankNDCG",
    "TypeOne",
    "TypeTwo",
    "best_imperfect",
    "permutation_score",
    "registered",
    "worst_perfect",
]

# module -> the public names that live in it; one is imported, and its kernels declared, when it is asked for
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_base": ["Loss", "SmoothedMeasure", "registered"],
        "listnet": ["ListNet"],
        "max_pair": ["MaxPair"],
        "pairwise_hinge": ["PairHinge"],
        "permutation": ["TypeOne", "TypeTwo", "permutation_score"],
        "permutation_oracles": ["best_imperfect", "worst_perfect"],
        "slam": ["SLAM"],
        "smooth_ap": ["SmoothAP"],
        "smooth_ndcg": ["SmoothDCG1", "SmoothNDCG", "SmoothPrecision", "SmoothRR"],
        "soft_rank": ["SoftRank", "SoftRankNDCG"],
        "structured": ["SVMMapHinge"],
        "structured_ndcg": ["NDCGHinge"],
    },
)
