"""The one place that imports optional packages, so that one sentence says which extra is missing."""

import importlib
from types import ModuleType

from rankwise._errors import MissingExtraError

# module -> the extra of pyproject.toml that installs it
EXTRAS = {
    "PIL": "plot",
    "jinja2": "report",
    "lightgbm": "lightgbm",
    "matplotlib": "plot",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "plotly": "report",
    "pyarrow": "frames",
}


def require(module: str) -> ModuleType:
    """Import ``module`` (dotted names too) or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        # packages that only hand results over, such as pandas, are the user's own choice and in no extra
        wanted = f"'rankwise[{EXTRAS[package]}]'" if package in EXTRAS else package
        raise MissingExtraError(f"{package} is needed here and is not installed: pip install {wanted}") from error
