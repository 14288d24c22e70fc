"""Bounds with their formulas, by what they are about.

``training`` and ``smoothing`` are about the queries at hand, ``online`` about one run over a stream, ``batch`` about
the expected risk of what is learned, ``uniform`` and ``optimistic`` about the risk of every w of a ball at once.
``adversary`` shows that the online bounds cannot be improved by more than one mistake.
"""
