"""The README: its table leads to pages whose first command runs, and its picture shows what the demonstration found."""

import doctest
import json
import re
import shlex

import pytest

import rankwise as rw
from tests.docs.test_docs import DOCS, ROOT
from wheels import examples, release_check

README = (ROOT / "README.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\| (an? .*|runs .*|more .*) \| .* \| \[.*\]\(docs/(\w+)\.md\) \|$", README, re.MULTILINE)


def test_the_table_has_what_people_have():
    assert [have.split()[1] for have, _ in ENTRIES] == ["CSV", "LightGBM,", "and", "click", "stream", "data"]


@pytest.mark.parametrize("page", [page for _, page in ENTRIES])
def test_the_first_command_of_the_page_runs(page, run, tmp_path, monkeypatch):
    """The first block of commands: of Python, which prints what it says, or of the shell, on a file as it names."""
    monkeypatch.chdir(tmp_path)
    kind, block = re.search(r"```(pycon|console)\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL).groups()
    if kind == "pycon":
        assert examples.run(doctest.DocTestParser().get_doctest(block, {}, page, page, 0)).failed == 0
        return
    command = shlex.split(block.splitlines()[0], comments=True)
    assert command[:2] == ["$", "rankwise"]
    rw.io.to_frame(rw.make_lists(30, documents=6, features=3, random_state=0)).to_csv("big.csv", index=False)
    code, _, error = run(*command[2:])
    assert code == 0, error


def test_the_commands_on_a_table_run_one_after_the_other(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(release_check.TABLES, {})  # writes the tables that the commands name
    commands = release_check.tour_commands(README)
    assert [words[0] for words in commands] == ["inspect", "train", "evaluate", "rank", "certify"]
    for words in commands:
        code, _, error = run(*words)
        assert code == 0, error


def test_the_picture_is_of_the_demonstration_and_its_winner_is_first():
    found = json.loads((DOCS / "demo.json").read_text(encoding="utf-8"))
    assert "docs/figures/demo.png" in README
    assert found["results"]["ranker"][0] == found["winner"] == "AutoRanker"
    assert 0 < found["at least"] < found["results"]["low"][0]
