"""A comparison that was stopped goes on where it was; nothing that has changed is answered from an old run."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge

import rankwise
from rankwise import AdaRank, Queries, RidgeRanker, SLAMPerceptron, compare, kfold, make_lists
from rankwise.errors import RankwiseError
from rankwise.evaluation.comparison import keys as compare_keys
from rankwise.evaluation.comparison.keys import describe, fingerprint, plain
from rankwise.losses import SLAM


@pytest.fixture(scope="module")
def lists():
    return make_lists(30, documents=6, features=3, random_state=3)


class Counting(BaseEstimator):
    """Counts how often it learns."""

    fits = 0

    def __init__(self, feature=0, extra=None):
        self.feature = feature
        self.extra = extra

    def fit(self, queries):
        Counting.fits += 1
        return self

    def predict(self, queries):
        return queries.X[:, self.feature]


def fits(*args, **options):
    """How often a comparison had to learn."""
    Counting.fits = 0
    compare(*args, **options)
    return Counting.fits


def apart_from_cost(comparison):
    document = comparison.to_dict()
    for cell in document["cells"]:
        del cell["seconds"], cell["memory"]
    return document


def test_a_second_run_learns_nothing_and_says_the_same(lists, tmp_path):
    rankers = {"slam": SLAMPerceptron(), "ridge": RidgeRanker(), "sk": Ridge(), "count": Counting()}
    Counting.fits = 0
    first = compare(rankers, lists, ["nDCG@5"], folds=3, resume=tmp_path / "cells")
    assert Counting.fits == 3
    second = compare(rankers, lists, ["nDCG@5"], folds=3, resume=tmp_path / "cells")
    assert Counting.fits == 3
    assert first.to_dict() == second.to_dict()  # what was read is what was written, seconds included
    for one, two in zip(first.models["slam"], second.models["slam"], strict=True):
        np.testing.assert_array_equal(one.coef_, two.coef_)
    without = compare(rankers, lists, ["nDCG@5"], folds=3)
    assert apart_from_cost(without) == apart_from_cost(first)


def test_other_measures_names_baselines_and_threads_need_no_new_learning(lists, tmp_path):
    folder = {"folds": 3, "resume": tmp_path}
    assert fits({"a": Counting()}, lists, ["nDCG@5"], **folder) == 3
    chosen = {"choose_by": "nDCG@10", **folder}
    assert fits({"a": Counting()}, lists, ["nDCG@10"], **folder) == 3  # it is chosen by the first measure
    assert fits({"a": Counting()}, lists, ["AP", "RR"], **chosen) == 0
    assert fits({"b": Counting(), "noise": lists.X[:, 1]}, lists, ["AP"], baseline="noise", n_jobs=1, **chosen) == 0
    assert fits({"b": Counting()}, lists, ["AP"], empty="zero", level=0.9, correction="bh", **chosen) == 0


def changed(lists, what, place):
    """The same lists with one bit of one thing changed."""
    if what == "weight":
        weight = np.ones(len(lists))
        weight[place % len(lists)] = 1 + 2**-52
        return lists.with_weight(weight)
    if what == "y":
        y = lists.y.copy()
        y[place % len(y)] += 1
        return lists.with_labels(y)
    if what == "X":
        X = lists.X.copy()
        X[place % len(X), 0] = np.nextafter(X[place % len(X), 0], np.inf)
        return lists.map_features(lambda _: X)
    names = ["1", "2", "3"]
    return Queries.from_arrays(lists.X, lists.y, group=lists.sizes, feature_names=names)


@pytest.mark.parametrize("what", ["X", "y", "weight", "names"])
def test_data_with_one_bit_changed_are_other_data(lists, tmp_path, what):
    assert fits({"a": Counting()}, lists, folds=3, resume=tmp_path) == 3
    assert fits({"a": Counting()}, changed(lists, what, 7), folds=3, resume=tmp_path) == 3
    assert fits({"a": Counting()}, lists, folds=3, resume=tmp_path) == 0


def test_every_field_of_lists_is_in_their_fingerprint(lists):
    others = [changed(lists, what, place) for what in ("X", "y", "weight") for place in (0, 5, 29)]
    rows = np.arange(lists.n_documents)[::-1]
    others += [Queries(lists.X, lists.y, lists.start, rows, qid=lists.qid), lists[:29], changed(lists, "names", 0)]
    others += [Queries.from_arrays(lists.X, lists.y, group=lists.sizes, docid=map(str, rows))]
    others += [lists.map_features(lambda X: X.astype(np.float32)), lists.with_labels(None)]
    found = [fingerprint(one) for one in [lists, *others]]
    assert len(set(found)) == len(found)
    assert fingerprint(lists[:]) == found[0]


def test_other_parameters_grids_seeds_and_folds_are_learned_anew(lists, tmp_path):
    again = {"folds": 3, "resume": tmp_path}
    assert fits({"a": Counting()}, lists, **again) == 3
    assert fits({"a": Counting(feature=1)}, lists, **again) == 3
    assert fits({"a": Counting(extra=np.arange(3))}, lists, **again) == 3
    assert fits({"a": Counting(extra=np.arange(3.0))}, lists, **again) == 3
    assert fits({"a": Counting()}, lists, grids={"a": {"feature": [0, 1]}}, **again) == 6
    assert (
        fits({"a": Counting()}, lists, grids={"a": {"feature": [1, 0]}}, **again) == 6
    )  # the first of equals is taken
    assert fits({"a": Counting()}, lists, random_state=1, **again) == 3
    assert fits({"a": Counting()}, lists, folds=5, resume=tmp_path) == 5
    assert fits({"a": Counting()}, lists, **again) == 0


def test_other_versions_are_learned_anew(lists, tmp_path, monkeypatch):
    assert fits({"a": Counting()}, lists, folds=3, resume=tmp_path) == 3
    known = compare_keys.versions()
    monkeypatch.setattr("rankwise.evaluation.comparison.run.versions", lambda: {**known, "rankwise": "999"})
    assert fits({"a": Counting()}, lists, folds=3, resume=tmp_path) == 3


def test_parameters_are_described_so_that_no_two_are_alike():
    values = [None, True, 1, 1.5, "1", (1, 2), [2, 1], {"a": 1}, {"a": 2}, {1: "a"}, np.arange(2), np.arange(2.0)]
    values += [np.array([[0, 1]]), SLAM(), SLAM(margin=0.0), np.nan, np.inf, RidgeRanker(), RidgeRanker("AP"), len]
    values += [lambda x: x, lambda x: x + 1, Counting(), RidgeRanker().fit(make_lists(5, random_state=1))]
    described_as = [repr(plain(value, "p")) for value in values]
    assert len(set(described_as)) == len(values)
    assert describe(AdaRank(n_jobs=3, verbose=True)) == describe(AdaRank())


def test_what_cannot_be_described_cannot_be_resumed_and_can_be_compared(lists, tmp_path):
    hidden = Counting(extra=(item for item in ()))
    hidden.__sklearn_clone__ = lambda: hidden  # a generator cannot be copied either
    with pytest.raises(RankwiseError, match=r"extra=.*remove resume="):
        compare({"a": hidden}, lists, folds=3, resume=tmp_path)
    assert compare({"a": hidden}, lists, folds=3).about["rankers"]["a"]["class"].endswith("Counting")


@pytest.mark.parametrize("kind", ["cell", "model"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_a_damaged_file_is_computed_again_with_one_line(lists, tmp_path, capsys, kind, damage):
    rankers = {"ridge": RidgeRanker()}
    first = compare(rankers, lists, folds=3, resume=tmp_path, n_jobs=1)
    path = sorted(tmp_path.glob(f"*.{kind}.rankwise"))[1]
    data = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        data[-3] ^= 4  # a bit of the last number
        path.write_bytes(data)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    second = compare(rankers, lists, folds=3, resume=tmp_path, n_jobs=1)
    assert apart_from_cost(first) == apart_from_cost(second)
    lines = capsys.readouterr().err.splitlines()
    if (kind, damage) == ("cell", "gone"):
        assert lines == []
    else:
        assert len(lines) == 1
        assert "is computed again" in lines[0]
    compare(rankers, lists, folds=3, resume=tmp_path)
    assert capsys.readouterr().err == ""


def test_ctrl_c_keeps_what_has_finished(lists, tmp_path):
    class Stopped(Counting):
        def fit(self, queries):
            if Counting.fits == 4:
                raise KeyboardInterrupt
            return super().fit(queries)

    rankers = {"a": Stopped(), "b": Stopped(feature=1)}
    Counting.fits = 0
    with pytest.raises(KeyboardInterrupt):
        compare(rankers, lists, folds=3, resume=tmp_path, n_jobs=1)
    assert len(list(tmp_path.glob("*.cell.rankwise"))) == 4
    assert not list(tmp_path.glob(".*.part"))
    assert fits(rankers, lists, folds=3, resume=tmp_path, n_jobs=1) == 2


def test_r9_parts_of_a_killed_run_are_removed_and_other_files_are_not(lists, tmp_path):
    left = tmp_path / ".0f.cell.rankwise.0123456789ab.part"
    others = [tmp_path / ".page.html.0123456789ab.part", tmp_path / "notes.part"]
    for path in (left, *others):
        path.write_bytes(b"half")
    compare({"a": Counting()}, lists, folds=3, resume=tmp_path, n_jobs=1)
    assert not left.exists()
    assert all(path.exists() for path in others)


def test_places_that_cannot_be_a_folder(lists, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RankwiseError, match="resume must be a folder"):
        compare({"a": Counting()}, lists, folds=3, resume=tmp_path / "file")
    with pytest.raises(RankwiseError, match="cannot be created"):
        compare({"a": Counting()}, lists, folds=3, resume=tmp_path / "no" / "where")


def test_folds_of_a_folder_and_of_memory_are_the_same_work(lists, tmp_path):
    folds = list(kfold(lists, 3))
    assert fits({"a": Counting()}, folds, resume=tmp_path) == 3
    assert fits({"a": Counting()}, lists, folds=3, resume=tmp_path) == 0
    assert fits({"a": Counting()}, folds[1:], resume=tmp_path) == 0  # a cell does not know of the other folds


def test_the_key_covers_the_sources_of_the_whole_package():
    package = Path(rankwise.__file__).parent
    files = sorted(package.rglob("*.py"))
    assert {"rankers", "queries", "evaluation"} <= {file.relative_to(package).parts[0] for file in files}
    parts = (part for file in files for part in (str(file.relative_to(package)).encode(), file.read_bytes()))
    assert compare_keys._own_sources() == compare_keys.digest_bytes(*parts)
