"""``rankwise train`` on a data set in parts."""

import json

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.queries.parts.write import PartsWriter
from tests.features.shop import shop

LISTNET = ("--ranker", "ListNet", "--set", "solver=lbfgs", "--set", "alpha=0.01", "--set", "steps=4")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 300)
    queries = rw.make_lists(120, documents=12, features=5, random_state=1)
    with PartsWriter(tmp_path / "lists", part_bytes=1) as writer:
        writer.append(queries)
    return tmp_path / "lists"


def test_it_estimates_fits_tests_and_certifies(run, folder, tmp_path):
    few = "--set", "max_trees=20"
    code, out, err = run("train", str(folder), "--out", str(tmp_path / "m.rankwise"), "--json", *few)
    assert code == 0, err
    assert "about 200 trees (at most 200) over 1,152 documents" in err
    found = json.loads(out.splitlines()[-1])
    assert found["ranker"] == "AutoRanker"
    assert found["parts"]["test"]["queries"] == 24
    train, test = rw.split(rw.Parts(folder).to_queries(), (0.8, 0.2), random_state=0)
    expected = rw.AutoRanker(max_trees=20).fit(train)
    assert rw.load(tmp_path / "m.rankwise").predict(test).tobytes() == expected.predict(test).tobytes()


def test_a_checkpoint_and_a_line_per_pass(run, folder, tmp_path):
    for name in ("one", "two"):
        code, _, err = run(
            *("train", str(folder), "--out", str(tmp_path / f"{name}.rankwise"), *LISTNET),
            *("--test-share", "0", "--checkpoint", str(tmp_path / "run"), "--verbose", "--workers", "2"),
        )
        assert code == 0, err
        assert ("LossJob" in err) == (name == "one")  # the second run takes them from the journal
    one, two = (rw.load(tmp_path / f"{name}.rankwise").coef_ for name in ("one", "two"))
    np.testing.assert_array_equal(one, two)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own for files that are converted."""
    monkeypatch.setattr("rankwise.features.converted.user_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(parallel, "CHUNK", 300)
    monkeypatch.chdir(tmp_path)


def test_a_file_that_does_not_fit_is_trained_on_in_parts_with_the_model_of_memory(run, cache):
    lists = rw.make_lists(120, documents=12, features=5, random_state=1)
    rw.io.write_table(lists, "big.csv")
    train = "train", "big.csv", "--set", "max_trees=10", "--json", "--seed", "3"
    code, out, err = run(*train, "--out", "own.rankwise")
    assert (code, err) == (0, "")
    own = json.loads(out)
    for _ in range(2):
        code, out, err = run(*train, "--memory", "500KB", "--out", "parts.rankwise")
        assert code == 0, err
        said, estimate = err.splitlines()
        assert "big.csv needs about 0.2 MB of memory, more than 0.1 MB" in said
        assert "about 100 trees (at most 100)" in estimate
        found = json.loads(out)
        assert found["parts"] == own["parts"]
        assert found["certificate"]["headline"] == own["certificate"]["headline"]
    one, two = rw.load("own.rankwise"), rw.load("parts.rankwise")
    assert one.predict(lists).tobytes() == two.predict(lists).tobytes()
    assert run(*train, "--memory", "1GB", "--out", "own.rankwise")[2] == ""


def test_a_table_of_words_that_does_not_fit(run, cache, monkeypatch):
    shop(60).to_csv("shop.csv", index=False)
    shop(30, seed=1).to_csv("new.csv", index=False)
    ridge = "--ranker", "RidgeCommittee", "--missing", "zero"
    train = "train", "shop.csv", "--qid", "search", "--label", "grade", "--docid", "sku", *ridge, "--json"
    answers = {}
    for name, more in (("own", ()), ("parts", ("--memory", "400KB"))):
        code, out, err = run(*train, "--out", f"{name}.rankwise", *more)
        assert code == 0, err
        assert ("converted to parts" in err) == (name == "parts")
        answers[name] = {**json.loads(out), "model": "", "leaks": []}
    assert answers["own"] == answers["parts"]
    chosen = run(*train, "--out", "m.rankwise", "--memory", "400KB", "--validation", "new.csv")
    assert chosen[0] == 0, chosen[2]
    assert chosen[2].count("converted to parts") == 2
    ranked = [run("rank", f"{name}.rankwise", "new.csv", "--json")[1] for name in ("own", "parts")]
    monkeypatch.setattr("rankwise._kernels.memory.available_memory", lambda: 1000)
    ranked.append(run("rank", "parts.rankwise", "new.csv", "--json")[1])
    assert ranked[0]
    assert len(set(ranked)) == 1
    shop(30, seed=1).sample(frac=1.0, random_state=0).to_csv("mixed.csv", index=False)
    code, _, err = run("rank", "parts.rankwise", "mixed.csv")
    assert code == 2
    assert "has rows in several places" in err
    assert "add --unsorted" in err


def test_what_is_free_decides_where_no_memory_is_given(run, cache, monkeypatch):
    rw.io.write_table(rw.make_lists(60, documents=12, features=5, random_state=1), "big.csv")
    monkeypatch.setattr("rankwise._kernels.memory.available_memory", lambda: 200_000)
    code, _, err = run("train", "big.csv", "--ranker", "RidgeRanker", "--out", "m.rankwise")
    assert code == 0
    assert "converted to parts" in err
    assert run("train", "big.csv", "--ranker", "AdaRank", "--out", "m.rankwise")[2] == "", "it needs memory anyway"
    code, _, err = run("train", "big.csv", "--ranker", "AdaRank", "--out", "m.rankwise", "--memory", "200KB")
    assert code == 2
    assert "and AdaRank needs all documents in memory: choose another ranker" in err
    assert "--memory must be a number of bytes" in run("train", "big.csv", "--memory", "lots")[2]


def test_what_is_wrong_is_said(run, folder, tmp_path):
    queries = tmp_path / "q.rankwise"
    rw.make_lists(20, documents=5, features=3).save(queries)
    for arguments, message in (
        (("train", folder, "--ranker", "AdaRank", "--out", tmp_path / "m"), "AdaRank does not run on Parts"),
        (
            ("train", queries, "--executor", "processes", "--out", tmp_path / "m"),
            "--executor requires a data set in parts",
        ),
        (("train", queries, "--checkpoint", "x", "--out", tmp_path / "m"), "--checkpoint requires --online"),
        (
            ("train", queries, "--online", "--checkpoint", "x", "--out", tmp_path / "m"),
            "must be a positive number of rounds",
        ),
        (("train", folder, "--skip", "3", "--out", tmp_path / "m"), "--skip requires --online"),
    ):
        code, _, err = run(*map(str, arguments))
        assert code != 0
        assert message in err
        assert not (tmp_path / "m").exists()
