"""A first hour with a CSV file of one's own: what works at once, and the one sentence that every mistake gets."""

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rankwise as rw
from rankwise.cli.wording import in_shell
from rankwise.errors import RankwiseError
from wheels import examples

LISTS = rw.make_lists(30, documents=(2, 8), features=3, random_state=4)
NAMES = LISTS.names()
WORDS = ("bad", "fair", "good", "great", "perfect")
ROLES = ("--qid", "query", "--label", "grade")
HEADER = ["query", "grade", *LISTS.feature_names]


def rows(grade=str, dot="."):
    """Cells of every document: query, grade, features."""
    owner = LISTS.query_of_row
    for row, (label, x) in enumerate(zip(LISTS.y.tolist(), LISTS.X.tolist(), strict=True)):
        yield [NAMES[owner[row]], grade(int(label)), *(repr(value).replace(".", dot) for value in x)]


def text(header=HEADER, cells=None, separator=","):
    return "".join(separator.join(line) + "\n" for line in [header, *(rows() if cells is None else cells)])


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def refused(run, *arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err.removeprefix("rankwise: ").rstrip()


def test_five_commands_from_a_csv_file_to_a_ranked_list(run, write):
    cells = [[*line, f"http://x/{number}"] for number, line in enumerate(rows())]
    write("my.csv", text([*HEADER, "url"], cells))
    assert "30 queries" in run("inspect", "my.csv", *ROLES, "--docid", "url")[1]
    code, out, err = run("train", "my.csv", *ROLES, "--docid", "url")
    assert (code, err) == (0, "")
    assert "model.rankwise" in out
    code, out, _ = run("evaluate", "my.csv", "--model", "model.rankwise", *ROLES, "--json")
    assert 0 < json.loads(out)["results"]["model.rankwise"]["measures"]["nDCG@10"]["mean"] <= 1
    code, out, _ = run("rank", "model.rankwise", "my.csv", "--qid", "query", "--docid", "url", "--top", "1")
    assert code == 0
    assert out.count("http://x/") == 30


def content_of(queries):
    return queries.names(), queries.X.tolist(), queries.y.tolist()


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("plain.csv", text(), ()),
        ("bom.csv", "\ufeff" + text(), ()),
        ("windows.csv", text().replace("\n", "\r\n"), ()),
        ("packed.csv.gz", gzip.compress(text().encode()), ()),
        ("tabs.tsv", text(separator="\t"), ()),
        ("tabs.txt", text(separator="\t"), ()),
        ("semicolons.csv", text(cells=rows(dot=","), separator=";"), ()),
        ("words.csv", text(cells=rows(WORDS.__getitem__)), ("--labels", "bad=0,fair=1,good=2,great=3,perfect=4")),
        ("quotes.csv", text(cells=([f'"{cell}"' for cell in line] for line in rows())), ()),
        ("letor.csv", None, ()),
    ],
)
@pytest.mark.parametrize("pyarrow", [True, False])
def test_a_file_is_read_however_it_was_saved(run, write, monkeypatch, name, content, options, pyarrow):
    if not pyarrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    if content is None:
        rw.write_letor(LISTS, name)
    else:
        write(name, content)
    code, _, err = run("convert", name, "same.rankwise", *ROLES, *options)
    assert (code, err) == (0, "")
    assert content_of(rw.load("same.rankwise")) == content_of(LISTS)


def test_rows_of_a_query_may_stand_anywhere(run, write):
    write("mixed.csv", text(cells=sorted(rows(), key=lambda line: line[2])))
    code, out, _ = run("inspect", "mixed.csv", *ROLES)
    assert code == 0
    assert f"30 queries, {LISTS.n_documents} documents, 3 features" in out


