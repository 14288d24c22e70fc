"""What a release is called and what is tried before it: tags, notes, addresses, examples, workflows."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
import yaml

import run
from wheels import examples, release_check
from wheels.release_check import CheckFailed

ROOT = Path(__file__).parents[2]

CHANGELOG = """# Changelog

## Unreleased

## 1.2.0 (2026-11-20)

### Added

- A thing.

## 1.1.0 (2026-10-01)

- Another.
"""


# ------------------------------------------------------------------------------------------------- before a release


def test_notes_of_a_release_are_its_section_of_the_changelog():
    assert release_check.release_notes(CHANGELOG, "1.2.0") == "### Added\n\n- A thing."
    assert release_check.release_notes(CHANGELOG, "1.1.0") == "- Another."


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        (CHANGELOG.replace("## Unreleased", "## Unreleased\n\n- Not yet."), "has changes under Unreleased"),
        (CHANGELOG.replace("1.2.0 (2026-11-20)", "1.2.0 (unreleased)"), r"no text under a heading '## 1\.2\.0 "),
        (CHANGELOG.replace("### Added\n\n- A thing.", ""), r"no text under a heading '## 1\.2\.0 "),
        (CHANGELOG.replace("1.2.0", "1x2.0"), r"no text under a heading '## 1\.2\.0 "),
    ],
)
def test_a_changelog_that_is_not_ready_is_refused(changelog, said):
    with pytest.raises(CheckFailed, match=said):
        release_check.release_notes(changelog, "1.2.0")


@pytest.mark.parametrize("citation", ["", "version: 1.1.0\ndate-released: 2026-10-01\n", "version: 1.2.0\n"])
def test_a_citation_of_another_version_or_day_is_refused(citation):
    release_check.check_citation("title: a\nversion: 1.2.0\ndate-released: 2026-11-20\n", CHANGELOG, "1.2.0")
    with pytest.raises(CheckFailed, match=r"CITATION\.cff must state version 1\.2\.0"):
        release_check.check_citation(citation, CHANGELOG, "1.2.0")


def test_the_checkout_states_one_version():
    version = release_check.version_of_sources()
    changelog, citation = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    release_check.check_citation(citation, changelog, version)
    assert f'"version": "{version}"' in (ROOT / "docs" / "versions.json").read_text(encoding="utf-8")


def test_pythons_that_are_declared_and_not_tried_are_named(monkeypatch):
    assert release_check.not_tried(["CPython 3.11.7", "CPython 3.12.1", "CPython 3.13.0"]) == ["3.14"]
    assert release_check.not_tried(["CPython 3.1.0"]) == ["3.11", "3.12", "3.13", "3.14"]


def test_a_tag_of_another_version_is_refused():
    release_check.check_tag("v1.2.0", "1.2.0")
    for tag in ("1.2.0", "v1.2", "v1.2.1"):
        with pytest.raises(CheckFailed, match=f"the tag is {re.escape(tag)}, and the sources are version 1.2.0"):
            release_check.check_tag(tag, "1.2.0")


@pytest.mark.parametrize("address", ["https://example.org/rankwise", "https://git.example.com/a", "https://example/a"])
def test_a_placeholder_is_no_address_to_publish(address):
    with pytest.raises(CheckFailed, match="placeholder"):
        release_check.check_address(address)


def test_other_addresses_may_be_published():
    release_check.check_address("https://forge.invalid/counterexample/rankwise")


def test_links_of_the_notes_lead_into_the_repository(tmp_path, monkeypatch):
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("A thing.", "A [thing](docs/thing.md#part)."))
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\ndate-released: 2026-11-20\n")
    for name, found in (("version_of_sources", "1.2.0"), ("repository", "https://forge.invalid/a/")):
        monkeypatch.setattr(release_check, name, lambda found=found: found)
    for name in ("build", "check_contents", "check_metadata"):
        monkeypatch.setattr(release_check, name, lambda folder: None)
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    assert release_check.main(["--tag", "v1.2.0", "--notes", str(tmp_path / "notes.md"), "--only-build"]) == 0
    link = "[thing](https://forge.invalid/a/blob/v1.2.0/docs/thing.md#part)"
    assert (tmp_path / "notes.md").read_text() == f"### Added\n\n- A {link}.\n"


@pytest.mark.skipif(release_check.sys.platform != "linux", reason="compiled kernels are for Linux")
def test_the_wheel_with_kernels_is_that_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(release_check.platform, "machine", lambda: "aarch64")
    for machine in ("none-any", "none-manylinux_2_28_x86_64"):
        (tmp_path / f"rankwise-1.2.0-py3-{machine}.whl").touch()
    assert release_check.packed_wheel_in(tmp_path) is None
    own = tmp_path / "rankwise-1.2.0-py3-none-manylinux_2_28_aarch64.whl"
    own.touch()
    assert release_check.packed_wheel_in(tmp_path) == own


def test_tests_are_not_run_without_extras(capsys):
    with pytest.raises(SystemExit, match="2"):
        release_check.main(["--without-extras", "--tests"])
    assert "--tests need the extras" in capsys.readouterr().err


def test_a_failed_step_ends_the_check_with_its_output(capsys):
    with pytest.raises(CheckFailed, match=r"(?s)no such thing.*exit code 3"), release_check.step("a thing is there"):
        release_check.run([release_check.sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"])
    assert capsys.readouterr().out == "FAILED  a thing is there\n"


def test_the_tour_of_the_readme_goes_from_a_table_to_a_certificate():
    commands = release_check.tour_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [words[0] for words in commands] == ["inspect", "train", "evaluate", "rank", "certify"]


# -------------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("{'AP': 0.7015545238641345}", True),
        ("{'AP': 0.7015545238641346}", True),
        ("{'AP':  0.7015545238641341}", True),
        ("{'AP': 0.7015545238741345}", False),
        ("{'RR': 0.7015545238641346}", False),
        ("{'AP': 0.7016}", False),
        ("{'AP': 0.7015545238641345, 'RR': 0.7015545238641345}", False),
    ],
)
def test_examples_agree_up_to_the_last_digits(printed, same):
    checker = examples.UpToRounding()
    assert checker.check_output("{'AP': 0.7015545238641345}\n", f"{printed}\n", examples.OPTIONS) == same


def test_short_numbers_in_examples_are_exact():
    assert not examples.UpToRounding().check_output("0.7016\n", "0.7017\n", doctest.NORMALIZE_WHITESPACE)


def test_a_document_whose_example_is_wrong_fails(tmp_path, capsys):
    (tmp_path / "page.md").write_text(">>> 0.1 + 0.2\n0.30000000000000009\n>>> 1 + 1\n3\n")
    result = examples.run_file(tmp_path / "page.md")
    assert (result.failed, result.attempted) == (1, 2)
    assert "1 + 1" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------- workflows

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def steps(path):
    return [step for job in jobs(path).values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit_and_names_its_version(path):
    lines = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+)+", line)] == []


def test_an_action_has_one_commit_in_all_workflows():
    pins = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))}
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_tasks_and_options_that_exist(path):
    commands = [step["run"] for step in steps(path) if "run.py" in step.get("run", "")]
    assert commands
    for command in commands:
        python, script, task, *options = shlex.split(command)
        assert re.fullmatch(r"python(3\.\d+)?", python)
        assert script == "run.py"
        assert task in run.TASKS
        if task == "release-check":
            release_check.parse(options)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_may_read_and_no_more_unless_they_say_why_and_end_in_time(path):
    text = path.read_text(encoding="utf-8")
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert not [line for line in text.splitlines() if ": write" in line and "#" not in line]
    assert all(job["timeout-minutes"] for job in jobs(path).values())
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
