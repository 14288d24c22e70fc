"""A data set in parts is the same queries as in memory, and a damaged part is named before anything starts."""

import json
import os
import pickle
import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankwise
from rankwise import Parts, Queries, Scaler
from rankwise._files import LOCK
from rankwise._kernels import parallel
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io import PartsWriter, write_parts
from rankwise.queries.fingerprints import fingerprints
from rankwise.queries.folds import kfold, split
from rankwise.queries.parts.manifest import NAME
from tests.queries.test_store import assert_same as assert_same_arrays

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)


def assert_same(found, expected):
    """As for stored queries; NumPy's width of texts depends on the longest one that was read together."""
    if expected.qid is not None and expected.qid.dtype.kind == "U":
        assert found.qid.dtype.kind == "U"
        found, expected = (one._replace(qid=one.qid.astype(object)) for one in (found, expected))
    assert_same_arrays(found, expected)


def make(sizes, seed=0, features=1, dtype=np.float32, **more):
    rng, rows = np.random.default_rng(seed), sum(sizes)
    X = rng.normal(size=(rows, features)).astype(dtype)
    qid = np.repeat([f"q{number}" for number in range(len(sizes))], sizes)
    return Queries.from_arrays(X, rng.integers(0, 4, rows), qid=qid, **more)


def cut(queries, bounds):
    edges = [0, *sorted(bounds), len(queries)]
    return [queries[first:last] for first, last in pairwise(edges)]


# some queries are longer than a chunk, some chunks end exactly where a query does
list_sizes = st.lists(st.sampled_from([1, 3, 40, 1000, 30_000, 32_768, 65_535, 65_536, 70_000]), min_size=1, max_size=9)


@given(list_sizes, st.lists(st.integers(0, 9), max_size=3), st.integers(1 << 16, 1 << 20), st.integers(0, 100))
@anywhere
def test_every_chunk_of_the_whole_is_a_view_of_one_file(tmp_path, sizes, bounds, part_bytes, seed):
    queries = make(sizes, seed)
    shutil.rmtree(tmp_path / "lists", ignore_errors=True)
    blocks = cut(queries, [min(one, len(queries)) for one in bounds])
    parts = write_parts(blocks, tmp_path / "lists", part_bytes=part_bytes)
    chunks = list(parallel.query_chunks(queries.start))
    assert parts.chunks() == chunks
    firsts = np.cumsum([0, *(part.queries for part in parts.manifest.parts)])
    assert set(firsts.tolist()) <= {0, *(last for _, last in chunks)}
    for (first, last), block in zip(chunks, parts.blocks(), strict=True):
        assert_same(block, queries[first:last])
        assert _is_mapped(block.X)


def _is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


@pytest.fixture
def queries():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 900, 300)
    rows = int(sizes.sum())
    return make(
        sizes,
        features=3,
        weight=rng.integers(1, 4, 300),
        docid=[f"d{row}" for row in range(rows)],
        feature_names=["a", "b", "c"],
        document_weight=rng.integers(1, 3, rows),
    )


@pytest.fixture
def parts(queries, tmp_path):
    found = write_parts(cut(queries, [50, 51, 200]), tmp_path / "lists", part_bytes=500_000)
    assert len(found.manifest.parts) == 3
    return found


def test_any_selection_is_that_of_the_same_queries_in_memory(parts, queries):
    rng = np.random.default_rng(0)
    for key in (slice(None), slice(3, 250), slice(None, None, 7), rng.random(300) < 0.5, [7, 299, 7, 0], [], [-1]):
        chosen, expected = parts[key], queries[key]
        expected = expected if expected.is_grouped else expected[np.arange(len(expected))]
        assert chosen.chunks() == list(parallel.query_chunks(expected.start))
        assert_same(chosen.block(0, len(chosen)), expected)
        for (first, last), block in zip(chosen.chunks(), chosen.blocks(), strict=True):
            assert_same(block, expected[first:last])
        assert_same(pickle.loads(pickle.dumps(chosen)).block(0, len(chosen)), expected)
        assert_same(chosen[::2].block(0, len(chosen[::2])), expected[::2])