MISTAKES = {
    "no column of that name": (
        text(),
        ("--label", "grade"),
        "there is no column 'qid' (did you mean 'query'?) among query, grade, bm25_title, bm25_body, inlinks: "
        "give --qid NAME",
    ),
    "a column misspelt": (
        text(),
        ("--qid", "query", "--label", "grdae"),
        "there is no column 'grdae' (did you mean 'grade'?) among",
    ),
    "labels in words": (
        text(cells=rows(WORDS.__getitem__)),
        ROLES,
        "give each of its words (",
    ),
    "a word without a grade": (
        text(cells=rows(WORDS.__getitem__)),
        (*ROLES, "--labels", "bad=0"),
        "give each of its words (",
    ),
    "grades misspelt": (
        text(),
        (*ROLES, "--labels", "bad:0"),
        "--labels must be WORD=GRADE pairs, such as bad=0,good=1",
    ),
    "a column of texts": (
        text([*HEADER, "url"], ([*line, "http://x"] for line in rows())),
        ROLES,
        "my.csv, line 2: feature columns must be numeric, got 'http://x' in column 'url': leave the column out by "
        "--ignore url, make it the document ids by --docid url, or make features of it",
    ),
    "an ignored column misspelt": (
        text(),
        (*ROLES, "--ignore", "inlink"),
        "there is no column 'inlink' (did you mean 'inlinks'?) among",
    ),
    "an empty file": ("", ROLES, "my.csv is empty"),
    "nothing but blanks": (" \n\n", ROLES, "my.csv is empty"),
    "a header alone": (text(cells=[]), ROLES, "my.csv has a header but no rows"),
    "no header": (text()[text().index("\n") + 1 :], ROLES, "my.csv, line 1: expected the names of the columns, got"),
    "a name twice": (text(["query", "grade", "a", "a", "b"]), ROLES, "two columns are called 'a'"),
    "a line cut short": (
        text(cells=[*rows(), ["q1", "0"]]),
        ROLES,
        f"my.csv, line {LISTS.n_documents + 2}: expected 5 cells as in the header, got 2",
    ),
    "an empty cell": (
        text(cells=[["q1", "0", "1", "", "2"]]),
        ROLES,
        "my.csv, line 2: column 'bm25_body' must be finite, got an empty cell: pass --missing zero or "
        "--missing min, or replace it",
    ),
    "an infinity": (text(cells=[["q1", "0", "1", "inf", "2"]]), ROLES, "column 'bm25_body' must be finite, got 'inf'"),
    "an empty label": (
        text(cells=[["q1", "", "1", "1", "2"]]),
        ROLES,
        "line 2: the labels in column 'grade' must be 0 or more, got an empty cell: pass --unjudged drop or "
        "--unjudged zero",
    ),
    "a negative label": (text(cells=[["q1", "-1", "1", "1", "2"]]), ROLES, "must be 0 or more, got '-1'"),
    "an empty query": (text(cells=[["", "1", "1", "1", "2"]]), ROLES, "line 2: column 'query' must hold a query id"),
    "decimal commas and points": (
        text(
            cells=[
                ["q1", "0", "1,5", "1,5", "2,5"],
                *([["q1", "0", "1,5", "1,5", "2,5"]] * 60),
                ["q", "0", "1.5", "1", "2"],
            ],
            separator=";",
        ),
        ROLES,
        "line 63: column 'bm25_title' must have a decimal comma as the other columns have, got '1.5'",
    ),
    "a workbook under another name": (
        b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml" + bytes(99) + b"xl/workbook.xml",
        ROLES,
        "my.csv is an Excel workbook, expected text: save its sheet as CSV",
    ),
}


# of these columns features are made, and inspect finds columns and grades that no option names
MADE = ("a column of texts", "an empty cell", "decimal commas and points")
FOUND = (*MADE, "no column of that name", "labels in words")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence_that_says_what_to_do(run, write, mistake):
    content, options, sentence = MISTAKES[mistake]
    write("my.csv", content)
    if mistake in MADE:
        with pytest.raises(RankwiseError) as error:
            rw.read_table("my.csv", qid="query", label="grade")
        assert sentence in in_shell(str(error.value))
        return
    assert sentence in refused(run, "convert", "my.csv", "my.rankwise", *options)
    assert sentence in refused(run, "train", "my.csv", *options)
    if mistake not in FOUND:
        assert sentence in refused(run, "inspect", "my.csv", *options)


@pytest.mark.parametrize("mistake", [name for name in FOUND if name != "an empty cell"])  # a single document
def test_inspect_mends_what_can_be_mended(run, write, mistake):
    content, options, _ = MISTAKES[mistake]
    write("my.csv", content)
    code, out, err = run("inspect", "my.csv", *options)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("rankwise train my.csv --qid query --label grade")


def test_a_text_among_numbers_is_named(run, write):
    cells = list(rows())
    cells[0][2] = "unknown"
    write("my.csv", text(cells=cells))
    code, out, _ = run("inspect", "my.csv", *ROLES)
    assert code == 0
    assert "PROBLEM: 1 column with mostly, but not only, numbers: not treated as numeric" in out
    assert f"bm25_title ('unknown' and 0 more of {LISTS.n_documents})" in out
    code, _, err = run("train", "my.csv", *ROLES, "-r", "RidgeRanker", "--test-share", "0")
    assert code == 0
    assert f"not treated as numeric: bm25_title ('unknown' and 0 more of {LISTS.n_documents})" in err


