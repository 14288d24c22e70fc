"""However the queries are divided, each is whole, and each is tested on exactly once."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import Queries, kfold, split
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io import read_folds


def some(count, seed=0):
    """``count`` queries of one to five documents, their rows scattered; feature 0 says which query a row is of."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(count), rng.integers(1, 6, count)))
    return Queries.from_arrays(np.column_stack([qid, rng.normal(size=len(qid))]), rng.integers(0, 3, len(qid)), qid=qid)


def assert_whole(part, queries):
    """Every query of the part has all its documents, in order."""
    place = {name: number for number, name in enumerate(queries.names())}
    for query in part:
        np.testing.assert_array_equal(query.X, queries[place[query.qid]].X)
        np.testing.assert_array_equal(query.y, queries[place[query.qid]].y)


# ------------------------------------------------------------------------------------------- by chance


@given(st.integers(5, 40), st.integers(0, 5))
def test_a_split_puts_every_query_into_one_part(count, seed):
    queries = some(count)
    parts = split(queries, random_state=seed)
    assert sorted(name for part in parts for name in part.names()) == sorted(queries.names())
    assert [len(part) for part in parts] == np.diff(np.rint(np.array([0, 0.6, 0.8, 1]) * count)).tolist()
    for part in parts:
        assert_whole(part, queries)
        assert part.names() == [name for name in queries.names() if name in set(part.names())]


def test_a_split_may_have_any_number_of_parts():
    assert [len(part) for part in split(some(10), [0.5, 0.1, 0.1, 0.3])] == [5, 1, 1, 3]
    assert [len(part) for part in split(some(10), [1.0])] == [10]
    assert [len(part) for part in split(some(10), [1 / 3] * 3)] == [3, 4, 3]


def test_the_seed_decides_and_nothing_else():
    queries = some(30)
    names = [[part.names() for part in split(queries, random_state=seed)] for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]
    folds = [
        [fold.test.names() for fold in kfold(queries, random_state=np.random.default_rng(seed))] for seed in (3, 3, 4)
    ]
    assert folds[0] == folds[1] != folds[2]


@pytest.mark.parametrize("sizes", [[], [0.5, 0.4], [0.5, 0.6, -0.1], [1.0, 0.0], [np.nan, 1.0], 6, [[0.5], [0.5]]])
def test_shares_that_do_not_add_up_are_refused(sizes):
    with pytest.raises(RankwiseError, match=r"sizes must add up to 1|The 'sizes' parameter of split must be"):
        split(some(10), sizes)


def test_too_few_queries_are_refused():
    with pytest.raises(DataError, match="2 queries are too few for parts of sizes"):
        split(some(2))
    with pytest.raises(DataError, match="4 queries are too few for 5 folds"):
        kfold(some(4))
    with pytest.raises(RankwiseError, match=r"The 'k' parameter of kfold must be an int in \[3, inf\)"):
        kfold(some(9), k=2)


