"""Judged lists: the `Queries` currency, the files it comes from and goes to, splits, scaling and diagnosis."""
