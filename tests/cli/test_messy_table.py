"""From a messy table of a shop to a certified model, from the shell: inspect once, train once, then rank."""

import csv
import json
import re
import shlex
import sys
import tomllib

import numpy as np
import pytest

import rankwise as rw

QUICK = ("-r", "SmoothRank", "--set", "alpha=1.0", "--set", "steps=3", "--set", "sigmas=(4.0, 0.25)")
COLUMNS = (
    *("search_id", "query", "sku", "relevance", "title", "description", "brand", "color", "seller_id", "added"),
    *("last_sold", "stars", "reviews", "stock", "price", "ordered", "bm25", "express", "country", "clicks"),
)


def shop(n_queries=300, per_query=10, seed=0):
    """Rows of 20 columns: 5 texts, 2 dates, 3 with gaps, a leak, two currencies, ids that occur twice."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_queries):
        for place in range(per_query):
            bm25, rating, clicks = rng.normal(10, 3), rng.uniform(1, 5), np.exp(rng.normal(2, 2))
            brand, cheap = rng.choice(["acme", "zeta", "omni"]), rng.uniform(1, 99)
            worth = 0.5 * bm25 + rating + 0.4 * np.log(clicks) + (brand == "acme") - 0.02 * cheap + rng.normal(0, 1)
            grade = int(np.digitize(worth, [7.0, 9.5, 11.5]))
            repeated = place == 1 and number % 30 == 0
            rows.append(
                {
                    "search_id": f"s{number}",
                    "query": f"words of search {number}",
                    "sku": f"P{number}-{0 if repeated else place}",
                    "relevance": grade,
                    "title": f"product {rng.integers(10**6)}, new",
                    "description": f"a text with {rng.integers(10**6)} words; and others",
                    "brand": brand,
                    "color": rng.choice(["red", "green", "blue", ""]),
                    "seller_id": rng.integers(1000, 2000),
                    "added": f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}",
                    "last_sold": f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.2025",
                    "stars": "" if rng.random() < 0.2 else f"{rating:.2f}",
                    "reviews": "" if rng.random() < 0.1 else rng.integers(0, 500),
                    "stock": "NA" if rng.random() < 0.1 else rng.integers(0, 40),
                    "price": f"{cheap:.2f} EUR" if rng.random() < 0.5 else f"$ {1.1 * cheap:.2f}",
                    "ordered": 3 * grade + rng.integers(0, 2),
                    "bm25": f"{bm25:.4f}",
                    "express": rng.choice(["yes", "no"]),
                    "country": "DE",
                    "clicks": f"{clicks:.3f}",
                }
            )
    return rows


def write(path, rows, columns=COLUMNS):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """In a folder of its own, on a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return run


@pytest.fixture
def table(tmp_path):
    rows = shop()
    write(tmp_path / "shop.csv", rows)
    return rows


def lines_of(command):
    """The words of a command after ``rankwise``."""
    first, *words = shlex.split(command)
    assert first == "rankwise"
    return words


