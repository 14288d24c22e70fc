"""Judged queries from and to tables: data frames in memory, Parquet, Arrow and CSV files.

`frames` has the public functions; `rows` says which column plays which role, turns rows into queries, and opens Parquet
and Arrow files; `csv` reads texts.
"""
