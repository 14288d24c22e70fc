"""Generated data: judged queries like those of a search engine, and streams whose best ranker is known."""
