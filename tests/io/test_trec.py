"""TREC runs and judgments: what other tools read in them is what is read here, and what is written they can read."""

import gzip
import io
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import Queries
from rankwise.errors import DataError, DataWarning, FileFormatError, RankwiseError
from rankwise.io import StringColumn
from rankwise.io.trec import Run, from_trec, read_qrels, read_run, write_qrels, write_run

RUN = b"""q1 Q0 d2 1 14.5 mine
q1 Q0 d1 2 3.25 mine
q2\tQ0\td9\t1\t-1e-3\tmine\r

q1 Q0 d7 3 3.25 mine
"""
QRELS = b"q2 0 d1 1\nq1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq2 0 d9 0\n"

words = st.text("abc01é.-", min_size=1, max_size=3)


def file(content):
    return io.BytesIO(content)


def read(run=RUN, qrels=QRELS, **options):
    return from_trec(read_qrels(file(qrels)), read_run(file(run)), **options)


def rows(queries, scores):
    """{query: {document: (label, score)}}"""
    return {
        str(query.qid): dict(zip(query.docid, zip(query.y, scores[queries.rows_of(number)], strict=True), strict=True))
        for number, query in enumerate(queries)
    }


# ------------------------------------------------------------------------------------------- reading


def test_a_run_is_read_line_by_line():
    run = read_run(file(RUN))
    assert list(run.qid) == ["q1", "q1", "q2", "q1"]
    assert list(run.docid) == ["d2", "d1", "d9", "d7"]
    assert run.score.tolist() == [14.5, 3.25, -1e-3, 3.25]
    assert len(run) == 4


def test_judgments_keep_what_they_say():
    qrels = read_qrels(file(b"007 0 d1 -2\n007 0 d2 1.5\n7 x d1 1"))
    assert list(qrels.qid) == ["007", "007", "7"]
    assert qrels.label.tolist() == [-2, 1.5, 1]
    assert len(qrels) == 3


def test_gzip_marks_of_editors_and_odd_bytes_are_taken(tmp_path):
    content = b"\xef\xbb\xbfq1 0 caf\xe9 1\r\nq1 0 \xc3\xa9 0"
    for name, packed in (("plain", content), ("packed", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        with pytest.warns(DataWarning, match=rf"{name} is UTF-8 with stray bytes, the first at byte 12 \(0xE9\)"):
            qrels = read_qrels(tmp_path / name)
        assert list(qrels.qid) == ["q1", "q1"]
        assert list(qrels.docid) == ["caf\xe9", "\xe9"]


def test_lines_longer_than_a_block_of_reading_are_whole():
    lines = b"".join(b"q%d Q0 d%d 1 %d t\n" % (number % 7, number, number) for number in range(100_000))
    run = read_run(file(lines))
    assert run.score.tolist() == list(range(100_000))
    assert run.docid[99_999] == "d99999"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"q1 Q0 d3 1 2.5", r"line 6: expected 6 fields \(qid Q0 docid rank score tag\), got 5"),
        (b"q1 0 d3 2", "line 6: expected 6 fields .*, got 4"),
        (b"q1 Q0 d3 1 2.5 my run", "got 7"),
        (b"q1 Q0 d3 1 high mine", "line 6: score must be a number, got 'high'"),
        (b"q1 Q0 d3 1 nan mine", "score must be a number, got 'nan'"),
        (b"q1 Q0 d3 1 -inf mine", "got '-inf'"),
        (b"q1 Q0 d3 1 1_000 mine", "got '1_000'"),
        (b"q1 Q0 d1 1 2.5 mine", "line 6: document 'd1' of query 'q1' is also on line 2"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, sentence):
    path = tmp_path / "my.run"
    path.write_bytes(RUN + line)
    with pytest.raises(FileFormatError, match=f"my.run, {sentence}" if "line 6" in sentence else sentence):
        read_run(path)


def test_a_document_judged_twice_is_named():
    with pytest.raises(FileFormatError, match="line 6: document 'd1' of query 'q2' is also on line 1"):
        read_qrels(file(QRELS + b"q2 0 d1 0\n"))


def test_a_file_that_is_not_there_or_cut_short_is_named(tmp_path):
    with pytest.raises(RankwiseError, match=r"nothing\.run cannot be read"):
        read_run(tmp_path / "nothing.run")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"".join(b"q Q0 d%d 1 2.5 t\n" % row for row in range(999)))[:-20])
    with pytest.raises(FileFormatError, match=r"cut\.gz is cut off"):
        read_run(tmp_path / "cut.gz")


