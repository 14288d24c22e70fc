"""One safe file: everything comes back bit for bit, and no file, however damaged, does more than raise a sentence."""

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import rankwise
from rankwise import Queries, Scaler
from rankwise import _store as store_module
from rankwise._store import StoreWriter, open_store
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.queries.stored import QueriesWriter, load_queries

# a temporary folder may serve all examples of a test: each writes its own file over the last one
anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


def make(rows=7, columns=3, qid=None, dtype=np.float64, **more):
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, columns)).astype(dtype)
    qid = rng.integers(0, 3, rows) if qid is None else qid
    return Queries.from_arrays(X, rng.integers(0, 4, rows), qid=qid, **more)


def assert_same(back, queries):
    for name in ("X", "y", "start", "rows", "weight", "qid"):
        found, expected = getattr(back, name), getattr(queries, name)
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            if expected.dtype == object:
                assert found.tolist() == expected.tolist()
            else:
                assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), name
    assert back.is_grouped == queries.is_grouped
    assert back.feature_names == queries.feature_names
    assert back.scaling == queries.scaling
    assert (back.docid is None) == (queries.docid is None)
    assert back.docid is None or list(back.docid) == list(queries.docid)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "queries.rankwise"


def write(path, blocks):
    with QueriesWriter(path) as writer:
        for block in blocks:
            writer.append(block)


def left_behind(path):
    return sorted(name.name for name in path.parent.iterdir())


# ------------------------------------------------------------------------------------------- queries, there and back


ids = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9),
    st.lists(st.text(max_size=4), max_size=9),
    st.lists(st.floats(allow_nan=False), max_size=9),
)


@anywhere
@given(ids, st.integers(0, 4), st.sampled_from(["float32", "float64"]), st.data())
def test_what_is_saved_comes_back_bit_for_bit(tmp_path, qid, width, dtype, data):
    size = 32 if dtype == "float32" else 64
    finite = st.floats(allow_nan=False, allow_infinity=False, width=size)
    X = np.array(data.draw(st.lists(finite, min_size=len(qid) * width, max_size=len(qid) * width)), dtype=dtype)
    labels = st.floats(0, 1e300, allow_subnormal=True)
    queries = Queries.from_arrays(
        X.reshape(len(qid), width),
        data.draw(st.none() | st.lists(labels, min_size=len(qid), max_size=len(qid))),
        qid=qid,
        docid=data.draw(st.none() | st.lists(st.text(max_size=3), min_size=len(qid), max_size=len(qid))),
        feature_names=data.draw(st.none() | st.lists(st.text(max_size=3), min_size=width, max_size=width, unique=True)),
    )
    if data.draw(st.booleans()):
        queries = queries.with_weight(np.arange(1.0, len(queries) + 1))
    queries.save(tmp_path / "q")
    assert_same(rankwise.load(tmp_path / "q"), queries)
    assert left_behind(tmp_path / "q") == ["q"]


@pytest.mark.parametrize(
    "qid",
    [
        np.array([3, 1, 3], dtype=np.int32),
        np.array([3, 2**64 - 1, 3], dtype=np.uint64),
        np.array([0.5, -0.25, 0.5], dtype=np.float32),
        np.array([True, False, True]),
        np.array(["ä", "b\u20ac", "ä"]),
        [b"caf\xe9".decode("utf-8", "surrogateescape"), "x", "y"],
        ["ends in zero\0", "x", "x"],
    ],
    ids=str,
)
def test_ids_keep_their_type(path, qid):
    queries = make(3, qid=qid)
    queries.save(path)
    assert_same(rankwise.load(path), queries)


def test_queries_without_ids_labels_or_anything_come_back_so(path):
    queries = Queries.from_arrays(np.zeros((3, 2), dtype=np.float32), group=[1, 2])
    queries.save(path)
    back = rankwise.load(path)
    assert_same(back, queries)
    assert back.y is back.qid is back.docid is back.weight is back.feature_names is None


