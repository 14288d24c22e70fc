"""How good a ranking is and how sure that is: measures over queries, intervals, paired tests and analysis."""
