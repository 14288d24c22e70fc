"""One script a table or figure of the documentation, each run by ``python3 run.py python -m experiments.NAME``."""