def test_what_is_no_file_is_told(run, write, tmp_path):
    write("book.xlsx", b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml")
    (tmp_path / "folder").mkdir()
    write("folder/my.csv", text())
    assert refused(run, "train", "book.xlsx") == "book.xlsx is an Excel workbook, expected text: save its sheet as CSV"
    assert refused(run, "train", "nowhere.csv") == "nowhere.csv cannot be read: there is no such file"
    assert refused(run, "train", "folder").startswith("folder is a folder: pass a file, such as folder/my.csv")
    assert refused(run, "evaluate", "folder/my.csv", *ROLES).startswith("evaluate requires files of scores, or --model")


def test_holes_and_unjudged_rows_are_taken_when_told(run, write):
    write("my.csv", text(cells=[["q1", "2", "5", "", "1"], ["q1", "0", "3", "4", "1"], ["q1", "", "9", "9", "9"]]))
    told = ("--missing", "min", "--unjudged")
    run("convert", "my.csv", "drop.rankwise", *ROLES, *told, "drop")
    run("convert", "my.csv", "zero.rankwise", *ROLES, *told, "zero")
    dropped, zero = rw.load("drop.rankwise"), rw.load("zero.rankwise")
    assert dropped.X.tolist() == [[5, 4, 1], [3, 4, 1]]
    assert zero.y.tolist() == [2, 0, 0]


def test_a_misspelt_ranker_is_offered_its_neighbor(run, write):
    write("my.csv", text())
    assert "(did you mean 'SmoothRank'?)" in refused(run, "train", "my.csv", *ROLES, "--ranker", "SmothRank")


PAGE = Path(__file__).parents[1] / "docs" / "first_model.md"


def is_shown(text, printed):
    """Whether a line of a page stands in what was printed, up to the last digits of its numbers."""
    agree = examples.UpToRounding().check_output
    one_of_them = any(agree(f"{text}\n", f"{line}\n", examples.OPTIONS) for line in printed.splitlines())
    return one_of_them or " ".join(text.split()) in " ".join(printed.split())


def test_the_page_of_the_documentation_prints_what_it_says(run, tmp_path, monkeypatch):
    """Its Python first, then its commands in order; what is shown of their output stands in it, line by line."""
    monkeypatch.chdir(tmp_path)
    assert examples.run_file(PAGE).failed == 0
    printed = ""
    for line in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for text in line.splitlines():
            if text.startswith("$ rankwise "):
                code, printed, err = run(*shlex.split(text)[2:])
                assert (code, err) == (0, "")
            elif text.startswith("$ head "):
                printed = "".join((tmp_path / text.split()[-1]).read_text().splitlines(keepends=True)[:4])
            else:
                assert is_shown(text, printed)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_may_be_csv(run, write, monkeypatch, packed):
    write("a.scores", "".join(f"{value!r}\n" for value in LISTS.X[:, 0].tolist()))
    content = gzip.compress(text().encode()) if packed else text().encode()
    for command in (("inspect", "-"), ("evaluate", "-", "a.scores")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code, out, err = run(*command, *ROLES)
        assert (code, err) == (0, "")
        assert "30 queries" in out


def test_judgments_with_tabs_are_no_table(run, write):
    write("q.qrels", "q1\t0\td1\t1\nq1\t0\td2\t0\n")
    write("a.run", "q1\tQ0\td2\t1\t2.0\tx\nq1\tQ0\td1\t2\t1.0\tx\n")
    code, out, _ = run("evaluate", "q.qrels", "a.run", "-m", "RR", "--json")
    assert code == 0
    assert json.loads(out)["results"]["a.run"]["measures"]["RR"]["mean"] == 0.5


def test_a_quote_that_does_not_end_is_one_sentence(run, write):
    write("my.csv", text(cells=[['"q1', "0", "1", "1", "2"], *rows()]))
    assert refused(run, "inspect", "my.csv", *ROLES).startswith("my.csv, line ")


def test_a_pipe_can_be_read_though_only_once(run, write, tmp_path):
    write("my.csv", text())
    os.mkfifo("pipe")
    with subprocess.Popen(["cp", "my.csv", "pipe"]) as feeding:
        code, out, err = run("inspect", "pipe", *ROLES)
        feeding.wait()
    assert (code, err) == (0, "")
    assert "30 queries" in out
