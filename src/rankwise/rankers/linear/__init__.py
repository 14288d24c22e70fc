"""Linear rankers learned in batch."""
