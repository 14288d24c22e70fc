"""The versions that the lock states, and whether they are those that are installed."""

import re
from importlib.metadata import version
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements-dev.lock"


def locked(package):
    """The versions of a package in the lock, one for each range of interpreters."""
    return re.findall(rf"^{package}==([^\s;]+)", LOCK.read_text(), re.MULTILINE)


def are_locked(*packages):
    """Tell whether the versions of the lock are installed; `release-check --lowest --tests` installs others."""
    return all(version(package) in locked(package) for package in packages)
