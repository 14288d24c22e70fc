"""Optional packages: the sentence for one that is missing, and how LightGBM's threads wait."""

import json
import os
import subprocess
import sys

import pytest

from rankwise import _extras


class Installed:
    """A distribution with this origin."""

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'rankwise[onnx]'"),
        ({"url": "file:///home/me/my%20clone", "dir_info": {}}, "pip install '.[onnx]' in /home/me/my clone"),
        (
            {"url": "file:///home/me/clone", "dir_info": {"editable": True}},
            "pip install -e '.[onnx]' in /home/me/clone",
        ),
        (
            {"url": "https://example.org/rankwise.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'rankwise[onnx] @ git+https://example.org/rankwise.git'",
        ),
        (
            {"url": "https://example.org/rankwise-1.whl", "archive_info": {}},
            "pip install 'rankwise[onnx] @ https://example.org/rankwise-1.whl'",
        ),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="paths of POSIX")
def test_w8_the_command_fits_how_the_package_was_installed(monkeypatch, origin, command):
    monkeypatch.setattr(_extras, "distribution", lambda name: Installed(origin))
    monkeypatch.setattr(_extras, "_installer", lambda: "pip install")
    assert _extras.install_command("onnx") == command


def test_w8_a_source_tree_that_is_not_installed_names_its_folder(monkeypatch):
    def missing(name):
        raise _extras.PackageNotFoundError(name)

    monkeypatch.setattr(_extras, "distribution", missing)
    monkeypatch.setattr(_extras, "_installer", lambda: "pip install")
    folder = _extras.install_command("onnx").partition("pip install '.[onnx]' in ")[2]
    assert os.path.isfile(os.path.join(folder, "pyproject.toml"))


def test_the_installer_is_one_that_this_environment_has(monkeypatch, tmp_path):
    here = tmp_path / "an environment"
    here.mkdir()
    monkeypatch.setattr(sys, "prefix", str(here))
    monkeypatch.setattr(sys, "executable", str(here / "python"))
    has_pip = True
    monkeypatch.setattr(_extras.importlib.util, "find_spec", lambda name: has_pip or None)
    assert _extras._installer() == "pip install"
    has_pip = False
    assert _extras._installer() == f"uv pip install --python '{here / 'python'}'"
    monkeypatch.setenv("VIRTUAL_ENV", str(here))
    assert _extras._installer() == "uv pip install"
    (here / "pipx_metadata.json").write_text("{}")
    assert _extras._installer() == "pipx runpip rankwise install"


def test_w17_threads_of_lightgbm_sleep_while_they_wait():
    """gcc's OpenMP prints what it read of the environment when it is loaded."""
    pytest.importorskip("lightgbm")
    code = "import os; from rankwise._extras import require; require('lightgbm'); "
    code += "print('OMP_WAIT_POLICY' in os.environ)"
    told = {}
    for given in (None, "active"):
        environment = {**os.environ, "OMP_DISPLAY_ENV": "true"}
        environment.pop("OMP_WAIT_POLICY", None)
        if given is not None:
            environment["OMP_WAIT_POLICY"] = given
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        told[given] = done
    if "OMP_WAIT_POLICY = 'ACTIVE'" not in told["active"].stderr:
        pytest.skip("this OpenMP does not tell")
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told[None].stderr.rpartition("OPENMP DISPLAY ENVIRONMENT BEGIN")[2]
    assert told[None].stdout == "False\n"
    assert told["active"].stdout == "True\n"
