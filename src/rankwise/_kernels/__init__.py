"""Machine level: compiled loops over ragged arrays. Knows nothing of ranking."""
