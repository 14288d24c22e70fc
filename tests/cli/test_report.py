"""``rankwise report``: a comparison from the shell whose result is one HTML file."""

import json
import sys
from pathlib import Path

import pytest
import typer

import rankwise as rw
from rankwise import cli
from rankwise.cli.compare import compare as compare_command
from rankwise.cli.compare import report

QUICK = ("-r", "RidgeRanker", "-r", "ada-rank", "--folds", 3)


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """In a folder of its own, with the command at hand wherever it is registered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    app = typer.Typer()
    app.command("report")(report)
    app.command("compare")(compare_command)
    monkeypatch.setattr(cli, "app", app)
    rw.write_letor(rw.make_lists(30, documents=6, features=3, random_state=2), tmp_path / "lists.txt")
    return run


def finished(folder):
    """What a folder of finished parts holds, and since when."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_the_report_holds_the_command_and_the_numbers_of_compare(run):
    code, out, err = run(
        "report", "lists.txt", *QUICK, "-o", "a page.html", "--results", "found.json", "--resume", "cells"
    )
    assert (code, err) == (0, "")
    assert "report: a page.html" in out
    page = Path("a page.html").read_text(encoding="utf-8")
    assert "rankwise report lists.txt -r RidgeRanker -r ada-rank --folds 3 -o &#39;a page.html&#39;" in page
    found = json.loads(Path("found.json").read_text(encoding="utf-8"))
    mean = found["results"]["ada-rank"]["AP"]["mean"]
    assert f"<strong>{mean:.4f}</strong>" in page

    learned = finished(Path("cells"))
    code, _, _ = run("compare", "lists.txt", *QUICK, "--resume", "cells", "--report", "second.html")
    assert code == 0
    assert finished(Path("cells")) == learned
    second = Path("second.html").read_text(encoding="utf-8")
    command = "rankwise compare lists.txt -r RidgeRanker -r ada-rank --folds 3 --resume cells --report second.html"
    first_line, second_line = (text[text.index("<pre>") : text.index("</pre>")] for text in (page, second))
    assert second_line == f"<pre>{command}"
    assert page.replace(first_line, "") == second.replace(second_line, "")


def test_titles_texts_and_slices_come_from_tables(run, tmp_path):
    lists = rw.read_letor("lists.txt")
    names = list(lists.names())
    documents = "".join(f"{one},Title {place}\n" for place, one in enumerate(lists.docid))
    texts = "".join(f"{one},some words,{one in names[:9]}\n" for one in names)
    Path("titles.csv").write_text(f"docid,name\n{documents}")
    Path("texts.csv").write_text(f"qid,words,kind\n{texts}")
    given = ("--documents", "titles.csv", "--title", "name", "--queries", "texts.csv", "--slice", "kind")
    code, _, err = run("report", "lists.txt", *QUICK, "-o", "page.html", *given)
    assert (code, err) == (0, "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert 'data-table="slice kind"' in page
    assert "True" in page


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("lists.txt", *QUICK, "--title", "a"), "--title requires --documents"),
        (("lists.txt", *QUICK, "--slice", "a"), "--slice requires --queries"),
        (("lists.txt", *QUICK, "--documents", "none.csv"), "none.csv"),
        (("lists.txt", *QUICK, "-o", "no/where.html"), "no/where.html cannot be written"),
        (("lists.txt", *QUICK, "-o", "."), "it is a folder"),
        (("nowhere.txt", *QUICK), "nowhere.txt"),
        (("lists.txt", "-r", "nonsense"), "no ranker is called 'nonsense'"),
    ],
)
def test_nonsense_is_one_sentence_and_leaves_nothing(run, tmp_path, arguments, complaint):
    code, out, err = run("report", *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["lists.txt"]


def test_without_the_extra_the_sentence_comes_before_the_data_are_read(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = run("report", "nowhere.txt", *QUICK)
    assert code == 2
    assert "[report]'" in err


def test_every_option_of_compare_is_one_of_report(run):
    _, shown, _ = run("report", "--help")
    for option in (
        "--ranker",
        "--measure",
        "--folds",
        "--baseline",
        "--resume",
        "--like",
        "--ties",
        "--seed",
        "--jobs",
    ):
        assert option in shown
    assert "--report" not in shown
