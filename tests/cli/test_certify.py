"""``rankwise certify``: a ranker, a file of scores, a plan; tables for people and JSON for programs."""

import json

import numpy as np
import pytest

from rankwise import make_lists
from rankwise.guarantees.certificate import Certificate
from rankwise.rankers.linear.ridge import RidgeRanker


@pytest.fixture
def files(tmp_path):
    queries = make_lists(60, documents=6, features=3, random_state=0)
    queries[:40].save(tmp_path / "train.rankwise")
    queries[40:].save(tmp_path / "test.rankwise")
    model = RidgeRanker("AP", alpha=1.0).fit(queries[:40])
    model.save(tmp_path / "model.rankwise")
    lines = "\n".join(map(repr, model.predict(queries[40:]).tolist()))
    (tmp_path / "test.scores").write_text(lines)
    return tmp_path


def test_a_ranker_is_certified_with_its_lists(files, run):
    code, out, _ = run(
        "certify", files / "model.rankwise", "--train", files / "train.rankwise", "--holdout", files / "test.rankwise"
    )
    assert code == 0
    assert out.startswith("RidgeRanker, AP, 17 of 20 hold-out queries, 40 training queries")
    assert "Betting" in out
    assert "declare --row-radius and --longest" in " ".join(out.split())


def test_json_is_a_certificate(files, run):
    code, out, _ = run(
        "certify", files / "model.rankwise", "--holdout", files / "test.rankwise", "--json", "--delta", 0.1
    )
    assert code == 0
    found = Certificate.from_json(out)
    assert found.delta == 0.1
    assert found.headline.terms["delta_each"] == pytest.approx(0.1 / 3)


def test_a_hold_out_that_the_ranker_has_seen_is_named(files, run):
    _, out, _ = run("certify", files / "model.rankwise", "--holdout", files / "train.rankwise")
    said = " ".join(out.split())
    assert "40 of the 40 hold-out queries" in said
    assert "nothing certified: all 40 hold-out queries were used in training" in said


def test_scores_of_anybody_are_certified_by_a_hold_out(files, run):
    scores, test = files / "test.scores", files / "test.rankwise"
    code, out, _ = run("certify", scores, "--holdout", test, "-m", "AP", "--json")
    assert code == 0
    of_model = run("certify", files / "model.rankwise", "--holdout", test, "--json")[1]
    assert json.loads(out)["headline"]["value"] == json.loads(of_model)["headline"]["value"]
    code, out, _ = run("certify", scores, "--holdout", test, "--details")
    assert "nDCG@10" in out
    assert "(assumed)" in out


def test_plans_need_no_ranker(run):
    code, out, _ = run("certify", "--half-width", 0.03, "--sd", 0.25)
    assert code == 0
    assert out.splitlines()[0] == "2,050 queries for +-0.03 at 95% (Hoeffding: certain)"
    _, out, _ = run("certify", "--difference", 0.02, "--sd", 0.12, "--power", 0.9, "--json")
    guaranteed, by_test = json.loads(out)
    assert by_test["queries"] == 381
    assert guaranteed["method"] == "guaranteed interval"
    assert guaranteed["queries"] > 381


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "certify requires a saved ranker"),
        (["nowhere.rankwise"], "does not exist"),
        (["test.scores"], "scores require --holdout, without --train"),
        (["test.rankwise"], "must be a saved ranker, got queries"),
        (["model.rankwise", "-m", "AP"], "leave out --measure"),
        (["model.rankwise", "--half-width", "0.1"], "plan queries that are not judged yet"),
        (["--difference", "0.1"], "certify: a comparison requires --sd, the standard deviation of the differences"),
        (["--difference", "-0.1", "--sd", "1"], "certify: --difference must be finite and above 0, got -0.1"),
        (
            ["--difference", "0.1", "--half-width", "1"],
            "certify requires either --half-width (for an interval) or --diff",
        ),
        (["model.rankwise", "--delta", "2"], "--delta must be between 0 and 1, got 2"),
    ],
)
def test_what_cannot_be_certified_is_one_sentence(files, run, monkeypatch, arguments, sentence):
    monkeypatch.chdir(files)
    code, out, err = run("certify", *arguments)
    assert code == 2
    assert out == ""
    assert sentence in " ".join(err.split())
    assert err.count("\n") == 1


