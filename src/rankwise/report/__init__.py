"""The report of a comparison: everything about it in one file that a browser shows, without a network."""