def test_one_query_and_iteration_are_those_in_memory(parts, queries):
    assert parts[17].qid == "q17"
    assert np.array_equal(parts[-1].X, queries[-1].X)
    for one, two in zip(parts, queries, strict=True):
        assert one.qid == two.qid
        assert np.array_equal(one.X, two.X)


def test_splits_and_folds_have_the_same_queries_as_in_memory(parts, queries):
    for one, two in zip(split(parts, random_state=4), split(queries, random_state=4), strict=True):
        assert one.names() == two.names()
    for fold, other in zip(kfold(parts, 4), kfold(queries, 4), strict=True):
        assert [part.names() for part in fold] == [part.names() for part in other]


def test_it_says_what_it_is(parts, queries):
    assert repr(parts).startswith(
        f"Parts(300 queries, {queries.n_documents:,} documents, 3 features, labels 0 to 3, 3 p"
    )
    assert "some of" in repr(parts[:5])
    assert "q4" in parts._repr_html_()
    assert (parts.n_documents, parts.n_features, parts.shape) == (queries.n_documents, 3, (300, 3))
    assert np.array_equal(parts.query_weight, queries.query_weight)
    assert np.array_equal(parts.labels(), queries.y)
    assert np.array_equal(parts.fingerprints(), fingerprints(queries))
    assert np.array_equal(parts[5:9].fingerprints(), fingerprints(queries[5:9]))
    assert_same(parts.to_queries(), queries)
    assert_same(rankwise.load(parts.path).to_queries(), queries)


def test_what_does_not_fit_into_memory_is_refused_unless_forced(parts, monkeypatch):
    monkeypatch.setattr("rankwise.queries.parts.parts.available_memory", lambda: 1 << 20)
    with pytest.raises(DataError, match="more than half of the"):
        parts.to_queries()
    assert len(parts.to_queries(force=True)) == 300


def test_features_are_read_when_rows_are_asked_for(parts, queries):
    lazy = parts.lazy()
    rng = np.random.default_rng(0)
    rows = rng.integers(0, queries.n_documents, 500)
    for key in (slice(5, 70_000), slice(0, 0), rows, queries.y > 2, 7, (slice(3, 9), 1), (rows, [2, 0])):
        expected = queries.X[key] if not isinstance(key, tuple) else queries.X[key[0]][:, key[1]]
        assert np.array_equal(lazy.X[key], expected)
    assert np.array_equal(lazy.y, queries.y)
    assert list(lazy.docid) == list(queries.docid)


def test_diagnose_and_evaluate_find_what_they_find_in_memory(queries, tmp_path):
    queries = queries[:45]
    for number, block in enumerate(cut(queries, [9, 30])):
        block.save(tmp_path / f"{number}.rankwise")
    parts = Parts.from_files(tmp_path)
    assert str(rankwise.diagnose(parts)) == str(rankwise.diagnose(queries))
    train, test = parts[:25], parts[25:]
    assert str(rankwise.diagnose(train, test)) == str(rankwise.diagnose(queries[:25], queries[25:]))
    model = rankwise.RidgeRanker(alpha=1.0).fit(queries)
    scores = model.predict(queries)
    assert np.array_equal(model.predict(parts), scores)
    for by in (model, scores):
        for like in (None, "lightgbm", "trec_eval"):
            one = rankwise.evaluate(parts, by, ["nDCG@10", "AP"], like=like)
            two = rankwise.evaluate(queries, by, ["nDCG@10", "AP"], like=like)
            assert np.array_equal(one.values, two.values, equal_nan=True)
            assert one.mean == two.mean
            assert one.qid == two.qid
    one, two = model.rank(parts), model.rank(queries)
    assert all(list(one[name]) == list(two[name]) for name in two.columns)


