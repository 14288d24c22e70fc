"""Measures as values: ``NDCG() @ 10``, ``AP(rel=2)``, or parsed from their spelling, ``parse("nDCG@10")``."""

from typing import TYPE_CHECKING

from rankwise._registry import lazy_names
from rankwise.measures.parse import parse, registered  # now: later, the module of that name would take its place

if TYPE_CHECKING:
    from rankwise.measures._base import BinaryMeasure, Measure
    from rankwise.measures.ap import AP
    from rankwise.measures.err import ERR
    from rankwise.measures.ndcg import DCG, NDCG, MeanNDCG
    from rankwise.measures.pairs import Pairs
    from rankwise.measures.precision import P, R, Success
    from rankwise.measures.rbp import RBP
    from rankwise.measures.rr import RR
    from rankwise.measures.wta import WTA

__all__ = [
    "AP",
    "DCG",
    "ERR",
    "NDCG",
    "RBP",
    "RR",
    "WTA",
    "BinaryMeasure",
    "MeanNDCG",
    "Measure",
    "P",
    "Pairs",
    "R",
    "Success",
    "parse",
    "registered",
]

# module -> the public names that live in it; one is imported, and its kernels declared, when it is asked for
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_base": ["BinaryMeasure", "Measure"],
        "ap": ["AP"],
        "err": ["ERR"],
        "ndcg": ["DCG", "NDCG", "MeanNDCG"],
        "pairs": ["Pairs"],
        "precision": ["P", "R", "Success"],
        "rbp": ["RBP"],
        "rr": ["RR"],
        "wta": ["WTA"],
    },
)
