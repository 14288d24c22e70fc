"""Tables that draw themselves: their numbers are those of plain loops, their pictures say what is in them."""

import json
import math
import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import ranking_errors as experiment
from rankwise._figures import save_png
from rankwise._tables import Table
from rankwise.analysis.curves import learning_curves
from rankwise.analysis.mistakes import (
    different_pairs,
    gain_by_group,
    label_pair_errors,
    label_pairs,
    queries_by_size,
)
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.intervals import interval
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.smooth.annealing import COLUMNS
from rankwise.rankers.smooth.smoothrank import SmoothRank
from rankwise.synthetic.lists import make_lists
from tests.strategies import many_lists

QUERIES = make_lists(60, documents=(2, 30), features=4, grades=3, random_state=2)
GOOD, POOR = QUERIES.X[:, 0], np.random.default_rng(1).integers(0, 3, QUERIES.n_documents).astype(float)
BOTH = {"poor": POOR, "good": GOOD}
HISTORY = Table({"round": [1, 2, 4], "train": [0.4, 0.5, 0.6], "validation": [0.4, 0.45, 0.3], "steps": [3, 2, 1]})


def as_queries(lists):
    """`Queries` and scores of some (scores, labels) lists, an empty query after the first."""
    sizes = [len(labels) for _, labels in lists]
    scores = np.concatenate([np.array(scores, dtype=float) for scores, _ in lists])
    labels = np.concatenate([np.array(labels, dtype=float) for _, labels in lists])
    return Queries(np.zeros((len(labels), 1)), labels, np.cumsum([0, sizes[0], 0, *sizes[1:]])), scores


def texts_of(figure):
    """Everything that is written on a picture."""
    found = []
    for axes in figure.axes:
        legend = axes.get_legend()
        found += [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
        found += [tick.get_text() for tick in axes.get_xticklabels()]
        found += [text.get_text() for text in legend.texts] if legend else []
    return set(found)


# ---------------------------------------------------------------------------------------------- learning curves


def test_curves_are_the_columns_of_the_histories():
    other = Table({"round": [1, 2], "train": [0.1, 0.2], "validation": [math.nan, math.nan]})
    curves = learning_curves({"one": HISTORY, "other": other}, measure="AP")
    assert curves.columns == ("ranker", "part", "round", "value")
    assert [column.tolist() for column in curves.curve("one", "validation")] == [[1, 2, 4], [0.4, 0.45, 0.3]]
    assert [column.tolist() for column in curves.curve("other", "train")] == [[1, 2], [0.1, 0.2]]
    assert len(curves.curve("other", "validation")[0]) == 0  # it had no validation set
    assert len(curves) == 3 + 3 + 2
    assert curves.title == "AP against rounds"


def test_rounds_that_do_not_increase_are_numbered():
    curves = learning_curves({"annealed": Table({"sigma": [4.0, 2.0, 1.0], "train": [0.1, 0.2, 0.3]})}, ["train"])
    assert curves["round"].tolist() == [1, 2, 3]


def test_fitted_rankers_are_taken_with_their_histories():
    columns = {name: [0.1, 0.3] for name in COLUMNS} | {"sigma": [2.0, 1.0], "validation": [0.5, 0.4]}
    model = SmoothRank("nDCG@10")
    model._annealed_ = columns, parse("nDCG@10"), np.zeros((2, 4))
    curves = learning_curves({"SmoothRank": model})
    assert [column.tolist() for column in curves.curve("SmoothRank", "validation")] == [[1, 2], [0.5, 0.4]]
    assert [column.tolist() for column in curves.curve("SmoothRank", "train")] == [[1, 2], [0.1, 0.3]]


def test_the_best_round_of_the_validation_set_has_a_dot():
    axes = learning_curves({"one": HISTORY}).plot().axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in dots] == [(2, 0.45)]


