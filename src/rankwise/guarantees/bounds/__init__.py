"""Bounds with their formulas: online, in expectation, uniform, on the training queries."""