runs = st.dictionaries(
    words, st.dictionaries(words, st.floats(-1e9, 1e9), min_size=1, max_size=4), min_size=1, max_size=4
)
judgments = st.dictionaries(
    words, st.dictionaries(words, st.integers(-1, 4), min_size=1, max_size=4), min_size=1, max_size=4
)


def as_run(lists):
    lines = [f"{qid} Q0 {docid} 0 {score!r} t" for qid, scores in lists.items() for docid, score in scores.items()]
    return "\n".join(lines).encode()


def as_qrels(lists):
    return "\n".join(
        f"{qid} 0 {docid} {label}" for qid, ones in lists.items() for docid, label in ones.items()
    ).encode()


@given(runs, judgments)
def test_other_tools_read_the_same(run, qrels):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ours, theirs = read_run(file(as_run(run))), pytrec_eval.parse_run(as_run(run).decode().splitlines())
    assert list(zip(ours.qid, ours.docid, ours.score, strict=True)) == [
        (qid, docid, score) for qid, scores in theirs.items() for docid, score in scores.items()
    ]
    ours, theirs = read_qrels(file(as_qrels(qrels))), pytrec_eval.parse_qrel(as_qrels(qrels).decode().splitlines())
    assert list(zip(ours.qid, ours.docid, ours.label, strict=True)) == [
        (qid, docid, label) for qid, labels in theirs.items() for docid, label in labels.items()
    ]


# ------------------------------------------------------------------------------------------- joining


def test_a_list_holds_the_retrieved_and_then_the_judged():
    queries, scores = read()
    assert queries.names() == ["q2", "q1"]
    assert list(queries.docid) == ["d9", "d1", "d2", "d1", "d7", "d3"]
    assert queries.y.tolist() == [0, 1, 0, 2, 0, 1]
    assert scores.tolist() == [-1e-3, -np.inf, 14.5, 3.25, 3.25, -np.inf]
    assert queries.shape == (2, 0)


@given(runs, judgments, st.sampled_from(["skip", "zero"]))
def test_every_list_counts_what_trec_eval_counts(run, qrels, missing_queries):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    if not run.keys() & qrels.keys():
        with pytest.raises(DataError, match="have no query in common"):
            read(as_run(run), as_qrels(qrels), missing_queries=missing_queries)
        return
    queries, scores = read(as_run(run), as_qrels(qrels), missing_queries=missing_queries)
    assert queries.names() == [qid for qid in qrels if qid in run or missing_queries == "zero"]
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"num_rel", "num_ret", "num_rel_ret"}).evaluate(run)
    for number, query in enumerate(queries):
        retrieved = scores[queries.rows_of(number)] > -np.inf
        if query.qid in theirs:
            expected = theirs[query.qid]
            assert ((query.y > 0).sum(), retrieved.sum()) == (expected["num_rel"], expected["num_ret"])
            assert (query.y[retrieved] > 0).sum() == expected["num_rel_ret"]
        else:
            assert query.qid not in run
            assert not retrieved.any()