@pytest.mark.parametrize(
    ("rankers", "parts", "words"),
    [
        ({"ridge": RidgeRanker()}, ("train",), "'ridge' is RidgeRanker, without a history"),
        ({"none": Table({"round": [], "train": []})}, ("train",), "without a history"),
        ({"one": HISTORY}, ("test",), "the history of 'one' has the columns round, train, validation, steps: expected"),
        ({}, ("train",), "rankers must be a dict from names .* got an empty one"),
        ({"one": HISTORY}, "train", "parts must name columns"),
        ({"one": HISTORY}, (), "parts must name columns"),
    ],
)
def test_what_has_no_curve_is_refused_by_name(rankers, parts, words):
    with pytest.raises(DataError, match=words):
        learning_curves(rankers, parts)


# ------------------------------------------------------------------------------------------------- label pairs


@given(many_lists())
def test_errors_are_counted_as_by_hand(lists):
    queries, scores = as_queries(lists)
    counted = {}
    for own_scores, labels in lists:
        for i, j in combinations(range(len(labels)), 2):
            if labels[i] != labels[j]:
                high, low = (i, j) if labels[i] > labels[j] else (j, i)
                pair = counted.setdefault((labels[high], labels[low]), [0, 0.0])
                pair[0] += 1
                difference = own_scores[high] - own_scores[low]
                pair[1] += 0.5 if difference == 0 else float(difference < 0)
    errors = label_pair_errors(queries, {"one": scores}, how="t")
    assert {(row["higher"], row["lower"]): [row["pairs"], row["inverted"]] for row in errors} == counted
    keys = [(-row["higher"], row["lower"]) for row in errors]
    assert keys == sorted(keys)


def test_errors_are_those_of_label_pairs_with_intervals_over_queries():
    errors = label_pair_errors(QUERIES, BOTH)
    for name, scores in BOTH.items():
        expected = {(row["higher"], row["lower"]): row for row in label_pairs(QUERIES, scores)}
        mine = [row for row in errors if row["ranker"] == name]
        assert len(mine) == len(expected)
        for row in mine:
            line = expected[row["higher"], row["lower"]]
            assert {key: row[key] for key in line} == line
            shares, weights = [], []
            for q in range(len(QUERIES)):  # query by query
                own = {
                    (r["higher"], r["lower"]): r
                    for r in label_pairs(QUERIES[q : q + 1], scores[QUERIES.query_of_row == q])
                }
                found = own.get((row["higher"], row["lower"]))
                shares.append(math.nan if found is None else found["share"])
                weights.append(0.0 if found is None else found["pairs"])
            assert (row["low"], row["high"]) == pytest.approx(interval(shares, weight=weights), rel=1e-9)
            assert row["low"] <= row["share"] <= row["high"]


@given(many_lists(), st.randoms(use_true_random=False))
def test_errors_do_not_depend_on_the_order_of_rows(lists, random):
    labels = np.concatenate([np.array(labels, dtype=float) for _, labels in lists])
    scores = np.concatenate([np.array(scores, dtype=float) for scores, _ in lists])
    qid = np.repeat(np.arange(len(lists)), [len(labels) for _, labels in lists])
    order = np.array(random.sample(range(len(labels)), len(labels)), dtype=int)
    one, two = (
        label_pair_errors(
            Queries.from_arrays(np.zeros((len(labels), 1)), labels[rows], qid=qid[rows]), {"one": scores[rows]}, how="t"
        )
        for rows in (np.arange(len(labels)), order)
    )
    assert one == two


def test_documents_that_were_not_retrieved_are_below_all_others():
    queries = Queries.from_arrays(np.zeros((4, 1)), [1, 0, 1, 0], group=[4])
    errors = label_pair_errors(queries, {"one": [-math.inf, -math.inf, 1.0, 0.0]})
    assert errors["inverted"].tolist() == [1.5]  # the first is below the last and level with the second
    assert label_pairs(queries, [-math.inf, -math.inf, 1.0, 0.0])["inverted"].tolist() == [1.5]


