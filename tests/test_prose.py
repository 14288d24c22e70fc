"""Every figure and comparison in the prose of the pages comes from an executed example or from a stored result.

``tests/prose`` holds the claims of the pages with their sources. A number, a "better" or a "default" without a claim
fails here: add a claim that computes it, or change the sentence.
"""

import importlib
import pkgutil
import re
from functools import cache

import pytest

from benchmarks import page as benchmarks_page
from benchmarks.quality.page import as_markdown as quality_page
from benchmarks.sent import read_all
from experiments import bounds_by_angle, clicks, committee, direct, exported, hybrid, kernels, neural, smoothrank, trees
from rankwise.measures import registered
from rankwise.measures.conventions import CONVENTIONS
from tests import prose
from tests.prose.claims import CLAIMS, STATED
from tests.prose.pages import DOCS, ROOT, assertions, figures, path_of, stored, text_of, unaccounted

for module in pkgutil.iter_modules(prose.__path__):
    importlib.import_module(f"tests.prose.{module.name}")

PAGES = sorted(page.name for page in (ROOT / "README.md", *DOCS.glob("*.md")))
ELSEWHERE = {
    "api.md": "docstrings",
    "architecture.md": "nothing measured",
    "benchmarks.md": "written whole by the benchmarks, see below",
    "benchmarks_all.md": "written whole by the benchmarks, see below",
    "bounds_expectation.md": "theorems; examples in test_docs.py",
    "bounds_holdout.md": "theorems; tables in guarantees/test_holdout_widths.py",
    "bounds_online.md": "theorems; examples in test_docs.py",
    "bounds_printed.md": "statements with their tests, guarantees/test_printed.py",
    "bounds_training.md": "theorems; examples in test_docs.py",
    "bounds_uniform.md": "theorems; examples in test_docs.py",
    "gallery.md": "texts of other pages' figures, see below",
    "letor_evaluator.md": "written whole by its experiment, evaluation/test_letor_evaluator.py",
    "licences.md": "test_docs.py",
    "reproduction.md": "test_reproduction.py",
}
COVERED = [page for page in PAGES if page not in ELSEWHERE]


def test_every_page_is_checked_here_or_elsewhere():
    assert set(ELSEWHERE) <= set(PAGES)
    assert not set(ELSEWHERE) & {*CLAIMS, *STATED}
    assert {*CLAIMS, *STATED} <= set(COVERED)


@cache
def said(claim):
    """The words of a claim, whose assertions hold."""
    return tuple(claim())


@pytest.mark.parametrize(
    ("page", "claim"),
    [pytest.param(page, claim, id=f"{page}-{claim.__name__}") for page, own in CLAIMS.items() for claim in own],
)
def test_a_page_says_what_was_measured(page, claim):
    for words in said(claim):
        assert words in text_of(page), f"{page} does not say what {claim.__module__} finds"


@pytest.mark.parametrize("page", sorted(STATED))
def test_words_that_were_not_measured_are_on_the_page(page):
    assert [words for words in STATED[page] if words not in text_of(page)] == []


def accounted(page):
    return [*STATED[page], *(words for claim in CLAIMS[page] for words in said(claim))]


@pytest.mark.parametrize("page", COVERED)
def test_n6_every_figure_and_comparison_of_a_page_is_accounted_for(page):
    assert unaccounted(page, text_of(page), accounted(page)) == []


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Ridge regression is no better than no order at all", ["better"]),
        ("It takes 0.37 of nDCG@10, 1,234 lists and 3 folds.", ["0.37", "1,234"]),
        ("It takes 3 s, 4 times over, and `0.5` in code.", ["3 s", "4 times"]),
        ("It reads several hundred megabytes and is three to four times as long.", ["several hundred megabytes"]),
        ("The default is quicker.", ["quicker", "default"]),
        ("Steps from 1/1,024 to 10^-3, O(m^2), v2.5", []),
    ],
)
def test_what_counts_as_a_figure_or_an_assertion(sentence, found):
    assert set(found) <= set(unaccounted("licences.md", sentence, []))
    assert bool(found) == bool(figures(sentence.replace("`0.5`", "")) + assertions(sentence))