def test_inspect_once_train_once_rank_anything(run, table, tmp_path):
    # inspect: roles, kinds, the leak, repeated ids, and a command
    code, out, err = run("inspect", "shop.csv")
    assert (code, err) == (0, "")
    assert "there is no column 'qid' for the query ids" in out
    assert "search_id (300 values in 3,000 rows, rows together)" in out
    assert "relevance (4 numbers from 0 to 3)" in out
    assert "ordered (alone: nDCG" in out
    assert "--ignore ordered" in out
    assert "10 rows repeat the id of a document of the same query" in out
    command = out.splitlines()[-1]
    # W11: what is called a problem is not in the command
    assert command == "rankwise train shop.csv --qid search_id --label relevance --docid sku --ignore ordered"

    # train: the command as printed
    code, out, err = run(*lines_of(command), *QUICK)
    assert code == 0
    assert err == ""
    model, columns, trained, tested, certified, *following = out.splitlines()
    assert model.startswith("SmoothRank on ")
    assert columns.startswith("features from 11 columns, 6 left out")
    assert trained.startswith("trained on 240 queries")
    assert tested.startswith("tested on 60 queries that were held out")
    assert certified.startswith("certified: nDCG@10 on future queries is at least 0.")
    options = "--qid search_id --label relevance --docid sku --ignore ordered"
    assert following[2::3] == [
        "rankwise evaluate shop.csv --model model.rankwise",
        f"rankwise compare shop.csv {options}",
        "rankwise export model.rankwise --to python --sample shop.csv -o model.py",
    ]

    # rank: other rows, columns in another order and more of them, categories that training did not see, no labels
    new = shop(20, seed=5)
    for number, row in enumerate(new):
        row |= {"brand": "unheard", "color": "violet" if number % 2 else row["color"], "season": "spring"}
    order = [name for name in reversed(COLUMNS) if name not in ("relevance", "title")]
    write(tmp_path / "new.csv", new, ["season", *order])
    code, out, err = run("rank", "model.rankwise", "new.csv", "--json")
    assert (code, err) == (0, "")
    ranked = [json.loads(line) for line in out.splitlines()]
    assert len(ranked) == 200
    assert {one["qid"] for one in ranked} == {f"s{number}" for number in range(20)}
    assert {one["docid"] for one in ranked} == {row["sku"] for row in new}
    loaded = rw.load("model.rankwise")
    scores = np.sort(loaded.predict(rw.io.read_columns(tmp_path / "new.csv")))
    np.testing.assert_array_equal(np.sort([one["score"] for one in ranked]), scores)

    # evaluate and certify without a word about columns
    code, out, err = run("evaluate", "shop.csv", "--model", "model.rankwise", "-m", "nDCG@10", "--json")
    assert code == 0
    assert err.startswith("rankwise: warning: the model has seen 240 of these 300 queries before")
    assert err.count("\n") == 1
    found = json.loads(out)["results"]["model.rankwise"]
    assert found["measures"]["nDCG@10"]["queries"] == 300
    code, out, err = run("certify", "model.rankwise", "--holdout", "shop.csv", "--json")
    assert (code, err) == (0, "")
    certificate = json.loads(out)
    assert certificate["notes"][0].startswith("240 of the 300 hold-out queries (")
    # the seen queries may be further draws, so the bound of the whole file is weaker
    assert float(re.search(r"is at least (0\.\d+)", certified)[1]) >= round(1 - certificate["headline"]["value"], 4)


