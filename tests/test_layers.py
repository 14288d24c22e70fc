"""Imports point downwards: a subpackage imports only from those below it."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.api import read_configuration
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"


@pytest.fixture(autouse=True)
def _other_loggers() -> Iterator[None]:
    """The linter configures logging, which disables the loggers of everybody else."""
    known = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    enabled = [one for one in known if not one.disabled]
    yield
    for one in enabled:
        one.disabled = False


def test_imports_point_downwards(capsys: pytest.CaptureFixture[str]) -> None:
    broken = lint_imports(config_filename=str(PYPROJECT), no_cache=True)
    assert not broken, capsys.readouterr().out


def test_an_upward_import_breaks_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (contract,) = read_configuration(str(PYPROJECT))["contracts_options"]
    package = tmp_path / "sample"
    for layer in contract["layers"]:
        for name in layer.split(" : "):
            (package / name).mkdir(parents=True)
            (package / name / "__init__.py").write_text("import sample.cli" if name == "queries" else "")
    (package / "__init__.py").write_text("")
    layers = "\n    ".join(contract["layers"])
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_package = sample\n"
        f"[importlinter:contract:layers]\nname = layers\ntype = layers\ncontainers = sample\nlayers =\n    {layers}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert lint_imports(config_filename=str(tmp_path / ".importlinter"), no_cache=True)
    assert "sample.queries -> sample.cli" in capsys.readouterr().out
