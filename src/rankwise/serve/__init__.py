"""The online ranking service: it ranks, learns from feedback, loses nothing that it acknowledged, and can be replayed.

``rankwise serve`` starts it from the shell; :class:`Client` and :class:`AsyncClient` talk to it. The packages that the
service itself needs come with the extra ``serve``; the clients need none of them.

One SQLite file is the whole state. Every change is an event with a place in its log, ``seq``; the state after any place
is a function of the log alone, and a version of a model is such a place.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
