"""Online learning: the rounds (``loop``), their configuration and state (``config``), and the ledger (``ledger``).

``comparator`` finds the best fixed ranker in hindsight, against which the ledger states its bounds.
"""
