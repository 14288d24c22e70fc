"""W21: what only draws ends no run: parts of a report are drawn one by one, and after the results are out."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from experiments.report_fuzz import run_once
from rankwise import compare
from rankwise.errors import ReportWarning
from rankwise.report import collect as collecting
from rankwise.report import figures as drawing
from rankwise.report import page
from rankwise.report.collect import collect
from rankwise.report.figures import histories
from rankwise.report.page import render, write_report
from rankwise.report.query_lists import ReportLimits, no_lists


def test_w21_folds_without_rounds_beside_folds_with_some():
    """A fit that was stopped has no rounds: they are drawn where there are any, and the others are named."""
    random = np.random.default_rng(0)
    X = random.standard_normal((12 * 6, 3))
    y = np.clip(np.round(X[:, 0] + X[:, 1] / 2 + random.standard_normal(len(X)) / 2 + 1), 0, 3)
    lists = rw.Queries.from_arrays(X, y, group=[6] * 12)
    found = compare({"smooth": rw.SmoothRank()}, lists, folds=3)
    stopped = found.models["smooth"][1]
    columns, measure, coefs = stopped._annealed_
    stopped._annealed_ = {name: column[:0] for name, column in columns.items()}, measure, coefs[:0]
    rounds = [len(model.history_) for model in found.models["smooth"]]
    assert min(rounds) == 0 < max(rounds)
    (said,) = histories(found)
    assert said["across"] == "sigma"
    assert [fold["fold"] for fold in said["folds"]] == [place for place, many in enumerate(rounds, start=1) if many]
    assert said["without"] == [place for place, many in enumerate(rounds, start=1) if not many]
    for fold in said["folds"]:
        assert len(fold["across"]) == rounds[fold["fold"] - 1]


def failing(*_, **__):
    raise RuntimeError("no such\ncolumn <b>")


SAID = "This could not be drawn: RuntimeError: no such column"
NAMES = [*collecting._SECTIONS, "lists"]


@pytest.fixture(scope="module")
def whole(comparison):
    return collect(comparison)


@pytest.fixture(scope="module")
def every(whole):
    """The names of the figures."""
    drawn, failed = drawing.figures(whole)
    assert failed == {}
    return set(drawn)


def test_w21_all_sections_fail_and_the_report_is_written(comparison, tmp_path, monkeypatch):
    """Each is one warning and one line, and none of them an error."""
    for name, (_, nothing) in list(collecting._SECTIONS.items()):
        monkeypatch.setitem(collecting._SECTIONS, name, (failing, nothing))
    monkeypatch.setattr(collecting, "query_lists", failing)
    with pytest.warns(ReportWarning) as said:
        write_report(comparison, tmp_path / "r.html", slices={"long": lambda query: len(query) > 3})
    reason = "of the report could not be drawn: RuntimeError: no such column <b>"
    assert {str(one.message) for one in said} == {f"the section {name!r} {reason}" for name in NAMES}
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count(f"{SAID} &lt;b&gt;") == len(NAMES)
    assert 'data-table="slice long"' in text


@pytest.mark.parametrize("name", NAMES)
def test_w21_a_section_that_fails_costs_no_other(comparison, whole, name):
    nothing = no_lists(ReportLimits()) if name == "lists" else collecting._SECTIONS[name][1]
    text = render({**whole, name: nothing, "failed": {name: f"{SAID} <b>"}}).decode()
    assert text.count(f"{SAID} &lt;b&gt;") == 1
    if name != "results_table":
        assert f"<strong>{comparison.means['ridge']['AP']:.4f}</strong>" in text


@pytest.mark.parametrize("name", ["cutoff", "group", "importance", "weight", "label_pair", "history"])
def test_w21_a_figure_that_fails_costs_no_other(whole, every, monkeypatch, name):
    monkeypatch.setattr(drawing, f"{name}_figure", failing)
    with pytest.warns(ReportWarning, match="the figure '.*' of the report could not be drawn"):
        drawn, failed = drawing.figures(whole)
    assert {*drawn, *failed} == every
    assert failed
    with pytest.warns(ReportWarning, match="could not be drawn"):
        text = render(whole).decode()
    assert text.count(f"{SAID} &lt;b&gt;") == len(failed)


def test_w21_an_error_of_the_page_itself_does_not_cost_the_comparison(lists, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "render", failing)
    with pytest.warns(ReportWarning, match="r.html was not written: RuntimeError: no such column"):
        found = compare({"a": lists.X[:, 0]}, lists, "AP", report=tmp_path / "r.html")
    assert found.means["a"]["AP"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", [(), ("--json",), ("--format", "markdown")])
def test_w21_results_are_out_before_anything_is_drawn(run, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    rw.write_letor(rw.make_lists(30, documents=6, features=3, random_state=2), "lists.txt")
    monkeypatch.setattr(page, "render", failing)
    command = ("compare", "lists.txt", "-r", "RidgeRanker", "-r", "AdaRank", "--folds", 3, "-o", "found.json")
    code, out, err = run(*command, "--report", "page.html", *form)
    assert code == 2
    assert "rankwise: warning: the report page.html was not written: RuntimeError: no such column <b>" in err
    assert "Traceback" not in err
    mean = json.loads(Path("found.json").read_text(encoding="utf-8"))["results"]["AdaRank"]["AP"]["mean"]
    assert f"{mean:.4f}" in out or str(mean) in out


@pytest.mark.parametrize(
    "number", [*range(3), *(pytest.param(place, marks=pytest.mark.thorough) for place in range(3, 10))]
)
def test_w21_reports_of_random_small_data_sets(number):
    """Ten runs of experiments/report_fuzz.py."""
    assert run_once(number, seed=1, rankers=2) == ("", True)
