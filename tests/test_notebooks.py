"""What notebooks show: everything public as a short HTML of one style, with strangers' names escaped; plots; bars."""

import importlib
import inspect
import re
from html.parser import HTMLParser

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import rankwise as rw
from rankwise._tables import Table
from rankwise.errors import DataError

HOSTILE = "<script>alert(1)</script>"
LISTS = rw.make_lists(40, documents=20, features=12, random_state=1)
NAMED = LISTS._replace(feature_names=(HOSTILE, *LISTS.feature_names[1:]))
PACKAGES = (
    "analysis",
    "clicks",
    "evaluation",
    "exports",
    "features",
    "guarantees",
    "io",
    "losses",
    "measures",
    "sklearn",
    "synthetic",
)

# Public classes without HTML of their own, and why.
REASONS = {
    "Target": "an export format, which users subclass and never hold",
}


def public_classes() -> dict[str, type]:
    """Every public class, and every class of the package that a public function says it returns."""
    found: dict[str, type] = {}
    known: dict[str, type] = {}
    functions = []
    for module in (rw, *(importlib.import_module(f"rankwise.{name}") for name in PACKAGES)):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if inspect.isclass(value):
                found[name] = value
            elif inspect.isfunction(value):
                functions.append(value)
    for function in functions:
        known |= {name: one for name, one in vars(inspect.getmodule(function)).items() if inspect.isclass(one)}
    for function in functions:
        said = str(inspect.signature(function).return_annotation)
        for name in re.findall(r"\w+", said):
            if name in known and known[name].__module__.startswith("rankwise"):
                found[name] = known[name]
    return {name: one for name, one in found.items() if not issubclass(one, (Exception, np.ndarray))}


def test_everything_public_has_html():
    classes = public_classes()
    assert {"Queries", "Evaluation", "Certificate", "Bound", "ClickValue", "PairedTest", "Table", "Run"} <= set(classes)
    without = {name for name, one in classes.items() if not hasattr(one, "_repr_html_")}
    assert without == set(REASONS)


