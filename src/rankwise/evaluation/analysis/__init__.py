"""Where rankers differ: groups of queries, pairs of labels, features, rounds."""
