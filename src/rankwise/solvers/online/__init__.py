"""Online learning: its configuration, its rounds and its account."""
