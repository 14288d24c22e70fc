"""The package as it is installed: its public names, what importing it costs, its version, its locks."""

import ast
import importlib.metadata
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rankwise

ROOT = Path(__file__).parents[1]
HEAVY = {"matplotlib", "numba", "pandas", "polars", "pyarrow", "scipy", "sklearn"}


def python(*arguments: str) -> str:
    """What a fresh interpreter prints."""
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def names_in_stub() -> dict[str, str]:
    """name -> module it is imported from, as ``__init__.pyi`` says."""
    tree = ast.parse((ROOT / "src" / "rankwise" / "__init__.pyi").read_text())
    return {
        alias.asname: f"{statement.module}.{alias.name}"
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname is not None
    }


# ---------------------------------------------------------------------------------------------------- public names


@pytest.mark.parametrize("name", rankwise.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(rankwise, name) is not None


PUBLIC = [name for name, place in names_in_stub().items() if place == f"rankwise.{name}"]


def test_the_names_of_the_first_hour_are_few() -> None:
    assert set(names_in_stub()) - set(PUBLIC) == set(rankwise.__all__)
    assert len(rankwise.__all__) <= 55


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_of_a_submodule_resolves(name: str) -> None:
    module = getattr(rankwise, name)
    assert all(getattr(module, one) is not None for one in module.__all__)


def test_a_name_of_a_submodule_is_found_from_the_top() -> None:
    for name, home in {
        "read_qrels": "io",
        "labels": "sklearn",
        "DataError": "errors",
        "Comparison": "evaluation",
    }.items():
        with pytest.raises(AttributeError, match=f"use rankwise.{home}.{name}$"):
            getattr(rankwise, name)


def test_no_module_hides_a_public_function() -> None:
    """An imported submodule becomes an attribute of its package, in place of a function of the same name."""
    for package in ("rankwise", *(f"rankwise.{name}" for name in PUBLIC)):
        found = importlib.import_module(package)
        modules = {one.name for one in pkgutil.iter_modules(getattr(found, "__path__", ()))}
        assert not modules & set(found.__all__), package


@pytest.mark.parametrize(("name", "place"), names_in_stub().items())
def test_stub_names_the_object_that_the_package_gives(name: str, place: str) -> None:
    module, _, attribute = place.rpartition(".")
    assert getattr(rankwise, name) is getattr(importlib.import_module(module), attribute)


def test_dir_lists_the_public_names() -> None:
    assert {*rankwise.__all__, *PUBLIC} == set(dir(rankwise))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = rankwise.no_such_name  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------- cost of importing


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh process holds after running ``code``."""
    return set(python("-c", f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})").split())


def test_import_loads_no_heavy_package() -> None:
    assert not modules_after("import rankwise") & (HEAVY | {"numpy"})


def test_help_loads_no_heavy_package() -> None:
    code = "import sys\nsys.argv = ['rankwise', '--help']\nfrom rankwise.cli import main\n"
    run_it = "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    assert not modules_after(code + run_it) & HEAVY


def test_package_runs_as_a_module() -> None:
    assert "demo" in python("-m", "rankwise", "--help")


# ----------------------------------------------------------------------------------------------------------- version


def test_version_is_the_one_of_the_installed_metadata() -> None:
    try:
        installed = importlib.metadata.version("rankwise")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("rankwise is on the path and not installed")
    assert installed == rankwise.__version__


# ------------------------------------------------------------------------------------------------ locks and run.py


def locked(name: str) -> dict[str, set[str]]:
    """package -> versions (one for each range of Pythons), as a lock file states them."""
    versions: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE):
        versions.setdefault(package, set()).add(version)
    return versions


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_holds_names_versions_and_hashes_only(name: str) -> None:
    pin, hash_ = r"[a-z0-9-]+==\S+( ; .+)? \\", r"    --hash=sha256:[0-9a-f]{64}( \\)?"
    strange = [line for line in (ROOT / name).read_text().splitlines() if not re.fullmatch(f"{pin}|{hash_}", line)]
    assert not strange


def test_locks_cover_pyproject_and_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    core, dev = locked("requirements.lock"), locked("requirements-dev.lock")

    def names(requirements: list[str | dict[str, str]]) -> set[str]:
        return {re.split(r"[<>=!~;\[ ]", entry)[0] for entry in requirements if isinstance(entry, str)}

    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    assert names(project["project"]["dependencies"]) | names(groups["setup"]) <= set(core)
    # PyTorch weighs gigabytes: tests that need it are skipped without it
    tried = [entry for name, extra in extras.items() if name != "torch" for entry in extra]
    assert names(groups["dev"]) | names(tried) <= set(dev)
    assert "torch" not in dev
    assert core == {package: dev[package] for package in core}


def test_run_py_can_be_read_by_old_pythons() -> None:
    ast.parse((ROOT / "run.py").read_text(), feature_version=(3, 8))


def test_run_py_lists_its_tasks_and_refuses_others() -> None:
    listed = python(str(ROOT / "run.py"))
    for task in ("demo", "test", "bench", "lint", "docs", "release-check", "python", "lock"):
        assert re.search(rf"^  {task} ", listed, re.MULTILINE)
    refused = subprocess.run([sys.executable, ROOT / "run.py", "dance"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "'dance'" in refused.stderr


@pytest.mark.parametrize("folder", ["benchmarks", "experiments"])
def test_what_benchmarks_and_experiments_import_is_there(folder):
    """Most of it is imported inside of functions, which the normal run does not call."""
    lacking = []
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "rankwise":
                for name in (alias.name for alias in node.names):
                    inner = f"{node.module}.{name}"
                    there = hasattr(importlib.import_module(str(node.module)), name)
                    if not there and importlib.util.find_spec(inner) is None:
                        lacking.append(f"{path.name}: {inner}")
    assert lacking == []
