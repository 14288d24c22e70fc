"""SmoothRank: a smoothed measure, annealed."""
