"""The certificate of a fitted ranker: which bounds hold for it, and why."""
