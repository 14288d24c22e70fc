"""SmoothRank: a smoothed measure, maximised from a coarse to a fine width."""
