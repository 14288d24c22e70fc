"""Document weights of queries: they stay with their documents wherever the documents go."""

import pickle

import numpy as np
import pandas as pd
import pytest

from rankwise import Queries, Query, from_frame, iter_letor, load, read_table, write_letor
from rankwise import load as load_any
from rankwise.errors import DataError
from rankwise.io import to_frame
from rankwise.io.tables.frames import iter_table, write_table
from rankwise.io.tables.rows import Roles
from rankwise.queries.fingerprints import TrainingRecord, weights_to_record
from rankwise.queries.source import differing_weights
from rankwise.queries.stored import QueriesWriter

QID = ["b", "a", "b", "c", "a", "b"]
WEIGHT = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])


@pytest.fixture
def queries():
    return Queries.from_arrays(np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2], qid=QID, document_weight=WEIGHT)


def test_selections_keep_the_weight_of_each_document(queries):
    assert queries[["b" == "c", True, True]].document_weight.tolist() == [0.5, 3.0, 2.0]
    assert queries[[2, 0]].document_weight.tolist() == [2.0, 0.0, 1.0, 4.0]
    assert queries[1:].document_weight.tolist() == [0.5, 3.0, 2.0]
    assert queries[0].document_weight.tolist() == [0.0, 1.0, 4.0]
    grouped = queries[[0, 1, 2]]
    assert grouped.is_grouped
    assert grouped[1:2].document_weight.tolist() == [0.5, 3.0]
    assert next(iter(queries)).document_weight.tolist() == [0.0, 1.0, 4.0]


def test_what_makes_other_queries_keeps_them(queries):
    for other in (
        queries.with_labels(None),
        queries.with_weight([1, 2, 3]),
        queries.map_features(np.sqrt),
        pickle.loads(pickle.dumps(queries)),
        Queries(queries.X, queries.y, queries.start, queries.rows, document_weight=WEIGHT),
    ):
        assert other.document_weight.tolist() == WEIGHT.tolist()
    assert queries.with_document_weight(None).document_weight is None
    assert not queries.document_weight.flags.writeable


def test_parts_without_weights_have_ones_when_joined(queries):
    plain = Queries.from_arrays([[1.0, 2.0]], [1], qid=["d"])
    assert Queries.concat([plain, queries]).document_weight.tolist() == [1.0, *WEIGHT]
    assert Queries.concat([plain]).document_weight is None


@pytest.mark.parametrize("mmap", [True, False])
def test_files_keep_them(queries, tmp_path, mmap):
    queries.save(tmp_path / "q.rankwise")
    found = load(tmp_path / "q.rankwise", mmap=mmap)
    assert found.document_weight.tolist() == WEIGHT.tolist()
    assert found.names() == queries.names()
    queries.with_document_weight(None).save(tmp_path / "plain.rankwise")
    assert load_any(tmp_path / "plain.rankwise").document_weight is None


def test_blocks_of_a_file_have_ones_where_they_have_none(queries, tmp_path):
    plain = Queries.from_arrays([[1.0, 2.0], [1.0, 3.0]], [1, 0], qid=["d", "d"])
    last = Queries.from_arrays([[5.0, 2.0]], [1], qid=["e"])
    with QueriesWriter(tmp_path / "q.rankwise") as writer:
        for block in (plain, queries, last):
            writer.append(block)
    assert load(tmp_path / "q.rankwise").document_weight.tolist() == [1.0, 1.0, *WEIGHT, 1.0]


def test_damaged_weights_in_a_file_are_refused(queries, tmp_path):
    bad = queries._replace(document_weight=-WEIGHT)
    bad.save(tmp_path / "q.rankwise")
    with pytest.raises(DataError.__base__, match=r"document weights must be .*, got -0\.5 at row 1"):
        load(tmp_path / "q.rankwise")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_keep_them(queries, backend):
    frame = to_frame(queries, backend)
    found = from_frame(frame, document_weight="document_weight")
    assert found.document_weight.tolist() == WEIGHT.tolist()
    assert found.n_features == 2


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tables_keep_them(queries, tmp_path, ending):
    write_table(queries, tmp_path / f"q.{ending}")
    named = {} if ending == "parquet" else {"document_weight": "document_weight"}
    assert read_table(tmp_path / f"q.{ending}", **named).document_weight.tolist() == WEIGHT.tolist()


def test_blocks_of_a_table_without_labels_leave_them_out(queries, tmp_path):
    write_table(queries[[0, 1, 2]], tmp_path / "q.parquet")
    (block,) = iter_table(tmp_path / "q.parquet", Roles())
    assert block.n_features == 2


def test_a_cell_that_is_no_weight_is_named(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("qid,label,w,x\na,1,2,3\na,0,much,4\n")
    with pytest.raises(DataError.__base__, match="much"):
        read_table(path, document_weight="w")


def test_rows_without_labels_are_dropped_with_their_weights():
    frame = pd.DataFrame({"qid": [1, 1, 1], "label": [1.0, None, 0.0], "x": [1.0, 2.0, 3.0], "w": [5.0, 6.0, 7.0]})
    assert from_frame(frame, document_weight="w", unjudged="drop").document_weight.tolist() == [5.0, 7.0]


def test_letor_text_holds_none(queries, tmp_path):
    write_letor(queries[[0, 1, 2]], tmp_path / "q.txt")
    assert next(iter_letor(tmp_path / "q.txt")).document_weight is None


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([1.0] * 5, "one number per row, got shape"),
        ([-1.0] + [1.0] * 5, "got -1.0 at row 0"),
        ([np.nan] + [1.0] * 5, "got nan at row 0"),
        ([1e200] + [1.0] * 5, r"got 1e\+200 at row 0"),
        ([0.0] * 6, "at least one document weight must be above 0"),
        (["x"] * 6, "document_weight must hold one number per row"),
    ],
)
def test_bad_weights_are_refused(queries, weight, sentence):
    with pytest.raises(DataError, match=sentence):
        queries.with_document_weight(weight)
    with pytest.raises(DataError, match=sentence):
        Queries.from_arrays(queries.X, queries.y, qid=QID, document_weight=weight)


def test_one_query_is_checked_too():
    assert Query([[1.0]], [1], "q", None, 1.0, None, [2.0]).document_weight.tolist() == [2.0]
    with pytest.raises(DataError, match="document weights"):
        Query([[1.0]], [1], "q", None, 1.0, None, [-2.0])


def test_weights_of_one_are_no_weights(queries):
    assert differing_weights(queries.with_document_weight(np.ones(6))) is None
    assert differing_weights(queries.with_document_weight(np.full(6, 2.0))) is not None


def test_the_record_of_a_fit_tells_document_weights_apart(queries):
    plain = queries.with_document_weight(None)
    records = [
        TrainingRecord.of(one)
        for one in (plain, queries, queries.with_document_weight(WEIGHT[::-1]), queries.with_weight([1, 2, 3]))
    ]
    assert len(set(records)) == 4
    assert TrainingRecord.of(plain.with_document_weight(np.ones(6))) == records[0]
    assert records[0].compare(records[1]) == "with other weights"
    assert records[1].compare(TrainingRecord.of(queries[[2, 0, 1]])) == "in another order"
    assert weights_to_record(plain) is None
