"""Rankers that compare orders of the documents of a query: PermuRank and TwoStage."""
