"""Imports point downwards: a room of the house sees only the rooms below it."""

from pathlib import Path

import pytest
from importlinter.api import read_configuration
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"


def test_imports_point_downwards(capsys: pytest.CaptureFixture[str]) -> None:
    broken = lint_imports(config_filename=str(PYPROJECT), no_cache=True, no_logo=True)
    assert not broken, capsys.readouterr().out


def test_an_upward_import_breaks_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (contract,) = read_configuration(str(PYPROJECT))["contracts_options"]
    house = tmp_path / "house"
    for buffer, sees in {
        "_errors": "",
        "_version": "",
        "_extras": "",
        "_kernels": "",
        "data": "import house.cli",
    }.items():
        (house / buffer).mkdir(parents=True)
        (house / buffer / "__init__.py").write_text(sees)
    (house / "cli").mkdir()
    (house / "cli" / "__init__.py").write_text("")
    (house / "__init__.py").write_text("")
    layers = "\n    ".join(contract["layers"])
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_package = house\n"
        f"[importlinter:contract:layers]\nname = layers\ntype = layers\ncontainers = house\nlayers =\n    {layers}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert lint_imports(config_filename=str(tmp_path / ".importlinter"), no_cache=True, no_logo=True)
    assert "house.data -> house.cli" in capsys.readouterr().out
