"""The page of benchmarks: its targets, its figure, and the files that others send."""

import json
from datetime import date

import pytest

from benchmarks import page
from benchmarks.__main__ import main, names
from benchmarks.sent import Sent
from rankwise.errors import FileFormatError
from tests.locks import are_locked

STORED = json.loads(page.STORED.read_text())
ROW = {
    "work": "read a file",
    "how": "1 thread",
    "peer": "another tool",
    "target": "2 x",
    "ratio": 4.0,
    "peer_seconds": 8.0,
    "rankwise_seconds": 2.0,
}
MACHINE = {"processor": "Fast (R) 3000", "cores": 8, "system": "Linux x86_64", "python": "3.13.1", "rankwise": "0.1.0"}
SENT = Sent(MACHINE, "2026-11-17", {"scorer": [ROW]})


# ------------------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"target": "4 x"}, True),
        ({"target": "4.1 x"}, False),
        ({"target": "at least 0.5 x"}, True),
        ({"target": "at most 2 s"}, True),
        ({"target": "at most 1.9 s"}, False),
        ({"target": "slope at most 1.25", "how": "slope 1.09"}, True),
        ({"target": "slope at most 1.25", "how": "slope 1.30"}, False),
        ({"target": "-"}, None),
    ],
)
def test_a_target_is_a_ratio_a_time_or_a_slope(change, verdict):
    assert page.reached(ROW | change) is verdict


def test_a_target_in_other_words_is_an_error():
    with pytest.raises(ValueError, match="'quick' of 'read a file'"):
        page.reached(ROW | {"target": "quick"})


def test_every_stored_row_has_a_verdict_and_those_that_miss_are_in_the_table():
    rows = [row for rows in STORED["results"].values() for row in rows]
    missed = [row for row in rows if page.reached(row) is False]
    assert page.missed(STORED["results"]).count("\n") == len(missed) + 1
    assert all(row["work"] in page.every_row(STORED["results"]) for row in rows)


def test_a_row_of_the_page_that_was_not_measured_is_an_error():
    with pytest.raises(LookupError, match="benchmark 'scorer' has no row of 'read'"):
        page.pick({"scorer": []}, "scorer", "read", "", "")


# --------------------------------------------------------------------------------------------------------------- page


@pytest.mark.skipif(not are_locked("matplotlib"), reason="another matplotlib may draw other pixels")
def test_the_figure_is_the_one_that_is_drawn_from_the_stored_results(tmp_path):
    page.draw(STORED["results"], tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes() == page.FIGURE.read_bytes()


def test_results_of_others_stand_beside_each_other():
    speed = STORED["results"] | {"online": []}
    table = page.machines([Sent(MACHINE, "2026-11-17", speed), SENT])
    assert len(table.splitlines()) == 4
    assert "| Fast (R) 3000, 8 cores, 2026-11-17 | " in table
    assert table.splitlines()[-1].endswith("|  |" * 1)


def test_every_benchmark_that_the_page_shows_exists():
    assert {name for name, *_ in page.SPEED} | {"cold"} <= set(STORED["results"]) <= set(names())


# ------------------------------------------------------------------------------------------------- files of others


def test_a_file_that_was_saved_is_read_as_it_was(tmp_path):
    SENT.write(tmp_path / "mine.json")
    assert Sent.read(tmp_path / "mine.json", set(names())) == SENT
    assert SENT.name() == "fast_r_3000_8_2026-11-17.json"
    assert main(["--check", str(tmp_path / "mine.json")]) == 0


def altered(path, change):
    told = {"format": 1, "measured": "2026-11-17", "machine": dict(MACHINE), "results": {"scorer": [dict(ROW)]}}
    change(told)
    path.write_text(json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told: told.update(format=2), "expected format 1"),
        (lambda told: told.update(measured="yesterday"), "measured is 'yesterday'"),
        (lambda told: told.update(measured="2026-13-01"), "expected a day"),
        (lambda told: told.pop("machine"), "machine is NoneType"),
        (lambda told: told["machine"].update(cores="8"), "cores of the machine is '8', expected int"),
        (lambda told: told["machine"].update(processor="a | b"), "processor of the machine"),
        (lambda told: told["machine"].update(home={"user": "me"}), "home of the machine"),
        (lambda told: told.update(results={}), "expected rows by benchmark"),
        (lambda told: told["results"].update(dance=[ROW]), "no benchmark is called 'dance'"),
        (lambda told: told["results"].update(scorer=[]), "scorer has no rows"),
        (lambda told: told["results"]["scorer"][0].update(work="<script>"), "row 1 of scorer: work"),
        (lambda told: told["results"]["scorer"][0].update(ratio=5.0), "the ratio is 5, expected 4"),
        (lambda told: told["results"]["scorer"][0].update(rankwise_seconds=0), "expected positive numbers"),
        (lambda told: told["results"]["scorer"][0].update(peer_seconds=float("inf")), "expected positive numbers"),
        (lambda told: told["results"]["scorer"][0].update(user="me"), "expected one task, two amounts and their ratio"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused_in_one_sentence(tmp_path, capsys, change, sentence):
    path = altered(tmp_path / "theirs.json", change)
    with pytest.raises(FileFormatError, match=r"theirs\.json: ") as refusal:
        Sent.read(path, set(names()))
    assert sentence in str(refusal.value)
    assert main(["--check", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_no_json_and_no_file_are_refused(tmp_path):
    (tmp_path / "theirs.json").write_text("{")
    assert main(["--check", str(tmp_path / "theirs.json")]) == 1
    assert main(["--check", str(tmp_path / "gone.json")]) == 1


def test_measuring_for_others_leaves_the_documentation_alone(tmp_path, monkeypatch):
    import benchmarks.ridge_committee
    import benchmarks.scorer

    monkeypatch.setattr(benchmarks.scorer, "run", lambda: [dict(ROW)])
    monkeypatch.setattr(benchmarks.ridge_committee, "run", list)  # as without its data
    monkeypatch.setattr(page, "write", lambda: pytest.fail("the page was written"))
    before = page.STORED.read_bytes()
    assert main(["--save", str(tmp_path / "mine.json"), "scorer", "ridge_committee"]) == 0
    found = Sent.read(tmp_path / "mine.json", set(names()))
    assert found.results == {"scorer": [ROW]}
    assert found.measured <= date.today().isoformat()
    assert page.STORED.read_bytes() == before


def test_a_folder_that_is_not_there_is_named_before_anything_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.__main__.measured", lambda wanted: pytest.fail("measured"))
    assert main(["--save", str(tmp_path / "missing" / "mine.json")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_an_unknown_benchmark_is_named(capsys):
    assert main(["--save", "x.json", "dance"]) == 2
    assert "no benchmark is called 'dance'" in capsys.readouterr().err


def test_a_file_that_is_added_is_on_the_page(tmp_path, monkeypatch):
    SENT.write(tmp_path / "mine.json")
    monkeypatch.setattr("benchmarks.__main__.FOLDER", tmp_path / "sent")
    written = []
    monkeypatch.setattr(page, "write", lambda: written.append(True))
    assert main(["--add", str(tmp_path / "mine.json")]) == 0
    assert [path.name for path in (tmp_path / "sent").iterdir()] == [SENT.name()]
    assert written
