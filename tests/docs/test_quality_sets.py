"""The sets of the quality benchmark, its bagged peers, and sets of anyone's own."""

import json
import shutil

import numpy as np
import pytest

import rankwise as rw
from benchmarks import quality
from benchmarks.quality import letor, worlds
from benchmarks.quality.peers import PARTS, bagged
from rankwise.errors import FileFormatError


@pytest.mark.parametrize("world", [worlds.tree, worlds.sat, worlds.wide])
def test_a_world_is_the_same_at_every_call_and_each_grade_has_its_share(world):
    queries = worlds.simulate(world, 200)
    again = worlds.simulate(world, 200)
    assert np.array_equal(queries.X, again.X)
    assert np.array_equal(queries.labels(), again.labels())
    below = [np.mean(queries.labels() < grade) for grade in (1, 2, 3, 4)]
    assert below == pytest.approx(worlds.BELOW, abs=0.001)


def test_usefulness_of_the_world_of_trees_takes_few_values_and_depends_on_eight_features():
    def useful(X):
        class Draw:
            def standard_normal(self, shape):
                return X

        return worlds.tree(np.random.default_rng(0), Draw(), len(X))[1]

    X = np.random.default_rng(1).standard_normal((500, 40))
    changed = np.hstack([X[:, :8], -X[:, 8:]])
    assert np.array_equal(useful(X), useful(changed))
    assert not np.array_equal(useful(X), useful(-X))


def test_a_bagged_peer_stops_by_every_query_once_and_learns_from_all_the_others():
    documents = np.arange(46)
    queries = rw.Queries.from_arrays(documents[:, None], documents % 2, qid=documents // 2)
    train, validation = rw.split(queries, (0.8, 0.2))
    seen = []

    def fit(learned, stopped, seed):
        seen.append([set(part.X[:, 0].tolist()) for part in (learned, stopped)])
        return lambda queries: queries.X[:, 0] + 10 * seed + len(seen)

    scores = bagged(fit)(train, validation, 7)
    assert [learned ^ stopped for learned, stopped in seen] == [set(documents.tolist())] * PARTS
    assert sorted(document for _, stopped in seen for document in stopped) == documents.tolist()
    assert scores(train).tolist() == (train.X[:, 0] + 70 + PARTS).tolist()


# ------------------------------------------------------------------------------------------------- sets of anyone's own


def text(path, first, queries=12):
    """A small set in LETOR format; the first query id tells the files apart."""
    made = rw.make_lists(queries, documents=(3, 6), features=4, random_state=first)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for query in range(len(made)):
            for row, label in zip(made.X[made.rows_of(query)], made.labels()[made.rows_of(query)], strict=True):
                values = " ".join(f"{place}:{value:.6g}" for place, value in enumerate(row, 1))
                print(int(label), f"qid:{first + query}", values, file=file)


LAYOUTS = {
    "five folds": [[f"Fold{fold}/{part}.txt" for part in ("train", "vali", "test")] for fold in range(1, 6)],
    "Yahoo": [["set1.train.txt", "set1.valid.txt", "set1.test.txt"]],
    "Istella-S": [["train.txt", "vali.txt", "test.txt"]],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_is_read_by_its_layout(layout, tmp_path):
    for fold in LAYOUTS[layout]:
        for place, name in enumerate(fold):
            text(tmp_path / name, 100 * place + 1)
    folds = list(letor.folds_of(tmp_path)())
    assert len(folds) == len(LAYOUTS[layout])
    assert [[str(part.names()[0]) for part in fold] for fold in folds] == [["1", "101", "201"]] * len(folds)


def test_without_a_validation_file_a_fifth_of_the_training_queries_takes_its_place(tmp_path):
    text(tmp_path / "train.txt", 1, queries=20)
    text(tmp_path / "test.txt", 101, queries=5)
    (fold,) = letor.folds_of(tmp_path)()
    assert [len(part) for part in fold] == [16, 4, 5]
    assert {*map(int, fold.train.names()), *map(int, fold.validation.names())} == set(range(1, 21))


def test_values_that_stand_for_unknown_ones_are_put_within_reach(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:1.79769313486e+308 2:2\n0 qid:1 1:3 2:-4\n" * 5)
    text(tmp_path / "test.txt", 101)
    with pytest.raises(FileFormatError, match=r"must hold Fold1 .* train\.txt, vali\.txt and test\.txt"):
        letor.folds_of(tmp_path / "elsewhere")
    shutil.copy(tmp_path / "test.txt", tmp_path / "vali.txt")
    (fold,) = letor.folds_of(tmp_path)()
    assert fold.train.X.max() == 1e6


def test_results_of_a_folder_are_printed_and_written_beside_its_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(quality, "CELLS", tmp_path / "cells")
    monkeypatch.setattr(letor, "CELLS", tmp_path / "cells")
    for place, name in enumerate(LAYOUTS["Yahoo"][0]):
        text(tmp_path / "one" / "mine" / name, 100 * place + 1)
    assert quality.main(["--letor", str(tmp_path / "one" / "mine"), "RidgeRanker", "RidgeCommittee"]) == 0
    written = tmp_path / "cells" / "letor" / "mine"
    assert set(json.loads((written / "results.json").read_text())) == {"RidgeRanker", "RidgeCommittee"}
    assert (written / "results.md").read_text().strip() in capsys.readouterr().out
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert quality.main(["--letor", str(tmp_path / "two" / "mine"), "RidgeRanker"]) == 1
    assert "holds results of" in capsys.readouterr().err


def test_a_ranker_that_nobody_knows_is_named_beside_those_that_are(tmp_path, capsys):
    text(tmp_path / "train.txt", 1)
    text(tmp_path / "test.txt", 101)
    assert quality.main(["--letor", str(tmp_path), "Ranker"]) == 1
    told = capsys.readouterr().err
    assert "CatBoost YetiRank, bagged" in told
    assert told.endswith("got 'Ranker'\n")
    assert quality.main(["--letor"]) == 2
