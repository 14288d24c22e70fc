"""What has to hold before a release: ``python3 run.py release-check``.

The source distribution is built from the checkout and the wheel from the source distribution, as package indices and
distributors do. Both are installed into fresh environments outside of the checkout, with no more than they declare, and
put through the tour of the README there. Every step is one line; the first that fails ends the check with its output.
"""

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wheels.metadata_hook import absolute_links

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
WINDOWS = os.name == "nt"
# PyTorch weighs gigabytes; the tests that need it are skipped without it.
LEFT_OUT = {"torch"}
# Tools of the tests that the oldest versions cannot know: ColumnTransformer of scikit-learn 1.8 takes no newer polars.
OF_THAT_TIME = ["polars<2"]
# Variables that would lead a fresh environment back to the checkout or to another environment.
FOREIGN = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"}

# The README's commands read these files. CSV is written without pandas, which a core installation lacks.
TABLES = """
import csv
import rankwise as rw

queries = rw.make_lists(150, documents=(5, 30), features=6, random_state=5)
for name, part in zip(("my", "my_test"), rw.split(queries, (0.8, 0.2), random_state=0)):
    names = part.names()
    with open(f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["query", "url", "grade", *part.feature_names])
        for row in range(part.n_documents):
            cells = [names[part.query_of_row[row]], part.docid[row], part.y[row], *part.X[row].tolist()]
            table.writerow(cells)
"""


class CheckFailed(Exception):  # noqa: N818  a sentence to the person who releases
    """The release is not ready, for the reason that the text gives."""


# ------------------------------------------------------------------------------------------------------------- steps


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say in one line what is checked, and that it held."""
    began = time.monotonic()
    try:
        yield
    except CheckFailed:
        print(f"FAILED  {title}", flush=True)
        raise
    print(f"ok      {title} ({time.monotonic() - began:.0f} s)", flush=True)


def run(command: Sequence[Any], **options: Any) -> str:
    """Run a command; what it prints, or :class:`CheckFailed` with it."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options
    )
    if done.returncode:
        raise CheckFailed(f"{done.stdout}\nexit code {done.returncode}: {shlex.join(words)}")
    return done.stdout


def uv(*arguments: Any, **options: Any) -> str:
    """Run the installer."""
    return run([sys.executable, "-m", "uv", *arguments], **options)


def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def repository() -> str:
    """The address of the repository, or its placeholder."""
    return str(project()["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"])


def extras() -> list[str]:
    """The extras that are tried."""
    return sorted(set(project()["project"]["optional-dependencies"]) - LEFT_OUT)


# -------------------------------------------------------------------------------------------- what a release is called


def version_of_sources() -> str:
    """The version that the sources state."""
    text = (ROOT / project()["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def check_address(address: str) -> None:
    """Refuse the placeholder: the names example.* belong to nobody (RFC 2606)."""
    host = urlsplit(address).hostname or ""
    if re.search(r"(^|\.)example(\.(com|net|org))?$", host):
        raise CheckFailed(
            f"pyproject.toml: the repository is the placeholder {address}: "
            "write the true address into [tool.hatch.metadata.hooks.custom]"
        )


def check_tag(tag: str, version: str) -> None:
    """Refuse a tag that is not that of the version."""
    if tag != f"v{version}":
        raise CheckFailed(f"the tag is {tag}, and the sources are version {version}: expected v{version}")


def check_citation(citation: str, changelog: str, version: str) -> None:
    """Refuse a citation of another version or date than those of the changelog."""
    stated = dict(re.findall(r"^(version|date-released): (.+)$", citation, re.MULTILINE))
    heading = f"\n## {version} ({stated.get('date-released')})\n"
    if stated.get("version") != version or heading not in changelog:
        raise CheckFailed(f"CITATION.cff must state version {version} and the date of its section of CHANGELOG.md")


def release_notes(changelog: str, version: str) -> str:
    """The section of the changelog about one version.

    Parameters
    ----------
    changelog : str
        The text of the changelog.
    version : str
        The version.

    Returns
    -------
    notes : str
        What stands below the heading ``## VERSION (YYYY-MM-DD)``.

    Raises
    ------
    CheckFailed
        If there is no such heading, nothing below it, or something left under "Unreleased".
    """
    sections = re.split(r"^## (.+)$", changelog, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], (text.strip() for text in sections[2::2]), strict=True))
    if found.get("Unreleased"):
        raise CheckFailed(f"CHANGELOG.md has changes under Unreleased: move them to the section of {version}")
    for heading, text in found.items():
        if re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading) and text:
            return text
    raise CheckFailed(f"CHANGELOG.md has no text under a heading '## {version} (YYYY-MM-DD)'")