@pytest.mark.parametrize("scaler", [Scaler("minmax"), Scaler("log"), Scaler("standard", per="query")], ids=repr)
@pytest.mark.parametrize("names", [None, ["a", "\u00e9", "c"]])
def test_the_scaling_is_remembered(path, scaler, names):
    queries = scaler.fit_transform(make(feature_names=names))
    queries.save(path)
    back = rankwise.load(path)
    assert back.scaling == queries.scaling
    raw = make(feature_names=names)
    assert back.scaling.transform(raw).X.tobytes() == queries.X.tobytes()


def test_object_ids_of_one_kind_are_saved_as_that_kind(path):
    make(3, qid=np.array([5, 6, 5], dtype=object)).save(path)
    assert rankwise.load(path).names() == [5, 6]


@pytest.mark.parametrize(
    ("qid", "named"),
    [
        ([("a", 1), ("b", 2)], "of type tuple"),
        ([1, "1"], "of type int and str"),
        ([2**70, 3], "of type int"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "of type datetime64"),
    ],
)
def test_other_ids_are_refused_by_type_and_leave_nothing(path, qid, named):
    with pytest.raises(DataError, match=named):
        make(2, qid=qid).save(path)
    assert left_behind(path) == []


def test_features_are_mapped_and_cannot_be_written_to(path):
    make(100).save(path)
    X = rankwise.load(path).X
    assert isinstance(X, np.memmap)
    assert X.offset % 64 == 0
    assert X.ctypes.data % 64 == 0
    assert not X.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        X[0, 0] = 1


def test_a_file_may_be_replaced_by_what_was_mapped_from_it(path):
    queries = make(50)
    queries.save(path)
    mapped = rankwise.load(path)
    mapped.with_labels(np.ones(50)).save(path)
    assert rankwise.load(path).y.tolist() == [1] * 50
    np.testing.assert_array_equal(mapped.X, queries.X)


def test_a_choice_in_which_no_query_counts_comes_back(path):
    queries = make(3, qid=["a", "b", "c"], weight=[0, 0, 1])[:2]
    queries.save(path)
    assert_same(rankwise.load(path), queries)


def test_slices_save_only_what_they_hold(path):
    queries = make(3_000, docid=[f"document {row}" for row in range(3_000)])
    queries[:].save(path)
    whole = path.stat().st_size
    part = queries[:][:1]
    part.save(path)
    assert_same(rankwise.load(path), part)
    assert path.stat().st_size < 0.6 * whole


# ------------------------------------------------------------------------------------------- block after block


@anywhere
@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.booleans(), st.booleans(), st.data())
def test_blocks_in_a_file_are_the_blocks_concatenated(tmp_path, sizes, labeled, named, data):
    blocks = []
    for number, size in enumerate(sizes):
        qid = data.draw(st.lists(st.integers(10 * number, 10 * number + 2), min_size=size, max_size=size))
        X = np.random.default_rng(number).normal(size=(size, 2))
        block = Queries.from_arrays(
            X,
            np.zeros(size) if labeled else None,
            qid=np.array(qid, dtype=np.int64),
            docid=[f"{number}-{row}" for row in range(size)] if named else None,
        )
        blocks.append(block.with_weight(np.ones(len(block)) * 2) if data.draw(st.booleans()) else block)
    write(tmp_path / "q", blocks)
    assert_same(load_queries(tmp_path / "q"), Queries.concat(blocks))


def test_blocks_are_written_in_bounded_memory(path, monkeypatch):
    monkeypatch.setattr(store_module, "_SPOOL", 1 << 12)
    monkeypatch.setattr("rankwise.queries.stored._ROWS_AT_ONCE", 100)
    blocks = [make(500, qid=[number] * 500, docid=[f"{number}/{row}" for row in range(500)]) for number in range(9)]
    blocks.append(make(500, qid=[9, 10] * 250, docid=[str(row) for row in range(500)]))
    with QueriesWriter(path) as writer:
        for block in blocks:
            writer.append(block)
        waiting = [array.file for array in writer._file._arrays.values()][1:]
        assert all(file._rolled for file in waiting if file.tell() > 1 << 12)
    assert_same(rankwise.load(path), Queries.concat(blocks))


