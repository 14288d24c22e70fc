"""What the papers print about OHSUMED, the one of their sets that is at hand; numbers only, compared in other modules.

The paper on SmoothRank (Chapelle and Wu, 2009) worked on LETOR 3.0; that on direct optimization (Xu, Li, Liu, Peng, Lu
and Ma) on LETOR 2.0, whose OHSUMED has other features. Figures are pictures: only what stands in tables and sentences
can be quoted.
"""

# SmoothRank, Table 2: NDCG@10, MAP. Its two blocks carry no titles; the second is NDCG@10, where SmoothNDCG has what
# Table 3 prints. The paper's names are SmoothNDCG, AdaRank-NDCG, Regression, AdaRank-MAP and SVM MAP for five of them.
SMOOTHRANK_TABLE_2: dict[str, tuple[float, float]] = {
    "SmoothRank": (0.457, 0.448),
    "RankSVM": (0.450, 0.445),
    "AdaRank": (0.450, 0.450),
    "RidgeRanker": (0.444, 0.444),
    "FRank": (0.443, 0.444),
    "AdaRank, AP": (0.443, 0.449),
    "ListNet": (0.441, 0.446),
    "SVMMap": (0.432, 0.445),
    "RankBoost": (0.430, 0.441),
}

# SmoothRank, Table 1: queries, relevance levels, features, documents a query, per cent of documents that are relevant
SMOOTHRANK_TABLE_1 = {"queries": 106, "levels": 3, "features": 45, "documents": 152, "relevant": 30}

# Direct optimization, Tables 2 and 3: MAP, NDCG@3
DIRECT_TABLES_2_AND_3: dict[str, tuple[float, float]] = {
    "SVMMap": (0.4456, 0.4669),
    "AdaRank": (0.4419, 0.4803),
    "PermuRank": (0.4495, 0.4764),
    "RankSVM": (0.4469, 0.4649),
    "RankBoost": (0.4403, 0.4726),
}

# Online perceptron, section 8, sentences about Figures 2 and 3: (Algorithm 2, ListNet), mean of the last ten rounds
ONLINE_MSLR = {"nDCG@10": (0.25, 0.22), "AP": (0.49, 0.37)}