# ------------------------------------------------------------------------------------------------------ distributions


def build(folder: Path) -> None:
    """Build the source distribution from the checkout, and the wheel from the source distribution."""
    for old in (*folder.glob("rankwise-*.tar.gz"), *folder.glob("rankwise-*-py3-none-any.whl")):
        old.unlink()
    hatchling = [sys.executable, "-m", "hatchling", "build", "--directory", folder]
    run([*hatchling, "--target", "sdist"], cwd=ROOT)
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(sdist_in(folder)) as archive:
            archive.extractall(place, filter="data")
        (tree,) = Path(place).iterdir()
        run([*hatchling, "--target", "wheel"], cwd=tree)


def sdist_in(folder: Path) -> Path:
    """The one source distribution of a folder."""
    return _only(folder, "rankwise-*.tar.gz")


def wheel_in(folder: Path) -> Path:
    """The one pure wheel of a folder."""
    return _only(folder, "rankwise-*-py3-none-any.whl")


def packed_wheel_in(folder: Path) -> Path | None:
    """The wheel with compiled kernels for this machine, which installers prefer; None if the folder has none."""
    if sys.platform != "linux":
        return None
    return next(iter(sorted(folder.glob(f"rankwise-*-manylinux*_{platform.machine()}.whl"))), None)


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise CheckFailed(f"{folder} holds {len(found)} files {pattern}, and one is expected")
    return found[0]


def check_contents(folder: Path) -> None:
    """The wheel holds the package of the checkout and nothing else."""
    package = ROOT / "src" / "rankwise"
    own = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and not {"__pycache__", "packs"} & set(path.parts)
    }
    with zipfile.ZipFile(wheel_in(folder)) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    if files != own:
        raise CheckFailed(f"the wheel and src/rankwise differ in {', '.join(sorted(files ^ own))}")


def check_metadata(folder: Path) -> None:
    """Package indices take the metadata and render the description; every wheel of the folder counts."""
    files = [sdist_in(folder), *sorted(folder.glob("rankwise-*.whl"))]
    run([sys.executable, "-m", "twine", "check", "--strict", *files])


# -------------------------------------------------------------------------------------------------- fresh environments