def test_features_of_later_blocks_are_put_in_order_by_name(path):
    one = make(2, qid=["a", "a"], feature_names=["x", "y", "z"])
    two = make(2, qid=["b", "b"], feature_names=["x", "y", "z"])
    write(path, [one, two.select_features(["z", "x", "y"])])
    assert_same(rankwise.load(path), Queries.concat([one, two]))


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (make(4, qid=["b", "q", "b", "b"]), "query 'q' is in block 0 and in block 1"),
        (make(2, columns=4, qid=["b", "b"]), "block 1 has 4 features, block 0 has 3"),
        (make(2, qid=["b", "b"]).with_labels(None), "block 0 has labels and block 1 has none"),
        (make(2, qid=["b", "b"], feature_names=["x", "y", "z"]), "block 1 has feature names and block 0 has none"),
        (make(2, qid=[0.5, 1.5]), "named by real numbers and by texts"),
        (make(2, qid=[("b",), ("c",)]), "of type tuple"),
    ],
)
def test_blocks_that_do_not_fit_are_refused_and_leave_nothing(path, second, sentence):
    with pytest.raises(DataError, match=sentence):
        write(path, [make(2, qid=["q", "q"]), second])
    assert left_behind(path) == []


def test_blocks_of_one_text_may_differ_in_their_kinds_of_ids(path):
    first = make(3, qid=[1, 2, 2])
    second = make(2, qid=["3", "b"], docid=["x", "y"])
    third = make(1, qid=[4])
    write(path, [first, second, third])
    back = rankwise.load(path)
    assert back.names() == ["1", "2", "3", "b", "4"]
    assert list(back.docid) == ["", "", "", "x", "y", ""]
    with pytest.raises(DataError, match="another by the text of that number"):
        write(path, [first, make(1, qid=["1"])])


def test_an_empty_block_may_come_first(path):
    empty = make(0, qid=[], docid=[])
    write(path, [empty, make(2, qid=[5, 5]), make(1, qid=[6], docid=["x"])])
    assert list(rankwise.load(path).docid) == ["", "", "x"]
    assert rankwise.load(path).names() == [5, 6]


def test_double_precision_does_not_go_into_a_single_precision_file(path):
    single, double = make(2, qid=["a", "a"], dtype=np.float32), make(2, qid=["b", "b"])
    write(path, [double, single])
    assert rankwise.load(path).X.dtype == np.float64
    with pytest.raises(DataError, match="block 1 is float64 and would lose digits"):
        write(path, [single, double])
    assert rankwise.load(path).names() == ["b", "a"]  # still the first file


def test_no_block_at_all_is_a_mistake(path):
    with pytest.raises(DataError, match="no queries were appended"), QueriesWriter(path):
        pass
    assert left_behind(path) == []


def test_an_error_between_blocks_keeps_the_old_file(path):
    make(3).save(path)
    before = path.read_bytes()

    def interrupted():
        yield make(9)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, interrupted())
    assert path.read_bytes() == before
    assert left_behind(path) == [path.name]


def test_two_saves_of_the_same_queries_are_the_same_bytes(path, tmp_path):
    make(9).save(path)
    make(9).save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


# ------------------------------------------------------------------------------------------- the file itself


def test_the_real_library_reads_what_is_written(path):
    queries = make(6, dtype=np.float32, docid=list("abcdef"), feature_names=["x", "y", "z"])
    queries.save(path)
    arrays = load_file(path)
    assert arrays["X"].tobytes() == queries.X.tobytes()
    assert arrays["y"].tobytes() == queries.y.tobytes()
    assert arrays["docid.bytes"].tobytes() == b"abcdef"
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["rankwise"])
    assert (about["kind"], about["format"], about["version"]) == ("queries", 1, rankwise.__version__)