@given(st.integers(3, 7), st.integers(0, 20), st.integers(0, 3))
def test_every_query_is_tested_on_once_and_validated_on_once(k, more, seed):
    queries = some(k + more)
    folds = list(kfold(queries, k, random_state=seed))
    assert len(folds) == k
    for role in ("test", "validation"):
        assert sorted(name for fold in folds for name in getattr(fold, role).names()) == sorted(queries.names())
    for fold, following in zip(folds, [*folds[1:], folds[0]], strict=True):
        assert sorted(name for part in fold for name in part.names()) == sorted(queries.names())
        assert fold.validation.names() == following.test.names()
        assert max(len(fold.test), len(fold.validation)) <= -(-len(queries) // k)
        for part in fold:
            assert_whole(part, queries)


# ------------------------------------------------------------------------------------------- from folders


ROTATION = {1: "12345", 2: "23451", 3: "34512", 4: "45123", 5: "51234"}  # train, train, train, validation, test


def part(number, last_feature=2):
    return f"1 qid:{number}0 1:0.{number} {last_feature}:1\n0 qid:{number}0 1:0.5\n0 qid:{number}1 1:1\n".encode()


@pytest.mark.parametrize("packed", [False, True])
def test_five_parts_are_rotated_as_letor_does(tmp_path, packed):
    for number in range(1, 6):
        if packed:
            (tmp_path / f"S{number}.txt.gz").write_bytes(gzip.compress(part(number)))
        else:
            (tmp_path / f"S{number}.txt").write_bytes(part(number))
    folds = list(read_folds(tmp_path))
    assert len(folds) == 5
    for fold, (number, order) in zip(folds, ROTATION.items(), strict=True):
        parts = [[10 * int(name), 10 * int(name) + 1] for name in order]
        assert fold.train.names() == [*parts[0], *parts[1], *parts[2]], number
        assert fold.validation.names() == parts[3]
        assert fold.test.names() == parts[4]


def test_folders_of_folds_are_read_as_they_are(tmp_path):
    for number, order in ROTATION.items():
        folder = tmp_path / f"Fold{number}"
        folder.mkdir()
        (folder / "train.txt").write_bytes(b"".join(part(int(name)) for name in order[:3]))
        (folder / "vali.txt.gz").write_bytes(gzip.compress(part(int(order[3]))))
        (folder / "test.txt").write_bytes(part(int(order[4])))
    (tmp_path / "README").write_text("not a fold")
    (tmp_path / "Fold-old").mkdir()
    for fold, order in zip(read_folds(tmp_path), ROTATION.values(), strict=True):
        assert fold.train.sizes.tolist() == [2, 1] * 3
        assert (fold.validation.names()[0], fold.test.names()[0]) == (10 * int(order[3]), 10 * int(order[4]))


def test_parts_are_read_once_and_when_they_are_needed(tmp_path, monkeypatch):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_bytes(part(number))
    from rankwise.io import folds

    read, opened = folds.read_letor, []
    monkeypatch.setattr(folds, "read_letor", lambda path, **options: opened.append(path.name) or read(path, **options))
    read_all = read_folds(tmp_path)
    assert opened == []
    list(read_all)
    assert opened == [f"S{number}.txt" for number in range(1, 6)]


def test_parts_of_different_widths_become_as_wide_as_the_widest(tmp_path):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_bytes(part(number, last_feature=number + 1))
    for fold in read_folds(tmp_path, dtype="float32"):
        assert [queries.n_features for queries in fold] == [6, 6, 6]
        assert fold.train.X.dtype == np.float32
        for queries in fold:
            for query in queries:
                if len(query) == 2:
                    number = query.qid // 10
                    expected = np.zeros(6, dtype=np.float32)
                    expected[[0, number]] = np.float32(number / 10), 1
                    np.testing.assert_array_equal(query.X[0], expected)


def test_feature_0_is_not_guessed_file_by_file(tmp_path):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_bytes(part(number).replace(b"2:1", b"0:1" if number == 3 else b"2:1"))
    with pytest.raises(FileFormatError, match="pass zero_based=True"):
        next(read_folds(tmp_path))
    widths = {queries.n_features for fold in read_folds(tmp_path, zero_based=True) for queries in fold}
    assert widths == {3}


def test_ids_that_mean_different_queries_in_different_parts_can_be_renamed(tmp_path):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_bytes(b"1 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"query 1 is in part 0 and in part 1: .*pass rename=True"):
        next(read_folds(tmp_path))
    first = next(read_folds(tmp_path, rename=True))
    assert [queries.names() for queries in first] == [["S1/1", "S2/1", "S3/1"], ["S4/1"], ["S5/1"]]


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere must be a folder"):
        read_folds(tmp_path / "nowhere")
    with pytest.raises(FileFormatError, match=r"must hold Fold1 \.\.\. Fold5 or S1\.txt"):
        read_folds(tmp_path)
    (tmp_path / "S1.txt").write_bytes(part(1))
    with pytest.raises(FileFormatError, match=r"must hold S2\.txt or S2\.txt\.gz"):
        read_folds(tmp_path)
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(FileFormatError, match=r"Fold1 must hold train\.txt"):
        read_folds(tmp_path)


def test_the_official_folds_of_mq2008(data_folder):
    folds = list(read_folds(data_folder / "mq2008"))
    tested = [name for fold in folds for name in fold.test.names()]
    assert len(tested) == len(set(tested)) == 784
    assert sum(fold.test.n_documents for fold in folds) == 15_211
    assert [len(queries) for queries in folds[0]] == [471, 157, 156]
    assert all(sum(len(queries) for queries in fold) == 784 for fold in folds)
