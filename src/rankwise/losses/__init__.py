"""Surrogate losses with their facts: what they bound, how steep and how curved they are."""

from rankwise.losses._base import Loss, registered
from rankwise.losses.listnet import ListNet
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.losses.slam import SLAM

__all__ = ["SLAM", "ListNet", "Loss", "MaxPair", "PairHinge", "registered"]
