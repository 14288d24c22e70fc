"""The source distribution and the wheel: what they hold, what their metadata says, and that the wheel works alone."""

import os
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

ROOT = Path(__file__).parents[2]


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
