"""Hatchling's hook: a wheel for this platform carries the packs of the source tree, if it is told to.

Without ``RANKWISE_WHEEL=packs``, as for ``pip install .`` and for an editable installation, the wheel is pure.
"""

import os
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Nothing in a pack is linked against the C library: the oldest tag that numba's own wheels have had is right.
TAG = "py3-none-manylinux2014_{machine}"


class PackHook(BuildHookInterface):
    """Include packs, and name the platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get("RANKWISE_WHEEL") != "packs":
            return
        packs = sorted(Path(self.root, "src", "rankwise", "_kernels", "machine", "packs").glob("*.pack"))
        if not packs:
            raise FileNotFoundError("there is no pack in the source tree: run `python3 run.py pack` first")
        build_data["pure_python"] = False
        build_data["tag"] = TAG.format(machine=platform.machine())
        for pack in packs:
            build_data["force_include"][str(pack)] = f"rankwise/_kernels/machine/packs/{pack.name}"
