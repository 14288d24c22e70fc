"""Boosting: AdaRank, RankBoost and FRank."""
