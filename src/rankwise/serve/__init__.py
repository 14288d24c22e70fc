"""The online ranking service: it ranks, learns from feedback, loses nothing that it acknowledged, and can be replayed.

``rankwise serve`` starts it from the shell; :class:`Client` and :class:`AsyncClient` talk to it. The packages that the
service itself needs come with the extra ``serve``; the clients need none of them.

One SQLite file is the whole state. Every change is an event with a place in its log, ``seq``; the state after any place
is a function of the log alone, and a version of a model is such a place.
"""

import importlib
from typing import Any

_HOMES = {
    "Client": "client",
    "AsyncClient": "client",
    "ServiceError": "client",
    "Service": "service",
    "make_app": "app",
}
__all__ = ["AsyncClient", "Client", "Service", "ServiceError", "make_app"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
