"""Boosting: AdaRank adds features as they are; RankBoost and FRank add steps on single features."""
