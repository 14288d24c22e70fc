"""LETOR / SVMlight text: read, streamed and written."""