def test_the_builder_learns_from_the_training_part_alone(run, table, tmp_path):
    roles = ("--qid", "search_id", "--label", "relevance", "--docid", "sku")
    code, out, _ = run("train", "shop.csv", *roles, "--ignore", "ordered", "-r", "RidgeRanker", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["leaks"] == []
    assert said["columns"]["roles"] == {"qid": "search_id", "label": "relevance", "docid": "sku"}
    whole = rw.io.read_columns("shop.csv")
    every = rw.FeatureBuilder(qid="search_id", label="relevance", docid="sku", ignore=["ordered"]).fit(whole)
    train, test = rw.split(every.transform(whole), (0.8, 0.2), random_state=0)
    names = set(train.names())
    part = [row for row in table if row["search_id"] in names]
    write(tmp_path / "part.csv", part)
    alone = rw.FeatureBuilder(qid="search_id", label="relevance", docid="sku", ignore=["ordered"])
    alone.fit(rw.io.read_columns("part.csv"))
    model = rw.load("model.rankwise")
    assert model.features_.digest_ == alone.digest_ != every.digest_
    assert said["parts"]["test"]["queries"] == len(test) == 60


def test_columns_are_written_edited_and_read(run, table, tmp_path):
    code, out, _ = run("inspect", "shop.csv", "--write-columns", "columns.toml")
    assert code == 0
    assert out.splitlines()[-1] == "rankwise train shop.csv --columns columns.toml"
    text = (tmp_path / "columns.toml").read_text()
    found = tomllib.loads(text)
    assert {role: found[role] for role in ("qid", "label", "docid")} == {
        "qid": "search_id",
        "label": "relevance",
        "docid": "sku",
    }
    assert set(found["kinds"]) == set(COLUMNS) - {"search_id", "relevance", "sku"}
    assert found["kinds"]["price"] == "number"
    assert found["kinds"]["brand"] == "category"
    assert found["kinds"]["added"] == found["kinds"]["last_sold"] == "date"
    assert found["kinds"]["title"] == found["kinds"]["country"] == "ignore"
    assert found["kinds"]["ordered"] == "ignore"  # W11: it is a problem
    edited = text.replace('"seller_id" = "ignore"', '"seller_id" = "number"')
    assert edited != text
    (tmp_path / "columns.toml").write_text(edited)
    code, out, err = run("train", "shop.csv", "--columns", "columns.toml", "-r", "RidgeRanker", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert "seller_id" in said["columns"]["used"]
    assert said["columns"]["left_out"]["ordered"] == "as told"
    code, out, _ = run("inspect", "shop.csv", "--columns", "columns.toml")
    assert code == 0
    assert "no column is called" not in out
    assert out.splitlines()[-1] == "rankwise train shop.csv --columns columns.toml"


def test_all_missing_columns_are_one_error(run, table, tmp_path):
    roles = ("--qid", "search_id", "--label", "relevance", "--docid", "sku")
    assert run("train", "shop.csv", *roles, "-r", "RidgeRanker")[0] == 0
    write(tmp_path / "new.csv", table, [name for name in COLUMNS if name not in ("search_id", "price", "brand")])
    code, out, err = run("rank", "model.rankwise", "new.csv")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert all(repr(name) in err for name in ("search_id", "price", "brand"))
    write(tmp_path / "unjudged.csv", table, [name for name in COLUMNS if name != "relevance"])
    code, _, err = run("evaluate", "unjudged.csv", "--model", "model.rankwise")
    assert code == 2
    assert "unjudged.csv: there is no column 'relevance', which held the labels in training: give --label" in err


def test_columns_under_other_names_are_given_by_options(run, table, tmp_path):
    roles = ("--qid", "search_id", "--label", "relevance", "--docid", "sku")
    assert run("train", "shop.csv", *roles, "-r", "RidgeRanker")[0] == 0
    renamed = [{**row, "q": row["search_id"], "r": row["relevance"]} for row in table]
    columns = ["q", "r", *(name for name in COLUMNS if name not in ("search_id", "relevance"))]
    write(tmp_path / "renamed.csv", renamed, columns)
    same = json.loads(run("evaluate", "shop.csv", "--model", "model.rankwise", "--json")[1])
    code, out, err = run("evaluate", "renamed.csv", "--model", "model.rankwise", "--qid", "q", "--label", "r", "--json")
    assert code == 0
    assert err.startswith("rankwise: warning: the model has seen 240 of these 300 queries before")
    assert json.loads(out) == same


def test_parquet_validation_gaps_and_standard_input(run, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    for name, seed in (("train", 1), ("vali", 2)):
        write(tmp_path / f"{name}.csv", shop(60, seed=seed))
        pandas.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet")
    roles = ("--qid", "search_id", "--label", "relevance", "--docid", "sku", "--ignore", "ordered")
    found = []
    for ending in ("csv", "parquet"):
        files = (f"train.{ending}", "--validation", f"vali.{ending}")
        code, out, err = run("train", *files, *roles, "--missing", "zero", "-r", "RidgeRanker", "-o", ending, "--json")
        assert (code, err) == (0, "")
        found.append({**json.loads(out), "model": None})
    assert found[0] == found[1]
    assert {name: part["queries"] for name, part in found[0]["parts"].items()} == {"train": 60, "validation": 60}
    model = rw.load("csv")
    assert "stars_missing" not in model.feature_names_in_
    assert model.missing == "zero"
    code, out, err = run("rank", "csv", "vali.csv")
    assert (code, err) == (0, "")
    with open("vali.csv") as text:
        monkeypatch.setattr(sys, "stdin", text)
        assert run("rank", "csv", "-") == (0, out, "")
    code, out, err = run("evaluate", "-", "--model", "csv")
    assert (code, out) == (2, "")
    assert "requires a file, got standard input" in err


def test_words_and_gaps_in_labels_come_with_the_command(run, table, tmp_path):
    words = ["bad", "fair", "good", "perfect"]
    rows = [{**row, "relevance": words[row["relevance"]]} for row in table[:600]]
    rows[7]["relevance"] = ""
    write(tmp_path / "words.csv", rows)
    code, out, _ = run("inspect", "words.csv")
    assert code == 0
    assert "bad=0,fair=1,good=2,perfect=3" in out
    assert "1 row has no label" in out
    command = out.splitlines()[-1]
    assert command.endswith("--labels bad=0,fair=1,good=2,perfect=3 --unjudged drop")
    code, out, _ = run(*lines_of(command), "-r", "RidgeRanker", "--json")
    assert code == 0
    assert json.loads(out)["parts"]["train"]["queries"] == 48


def test_a_table_of_numbers_needs_no_builder(run, tmp_path):
    frame = rw.io.to_frame(rw.make_lists(40, documents=8, features=4, random_state=2)).drop(columns="docid")
    frame = frame.rename(columns={"qid": "query", "label": "grade"})
    frame.to_csv(tmp_path / "numbers.csv", index=False)
    code, out, _ = run("inspect", "numbers.csv")
    assert code == 0
    command = out.splitlines()[-1]
    assert command == "rankwise train numbers.csv --qid query --label grade"
    code, out, err = run(*lines_of(command), "-r", "RidgeRanker", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["columns"] is None
    assert not hasattr(rw.load("model.rankwise"), "features_")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("qid = [", "columns.toml is not TOML: "),
        ("quid = 'a'", "entries must be among qid, label, docid, ignore, grades, kinds, got 'quid'"),
        ("qid = 3", "columns.toml: qid must be the name of a column, in quotes, got 3"),
        ("ignore = 'a'", "columns.toml: ignore must be a list of columns"),
        ("[kinds]\nbrand = 'texts'", "the kind of 'brand' must be one of number, boolean, date, category, ignore"),
        ("[grades]\nbad = '0'", "columns.toml: grades must have a number for each word"),
        ("qid = 'search_id'\nlabel = 'relevance'\nignore = ['nothing']", "there is no column 'nothing'"),
    ],
)
def test_a_file_of_columns_that_is_wrong_is_one_sentence(run, tmp_path, text, sentence):
    write(tmp_path / "shop.csv", shop(20))
    (tmp_path / "columns.toml").write_text(text)
    code, out, err = run("train", "shop.csv", "--columns", "columns.toml")
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_names_of_columns_are_quoted(run, tmp_path):
    strange = 'a "b"\\ [c] = é'
    rows = [{**row, strange: row["brand"]} for row in shop(20)]
    write(tmp_path / "shop.csv", rows, [*COLUMNS, strange])
    assert run("inspect", "shop.csv", "--write-columns", "columns.toml")[0] == 0
    assert tomllib.loads((tmp_path / "columns.toml").read_text(encoding="utf-8"))["kinds"][strange] == "category"


def test_commands_for_a_table_of_numbers_run_as_they_are_printed(run, tmp_path):
    lists = rw.make_lists(30, documents=6, features=3, random_state=2)
    names = lists.names()
    rows = [
        {"query": names[query], "url": f"u{row}", "grade": y, **dict(zip("abc", x, strict=True))}
        for row, (query, y, x) in enumerate(zip(lists.query_of_row, lists.y, lists.X, strict=True))
    ]
    write(tmp_path / "my.csv", rows, tuple(rows[0]))
    out = run("inspect", "my.csv")[1]
    code, out, err = run(*lines_of(out.splitlines()[-1]), *QUICK)
    assert (code, err) == (0, "")
    commands = [line for line in out.splitlines() if line.startswith("rankwise ")]
    assert [lines_of(command)[0] for command in commands] == ["evaluate", "compare", "export"]
    for command in commands:
        words = lines_of(command)
        quick = ("-r", "RidgeRanker", "--folds", "3") if words[0] == "compare" else ()
        code, out, err = run(*words, *quick)
        assert code == 0, err
        if quick:
            report = "rankwise report my.csv --qid query --label grade --docid url -r RidgeRanker --folds 3"
            assert out.splitlines()[-1] == report
