"""Intervals, paired tests and corrections for many tests."""