@dataclass
class Fresh:
    """An environment of its own in a temporary folder, outside of the checkout.

    Attributes
    ----------
    folder : Path
        The temporary folder.
    interpreter : str
        The Python: a version, such as 3.12, or a path.
    variables : dict of str to str
        The variables of every process in it.
    work : Path
        Where its processes run.
    """

    folder: Path
    interpreter: str
    variables: dict[str, str] = field(init=False)
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        self.work = self.folder
        self.variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.variables["COLUMNS"] = "120"
        self.scripts = self.folder / "env" / ("Scripts" if WINDOWS else "bin")
        self.python = self.scripts / ("python.exe" if WINDOWS else "python")
        uv("venv", "--quiet", "--no-python-downloads", "--python", self.interpreter, self.folder / "env")

    def begin(self) -> None:
        """Go on in an empty folder."""
        self.work = Path(tempfile.mkdtemp(dir=self.folder))

    def install(self, *arguments: Any) -> None:
        """Install what the arguments of ``uv pip install`` name."""
        uv("pip", "install", "--quiet", "--python", self.python, *arguments, cwd=self.folder)

    def check(self) -> None:
        """Nothing that is installed lacks, or contradicts, what another package needs."""
        uv("pip", "check", "--quiet", "--python", self.python)

    def call(self, *arguments: Any, cwd: Path | None = None) -> str:
        """Run the environment's interpreter."""
        return run([self.python, *arguments], cwd=cwd or self.work, env=self.variables)

    def tests(self, *arguments: Any) -> None:
        """Run the tests of the checkout on what is installed; they take long, and show what they do."""
        options = ["-q", "--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]
        words = [str(word) for word in (self.python, "-m", "pytest", *options, *(arguments or ("tests", "tests/docs")))]
        variables = {**self.variables, "PYTHONDONTWRITEBYTECODE": ""}  # they start many interpreters
        if subprocess.run(words, cwd=ROOT, env=variables, check=False).returncode:
            raise CheckFailed("the tests failed, as is printed above")

    def rankwise(self, *arguments: Any) -> str:
        """Run the installed command."""
        return run([self.scripts / "rankwise", *arguments], cwd=self.work, env=self.variables)


@contextmanager
def fresh(interpreter: str) -> Iterator[Fresh]:
    """A fresh environment, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="rankwise-release-", ignore_cleanup_errors=True) as folder:
        yield Fresh(Path(folder), interpreter)


def lowest(interpreter: str, folder: Path) -> Path:
    """A file of constraints: the oldest versions of direct dependencies and extras that pyproject.toml allows.

    ``uv pip install --resolution lowest-direct some.whl`` would lower the wheel alone, and not what the wheel needs.
    """
    path = folder / "lowest.txt"
    chosen = [word for name in extras() for word in ("--extra", name)]
    uv(
        *("pip", "compile", "--quiet", "--no-header", "--no-annotate", "--resolution", "lowest-direct"),
        *("--python", interpreter, "--no-python-downloads", *chosen, ROOT / "pyproject.toml", "--output-file", path),
    )
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"{limit}\n" for limit in OF_THAT_TIME)
    return path


# --------------------------------------------------------------------------------------------------------------- tour


def tour_commands(readme: str) -> list[list[str]]:
    """The words of every ``rankwise`` command in the README's block that begins with a CSV file."""
    for block in re.findall(r"```console\n(.*?)```", readme, re.DOTALL):
        if block.startswith("$ rankwise inspect my.csv"):
            return [shlex.split(line, comments=True)[2:] for line in block.splitlines() if line.startswith("$ ")]
    raise CheckFailed("README.md has no block of commands that begins with `$ rankwise inspect my.csv`")


def tour(place: Fresh) -> None:
    """The README, from the installed package: its Python examples, then its commands on a CSV file."""
    place.begin()
    for path in (ROOT / "README.md", ROOT / "wheels" / "examples.py"):
        shutil.copy(path, place.work)
    if "rankwise-release-" not in place.call("-c", "import rankwise; print(rankwise.__file__)"):
        raise CheckFailed("rankwise was not imported from the fresh environment")
    place.call("examples.py", "README.md")
    place.call("-c", TABLES)
    commands = tour_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    printed = {words[0]: place.rankwise(*words) for words in commands}
    for command, expected in {
        "inspect": "120 queries, 1,668 documents, 6 features",
        "train": "certified: nDCG@10 on future queries",
        "evaluate": "nDCG@10",
        "rank": "qid,docid,rank,score",
        "certify": "1 - nDCG@10 on future queries",
    }.items():
        if expected not in printed[command]:
            raise CheckFailed(f"rankwise {command} does not say {expected!r}, but:\n{printed[command]}")


def demonstration(place: Fresh) -> None:
    """What needs extras: the demonstration with its report, a report of one's own, an export, the service."""
    place.begin()
    place.rankwise("demo", "--queries", 60, "--out", "demo")
    place.call("-c", TABLES)
    columns = ("--qid", "query", "--label", "grade", "--docid", "url")
    place.rankwise("report", "my.csv", *columns, "-r", "RidgeRanker", "-o", "report.html")
    for page in ("demo/rankwise-demo.html", "report.html"):
        text = (place.work / page).read_text(encoding="utf-8")
        if "</html>" not in text or re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?http", text):
            raise CheckFailed(f"{page} is not one complete page that needs no network")
    place.rankwise("train", "my.csv", *columns, "-r", "RidgeRanker")
    place.rankwise("certify", "model.rankwise", "--holdout", "my_test.csv", *columns)
    place.rankwise("export", "model.rankwise", "--to", "onnx", "--sample", "my_test.csv", *columns, "-o", "exported")
    place.rankwise("serve", "--demo", "--port", 0, "--seconds", 3)


# --------------------------------------------------------------------------------------------------------- whole check


def check_python(interpreter: str, folder: Path, given: argparse.Namespace) -> str:
    """Everything that depends on the interpreter; returns its name."""
    wheel, every = wheel_in(folder), f"[{','.join(extras())}]"
    with fresh(interpreter) as place:
        called = place.call("-c", "import platform as p; print(p.python_implementation(), p.python_version())").strip()
        limits = _limits(place, given)
        with step(f"{called}: the wheel alone installs, and pip check finds nothing"):
            place.install(wheel, *limits)
            place.check()
        with step(f"{called}: the wheel alone runs the tour of the README"):
            tour(place)
        if not given.without_extras:
            with step(f"{called}: the wheel with its extras installs, and pip check finds nothing"):
                place.install(f"{wheel}{every}", *limits)
                place.check()
            with step(f"{called}: with its extras it runs the tour, the demonstration, the report and the service"):
                tour(place)
                demonstration(place)
        if given.tests is not None:
            with step(f"{called}: the tests run on the wheel"):
                place.install(f"{wheel}{every}", "--group", ROOT / "pyproject.toml:dev", *limits)
                place.tests(*given.tests)
    packed = packed_wheel_in(folder) if given.dist else None  # what is built here has no kernels
    if packed and not (given.lowest or given.prerelease):  # kernels are for the locked numba
        with fresh(interpreter) as place, step(f"{called}: the wheel with kernels compiles nothing, and runs the tour"):
            place.variables["RANKWISE_CACHE_DIR"] = str(place.folder / "cache")
            place.install(packed)
            place.check()
            place.rankwise("warm", "--check")
            tour(place)
    with fresh(interpreter) as place, step(f"{called}: the source distribution installs and runs the tour"):
        place.install(sdist_in(folder), *_limits(place, given))
        place.check()
        tour(place)
    return called


def not_tried(tried: Sequence[str]) -> list[str]:
    """The Pythons that pyproject.toml declares and of which none was tried."""
    named = re.findall(
        r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(project()["project"]["classifiers"]), re.M
    )
    return [version for version in named if not any(f" {version}." in f"{one}." for one in tried)]


def _limits(place: Fresh, given: argparse.Namespace) -> list[Any]:
    """The options of the installer that decide between old, new and coming versions."""
    if given.lowest:
        return ["--constraints", lowest(place.interpreter, place.folder)]
    return ["--prerelease", "allow"] if given.prerelease else []


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="run.py release-check", description=__doc__.splitlines()[0])
    parser.add_argument("--tag", help="also check that this tag, the changelog and the address are those of a release")
    parser.add_argument("--notes", type=Path, help="with --tag: write the changelog's section about the version here")
    parser.add_argument("--dist", type=Path, help="check the distributions of this folder in place of building them")
    parser.add_argument("--only-build", action="store_true", help="stop before anything is installed")
    parser.add_argument(
        "--python", action="append", help="an interpreter, as a version or a path; several by repeating it"
    )
    parser.add_argument("--lowest", action="store_true", help="install the oldest versions that are allowed")
    parser.add_argument("--prerelease", action="store_true", help="install versions that are not released yet")
    parser.add_argument(
        "--tests", nargs="*", help="also run the tests, or those that are named, on the installed wheel"
    )
    parser.add_argument(
        "--without-extras", action="store_true", help="try the wheel alone, on a Python that extras have no wheels for"
    )
    given = parser.parse_args(arguments)
    if given.without_extras and given.tests is not None:
        parser.error("--tests need the extras")
    if given.notes and not given.tag:
        parser.error("--notes needs --tag")
    if given.lowest and given.prerelease:
        parser.error("--lowest and --prerelease exclude each other")
    return given


