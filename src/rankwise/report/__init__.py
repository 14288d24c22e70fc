"""The report of a comparison: one HTML file that a browser shows without a network.

``collect`` gathers every number as one plain dict (with ``query_lists`` and ``figures``), ``figures`` turns numbers
into figures of plotly, and ``page`` renders everything into the templates.
"""
