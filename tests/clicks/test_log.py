"""Click logs: columns in any order are sessions, files are logs, and what cannot be is an error with a name."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise import clicks
from rankwise.clicks import ClickLog
from rankwise.errors import DataError, DataWarning, FileFormatError, RankwiseError

ROWS = {
    "session": ["s1", "s1", "s2", "s1", "s2"],
    "qid": ["q", "q", "r", "q", "r"],
    "docid": ["b", "a", "x", "c", "y"],
    "position": [2, 1, 1, 3, 2],
    "click": [1, 0, 0, 2, 1],
}


def same(one, other):
    for name in ("start", "session", "qid", "docid", "position", "click"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_rows_in_any_order_become_sessions_by_position():
    log = ClickLog.from_rows(**ROWS)
    assert len(log) == 2
    assert log.docid.tolist() == ["a", "b", "c", "x", "y"]
    assert log.click.tolist() == [False, True, True, False, True]  # two clicks count once
    assert log.sizes.tolist() == [3, 2]


@given(st.permutations(range(5)))
def test_the_order_of_rows_within_sessions_is_immaterial(order):
    shuffled = {name: [values[i] for i in order] for name, values in ROWS.items()}
    log = ClickLog.from_rows(**shuffled)
    if log.session.tolist() == ["s2", "s1"]:
        log = log[[1, 0]]
    same(log, ClickLog.from_rows(**ROWS))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_by_the_names_of_their_columns(frame):
    renamed = {"s": ROWS["session"], **{name: ROWS[name] for name in ROWS if name != "session"}}
    same(ClickLog.from_frame(frame(renamed), session="s"), ClickLog.from_rows(**ROWS))
    with pytest.raises(DataError, match="no column 'nobody' for docid"):
        ClickLog.from_frame(frame(renamed), session="s", docid="nobody")


def written(path, packed=False):
    order = [0, 1, 3, 2, 4]
    lines = [",".join(ROWS), *(",".join(str(ROWS[name][i]) for name in ROWS) for i in order)]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_csv_is_read_whole_and_in_blocks(tmp_path, packed):
    path = written(tmp_path / "log.csv", packed)
    same(ClickLog.from_csv(path), ClickLog.from_rows(**ROWS))
    blocks = list(ClickLog.iter_csv(path, sessions=1))
    assert [len(block) for block in blocks] == [1, 1]
    same(ClickLog.concat(blocks), ClickLog.from_rows(**ROWS))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"position": [2, 1, 1, 2, 2]}, "two documents at position 2"),
        ({"docid": ["b", "a", "x", "b", "y"]}, "more than once the document b"),
        ({"qid": ["q", "q", "r", "z", "r"]}, "one value of qid, got q and z"),
        ({"position": [2, 0, 1, 3, 2]}, "position must be an integer of at least 1, got 0"),
        ({"position": [2, 1.5, 1, 3, 2]}, "must be an integer"),
        ({"click": [1, 0, 0, -1, 1]}, "click must be at least 0"),
        ({"click": [1, 0, np.nan, 1, 1]}, "finite"),
        ({"click": [1, 0]}, "one value for each of the 5 shown documents, got 2"),
        ({"swap": [2] * 5}, "swap requires the column swapped"),
        ({"exploration": [2.0] * 5, "pool": [9] * 5}, "exploration must be in"),
        ({"exploration": [0.5] * 5, "pool": [2] * 5}, "must be at least the number of shown documents"),
        ({name: [] for name in ROWS}, "at least one shown document"),
    ],
)
def test_what_no_log_can_be_is_an_error(change, words):
    with pytest.raises(DataError, match=words):
        ClickLog.from_rows(**{**ROWS, **change})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("session,qid,docid,position\n", "no column 'click'"),
        ("session,qid,docid,position,click\n", "has a header but no rows"),
        ("session,qid,docid,position,click\n1,q,a,1\n", "line 2: expected 5 cells as in the header, got 4"),
        ("session,qid,docid,position,click\n1,q,a,one,0\n", "line 2: position must be a number, got 'one'"),
        ("session,qid,docid,position,click\n1,q,a,1,0\n2,q,a,1,0\n1,q,b,2,0\n", "session '1' returns"),
    ],
)
def test_a_wrong_csv_names_its_line(tmp_path, text, words):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(RankwiseError, match=words):
        ClickLog.from_csv(path)


def test_logs_are_joined_with_candidates_by_name():
    documents = rw.Queries.from_arrays(
        np.arange(6.0)[:, None], qid=["r", "q", "q", "q", "r", "r"], docid=["x", "a", "b", "c", "y", "z"]
    )
    log = ClickLog.from_rows(**ROWS).join(documents)
    assert [list(documents.docid)[row] for row in log.row] == log.docid.tolist()
    assert log.query.tolist() == [1, 0]
    with pytest.raises(DataError, match=r"session s1 .* document 'b'"):
        ClickLog.from_rows(**ROWS).join(documents[[1]]._replace(docid=documents[[1]].docid[[0, 0, 0]]))
    kept = ClickLog.from_rows(**ROWS).join(documents[[0]], unknown="drop")
    assert kept.session.tolist() == ["s2"]


def test_parts_hold_every_session_once_and_whole_queries_if_asked():
    queries = rw.make_lists(30, documents=5, features=2, random_state=0)
    log = clicks.simulate(queries, queries.X[:, 0], 300, shown=5)
    for by in ("session", "query"):
        parts = log.split((0.5, 0.3, 0.2), by=by, random_state=1)
        assert sorted(np.concatenate([part.session for part in parts])) == sorted(log.session)
        if by == "query":
            assert not set(parts[0].qid) & set(parts[1].qid)
    with pytest.raises(DataError, match="sum to 1"):
        log.split((0.5, 0.6))


def test_inspection_counts_gaps_and_programs():
    log = ClickLog.from_rows(
        session=[1] * 5 + [2, 2], qid=[1] * 7, docid=list("abcdeab"), position=[1, 2, 3, 4, 5, 1, 3],
        click=[1, 1, 1, 1, 1, 0, 0],
    )  # fmt: skip
    found = dict(zip(clicks.inspect(log)["what"], clicks.inspect(log)["sessions"], strict=True))
    assert found["a position is missing"] == 1
    assert found["nearly everything clicked"] == 1
    assert found["without a click"] == 1


# ---------------------------------------------------------------------------------------------------------------- UBI


def ubi_files(folder, queries, events):
    paths = folder / "ubi_queries.jsonl", folder / "ubi_events.jsonl"
    for path, lines in zip(paths, (queries, events), strict=True):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return paths


def ubi_query(number, hits, **more):
    return {
        "application": "shop", "query_id": f"id-{number}", "client_id": "c", "user_query": "laptop",
        "query_response_id": f"r-{number}", "query_response_hit_ids": hits, "query_attributes": {},
        "timestamp": "2026-01-01T00:00:00Z", **more,
    }  # fmt: skip


def ubi_event(number, document, action="click", ordinal=None):
    shown = {} if document is None else {"object": {"object_id": document, "object_id_field": "sku"}}
    return {
        "action_name": action, "query_id": f"id-{number}", "client_id": "c", "timestamp": "2026-01-01T00:00:01Z",
        "message_type": "INFO", "event_attributes": {**shown, "position": {"ordinal": ordinal or 1}},
    }  # fmt: skip


def test_ubi_queries_and_events_become_sessions(tmp_path):
    paths = ubi_files(
        tmp_path,
        [ubi_query(1, ["a", "b", "c"]), {"_source": ubi_query(2, ["c", "a"])}, ubi_query(3, [])],
        [
            ubi_event(1, "b"), ubi_event(1, "b"), ubi_event(2, None, ordinal=2), ubi_event(1, "c", "product_hover"),
            {"action_name": "login", "timestamp": "2026-01-01T00:00:00Z"},
        ],
    )  # fmt: skip
    log = ClickLog.from_ubi(*paths)
    assert log.session.tolist() == ["id-1", "id-2"]
    assert log.qid.tolist() == ["laptop", "laptop"]
    assert log.docid.tolist() == ["a", "b", "c", "c", "a"]
    assert log.click.tolist() == [False, True, False, False, True]
    assert ClickLog.from_ubi(*paths, depth=2).sizes.tolist() == [2, 2]


def test_clicks_on_what_was_not_shown_are_counted(tmp_path):
    paths = ubi_files(tmp_path, [ubi_query(1, ["a", "b"])], [ubi_event(1, "z"), ubi_event(9, "a")])
    with pytest.warns(DataWarning, match="of 2 clicks 1 are on documents .* 1 belong to no query"):
        assert not ClickLog.from_ubi(*paths).click.any()
    with pytest.raises(FileFormatError, match="did not show"):
        ClickLog.from_ubi(*paths, strange="error")


def test_ubi_attributes_describe_experiments(tmp_path):
    attributes = {"ranker": "v2", "exploration": 0.1, "pool": 8, "logged_hit_ids": ["b", "a"]}
    paths = ubi_files(tmp_path, [ubi_query(1, ["c", "a"], query_attributes=attributes)], [])
    log = ClickLog.from_ubi(*paths, version="ranker")
    assert log.version.tolist() == ["v2"]
    assert log.logged_rank.tolist() == [0, 2]
    assert log.pool.tolist() == [8]


@pytest.mark.parametrize(
    ("query", "event", "words"),
    [
        ("{", None, "ubi_queries.jsonl, line 1: not a line of JSON"),
        ("[1]", None, "expected a JSON object"),
        ('{"query_response_hit_ids": ["a"], "user_query": "x"}', None, "query_id must be a non-empty string"),
        ('{"query_id": "1", "query_response_hit_ids": "a", "user_query": "x"}', None, "must be a list"),
        ('{"query_id": "1", "query_response_hit_ids": ["a"]}', None, "there is no 'user_query'"),
        ('{"query_id": "1", "user_query": "x"}', None, "has no query with"),
        (None, '{"action_name": 3}', "ubi_events.jsonl, line 1: action_name must be a string"),
        (None, '{"action_name": "click", "query_id": "id-1"}', "a click must have event_attributes"),
    ],
)
def test_a_wrong_line_of_ubi_is_named(tmp_path, query, event, words):
    paths = ubi_files(tmp_path, [ubi_query(1, ["a"])], [])
    for path, text in zip(paths, (query, event), strict=True):
        if text is not None:
            path.write_text(text + "\n")
    with pytest.raises(FileFormatError, match=words):
        ClickLog.from_ubi(*paths)


def test_a_second_page_of_one_query_id_is_refused_or_left_out(tmp_path):
    paths = ubi_files(tmp_path, [ubi_query(1, ["a"]), ubi_query(1, ["b"])], [])
    with pytest.raises(FileFormatError, match="occurs twice"):
        ClickLog.from_ubi(*paths)
    assert ClickLog.from_ubi(*paths, repeated="first").docid.tolist() == ["a"]


def test_a_notebook_shows_the_clicks_by_position():
    html = ClickLog.from_rows(**ROWS)._repr_html_()
    assert "2 sessions, 5 shown, 3 clicks" in html
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert [cells[place : place + 4] for place in range(0, len(cells), 4)] == [
        ["1", "2", "0", "0.0000"],
        ["2", "2", "2", "1.0000"],
        ["3", "1", "1", "1.0000"],
    ]
