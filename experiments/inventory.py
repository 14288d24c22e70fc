"""Every table and figure of the papers: the experiment that reproduces it and its data, or why none does.

The keys are arguments of ``python3 run.py python -m experiments.reproduction``: ``smoothrank-figure-3`` runs the
experiment of that figure and writes the page again.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One table or figure.

    Attributes
    ----------
    shows : what the paper shows in it
    module : the module of ``experiments`` that reproduces it, with its arguments; empty if there is none
    data : the data that it needs
    result : the result, with a link to it; or why there is none
    """

    shows: str
    module: str
    data: str
    result: str


_GOV = "the .GOV sets (TREC 2003 and 2004) are not available"
_NONE = "nothing to run"

ITEMS: dict[str, Item] = {
    "smoothrank-figure-1": Item(
        "the smoothed objective along a random direction",
        "smoothrank",
        "OHSUMED, fold 1",
        "same picture: [landscape](smoothrank.md)",
    ),
    "smoothrank-figure-2": Item(
        "training and test NDCG along the annealing",
        "annealing",
        "OHSUMED",
        "training climbs, test saturates: [below](#the-annealing)",
    ),
    "smoothrank-figure-3": Item(
        "NDCG@10 of nine rankers, NDCG@k of some",
        "cutoffs",
        "OHSUMED",
        "values agree, the order does not: [below](#smoothrank-and-the-rankers-of-letor)",
    ),
    "smoothrank-figure-4": Item("means over the seven sets of LETOR 3.0", "", "", _GOV),
    "smoothrank-figure-5": Item(
        "SmoothNDCG and FITC-Rank on the OHSUMED of LETOR 2.0", "", "", "neither that set nor FITC-Rank is available"
    ),
    "smoothrank-table-1": Item("sizes of the sets", "set_facts", "OHSUMED", "the OHSUMED row: [below](#the-set)"),
    "smoothrank-table-2": Item(
        "NDCG@10 and MAP of nine rankers on seven sets",
        "cutoffs",
        "OHSUMED",
        f"the OHSUMED column: [below](#smoothrank-and-the-rankers-of-letor); {_GOV}",
    ),
    "smoothrank-table-3": Item(
        "NDCG@1, @5, @10 when trained at k = 1, 5, 10, 50",
        "smoothrank",
        "OHSUMED",
        "k = 10 is best here, not 50: [below](#the-training-cut-off)",
    ),
    "direct-table-1": Item("notation", "", "", _NONE),
    "direct-figure-1": Item(
        "type one bounds against the measure", "bound_forms", "none", "same: [below](#two-types-of-bounds)"
    ),
    "direct-figure-2": Item(
        "type two bounds against the margin", "bound_forms", "none", "same: [below](#two-types-of-bounds)"
    ),
    "direct-figure-3": Item(
        "both bounds against the angle of w, equal variances",
        "bounds_by_angle",
        "simulated",
        "only with SVMmap's pairs: [below](#two-types-of-bounds)",
    ),
    "direct-figure-4": Item(
        "the same, unequal variances",
        "bounds_by_angle",
        "simulated",
        "only with SVMmap's pairs: [below](#two-types-of-bounds)",
    ),
    "direct-figure-5": Item("how the bounds are related, a diagram", "", "", _NONE),
    "direct-figure-6": Item("AdaRank, the algorithm", "", "", "`rw.AdaRank`"),
    "direct-figure-7": Item("PermuRank, the algorithm", "", "", "`rw.PermuRank`"),
    "direct-figure-8": Item(
        "MAP and NDCG@1, 3, 5, 10 of five rankers",
        "direct_on_map",
        "OHSUMED of LETOR 3.0 for 2.0",
        "no ranker is ahead: [below](#five-rankers-for-map)",
    ),
    "direct-figure-9": Item("the same on TD2003", "", "", _GOV),
    "direct-figure-10": Item("the same on TD2004", "", "", _GOV),
    "direct-figure-11": Item(
        "learning curves of AdaRank and PermuRank",
        "boosting_rounds",
        "OHSUMED of LETOR 3.0 for 2.0, fold 1",
        "not as printed: [below](#learning-curves)",
    ),
    "direct-figure-12": Item("five rankers on WSJ", "", "", "WSJ is not available"),
    "direct-figure-13": Item("five rankers on AP", "", "", "AP is not available"),
    "direct-figure-14": Item(
        "inverted pairs by label, AdaRank and RankBoost",
        "direct_on_map",
        "OHSUMED of LETOR 3.0 for 2.0",
        "same direction, not significant: [below](#where-adarank-and-rankboost-err)",
    ),
    "direct-figure-15": Item(
        "queries by their number of pairs",
        "ranking_errors errors",
        "OHSUMED",
        "equally uneven: [queries by size](direct.md)",
    ),
    "direct-figure-16": Item(
        "MAP of AdaRank and RankBoost by number of pairs",
        "direct_on_map",
        "OHSUMED of LETOR 3.0 for 2.0",
        "only below 1,000 pairs: [below](#where-adarank-and-rankboost-err)",
    ),
    "direct-table-2": Item(
        "MAP of five rankers on five sets",
        "direct_on_map",
        "OHSUMED of LETOR 3.0 for 2.0",
        "the OHSUMED column: [below](#five-rankers-for-map); the other four sets are not available",
    ),
    "direct-table-3": Item(
        "NDCG@3 of five rankers on five sets",
        "direct_on_map",
        "OHSUMED of LETOR 3.0 for 2.0",
        "the OHSUMED column: [below](#five-rankers-for-map); the other four sets are not available",
    ),
    "direct-table-4": Item(
        "AdaRank, PermuRank and SVMmap compared in words",
        "direct",
        "OHSUMED",
        "seconds of a fit: [below](#five-rankers-for-map)",
    ),
    "online-figure-1": Item(
        "running NDCG@10 on separable queries",
        "online simulation",
        "simulated",
        "perceptrons as printed, ListNet depends on its step: [below](#the-online-perceptron)",
    ),
    "online-figure-2": Item(
        "running AP on MSLR-WEB10K, Yahoo and Yandex",
        "online data",
        "OHSUMED and MQ2008 for these",
        "not comparable: the three sets are not available; [below](#the-online-perceptron)",
    ),
    "online-figure-3": Item(
        "running NDCG@10 on the same",
        "online data",
        "OHSUMED and MQ2008 for these",
        "not comparable: the three sets are not available; [below](#the-online-perceptron)",
    ),
    "lengths-table-1": Item(
        "which bound is for which ranker", "", "", "described in words; [the bounds](bounds_uniform.md) themselves"
    ),
}
