"""The package as it is installed: its public names, what importing it costs, its metadata, its wheel, its locks."""

import ast
import importlib.metadata
import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
import yaml

import rankwise
from wheels import release_check
from wheels.metadata_hook import absolute_links

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
    assert len(rankwise.__all__) <= 54


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


# ------------------------------------------------------------------------------------------------ metadata and wheel


def test_version_is_the_one_of_the_installed_metadata() -> None:
    try:
        installed = importlib.metadata.version("rankwise")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("rankwise is on the path and not installed")
    assert installed == rankwise.__version__


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of the checkout, and the wheel that is built from it and from nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    release_check.build(folder)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    return release_check.wheel_in(distributions)


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_wheel_holds_the_package_and_nothing_else(distributions: Path, wheel: Path) -> None:
    release_check.check_contents(distributions)
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    package = {"py.typed", "__init__.pyi", "report/templates/lists.js", "serve/status.html"}
    assert {f"rankwise/{name}" for name in package} <= files
    assert [name for name in files if name.endswith(".dist-info/licenses/LICENSE")]
    assert {name.partition("/")[0].partition("-")[0] for name in files} == {"rankwise"}
    assert not [name for name in files if re.search(r"tests?/|\.(rankwise|safetensors|parquet|gz|csv|pyc)$", name)]


def test_a_wheel_with_a_file_too_many_or_too_few_is_refused(wheel: Path, tmp_path: Path) -> None:
    shutil.copy(wheel, tmp_path)
    with zipfile.ZipFile(tmp_path / wheel.name, "a") as archive:
        archive.writestr("rankwise/notes.txt", "")
    with pytest.raises(release_check.CheckFailed, match=r"differ in rankwise/notes\.txt$"):
        release_check.check_contents(tmp_path)


def test_source_distribution_holds_what_a_wheel_is_built_from(distributions: Path) -> None:
    with tarfile.open(release_check.sdist_in(distributions)) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    top = {name.partition("/")[0] for name in names}
    assert top == {
        *("src", "wheels", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
        *(".gitignore", "PKG-INFO"),  # hatchling adds these by itself
    }
    assert not [name for name in names if "/packs/" in name or name.endswith(".pyc")]


def test_package_indices_take_the_metadata(distributions: Path, metadata: Message) -> None:
    assert metadata["Metadata-Version"] == "2.4"  # newer ones are not read everywhere
    release_check.check_metadata(distributions)


def test_addresses_of_the_project_are_made_of_one(metadata: Message) -> None:
    repository = release_check.repository()
    addresses = dict(entry.split(", ") for entry in metadata.get_all("Project-URL", []))
    assert set(addresses) == {"Documentation", "Source", "Changelog", "Issues"}
    assert all(address.startswith(repository) for address in addresses.values())
    tracked = ("pyproject.toml", "README.md", "CITATION.cff", "SECURITY.md", "docs/conf.py")
    assert sum((ROOT / name).read_text(encoding="utf-8").count(repository) for name in tracked) == 1


def test_links_of_the_description_lead_to_files_of_the_repository(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    links = re.findall(r"\]\(([^)\s]+)\)|\b(?:src|href)=\"([^\"]+)", text)
    places = [first or second for first, second in links if not first.startswith("#")]
    assert len(places) > 20
    prefix = rf"{re.escape(release_check.repository())}/(?:blob|raw)/v{re.escape(rankwise.__version__)}/"
    for place in places:
        assert place.startswith("https://"), place
        if found := re.fullmatch(rf"{prefix}([^#]+)(#.*)?", place):
            assert (ROOT / found[1]).is_file(), place
    assert [place for place in places if re.match(prefix, place)]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](docs/a.md#b)", "[a](https://x.y/r/blob/v1/docs/a.md#b)"),
        ("![a](docs/a.png)", "![a](https://x.y/r/raw/v1/docs/a.png)"),
        ("[![a](a.svg)](b.md)", "[![a](https://x.y/r/raw/v1/a.svg)](https://x.y/r/blob/v1/b.md)"),
        ('<img src="./a.png">', '<img src="https://x.y/r/raw/v1/a.png">'),
        ("[a]: b.md", "[a]: https://x.y/r/blob/v1/b.md"),
        ("[a](https://b.c) [d](#e) [f](mailto:g)", "[a](https://b.c) [d](#e) [f](mailto:g)"),
        ("```\nx[0](y)\n```\n[a](b)", "```\nx[0](y)\n```\n[a](https://x.y/r/blob/v1/b)"),
    ],
)
def test_links_become_absolute(written: str, shown: str) -> None:
    assert absolute_links(written, "https://x.y/r", "v1") == shown


def test_declared_systems_and_pythons_are_those_that_are_tested() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    pythons = {entry.rpartition(" ")[2] for entry in declared if re.search(r":: Python :: 3\.\d+$", entry)}
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["tests"]
    assert pythons == set(job["strategy"]["matrix"]["python"])
    assert [entry for entry in declared if entry.startswith("Operating")] == ["Operating System :: POSIX :: Linux"]


def test_wheel_alone_in_an_empty_environment_learns_and_ranks(wheel: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    clean["RANKWISE_CACHE_DIR"] = str(tmp_path / "cache")
    uv = [sys.executable, "-m", "uv", "--offline", "--quiet"]

    def run(*command: str | Path, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)

    made = run(*uv, "venv", "--python", sys.executable, tmp_path / "empty")
    assert made.returncode == 0, made.stderr
    bin_ = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin")
    # The versions are the lock's; the wheel says which packages it needs.
    requirements = ["--constraints", ROOT / "requirements.lock", wheel]
    installed = run(*uv, "pip", "install", "--python", bin_ / "python", *requirements)
    if "network was disabled" in installed.stderr:
        pytest.skip("uv's cache does not hold the locked packages")
    assert installed.returncode == 0, installed.stderr
    rows = [f"q{query},{2 - place},{place + query / 7},{query}" for query in range(6) for place in range(3)]
    (tmp_path / "my.csv").write_text("\n".join(["qid,label,distance,query_words", *rows, ""]))
    for command in ["train", "my.csv", "--ranker", "RidgeRanker"], ["rank", "model.rankwise", "my.csv"]:
        shown = run(bin_ / "rankwise", *command)
        assert shown.returncode == 0, shown.stderr
    assert [line.split(",")[2] for line in shown.stdout.splitlines()[1:]] == ["1", "2", "3"] * 6


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
