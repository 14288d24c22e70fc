"""The notebooks of the documentation: they parse, their code compiles, and they run."""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import jupytext
import pytest

import rankwise

ROOT = Path(__file__).parents[3]
PATHS = sorted((ROOT / "docs" / "notebooks").iterdir())
NOTEBOOKS = {path.stem: path for path in PATHS}


def cells(path, kind):
    return [cell.source for cell in jupytext.read(path).cells if cell.cell_type == kind]


def code_of(path):
    """The code of a notebook, without the lines that only IPython understands."""
    return [re.sub(r"^%.*$", "", source, flags=re.MULTILINE) for source in cells(path, "code")]


def test_there_are_six_and_no_outputs():
    assert sorted(NOTEBOOKS) == ["certify_yours", "clicks", "first_ranker", "from_lightgbm", "hybrid", "online", "ship"]
    assert {path.suffix for path in PATHS} == {".md"}  # text: outputs have no place in it


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_a_text_notebook_with_words_and_code(name):
    notebook = jupytext.read(NOTEBOOKS[name])
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert notebook.metadata["jupytext"]["text_representation"]["format_name"] == "myst"
    assert len(cells(NOTEBOOKS[name], "code")) >= 6
    assert cells(NOTEBOOKS[name], "markdown")[0].startswith("# ")
    assert f"{{nb-download}}`Download this notebook <{name}.ipynb>`" in NOTEBOOKS[name].read_text()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_code_of_a_notebook_compiles_and_names_what_is_public(name):
    code = "\n".join(code_of(NOTEBOOKS[name]))
    compile(code, name, "exec")
    assert [used for used in set(re.findall(r"\brw\.(\w+)", code)) if not hasattr(rankwise, used)] == []
    used = set(re.findall(r"\bclicks\.(\w+)", code))
    assert [one for one in used if not hasattr(rankwise.clicks, one)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_imports_what_is_declared(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [
        *project["project"]["dependencies"],
        *(one for one in project["dependency-groups"]["dev"] if isinstance(one, str)),
    ]
    declared = {re.match(r"[\w-]+", one)[0].replace("-", "_") for one in asked} | {"rankwise", "sklearn"}
    for node in ast.walk(ast.parse("\n".join(code_of(NOTEBOOKS[name])))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module]
        else:
            continue
        assert {module.partition(".")[0] for module in modules} <= declared | sys.stdlib_module_names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_words_of_a_notebook_state_no_figure_that_its_cells_compute(name):
    """Numbers come from cells, which run at every build."""
    words = "\n".join(cells(NOTEBOOKS[name], "markdown"))
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", words)
    assert re.findall(r"\d+\.\d+", words) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_tables_and_figures(name, tmp_path):
    import nbclient

    notebook = jupytext.read(NOTEBOOKS[name])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [kind for cell in notebook.cells for out in cell.get("outputs", ()) for kind in out.get("data", ())]
    assert "image/png" in shown
    assert "stderr" not in json.dumps(notebook)
