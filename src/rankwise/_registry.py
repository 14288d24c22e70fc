"""Find classes without listing them: every module of a package, and what third parties declare as entry points.

Adding a measure, a loss or a ranker is adding one file; the registry, and with it the parser and the common tests,
finds it there.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from rankwise._errors import RankwiseError


@cache
def discover(package: str, base: type, group: str) -> dict[str, type]:
    """Concrete subclasses of ``base`` by ``name``: those in the package's modules, then those of entry points.

    A module whose name begins with an underscore is skipped; so is a class that does not set its own ``name``.
    """
    found: dict[str, type] = {}
    for kind in (*_in_package(package, base), *_in_entry_points(base, group)):
        name = vars(kind).get("name")
        if name is None:
            continue
        if found.setdefault(name, kind) is not kind:
            other = found[name]
            raise RankwiseError(
                f"{name!r} is declared twice: by {other.__module__}.{other.__qualname__} and by "
                f"{kind.__module__}.{kind.__qualname__}"
            )
    return found


def _in_package(package: str, base: type) -> Iterator[type]:
    folder = importlib.import_module(package)
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        if module.name.startswith("_"):
            continue
        full = f"{package}.{module.name}"
        if module.ispkg:
            yield from _in_package(full, base)
            continue
        for kind in vars(importlib.import_module(full)).values():
            if inspect.isclass(kind) and issubclass(kind, base) and kind.__module__ == full:
                yield kind


def _in_entry_points(base: type, group: str) -> Iterator[type]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        kind = entry.load()
        if not (inspect.isclass(kind) and issubclass(kind, base)):
            raise RankwiseError(f"entry point {entry.value!r} of group {group!r} is not a {base.__name__}")
        yield kind


# --------------------------------------------------------------------------------------------------------------- lazy
# Names of a package that are imported when they are first used (PEP 562), so that nobody pays for what he leaves.


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, given which of its modules each public name lives in."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def getattribute(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattribute, lambda: sorted(sys.modules[package].__all__)
