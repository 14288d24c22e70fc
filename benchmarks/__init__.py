"""Speed as ratios in one run: ``python3 run.py bench [name ...]`` prints a table and saves it."""
