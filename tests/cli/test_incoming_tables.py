"""The same messy table in every format and encoding: every command takes it, with equal results."""

import csv
import gzip
import io
import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, DataWarning, RankwiseError

ROLES = ("--qid", "search", "--label", "grade", "--docid", "sku")
WORDS = ["caf\u00e9", "gr\u00fcn", "na\u00efve", "plain"]
COLUMNS = ("search", "sku", "grade", "brand", "added", "stars", "price", "express", "title", "bm25")


def rows(n_queries=30, per_query=6, seed=3):
    """Words, dates, gaps, amounts with a unit, truth values and free texts, with letters beyond ASCII."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n_queries):
        for place in range(per_query):
            bm25 = float(np.round(rng.normal(5, 2), 4))
            brand = WORDS[rng.integers(4)]
            grade = int(np.clip(np.round((bm25 - 4) / 2 + (brand == WORDS[0]) + rng.normal(0, 0.5)), 0, 3))
            stars = None if rng.random() < 0.2 else float(np.round(rng.uniform(1, 5), 1))
            found.append(
                {
                    "search": f"r\u00f6ck {number}",
                    "sku": f"\u00fc{number}-{place}",
                    "grade": grade,
                    "brand": brand,
                    "added": f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
                    "stars": stars,
                    "price": f"\u00a3{rng.uniform(1, 99):.2f}",
                    "express": ["yes", "no"][rng.integers(2)],
                    "title": f"\u201equoted\u201c, {rng.integers(10**6)}".replace("\u201e", "\u00ab").replace(
                        "\u201c", "\u00bb"
                    ),
                    "bm25": bm25,
                }
            )
    return found


def as_csv(table, encoding="utf-8", delimiter=",", end="\r\n"):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue().encode(encoding)


def as_lines(table, encoding="utf-8"):
    """JSON lines, in which a member without a value is null or is not there."""
    kept = [
        {name: value for name, value in row.items() if value is not None or place % 2}
        for place, row in enumerate(table)
    ]
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in kept).encode(encoding)


def as_queries(table):
    """One object per query, with the list of its documents."""
    groups: dict[str, list] = {}
    for row in table:
        groups.setdefault(row["search"], []).append({name: row[name] for name in COLUMNS[1:]})
    lines = [{"search": search, "documents": documents} for search, documents in groups.items()]
    return "\n".join(map(json.dumps, lines)).encode()


def as_parquet(table):
    pandas = pytest.importorskip("pandas")
    target = io.BytesIO()
    pandas.DataFrame(table).to_parquet(target)
    return target.getvalue()


FORMS = {
    "latin-1": lambda table: ("t.csv", as_csv(table, "latin-1")),
    "cp1252, tabs": lambda table: ("t.tsv", as_csv(table, "cp1252", "\t", "\n")),
    "UTF-16": lambda table: ("t.csv", as_csv(table, "utf-16", "\t")),
    "UTF-8 with a mark, gzip": lambda table: ("t.csv.gz", gzip.compress(as_csv(table, "utf-8-sig"))),
    "CSV without an ending": lambda table: ("t", as_csv(table)),
    "JSON lines": lambda table: ("t.jsonl", as_lines(table)),
    "JSON lines, cp1252": lambda table: ("t.ndjson", as_lines(table, "cp1252")),
    "JSON lines of queries": lambda table: ("t.json", as_queries(table)),
    "JSON": lambda table: ("t.json", json.dumps(table, indent=1).encode()),
    "parquet": lambda table: ("t.parquet", as_parquet(table)),
    "parquet under another name": lambda table: ("t.csv", as_parquet(table)),
}


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return run


def answers(run, name, content):
    """What every command makes of a file, without its name and the time; notes about the encoding are counted."""
    with open(name, "wb") as file:
        file.write(content)
    found, notes = {}, []

    def asked(command, *arguments):
        code, out, err = run(command, *arguments)
        assert code == 0, (command, err)
        notes.append(err.count("read as Windows-1252"))
        found[f"warnings of {command}"] = [line for line in err.splitlines() if "Windows-1252" not in line]
        return out

    look = json.loads(asked("inspect", name, "--json"))
    found["inspect"] = {
        **look,
        "command": look["command"].replace(name, "t"),
        "facts": str(look["facts"]).replace(name, "t"),
    }
    trained = json.loads(asked("train", name, *ROLES, "-r", "RidgeRanker", "-o", "m", "--json"))
    found["train"] = {key: value for key, value in trained.items() if key != "model"}
    found["rank"] = asked("rank", "m", name)
    found["evaluate"] = asked("evaluate", name, "--model", "m", "--json")
    compared = json.loads(asked("compare", name, *ROLES, "-r", "RidgeRanker", "--folds", "3", "--json"))
    found["compare"] = {key: compared[key] for key in ("results", "per_query")}
    found["folds"] = compared["data"]["folds"]  # the same fingerprints of features in every fold
    asked("convert", name, "out.rankwise", *ROLES)
    converted = rw.load("out.rankwise")
    found["convert"] = (converted.X.tolist(), converted.names(), list(converted.docid), converted.feature_names)
    return found, notes


@pytest.fixture(scope="module")
def plain(request):
    return {}


@pytest.mark.parametrize("form", FORMS)
def test_w1_w2_w6_w7_every_command_takes_the_same_table_in_every_form(run, plain, form):
    table = rows()
    if not plain:
        plain["found"], notes = answers(run, "t.csv", as_csv(table))
        assert not any(notes)
    found, notes = answers(run, *FORMS[form](table))
    assert found == plain["found"]
    # one note per command, whatever it opens the file for
    assert set(notes) == ({1} if "latin" in form or "cp1252" in form else {0})


def test_w1_the_euro_sign_of_windows_is_one(tmp_path):
    """Its byte, 0x80, is in no Latin-1; a column of prices was taken for identifiers."""
    table = [{**row, "price": row["price"].replace("\u00a3", "\u20ac ")} for row in rows(5)]
    made = []
    for encoding in ("utf-8", "cp1252"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(as_csv(table, encoding))
        context = pytest.warns(DataWarning, match="Windows-1252") if encoding == "cp1252" else nothing()
        with context:
            columns = rw.io.read_columns(path)
        made.append(rw.FeatureBuilder(qid="search", label="grade", docid="sku").fit_transform(columns))
    assert "price_amount" in made[0].feature_names
    assert made[0].feature_names == made[1].feature_names
    np.testing.assert_array_equal(made[0].X, made[1].X)


def nothing():
    return io.BytesIO()  # a context that does nothing


def test_w1_a_file_of_columns_may_have_any_encoding(run, tmp_path):
    _file(tmp_path / "t.csv", rows(10))
    said = []
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        text = '# caf\u00e9\nqid = "search"\nlabel = "grade"\ndocid = "sku"\n[kinds]\nbrand = "ignore"\n'
        (tmp_path / "columns.toml").write_bytes(text.encode(encoding))
        code, out, err = run("inspect", "t.csv", "--columns", "columns.toml", "--json")
        assert code == 0, err
        said.append(out)
    assert len(set(said)) == 1


def test_w2_parquet_of_any_length_is_opened_by_its_first_bytes(run):
    """From 300 rows on the bytes of a column looked like a line of LETOR."""
    for n_queries in (8, 60):
        with open("t.parquet", "wb") as file:
            file.write(as_parquet(rows(n_queries)))
        code, out, err = run("inspect", "t.parquet", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["facts"]


def test_w6_a_comparison_learns_features_from_training_parts_alone(tmp_path):
    """A level that only one query has is no feature of the fold that tests it."""
    table = rows(30)
    for row in table[:6]:
        row["brand"] = "single"
    path = tmp_path / "t.csv"
    path.write_bytes(as_csv(table))
    reading = {"qid": "search", "label": "grade", "docid": "sku"}
    found = rw.compare(["RidgeRanker"], path, folds=3, reading=reading)
    fold = int(found.fold_of_query[found.queries.names().index(table[0]["search"])])
    models = dict(enumerate(found.models["RidgeRanker"], 1))
    assert "brand=single" not in models[fold].feature_names_in_
    whole = rw.io.read_columns(path)
    for number, model in models.items():
        names = {found.queries.names()[query] for query in np.flatnonzero(found.fold_of_query == number)}
        tested = [row for row in table if row["search"] in names]
        assert model.features_.digest_ != rw.FeatureBuilder(**reading).fit(whole).digest_
        raw = tmp_path / "part.csv"
        raw.write_bytes(as_csv(tested))
        # the scores of the comparison are those of the fold's model on the raw rows
        scores = dict(zip([row["sku"] for row in tested], model.predict(rw.io.read_columns(raw)), strict=True))
        cell = next(one for one in found.cells if one.fold == number)
        ids = [docid for docid in found.queries.docid if docid in scores]
        np.testing.assert_array_equal(cell.scores, [scores[docid] for docid in ids])


def test_w6_a_saved_model_makes_its_own_features_in_a_comparison(tmp_path):
    reading = {"qid": "search", "label": "grade", "docid": "sku"}
    train, test = rw.io.read_columns(_file(tmp_path / "a.csv", rows())), _file(tmp_path / "b.csv", rows(seed=8))
    model = rw.RidgeRanker().fit(rw.FeatureBuilder(**reading).fit_transform(train))
    scores = model.predict(rw.io.read_columns(test))
    found = rw.compare({"model": model, "scores": scores}, test, reading=reading)
    assert found.means["model"] == found.means["scores"]
    np.testing.assert_array_equal(found.scores["model"], scores)
    with pytest.raises(DataError, match="'model' learned from 30 of the 30 test queries"):
        rw.compare({"model": model}, tmp_path / "a.csv", reading=reading)


def _file(path, table):
    path.write_bytes(as_csv(table))
    return path


def test_w6_parts_and_reports_of_a_messy_table(run, tmp_path):
    _file(tmp_path / "t.csv", rows())
    assert run("convert", "t.csv", "parts", *ROLES)[0] == 0
    assert run("convert", "t.csv", "t.rankwise", *ROLES)[0] == 0
    parts, whole = rw.load("parts"), rw.load("t.rankwise")
    np.testing.assert_array_equal(parts.to_queries().X, whole.X)
    assert whole.built_by.digest_
    command = ("report", "t.csv", *ROLES, "-r", "RidgeRanker", "-r", "lightgbm", "--folds", "3", "-o", "r.html")
    code, _, err = run(*command)
    assert (code, err) == (0, "")
    assert (tmp_path / "r.html").stat().st_size > 1000


def test_w10_words_as_labels_are_one_sentence_with_their_grades(run, tmp_path):
    words = ["bad", "fair", "good", "perfect"]
    _file(tmp_path / "t.csv", [{**row, "grade": words[row["grade"]]} for row in rows(10)])
    for command in (("train", "t.csv"), ("compare", "t.csv", "-r", "RidgeRanker"), ("convert", "t.csv", "t.rankwise")):
        code, _, err = run(*command, *ROLES)
        assert code == 2
        assert "training" not in err
        assert "labels in column 'grade' must be numbers, got " in err
        assert "--labels bad=0,fair=1,good=2,perfect=3" in err


def test_w9_qrels_come_with_a_note_about_the_gain_of_ndcg(run, tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 2\nq 0 b 1\nq 0 c 0\n")
    (tmp_path / "run").write_text("q Q0 b 1 3 t\nq Q0 a 2 2 t\nq Q0 c 3 1 t\n")
    code, out, _ = run("evaluate", "qrels", "run", "-m", "nDCG@10", "-m", "AP")
    assert code == 0
    note = "nDCG@10 has the gain 2^label - 1 here; trec_eval's ndcg_cut_10 and ir-measures' nDCG@10 have the gain label"
    assert out.count(note) == 1
    assert "-m ndcg_cut_10, or --like trec_eval" in out
    assert "has the gain" not in run("evaluate", "qrels", "run", "-m", "nDCG@10", "--like", "trec_eval")[1]
    assert "has the gain" not in run("evaluate", "qrels", "run", "-m", "ndcg_cut_10", "-m", "AP")[1]


def test_w16_swapped_run_and_judgments_are_one_sentence(run, tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 2\nq 0 b 1\n")
    (tmp_path / "run").write_text("q Q0 b 1 3 t\nq Q0 a 2 2 t\n")
    code, out, err = run("evaluate", "run", "qrels")
    assert (code, out) == (2, "")
    assert "run is a run (6 fields per line), expected judgments" in err
    assert "the judgments (qrels) come first, then the run" in err
    for swapped in (lambda: rw.evaluate("run", "qrels"), lambda: rw.io.from_trec("run", "qrels")):
        with pytest.raises(RankwiseError, match=r"the judgments \(qrels\) come first, then the run"):
            swapped()


def test_l4_cells_that_a_spreadsheet_would_compute_stay_as_they_are(run, tmp_path):
    """Data files keep ids, by which other files refer to them; the tables of a report, for people, are escaped."""
    ids = ["=1+1", "+2", "-3", "@x"]
    table = [{**row, "sku": f"{ids[place % 4]}{place}"} for place, row in enumerate(rows(10))]
    _file(tmp_path / "t.csv", table)
    assert run("convert", "t.csv", "out.csv", *ROLES)[0] == 0
    assert list(rw.read_table("out.csv").docid) == [row["sku"] for row in table]
    assert run("train", "t.csv", *ROLES, "-r", "RidgeRanker", "-o", "m")[0] == 0
    assert run("rank", "m", "t.csv", "-o", "ranked.csv")[0] == 0
    with open("ranked.csv", newline="") as file:
        assert {row["docid"] for row in csv.DictReader(file)} == {row["sku"] for row in table}
