"""``rankwise clicks``: from the files of an engine to a value with a bound, in one command each."""

import csv
import json

import numpy as np
import pytest

import rankwise as rw
from rankwise import clicks

DOCUMENTS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Candidates, models, and logs of 2,000 sessions as CSV and as UBI."""
    place = tmp_path_factory.mktemp("clicks")
    lists = rw.make_lists(40, documents=DOCUMENTS, features=3, random_state=0)
    names = ("bm25", "age", "links")
    lists = lists._replace(feature_names=names)
    ids = [f"sku-{row}" for row in range(lists.n_documents)]
    lists = rw.Queries.from_arrays(
        lists.X, lists.y, qid=[f"query-{q}" for q in lists.query_of_row], docid=ids, feature_names=names
    )
    with (place / "candidates.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", "docid", *names])
        for row, q in enumerate(lists.query_of_row.tolist()):
            writer.writerow([f"query-{q}", ids[row], *map(repr, lists.X[row].astype(float).tolist())])
    bad, good = (rw.LinearModel.of(w, feature_names=names) for w in ([-1.0, 0.0, 0.0], [1.0, 0.2, 0.2]))
    bad.save(place / "old.rankwise")
    good.save(place / "new.rankwise")
    rw.io.write_run(lists, good.predict(lists), place / "new.run")
    ranked = good.rank(lists)
    with (place / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rank", "qid", "docid"])
        writer.writerows([[row["rank"], row["qid"], row["docid"]] for row in ranked][::-1])
    log = clicks.simulate(lists, bad, 2_000, shown=DOCUMENTS, random_state=1)
    swaps = clicks.simulate(lists, bad, 6_000, shown=DOCUMENTS, swaps=True, random_state=2)
    write_csv(place / "log.csv", log)
    write_csv(place / "swaps.csv", swaps)
    write_ubi(place, log)
    return place


def write_csv(path, log):
    owner = log.session_of_row
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        more = [] if log.swap is None else ["swap", "swapped"]
        writer.writerow(["session", "qid", "docid", "position", "click", *more])
        for row in range(log.n_shown):
            s = owner[row]
            extra = [] if log.swap is None else [log.swap[s], int(log.swapped[s])]
            writer.writerow(
                [log.session[s], log.qid[s], log.docid[row], log.position[row], int(log.click[row]), *extra]
            )


def write_ubi(place, log):
    """The same sessions to the published schema of UBI 1.3.0."""
    with (place / "ubi_queries.jsonl").open("w") as queries, (place / "ubi_events.jsonl").open("w") as events:
        for number in range(len(log)):
            own = slice(log.start[number], log.start[number + 1])
            name, client = f"{int(log.session[number]):032x}", f"client-{number % 97}"
            line = {
                "application": "shop", "query_id": name, "client_id": client, "user_query": str(log.qid[number]),
                "query_response_id": f"r-{number}", "query_response_hit_ids": [str(one) for one in log.docid[own]],
                "query_attributes": {}, "object_id_field": "sku", "timestamp": "2026-01-01T00:00:00Z",
            }  # fmt: skip
            queries.write(json.dumps(line) + "\n")
            shown = zip(log.docid[own].tolist(), log.position[own].tolist(), log.click[own].tolist(), strict=True)
            for document, position, click in shown:
                for action in ("impression", *(["click"] if click else [])):
                    event = {
                        "application": "shop", "action_name": action, "query_id": name, "client_id": client,
                        "timestamp": "2026-01-01T00:00:05Z", "message_type": "INFO", "message": "",
                        "event_attributes": {
                            "object": {"object_id": document, "object_id_field": "sku"},
                            "position": {"ordinal": position},
                        },
                    }  # fmt: skip
                    events.write(json.dumps(event) + "\n")


THETA = ",".join(f"{1 / place:.6f}" for place in range(1, DOCUMENTS + 1))


def test_ubi_files_become_a_value_with_a_bound_in_one_command(folder, run):
    code, printed, error = run(
        "clicks", "value", folder / "ubi_queries.jsonl", "--events", folder / "ubi_events.jsonl", "-d",
        folder / "candidates.csv", "-m", folder / "new.rankwise", "--theta", THETA, "--json",
    )  # fmt: skip
    assert (code, error) == (0, "")
    (found,) = json.loads(printed).values()
    assert found["n"] == 2_000
    assert 0 < found["lower"] < found["estimate"]
    assert {one["met"] for one in found["preconditions"]} == {None}


def test_csv_and_ubi_give_the_same_bound_for_a_ranker_and_its_run(folder, run):
    found = {}
    for name, source, model in (
        ("csv", [folder / "log.csv"], "new.rankwise"),
        ("ubi", [folder / "ubi_queries.jsonl", "--events", folder / "ubi_events.jsonl"], "new.rankwise"),
        ("run", [folder / "log.csv"], "new.run"),
        ("ranks", [folder / "log.csv"], "new.csv"),
    ):
        code, printed, _ = run(
            "clicks", "compare", *source, "-d", folder / "candidates.csv", "-m", folder / model, "--theta", THETA,
            "--json",
        )  # fmt: skip
        assert code == 0
        (found[name],) = json.loads(printed).values()
    assert found["csv"] == found["ubi"] == found["run"] == found["ranks"]
    assert found["csv"]["certified"]


def test_propensities_are_learned_and_used(folder, run, tmp_path):
    code, printed, _ = run(
        "clicks",
        "propensities",
        folder / "swaps.csv",
        "-o",
        tmp_path / "p.json",
        "--png",
        tmp_path / "p.png",
        "--delta",
        0.02,
    )
    assert code == 0
    assert "exact (betting)" in printed
    assert (tmp_path / "p.png").stat().st_size > 1000
    code, printed, _ = run(
        "clicks", "compare", folder / "log.csv", "-d", folder / "candidates.csv", "-m", folder / "new.rankwise", "-m",
        folder / "old.rankwise", "-p", tmp_path / "p.json",
    )  # fmt: skip
    assert code == 0
    assert printed.count("holds if") == 2
    assert "times the examination of position 1" in printed.replace("\n", " ")


def test_the_click_rate_is_refused(folder, run, tmp_path):
    code, _, error = run("clicks", "propensities", folder / "log.csv", "-o", tmp_path / "p", "--how", "click-rate")
    assert code == 2
    assert "is not a propensity" in error
    assert not (tmp_path / "p").exists()


def test_inspection_prints_what_looks_wrong(folder, run):
    code, printed, _ = run("clicks", "inspect", folder / "log.csv", "--json")
    assert code == 0
    assert json.loads(printed)["checks"]["sessions"][0] == 2_000
    code, printed, _ = run("clicks", "inspect", folder / "log.csv")
    assert "The click rate is not a propensity" in printed


@pytest.mark.parametrize("ranker", ["ridge", "hinge", "softmax"])
def test_rankers_learn_from_clicks(folder, run, tmp_path, ranker):
    code, printed, _ = run(
        "clicks", "learn", folder / "log.csv", "-d", folder / "candidates.csv", "--theta", THETA, "-o", tmp_path / "m",
        "--ranker", ranker,
    )  # fmt: skip
    assert code == 0
    assert "learned from 2,000 sessions" in printed
    assert rw.load(tmp_path / "m").coef_[0] > 0


def test_a_safe_ranker_replaces_the_logged_one_with_a_certificate(folder, run, tmp_path):
    code, printed, _ = run(
        "clicks", "learn", folder / "log.csv", "-d", folder / "candidates.csv", "--theta", THETA, "-o", tmp_path / "m",
        "--safe", folder / "old.rankwise", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(printed)["certified"]
    assert rw.load(tmp_path / "m").coef_[0] > 0


def test_interleaving_is_read_planned_and_written(folder, run, tmp_path):
    code, printed, _ = run("clicks", "interleave", "--plan", 0.2)
    assert code == 0
    assert "impressions for a mean credit of 0.2" in printed
    code, printed, _ = run(
        "clicks", "interleave", "--a", folder / "old.rankwise", "--b", folder / "new.rankwise", "-d",
        folder / "candidates.csv", "-o", tmp_path / "pages.csv", "--shown", 4,
    )  # fmt: skip
    assert code == 0
    lines = list(csv.DictReader((tmp_path / "pages.csv").open()))
    assert len(lines) == 40 * 4
    random = np.random.default_rng(0)
    with (tmp_path / "impressions.csv").open("w") as file:
        file.write("impression,team,click\n")
        for number in range(400):
            for team in "ab":
                file.write(f"{number},{team},{int(random.random() < (0.2 if team == 'a' else 0.5))}\n")
    code, printed, _ = run("clicks", "interleave", tmp_path / "impressions.csv")
    assert code == 0
    assert "b is preferred" in printed.replace("\n", " ")


def test_w19_click_messages_name_options(folder, run, monkeypatch, tmp_path):
    """W19: what the library calls by_swaps is --how swaps here."""
    monkeypatch.chdir(folder)
    code, _, error = run("clicks", "propensities", "log.csv", "-o", tmp_path / "p")
    assert code == 2
    assert "--how swaps requires sessions of a swap experiment" in error
    assert "by_swaps" not in error
    _, _, error = run("clicks", "propensities", "log.csv", "-o", tmp_path / "p", "--how", "harvest")
    assert "--how harvest requires the column version" in error
    _, _, error = run("clicks", "propensities", "log.csv", "-o", tmp_path / "p", "--how", "click-rate")
    assert "Learn propensities from randomized swaps" in error
    (tmp_path / "few.csv").write_text("qid,docid,bm25,age,links\nquery-0,sku-0,1,2,3\n")
    arguments = ("-d", tmp_path / "few.csv", "-m", "new.rankwise", "--theta", THETA)
    _, _, error = run("clicks", "value", "log.csv", *arguments)
    assert error.startswith("rankwise: session ")
    assert "pass --drop-unknown to leave such sessions out" in error


def test_w20_a_position_model_may_be_written_by_hand(folder, run, monkeypatch, tmp_path):
    """W20: the form of positions.json is in the help, and theta alone is enough."""
    monkeypatch.chdir(folder)
    (tmp_path / "positions.json").write_text(json.dumps({"theta": [1 / place for place in range(1, DOCUMENTS + 1)]}))
    common = ("clicks", "value", "log.csv", "-d", "candidates.csv", "-m", "new.rankwise", "--json")
    _, by_file, _ = run(*common, "-p", tmp_path / "positions.json")
    _, by_numbers, _ = run(*common, "--theta", ",".join(repr(1 / place) for place in range(1, DOCUMENTS + 1)))
    assert by_file == by_numbers
    _, printed, _ = run("clicks", "value", "--help")
    assert '{"theta": [1, 0.5, 0.33]' in " ".join(printed.replace("│", " ").split())


def test_w20_candidates_are_read_by_the_columns_that_the_model_remembers(folder, run, monkeypatch, tmp_path):
    """W20: other names of the roles, a text column and a category: the model knows them, no option is needed."""
    monkeypatch.chdir(tmp_path)
    lines = list(csv.DictReader((folder / "candidates.csv").open()))
    with open("shop.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["search", "sku", "grade", "bm25", "age", "links", "brand", "title"])
        for number, line in enumerate(lines):
            grade = int(float(line["bm25"]) > 0.5) + int(float(line["links"]) > 0.5)
            numbers = [line[name] for name in ("bm25", "age", "links")]
            title = f"{number} words of {number // 3} things"
            writer.writerow([line["qid"], line["docid"], grade, *numbers, "abc"[number % 3], title])
    roles = ("--qid", "search", "--label", "grade", "--docid", "sku")
    code, _, error = run("train", "shop.csv", "--ranker", "RidgeRanker", "-o", "model.rankwise", *roles)
    assert code == 0, error
    assert hasattr(rw.load("model.rankwise"), "features_")
    code, printed, error = run(
        "clicks", "value", folder / "log.csv", "-d", "shop.csv", "-m", "model.rankwise", "--theta", THETA, "--json"
    )
    assert code == 0, error
    (found,) = json.loads(printed).values()
    assert found["n"] == 2_000
    # a model of plain features takes its own columns, whatever else the table has
    renamed = "qid,docid,grade,bm25,age,links,brand,title\n" + (tmp_path / "shop.csv").read_text().split("\n", 1)[1]
    (tmp_path / "more.csv").write_text(renamed)
    code, printed, error = run(
        "clicks",
        "value",
        folder / "log.csv",
        "-d",
        "more.csv",
        "-m",
        folder / "new.rankwise",
        "--theta",
        THETA,
        "--json",
    )
    assert code == 0, error
    _, plain, _ = run(
        "clicks", "value", folder / "log.csv", "-d", folder / "candidates.csv", "-m", folder / "new.rankwise",
        "--theta", THETA, "--json",
    )  # fmt: skip
    assert printed == plain


def test_what_is_printed_says_what_it_is_about(folder, run, tmp_path):
    code, printed, _ = run(
        "clicks", "value", folder / "log.csv", "-d", folder / "candidates.csv", "-m", folder / "new.rankwise",
        "--theta", THETA,
    )  # fmt: skip
    assert code == 0
    for line in ("unit: session", "read: once, at a log whose end was fixed beforehand", "about: ", "choices: "):
        assert line in printed
    _, printed, _ = run("clicks", "propensities", folder / "swaps.csv", "-o", tmp_path / "p.json")
    assert "unit: session" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["value", "nowhere.csv", "-d", "candidates.csv", "-m", "new.rankwise", "--theta", "1"], "nowhere.csv"),
        (["value", "log.csv", "-d", "candidates.csv", "-m", "new.rankwise"], "pass the position model"),
        (["value", "log.csv", "-d", "candidates.csv", "-m", "new.rankwise", "--theta", "one"], "must be numbers"),
        (
            ["value", "log.csv", "-d", "candidates.csv", "-m", "new.rankwise", "--theta", "1,0.5"],
            "must cover all 8 positions of the log, got 2",
        ),
        (["value", "log.csv", "-d", "candidates.csv", "-m", "log", "--theta", "1"], "does not exist"),
        (["inspect", "log.csv", "--depth", "3"], "require --events FILE"),
        (["interleave"], "interleave requires one of"),
        (["interleave", "--a", "old.rankwise"], "requires --a, --b"),
        (["interleave", "log.csv"], "got none called impression, team"),
    ],
)
def test_wrong_calls_are_one_sentence(folder, run, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    code, _, error = run("clicks", *arguments)
    assert code == 2
    assert words in error
    assert error.count("\n") == 1


def test_every_command_has_an_example():
    from rankwise.cli.clicks import app

    assert {one.name or one.callback.__name__ for one in app.registered_commands} == {
        "inspect", "propensities", "value", "compare", "learn", "interleave",
    }  # fmt: skip
    assert all("Example: rankwise clicks" in one.help for one in app.registered_commands)
