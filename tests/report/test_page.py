"""The report as a file: one, small enough, with strangers' names as text, and refused at once where it cannot be."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import rankwise as rw
from rankwise import compare
from rankwise.errors import MissingExtraError, RankwiseError
from rankwise.report import page
from rankwise.report.collect import collect
from rankwise.report.figures import cutoff_figure, figures
from rankwise.report.page import check_report, render, write_report
from rankwise.report.query_lists import ReportLimits
from tests.report.conftest import HOSTILE, unpacked


class Read(HTMLParser):
    """Tags with their attributes, and the texts of scripts and of everything else."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.texts, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else None
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside is None:
            self.texts.append(data)


@pytest.fixture(scope="module")
def written(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(comparison, path, command="rankwise report 'a file' -o report.html")
    return path


@pytest.fixture(scope="module")
def read(written):
    return Read(written.read_text(encoding="utf-8"))


def test_names_of_strangers_are_text_and_nothing_else(read, comparison):
    assert len(read.scripts) == 2
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"img", "iframe", "object", "embed", "link", "form", "base"}
    said = unpacked(read.scripts[0])
    assert {query["qid"] for query in said["lists"]["queries"]} == set(comparison.queries.names())
    assert HOSTILE[0] in "".join(read.texts)
    assert "49" not in [text.strip() for text in read.texts]  # {{ 7*7 }} is no template here


def test_nothing_is_fetched_from_anywhere(read):
    for tag, attributes in read.tags:
        for name in ("src", "href", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    policy = next(each["content"] for tag, each in read.tags if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_every_figure_has_its_place_and_every_place_its_figure(read):
    places = [attributes["data-figure"] for _, attributes in read.tags if "data-figure" in attributes]
    assert sorted(places) == sorted(unpacked(read.scripts[0])["figures"])
    assert {"cutoffs-0", "history-0", "weights", "importance-0", "label-pairs", "groups-0"} <= set(places)


def test_figures_name_what_they_show_and_give_every_ranker_its_own_look(comparison):
    drawn, failed = figures(collect(comparison))
    assert failed == {}
    for figure in drawn.values():
        assert figure["label"]
        for one in figure.get("series", ()):
            assert len(one["x"]) == len(one["y"]) > 0
    lines = drawn["cutoffs-0"]["series"]
    assert [one["name"] for one in lines] == comparison.rankers
    many = [f"ranker {number}" for number in range(20)]
    found = {"family": "P", "k": [1, 2], "lines": {name: [0.5, 0.5] for name in many}}
    looks = [(one["color"] % 8, one["dash"], one["shape"]) for one in cutoff_figure(found, many)["series"]]
    assert len(set(looks)) == len(many)


def test_every_table_of_the_page_can_be_saved_and_holds_every_digit(read, comparison):
    named = [attributes["data-table"] for _, attributes in read.tags if "data-table" in attributes]
    said = unpacked(read.scripts[0])["tables"]
    assert set(named) <= set(said)
    assert len(named) == len(set(named)) > 5
    league = said["results AP"]
    assert league["columns"][:4] == ["ranker", "mean", "low", "high"]
    table = comparison.table("AP")
    for column, values in (("mean", table["AP"]), ("low", table["low"]), ("high", table["high"])):
        place = league["columns"].index(column)
        assert [row[place] for row in league["rows"]] == values.tolist()


def test_the_largest_part_of_a_page_is_its_numbers(written, read):
    assert written.stat().st_size - len(read.scripts[0]) < 200_000  # templates, style and scripts


def test_two_reports_of_one_comparison_are_the_same_bytes(comparison, written, tmp_path):
    write_report(comparison, tmp_path / "again.html", command="rankwise report 'a file' -o report.html")
    assert (tmp_path / "again.html").read_bytes() == written.read_bytes()


def test_a_report_of_many_long_lists_stays_below_its_limit_and_says_what_is_left_out(tmp_path, monkeypatch):
    lists = rw.make_lists(300, documents=40, features=6, random_state=0)
    found = compare({"a": lists.X[:, 0], "b": lists.X[:, 1], "c": lists.X[:, 2]}, lists, "nDCG@10")
    write_report(found, tmp_path / "whole.html")
    text = (tmp_path / "whole.html").read_text(encoding="utf-8")
    assert "The 200 queries that change most" in text
    assert "100 others count in the means and are not in this file" in " ".join(text.split())
    embedded = len(text) - len(render(collect(found, limits=ReportLimits(0, 1, 0))))
    limit = len(text) - embedded // 2
    monkeypatch.setattr(page, "LARGEST", limit)
    write_report(found, tmp_path / "less.html")
    assert (tmp_path / "less.html").stat().st_size <= limit
    assert re.search(r"The (100|50|25) queries that change most", (tmp_path / "less.html").read_text(encoding="utf-8"))


def test_real_values_many_labels_and_weights_have_a_report(tmp_path):
    random = np.random.default_rng(0)
    lists = rw.make_lists(30, documents=40, features=3, random_state=0)
    lists = lists.with_labels(random.uniform(0, 3, lists.n_documents)).with_weight(random.uniform(0.5, 2, 30))
    write_report(
        compare({"a": rw.RidgeRanker(), "b": lists.X[:, 1]}, lists, "nDCG@5", folds=3, test="t"), tmp_path / "r"
    )
    text = (tmp_path / "r").read_text(encoding="utf-8")
    assert "pairs of labels are counted for at most 32 different labels" in text
    assert "weights" in "".join(Read(text).texts)


def test_compare_writes_a_report_and_takes_what_the_other_takes(lists, tmp_path):
    found = compare({"a": lists.X[:, 0]}, lists, "AP", report=tmp_path / "report.html")
    assert found.means["a"]["AP"] > 0
    assert "Highest mean AP on the test queries: a" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ["no/where.html", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_learned(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "rankwise.evaluation.comparison.run.ComparisonRun.cells", lambda *_, **__: pytest.fail("it learned")
    )
    with pytest.raises(RankwiseError, match="cannot be written"):
        compare({}, None, report=place)
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_one_sentence_comes_first(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr(
        "rankwise.evaluation.comparison.run.ComparisonRun.cells", lambda *_, **__: pytest.fail("it learned")
    )
    with pytest.raises(MissingExtraError, match=r"pip install .*\[report\]'"):
        compare({}, None, report=tmp_path / "report.html")


def test_looking_whether_a_report_can_be_written_leaves_nothing_and_harms_nothing(tmp_path):
    check_report(tmp_path / "new.html")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.html").write_text("kept")
    check_report(tmp_path / "old.html")
    assert (tmp_path / "old.html").read_text() == "kept"


def test_a_report_that_fails_leaves_the_old_one(comparison, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("kept")
    monkeypatch.setattr(page, "render", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(comparison, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "kept"