@anywhere
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "bool"]),
            st.lists(st.integers(0, 4), max_size=4),
            st.lists(st.integers(0, 3), max_size=2),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0, 20_000]),
)
def test_arrays_appended_in_pieces_are_whole_again(tmp_path, arrays, long):
    rng = np.random.default_rng(0)
    expected = {}
    with StoreWriter(tmp_path / "s", "test") as writer:
        writer.metadata["text"] = "\u20ac\ud800" + "x" * long  # a header longer than what was reserved for it
        for number, (dtype, pieces, row) in enumerate(arrays):
            chunks = [rng.integers(0, 2, (length, *row)).astype(dtype) for length in [*pieces, 1]]
            for chunk in chunks:
                writer.append(str(number), chunk)
            expected[str(number)] = np.concatenate(chunks)
    store = open_store(tmp_path / "s")
    assert store.kind == "test"
    assert store.metadata == {"text": "\u20ac\ud800" + "x" * long}
    real = load_file(tmp_path / "s")
    for name, array in expected.items():
        for found in (store.array(name), store.map(name), real[name]):
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)
        assert store.map(name).flags.aligned
    assert not expected["0"].size or store.map("0").ctypes.data % 64 == 0


def test_other_arrays_than_numbers_are_refused(path):
    for array in (np.array(["a"]), np.array([1j]), np.array([object()])):
        with pytest.raises(RankwiseError, match="cannot be stored"), StoreWriter(path, "test") as writer:
            writer.append("a", array)
    assert left_behind(path) == []


def test_rows_of_another_width_cannot_follow(path):
    with StoreWriter(path, "test") as writer:
        writer.append("a", np.zeros((1, 2)))
        with pytest.raises(RankwiseError, match="cannot follow rows"):
            writer.append("a", np.zeros((1, 3)))
    assert open_store(path).array("a").shape == (1, 2)


def test_a_saved_file_has_the_usual_permissions(path):
    make(3).save(path)
    other = path.with_name("plain")
    other.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_a_link_is_written_through(path):
    make(3).save(path)
    link = path.with_name("link")
    link.symlink_to(path)
    make(4).save(link)
    assert link.is_symlink()
    assert rankwise.load(path).n_documents == 4


