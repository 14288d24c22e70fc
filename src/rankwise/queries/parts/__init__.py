"""Data sets in parts: a folder of stored files with a manifest, larger than memory.

:class:`rankwise.Parts` opens one, :mod:`rankwise.queries.parts.write` writes one.
"""