@pytest.mark.parametrize("text", ["{:.17g}\n", "{:.17g}\r\n"])
def test_scores_of_parts_are_read_from_a_file(parts, queries, tmp_path, text):
    scores = np.random.default_rng(0).normal(size=queries.n_documents)
    file = tmp_path / "scores.txt"
    file.write_text("".join(map(text.format, scores)), newline="")
    found = rankwise.evaluate(parts.path, file, ["nDCG@10"])
    assert found.mean == rankwise.evaluate(queries, scores, ["nDCG@10"]).mean
    file.write_text("1\n2\n")
    with pytest.raises(FileFormatError, match="has 2 scores, expected"):
        rankwise.evaluate(parts, file)
    file.write_text("1\n" * (queries.n_documents + 1))
    with pytest.raises(FileFormatError, match="has more than"):
        rankwise.evaluate(parts, file)
    file.write_text("1\ntwo\n")
    with pytest.raises(FileFormatError, match="expected one score per line"):
        rankwise.evaluate(parts, file)


def test_scaling_and_builders_are_kept(tmp_path, queries):
    scaled = Scaler().fit(queries).transform(queries)
    assert write_parts(scaled, tmp_path / "a").block(0, 3).scaling == scaled.scaling
    table = {"qid": [1, 1, 2, 2], "label": [0, 1, 1, 0], "color": ["red", "blue", "red", "red"], "x": [1.0, 2, 3, 4]}
    pandas = pytest.importorskip("pandas")
    built = rankwise.FeatureBuilder().fit_transform(pandas.DataFrame(table))
    write_parts(built, tmp_path / "b")
    opened = rankwise.load(tmp_path / "b")
    assert opened.built_by.digest_ == built.built_by.digest_
    assert opened.block(0, 2).built_by.digest_ == built.built_by.digest_


def test_every_part_has_the_form_of_the_first_block(tmp_path):
    wide = make([70_000] * 2, features=2, dtype=np.float64, feature_names=["a", "b"])
    narrow = make([70_000], 1, features=2, feature_names=["b", "a"])._replace(qid=np.array(["other"]))
    parts = write_parts([wide, narrow], tmp_path / "lists", part_bytes=1 << 16)
    assert len(parts.manifest.parts) == 3
    assert np.array_equal(parts.block(2, 3).X, narrow.X[:, ::-1].astype(np.float64))


def test_parts_of_numbers_and_of_texts_as_ids_are_one_data_set(tmp_path):
    X = np.zeros((70_000, 1))
    one, two = (Queries.from_arrays(X, X[:, 0], qid=np.repeat(ids, 35_000)) for ids in ([1, 2], ["x", "3"]))
    parts = write_parts([one, two], tmp_path / "lists", part_bytes=1 << 16)
    assert len(parts.manifest.parts) > 1
    assert parts.names() == ["1", "2", "x", "3"]


# ------------------------------------------------------------------------------------------------- files of others


def test_files_that_others_wrote_become_a_data_set(tmp_path, queries):
    for number, block in enumerate(cut(queries, [10, 10, 120])):
        scattered = np.random.default_rng(number).permutation(block.n_documents)
        whole = Queries.from_arrays(
            block.X[scattered],
            block.y[scattered],
            qid=block.qid[block.query_of_row][scattered],
            feature_names=block.feature_names,
        )
        whole.save(tmp_path / f"part-{number}.rankwise")
    parts = Parts.from_files(tmp_path)
    assert len(parts) == 300
    expected = Queries.concat([rankwise.load(one) for one in sorted(tmp_path.glob("part-*")) if "1" not in one.name])
    assert_same(parts.block(0, 300), expected[np.arange(300)])
    assert Parts.from_files(sorted(tmp_path.glob("part-*"))).names() == parts.names()
    queries[5:6].select_features(["a", "b", "c"])._replace(weight=None).save(tmp_path / "part-9.rankwise")
    with pytest.raises(DataError, match=r"query 'q5' comes again in part-9.rankwise"):
        Parts.from_files(tmp_path)
    assert len(Parts(tmp_path)) == 300  # the data set that was there is untouched
    make([2], features=2).save(tmp_path / "part-9.rankwise")
    with pytest.raises(DataError, match="must have the same features"):
        Parts.from_files(tmp_path)


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="holds no rankwise files"):
        Parts.from_files(tmp_path)
    with pytest.raises(FileFormatError, match="must be a folder"):
        Parts.from_files(tmp_path / "nothing")


