"""The one place that imports optional packages.

An optional package that is missing raises one clear error, which names the extra that installs it.
"""

import importlib
from types import ModuleType

from rankwise._errors import MissingExtraError

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
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        # packages that results are only converted to, such as pandas, are the user's choice and in no extra
        wanted = f"'rankwise[{EXTRAS[package]}]'" if package in EXTRAS else package
        raise MissingExtraError(f"{package} is needed here and is not installed: pip install {wanted}") from error
