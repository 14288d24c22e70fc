"""Online learning: the rounds, their configuration and state (``config``), and the ledger (``ledger``).

``loop`` runs blocks of rounds, ``single`` rounds of one list each. ``ledger`` also finds the best fixed ranker in
hindsight, against which it states its bounds.
"""
