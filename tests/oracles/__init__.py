"""Oracles: brute force from the definitions, and other tools."""
