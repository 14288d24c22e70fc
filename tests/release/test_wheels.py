"""The wheels: the pure one carries no pack, that of a platform carries those of the source tree and says for what."""

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKS = "src/rankwise/_kernels/machine/packs"
KERNELS = "rankwise/_kernels"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what wheels are built from, with one pack."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    for name in ("src", "wheels"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "packs"))
    (folder / PACKS).mkdir()
    (folder / PACKS / "some.pack").write_bytes(b"code")
    return folder


def built(tree, carries):
    """(the name, the files, the tag) of a wheel, or what was said where it was not built."""
    out = tree / f"dist-{carries}"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    variables = {**os.environ, "RANKWISE_WHEEL": carries}
    done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    (path,) = out.iterdir()
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    (about,) = (text.decode() for name, text in files.items() if name.endswith("/WHEEL"))
    return path.name, files, about


def test_the_pure_wheel_carries_no_pack(tree):
    name, files, about = built(tree, "nothing")
    assert name.endswith("-py3-none-any.whl")
    assert "Root-Is-Purelib: true" in about
    assert f"{KERNELS}/machine/jit.py" in files
    assert not [file for file in files if file.endswith(".pack")]


@pytest.mark.skipif(sys.platform != "linux", reason="packs are for Linux")
def test_the_wheel_of_a_platform_carries_the_packs(tree):
    name, files, about = built(tree, "packs")
    tag = f"py3-none-manylinux2014_{platform.machine()}"
    assert name.endswith(f"-{tag}.whl")
    assert f"Tag: {tag}" in about
    assert "Root-Is-Purelib: false" in about
    assert files[f"{KERNELS}/machine/packs/some.pack"] == b"code"
    pure = built(tree, "nothing")[1]
    assert {file for file in files if ".dist-info" not in file} - set(pure) == {f"{KERNELS}/machine/packs/some.pack"}


def test_without_a_pack_there_is_no_wheel_of_a_platform(tree):
    (tree / PACKS / "some.pack").rename(tree / "some.pack")
    try:
        assert "there is no pack in the source tree" in built(tree, "packs")
    finally:
        (tree / "some.pack").rename(tree / PACKS / "some.pack")