def check(given: argparse.Namespace) -> None:
    """Run every step.

    Parameters
    ----------
    given : argparse.Namespace
        The options.

    Raises
    ------
    CheckFailed
        At the first step that fails.
    """
    if given.tag:
        version = version_of_sources()
        with step(f"{given.tag} is the tag of the sources, and the changelog and the address are those of a release"):
            check_tag(given.tag, version)
            changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
            notes = release_notes(changelog, version)
            check_citation((ROOT / "CITATION.cff").read_text(encoding="utf-8"), changelog, version)
            check_address(repository())
        if given.notes:  # a page of their own, beside which there are no files
            linked = absolute_links(notes, repository().rstrip("/"), given.tag)
            given.notes.write_text(f"{linked}\n", encoding="utf-8")
    folder = given.dist.resolve() if given.dist else DIST
    if not given.dist:
        with step("the source distribution is built from the checkout, the wheel from the source distribution"):
            build(folder)
    with step("the wheel holds the package and nothing else"):
        check_contents(folder)
    with step("twine check --strict takes both"):
        check_metadata(folder)
    if given.only_build:
        return
    tried = [check_python(interpreter, folder, given) for interpreter in given.python or [sys.executable]]
    rest = not_tried(tried)
    print(
        f"ready on {', '.join(tried)}" + (f"; declared, and not tried here: Python {', '.join(rest)}" if rest else "")
    )


def main(arguments: Sequence[str]) -> int:
    """Check; 1 if the release is not ready."""
    try:
        check(parse(arguments))
    except CheckFailed as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