def test_what_cannot_be_written_is_said_in_a_sentence(tmp_path):
    with pytest.raises(RankwiseError, match=r"cannot be written: the folder .* does not exist"):
        make(3).save(tmp_path / "no" / "where")
    with pytest.raises(RankwiseError, match="cannot be written: it is a folder"):
        make(3).save(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_said_in_a_sentence(path, monkeypatch):
    real_open = open
    monkeypatch.setattr(store_module, "open", lambda name, mode: real_open("/dev/full", "r+b"), raising=False)
    with pytest.raises(RankwiseError, match="cannot be written: No space left on device"):
        make(100_000).save(path)
    assert left_behind(path) == []


# ------------------------------------------------------------------------------------------- files that change


def test_r3_what_was_read_into_memory_does_not_need_its_file(path):
    queries = make(5_000, columns=9)
    queries.save(path)
    back = rankwise.load(path, mmap=False)
    with open(path, "r+b") as file:
        file.truncate(100)  # a mapped file must not be treated so
    assert not isinstance(back.X, np.memmap)
    assert not back.X.flags.writeable
    assert_same(back, queries)


@pytest.mark.parametrize("mmap", [True, False])
def test_r3_a_file_that_is_shorter_than_its_header_says_is_refused_at_once(path, mmap):
    make(5_000, columns=9).save(path)
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(FileFormatError, match="is not a rankwise file, or is damaged"):
        rankwise.load(path, mmap=mmap)


@pytest.mark.parametrize("read", [lambda store: store.array("X"), lambda store: store.map("X")], ids=["array", "map"])
@pytest.mark.parametrize(
    "change",
    [
        lambda path: make(70).save(path),
        lambda path: make(50, dtype=np.float32).save(path),
        lambda path: os.truncate(path, 20_000),
        lambda path: path.write_bytes(path.read_bytes() + b"more"),
        lambda path: path.unlink(),
    ],
    ids=["replaced", "replaced by another type", "cut short", "longer", "removed"],
)
def test_r3_arrays_come_from_the_file_whose_header_was_checked_or_not_at_all(path, read, change):
    make(5_000).save(path)
    store = open_store(path)
    change(path)
    with pytest.raises(FileFormatError, match=r"was replaced or changed while it was read|No such file"):
        read(store)


def test_r3_a_file_cut_short_between_two_looks_is_refused(path, monkeypatch):
    make(5_000).save(path)
    store = open_store(path)
    os.truncate(path, 20_000)
    monkeypatch.setattr(store_module, "identity_of", lambda file: store.identity)  # cut short after that look
    for read in (store.array, store.map):
        with pytest.raises(FileFormatError, match="was cut short while it was read"):
            read("X")


def test_r3_loading_while_another_process_saves_gives_one_of_the_two_whole(path, monkeypatch):
    old, new = make(3, qid=["a", "b", "a"]), make(70)
    saves = iter([new])
    read_texts = rankwise.queries.stored.read_texts

    def saved_over(store, name, count):
        following = next(saves, None)
        if following is not None:
            following.save(path)
        return read_texts(store, name, count)

    monkeypatch.setattr(rankwise.queries.stored, "read_texts", saved_over)
    old.save(path)
    assert_same(rankwise.load(path), old)
    assert next(saves, None) is None
    assert_same(rankwise.load(path), new)


# ------------------------------------------------------------------------------------------- strangers' files


def test_what_is_not_there_or_not_a_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"nothing\.rankwise does not exist"):
        rankwise.load(tmp_path / "nothing.rankwise")
    with pytest.raises(FileFormatError, match=r"is a folder without manifest\.json"):
        rankwise.load(tmp_path)


def test_other_tensors_are_not_ours(path):
    save_file({"X": np.zeros((2, 2))}, path)
    with pytest.raises(FileFormatError, match="rankwise did not write it"):
        rankwise.load(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"2 qid:1 1:0.5\n", bytes(8), b"\xff" * 64, b"PK\x03\x04" + bytes(60)])
def test_other_files_are_not_ours(path, content):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"queries\.rankwise is not a rankwise file") as refusal:
        rankwise.load(path)
    assert "\n" not in str(refusal.value)


def test_a_newer_format_is_refused_by_its_number(path, monkeypatch):
    monkeypatch.setattr(store_module, "FORMAT", 2)
    make(3).save(path)
    monkeypatch.setattr(store_module, "FORMAT", 1)
    with pytest.raises(FileFormatError, match=r"has format 2, .* reads formats up to 1: install a newer one"):
        rankwise.load(path)


def test_an_unknown_kind_is_refused_by_its_name(path):
    with StoreWriter(path, "weather") as writer:
        writer.append("X", [1.0])
    with pytest.raises(FileFormatError, match="holds 'weather', which this version does not know"):
        rankwise.load(path)
    with pytest.raises(FileFormatError, match="holds 'weather', not queries"):
        load_queries(path)


@anywhere
@given(st.data())
def test_a_file_cut_short_is_refused(tmp_path, data):
    path = tmp_path / "cut"
    make(5, docid=list("abcde")).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(FileFormatError, match="cut is not a rankwise file, or is damaged"):
        rankwise.load(path)