def test_pairs_are_called_as_asked_and_rankers_may_be_fitted_ones():
    model = RidgeRanker().fit(QUERIES)
    errors = label_pair_errors(QUERIES, {"ridge": model, "poor": POOR}, names={2: "d", 1: "p"})
    assert errors["pair"].tolist() == ["d-0", "d-0", "d-p", "d-p", "p-0", "p-0"]
    assert errors["ranker"].tolist() == ["ridge", "poor"] * 3
    assert {"d-0", "d-p", "p-0", "ridge", "poor"} <= texts_of(errors.plot())
    bars = errors.plot().axes[0].containers[0]
    assert [bar.get_height() for bar in bars] == pytest.approx((100 * errors["share"][::2]).tolist())


def test_lists_of_one_label_have_no_pairs_and_a_picture_all_the_same():
    errors = label_pair_errors(Queries.from_arrays(np.zeros((3, 1)), [1, 1, 1], group=[2, 1]), {"one": [1.0, 2.0, 3.0]})
    assert len(errors) == 0
    assert errors.plot().axes


def test_errors_of_no_ranker_are_refused():
    with pytest.raises(
        DataError, match="rankers must be a dict from names to scores or fitted rankers, got an empty one"
    ):
        label_pair_errors(QUERIES, {})


# ----------------------------------------------------------------------------------------------- sizes of queries


@given(many_lists(), st.sampled_from([1, 3, 10]), st.sampled_from(["pairs", "documents"]))
def test_queries_are_counted_by_size(lists, width, by):
    queries, _ = as_queries(lists)
    sizes = []
    for _, labels in [([], []), *lists]:
        different = math.comb(len(labels), 2) - sum(math.comb(n, 2) for n in Counter(labels).values())
        sizes.append(different if by == "pairs" else len(labels))
    table = queries_by_size(queries, by, width=width)
    for row in table:
        assert row["queries"] == sum(row["from"] <= size <= row["to"] for size in sizes)
        assert row["to"] == row["from"] + width - 1
        assert row["share"] == pytest.approx(row["queries"] / len(sizes))
    assert table["queries"].sum() == len(sizes)
    assert table["queries"][-1] > 0


@pytest.mark.parametrize(("largest", "width"), [(0, 1), (11, 1), (12, 2), (23, 2), (24, 5), (119, 10), (27_641, 5_000)])
def test_bins_are_as_wide_as_a_dozen_of_them_need(largest, width):
    queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], group=[1, 1])
    table = queries_by_size(queries, [0, largest])
    assert table["to"][0] == width - 1
    assert len(table) <= 12


def test_the_histogram_names_what_is_counted():
    assert {"queries by pairs of documents with different labels", "queries"} <= texts_of(
        queries_by_size(QUERIES).plot()
    )
    heights = [bar.get_height() for bar in queries_by_size(QUERIES, "documents").plot().axes[0].containers[0]]
    assert sum(heights) == len(QUERIES)


@pytest.mark.parametrize(
    ("by", "width", "words"),
    [
        ("labels", None, "by must be 'pairs', 'documents', or hold one value"),
        ([1, 2], None, r"one non-negative integer per query, got int64 of shape \(2,\)"),
        (np.full(60, -1), None, "one non-negative integer"),
        (np.full(60, 0.5), None, "got float64"),
        ("pairs", 0, r"'width' parameter of queries_by_size must be an int in \[1, inf\) or None. Got 0"),
    ],
)
def test_sizes_that_are_none_are_refused(by, width, words):
    with pytest.raises(RankwiseError, match=words):
        queries_by_size(QUERIES, by, width=width)


# ------------------------------------------------------------------------------------------------- gains by group


