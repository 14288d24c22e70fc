"""What notebooks show: short tables of anything, with the names of strangers escaped; and plots where there are many."""

import numpy as np
import pytest

import rankwise as rw

HOSTILE = "<script>alert(1)</script>"
LISTS = rw.make_lists(40, documents=20, features=12, random_state=1)
NAMED = LISTS._replace(feature_names=(HOSTILE, *LISTS.feature_names[1:]))


@pytest.mark.parametrize(
    "shown",
    [
        lambda: NAMED,
        lambda: NAMED[3],
        lambda: rw.Scorer(rw.RidgeRanker(alpha=1.0).fit(NAMED)),
        lambda: rw.export(rw.RidgeRanker(alpha=1.0).fit(NAMED), "python"),
    ],
    ids=["Queries", "Query", "Scorer", "Export"],
)
def test_everything_is_shown_with_names_escaped_and_in_bounded_space(shown):
    html = shown()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html or "script" not in html
    assert len(html) < 12_000


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


def test_an_evaluation_draws_its_queries_and_its_means():
    result = rw.evaluate(LISTS, LISTS.X[:, 0], ["nDCG@10", "AP"])
    axes = result.plot().axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["nDCG@10", "AP"]
    points, means = axes.lines[0].get_xdata(), axes.lines[-1].get_xdata()
    assert len(points) == np.isfinite(result["nDCG@10"]).sum()
    np.testing.assert_allclose(means, list(result.mean.values()))
