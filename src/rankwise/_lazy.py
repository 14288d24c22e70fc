"""Public names of a package, imported when they are first used (PEP 562).

The stub ``__init__.pyi`` beside a package's ``__init__.py`` is the only list of its public names: editors and type
checkers read it as it is, and :func:`lazy_names` makes ``__getattr__``, ``__dir__`` and ``__all__`` from it. A stub has
one import per line, ``from rankwise.module import name as name``. Losses and measures need no line: the registry finds
their classes.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any


@cache
def public_names(package: str) -> dict[str, str]:
    """The module of every public name, from the stub of a package.

    Parameters
    ----------
    package : str
        The full name of the package.

    Returns
    -------
    homes : dict of str to str
        Full names of modules by public name. The home of a public submodule is the package itself.
    """
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    words = (line.split() for line in stub.decode().splitlines())
    return {line[3]: line[1] for line in words if line[:1] == ["from"] and line[1].startswith("rankwise")}


def lazy_names(
    package: str, classes: Callable[[], Mapping[str, type]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        The full name of the package.
    classes : callable, default=None
        Returns the classes that the registry classes_by_name. They are public under their own names too.

    Returns
    -------
    get_name : callable
        The ``__getattr__`` of the package.
    list_names : callable
        The ``__dir__`` of the package.
    """
    homes = public_names(package)

    def classes_by_name() -> dict[str, type]:
        return {} if classes is None else {kind.__name__: kind for kind in classes().values()}

    def get_name(name: str) -> Any:
        if name == "__all__":
            return [name for name in list_names() if homes.get(name) != package]
        if name in homes:
            value = _import_name(homes[name], name, package)
        elif name.startswith("_") or name not in classes_by_name():
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_elsewhere(package, name)}")
        else:
            value = classes_by_name()[name]
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*homes, *classes_by_name()})

    return get_name, list_names


def _import_name(home: str, name: str, package: str) -> Any:
    if home == package:
        return importlib.import_module(f"{package}.{name}")
    return getattr(importlib.import_module(home), name)


def _elsewhere(package: str, name: str) -> str:
    """A hint at the submodule of a public name that was looked for at the top of the package."""
    if package != "rankwise" or name.startswith("_"):
        return ""
    for submodule in (one for one, home in public_names(package).items() if home == package):
        if name in _public(importlib.import_module(f"{package}.{submodule}")):
            return f"; it is in rankwise.{submodule}: use rankwise.{submodule}.{name}"
    return ""


def _public(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", ()))
