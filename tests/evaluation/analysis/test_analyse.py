"""Groups of queries and pairs of labels are counted as anybody would count them by hand."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._kernels import parallel
from rankwise.analysis.mistakes import by_group, label_pairs
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.statistics.intervals import interval, mean
from rankwise.queries.queries import Queries
from tests.strategies import many_lists

MODES = ("expected", "pessimistic", "optimistic", "stable")


def as_queries(lists):
    """`Queries` and scores of some (scores, labels) lists, an empty query after the first."""
    sizes = [len(labels) for _, labels in lists]
    scores = np.concatenate([np.array(scores, dtype=float) for scores, _ in lists])
    labels = np.concatenate([np.array(labels, dtype=float) for _, labels in lists])
    return Queries(np.zeros((len(labels), 1)), labels, np.cumsum([0, sizes[0], 0, *sizes[1:]])), scores


def count_by_hand(lists, ties):
    """(higher, lower) -> [pairs, inverted], over all ordered pairs of all lists."""
    counted = {}
    for scores, labels in lists:
        for i, j in permutations(range(len(labels)), 2):
            if labels[i] > labels[j]:
                pair = counted.setdefault((labels[i], labels[j]), [0, 0.0])
                pair[0] += 1
                tie = {"expected": 0.5, "pessimistic": 1, "optimistic": 0, "stable": float(j < i)}[ties]
                pair[1] += tie if scores[i] == scores[j] else float(scores[i] < scores[j])
    return counted


@pytest.mark.parametrize("ties", MODES)
@given(lists=many_lists())
def test_label_pairs_are_counted_as_by_hand(ties, lists):
    queries, scores = as_queries(lists)
    table = label_pairs(queries, scores, ties=ties)
    found = {(row["higher"], row["lower"]): [row["pairs"], row["inverted"]] for row in table}
    assert found == count_by_hand(lists, ties)
    assert table["share"].tolist() == [row["inverted"] / row["pairs"] for row in table]
    assert (np.diff(table["share"]) <= 0).all()  # most inverted first


@given(many_lists(), st.randoms(use_true_random=False))
def test_label_pairs_do_not_depend_on_the_order_of_rows(lists, random):
    labels = np.concatenate([np.array(labels, dtype=float) for _, labels in lists])
    scores = np.concatenate([np.array(scores, dtype=float) for scores, _ in lists])
    qid = np.repeat(np.arange(len(lists)), [len(labels) for _, labels in lists])
    order = np.array(random.sample(range(len(labels)), len(labels)), dtype=int)
    one, two = (
        label_pairs(Queries.from_arrays(np.zeros((len(labels), 1)), labels[rows], qid=qid[rows]), scores[rows])
        for rows in (np.arange(len(labels)), order)
    )
    assert one == two


def test_label_pairs_over_many_chunks_and_threads(monkeypatch):
    random = np.random.default_rng(0)
    queries = Queries.from_arrays(np.zeros((5_000, 1)), random.integers(0, 5, 5_000), group=np.full(100, 50))
    scores = random.integers(0, 20, 5_000)
    whole = label_pairs(queries, scores, n_jobs=1)
    monkeypatch.setattr(parallel.query_chunks, "__defaults__", (64,))
    assert label_pairs(queries, scores, n_jobs=4) == whole
    different = (math.comb(50, 2) - sum(math.comb(n, 2) for n in Counter(q.y.tolist()).values()) for q in queries)
    assert whole["pairs"].sum() == sum(different)


def test_real_valued_labels_are_counted_and_shown_as_they_are():
    queries = Queries.from_arrays(np.zeros((2, 1)), [0.25, 1.5], group=[2])
    assert label_pairs(queries, [1.0, 0.0]).to_dict() == {
        "higher": [1.5],
        "lower": [0.25],
        "pairs": [1],
        "inverted": [1.0],
        "share": [1.0],
    }


def test_documents_that_were_not_retrieved_are_tied_below_all_others():
    queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], group=[3])
    shares = {(r["higher"], r["lower"]): r["share"] for r in label_pairs(queries, [-np.inf, -np.inf, -5.0])}
    assert shares == {(2, 1): 0.5, (2, 0): 1.0, (1, 0): 1.0}


def test_labels_that_never_differ_give_an_empty_table():
    queries = Queries.from_arrays(np.zeros((3, 1)), [1, 1, 1], group=[2, 1])
    assert len(label_pairs(queries, [1, 2, 3])) == 0
    assert len(label_pairs(queries[:0], [])) == 0


def test_too_many_labels_are_refused_with_a_way_out():
    queries = Queries.from_arrays(np.zeros((33, 1)), np.arange(33) / 7, group=[33])
    with pytest.raises(DataError, match="at most 32 different labels, got 33; put them into bins"):
        label_pairs(queries, np.zeros(33))
    assert len(label_pairs(queries.with_labels(np.digitize(queries.y, [1, 2])), np.zeros(33))) == 3


def test_label_pairs_need_labels_scores_and_a_known_rule_for_ties():
    queries = Queries.from_arrays(np.zeros((2, 1)), [0, 1], group=[2])
    with pytest.raises(RankwiseError, match="'ties' parameter of label_pairs must be 'expected'"):
        label_pairs(queries, [0, 1], ties="random")
    with pytest.raises(DataError, match="no labels"):
        label_pairs(queries.with_labels(None), [0, 1])
    with pytest.raises(DataError, match="scores must not be NaN, got NaN at row 1"):
        label_pairs(queries, [0, math.nan])


# ------------------------------------------------------------------------------------------- by group


@pytest.fixture
def lists():
    """Queries of 1 to 29 documents in shuffled rows, labels 0, 1, 2, 0, 1, ... in each."""
    sizes = np.arange(1, 30)
    qid = np.repeat(sizes, sizes)
    labels = np.concatenate([np.arange(size) % 3 for size in sizes]).astype(float)
    order = np.random.default_rng(0).permutation(len(qid))
    return Queries.from_arrays(np.zeros((len(qid), 1)), labels[order], qid=qid[order])


def count_in(query, by):
    if by == "documents":
        return len(query)
    if by == "relevant":
        return int((query.y >= 2).sum())
    return sum(a > b for a in query.y for b in query.y)


@pytest.mark.parametrize("by", ["documents", "relevant", "pairs"])
@pytest.mark.parametrize("bins", [1, 3, 4, 100])
def test_groups_are_told_apart_by_their_counts(lists, by, bins):
    values = np.linspace(0, 1, len(lists))
    values[3] = math.nan
    counts = np.array([count_in(query, by) for query in lists])
    table = by_group(lists, values, by, bins=bins, rel=2)
    assert sum(table["queries"]) == len(lists)
    assert sum(table["skipped"]) == 1
    assert (table["from"][1:] > table["to"][:-1]).all()
    for row in table:
        inside = (row["from"] <= counts) & (counts <= row["to"])
        assert inside.sum() == row["queries"]
        assert repr(row["mean"]) == repr(mean(values[inside]))
        assert repr((row["low"], row["high"])) == repr(interval(values[inside]))


def test_groups_are_about_equally_full(lists):
    table = by_group(lists, np.zeros(len(lists)), "documents", bins=4)
    assert len(table) == 4
    assert set(table["queries"].tolist()) <= {7, 8}


def test_queries_of_equal_size_stay_in_one_group():
    queries = Queries.from_arrays(np.zeros((10, 1)), np.ones(10), group=[2] * 5)
    table = by_group(queries, [0.1, 0.2, 0.3, 0.4, 0.5], "documents", bins=4)
    assert (table["from"].tolist(), table["to"].tolist(), table["queries"].tolist()) == ([2], [2], [5])
    assert table["mean"].tolist() == [0.3]


def test_groups_may_be_named(lists):
    names = np.where(np.arange(len(lists)) % 2, "odd", "even")
    table = by_group(lists, np.arange(len(lists)) % 2, names, how="t")
    assert table.columns == ("group", "queries", "skipped", "mean", "low", "high")
    assert table["group"].tolist() == ["even", "odd"]  # in order of appearance
    assert table["mean"].tolist() == [0.0, 1.0]


def test_the_means_of_groups_use_the_queries_weights():
    queries = Queries.from_arrays(np.zeros((3, 1)), np.ones(3), group=[1, 1, 1], weight=[3, 1, 0])
    table = by_group(queries, [1.0, 0.0, 0.7], ["a", "a", "b"])
    assert table["mean"][0] == 0.75
    assert math.isnan(table["mean"][1])  # nothing in group b counts


def test_groups_of_no_queries_are_an_empty_table(lists):
    assert len(by_group(lists[:0], [])) == 0
    assert len(by_group(lists[:0], [], [])) == 0


def test_wrong_groups_are_refused_in_a_sentence(lists):
    values = np.zeros(len(lists))
    with pytest.raises(RankwiseError, match="by must be 'documents', 'relevant', 'pairs', or hold one value per query"):
        by_group(lists, values, "length")
    with pytest.raises(DataError, match="one group name per query, got 2"):
        by_group(lists, values, ["a", "b"])
    with pytest.raises(DataError, match="one number per query"):
        by_group(lists, values[:-1])
    with pytest.raises(RankwiseError, match=r"'bins' parameter of by_group must be an int in \[1, inf\)"):
        by_group(lists, values, bins=0)
