"""Rankers that compare whole orders of documents: PermuRank, and TwoStage with its convex second stage."""
