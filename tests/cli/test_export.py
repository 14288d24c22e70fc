"""``rankwise export``: what it writes, prints and refuses."""

import json

import numpy as np
import pytest
import typer

import rankwise as rw
from rankwise import cli
from rankwise.cli import export as command
from tests.exports.models import NAMES, fitted, sample
from tests.exports.test_imports import SVM


@pytest.fixture
def export(run, monkeypatch):
    """Run ``rankwise export ARGUMENTS``."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("export")(command.export)
    app.command("nothing")(lambda: None)  # with one command alone typer takes its name for an argument
    monkeypatch.setattr(cli, "app", app)
    return lambda *arguments: run("export", *arguments)


@pytest.fixture
def files(tmp_path):
    fitted("RidgeRanker").save(tmp_path / "model.rankwise")
    rw.io.write_table(sample(), tmp_path / "sample.csv")
    (tmp_path / "svm.txt").write_text(SVM)
    return tmp_path


def test_a_folder_for_solr_with_notes_and_parity(export, files):
    code, out, _ = export(
        files / "model.rankwise", "--to", "solr", "--sample", files / "sample.csv", "-o", files / "solr"
    )
    assert code == 0
    printed = " ".join(out.split())
    assert "model.json, features.json for solr" in printed
    assert "- Solr computes features and scores in float32" in printed
    assert "inverted beyond float32 0" in printed
    model = json.loads((files / "solr" / "model.json").read_text())
    assert [one["name"] for one in model["features"]] == list(NAMES)


def test_the_model_alone_goes_to_standard_output(export, files):
    code, out, err = export(files / "model.rankwise", "--to", "c", "--name", "score")
    assert code == 0
    assert "double score(const double *x)" in out
    assert out == rw.export(fitted("RidgeRanker"), "c", called="score").text
    assert err.startswith("- NaN is not looked for")


def test_json_for_programs(export, files):
    arguments = (files / "model.rankwise", "--to", "elasticsearch", "--sample", files / "sample.csv", "--json")
    code, out, err = export(*arguments, "--shift", "sample", "--features", "a, b, c, d, e")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["parity"]["inverted_beyond_float32"] == 0
    assert "a" in json.loads(json.loads(found["files"]["model.json"])["model"]["model"]["definition"])


def test_options_of_a_target(export, files):
    code, out, _ = export(
        files / "model.rankwise", "--to", "sql", "--option", "table=shop", "--option", "dialect=mysql"
    )
    assert code == 0
    assert "FROM `shop`" in out
    assert "rerank-count: 7" in export(files / "model.rankwise", "--to", "vespa", "--option", "rerank=7")[1]


def test_another_tools_model_becomes_a_rankwise_file(export, files):
    code, out, _ = export(files / "svm.txt", "--to", "rankwise", "-o", files / "svm.rankwise")
    assert (code, out) == (0, f"{files / 'svm.rankwise'}: LinearModel, 4 features\n")
    np.testing.assert_allclose(rw.load(files / "svm.rankwise").coef_, [0.5, 0, -3, -1])
    assert "## Coordinate Ascent" in export(files / "svm.txt", "--to", "ranklib", "--features", "a,b,c,d")[1]


def test_without_a_target_the_targets_are_listed(export, files):
    code, out, _ = export(files / "model.rankwise")
    assert code == 0
    for name in ("solr", "opensearch", "vespa", "onnx", "rankwise"):
        assert name in out
    assert "solr" in json.loads(export(files / "model.rankwise", "--json")[1])


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["model.rankwise", "--to", "slor"], "--to must be the name of an export target, got 'slor': there are"),
        (["model.rankwise", "--to", "slor"], "did you mean 'solr'?"),
        (["none.rankwise", "--to", "c"], "does not exist"),
        (["sample.csv", "--to", "c"], "is not a model that rankwise reads"),
        (["model.rankwise", "--to", "onnx"], "is not text"),
        (["model.rankwise", "--to", "rankwise"], "requires --out FILE"),
        (["model.rankwise", "--to", "c", "--shift", "much"], "--shift must be a number or 'sample'"),
        (["model.rankwise", "--to", "c", "--option", "table"], "--option must be NAME=VALUE"),
        (["model.rankwise", "--to", "c", "--option", "table=x"], "has no option 'table'"),
        (["model.rankwise", "--to", "c", "--features", "a,b"], "got 2 names for 5 features"),
        (["model.rankwise", "--to", "c", "-o", "no/where.c"], "cannot be written"),
    ],
)
def test_mistakes_are_one_sentence(export, files, monkeypatch, arguments, found):
    monkeypatch.chdir(files)
    code, _, err = export(*arguments)
    assert code == 2
    assert found in err
    assert err.count("\n") == 1


def test_hybrid_search_from_a_table_with_empty_cells_to_a_pipeline(run, tmp_path):
    queries = rw.synthetic.make_hybrid(60, random_state=1)
    rw.io.to_frame(queries).to_csv(tmp_path / "judged.csv", index=False)  # a cell without a value is empty
    model, settings = tmp_path / "m.rankwise", ("--set", "engine=opensearch", "--set", "bootstrap=0")
    code, _, _ = run("train", tmp_path / "judged.csv", "-r", "HybridRanker", "--docid", "docid", *settings, "-o", model)
    assert code == 0
    assert rw.load(model).missing == "keep"
    code, out, _ = run("rank", model, tmp_path / "judged.csv", "--docid", "docid")
    assert code == 0
    code, out, _ = run(
        *(
            "export",
            model,
            "--to",
            "opensearch-hybrid",
            "--sample",
            tmp_path / "judged.csv",
            "--docid",
            "docid",
            "--json",
        )
    )
    assert code == 0
    done = json.loads(out)
    assert done["parity"]["inverted_beyond_float32"] == 0
    assert done["parity"]["lists"] == 60
