"""Confidence intervals, paired tests, and corrections for the number of tests."""
