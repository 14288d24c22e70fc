"""What the documentation says is so: examples print it, commands and links exist, numbers are those measured."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import shlex
from importlib.metadata import distribution, version
from pathlib import Path

import pytest

import rankwise
from tests.locks import are_locked, locked
from wheels import examples

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EVERY_PAGE = sorted((ROOT / "README.md", *DOCS.glob("*.md")))
WITH_NOTEBOOKS = [*EVERY_PAGE, *sorted((DOCS / "notebooks").glob("*.md"))]
PAGES = [path for path in EVERY_PAGE if ">>>" in path.read_text() or path.name == "README.md"]
MODULES = sorted(module.name for module in pkgutil.walk_packages(rankwise.__path__, "rankwise."))


# ------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = examples.run_file(page)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if name != "rankwise.__main__"])
def test_the_examples_of_a_module_print_what_they_say(name):
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    assert sum(examples.run(one).failed for one in found) == 0


def console(page):
    """(words after ``rankwise``, what is printed below) of every such command in the page's console blocks."""
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.replace("\\\n", " "), re.MULTILINE):
            words = shlex.split(line.replace("|", " | "), comments=True)
            if "rankwise" in words:
                words = words[words.index("rankwise") + 1 :]
                yield words[: words.index("|")] if "|" in words else words, printed


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_every_command_of_a_page_exists_with_its_options(page):
    from typer.main import get_command

    from rankwise.cli import app

    known = get_command(app).commands
    for (name, *rest), _ in console(page):
        command = known[name]
        if hasattr(command, "commands"):  # a command with commands of its own
            command, rest = command.commands[rest[0]], rest[1:]
        options = {spelling for parameter in command.params for spelling in parameter.opts} | {"-h", "--help"}
        given = {word.partition("=")[0] for word in rest if re.match("-+[a-z]", word)}
        assert given <= options, f"{page.name}: rankwise {name}"


def test_the_commands_that_plan_print_what_the_page_says(run):
    commands = list(console(DOCS / "plan.md"))
    assert len(commands) == 2
    for words, printed in commands:
        code, output, _ = run(*words)
        assert (code, output.split()) == (0, printed.split())


def resolves(name):
    """Whether the name, with dots or without, is found from the top of the package."""
    found = rankwise
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            spec = importlib.util.find_spec(f"{found.__name__}.{part}") if hasattr(found, "__path__") else None
            if spec is None:
                return False
            found = importlib.import_module(spec.name)
    return True


@pytest.mark.parametrize("page", WITH_NOTEBOOKS, ids=lambda page: page.name)
def test_every_name_of_rankwise_on_a_page_is_public(page):
    named = set(re.findall(r"(?<![\w.])(?:rw|rankwise)\.((?:[A-Za-z]\w*\.)*[A-Za-z]\w*)", page.read_text()))
    assert sorted(name for name in named if not resolves(name)) == []


# ------------------------------------------------------------------------------------------- pages and figures


def test_the_front_page_leads_to_every_page():
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    entries = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    pages = [page.relative_to(DOCS) for page in (*DOCS.glob("*.md"), *DOCS.glob("notebooks/*.md"))]
    assert sorted(entries) == sorted(page.with_suffix("").as_posix() for page in pages if page.name != "index.md")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    linked = re.findall(r"\]\(([a-z_/]+\.md)", page.read_text()) + re.findall(r"figures/\w+\.png", page.read_text())
    assert [place for place in linked if not (DOCS / place).exists()] == []


@pytest.mark.parametrize("figure", sorted((DOCS / "figures").glob("*.png")), ids=lambda figure: figure.name)
def test_a_figure_is_on_a_page(figure):
    assert any(f"figures/{figure.name}" in page.read_text() for page in EVERY_PAGE)


def rows_of(page):
    """The rows of a page's tables, without those of heads and the rules below them."""
    lines = page.read_text().splitlines()
    heads = {number for number, line in enumerate(lines[1:]) if re.fullmatch(r"\|[-| :]+\|", line)}
    return {line for number, line in enumerate(lines) if re.match(r"\| .*\w.*\|$", line) and number not in heads}


def test_no_page_repeats_the_table_of_another():
    owner, repeated = {}, []
    for page in EVERY_PAGE:
        repeated += [(owner[row], page.name, row) for row in rows_of(page) if row in owner]
        owner |= dict.fromkeys(rows_of(page), page.name)
    assert len(owner) > 1_000
    assert repeated == []


# ------------------------------------------------------------------------------------------- numbers


def table_of(page, part):
    """The rows of the table between ``<!-- part: ... -->`` and ``<!-- end of part -->``, header and rule left out."""
    found = re.search(rf"<!-- {part}: .*?-->\n(.*?)<!-- end of {part} -->", (DOCS / page).read_text(), re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in found[1].splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]


# ------------------------------------------------------------------------------------------- licenses


def declared_license(package):
    """Everything that an installed package says about its license in its metadata."""
    facts = distribution(package).metadata
    said = [facts.get("License-Expression") or "", facts.get("License") or ""]
    return " ".join(said + [line for line in facts.get_all("Classifier") or [] if line.startswith("License")])


def is_declared(license, package):
    """Whether the first word of a stated license, such as BSD of BSD-3-Clause, is what the package declares."""
    family = {"PSF-2.0": "PSF", "PSF-like": "Python Software Foundation"}.get(license.split()[0].rstrip(","))
    family = family or re.match(r"[A-Za-z]+", license)[0]
    return re.search(rf"\b{family}\b", declared_license(package)) is not None  # a whole word: licenses are "limited"


def required(section):
    """The packages that a list of requirements in pyproject.toml names."""
    return [re.match(r"[\w-]+", requirement)[0] for requirement in section]


def project():
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


of_the_lock = pytest.mark.skipif(
    not are_locked(*required(project()["dependencies"])),
    reason="the page is about the locked versions; others are installed",
)


@of_the_lock
def test_the_licenses_of_core_dependencies_are_those_that_they_declare():
    rows = table_of("install.md", "core")
    assert [row[0] for row in rows] == sorted(required(project()["dependencies"]))
    for package, versions, license, permissive in rows:
        assert re.findall(r"[\d.]*\d(?=,|$| \()", versions) == locked(package), package
        assert version(package) in locked(package)
        assert is_declared(license, package), package
        assert permissive == "yes"


@of_the_lock
def test_the_licenses_of_extras_are_those_that_they_declare():
    rows = table_of("install.md", "extras")
    extras = {name: sorted(required(section)) for name, section in project()["optional-dependencies"].items()}
    assert {name: sorted(row[1] for row in rows if row[0] == name) for name in extras} == extras
    for extra, package, stated, license, permissive in rows:
        assert permissive == "yes"
        if extra == "torch":  # which is not installed with the others
            assert stated == "not locked"
            assert locked(package) == []
            continue
        assert [stated] == locked(package), package
        assert is_declared(license, package), package


@of_the_lock
def test_what_core_dependencies_bring_along_is_listed_with_the_license_that_it_declares():
    rows = {package: license for package, license, _ in table_of("install.md", "along")}
    core, reached = required(project()["dependencies"]), set()
    waiting = list(core)
    while waiting:
        requirements = distribution(waiting.pop()).requires or []
        always = {name.lower().replace("_", "-") for name in required(r for r in requirements if ";" not in r)}
        waiting += sorted(always - reached)
        reached |= always
    assert reached - set(core) <= set(rows)
    assert [package for package in rows if not is_declared(rows[package], package)] == []
