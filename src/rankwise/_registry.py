"""Find classes without listing them: in every module of a package, and among the entry points of third parties.

Adding a measure, a loss or a ranker means adding one file. The registry finds the class there, and with it the parser
and the common tests do.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from rankwise.errors import RankwiseError


@cache
def discover(package: str, base: type, group: str) -> dict[str, type]:
    """Concrete subclasses by name: those in the modules of a package, then those of entry points.

    A module whose name begins with an underscore is skipped, and so is a class that does not set its own ``name``.

    Parameters
    ----------
    package : str
        The full name of the package.
    base : type
        The class that they inherit from.
    group : str
        The entry-point group of third parties.

    Returns
    -------
    classes : dict of str to type
        The classes by their ``name``.

    Raises
    ------
    RankwiseError
        If two classes have the same name, or an entry point is not a subclass of ``base``.
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
    """The subclasses in the modules of a package, subpackages included."""
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
    """The subclasses that third parties declare."""
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        kind = entry.load()
        if not (inspect.isclass(kind) and issubclass(kind, base)):
            raise RankwiseError(f"entry point {entry.value!r} of group {group!r} is not a {base.__name__}")
        yield kind