def test_words_that_are_accounted_for_hide_nothing_beside_them():
    assert unaccounted("licences.md", "0.35 and 0.36 and 0.35", ["0.35 and"]) == ["0.36", "0.35"]


# ------------------------------------------------------------------------------------------- parts that scripts write

# (page, part) -> what its experiment makes of the stored numbers
RENDERED = {
    ("choose_ranker.md", "trees"): lambda: trees.table(stored("trees_results")),
    ("direct.md", "ohsumed"): lambda: direct.table(stored("direct_results")["ohsumed"], "ohsumed"),
    ("direct.md", "mq2008"): lambda: direct.table(stored("direct_results")["mq2008"], "mq2008"),
    ("direct.md", "svm_rank"): lambda: direct.svm_rank_table(stored("direct_results")["svm_rank"]),
    ("direct.md", "angles"): lambda: bounds_by_angle.table(stored("bounds_by_angle")),
    ("hybrid.md", "gains"): lambda: hybrid.gains_table(stored("hybrid_results")),
    **{
        ("kernels.md", part): lambda part=part: kernels.TABLES[part](stored("kernels")[part]) for part in kernels.TABLES
    },
    ("hybrid.md", "parity"): lambda: hybrid.parity_table(stored("hybrid_results")),
    ("neural.md", "results"): lambda: neural.table(stored("neural_results")),
    **{("clicks.md", part): lambda part=part: clicks.PARTS[part](stored("clicks")) for part in clicks.PARTS},
    ("production.md", "exported"): lambda: exported.rankers_table(stored("exported_results")),
    ("production.md", "ensembles"): lambda: exported.trees_table(stored("exported_results")),
    ("production.md", "ridge"): lambda: exported.ridge_table(stored("exported_results")),
    ("smoothrank.md", "defaults"): lambda: committee.table(stored("committee_results")),
    ("smoothrank.md", "grid"): lambda: smoothrank.grid_table(stored("smoothrank_results")["grid"]["halves"]),
} | {
    ("smoothrank.md", part): lambda part=part: smoothrank.tables(stored("smoothrank_results"))[part]
    for part in ("ohsumed", "table3", "mq2008")
}
RENDERED_ELSEWHERE = {
    "coverage.md": "test_coverage.py",
    "bounds_holdout.md": "guarantees/test_holdout_widths.py",
    "guarantees.md": "rankers/certificate/test_certificates.py",
    "licences.md": "test_docs.py",
    "losses.md": "test_figures.py",
    "online.md": "test_online_results.py",
    "quality.md": "the whole page, below",
    "reproduction.md": "test_reproduction.py",
}


def parts_of(page):
    return dict(
        re.findall(r"<!-- ([\w ]+): [^\n]*-->\n\n(.*?)\n\n<!-- end of \1 -->", path_of(page).read_text(), re.DOTALL)
    )


def test_every_part_that_a_script_writes_is_rendered_by_a_test():
    found = {(page, part) for page in PAGES if page not in RENDERED_ELSEWHERE for part in parts_of(page)}
    assert found == {*RENDERED, ("choose_ranker.md", "measured")}  # the last one in test_docs.py


@pytest.mark.parametrize(("page", "part"), RENDERED, ids="-".join)
def test_a_part_of_a_page_is_made_of_the_stored_numbers(page, part):
    assert parts_of(page)[part] == RENDERED[page, part]()


def test_the_page_of_benchmarks_is_made_of_the_stored_numbers():
    found, others = stored("benchmarks"), benchmarks_page.other_results()
    assert path_of("benchmarks.md").read_text() == benchmarks_page.as_markdown(found, others, read_all())
    assert path_of("benchmarks_all.md").read_text() == benchmarks_page.complete(found)


def test_the_page_of_quality_is_that_of_its_results():
    assert path_of("quality.md").read_text() == quality_page(stored("quality"))


def test_two_tables_of_the_same_rankers_and_folds_have_the_same_means():
    # one table scales features and the other does not, which changes the ridge regression that is the others' prior
    for name in ("RidgeRanker", "FRank", "SmoothRank"):
        mean = stored("trees_results")["ohsumed"]["mean"][name]
        assert mean == pytest.approx(stored("direct_results")["ohsumed"][name]["mean"], abs=5e-5), name


