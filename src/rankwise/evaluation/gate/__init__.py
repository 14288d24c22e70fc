"""A gate on a locked hold-out, which may be asked about one model after the other and answers passed or not.

``gate`` has :class:`~rankwise.evaluation.gate.gate.Gate` and its answers, ``asked`` what a gate needs to know of a
model, and ``state`` the file in which a gate counts.
"""