def test_queries_that_are_only_here_or_there_are_reported(caplog):
    with caplog.at_level(logging.WARNING, "rankwise"):
        queries, _ = read(RUN + b"q5 Q0 d 1 1 t", QRELS + b"q3 0 d 1\nq4 0 d 0")
    assert queries.names() == ["q2", "q1"]
    assert caplog.messages == [
        "2 of 4 judged queries are not in the run, left out: q3, q4",
        "1 of 3 queries of the run are not judged, left out: q5",
    ]


def test_queries_missing_from_the_run_can_count_as_nothing_retrieved(caplog):
    queries, scores = read(RUN, QRELS + b"q3 0 d 1\n", missing_queries="zero")
    assert rows(queries, scores)["q3"] == {"d": (1, -np.inf)}
    assert "kept with nothing retrieved: q3" in caplog.text


def test_negative_labels_follow_the_policy():
    qrels = b"q1 0 d1 -1\nq1 0 d2 2\nq1 0 d3 -2\n"
    zero, dropped = (rows(*read(RUN, qrels, unjudged=policy))["q1"] for policy in ("zero", "drop"))
    assert {docid: label for docid, (label, _) in zero.items()} == {"d1": 0, "d2": 2, "d3": 0, "d7": 0}
    assert {docid: label for docid, (label, _) in dropped.items()} == {"d2": 2, "d7": 0}
    with pytest.raises(DataError, match=r"document 'd1' of query 'q1' has label -1: .* pass unjudged="):
        read(RUN, qrels, unjudged="error")


def test_a_list_from_which_everything_is_dropped_is_no_list():
    assert read(b"a Q0 x 1 1 t\nb Q0 y 1 1 t", b"a 0 x -1\nb 0 y 1", unjudged="drop")[0].names() == ["b"]


def test_runs_made_by_hand_are_checked_too():
    twice = Run(StringColumn.of(["q", "q"]), StringColumn.of(["d", "d"]), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="document 'd' occurs twice in query 'q'"):
        from_trec(read_qrels(file(b"q 0 d 1")), twice)


@pytest.mark.parametrize("option", ["missing_queries", "unjudged"])
def test_unknown_policies_are_refused(option):
    with pytest.raises(RankwiseError, match=f"The '{option}' parameter of from_trec must be .* Got 'ignore' instead"):
        read(**{option: "ignore"})


def test_paths_are_opened_too(tmp_path, data_folder):
    path = data_folder / "trecnews" / "newsir18-entity.qrel"
    qrels = read_qrels(path)
    lines = [f"{qid} Q0 {docid} 1 {row} t" for row, (qid, docid) in enumerate(zip(qrels.qid, qrels.docid, strict=True))]
    (tmp_path / "run").write_text("\n".join(lines))
    queries, scores = from_trec(path, tmp_path / "run")
    assert queries.n_documents == len(qrels)
    assert sorted(scores) == list(range(len(qrels)))
    assert queries.y.sum() == qrels.label.sum()


# ------------------------------------------------------------------------------------------- writing


def lists(qid, docid=None, y=None):
    return Queries.from_arrays(np.zeros((len(qid), 1)), np.zeros(len(qid)) if y is None else y, qid=qid, docid=docid)


