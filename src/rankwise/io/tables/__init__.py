"""Judged queries from and to tables: data frames in memory, Parquet, Arrow and CSV files.

`frames` has the public functions; `rows` says which column plays which role and turns rows into queries; `csv` and
`arrow` read files.
"""