# ------------------------------------------------------------------------------------------------- writing


def test_a_query_that_comes_twice_is_refused_and_nothing_is_left(tmp_path):
    queries = make([5, 5, 5])
    with pytest.raises(DataError, match="query 'q1' comes twice"):
        write_parts([queries, queries[1:]], tmp_path / "lists")
    assert os.listdir(tmp_path) == []


def test_blocks_that_do_not_fit_are_refused_and_nothing_is_left(tmp_path):
    other = make([5], features=2)
    with pytest.raises(DataError, match="block 1 has 2 features, block 0 has 1"):
        write_parts([make([5, 5]), other._replace(qid=np.array(["z"]))], tmp_path / "lists")
    with pytest.raises(RankwiseError, match="at least one block of queries"):
        write_parts(iter([]), tmp_path / "lists")
    with pytest.raises(DataError, match="takes Queries"):
        write_parts(iter([3]), tmp_path / "lists")
    assert os.listdir(tmp_path) == []


def test_ctrl_c_leaves_nothing_and_keeps_what_was_there(tmp_path, queries):
    write_parts(queries[:10], tmp_path / "lists")

    def blocks():
        yield queries[:150]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_parts(blocks(), tmp_path / "lists", overwrite=True)
    assert os.listdir(tmp_path) == ["lists"]
    assert len(Parts(tmp_path / "lists")) == 10
    opened = Parts(tmp_path / "lists")
    write_parts(queries, tmp_path / "lists", overwrite=True)
    assert os.listdir(tmp_path) == ["lists"]
    assert len(Parts(tmp_path / "lists")) == 300
    with pytest.raises(FileFormatError):
        pickle.loads(pickle.dumps(opened))


def test_what_is_there_is_not_overwritten(tmp_path, queries):
    write_parts(queries[:10], tmp_path / "lists")
    with pytest.raises(RankwiseError, match="holds a data set already"):
        write_parts(queries, tmp_path / "lists")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    for overwrite in (False, True):
        with pytest.raises(RankwiseError, match="the folder holds other files"):
            write_parts(queries, tmp_path / "other", overwrite=overwrite)
        with pytest.raises(RankwiseError, match="it is a file"):
            write_parts(queries, tmp_path / "other" / "thesis.tex", overwrite=overwrite)
    with pytest.raises(RankwiseError, match="does not exist"):
        write_parts(queries, tmp_path / "no" / "lists")


def test_what_a_killed_writer_left_is_removed_and_a_living_one_is_not_disturbed(tmp_path, queries):
    left = tmp_path / ".lists.0123456789ab.parts"
    left.mkdir()
    (left / LOCK).touch()
    with PartsWriter(tmp_path / "lists") as first:
        assert not left.exists()
        first.append(queries[:10])
        write_parts(queries[:20], tmp_path / "lists")
        assert first.folder.is_dir()
        shutil.rmtree(tmp_path / "lists")
    assert len(Parts(tmp_path / "lists")) == 10


@pytest.mark.parametrize("size", ["1 TB", "-3", "MB", "", 0, 1.5, None])
def test_sizes_of_parts_are_bytes(tmp_path, queries, size):
    with pytest.raises(RankwiseError, match="part_bytes"):
        write_parts(queries, tmp_path / "lists", part_bytes=size)
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------------------------- damage