@pytest.mark.parametrize("by", ["pairs", "documents"])
def test_gains_are_the_means_of_differences_in_every_group(by):
    gains = gain_by_group(QUERIES, BOTH, "AP", by, bins=3)
    sizes = different_pairs(QUERIES) if by == "pairs" else QUERIES.sizes
    first, second = (evaluate(QUERIES, scores, ["AP"])["AP"] for scores in BOTH.values())
    assert sum(gains["queries"]) == len(QUERIES)
    for row in gains:
        chosen = [q for q in range(len(QUERIES)) if row["from"] <= sizes[q] <= row["to"]]
        counted = [q for q in chosen if not math.isnan(first[q])]
        assert (len(chosen), len(chosen) - len(counted)) == (row["queries"], row["skipped"])
        assert row["first"] == pytest.approx(sum(first[q] for q in counted) / len(counted))
        assert row["second"] == pytest.approx(sum(second[q] for q in counted) / len(counted))
        assert row["gain"] == pytest.approx(row["second"] - row["first"])
        assert (row["low"], row["high"]) == interval([second[q] - first[q] for q in chosen])


def test_groups_may_be_given_by_name():
    width = different_pairs(QUERIES) // 100
    gains = gain_by_group(QUERIES, BOTH, by=width)
    assert sorted(gains["group"].tolist()) == sorted(set(width.tolist()))
    assert {f"{name}" for name in set(width.tolist())} <= {text.split("\n")[0] for text in texts_of(gains.plot())}


def test_the_picture_of_gains_says_who_gains_over_whom_and_on_how_many_queries():
    gains = gain_by_group(QUERIES, BOTH, "nDCG@5", bins=2)
    texts = texts_of(gains.plot())
    assert "nDCG@5: good minus poor" in texts
    labels = [f"{row['from']:,} to {row['to']:,}\n{row['queries'] - row['skipped']} queries" for row in gains]
    assert set(labels) <= texts


def test_the_conventions_of_other_tools_are_passed_on():
    gains = gain_by_group(QUERIES, BOTH, "nDCG@10", bins=1, like="letor")
    assert gains["skipped"].tolist() == [0]  # the LETOR evaluator counts a list without relevant documents as 0


@pytest.mark.parametrize("rankers", [{}, {"one": GOOD}, {"one": GOOD, "two": POOR, "three": GOOD}])
def test_a_gain_is_between_two(rankers):
    with pytest.raises(DataError, match=f"a gain compares two rankers, got {len(rankers)}"):
        gain_by_group(QUERIES, rankers)


# ----------------------------------------------------------------------------------------------------- all of them

ALL = {
    "curves": lambda: learning_curves({"one": HISTORY, "two": HISTORY}),
    "pairs": lambda: label_pair_errors(QUERIES, BOTH, how="t"),
    "sizes": lambda: queries_by_size(QUERIES),
    "gains": lambda: gain_by_group(QUERIES, BOTH, how="t"),
}


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_the_same_numbers_give_the_same_bytes(make, tmp_path):
    for name in ("one", "two"):
        save_png(make().plot(), tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_a_table_survives_pickling_with_its_picture(make, tmp_path):
    table = make()
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    assert type(again) is type(table)
    assert texts_of(again.plot()) == texts_of(table.plot())


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_a_report_can_take_the_table_as_plain_values(make):
    table = make()
    assert list(json.loads(json.dumps(table.to_dict()))) == list(table.columns)


def test_the_figures_of_the_page_are_there():
    kept = json.loads(experiment.NUMBERS.read_text())
    assert all((experiment.FIGURES / f"{name}.png").is_file() for name in kept)
    assert len(kept) == 4


def test_the_sizes_of_ohsumed_are_those_of_the_page(data_folder):
    from rankwise.io.folds import read_folds

    tests = Queries.concat([fold.test for fold in read_folds(data_folder / "ohsumed")])
    kept = json.loads(experiment.NUMBERS.read_text())["analysis_query_sizes"]
    assert queries_by_size(tests, width=experiment.WIDTH)["queries"].tolist() == kept["queries"]