# ------------------------------------------------------------------------------------------- exit codes, seen queries


def test_a_file_with_seen_queries_certifies_for_every_reading(files, run):
    queries = make_lists(60, documents=6, features=3, random_state=0)
    queries.save(files / "all.rankwise")
    code, out, err = run("certify", files / "model.rankwise", "--holdout", files / "all.rankwise", "--json")
    assert (code, err) == (0, "")
    alone = run("certify", files / "model.rankwise", "--holdout", files / "test.rankwise", "--json")[1]
    found, other = (json.loads(one)["headline"] for one in (out, alone))
    assert found["terms"]["sure"] == other["terms"]["n"]
    assert found["value"] >= other["value"]
    assert json.loads(out)["about"] == "RidgeRanker, AP, 53 of 60 hold-out queries"
    assert json.loads(out)["notes"][0].startswith("40 of the 60 hold-out queries (")
    assert "the features and labels of training queries" in json.loads(out)["notes"][0]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nothing_certified_is_exit_code_three(files, run, more):
    code, out, err = run("certify", files / "model.rankwise", "--holdout", files / "train.rankwise", *more)
    assert (code, err) == (3, "")
    assert "all 40 hold-out queries were used in training; pass queries" in " ".join(out.split())
    code, out, _ = run("certify", files / "model.rankwise", *more)
    assert code == 3
    make_lists(60, documents=6, features=3, random_state=0)[40:42].save(files / "two.rankwise")
    code, out, _ = run("certify", files / "model.rankwise", "--holdout", files / "two.rankwise", *more)
    assert code == 3
    assert "vacuous" in out


# ------------------------------------------------------------------------------------------- T6, T8


def test_t6_a_run_without_features_is_certified_on_all_queries(run, tmp_path):
    """One relevant document for each of 200 queries: 199 of them had been called repetitions of the first."""
    random = np.random.default_rng(0)
    runs, qrels = [], []
    for query in range(200):
        documents = random.choice(10_000, 10, replace=False)
        runs += [f"{query} Q0 d{document} {rank} {10 - rank} r" for rank, document in enumerate(documents, start=1)]
        qrels.append(f"{query} 0 d{random.choice(documents)} 1")
    (tmp_path / "mm.run").write_text("\n".join(runs) + "\n")
    (tmp_path / "mm.qrels").write_text("\n".join(qrels) + "\n")
    code, out, _ = run("certify", tmp_path / "mm.run", "--holdout", tmp_path / "mm.qrels", "-m", "RR@10", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["headline"]["terms"]["n"] == 200
    assert "optional" not in found["headline"]["terms"]
    assert found["about"].endswith("RR@10, 200 hold-out queries")
    assert not any("same content" in note or "used in training" in note for note in found["notes"])


def test_t8_there_is_no_seed(files, run):
    code, _, err = run("certify", files / "test.scores", "--holdout", files / "test.rankwise", "--seed", 1)
    assert code == 2
    assert "--seed" in err


def test_w3_evaluate_warns_of_queries_that_the_model_has_seen(files, run):
    code, _, err = run("evaluate", files / "train.rankwise", "--model", files / "model.rankwise", "-m", "AP")
    assert code == 0
    assert "the model has seen 40 of these 40 queries before (40 as training queries)" in " ".join(err.split())
    code, _, err = run("evaluate", files / "test.rankwise", "--model", files / "model.rankwise", "-m", "AP")
    assert code == 0
    assert "has seen" not in err
