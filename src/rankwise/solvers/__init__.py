"""Solvers: objectives in, weights out; they know losses by their facts and no ranker by its name."""