def damaged(path, change):
    """The file of a small set of queries with its arrays and facts changed, written by the real library."""
    make(4, qid=["a", "b", "a", "b"], docid=list("wxyz"), feature_names=["x", "y", "z"], weight=[1, 2]).save(path)
    arrays = load_file(path)
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["rankwise"])
    change(arrays, about)
    save_file(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, {"rankwise": json.dumps(about)}
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, about: arrays.pop("X"),
        lambda arrays, about: arrays.pop("start"),
        lambda arrays, about: arrays.pop("docid.bytes"),
        lambda arrays, about: arrays.update(X=arrays["X"].astype(np.int64)),
        lambda arrays, about: arrays.update(X=arrays["X"][:, 0]),
        lambda arrays, about: arrays.update(X=arrays["X"][:3]),
        lambda arrays, about: arrays.update(X=arrays["X"][:, :2]),
        lambda arrays, about: arrays.update(start=np.zeros(0, dtype=np.int64)),
        lambda arrays, about: arrays.update(start=np.array([0, 9, 4])),
        lambda arrays, about: arrays.update(start=np.array([-4, 2, 4])),
        lambda arrays, about: arrays.update(start=np.array([0, 2, 5])),
        lambda arrays, about: arrays.update(start=np.array([0.0, 2.0, 4.0])),
        lambda arrays, about: arrays.update(rows=np.array([0, 1, 2, 4])),
        lambda arrays, about: arrays.update(rows=np.array([0, 1, 2, -1])),
        lambda arrays, about: arrays.update(rows=np.array([0, 1, 1, 2])),
        lambda arrays, about: arrays.update(rows=np.array([0, 1, 2])),
        lambda arrays, about: arrays.update(y=np.array([0, 1, 2, -1.0])),
        lambda arrays, about: arrays.update(y=np.array([0, 1, 2, np.nan])),
        lambda arrays, about: arrays.update(y=np.zeros(3)),
        lambda arrays, about: arrays.update(weight=np.ones(3)),
        lambda arrays, about: arrays.update(weight=np.array([1, np.inf])),
        lambda arrays, about: arrays.update({"qid.offset": np.array([0, 1])}),
        lambda arrays, about: arrays.update({"qid.offset": np.array([0, 99, 2])}),
        lambda arrays, about: arrays.update({"docid.offset": np.array([0, 3, 2, 3, 4])}),
        lambda arrays, about: arrays.update({"docid.offset": np.array([1, 2, 2, 3, 4])}),
        lambda arrays, about: arrays.update({"feature.bytes": np.frombuffer(b"xxx", dtype=np.uint8)}),
        lambda arrays, about: arrays.update(qid=np.array([np.nan, 1])),
        lambda arrays, about: arrays.update(qid=np.array([[1, 2]])),
        lambda arrays, about: about["facts"].update(scaling="standard"),
        lambda arrays, about: about["facts"].update(scaling={}),
        lambda arrays, about: about["facts"].update(scaling={"how": "standard", "per": "set", "n_features": 3}),
        lambda arrays, about: about["facts"].update(scaling={"how": ["log"], "per": "query", "n_features": 3}),
        lambda arrays, about: about.pop("kind"),
        lambda arrays, about: about.update(format="1"),
        lambda arrays, about: about.update(facts=[]),
        lambda arrays, about: about.update(kind=["queries"]),
    ],
)
def test_a_well_formed_file_with_nonsense_inside_is_refused(path, change):
    damaged(path, change)
    with pytest.raises(FileFormatError, match=r"queries\.rankwise is damaged: ") as refusal:
        rankwise.load(path)
    assert "\n" not in str(refusal.value)


@anywhere
@given(st.data())
def test_no_change_of_bytes_does_more_than_raise_a_sentence(tmp_path, data):
    path = tmp_path / "hostile"
    make(4, qid=["a", "b", "a", "b"], docid=list("wxyz"), weight=[1, 2]).save(path)
    content = bytearray(path.read_bytes())
    header = content.index(b"  ")
    place = data.draw(st.integers(0, header) | st.integers(1 << 14, len(content) - 1))
    content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        queries = rankwise.load(path)
    except FileFormatError:
        return
    assert sorted(queries.rows) == list(range(queries.n_documents))
    assert sum(len(query) for query in queries) == queries.n_documents
    assert len(list(queries.docid or [])) in (0, queries.n_documents)
