"""``rankwise rank``: the order of a saved model in every form of output, from every kind of file, block by block."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise.io.tables.frames import to_frame, write_table
from rankwise.io.trec import read_run

LISTS = rw.make_lists(25, documents=(1, 12), features=4, random_state=3)
MODEL = rw.RidgeRanker().fit(LISTS)
NAMELESS = rw.RidgeRanker().fit(LISTS._replace(feature_names=None))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankwise.cli.reading.ROWS", 20)  # several blocks
    MODEL.save("m.rankwise")
    NAMELESS.save("plain.rankwise")
    rw.write_letor(LISTS, "lists.txt")
    return tmp_path


@pytest.fixture
def expected():
    return [(row["qid"], row["docid"], row["rank"], row["score"]) for row in MODEL.rank(LISTS)]


def as_rows(text, delimiter=","):
    header, *rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    assert header == ["qid", "docid", "rank", "score"]
    return [(qid, docid, int(rank), float(score)) for qid, docid, rank, score in rows]


@pytest.mark.parametrize(
    "source",
    ["lists.txt", "lists.txt.gz", "lists.csv", "lists.csv.gz", "lists.parquet", "lists.arrow", "lists.rankwise"],
)
@pytest.mark.parametrize("labels", [True, False])
def test_every_kind_of_file_gives_the_order_of_the_model(run, expected, source, labels):
    lists = LISTS if labels else LISTS.with_labels(None)
    if source.startswith("lists.txt"):
        text = Path("lists.txt").read_bytes()
        if not labels:
            text = b"\n".join(b"-1" + line[line.index(b" ") :] for line in text.splitlines()) + b"\n"
        Path(source).write_bytes(gzip.compress(text) if source.endswith("gz") else text)
    elif source.endswith(".arrow"):
        import pyarrow.feather

        pyarrow.feather.write_feather(to_frame(lists, "pyarrow"), source, compression="uncompressed")
    elif source.endswith(".rankwise"):
        lists.save(source)
    else:
        write_table(lists, source.removesuffix(".gz"))
        if source.endswith(".gz"):
            Path(source).write_bytes(gzip.compress(Path("lists.csv").read_bytes()))
    code, out, err = run("rank", "m.rankwise", source)
    assert (code, err) == (0, "")
    assert as_rows(out) == expected


@pytest.mark.parametrize("kind", ["letor", "csv"])
def test_standard_input_is_recognized_by_what_it_holds(run, expected, monkeypatch, kind):
    write_table(LISTS, "lists.csv")
    content = Path("lists.txt" if kind == "letor" else "lists.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = run("rank", "m.rankwise", "-")
    assert code == 0
    assert as_rows(out) == expected


def test_top_keeps_the_best_of_every_query(run, expected):
    out = run("rank", "m.rankwise", "lists.txt", "--top", "2")[1]
    assert as_rows(out) == [row for row in expected if row[2] <= 2]


def test_a_table_a_run_scores_and_lines_say_the_same(run, expected):
    import pyarrow.parquet

    for out in ("o.csv", "o.tsv", "o.run", "o.scores", "o.jsonl", "o.parquet", "o.csv.gz"):
        code, said, err = run("rank", "m.rankwise", "lists.txt", "-o", out)
        assert (code, err) == (0, "")
        assert said == f"{out}: 25 queries, {LISTS.n_documents} documents ranked by RidgeRanker\n"
    assert as_rows(Path("o.csv").read_text()) == expected
    assert as_rows(Path("o.tsv").read_text(), "\t") == expected
    assert as_rows(gzip.decompress(Path("o.csv.gz").read_bytes()).decode()) == expected
    assert [tuple(json.loads(line).values()) for line in Path("o.jsonl").read_text().splitlines()] == expected
    assert [tuple(row.values()) for row in pyarrow.parquet.read_table("o.parquet").to_pylist()] == expected
    assert list(map(float, Path("o.scores").read_text().split())) == MODEL.predict(LISTS).tolist()
    found = read_run("o.run")
    assert list(zip(found.qid, found.docid, found.score.tolist(), strict=True)) == [
        (q, d, s) for q, d, _, s in expected
    ]
    assert Path("o.run").read_text().split()[-1] == "rankwise"


def test_equal_scores_keep_the_order_of_the_input(run):
    Path("ties.txt").write_text(
        "".join(f"0 qid:1 1:{value} 2:0 3:0 4:0 # d{n}\n" for n, value in enumerate([1, 2, 1, 2, 1]))
    )
    flat = rw.RidgeRanker().fit(LISTS._replace(feature_names=None))
    flat.coef_ = np.array([1.0, 0, 0, 0])
    flat.save("flat.rankwise")
    out = run("rank", "flat.rankwise", "ties.txt")[1]
    assert [row[1] for row in as_rows(out)] == ["d1", "d3", "d0", "d2", "d4"]


def test_documents_without_ids_are_called_by_their_row(run):
    Path("bare.txt").write_text("".join(f"0 qid:{n // 3} 1:{n} 2:0 3:0 4:1\n" for n in range(90)))
    rows = as_rows(run("rank", "plain.rankwise", "bare.txt")[1])
    assert sorted(int(docid) for _, docid, _, _ in rows) == list(range(90))
    assert all(int(docid) // 3 == int(qid) for qid, docid, _, _ in rows)
    run_lines = run("rank", "plain.rankwise", "bare.txt", "--to", "trec", "--tag", "x")[1].splitlines()
    assert {line.split()[2] for line in run_lines} == {"0", "1", "2"}


def test_json_is_a_line_a_document_or_what_was_written(run, expected):
    out = run("rank", "m.rankwise", "lists.txt", "--json")[1]
    assert [tuple(json.loads(line).values()) for line in out.splitlines()] == expected
    said = json.loads(run("rank", "m.rankwise", "lists.txt", "--json", "-o", "o.csv")[1])
    assert said == {"out": "o.csv", "ranker": "RidgeRanker", "queries": 25, "documents": LISTS.n_documents}


def test_rows_in_any_order_are_taken_when_told(run, expected):
    rows = np.random.default_rng(0).permutation(LISTS.n_documents)
    lines = np.array(Path("lists.txt").read_text().splitlines())
    Path("mixed.txt").write_text("\n".join(lines[rows]) + "\n")
    code, out, err = run("rank", "m.rankwise", "mixed.txt")
    assert (code, out) == (2, "")
    assert "--unsorted takes rows in any order" in err
    code, out, _ = run("rank", "m.rankwise", "mixed.txt", "--unsorted")
    assert code == 0
    assert sorted(as_rows(out)) == sorted(expected)


def test_columns_go_by_name_and_others_do_not_matter(run, expected):
    frame = to_frame(LISTS)[["clicks", "docid", "qid", "inlinks", "bm25_body", "bm25_title"]]
    frame = frame.assign(url="http://x").rename(columns={"qid": "query"})
    frame.to_csv("other.csv", index=False)
    code, out, _ = run("rank", "m.rankwise", "other.csv", "--qid", "query")
    assert code == 0
    assert as_rows(out) == expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["m.rankwise", "few.csv"], "there is no column 'inlinks', 'clicks', which RidgeRanker (m.rankwise) requires"),
        (
            ["plain.rankwise", "few.txt"],
            "few.txt must have 4 features, as RidgeRanker was trained on, got 3 in its first lines: feature 4 is",
        ),
        (
            ["plain.rankwise", "many.txt"],
            "many.txt must have 4 features, as RidgeRanker was trained on, got 6: features 5 to 6 are unknown",
        ),
        (
            ["plain.rankwise", "few.csv"],
            "few.csv must have 4 features, as RidgeRanker was trained on, got 2 (bm25_title, bm25_body ...)",
        ),
        (["lists.txt", "m.rankwise"], "lists.txt is not a saved ranker: the model comes first"),
        (["nowhere.rankwise", "lists.txt"], "nowhere.rankwise does not exist"),
        (["m.rankwise", "nowhere.txt"], "nowhere.txt cannot be read: there is no such file"),
        (["m.rankwise", "lists.txt", "-o", "o.docx"], "the suffix of o.docx must be one of"),
        (["m.rankwise", "lists.txt", "-o", "no/o.csv"], "no/o.csv cannot be written: the folder"),
        (["m.rankwise", "lists.txt", "--to", "parquet"], "--to parquet requires --out FILE"),
        (["m.rankwise", "lists.txt", "--to", "scores", "--top", "3"], "--top does not apply"),
        (["m.rankwise", "lists.txt", "--to", "trec", "--tag", "two words"], "without blanks, got 'two words'"),
        (["m.rankwise", "holes.csv"], "column 'clicks' must be finite, got an empty cell: pass --missing zero"),
        (["queries.rankwise", "lists.txt"], "queries.rankwise must be a saved ranker, got queries"),
    ],
)
def test_what_does_not_fit_is_one_sentence(run, here, arguments, sentence):
    Path("few.csv").write_text("qid,bm25_title,bm25_body\n1,0.5,1\n")
    Path("holes.csv").write_text("qid,bm25_title,bm25_body,inlinks,clicks\n1,0.5,1,2,\n")
    Path("few.txt").write_text("0 qid:1 1:0.5 2:1 3:2\n")
    Path("many.txt").write_text("0 qid:1 1:0.5 2:1 6:2\n")
    LISTS.save("queries.rankwise")
    before = sorted(path.name for path in here.iterdir())
    code, out, err = run("rank", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == before


def test_a_text_that_leaves_out_zeros_is_taken_when_told(run):
    Path("sparse.txt").write_text("0 qid:1 1:0.5\n0 qid:1 2:1\n")
    code, out, _ = run("rank", "plain.rankwise", "sparse.txt", "--features", "4", "--to", "scores")
    assert code == 0
    assert list(map(float, out.split())) == NAMELESS.predict(np.array([[0.5, 0, 0, 0], [0, 1, 0, 0]])).tolist()


def test_missing_values_are_filled_as_told(run):
    Path("holes.csv").write_text("qid,bm25_title,bm25_body,inlinks,clicks\n1,0.5,1,2,\n1,0.5,1,2,3\n")
    filled = {"zero": [[0.5, 1, 2, 0], [0.5, 1, 2, 3]], "min": [[0.5, 1, 2, 3], [0.5, 1, 2, 3]]}
    for policy, X in filled.items():
        out = run("rank", "m.rankwise", "holes.csv", "--missing", policy, "--to", "scores")[1]
        assert list(map(float, out.split())) == MODEL.predict(np.array(X)).tolist()


@pytest.mark.parametrize("name", ['a "quoted" one', "one, two", "two\nlines", "plain", "caf\u00e9"])
def test_ids_of_any_kind_can_be_read_back(run, name):
    to_frame(LISTS).assign(docid=name).to_csv("odd.csv", index=False)
    code, out, _ = run("rank", "m.rankwise", "odd.csv")
    assert code == 0
    assert {docid for _, docid, _, _ in as_rows(out)} == {name}


@pytest.mark.parametrize("out", ["o.csv", "o.run.gz", "o.parquet"])
def test_a_file_that_breaks_off_in_the_middle_leaves_nothing(run, here, out):
    Path("late.txt").write_text(Path("lists.txt").read_text() + "0 qid:x 1:abc\n")
    before = sorted(path.name for path in here.iterdir())
    code, _, err = run("rank", "m.rankwise", "late.txt", "-o", out)
    assert code == 2
    assert f"late.txt, line {LISTS.n_documents + 1}, column" in err
    assert sorted(path.name for path in here.iterdir()) == before


def test_weights_of_queries_are_no_feature(run, expected):
    write_table(LISTS.with_weight(np.arange(1.0, 26.0)), "weighted.parquet")
    code, out, _ = run("rank", "m.rankwise", "weighted.parquet")
    assert code == 0
    assert as_rows(out) == expected
    bare = LISTS._replace(feature_names=None).with_weight(np.arange(1.0, 26.0))
    write_table(bare, "bare.parquet")
    code, out, _ = run("rank", "plain.rankwise", "bare.parquet")
    assert code == 0
    assert len(as_rows(out)) == len(expected)
