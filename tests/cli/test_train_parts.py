"""``rankwise train`` on a data set in parts."""

import json

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.queries.parts.write import PartsWriter

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
