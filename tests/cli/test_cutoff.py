"""``rankwise cutoff`` and ``rank --cutoff``: a stranger's path from a model file and a CSV to lists that are cut."""

import csv
import json

import numpy as np
import pytest

import rankwise as rw
from rankwise.guarantees import Cutoff


def write_csv(path, queries, judged):
    names = queries.names()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", *(["label"] if judged else []), *queries.feature_names])
        for row, query in enumerate(queries.query_of_row.tolist()):
            label = [int(queries.y[row])] if judged else []
            writer.writerow([names[query], *label, *queries.X[row].tolist()])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cutoff")
    lists = rw.make_lists(260, documents=10, features=4, random_state=0)
    write_csv(folder / "judged.csv", lists[60:240], True)
    write_csv(folder / "new.csv", lists[240:], False)
    rw.RidgeRanker(n_jobs=1).fit(lists[:60]).save(folder / "model.rankwise")
    rw.RidgeRanker(alpha=0.5, n_jobs=1).fit(lists[:60]).save(folder / "other.rankwise")
    (folder / "judged.scores").write_text("".join(f"{one!r}\n" for one in lists[60:240].X[:, 0].tolist()))
    return folder


def test_a_stranger_finds_a_cut_off_and_ranks_with_it(files, run, tmp_path):
    model, out = files / "model.rankwise", tmp_path / "cutoff.json"
    code, text, _ = run("cutoff", model, "--data", files / "judged.csv", "--keep", "recall>=0.8", "--out", out)
    assert code == 0
    assert "R of what is kept on future queries with a relevant document >= 0.8 with probability 0.95" in text
    assert f"{out}: for rankwise rank {model} NEW --cutoff {out}" in text
    found = Cutoff.load(out)
    code, ranked, _ = run("rank", model, files / "new.csv", "--cutoff", out)
    _, whole, _ = run("rank", model, files / "new.csv")
    assert code == 0
    rows, every = (list(csv.DictReader(one.splitlines())) for one in (ranked, whole))
    assert [row for row in every if float(row["score"]) >= found.value] == rows
    assert 0 < len(rows) < len(every) == 200
    code, top, _ = run("rank", model, files / "new.csv", "--cutoff", out, "--top", 2)
    assert {row["rank"] for row in csv.DictReader(top.splitlines())} == {"1", "2"}
    code, _, said = run("rank", files / "other.rankwise", files / "new.csv", "--cutoff", out)
    assert (code, "belongs to another model than this RidgeRanker" in said) == (2, True)
    code, _, said = run("rank", model, files / "new.csv", "--cutoff", out, "--to", "scores")
    assert (code, "so --cutoff does not apply" in said) == (2, True)
    code, text, _ = run("certify", model, "--holdout", files / "judged.csv", "--cutoff", out)
    assert (code, "were used in training or calibrated the cut-off" in " ".join(text.split())) == (3, True)
    code, text, _ = run("export", model, "--to", "sql", "--cutoff", out, "--out", tmp_path)
    assert code == 0
    assert 'WHERE "rankwise" >= ' in (tmp_path / "cut.sql").read_text()


def test_scores_of_any_source_and_json(files, run, tmp_path):
    out = tmp_path / "top.json"
    code, text, _ = run(
        "cutoff", files / "judged.scores", "--data", files / "judged.csv", "--keep", "precision>=0.2", "--by", "rank",
        "--json", "-o", out,
    )  # fmt: skip
    assert code == 0
    shown = json.loads(text)
    assert (shown["by"], shown["model"], shown["out"]) == ("rank", None, str(out))
    assert shown["value"] == Cutoff.load(out).value
    assert np.isclose(shown["share_kept"], shown["value"] / 10)


def test_what_cannot_be_shown_writes_nothing(files, run, tmp_path):
    given = ("cutoff", files / "model.rankwise", "--data", files / "judged.csv", "--out", tmp_path / "no.json")
    code, text, _ = run(*given, "--keep", "recall>=0.999")
    assert (code, "nothing was written" in text) == (3, True)
    for wrong, message in (
        (("--keep", "recall>0.9"), "--keep must be a demand such as 'recall>=0.9'"),
        (("--keep", "recall>=0.9", "--delta", 2), "--delta must be between 0 and 1"),
        (("--keep", "recal>=0.9"), "no measure is called 'recal'"),
    ):
        code, _, said = run(*given, *wrong)
        assert (code, message in said) == (2, True), said
    assert not (tmp_path / "no.json").exists()