class Balanced(HTMLParser):
    """Which tags are open at the end, and which tags there are."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("br", "progress"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "progress":
            assert self.open.pop() == tag


def fitted():
    return rw.RidgeRanker(alpha=1.0).fit(NAMED)


def clicked():
    """A log, position models, and what a ranking is worth by them."""
    log = rw.clicks.simulate(LISTS, LISTS.X[:, 0], 300)
    model = rw.clicks.given(1 / np.arange(1, log.depth + 1))
    return log, model, rw.clicks.value(log, LISTS.X[:, 0], model, tau=0.1)


SHOWN = {
    "Queries": lambda: NAMED,
    "Query": lambda: NAMED[3],
    "QueryBrowser": lambda: NAMED.browse(),
    "Scorer": lambda: rw.Scorer(fitted()),
    "Export": lambda: rw.export(fitted(), "python", sample=NAMED),
    "Parity": lambda: rw.export(fitted(), "python", sample=NAMED).parity,
    "Evaluation": lambda: rw.evaluate(NAMED, NAMED.X[:, 0], ["nDCG@10", "AP"]),
    "significance": lambda: rw.significance({HOSTILE: {"AP": [0.1, 0.2]}, "b": {"AP": [0.3, 0.1]}}),
    "PairedTest": lambda: rw.evaluation.paired_test([0.1, 0.2], [0.2, 0.4]),
    "Comparison": lambda: rw.compare({HOSTILE: NAMED.X[:, 0]}, NAMED, "AP"),
    "Certificate": lambda: fitted().certificate(NAMED),
    "Bound": lambda: fitted().certificate(NAMED).rows[0],
    "Precondition": lambda: fitted().certificate(NAMED).rows[0].preconditions[0],
    "Interval": lambda: rw.guarantees.mean_interval(np.linspace(0, 1, 50)),
    "OnlineRounds": lambda: rw.OnlineRounds(rw.SLAMPerceptron().fit(NAMED)),
    "Ledger": lambda: rw.SLAMPerceptron().fit(NAMED).ledger_,
    "history": lambda: rw.AdaRank(rounds=3).fit(NAMED).history_,
    "Diagnosis": lambda: rw.diagnose(NAMED),
    "Finding": lambda: rw.diagnose(NAMED).findings[0],
    "Explanation": lambda: rw.explain(fitted(), NAMED[0], 0, 1),
    "Measure": lambda: rw.measures.parse("nDCG@10"),
    "Loss": lambda: rw.losses.SLAM(),
    "Fold": lambda: next(iter(rw.kfold(NAMED, 3))),
    "Stream": lambda: rw.synthetic.separable_stream(100),
    "Scaler": lambda: rw.Scaler().fit(NAMED),
    "ClickLog": lambda: clicked()[0],
    "Propensities": lambda: clicked()[1],
    "ClickValue": lambda: clicked()[2],
    "ranker": fitted,
}


@pytest.mark.parametrize("name", SHOWN)
def test_everything_is_shown_with_names_escaped_and_in_bounded_space(name):
    html = SHOWN[name]()._repr_html_()
    assert HOSTILE not in html
    assert len(html) < (150_000 if name == "QueryBrowser" else 40_000)
    if name != "ranker":  # scikit-learn's own diagram
        assert html.startswith('<div class="rankwise"><style>')
        read = Balanced(html)
        assert read.open == []
        assert not read.tags & {"script", "img", "iframe", "link"}


def test_a_ranker_keeps_the_diagram_of_scikit_learn():
    assert "sk-" in fitted()._repr_html_()


def test_a_loss_shows_what_solvers_read_and_a_measure_what_it_is():
    html = rw.losses.SLAM()._repr_html_()
    assert re.search(r">convex<.*>yes<", html)
    assert "nDCG" in rw.measures.parse("nDCG@10")._repr_html_()


def test_facts_are_cut_and_arrays_are_described():
    from dataclasses import dataclass

    from rankwise._tables import ShownAsFacts

    @dataclass(frozen=True)
    class Large(ShownAsFacts):
        text: str
        values: np.ndarray
        _hidden: int = 7

    html = Large("<b>" * 500, np.zeros((100, 3)))._repr_html_()
    assert len(html) < 3_000
    assert "<b>" not in html
    assert "array of shape (100, 3), float64" in html
    assert "hidden" not in html


def test_queries_are_counted_and_the_first_are_shown():
    html = LISTS._repr_html_()
    assert "Queries(40 queries, 800 documents, 12 features" in html
    assert html.count("<tr>") == 6
    assert "and 35 more" in html
    weighted = LISTS.with_weight(np.arange(1.0, 41))
    assert "weight" in weighted._repr_html_()
    assert "Queries(0 queries" in LISTS[:0]._repr_html_()


def test_a_query_shows_its_documents_with_the_highest_labels_first():
    html = LISTS[0]._repr_html_()
    assert "Query q1: 20 documents, 12 features" in html
    assert "10 documents and 4 features more" in html
    top = LISTS[0].y.argmax()
    assert html.index(f">{top}<") < html.index("</tr>", html.index("<tbody>"))
    bare = rw.Queries.from_arrays(np.zeros((2, 1)), group=[2])[0]
    assert "X[:, 0]" in bare._repr_html_()


def test_browsing_shows_the_documents_of_each_query_in_the_order_of_scores():
    scores = np.arange(LISTS.n_documents, dtype=float)
    html = LISTS.browse(scores, first=3, documents=4)._repr_html_()
    assert html.count("<details>") == 3
    assert "and 37 more" in html
    opened = html.partition("</details>")[0]
    rows = re.findall(r'<tr><td style="text-align: right">(\d+)<', opened)
    assert rows == ["19", "18", "17", "16"]
    assert "16 documents and 4 features more" in opened
    first = LISTS.browse()._repr_html_().partition("</details>")[0]
    rows = re.findall(r'<tr><td style="text-align: right">(\d+)<', first)
    assert [LISTS[0].y[int(row)] for row in rows] == sorted(LISTS[0].y, reverse=True)[:10]
    largest = rw.make_lists(110, documents=60, features=12, random_state=0).browse(first=100, documents=50)
    assert len(largest._repr_html_()) < 4_000_000
    for bad in ({"first": 0}, {"first": 101}, {"documents": 51}, {"documents": True}):
        with pytest.raises(DataError, match="must be a whole number from 1 to"):
            LISTS.browse(**bad)
    with pytest.raises(DataError, match="scores must hold one number per row"):
        LISTS.browse([1.0])


def test_an_evaluation_draws_its_queries_and_its_means():
    result = rw.evaluate(LISTS, LISTS.X[:, 0], ["nDCG@10", "AP"])
    axes = result.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["nDCG@10", "AP"]
    points, means = axes.lines[0].get_xdata(), axes.lines[-1].get_xdata()
    assert len(points) == np.isfinite(result["nDCG@10"]).sum()
    np.testing.assert_allclose(means, list(result.mean.values()))


def test_an_evaluation_draws_its_differences_to_another_one():
    one = rw.evaluate(LISTS, LISTS.X[:, 0], ["nDCG@10", "AP"])
    two = rw.evaluate(LISTS, LISTS.X[:, 1], ["AP", "nDCG@10"])
    axes = one.plot(two).axes[0]
    points, means = axes.lines[1].get_xdata(), axes.lines[-1].get_xdata()
    np.testing.assert_allclose(points, np.sort(one["nDCG@10"] - two["nDCG@10"])[: len(points)])
    np.testing.assert_allclose(means, [one.mean[title] - two.mean[title] for title in one.titles])
    with pytest.raises(DataError, match="must be evaluated on the same queries, got 40 and 10"):
        one.plot(rw.evaluate(LISTS[:10], LISTS[:10].X[:, 0], ["nDCG@10", "AP"]))


# --------------------------------------------------------------------------------------------------------- a notebook


CELLS = [
    "import rankwise as rw, threading, time\nfrom rankwise import _progress\n_progress._PICTURE_AFTER = 0",
    "lists = rw.make_lists(30, documents=8, random_state=1)\nlists",
    "with _progress.progress('<b>work</b>', total=4) as bar:\n    bar.advance(2)\n    bar.remark('a & b')",
    "with _progress.progress('threads', total=2) as bar:\n"
    "    workers = [threading.Thread(target=bar.advance) for _ in range(2)]\n"
    "    [one.start() for one in workers], [one.join() for one in workers]\n    pass",
    "with _progress.progress('off', total=4, enabled=False) as bar:\n    bar.advance(2)",
    "lists.browse(first=2)",
]


@pytest.fixture(scope="module")
def executed():
    """A notebook after it ran, and everything that its cells ever showed."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in CELLS])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    seen = []
    original = client.process_message

    def heard(message, cell, index):
        seen.append((index, message["msg_type"], message["content"]))
        return original(message, cell, index)

    client.process_message = heard
    client.execute()
    return notebook, seen


def test_a_notebook_shows_html_and_keeps_no_trace_of_a_bar(executed):
    notebook, seen = executed
    outputs = [cell.outputs for cell in notebook.cells]
    assert '<div class="rankwise">' in outputs[1][0]["data"]["text/html"]
    assert "<details>" in outputs[5][0]["data"]["text/html"]
    for place in (2, 3):
        assert [one["data"]["text/html"] for one in outputs[place]] == [""]
    assert outputs[4] == []
    assert not [content for _, kind, content in seen if kind in ("stream", "error")]


def test_a_bar_is_one_output_that_is_replaced(executed):
    drawn = [
        (kind, content["data"]["text/html"])
        for index, kind, content in executed[1]
        if index == 2 and kind in ("display_data", "update_display_data")
    ]
    assert [kind for kind, _ in drawn].count("display_data") == 1
    assert '&lt;b&gt;work&lt;/b&gt; <progress value="0.500"></progress> 50%' in drawn[0][1]
    assert drawn[-1] == ("update_display_data", "")


def test_a_table_is_plain_where_styles_are_removed():
    html = Table({"a": [1.0], "b": ["x"]})._repr_html_()
    assert "<thead><tr><th" in html
    assert ">1.0000<" in html