def test_a_run_is_written_best_first(tmp_path):
    queries = lists(["b", "a", "b", "b"], ["w", "x", "y", "z"])
    write_run(queries, [0.5, 2.0, 0.5, 1 / 3 + 1], tmp_path / "run", tag="mine")
    assert (tmp_path / "run").read_text() == (
        "b Q0 z 1 1.3333333333333333 mine\nb Q0 w 2 0.5 mine\nb Q0 y 3 0.5 mine\na Q0 x 1 2.0 mine\n"
    )


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_scores_keep_all_their_digits(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "run"
    docid = [f"d{row}" for row in range(len(scores))]
    write_run(lists(["q"] * len(scores), docid), scores, path)
    run = read_run(path)
    assert dict(zip(run.docid, run.score, strict=True)) == dict(zip(docid, scores, strict=True))


@given(st.lists(st.sampled_from([0.0, 1.0, 1 + 1e-12, -5.0, -np.inf]), min_size=1, max_size=8), st.booleans())
def test_ties_as_ranks_fix_the_order_for_every_tool(tmp_path_factory, scores, packed):
    path = tmp_path_factory.mktemp("run") / ("run.gz" if packed else "run")
    docid = [f"d{row}" for row in range(len(scores))]
    write_run(lists(["q"] * len(scores), docid), scores, path, ties_as_rank=True)
    run = read_run(path)
    order = [row for row in sorted(range(len(scores)), key=lambda row: -scores[row]) if scores[row] > -np.inf]
    assert list(run.docid) == [docid[row] for row in order]
    assert run.score.tolist() == list(range(len(order), 0, -1))  # whole, different, and exact in single precision
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == packed


def test_what_is_written_is_read_back(tmp_path):
    queries = lists(["b", "a", "b", "b"], ["w", "x", "y", "z"], y=[0, 2, 1.5, 3])
    scores = np.array([0.25, 1.0, -np.inf, 7.0])
    write_qrels(queries, tmp_path / "qrels")
    write_run(queries, scores, tmp_path / "run")
    assert (tmp_path / "qrels").read_text() == "b 0 w 0\nb 0 y 1.5\nb 0 z 3\na 0 x 2\n"
    back, values = from_trec(tmp_path / "qrels", tmp_path / "run")
    assert rows(back, values) == rows(queries, scores)


def test_documents_without_ids_are_called_by_their_place(tmp_path):
    queries = lists([8, 7, 8], y=[1, 0, 2])
    write_qrels(queries, tmp_path / "qrels")
    write_run(queries, [1, 2, 3], tmp_path / "run")
    assert (tmp_path / "qrels").read_text() == "8 0 0 1\n8 0 1 2\n7 0 0 0\n"
    assert [line.split()[2] for line in (tmp_path / "run").read_text().splitlines()] == ["1", "0", "0"]


@pytest.mark.parametrize(
    ("queries", "options", "sentence"),
    [
        (lists(["a b"]), {}, "the query id 'a b' cannot be written"),
        (lists([""]), {}, "the query id '' cannot be written"),
        (lists([1, "1"]), {}, "two queries would be written as '1'"),
        (lists(["q"], ["x\ty"]), {}, "the document id 'x.*y' cannot be written"),
        (lists(["q", "q"], ["x", "x"]), {}, "document 'x' occurs twice in query 'q'"),
        (lists(["q"]), {"tag": "my run"}, "the tag 'my run' cannot be written"),
        (lists(["q"]), {"scores": [np.nan]}, "scores must not be NaN, got NaN at row 0"),
        (lists(["q"]), {"scores": [np.inf]}, "scores must be finite in a run, got inf at row 0"),
        (lists(["q"]), {"scores": [1, 2]}, r"got shape \(2,\) for 1 rows"),
    ],
)
def test_what_a_line_cannot_hold_is_refused_and_leaves_nothing(tmp_path, queries, options, sentence):
    scores = options.pop("scores", np.zeros(queries.n_documents))
    with pytest.raises(DataError, match=sentence):
        write_run(queries, scores, tmp_path / "run", **options)
    assert list(tmp_path.iterdir()) == []


def test_judgments_need_labels(tmp_path):
    with pytest.raises(DataError, match="have no labels"):
        write_qrels(lists(["q"]).with_labels(None), tmp_path / "qrels")
    assert list(tmp_path.iterdir()) == []


def test_the_same_run_is_the_same_bytes_packed_or_not(tmp_path):
    queries = lists(["q", "q"], ["x", "y"])
    for name in ("one.gz", "two.gz", "three"):
        write_run(queries, [1, 2], tmp_path / name)
    packed = (tmp_path / "one.gz").read_bytes()
    assert packed == (tmp_path / "two.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "three").read_bytes()
