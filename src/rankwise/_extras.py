"""The one place that imports optional packages.

An optional package that is missing raises one clear error, which names the extra that installs it.
"""

import importlib
import importlib.util
import json
import os
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rankwise.errors import MissingExtraError

# module -> the extra of pyproject.toml that installs it
EXTRAS = {
    "PIL": "plot",
    "catboost": "catboost",
    "dask": "dask",
    "distributed": "dask",
    "jinja2": "report",
    "lightgbm": "lightgbm",
    "matplotlib": "plot",
    "msgspec": "serve",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "prometheus_client": "serve",
    "pyarrow": "frames",
    "starlette": "serve",
    "torch": "torch",
    "uvicorn": "serve",
}


# Modules that start threads of OpenMP. Those of gcc's library spin while they wait, which takes the cores from each
# other on a busy machine and under a CPU quota: a fit of a second then takes minutes. The library reads how to wait
# from the environment, once, when it is loaded.
_WITH_OPENMP = ("lightgbm",)
_WAITING = "OMP_WAIT_POLICY"


def require(module: str) -> ModuleType:
    """Import an optional module, or raise an error that names the extra which installs it.

    Parameters
    ----------
    module : str
        The module; dotted names work, too.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        If the package is not installed.
    """
    package = module.partition(".")[0]
    asleep = package in _WITH_OPENMP and package not in sys.modules and _WAITING not in os.environ
    try:
        if asleep:
            os.environ[_WAITING] = "passive"
        return importlib.import_module(module)
    except ImportError as error:
        # packages that results are only converted to, such as pandas, are the user's choice and in no extra
        command = install_command(EXTRAS[package]) if package in EXTRAS else f"{_installer()} {package}"
        raise MissingExtraError(f"{package} is not installed; run {command}") from error
    finally:
        if asleep:
            os.environ.pop(_WAITING, None)


def missing_from(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    wanted = [package for package, own in EXTRAS.items() if own == extra]
    return [package for package in wanted if importlib.util.find_spec(package) is None]


def install_command(extra: str) -> str:
    """The command that installs an extra, by how this package was installed.

    Parameters
    ----------
    extra : str
        A name of ``[project.optional-dependencies]``.

    Returns
    -------
    str
        With the name of the package if it came from an index, with its address or folder otherwise.
    """
    try:
        origin = distribution("rankwise").read_text("direct_url.json")
    except PackageNotFoundError:  # a source tree on the path
        return f"{_installer()} '.[{extra}]' in {Path(__file__).parents[2]}"
    if origin is None:  # from an index
        return f"{_installer()} 'rankwise[{extra}]'"
    facts = json.loads(origin)
    if "dir_info" in facts:
        editable = "-e " if facts["dir_info"].get("editable") else ""
        folder = url2pathname(urlsplit(facts["url"]).path)
        return f"{_installer()} {editable}'.[{extra}]' in {folder}"
    kind = f"{facts['vcs_info']['vcs']}+" if "vcs_info" in facts else ""
    return f"{_installer()} 'rankwise[{extra}] @ {kind}{facts['url']}'"


def _installer() -> str:
    """The command that installs into this environment: pipx and uv make some without a pip that a shell would find."""
    if Path(sys.prefix, "pipx_metadata.json").exists():
        return "pipx runpip rankwise install"
    if importlib.util.find_spec("pip"):
        return "pip install"
    active = os.environ.get("VIRTUAL_ENV") == sys.prefix
    return "uv pip install" if active else f"uv pip install --python {shlex.quote(sys.executable)}"
