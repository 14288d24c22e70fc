"""The certificate of a fitted ranker: what was learned, on what, and which bounds hold."""
