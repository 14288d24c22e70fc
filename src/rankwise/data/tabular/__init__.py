"""Tables: data frames in memory, CSV, parquet and Arrow files."""
