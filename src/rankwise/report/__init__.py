"""The report of a comparison: one HTML file that a browser shows without a network.

``collect`` gathers every number as one plain dict (with ``query_lists``, ``curves`` and ``slices``), ``figures`` and
``tables`` say what is drawn and what can be saved, ``descriptions`` has texts about documents and queries, and ``page``
renders everything into the templates, whose scripts draw.
"""