def test_the_docstring_of_structured_ndcg_states_the_measured_costs():
    import rankwise as rw

    (curve,) = (
        curve
        for curve in stored("loss_costs")["families"]["Structured hinges"]
        if curve["name"] == "NDCGHinge(normalised=True)"
    )
    short, long = (1e3 * curve["s"][curve["m"].index(m)] for m in (100, 1_000))
    text = " ".join(rw.StructuredNDCG.__doc__.split())
    assert f"grows with the cube: {short:.1f} ms for 100 documents, {round(long, -1):.0f} ms for 1,000" in text


# ------------------------------------------------------------------------------------------- the same thing said twice


def texts_of_figures(page):
    """Figure -> the text for those who cannot see it."""
    text = path_of(page).read_text()
    boxed = re.findall(r"figures/(\w+)\.png\n(?::\w+: .*\n)*?:alt: (.*)\n", text)
    return dict(boxed) | {name: alt for alt, name in re.findall(r"!\[(.*?)\]\(figures/(\w+)\.png\)", text)}


def test_a_text_of_the_gallery_with_a_figure_in_it_is_that_of_another_page():
    others = [texts_of_figures(page) for page in PAGES if page != "gallery.md"]
    for name, text in texts_of_figures("gallery.md").items():
        if figures(text):
            assert text in [found.get(name) for found in others], name


def test_what_the_readme_shows_of_commands_is_shown_by_the_page_that_runs_them():
    readme, page = (" ".join(path_of(name).read_text().split()) for name in ("README.md", "first_model.md"))
    block = readme[readme.index("$ rankwise inspect my.csv") : readme.index("LETOR text, parquet, Arrow")]
    shown = re.findall(r"\d+\.\d{3,}", block)
    assert len(shown) > 10
    assert [number for number in shown if number not in page] == []


def first_cells(page, title):
    """The code in the first cells of the table whose header begins with ``title``."""
    table = path_of(page).read_text().split(f"\n| {title} |")[1].split("\n\n")[0]
    return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in table.splitlines()[2:]]


def test_the_page_of_measures_lists_every_measure_and_every_convention():
    own = {name for name, kind in registered().items() if kind.__module__.startswith("rankwise.")}
    assert {re.match(r"\w+", cell[0])[0] for cell in first_cells("measures.md", "spelling")} == own
    assert [cell[0] for cell in first_cells("measures.md", "`like=`")] == list(CONVENTIONS)
    assert f"| measures | {len(own)} |" in path_of("README.md").read_text()


def test_two_pages_agree_on_the_tools_whose_conventions_are_known():
    named = set(re.findall(r'`(?:like=)?"(\w+)"`', text_of("choose_measure.md"))) & set(CONVENTIONS)
    assert named == set(CONVENTIONS)
    tools = ("trec_eval", "LightGBM", "XGBoost", "CatBoost", "RankLib", "scikit-learn", "ranx")
    assert len(tools) + 1 == len(CONVENTIONS)
    assert f"{', '.join(tools)} and the LETOR evaluator" in text_of("index.md")


def test_n9_what_csv_needs_is_said_on_one_page_and_is_so(tmp_path, monkeypatch):
    import sys

    import rankwise as rw
    from rankwise.errors import MissingExtraError

    lists = rw.make_lists(3, documents=2, features=2, random_state=0)
    rw.io.write_table(lists, tmp_path / "a.parquet")
    rw.io.write_table(lists, tmp_path / "a.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(rw.read_table(tmp_path / "a.csv")) == 3
    assert "| CSV | `rw.read_table(path)`; no other package is needed |" in text_of("data.md")
    for action in (
        lambda: rw.read_table(tmp_path / "a.parquet"),
        lambda: rw.io.write_table(lists, tmp_path / "b.csv"),
        lambda: rw.io.write_table(lists, tmp_path / "b.parquet"),
    ):
        with pytest.raises(MissingExtraError, match="frames"):
            action()
    assert "| parquet, Arrow | `rw.read_table(path)` (extra `frames`) |" in text_of("data.md")
    assert "`rw.io.write_table` writes parquet and CSV, and needs the extra `frames` for both" in text_of("data.md")
    assert "[Judged queries] lists which formats need the extra `frames`" in text_of("command_line.md")