def test_a_missing_or_damaged_part_is_named_before_anything_starts(parts, tmp_path):
    broken = tmp_path / "broken"
    names = [part.file for part in parts.manifest.parts] + [parts.manifest.index.file]
    for name in names:
        shutil.copytree(parts.path, broken)
        os.unlink(broken / name)
        with pytest.raises(FileFormatError, match=f"{name} is missing"):
            Parts(broken)
        shutil.copy(os.path.join(parts.path, name), broken / name)
        with open(broken / name, "ab") as file:
            file.write(b"x")
        with pytest.raises(FileFormatError, match=rf"{name} is damaged: it has [\d,]+ bytes"):
            Parts(broken)
        data = bytearray((broken / name).read_bytes()[:-1])
        data[9] ^= 0xFF  # in the header
        (broken / name).write_bytes(data)
        with pytest.raises(FileFormatError, match=name):
            Parts(broken)
        data[9] ^= 0xFF
        data[-9] ^= 0x01  # in the values
        (broken / name).write_bytes(data)
        with pytest.raises(FileFormatError, match=f"{name} is damaged: its checksum"):
            Parts(broken).verify()
        shutil.rmtree(broken)
    parts.verify()


def test_a_part_that_was_swapped_for_another_of_the_same_size_is_found_when_it_is_used(tmp_path):
    write_parts(make([2, 3]), tmp_path / "a")
    write_parts(make([3, 2]), tmp_path / "b")
    shutil.copy(tmp_path / "b" / "part-00000.rankwise", tmp_path / "a" / "part-00000.rankwise")
    with pytest.raises(FileFormatError, match="its queries do not have the sizes that the index has"):
        Parts(tmp_path / "a").block(0, 1)


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    for path, sentence in ((tmp_path, "without manifest.json"), (tmp_path / "no", "does not exist")):
        with pytest.raises(FileFormatError, match=sentence):
            Parts(path)
    (tmp_path / "file").touch()
    with pytest.raises(FileFormatError, match="is not a folder"):
        Parts(tmp_path / "file")


def mutate(value, random):
    """Another value in some place of a JSON document."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value))
        if random.random() < 0.2:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: mutate(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        place = random.randrange(len(value))
        return [*value[:place], mutate(value[place], random), *value[place + 1 :]]
    return random.choice([None, -1, 0, 3, 2**70, 1.5, True, "", "../x", "part-00000.rankwise", [], {}, [[]], "float16"])


@given(st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
def test_a_hostile_manifest_raises_one_sentence_or_is_harmless(parts, queries, tmp_path, random):
    content = json.loads((tmp_path / "lists" / NAME).read_text())
    hostile = tmp_path / "hostile"
    if not hostile.exists():
        shutil.copytree(parts.path, hostile)
    for _ in range(random.randint(1, 3)):
        content = mutate(content, random)
    (hostile / NAME).write_text(json.dumps(content))
    sentence, whole = "", queries
    try:
        found = Parts(hostile)
        repr(found), found._repr_html_()
        whole = found.to_queries()
    except RankwiseError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert np.array_equal(whole.X, queries.X)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, '{"kind": "rankwise parts"}', "\0\xff"])
def test_a_manifest_that_is_no_manifest_raises_one_sentence(parts, text):
    with open(os.path.join(parts.path, NAME), "w", encoding="latin-1") as file:
        file.write(text)
    with pytest.raises(FileFormatError, match=NAME):
        Parts(parts.path)


def test_a_newer_format_says_so(parts):
    file = os.path.join(parts.path, NAME)
    with open(file) as opened:
        content = json.load(opened)
    with open(file, "w") as opened:
        json.dump({**content, "format": 2}, opened)
    with pytest.raises(FileFormatError, match="install a newer one"):
        Parts(parts.path)
