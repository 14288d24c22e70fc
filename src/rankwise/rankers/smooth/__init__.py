"""SmoothRank: a smoothed measure, maximized from a coarse to a fine width."""
