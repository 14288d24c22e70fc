"""Intervals from held-out queries, and how many queries a given width takes.

``intervals`` makes an :class:`~rankwise.guarantees.Interval` for a mean over future queries from queries that the
ranker did not learn from; ``sequences`` makes intervals that hold at all times of a stream; ``betting`` has the wealth
processes of both; ``testing`` decides, one claim or several of them. ``intervals`` says how many queries to judge, too.
"""
