"""Exported rankers in real engines: ``python3 run.py engines``.

Three sets of generated queries, and OHSUMED and MQ2008 where RANKWISE_DATA has them, are ranked by rankers of every
kind that a target holds. The engines load what :func:`rankwise.export` wrote, get the features as float64 or as fields
of documents, and return scores. What counts is whether they order the documents as the rankers do.

``databases`` runs DuckDB, PostgreSQL and SQLite from the environment of the project. ``java`` fetches RankLib (as the
plugins of Elasticsearch and OpenSearch load it), Vespa's evaluator of expressions and Apache Solr by Maven, by one pom
each, and runs small programs over them, which stand beside the poms. ``solr`` goes the whole way: documents are
indexed, their features logged by the engine, a ranker learns from the log and is certified, and the engine ranks with
it.
"""
