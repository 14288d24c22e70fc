"""Boosting: AdaRank over features, RankBoost and FRank over thresholds of features, BoostedRanker over trees."""
