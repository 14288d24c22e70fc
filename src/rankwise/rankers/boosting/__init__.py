"""Boosting: AdaRank over features, RankBoost and FRank over thresholds of features."""
