"""Solvers that see all queries: objectives, descent, Newton, cutting planes."""
