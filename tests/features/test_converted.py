"""Files that are larger than memory: converted once to parts in the cache, with features learned from a sample."""

import gzip
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.features import converted, sampled, table
from rankwise.features.converted import open_converted, within
from rankwise.features.judged import new_builder
from rankwise.features.table import SelectedRows
from rankwise.io import convert
from rankwise.queries.parts.regroup import Regrouped
from tests.features.shop import shop
from tests.queries.test_parts import assert_same

LISTS = rw.make_lists(40, documents=(2, 9), features=3, random_state=6)
OPTIONS = {"qid": "qid", "label": "label"}
SHOP = {"qid": "search", "label": "grade", "docid": "sku"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of its own, and a working folder; blocks of a table are small."""
    monkeypatch.setattr(converted, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(table, "_CELLS", 600)
    monkeypatch.setattr(parallel, "CHUNK", 50)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "cache" / "parts"


def opened(path="t.csv", options=OPTIONS, **how):
    return open_converted(path, options, 10_000, "is too large", **how)


def write(name, frame):
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    elif ".jsonl" in name:
        text = "".join(json.dumps({**row}) + "\n" for row in json.loads(frame.to_json(orient="records")))
        Path(name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    else:
        frame.to_csv(name, index=False)
    return name


# --------------------------------------------------------------------------------------------------------- load


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet", "t.txt", "t.txt.gz"])
def test_load_gives_queries_of_what_fits_and_the_same_in_parts_of_what_does_not(name, capsys):
    if ".txt" in name:
        rw.write_letor(LISTS, name)
    else:
        write(name, rw.io.to_frame(LISTS).iloc[np.random.default_rng(0).permutation(LISTS.n_documents)])
    own, parts = rw.load(name, memory="1GB"), rw.load(name, memory=1000)
    assert isinstance(own, rw.Queries)
    assert isinstance(parts, rw.Parts)
    assert_same(parts.to_queries(), own[np.arange(len(own))])
    assert parts.executor.memory_limit == 250
    said = capsys.readouterr().err
    assert said.startswith(f"rankwise: {name} needs about ")
    assert f"(rm -r {parts.path} removes them)" in said
    assert said.count("\n") == 1


def test_float32_stays_float32():
    frame = rw.io.to_frame(LISTS)
    features = list(LISTS.feature_names)
    write("t.parquet", frame.astype(dict.fromkeys(features, "float32")))
    own, parts = rw.load("t.parquet", memory="1GB"), rw.load("t.parquet", memory=1000)
    assert own.X.dtype == parts.dtype == np.float32
    assert_same(parts.to_queries(), own)


def test_what_was_saved_is_loaded_as_before():
    LISTS.save("t.rankwise")
    assert isinstance(rw.load("t.rankwise", memory=1000), rw.Queries)
    rw.io.write_parts(LISTS, "lists")
    assert rw.load("lists", memory=1000).executor.memory_limit == 250
    with pytest.raises(RankwiseError, match=r"qid= says how judged queries are read, and needs memory="):
        rw.load("t.rankwise", qid="query")
    with pytest.raises(FileFormatError, match=r"missing\.csv"):
        rw.load("missing.csv", memory=1000)
    with pytest.raises(RankwiseError, match="memory must be a number of bytes, such as 256MB, got 'much'"):
        rw.load("lists", memory="much")


def test_passes_get_as_many_threads_as_memory_allows(monkeypatch):
    monkeypatch.setattr(parallel, "threads", lambda n_jobs=None: 8)
    rw.io.write_parts(LISTS, "lists")
    chunk = 50 * 3 * 8
    for memory, workers in ((1, 1), (4 * 3 * chunk, 3), (1 << 40, 8)):
        assert within(rw.Parts("lists"), memory).executor._workers == workers
    assert within(rw.Parts("lists"), 1, workers=5).executor._workers == 5


# --------------------------------------------------------------------------------------------------------- the cache


def test_parts_are_made_once_for_a_file_and_a_way_to_read_it(cache, capsys):
    frame = rw.io.to_frame(LISTS)
    write("t.csv", frame)
    first = opened()
    made = os.stat(f"{first.path}/manifest.json").st_mtime_ns
    assert opened().path == first.path
    assert os.stat(f"{first.path}/manifest.json").st_mtime_ns == made
    assert "the parts of an earlier run are used" in capsys.readouterr().err
    assert opened(options={**OPTIONS, "ignore": ["inlinks"]}).n_features == 2
    write("t.csv", frame.iloc[:-1])
    assert opened().n_documents == LISTS.n_documents - 1
    assert len(list(cache.iterdir())) == 3


def test_parts_that_are_damaged_are_made_again(cache):
    write("t.csv", rw.io.to_frame(LISTS))
    whole = opened()
    for damage in ("manifest.json", "part-00000.rankwise"):
        (cache / Path(whole.path).name / damage).write_text("{}")
        assert_same(opened().to_queries(), rw.read_table("t.csv"))


def test_a_month_without_use_ends_parts(cache):
    write("t.csv", rw.io.to_frame(LISTS))
    old = Path(opened().path)
    os.utime(old, (0, 0))
    opened(options={**OPTIONS, "ignore": ["inlinks"]})
    assert not old.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_conversion_that_stops_leaves_nothing(error, cache, monkeypatch):
    write("t.csv", rw.io.to_frame(LISTS))

    def stops(*given):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Regrouped, "_range", stops)
        with pytest.raises(error):
            opened()
    assert list(cache.iterdir()) == []
    assert len(opened()) == 40


def test_what_a_killed_conversion_left_is_never_taken_and_is_removed(cache):
    write("t.csv", rw.io.to_frame(LISTS))
    whole = Path(opened().path)
    left = cache / f".{whole.name}.0123456789ab.parts"
    whole.rename(left)
    (left / "lock").touch()
    other = cache / ".other-csv-0123456789abcdef.0123456789ab.parts"
    shutil.copytree(left, other)
    (left / "part-00000.rankwise").write_text("half")
    assert_same(opened().to_queries(), rw.read_table("t.csv"))
    assert [path.name for path in cache.iterdir()] == [whole.name]


def test_another_process_may_have_converted_the_file_meanwhile(cache, monkeypatch):
    write("t.csv", rw.io.to_frame(LISTS))
    write_parts, made = converted.write_parts, []

    def twice(name, folder, **how):
        made.append(write_parts(name, folder, **how))
        return write_parts(name, folder, **how)

    monkeypatch.setattr(converted, "write_parts", twice)
    assert opened().path == made[0].path


def test_a_full_disk_and_a_cache_that_cannot_be_written_are_one_sentence(tmp_path, monkeypatch):
    write("t.csv", rw.io.to_frame(LISTS))
    usage = shutil.disk_usage(".")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
        with pytest.raises(RankwiseError, match=r"^t\.csv is too large, and cannot be converted to parts: .* left"):
            opened()
    with monkeypatch.context() as patch:
        patch.setattr(converted, "user_cache", lambda: tmp_path / "work" / "t.csv")
        with pytest.raises(RankwiseError, match=r"t\.csv/parts cannot be written: .*RANKWISE_CACHE_DIR name another"):
            opened()


def test_one_json_list_is_refused_because_it_is_read_as_a_whole():
    Path("t.json").write_text(json.dumps([{"qid": 1, "label": 1, "a": 2.0}, {"qid": 1, "label": 0, "a": 1.0}]))
    with pytest.raises(FileFormatError, match="one JSON list is read as a whole: write each object on a line"):
        opened("t.json")


def test_columns_that_only_later_objects_have():
    rows = [{"qid": 1, "label": 1, "a": 2.0}] * 3 + [{"qid": 1, "label": 0, "b": 1.0, "a": 1.0}] * 3
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = opened("t.jsonl", {**OPTIONS, "missing": "keep"})
    assert parts.feature_names == ("a", "b")
    np.testing.assert_array_equal(parts.to_queries().X, [[2, np.nan]] * 3 + [[1, 1]] * 3)


def test_errors_are_those_of_the_reader():
    Path("t.csv").write_text("qid,label,a\n1,0,1\n1,-1,2\n")
    with pytest.raises(RankwiseError, match=r"t\.csv, line 3: the labels in column 'label' must be 0 or more"):
        opened()
    with pytest.raises(DataError, match=r"no column 'query' among qid, label, a"):
        opened(options={"qid": "query", "label": "label"})


def many():
    return rw.io.to_frame(rw.make_lists(300, documents=10, features=3, random_state=1))


def test_blocks_are_small_enough_for_the_memory(monkeypatch):
    write("t.csv", many())
    sizes = []
    append = Regrouped.append
    monkeypatch.setattr(converted, "_LEAST", 1 << 12)
    monkeypatch.setattr(convert, "_FEWEST", 8)

    def counting(self, block):
        sizes.append(len(block.rows.X))
        append(self, block)

    monkeypatch.setattr(Regrouped, "append", counting)
    monkeypatch.setattr("rankwise.io.tables.csv._BLOCK", 1 << 10)
    opened()
    assert max(sizes) < 200


# --------------------------------------------------------------------------------------------------- tables of words


@pytest.mark.parametrize("name", ["shop.csv", "shop.parquet"])
@pytest.mark.parametrize("missing", ["error", "keep"])
def test_a_table_of_words_has_the_features_of_memory(name, missing, monkeypatch):
    options = {**SHOP, "missing": missing}
    frame = shop().iloc[np.random.default_rng(1).permutation(320)]
    write(name, frame)
    whole = rw.io.read_columns(name)
    own = new_builder(options).fit_transform(whole)
    parts = opened(name, options)
    assert parts.built_by.digest_ == own.built_by.digest_
    assert_same(parts.to_queries(), own[np.arange(len(own))])
    assert opened(name, options).built_by.digest_ == own.built_by.digest_


def test_the_builder_learns_from_training_queries_alone():
    """Whatever stands in rows that will be held out, it is the same builder, and that of memory."""
    frame, held_out = shop(), (0.25, 7)
    write("shop.csv", frame)
    parts = opened("shop.csv", SHOP, held_out=held_out)
    train, test = rw.split(parts, (0.75, 0.25), random_state=7)
    rows = np.flatnonzero(~frame.search.isin(test.qid()).to_numpy())
    own = new_builder(SHOP).fit(SelectedRows(rw.io.read_columns("shop.csv"), rows))
    assert parts.built_by.digest_ == own.digest_
    frame.loc[frame.search.isin(test.qid()), ["brand", "views", "rating"]] = "other", 1e6, 3.0
    write("shop.csv", frame)
    changed = opened("shop.csv", SHOP, held_out=held_out)
    assert changed.built_by.digest_ == own.digest_
    again = rw.split(changed, (0.75, 0.25), random_state=7)[0]
    assert_same(again.to_queries(), train.to_queries())
    assert changed.path != parts.path
    assert opened("shop.csv", SHOP).built_by.digest_ != own.digest_, "learned from all queries"


def test_a_sample_of_whole_queries_does_not_depend_on_blocks(monkeypatch):
    monkeypatch.setattr(sampled, "SAMPLED", 100)
    write("shop.csv", shop())
    digests, appended = set(), []
    append = sampled.SampledTable.append
    monkeypatch.setattr(
        sampled.SampledTable,
        "append",
        lambda self, rows, chosen: (appended.append(int(chosen.sum())), append(self, rows, chosen))[1],
    )
    for cells in (150, 10**6):
        monkeypatch.setattr(table, "_CELLS", cells)
        digests.add(opened("shop.csv", SHOP).built_by.digest_)
        shutil.rmtree(converted.user_cache())
        assert sum(appended) == 96, "twelve queries of eight rows"
        appended.clear()
    assert len(digests) == 1


def test_queries_are_drawn_by_a_seed_until_there_are_enough_rows(monkeypatch):
    monkeypatch.setattr(sampled, "SAMPLED", 100)
    sizes = np.array([60, 50, 30, 20, 400])
    for seed in range(30):
        drawn = sampled.draw_queries(sizes, np.array([0, 2, 3]), seed)
        assert sizes[drawn].sum() <= 100
        assert {*drawn} <= {0, 2, 3}
        np.testing.assert_array_equal(drawn, sampled.draw_queries(sizes, np.array([3, 0, 2]), seed))
    assert sampled.draw_queries(sizes, np.array([4]), 0).tolist() == [4], "one query at least"
    assert len({tuple(sampled.draw_queries(sizes, np.arange(4), seed)) for seed in range(30)}) > 2


def test_rows_without_a_judgment_are_dropped_before_queries_are_numbered():
    frame = shop()
    frame["grade"] = frame.grade.astype(float)
    frame.loc[frame.search.isin([3, 11]), "grade"] = np.nan
    frame.loc[frame.index % 13 == 5, "grade"] = -1.0
    write("shop.csv", frame)
    options = {**SHOP, "unjudged": "drop"}
    parts = opened("shop.csv", options, held_out=(0.25, 7))
    assert len(parts) == 38
    assert_same(parts.to_queries(), parts.built_by.transform(rw.io.read_columns("shop.csv")))


def test_a_value_that_the_sample_did_not_show_is_named(monkeypatch):
    monkeypatch.setattr(sampled, "SAMPLED", 40)
    frame = shop()
    frame["size"] = frame["size"].astype(object)
    frame.loc[200, "size"] = "large"
    write("shop.csv", frame)
    with pytest.raises(DataError, match=r"shop\.csv: column 'size' holds 'large' at row 200, .* sample of 40 rows"):
        opened("shop.csv", SHOP)


def test_a_file_that_changes_while_it_is_read_is_an_error(monkeypatch):
    write("shop.csv", shop())
    learn = converted.learn_from_sample

    def then_changed(*given):
        count = learn(*given)
        write("shop.csv", shop(n_queries=41))
        return count

    monkeypatch.setattr(converted, "learn_from_sample", then_changed)
    with pytest.raises(DataError, match="changed while it was read: it had 40 queries and now has 41"):
        opened("shop.csv", SHOP)


def test_a_word_far_down_a_table_of_numbers_makes_it_a_table_of_words():
    frame = many()
    frame["note"] = 1.0
    frame["note"] = frame["note"].astype(object)
    frame.loc[2500:, "note"] = "x"
    write("t.csv", frame)
    parts = opened("t.csv")
    assert "note=x" in parts.feature_names
    assert isinstance(pd.read_csv("t.csv", low_memory=False).note[2700], str)
